"""`devall tools serve` and `devall mcp serve` as child processes, spoken to by fastmcp and by hand."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

Write = Callable[[str, str], Path]

OWN = """
    import os, subprocess
    from devall.tools.context import ToolContext

    print("noise while it is imported")
    os.write(1, b"{not json\\n")

    class Echo:
        name = "echo"
        description = "Says it again."
        def _run(self, text: str):
            if text == "sleep":
                subprocess.run(["sleep", "60"])
            print("noise in a call")
            subprocess.run(["echo", "noise of a child"], check=True)
            return "echo " + text

    def steps(ctx: ToolContext):
        \"\"\"Goes three steps.\"\"\"
        for n in range(1, 4):
            ctx.report(n, 3, f"step {n}")
        return "there"

    def picture(ctx: ToolContext):
        \"\"\"A small picture.\"\"\"
        return ctx.attach(b"\\x89PNG\\r\\n\\x1a\\n", "image/png")
"""
CODE = """
    version: 0.4.0
    vars: {GREETING: hello, SECRET_KEY: abc, WHERE: "http://127.0.0.1:1/"}
    graph:
      id: runner
      description: Runs code.
      start: Hand
      nodes:
        - {id: Hand, type: passthrough}
        - {id: Code, type: python, config: {env: {GREETING: "${GREETING}"}}}
      edges: [{from: Hand, to: Code}]
"""


class Served:
    """A server over HTTP, and how to reach it."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    def client(self, mode: str = "auto", token: str | None = None) -> Client[Any]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return Client(StreamableHttpTransport(self.url, headers), mode=mode, init_timeout=20)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(8)


@pytest.fixture
def serve(workspace: Path) -> Iterator[Callable[..., Served]]:
    """Starts `devall ... --http` on a free port; it is ended with the test."""
    running: list[subprocess.Popen[str]] = []

    def start(*arguments: str | Path, env: Mapping[str, str] | None = None) -> Served:
        process = subprocess.Popen(
            [sys.executable, "-m", "devall", *map(str, arguments), "--http", "--port", "0"],
            cwd=workspace,
            env=os.environ | dict(env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        assert process.stderr is not None
        said: list[str] = []
        for line in process.stderr:
            said.append(line)
            if found := re.search(r"http://\S+", line):
                return Served(process, found.group().replace("0.0.0.0", "127.0.0.1"))
        raise AssertionError("".join(said))

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture
def over_pipes(workspace: Path) -> Callable[..., Any]:
    """A client of `devall ...` over stdio."""

    @asynccontextmanager
    async def connect(
        *arguments: str | Path, mode: str = "auto", env: Mapping[str, str] | None = None
    ) -> AsyncGenerator[Client[Any]]:
        transport = StdioTransport(
            sys.executable,
            ["-m", "devall", *map(str, arguments)],
            env=os.environ | dict(env or {}),
            cwd=str(workspace),
            keep_alive=False,
            log_file=workspace / "stderr.txt",
        )
        async with Client(transport, mode=mode, init_timeout=30) as client:
            yield client

    return connect


class Raw:
    """A server over pipes, spoken to line by line."""

    def __init__(self, workspace: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "devall", *arguments],
            cwd=workspace,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.send(
            id=1,
            method="initialize",
            params={
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "raw", "version": "1"},
            },
        )
        assert json.loads(self.line())["result"]["serverInfo"]["name"] == "devall"
        self.send(method="notifications/initialized")

    def send(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def rest(self) -> str:
        """What else stands in stdout; the process is gone, and its pipes are closed."""
        process = self.process
        assert process.stdout is not None
        found = process.stdout.read()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        process.wait(8)
        return found


def text_of(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_own_tools_over_pipes_and_nothing_but_the_protocol_on_stdout(
    over_pipes: Any, write: Write, mode: str
):
    write("own.py", OWN)
    async with over_pipes(
        "tools", "serve", "--ex-tools", "own:Echo", mode=mode, env={"EX_TOOLS": "[own:steps]"}
    ) as client:
        names = [tool.name for tool in await client.list_tools()]
        assert {"save_file", "list_directory", "echo", "steps"} <= set(names)
        assert text_of(await client.call_tool("echo", {"text": "a"})) == "echo a"
        wrong = await client.call_tool("echo", {}, raise_on_error=False)
        assert wrong.is_error
        assert "text" in text_of(wrong)
        heard: list[tuple[float, float | None, str | None]] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append((progress, total, message))

        assert text_of(await client.call_tool("steps", progress_handler=hear)) == "there"
        assert heard == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]
    said = Path("stderr.txt").read_text(encoding="utf-8")
    assert "noise while it is imported" in said
    assert "noise of a child" in said


async def test_pictures_arrive_as_pictures(over_pipes: Any, write: Write):
    write("own.py", OWN)
    async with over_pipes(
        "tools", "serve", "--no-file-tools", "--ex-tools", "own:picture"
    ) as client:
        assert [tool.name for tool in await client.list_tools()] == ["picture"]
        (block,) = (await client.call_tool("picture")).content
    assert block.type == "image"
    assert base64.b64decode(block.data).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("how", "code"),
    [("the client leaves", 0), ("SIGTERM", 143), ("SIGINT", 130)],
)
def test_a_server_over_pipes_ends_quickly_in_the_middle_of_a_call(
    workspace: Path, write: Write, how: str, code: int
):
    write("own.py", OWN)
    raw = Raw(workspace, "tools", "serve", "--ex-tools", "own:Echo", "--functions", "utils:All")
    raw.send(id=2, method="tools/call", params={"name": "wait", "arguments": {"seconds": 50}})
    time.sleep(0.3)
    began = time.monotonic()
    if how == "the client leaves":
        assert raw.process.stdin is not None
        raw.process.stdin.close()
    else:
        raw.process.send_signal(getattr(signal, how))
    assert raw.process.wait(8) == code
    assert time.monotonic() - began < 8
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in raw.rest().splitlines())


