from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from devall.processes import ChildResult, run_child


async def run(
    code: str, seconds: float = 8, max_output: int = 4 << 20, *, keep_end: bool = False
) -> ChildResult:
    return await run_child(
        [sys.executable, "-I", "-S", "-c", code],
        cwd=Path.cwd(),
        env=os.environ,
        seconds=seconds,
        max_output=max_output,
        keep_end=keep_end,
    )


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in {b"Z", b"X"}


async def is_gone(pid: int) -> bool:
    for _ in range(400):
        if not is_alive(pid):
            return True
        await asyncio.sleep(0.02)
    return False


async def test_output_and_exit_code_are_kept():
    result = await run("import sys; print('a'); print('b', file=sys.stderr); sys.exit(3)")
    assert result == ChildResult(3, b"a\n", b"b\n")


async def test_output_beyond_the_bound_is_dropped_and_said():
    result = await run("print('x' * 100_000)", max_output=1000)
    assert (len(result.stdout), result.was_cut, result.exit_code) == (1000, True, 0)


async def test_the_end_of_a_long_output_is_kept_where_it_is_wanted():
    code = "import sys; sys.stdout.write('a' * 3_000_000 + 'b' * 500)"
    result = await run(code, max_output=1000, keep_end=True)
    assert result.was_cut
    assert result.stdout == b"a" * 500 + b"\n[... 2999500 bytes left out ...]\n" + b"b" * 500
    whole = await run("print('x' * 999)", max_output=1000, keep_end=True)
    assert (whole.stdout, whole.was_cut) == (b"x" * 999 + b"\n", False)


async def test_output_is_kept_as_it_was_whatever_pieces_it_came_in():
    code = "import os\nfor n in range(2000): os.write(1, b'%06d\\n' % n)"
    result = await run(code, max_output=70, keep_end=True)
    assert result.stdout.startswith(b"000000\n000001\n000002\n000003\n000004\n\n[...")
    assert result.stdout.endswith(b"...]\n001995\n001996\n001997\n001998\n001999\n")
    assert b"13930 bytes left out" in result.stdout


async def test_a_child_is_over_when_its_program_is_though_others_hold_its_output():
    began = asyncio.get_running_loop().time()
    result = await run(SPAWN.format(session=False, seconds=0), seconds=60)
    assert result.exit_code == 0
    assert await is_gone(int(result.stdout))
    assert asyncio.get_running_loop().time() - began < 30


async def test_a_child_that_takes_too_long_is_ended_and_its_output_kept():
    result = await run("import time; print('begun', flush=True); time.sleep(60)", seconds=0.5)
    assert (result.exit_code, result.stdout) == (None, b"begun\n")


SPAWN = """
import subprocess, sys, time
other = subprocess.Popen(["sleep", "300"], start_new_session={session})
print(other.pid, flush=True)
time.sleep({seconds})
"""


async def test_what_a_child_leaves_behind_is_ended():
    result = await run(SPAWN.format(session=False, seconds=0), seconds=1)
    assert await is_gone(int(result.stdout))


async def test_a_grandchild_that_holds_the_pipes_does_not_hold_the_caller():
    result = await run(SPAWN.format(session=True, seconds=60), seconds=0.5)
    assert result.exit_code is None
    os.kill(int(result.stdout), signal.SIGKILL)  # it has left the group: nobody else ends it


async def test_cancelling_ends_the_child():
    task = asyncio.create_task(run("import time; time.sleep(60)"))
    await asyncio.sleep(0.3)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


OWNER = """
import asyncio, os, sys
from pathlib import Path
from devall.processes import run_child

code = "import os, subprocess, sys, time; sys.stderr.close();" \\
    "other = subprocess.Popen(['sleep', '300']);" \\
    "Path = __import__('pathlib').Path;" \\
    "Path(sys.argv[1]).write_text(f'[{os.getpid()}, {other.pid}]'); time.sleep(300)"
command = [sys.executable, "-c", code, sys.argv[1]]
asyncio.run(run_child(command, cwd=Path.cwd(), env=os.environ, seconds=300))
"""


# B7
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_however_the_owner_ends_neither_child_nor_grandchild_is_left(
    tmp_path: Path, how: signal.Signals
):
    told = tmp_path / "pids"
    owner = await asyncio.create_subprocess_exec(sys.executable, "-c", OWNER, str(told))
    for _ in range(400):
        if told.exists() and told.read_text().endswith("]"):
            break
        await asyncio.sleep(0.02)
    pids = json.loads(told.read_text())
    os.kill(owner.pid, how)
    await owner.wait()
    assert [await is_gone(pid) for pid in pids] == [True, True]
