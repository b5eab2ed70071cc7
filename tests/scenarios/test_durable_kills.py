"""Real processes killed at random moments, gone on with, and compared with a run in peace.

Every reply of the model is made of what it was asked, and of nothing else: a run that took up
another's result, or a result of another moment, would ask differently from then on.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Self

import pytest

from devall.journal.reader import Reader
from devall.testing.chat_server import ChatServer

KILLED_RUNS = 40
AT_ONCE = 3
"""Runs at one time: a machine may have two cores."""

WORKFLOW = """
    graph:
      start: plan
      end: [report]
      nodes:
        - id: plan
          type: agent
          config: &config
            provider: openai
            name: plan
            retry: {enabled: false}
            tooling:
              - type: function
                idempotent: true
                config: {tools: [{name: "tools:note"}]}
              - type: function
                in_doubt: retry
                config: {tools: [{name: "tools:stamp"}]}
              - type: mcp_local
                config: {command: PYTHON, args: [-I, -S, server.py], protocol: legacy}
        - {id: side, type: agent, config: {<<: *config, name: side, tooling: []}}
        - id: draft
          type: agent
          context_window: -1
          config: {<<: *config, name: draft, tooling: []}
        - {id: review, type: agent, config: {<<: *config, name: review, tooling: []}}
        - id: S
          type: subgraph
          config:
            type: config
            config:
              start: inner
              nodes:
                - {id: inner, type: agent, config: {<<: *config, name: inner}}
                - {id: parts, type: agent, config: {<<: *config, name: parts, tooling: []}}
              edges: [{from: inner, to: parts}]
        - {id: M, type: agent, config: {<<: *config, name: unit}}
        - {id: report, type: agent, config: {<<: *config, name: report, tooling: []}}
      edges:
        - {from: plan, to: draft}
        - {from: plan, to: side}
        - {from: draft, to: review}
        - {from: review, to: draft, condition: {type: keyword, config: {any: [again]}}}
        - {from: review, to: S, condition: {type: keyword, config: {none: [again]}}}
        - from: S
          to: M
          dynamic: {type: map, split: {type: regex, pattern: 'part\\d of \\w+'}}
        - {from: M, to: report}
        - {from: side, to: report}
"""
TOOLS = """
    import asyncio
    import os
    from pathlib import Path


    def done(tag: str) -> str:
        handle = os.open(Path(__file__).parents[2] / "done", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, f"{tag}\\n".encode())
        os.close(handle)
        return f"did {tag}"


    async def note(tag: str) -> str:
        await asyncio.sleep(0.01)
        found = done(tag)
        await asyncio.sleep(0.01)
        return found


    def stamp(tag: str) -> str:
        return done(tag)
"""
SERVER = """
    import json, os, sys, threading, time

    SCHEMA = {"type": "object", "properties": {"tag": {"type": "string"}}, "required": ["tag"]}
    MARK = {"name": "mark", "inputSchema": SCHEMA, "annotations": {"idempotentHint": True}}

    def send(id, result):
        os.write(1, json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode() + b"\\n")

    def work(id, tag):
        time.sleep(0.01)
        handle = os.open("done", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, f"{tag}\\n".encode())
        os.close(handle)
        time.sleep(0.01)
        send(id, {"content": [{"type": "text", "text": f"did {tag}"}]})

    for line in sys.stdin:
        message = json.loads(line)
        match message["method"]:
            case "initialize":
                info = {"name": "s", "version": "1"}
                send(message["id"], {"protocolVersion": "2025-06-18", "serverInfo": info,
                                     "capabilities": {"tools": {}}})
            case "tools/list":
                send(message["id"], {"tools": [MARK]})
            case "tools/call":
                tag = message["params"]["arguments"]["tag"]
                threading.Thread(target=work, args=(message["id"], tag), daemon=True).start()
