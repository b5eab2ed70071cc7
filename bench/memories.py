"""Memory of files: the figures, and what is measured: `python -m bench.memories WHAT COUNT`."""

from __future__ import annotations

import asyncio
import resource
import sys
import tempfile
import time
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.figures import Row, ratio
from bench.processes import Worker, side_by_side

COUNT = 10_000
IN_A_FILE = 50
DIMENSIONS = (384, 1536)
QUERIES = 20
KINDS = ("together", "alone", "bare", "look")


def queries(env: Mapping[str, str]) -> Iterator[Row]:
    """CPU time of a query over 10,000 passages in 200 files, from the look whether a file has
    changed to the texts of the best three : that of numpy's bare product of the same matrix and
    vector, both on one thread. What makes the query's vector is left out. 384 numbers are what
    small local models have, 1,536 what `text-embedding-3-small` has. "Alone" is one query after
    another, each with a look of its own; "side by side" is twenty at once, as the units of a map
    ask, which share one.
    """
    env = {**env, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    for dimensions in DIMENSIONS:
        with Worker("bench.memories", "query", COUNT, dimensions, env=env) as worker:
            found = side_by_side({name: (worker, name) for name in KINDS}, 9)
        bound = 3 if dimensions == DIMENSIONS[-1] else None
        yield Row(f"{dimensions:,} numbers: the bare product", f"{found['bare'] * 1000:.2f} ms")
        what = f"{dimensions:,} numbers: a query side by side"
        yield ratio(what, found["together"], found["bare"], 3)
        yield ratio(f"{dimensions:,} numbers: a query alone", found["alone"], found["bare"], bound)
        what = f"{dimensions:,} numbers: of it the look at 200 files"
        yield ratio(what, found["look"], found["bare"])


def indexing(env: Mapping[str, str]) -> Iterator[Row]:
    """Reading files into an index: 10,000 passages : 1,000, each in a fresh process, with vectors
    of 1,536 numbers that cost nothing to make.
    """
    found: dict[int, tuple[float, float, float]] = {}
    for count in (COUNT // 10, COUNT):
        with Worker("bench.memories", "index", count, DIMENSIONS[1], env=env) as worker:
            before, seconds, peak = (worker.measure(what) for what in ("peak", "index", "peak"))
            found[count] = before, seconds, peak
    small, large = found[COUNT // 10], found[COUNT]
    yield Row("peak memory before, with all imports", f"{large[0]:.0f} MiB")
    yield ratio("peak memory", large[2], small[2], 1.25)
    yield ratio("CPU time of a passage", large[1] / COUNT, small[1] / (COUNT // 10), 1.5)


SECTIONS = {
    "Queries of a memory of files": queries,
    "Indexing a memory of files": indexing,
}


class Cheap:
    """Vectors that cost next to nothing: the same numbers, turned by a text's checksum."""

    def __init__(self, dimensions: int) -> None:
        import numpy as np

        numbers = np.random.default_rng(1).standard_normal(dimensions).astype(np.float32)
        self._numbers = numbers / np.linalg.norm(numbers)
        self.name = f"cheap-{dimensions}"

    async def embed_query(self, text: str) -> Any:
        """A vector."""
        import numpy as np

        turned = np.roll(self._numbers, zlib.crc32(text.encode()) % len(self._numbers))
        return array("f", turned.tobytes())

    async def embed_texts(self, texts: Sequence[str]) -> Sequence[Any]:
        """Vectors."""
        return [await self.embed_query(text) for text in texts]


def written(folder: Path, count: int) -> None:
    """So many sections of a few lines, in files of fifty."""
    (folder / "docs").mkdir()
    for number in range(count // IN_A_FILE):
        sections = (
            f"## Section {number}.{part}\n\n{'Some words of this section. ' * 20}\n"
            for part in range(IN_A_FILE)
        )
        (folder / "docs" / f"{number:05}.md").write_text("\n".join(sections), encoding="utf-8")


async def main() -> None:
    from devall.config.memory import FileSource
    from devall.memory.file import FileMemory

    what, count, dimensions = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written(folder, count)
        source = FileSource.model_validate({"path": "docs"})
        model = Cheap(dimensions)
        store = FileMemory("docs", [source], folder, model, folder / "index.db")
        matrix: Any = None
        sought = await model.embed_query("x")
        if what == "query":
            import numpy as np

            await store.open()
            rows = np.array([await model.embed_query(str(n)) for n in range(count)], np.float32)
            matrix, vector = rows, np.frombuffer(sought, np.float32)
        for line in sys.stdin:
            began = time.process_time()
            match line.strip():
                case "together":
                    asked = (store.retrieve(str(number), 3, -1) for number in range(QUERIES))
                    assert all(len(found) == 3 for found in await asyncio.gather(*asked))
                    found = (time.process_time() - began) / QUERIES
                case "alone":
                    for number in range(QUERIES):
                        assert len(await store.retrieve(str(number), 3, -1)) == 3
                    found = (time.process_time() - began) / QUERIES
                case "bare":
                    for _ in range(QUERIES):
                        matrix @ vector
                    found = (time.process_time() - began) / QUERIES
                case "look":
                    for _ in range(QUERIES):
                        store._seen()  # noqa: SLF001 - a part of the figure above
                    found = (time.process_time() - began) / QUERIES
                case "index":
                    await store.open()
                    found = time.process_time() - began
                case _:
                    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(found, flush=True)
        await store.aclose()


if __name__ == "__main__":
    asyncio.run(main())
