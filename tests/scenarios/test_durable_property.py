"""Graphs by chance, stopped at any write of their journal and gone on with.

Every reply of a model is made of what it was asked, and of nothing else: a run that took up
another's result would ask differently from then on.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import devall
from devall.app import resume
from devall.core.events import Event, RunResumed
from devall.core.ids import node_of
from devall.core.messages import Message, ToolCall, to_json
from devall.graph.digests import digests
from devall.journal.base import StepRecord
from devall.journal.reader import FILE_NAME, Reader
from devall.journal.sqlite import NewRun, SqliteJournal, SqliteStore
from devall.models.base import ChatReply
from devall.nodes.crew import Overrides
from devall.runs.parts import Parts
from devall.runs.settings import Settings

KIT = """
    import asyncio

    from devall.tools.context import ToolContext


    async def note(tag: str, _context: ToolContext) -> str:
        await asyncio.sleep(0)
        with (_context.files / "calls").open("a") as file:
            file.write(f"{tag}\\n")
        await asyncio.sleep(0)
        return f"did {tag}"
"""
MARK = re.compile(r"(?:<|call_)([0-9a-f]{12})")
BLOCKS = ("say", "tools", "both", "loop", "sub", "map")


# The graphs


@dataclass
class Sketch:
    """A graph as a file has it."""

    prefix: str = ""
    nodes: list[dict[str, Any]] = field(default_factory=list)
    edges: list[dict[str, Any]] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)
    inner: dict[str, Sketch] = field(default_factory=dict)
    last: str = ""

    def grow(self, kind: str) -> None:
        """Put a block behind what is there."""
        at, before = len(self.nodes), self.last
        match kind:
            case "say" | "tools":
                self._agent(f"{kind}{at}", kind, before)
            case "both":
                self._node(f"fork{at}", "passthrough", before)
                names = [f"{model}{at}{twin}" for model, twin in (("tools", 1), ("say", 2))]
                for name, model in zip(names, ("tools", "say"), strict=True):
                    self._agent(name, model, f"fork{at}")
                self._node(f"join{at}", "passthrough", *names, config={"only_last_message": False})
            case "loop":
                self._agent(f"draft{at}", "draft", before, context_window=-1)
                self._agent(f"review{at}", "review", f"draft{at}")
                again = {"type": "keyword", "config": {"any": ["again"]}}
                good = {"type": "keyword", "config": {"none": ["again"]}}
                self._edge(f"review{at}", f"draft{at}", condition=again)
                self._node(f"out{at}", "passthrough")
                self._edge(f"review{at}", f"out{at}", condition=good)
            case "sub":
                inner = Sketch(f"{self.prefix}sub{at}/")
                inner.grow("tools")
                inner.grow("say")
                self.inner[f"sub{at}"] = inner
                config = {"type": "config", "config": inner.graph()}
                self._node(f"sub{at}", "subgraph", before, config=config)
            case _:
                self._agent(f"parts{at}", "parts", before)
                self._agent(f"unit{at}", "tools")
                split = {"type": "regex", "pattern": r"part\d of \w+"}
                self._edge(f"parts{at}", f"unit{at}", dynamic={"type": "map", "split": split})

    def graph(self) -> dict[str, Any]:
        return {"start": self.nodes[0]["id"], "nodes": self.nodes, "edges": self.edges}

    def write(self, file: Path) -> Path:
        file.write_text(json.dumps({"graph": self.graph()}), encoding="utf-8")
        return file

    def whole(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """All agents with their names."""
        for node in self.nodes:
            if node["type"] == "agent":
                yield self.prefix + node["id"], node
        for inner in self.inner.values():
            yield from inner.whole()

    def behind(self, changed: str) -> set[str]:
        """The nodes that come after one."""
        head, _, _ = changed.partition("/")
        inner = self.inner.get(head)
        found = (
            set() if inner is None else {f"{head}/{each}" for each in inner.behind_here(changed)}
        )
        return found | self.behind_here(head) - {changed}

    def behind_here(self, name: str) -> set[str]:
        todo, seen = [name.rpartition("/")[2]], set[str]()
        while todo:
            here = todo.pop()
            new = {e["to"] for e in self.edges if e["from"] == here} - seen
            seen |= new
            todo += new
        return seen

    def _agent(self, name: str, model: str, *before: str, **more: Any) -> None:
        config: dict[str, Any] = {"provider": "openai", "name": model, "role": self.prefix + name}
        if model == "tools":
            config["tooling"] = {
                "type": "function",
                "in_doubt": "retry",
                "tools": [{"name": "note"}],
            }
        self._node(name, "agent", *before, config=config, **more)

    def _node(self, name: str, kind: str, *before: str, **more: Any) -> None:
        self.nodes.append({"id": name, "type": kind, **more})
        for each in before:
            if each:
                self._edge(each, name)
        self.last = name

    def _edge(self, source: str, target: str, **more: Any) -> None:
        self.edges.append({"from": source, "to": target, **more})
        self.last = target


@st.composite
def sketches(draw: st.DrawFn) -> Sketch:
    sketch = Sketch()
    for kind in draw(st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=4)):
        sketch.grow(kind)
    return sketch


# What the graphs work with


@dataclass
class Models:
    """Models that answer by what they are asked alone."""

    asked: list[str] = field(default_factory=list)

    def model(self, choice: Any) -> Model:
        return Model(choice.name, self)

    async def aclose(self) -> None: ...


@dataclass
class Model:
    name: str
    source: Models
    provider: str = "openai"
    url: str = ""

    async def complete(self, request: Any, on_text: Any) -> ChatReply:
        asked = json.dumps([self.name, [to_json(message) for message in request.messages]])
        mark = hashlib.sha256(asked.encode()).hexdigest()[:12]
        self.source.asked.append(mark)
        for _ in range(int(mark, 16) % 4):
            await asyncio.sleep(0)
        last = request.messages[-1]
        if self.name == "tools" and last.role != "tool":
            calls = tuple(
                ToolCall(f"call_{mark}_{at}", "note", json.dumps({"tag": f"{mark}.{at}"}))
                for at in range(1 + int(mark, 16) % 3)
            )
            return ChatReply(Message("assistant", "", tool_calls=calls), "tool_calls")
        text = f"<{mark}> {self.name}"
        if self.name == "draft":
            text += f" round {sum(m.role == 'assistant' for m in request.messages) + 1}"
        elif self.name == "review" and "round 3" not in last.text:
            text += " again"
        elif self.name == "parts":
            text += "".join(f", part{number} of {mark}" for number in range(3))
        return ChatReply(Message("assistant", text))


class Stopping:
    """A journal that ends its run at a write, just before or behind it, as a kill does."""

    def __init__(self, inner: SqliteJournal, at: int, *, is_kept: bool) -> None:
        self.inner = inner
        self.at = at
        self.is_kept = is_kept
        self.run: asyncio.Task[Any] | None = None
        self.writes = 0

    async def find(self, step: Any, /) -> StepRecord | None:
        return await self.inner.find(step)

    async def begin(self, step: Any, /) -> None:
        await self._write(lambda: self.inner.begin(step))

    async def append(self, record: StepRecord, /) -> None:
        await self._write(lambda: self.inner.append(record))

    async def finish(self, status: str, result: Any, /) -> None:
        assert self.run is not None
        if self.writes < self.at:
            await self.inner.finish(status, result)

    async def aclose(self) -> None: ...

    async def _write(self, work: Any) -> None:
        self.writes += 1
        if self.writes < self.at or (self.writes == self.at and self.is_kept):
            await work()
        if self.writes >= self.at:
            assert self.run is not None
            self.run.cancel()
            await asyncio.get_running_loop().create_future()


# What is done with them


@dataclass
class Trial:
    """A folder with a file, and what its runs ask for."""

    folder: Path
    functions: Path
    models: Models = field(default_factory=Models)

    @property
    def file(self) -> Path:
        return self.folder / "w.yaml"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    def effects(self, run: str = "r") -> Counter[str]:
        place = self.logs / run / "workspace/calls"
        return Counter([*self.models.asked, *(place.read_text().split() if place.exists() else ())])

    async def in_peace(self) -> tuple[str | None, Counter[str]]:
        """The answer of a run that nobody disturbs, and what it asks for."""
        models = Models()
        result = await devall.run(
            self.file,
            task="x",
            run_id="peace",
            logs_dir=self.logs / "peaceful",
            journal="memory",
            functions_dir=self.functions,
            model_source=models,
        )
        assert result.status == "completed", result.error
        place = self.logs / "peaceful/peace/workspace/calls"
        tools = place.read_text().split() if place.exists() else []
        return result.answer, Counter([*models.asked, *tools])

    async def stopped(self, at: int, *, is_kept: bool) -> None:
        """A run that ends at a write of its journal."""
        loaded = devall.load_workflow(self.file, functions_dir=self.functions)
        plan = Parts(loaded, Overrides(), self.functions).plan
        self.logs.mkdir(exist_ok=True)
        store = SqliteStore(self.logs / FILE_NAME)
        store.open()
        new = NewRun(
            id="r",
            workflow=str(self.file),
            task=to_json(Message("user", "x")),
            settings=Settings(functions_dir=self.functions).to_json(),
            sources=loaded.texts,
            nodes=digests(plan, lambda value: value),
        )
        inner = await store.begin(new, lambda value: value)
        journal = Stopping(inner, at, is_kept=is_kept)
        journal.run = asyncio.create_task(
            devall.run(
                loaded,
                task="x",
                run_id="r",
                logs_dir=self.logs,
                journal=journal,
                functions_dir=self.functions,
                model_source=self.models,
            )
        )
        with suppress(asyncio.CancelledError):
            await journal.run
        await inner.aclose()
        # This process lives, and the run's owner shall not: as if its lease had run out.
        await store._writer.do(lambda database: database.execute("UPDATE runs SET lease = 0"))
        await store.aclose()

    async def resumed(self, until: int | None = None) -> tuple[Any, RunResumed | None]:
        """The run goes on, to its end or until so many events have been told."""
        told: list[Event] = []
        task: asyncio.Task[Any] | None = None

        def on_event(event: Event) -> None:
            told.append(event)
            if len(told) == until and task is not None:
                task.cancel()

        task = asyncio.create_task(
            resume("r", logs_dir=self.logs, model_source=self.models, on_event=on_event)
        )
        result = None
        with suppress(asyncio.CancelledError):
            result = await task
        return result, next((e for e in told if isinstance(e, RunResumed)), None)

    def done(self) -> dict[str, str]:
        """Marks of the model and tool calls that stand done in the journal, and their nodes."""
        found: dict[str, str] = {}
        with Reader(self.logs) as journal:
            run = journal.run("r")
            for step in (journal.record(run, row) for row in journal.rows(run)):
                if step.state == "done" and step.kind == "model":
                    mark = MARK.search(json.dumps(step.value["message"]))
                    assert mark is not None
                    found[mark[1]] = node_of(step.key)
                elif step.state == "done" and step.kind == "tool":
                    found[json.loads(step.request["arguments"])["tag"]] = node_of(step.key)
        return found


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of functions with the one tool."""
    folder = tmp_path_factory.mktemp("functions")
    (folder / "function_calling").mkdir()
    (folder / "function_calling/kit.py").write_text(dedent(KIT), encoding="utf-8")
    return folder