async def test_code_that_runs_ends_with_its_server(workspace: Path):
    raw = Raw(workspace, "tools", "serve", "--functions", "code_executor:All")
    code = "import os, sys, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
    raw.send(
        id=2, method="tools/call", params={"name": "execute_code", "arguments": {"code": code}}
    )
    deadline = time.monotonic() + 15
    while not (found := list(workspace.glob("logs/*/workspace/pid"))):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
    assert found
    raw.process.kill()
    raw.rest()  # that no process is left is looked at after each test


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_servers_behind_a_server_end_with_it(
    workspace: Path, write: Write, project: Path, how: signal.Signals
):
    server = json.dumps([str(project / "mcp_example" / "mcp_server.py")])
    config = f'{{command: "{sys.executable}", args: {server}, startup_timeout: 30}}'
    write(
        "w.yaml",
        f"""
        version: 0.4.0
        graph:
          start: A
          nodes:
            - id: A
              type: agent
              config:
                provider: local
                name: smollm2
                tooling: {{type: mcp_local, config: {config}}}
        """,
    )
    raw = Raw(workspace, "tools", "serve", "w.yaml")
    raw.process.send_signal(how)
    raw.rest()  # that no process is left is looked at after each test


def test_a_child_that_a_function_waits_for_ends_with_the_server(workspace: Path, write: Write):
    write("own.py", OWN)
    raw = Raw(workspace, "tools", "serve", "--ex-tools", "own:Echo")
    call = {"name": "echo", "arguments": {"text": "sleep"}}
    raw.send(id=2, method="tools/call", params=call)
    time.sleep(0.5)
    assert raw.process.stdin is not None
    raw.process.stdin.close()
    raw.rest()


async def test_each_session_over_http_has_its_own_workspace(serve: Callable[..., Served]):
    served = serve("tools", "serve")
    one, two = served.client("legacy"), served.client("legacy")
    async with one, two:
        await one.call_tool("save_file", {"path": "a.txt", "content": "of one"})
        await two.call_tool("save_file", {"path": "a.txt", "content": "of two"})
        for client, said in ((one, "of one"), (two, "of two")):
            result = await client.call_tool("read_text_file_snippet", {"path": "a.txt"})
            assert said in text_of(result)
    files = sorted(p.read_text() for p in Path("logs").glob("*/workspace/a.txt"))
    assert files == ["of one", "of two"]
    assert served.end() == 143


async def test_a_named_workspace_is_that_of_all(serve: Callable[..., Served], workspace: Path):
    (workspace / "shared").mkdir()
    served = serve("tools", "serve", "--workspace", "shared")
    async with served.client("legacy") as one, served.client() as two:
        await one.call_tool("save_file", {"path": "a.txt", "content": "of one"})
        assert "of one" in text_of(await two.call_tool("read_text_file_snippet", {"path": "a.txt"}))
    assert (workspace / "shared" / "a.txt").read_text() == "of one"
    assert not (workspace / "logs").exists()


