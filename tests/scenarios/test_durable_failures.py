"""Journals that cannot be written: the run ends as failed, says why, and what was done is kept."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from typing import Any

import pytest

import devall as api
from devall.app import resume
from devall.journal.reader import FILE_NAME, Reader
from devall.journal.sqlite import NewRun, SqliteStore
from devall.testing.chat_server import ChatServer
from devall.testing.scripted_model import ScriptedModels

CHAIN = """
    graph:
      start: A
      nodes:
        - {id: A, type: agent, config: {provider: openai, name: a}}
        - {id: B, type: agent, on_error: continue, config: {provider: openai, name: b}}
        - {id: C, type: agent, config: {provider: openai, name: c}}
      edges: [{from: A, to: B}, {from: B, to: C}, {from: A, to: C}]
"""
LONG = [{"text": f"{'many words ' * 20_000} {number}"} for number in range(3)]


def kept_steps(folder) -> list[str]:
    with Reader(folder) as reader:
        return [step.key for step in reader.steps(reader.run("r")) if step.state == "done"]


def test_a_full_disk_ends_the_run_and_what_was_done_goes_on_when_there_is_room(
    write, workspace, devall
):
    """A limit on the size of files is what a full disk is like; SIGXFSZ is ignored by Python."""
    file = write("w.yaml", CHAIN)
    with ChatServer({"a": ["short"], "b": LONG, "c": ["the end"]}, strict=True) as server:
        command = [sys.executable, "-m", "devall", "run", file, "--task", "x", "--run-id", "r"]

        def little() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (180_000, 180_000))

        done = subprocess.run(
            [*command, "--json"],
            cwd=workspace,
            env=os.environ | server.env | {"PYTHONDONTWRITEBYTECODE": "1"},
            preexec_fn=little,
            capture_output=True,
            encoding="utf-8",
            timeout=30,
        )
        assert done.returncode == 1, done.stderr
        found = json.loads(done.stdout)
        assert (found["status"], found["error"]["code"]) == ("failed", "journal")
        assert "cannot be written" in found["error"]["message"]
        assert "devall resume" in done.stderr
        assert "Traceback" not in done.stderr
        assert "c" not in server.calls, "on_error: continue does not go on without a journal"
        assert kept_steps(workspace / "logs") == ["/A@1/turn:1"]
        found = devall("resume", "r", env=server.env, code=0)
        assert found.stdout == "the end\n"
        assert [len(server.calls[model]) for model in "abc"] == [1, 2, 1]


async def begun(folder, file) -> tuple[SqliteStore, Any]:
    """A run's journal whose file waits for no other process for long."""
    folder.mkdir()
    store = SqliteStore(folder / FILE_NAME, 0.2)
    store.open()
    new = NewRun(
        id="r",
        workflow=str(file.resolve()),
        task={"role": "user", "content": "x"},
        settings={
            "variables": {},
            "answers": {},
            "models": {},
            "providers": {},
            "env_file": None,
            "functions_dir": None,
            "ex_tools": [],
            "durability": "normal",
            "environment": {},
        },
        sources={},
        nodes={},
    )
    return store, await store.begin(new, lambda value: value)


async def test_a_file_that_has_no_room_left_ends_the_run(write, workspace):
    file = write("w.yaml", CHAIN)
    store, journal = await begun(workspace / "logs", file)

    def fill(database: sqlite3.Connection) -> None:
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        database.execute(f"PRAGMA max_page_count = {pages + 2}")

    await store._writer.do(fill)
    models = ScriptedModels({"a": ["short"], "b": [{"text": "a " * 15_000}], "c": ["end"]})
    result = await api.run(
        file, task="x", run_id="r", logs_dir="logs", journal=journal, model_source=models
    )
    assert (result.status, result.exit_code) == ("failed", 1)
    assert result.error is not None
    assert result.error.code == "journal"
    assert "database or disk is full" in result.error.message
    assert "c" not in models.requests
    await store.aclose()
    assert kept_steps(workspace / "logs") == ["/A@1/turn:1"]


async def test_a_file_that_another_process_holds_ends_the_run(write, workspace):
    file = write("w.yaml", CHAIN)
    store, journal = await begun(workspace / "logs", file)
    code = """
        import sqlite3, sys
        database = sqlite3.connect("logs/devall.db", isolation_level=None)
        database.execute("BEGIN IMMEDIATE")
        print("held", flush=True)
        sys.stdin.read()
    """
    holder = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=workspace,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        models = ScriptedModels({"a": ["one", "once more"], "b": ["two"], "c": ["end"]})
        async with asyncio.timeout(20):
            result = await api.run(
                file, task="x", run_id="r", logs_dir="logs", journal=journal, model_source=models
            )
        assert (result.status, result.exit_code) == ("failed", 1)
        assert result.error is not None
        assert "database is locked" in result.error.message
        assert list(models.requests) == ["a"]
        holder.communicate()
    await journal.aclose()
    await store._writer.do(lambda database: database.execute("UPDATE runs SET lease = 0"))
    await store.aclose()
    again = await resume("r", logs_dir="logs", model_source=models)
    assert again.answer == "end"


@pytest.mark.parametrize("command", [("run", "w.yaml"), ("resume", "r"), ("runs", "list")])
def test_a_file_that_is_no_database_is_said_and_left_alone(write, workspace, devall, command):
    write(
        "w.yaml",
        "graph: {start: L, nodes: [{id: L, type: literal, config: {content: x}}], edges: []}",
    )
    (workspace / "logs").mkdir()
    place = workspace / "logs" / FILE_NAME
    place.write_text("no database at all, but a text of some length\n" * 100)
    before = place.read_bytes()
    failed = devall(*command, code=4)
    assert "file is not a database" in failed.stderr
    assert "--logs-dir" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert place.read_bytes() == before
    if command[0] == "run":
        assert devall(*command, "--journal", "memory", code=0).stdout == "x\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_not_be_written_is_said(write, workspace, devall):
    write(
        "w.yaml",
        "graph: {start: L, nodes: [{id: L, type: literal, config: {content: x}}], edges: []}",
    )
    devall("run", "w.yaml", code=0)
    (workspace / "logs" / FILE_NAME).chmod(0o400)
    failed = devall("run", "w.yaml", code=4)
    assert "cannot be opened" in failed.stderr


def test_a_place_that_cannot_hold_a_journal_is_said(write, workspace, devall):
    """What root cannot write either: a folder where the file should be."""
    write(
        "w.yaml",
        "graph: {start: L, nodes: [{id: L, type: literal, config: {content: x}}], edges: []}",
    )
    (workspace / "logs" / FILE_NAME).mkdir(parents=True)
    failed = devall("run", "w.yaml", code=4)
    assert f"{FILE_NAME} cannot be opened" in failed.stderr
    assert "--journal memory" in failed.stderr


def test_full_durability_is_kept_with_the_run(write, workspace, devall):
    file = write("w.yaml", CHAIN)
    script = {"b": [{"status": 400, "error": "bad"}], "c": [{"status": 400, "error": "bad"}]}
    with ChatServer(script) as server:
        options = ("--run-id", "r", "--task", "x", "--durability", "full")
        devall("run", file, *options, env=server.env, code=1)
        with Reader(workspace / "logs") as reader:
            assert reader.run("r").settings["durability"] == "full"
        assert devall("resume", "r", env=server.env, code=0).stdout == "c reply 2\n"
    with closing(sqlite3.connect(workspace / "logs" / FILE_NAME)) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