"""
ROUNDS = 2
TAG = re.compile(r"(?:<|call_)([0-9a-f]{12})")


def digest(body) -> str:
    return hashlib.sha256(json.dumps([body["model"], body["messages"]]).encode()).hexdigest()[:12]


def reply(body):
    """Made of the request alone; its own mark `<...>` tells which request it answers."""
    mark, model, messages = digest(body), body["model"], body["messages"]
    delay = int(mark, 16) % 4 * 0.01
    if model in {"plan", "inner", "unit"} and messages[-1]["role"] != "tool":
        tools = ("note", "stamp", "mark") if model != "unit" else ("mark", "note")
        calls = [
            {"name": name, "arguments": {"tag": f"{mark}.{name}"}, "id": f"call_{mark}_{name}"}
            for name in tools
        ]
        return {"text": f"<{mark}>", "tool_calls": calls, "delay": delay}
    text = f"<{mark}> {model}"
    if model == "draft":
        text += f" round {sum(m['role'] == 'assistant' for m in messages) + 1}"
    elif model == "review" and f"round {ROUNDS}" not in messages[-1]["content"]:
        text += " again"
    elif model == "parts":
        text += "".join(f", part{number} of {mark}" for number in range(3))
    return {"text": text, "delay": delay}


NURSERY = """
    import gc, json, os, sys

    import fastmcp.client.transports, genai_prices, httpcore2, jsonschema, networkx
    import openai.resources.chat, rich.traceback, structlog
    import devall.app, devall.cli.resume, devall.cli.run, devall.history.past
    import devall.journal.sqlite, devall.models.openai, devall.tools.manager, devall.tools.mcp.oauth
    from devall.__main__ import main

    gc.freeze()
    print("ready", flush=True)
    for line in sys.stdin:
        folder, env, *sys.argv[1:] = json.loads(line)
        pid = os.fork()
        if not pid:
            os.chdir(folder)
            os.environ.update(env)
            for number, name in enumerate(("/dev/null", "out", "err")):
                os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
            try:
                code = main()
            except SystemExit as error:
                code = error.code
            sys.stdout.flush()
            os._exit(code or 0)
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