async def test_a_token_is_asked_for(serve: Callable[..., Served]):
    served = serve(
        "tools", "serve", "--host", "0.0.0.0", "--token-env", "DOOR", env={"DOOR": "s3cret"}
    )
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with httpx2.AsyncClient() as http:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "s3cret"}):
            answer = await http.post(served.url, json=body, headers=headers)
            assert answer.status_code == 401, headers
    async with served.client(token="s3cret") as client:
        assert await client.list_tools()


async def test_a_page_that_was_led_here_by_a_name_of_its_own_is_refused(
    serve: Callable[..., Served],
):
    served = serve("tools", "serve")
    headers = {"Accept": "application/json, text/event-stream"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with httpx2.AsyncClient(headers=headers) as http:
        evil = await http.post(served.url, json=body, headers={"Host": "evil.example"})
        assert evil.status_code == 421
        evil = await http.post(served.url, json=body, headers={"Origin": "http://evil.example"})
        assert evil.status_code == 403
        good = await http.post(served.url, json=body, headers={"Origin": "http://localhost"})
        assert good.status_code not in {403, 421}


async def test_a_server_over_http_ends_quickly_though_clients_are_there(
    serve: Callable[..., Served],
):
    served = serve("tools", "serve", "--functions", "utils:All")
    async with served.client("legacy") as client:
        waiting = asyncio.create_task(client.call_tool("wait", {"seconds": 50}))
        await asyncio.sleep(0.5)
        began = time.monotonic()
        assert await asyncio.to_thread(served.end) == 143
        assert time.monotonic() - began < 8
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


@pytest.mark.parametrize(
    ("arguments", "env", "code", "said"),
    [
        (["--http", "--host", "0.0.0.0"], {}, 2, "--token-env NAME"),
        (["--http", "--host", "example.org"], {}, 2, "--token-env NAME"),
        (["--http", "--token-env", "NOT_SET"], {}, 4, "NOT_SET is not set"),
        (["--http", "--token-env", "EMPTY"], {"EMPTY": " "}, 4, "EMPTY is not set"),
        (["--port", "80"], {}, 2, "add --http"),
        (["--stdio", "--http"], {}, 2, "exclude each other"),
        (["--node", "A"], {}, 2, "name the FILE"),
        (["--no-file-tools"], {}, 2, "no tools to serve"),
        (["--ex-tools", "no.such:Tool"], {}, 4, "no.such"),
        (["--functions", "nonsense"], {}, 4, "nonsense"),
        (["--workspace", "nowhere"], {}, 2, "no such folder"),
        (["missing.yaml"], {}, 2, "missing.yaml"),
        ([], {"EX_TOOLS": "{a: 1}"}, 4, "EX_TOOLS"),
        (["--http", "--port", "99999"], {}, 4, "cannot be listened at"),
        (["--http", "--host", "192.0.2.1", "--token-env", "T"], {"T": "t"}, 4, "192.0.2.1:8000"),
    ],
)
def test_what_cannot_be_served_is_said(
    devall: Any, arguments: list[str], env: dict[str, str], code: int, said: str
):
    done = devall("tools", "serve", *arguments, env=env, code=code)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


async def test_the_tools_of_a_workflow_are_passed_on(over_pipes: Any, write: Write, project: Path):
    server = project / "mcp_example" / "mcp_server.py"
    write(
        "w.yaml",
        f"""
        version: 0.4.0
        graph:
          start: A
          nodes:
            - id: A
              type: agent
              config: &agent
                provider: local
                name: smollm2
                tooling:
                  - {{type: function, config: {{tools: [{{name: get_current_time}}]}}}}
                  - type: mcp_local
                    prefix: dice
                    config: {{command: "{sys.executable}", args: ["{server}"], startup_timeout: 30}}
            - {{id: B, type: agent, config: *agent}}
        """,
    )
    async with over_pipes("tools", "serve", "w.yaml", "--no-file-tools") as client:
        names = [tool.name for tool in await client.list_tools()]
        assert names == ["get_current_time", "dice_rand_num"]
        result = await client.call_tool("dice_rand_num", {"a": 4, "b": 4})
        assert text_of(result) == "4"


async def test_a_workflow_is_a_tool_and_each_call_a_run_of_its_own(
    over_pipes: Any, write: Write, devall: Any
):
    write("code.yaml", CODE)
    task = "import os; open('left', 'a').write('x'); print(sorted(os.listdir()))"
    heard: list[str | None] = []

    async def hear(_progress: float, _total: float | None, message: str | None) -> None:
        heard.append(message)

    async with over_pipes("mcp", "serve", "code.yaml") as client:
        (tool,) = await client.list_tools()
        assert (tool.name, tool.description) == ("runner", "Runs code.")
        properties = tool.input_schema["properties"]
        assert tool.input_schema["required"] == ["task"]
        assert set(properties["variables"]["properties"]) == {"GREETING"}
        both = await asyncio.gather(
            client.call_tool("runner", {"task": task}, progress_handler=hear),
            client.call_tool("runner", {"task": task}),
        )
        assert [text_of(result).strip() for result in both] == ["['left']"] * 2
        runs = [result.meta["devall/run"]["run_id"] for result in both]
        assert len(set(runs)) == 2
        said = [re.sub(r" after .*", "", text or "") for text in heard]
        assert said == ["Hand runs", "Hand is done", "Code runs", "Code is done"]
        greeting = await client.call_tool(
            "runner",
            {
                "task": "```python\nimport os\n"
                "print(os.environ['GREETING'], open('a.txt').read())\n```",
                "variables": {"GREETING": "moin"},
                "attachments": [{"name": "../a.txt", "text": "attached"}],
            },
        )
        assert "moin attached" in text_of(greeting)
        for wrong in ({}, {"task": "", "variables": {"WHERE": "http://evil/"}}, {"task": 3}):
            refused = await client.call_tool("runner", wrong, raise_on_error=False)
            assert refused.is_error
    direct = devall("run", "code.yaml", "--task", task, "--json", code=0)
    logs = [_kinds(Path("logs") / run) for run in (*runs, json.loads(direct.stdout)["run_id"])]
    assert logs[0] == logs[1] == logs[2]


def _kinds(folder: Path) -> list[tuple[str, str]]:
    """What stands in a run's log, times and ids aside."""
    lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    return [(str(e.get("event") or e.get("type")), str(e.get("node", ""))) for e in events]


async def test_a_run_that_fails_or_waits_is_an_error_that_says_why(over_pipes: Any, write: Write):
    write(
        "ask.yaml",
        """
        version: 0.4.0
        graph:
          start: Ask
          nodes: [{id: Ask, type: human, config: {description: May I?}}]
        """,
    )
    async with over_pipes("mcp", "serve", "ask.yaml") as client:
        waits = await client.call_tool("ask", {}, raise_on_error=False)
        assert waits.is_error
        assert "May I?" in text_of(waits)
        answered = await client.call_tool("ask", {"answers": {"Ask": "yes"}})
        assert text_of(answered) == "yes"


def test_workflows_that_cannot_be_served_are_said(devall: Any, write: Write):
    write("code.yaml", CODE)
    write("same.yaml", CODE)
    write("bad.yaml", "version: 0.4.0\ngraph: {start: nobody}\n")
    assert "both called runner" in devall("mcp", "serve", "code.yaml", "same.yaml", code=2).stderr
    assert "bad.yaml" in devall("mcp", "serve", "bad.yaml", code=3).stderr
    assert "--model" in devall("mcp", "serve", "code.yaml", "--model", "X=y", code=2).stderr


def is_run(folder: str) -> bool:
    """Whether a process runs a file of the folder, in a sandbox or not."""
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if folder.encode() in each.read_bytes():
                return True
    return False


async def test_a_workflow_that_is_cancelled_ends_its_code(
    serve: Callable[..., Served], write: Write
):
    write("code.yaml", CODE)
    served = serve("mcp", "serve", "code.yaml")
    task = "import time; open('begun', 'w').close(); time.sleep(60)"
    async with served.client("legacy") as client:
        running = asyncio.create_task(client.call_tool("runner", {"task": task}))
        deadline = time.monotonic() + 15
        while not (found := list(Path("logs").glob("*/workspace/begun"))):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        code = str(found[0].resolve().parents[1] / "code")
        assert is_run(code)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        while is_run(code):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
    assert served.end() == 143
