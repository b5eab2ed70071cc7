from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from devall.tools.mcp.log import ServerLog
from devall.tools.mcp.process import ServerProcess, environment
from devall.watchdog import Watchdog


async def run(code: str, **options: object) -> tuple[ServerProcess, list[bytes], list[bytes]]:
    out: list[bytes] = []
    err: list[bytes] = []
    watchdog = Watchdog()
    process = await ServerProcess.start(
        sys.executable,
        ["-I", "-S", "-c", code],
        cwd=None,
        env=environment({}, inherit=True),
        watchdog=watchdog,
        grace=0.2,
        on_stdout=out.append,
        on_stderr=err.append,
    )
    await process.ended()
    await process.stop(0.2)
    await watchdog.aclose()
    return process, out, err


async def test_lines_are_whole_however_long_and_the_last_one_counts():
    code = "print('a'); print('b' * 3_000_000); print('', end='last')"
    _, out, _ = await run(code)
    assert [len(line) for line in out] == [1, 3_000_000, 4]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise SystemExit(4)", "exited with code 4"),
        ("import os; os.kill(os.getpid(), 9)", "was ended by SIGKILL"),
        ("", "exited with code 0"),
    ],
)
async def test_the_end_is_told_in_words(code: str, words: str):
    process, _, _ = await run(code)
    assert process.describe_end() == words


async def test_input_reaches_the_child_and_too_much_of_it_blocks_nobody():
    watchdog = Watchdog()
    process = await ServerProcess.start(
        "sleep",
        ["60"],
        cwd=None,
        env=dict(os.environ),
        watchdog=watchdog,
        grace=0.1,
        on_stdout=print,
        on_stderr=print,
    )
    process.write(b"x" * 1_000_000)
    await process.stop(0.1)
    assert process.describe_end() == "was ended by SIGTERM"
    process.write(b"nobody listens")
    await watchdog.aclose()


def test_a_log_keeps_the_last_lines_redacted_and_the_file_all(tmp_path: Path):
    file = tmp_path / "servers" / "x.log"
    log = ServerLog(file, lambda text: text.replace("s3cret", "***"))
    for number in range(300):
        log.add(f"{number} s3cret")
    assert log.tail().splitlines()[-1] == "299 ***"
    assert len(log.tail().splitlines()) == 20
    log.close()
    written = file.read_text()
    assert len(written.splitlines()) == 300
    assert "s3cret" not in written