stops = st.tuples(st.integers(1, 40), st.booleans())


@pytest.mark.slow
@pytest.mark.timeout(900)
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(sketch=sketches(), stop=stops, again=st.none() | st.integers(2, 40))
def test_a_run_that_is_stopped_at_any_write_ends_as_if_nothing_had_happened(
    functions, sketch, stop, again
):
    """Takes half a minute: three whole runs for each of two hundred graphs."""

    async def example(trial: Trial) -> None:
        sketch.write(trial.file)
        answer, whole = await trial.in_peace()
        await trial.stopped(stop[0], is_kept=stop[1])
        if again is not None:  # and once more, in order
            await checked(again)
        result = await checked(None)
        assert result.status == "completed", result.error
        assert result.answer == answer
        assert trial.effects().keys() == whole.keys()

    async def checked(until: int | None) -> Any:
        before, done = trial.effects(), trial.done()
        result, told = await trial.resumed(until)
        if told is not None:
            assert (told.changed, told.following) == ((), ())
        assert not (trial.effects() - before).keys() & done.keys()
        return result

    with tempfile.TemporaryDirectory() as name:
        trial = Trial(Path(name), functions)
        asyncio.run(example(trial))


@pytest.mark.slow
@pytest.mark.timeout(900)
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(sketch=sketches(), stop=stops, data=st.data())
def test_an_edited_file_has_only_what_it_changes_done_anew(functions, sketch, stop, data):
    """Takes a quarter of a minute: three whole runs for each of a hundred graphs."""
    name, node = data.draw(st.sampled_from(list(sketch.whole())))

    async def example(trial: Trial) -> None:
        sketch.write(trial.file)
        await trial.stopped(stop[0], is_kept=stop[1])
        done, before = trial.done(), trial.effects()
        node["config"]["role"] += ", edited"
        sketch.write(trial.file)
        answer, whole = await trial.in_peace()
        result, told = await trial.resumed()
        assert told is not None
        assert result.status == "completed", result.error
        assert result.answer == answer
        assert told.changed == (name,)
        assert set(told.following) == sketch.behind(name)
        asked = (trial.effects() - before).keys()
        anew = {name, *sketch.behind(name)}
        untouched = {
            mark
            for mark, node in done.items()
            if not any(f"{node}/".startswith(f"{each}/") for each in anew)
        }
        assert not asked & untouched
        assert asked <= whole.keys() <= asked | done.keys()
        # What the changed node had been asked before the change is asked by nobody any more.
        assert not whole.keys() & {mark for mark, node in done.items() if node == name}

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(example(Trial(Path(folder), functions)))
