from __future__ import annotations

import asyncio
import os
import subprocess
import sys

from devall.tools.serve.stdio import _Lines, _Out, protocol_pipes

LEAK = """
import os, subprocess, sys
from devall.tools.serve.stdio import protocol_pipes
with protocol_pipes() as pipes:
    print("printed", flush=True)
    os.write(1, b"written\\n")
    subprocess.run(["echo", "a child's"], check=True)
    assert os.read(0, 1) == b""
    os.write(pipes.write, b"protocol " + os.read(pipes.read, 100))
print("after", flush=True)
"""


def test_only_who_knows_the_pipes_writes_to_stdout():
    done = subprocess.run(
        [sys.executable, "-c", LEAK], input=b"asked", capture_output=True, check=True
    )
    assert done.stdout == b"protocol askedafter\n"
    assert done.stderr == b"printed\nwritten\na child's\n"


def test_a_closed_stderr_is_no_hindrance():
    done = subprocess.run(
        [sys.executable, "-c", LEAK.replace("import os,", "import os; os.close(2)\nimport ")],
        input=b"asked",
        stdout=subprocess.PIPE,
        check=True,
    )
    assert done.stdout == b"protocol askedafter\n"


async def test_lines_come_whole_however_they_arrive():
    read, write = os.pipe()
    lines = _Lines(read)
    big = "ä" * 200_000

    def send() -> None:
        for piece in (b'{"a"', b":1}\n\n", big.encode() + b"\n", b"\xff bad\nlast"):
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(write, rest) :]
        os.close(write)

    _, found = await asyncio.gather(asyncio.to_thread(send), _all(lines))
    os.close(read)
    assert found == ['{"a":1}', big, "\N{REPLACEMENT CHARACTER} bad", "last"]


async def _all(lines: _Lines) -> list[str]:
    return [line async for line in lines]


async def test_a_client_that_is_gone_ends_the_lines():
    read, write = os.pipe()
    other_read, other_write = os.pipe()
    lines = _Lines(read)
    os.close(other_read)
    out = _Out(other_write, lines)
    await out.write("x")
    assert await asyncio.wait_for(_all(lines), 5) == []
    os.close(write)
    os.close(other_write)
    os.close(read)
    out.end()


async def test_the_pipes_are_as_before_afterwards():
    before = os.fstat(0), os.fstat(1)
    with protocol_pipes() as pipes:
        assert os.fstat(1) != before[1] or os.fstat(2) == before[1]
    assert (os.fstat(0).st_ino, os.fstat(1).st_ino) == (before[0].st_ino, before[1].st_ino)
    os.close(pipes.read)
    os.close(pipes.write)