class Nursery:
    """Forks processes of `devall` that have imported everything already.

    That takes them two seconds of computing each, which is most of what they do here.
    """

    def __init__(self) -> None:
        self._program = subprocess.Popen(
            [sys.executable, "-c", dedent(NURSERY)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def __enter__(self) -> Self:
        assert self._line() == "ready"
        return self

    def __exit__(self, *_: object) -> None:
        self._program.communicate(timeout=10)

    def start(self, folder: Path, env: dict[str, str], *arguments: str) -> int:
        """The id of a process, one at a time; its output is in the files `out` and `err`."""
        assert self._program.stdin is not None
        print(json.dumps([str(folder), env, *arguments]), file=self._program.stdin, flush=True)
        return int(self._line())

    def is_busy(self) -> bool:
        """Whether the process has not ended yet."""
        return not select.select([self._program.stdout], [], [], 0)[0]

    def ended(self) -> int:
        """The exit code of the process, once it has ended."""
        return int(self._line())

    def _line(self) -> str:
        assert self._program.stdout is not None
        return self._program.stdout.readline().strip()


MODELS = ("plan", "side", "draft", "review", "inner", "parts", "unit", "report")


@dataclass
class Trial:
    """One run, from its first process to its last."""

    folder: Path
    server: ChatServer
    nursery: Nursery
    kills: int = 0
    """Processes that a kill has met alive."""
    again: list[str] = field(default_factory=list)
    """What was asked once more though it stood in the journal."""
    in_flight: Counter[str] = field(default_factory=Counter)
    """What had been asked for at a kill and was not done, by how often."""

    @property
    def asked(self) -> list[str]:
        return [digest(request.body) for request in list(self.server.requests)]

    @property
    def tools(self) -> list[str]:
        place = self.folder / "done"
        return place.read_text().split() if place.exists() else []

    @property
    def count(self) -> int:
        """How much was asked of model and tools so far."""
        return len(self.server.requests) + len(self.tools)

    def effects(self) -> Counter[str]:
        return Counter([*self.asked, *self.tools])

    def start(self, *arguments: str) -> int:
        return self.nursery.start(self.folder, self.server.env, *arguments)

    @contextmanager
    def turn(self):
        """A process's turn at the run: what it asks again is noted, and what it leaves open."""
        before, done = self.effects(), self.done()
        yield
        after, now = self.effects(), self.done()
        self.again += [mark for mark in after - before if mark in done]
        self.in_flight.update(mark for mark in after - before if mark not in now)

    def kill(self, process: int, after: int, then: float) -> None:
        """Kill it once so much was asked of model and tools, or a moment later."""
        most = self.count + after
        end = time.monotonic() + 60
        while self.nursery.is_busy():
            if self.count >= most:
                time.sleep(then)
                os.kill(process, signal.SIGKILL)
                break
            assert time.monotonic() < end, "the run stands still"
            time.sleep(0.002)
        self.kills += self.ended() == -signal.SIGKILL

    def ended(self) -> int:
        """The exit code of the process, once nothing is left of it."""
        code = self.nursery.ended()
        self.server.wait_until(lambda: self.server.connections == 0)
        end = time.monotonic() + 5
        while processes_in(self.folder):
            assert time.monotonic() < end, "a tool server outlives its run"
            time.sleep(0.005)
        return code

    def done(self) -> set[str]:
        """Marks of the model and tool calls that stand done in the journal."""
        found: set[str] = set()
        if not (self.folder / "logs/devall.db").exists():
            return found
        with Reader(self.folder / "logs") as journal:
            run = journal.run("r")
            for step in (journal.record(run, row) for row in journal.rows(run)):
                if step.state != "done":
                    continue
                if step.kind == "model":
                    mark = TAG.search(json.dumps(step.value["message"]))
                    assert mark is not None, step
                    found.add(mark[1])
                elif step.kind == "tool":
                    found.add(json.loads(step.request["arguments"])["tag"])
        return found


def processes_in(folder: Path) -> list[int]:
    """Processes whose working directory is the folder."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (entry / "cwd").readlink() == folder:
                found.append(int(entry.name))
    return found


def prepared(folder: Path) -> Path:
    (folder / "functions/function_calling").mkdir(parents=True)
    text = dedent(WORKFLOW).replace("PYTHON", sys.executable)
    (folder / "w.yaml").write_text(text, encoding="utf-8")
    (folder / "functions/function_calling/tools.py").write_text(dedent(TOOLS), encoding="utf-8")
    (folder / "server.py").write_text(dedent(SERVER), encoding="utf-8")
    return folder


def serve() -> ChatServer:
    return ChatServer({model: [reply] * 200 for model in MODELS}, strict=True)


def carried_out(trial: Trial, *arguments: str) -> str:
    """The answer of a process that nobody disturbs."""
    trial.start(*arguments)
    assert trial.ended() == 0, (trial.folder / "err").read_text()
    return (trial.folder / "out").read_text()


def in_peace(nursery: Nursery, folder: Path) -> tuple[str, Counter[str]]:
    """The answer of a run that is not killed, and all that was asked for it."""
    with serve() as server:
        trial = Trial(prepared(folder), server, nursery)
        return carried_out(trial, "run", "w.yaml", "--task", "x"), trial.effects()


def tried(nursery: Nursery, folder: Path, chance: random.Random, whole: Counter[str]):
    """A run that is killed one to three times and then left to its end, and its answer."""
    with serve() as server:
        trial = Trial(prepared(folder), server, nursery)
        command = ["run", "w.yaml", "--task", "x", "--run-id", "r"]
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            left = sum((whole - trial.effects()).values())
            with trial.turn():
                process = trial.start(*command)
                trial.kill(process, chance.randint(1, max(left - 1, 1)), chance.uniform(0, 0.03))
            command = ["resume", "r"]
        with trial.turn():
            return trial, carried_out(trial, "resume", "r")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_runs_that_are_killed_at_any_moment_end_as_if_nothing_had_happened(tmp_path):
    """Takes a minute: some hundred processes, at moments of which none is better than another."""
    numbers = iter(range(KILLED_RUNS))

    def some(nursery: Nursery) -> list[tuple[Trial, str]]:
        return [
            tried(nursery, tmp_path / f"run-{number}", random.Random(number), whole)
            for number in numbers
        ]

    with ExitStack() as stack:
        nurseries = [stack.enter_context(Nursery()) for _ in range(AT_ONCE)]
        answer, whole = in_peace(nurseries[0], tmp_path / "peace")
        assert max(whole.values()) == 1, "the replies do not tell requests apart"
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = [each for several in pool.map(some, nurseries) for each in several]
    for trial, out in found:
        assert out == answer
        effects = trial.effects()
        assert effects.keys() == whole.keys(), "something was asked that nobody else would ask"
        assert not trial.again, "what was done was done again"
        # What was made twice was under way when a process was killed.
        assert all(n <= 1 + trial.in_flight[mark] for mark, n in effects.items())
    assert sum(trial.kills > 0 for trial, _ in found) >= KILLED_RUNS - 2
    assert sum(trial.kills for trial, _ in found) > KILLED_RUNS
    assert any(max(trial.effects().values()) > 1 for trial, _ in found), "no kill hit a call"
