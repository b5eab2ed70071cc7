"""Traces of whole runs as others see them: a collector, an MCP server, a pipeline, an application."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastmcp import FastMCP

import devall as engine
from devall.loading.loader import load_mapping
from devall.telemetry.otel import names
from devall.testing.chat_server import ChatServer

POEM = """
    graph:
      id: poem
      start: A
      nodes:
        - {id: A, type: agent, config: {provider: openai, name: poet}}
        - {id: B, type: agent, config: {provider: openai, name: critic}}
      edges: [{from: A, to: B}]
"""
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"


class Bodies:
    """What an ASGI application is sent, as JSON."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.all: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        data = b""

        async def hear() -> Any:
            nonlocal data
            message = await receive()
            if message["type"] == "http.request":
                data += message.get("body", b"")
                if data and not message.get("more_body"):
                    self.all.append(json.loads(data))
            return message

        await self._app(scope, hear if scope["type"] == "http" else receive, send)

    @property
    def called(self) -> list[dict[str, Any]]:
        """The parameters of the tools' calls."""
        return [body["params"] for body in self.all if body.get("method") == "tools/call"]


@pytest.fixture
def numbers() -> Iterator[tuple[str, Bodies]]:
    """A real MCP server over HTTP with a tool `add`: its URL, and what it is sent."""
    server = FastMCP("numbers")

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    seen = Bodies(server.http_app())
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(seen, log_level="critical", ws="none", timeout_graceful_shutdown=1)
        http = uvicorn.Server(config)
        thread = threading.Thread(target=http.run, args=([listening],), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", seen
        http.should_exit = True
        thread.join()


def test_a_collector_gets_the_trace_of_a_run_of_the_command_line(devall, write, otlp):
    file = write("poem.yaml", POEM)
    with ChatServer({"poet": ["a poem"], "critic": ["fine"]}) as server:
        env = server.env | {"TRACEPARENT": f"00-{TRACE}-{SPAN}-01", "OTEL_SERVICE_NAME": "ci"}
        done = devall("run", file, "--task", "x", "--run-id", "r7", env=env, code=0)
        sent = [request.headers.get("traceparent", "") for request in server.requests]
    assert done.stdout == "fine\n"
    assert "telemetry" not in done.stderr
    assert "warning" not in done.stderr
    assert otlp.tree() == [
        "invoke_workflow poem",
        "  invoke_agent A",
        "    chat poet",
        "  invoke_agent B",
        "    chat critic",
    ]
    root = otlp.span("invoke_workflow poem")
    # A pipeline's step sees the run as a part of it.
    assert (root.trace, root.parent) == (TRACE, SPAN)
    assert root.resource["service.name"] == "ci"
    assert root.attributes["devall.run_id"] == "r7"
    # An endpoint that traces its own work joins the call that it was asked by.
    chats = [otlp.span("chat poet"), otlp.span("chat critic")]
    assert [header.split("-")[1:3] for header in sent] == [[c.trace, c.id] for c in chats]
    assert otlp.point("devall.run.duration").count == 1


def test_a_collector_that_is_away_is_a_line_of_warning_and_no_more(devall, write, free_port):
    file = write("poem.yaml", POEM)
    with ChatServer() as server:
        env = server.env | {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port}"}
        done = devall("run", file, "--task", "x", env=env, code=0)
    assert done.stdout == "critic reply 1\n"
    assert done.stderr.count("[telemetry]") == 1
    assert f"http://127.0.0.1:{free_port}: Connection refused" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Transient error" not in done.stderr


def test_an_interrupted_run_does_not_hang_on_a_collector_that_is_silent(write, workspace):
    file = write("poem.yaml", POEM)
    script = {"poet": [{"fault": "silence"}]}
    with ChatServer(script) as server, socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = subprocess.Popen(
            [sys.executable, "-m", "devall", "run", str(file), "--task", "x"],
            cwd=workspace,
            env=os.environ
            | server.env
            | {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_TIMEOUT": "100"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        server.wait_until(lambda: server.active == 1, 20)
        process.send_signal(signal.SIGINT)
        # The exporter's own patience is longer, and so is the SDK's.
        _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "interrupted" in said
    assert "Traceback" not in said


async def test_an_mcp_server_is_told_of_the_tools_span(otlp, numbers, monkeypatch):
    url, seen = numbers
    tools = {"type": "mcp_remote", "config": {"server": url}}
    asks = [{"name": "add", "arguments": {"a": 1, "b": n}} for n in (2, 3)]
    async with ChatServer({"a": [{"tool_calls": asks}, "five"]}) as server:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        config = {"provider": "openai", "name": "a", "tooling": tools}
        graph = {"id": "f", "start": "A", "nodes": [{"id": "A", "type": "agent", "config": config}]}
        workflow = load_mapping({"graph": graph}, folder=Path.cwd())
        result = await engine.run(workflow, task="x")
    assert result.answer == "five", result.error
    spans = otlp.named("execute_tool add")
    told = {params["arguments"]["b"]: params["_meta"]["traceparent"] for params in seen.called}
    by_call = sorted(told.values())
    assert by_call == sorted(f"00-{span.trace}-{span.id}-{told[2][-2:]}" for span in spans)
    node = otlp.span("invoke_agent A")
    assert {span.parent for span in spans} == {node.id}
    assert {span.trace for span in spans} == {otlp.span("invoke_workflow f").trace}
    wanted = {"mcp.method.name": "tools/call", "network.transport": "tcp"}
    assert wanted.items() <= spans[0].attributes.items()
    assert spans[0].attributes["server.address"] == "127.0.0.1"
    # The library's own spans would say the same once more, and are not made.
    assert otlp.tree() == [
        "invoke_workflow f",
        "  invoke_agent A",
        "    chat a",
        "    execute_tool add",
        "    execute_tool add",
        "    chat a",
    ]


APPLICATION = """
import asyncio, json, sys
from pathlib import Path
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
import devall
from devall.loading.loader import load_mapping

gathered = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(gathered))
trace.set_tracer_provider(provider)

config = {"provider": "openai", "name": "a", "tooling": json.loads(sys.argv[1])}
graph = {"id": "f", "start": "A", "nodes": [{"id": "A", "type": "agent", "config": config}]}

async def main():
    with trace.get_tracer("app").start_as_current_span("request"):
        result = await devall.run(load_mapping({"graph": graph}, folder=Path.cwd()), task="x")
        assert result.answer == "five", result.error
        assert trace.get_current_span().name == "request"
    with trace.get_tracer("app").start_as_current_span("later"):
        pass

asyncio.run(main())
assert trace.get_tracer_provider() is provider
spans = gathered.get_finished_spans()
names = {span.context.span_id: span.name for span in spans}
print(json.dumps([[s.name, names.get(s.parent.span_id) if s.parent else None] for s in spans]))
"""


def test_an_application_that_traces_has_the_run_within_its_own_trace(workspace, numbers):
    url, seen = numbers
    tools = json.dumps({"type": "mcp_remote", "config": {"server": url}})
    asks = {"tool_calls": [{"name": "add", "arguments": {"a": 2, "b": 3}}]}
    with ChatServer({"a": [asks, "five"]}) as server:
        done = subprocess.run(
            [sys.executable, "-c", APPLICATION, tools],
            cwd=workspace,
            env=os.environ | server.env,
            capture_output=True,
            text=True,
            timeout=30,
        )
    assert done.returncode == 0, done.stderr
    spans = json.loads(done.stdout)
    parents = {name: parent for name, parent in spans if not name.startswith("MCP send")}
    assert parents == {
        "chat a": "invoke_agent A",
        "execute_tool add": "invoke_agent A",
        "invoke_agent A": "invoke_workflow f",
        "invoke_workflow f": "request",
        "request": None,
        "later": None,
        **({"tools/list": "invoke_agent A"} if "tools/list" in parents else {}),
    }
    # Of the library's own spans, the one for the call lies in the tool's.
    assert dict(spans)["MCP send tools/call add"] == "execute_tool add"
    assert len(seen.called) == 1


PAGE = Path(__file__).parents[2] / "docs/telemetry.md"


def test_the_page_names_every_attribute_and_instrument():
    text = PAGE.read_text(encoding="utf-8")
    told = {value for value in vars(names).values() if isinstance(value, str) and "." in value}
    told = {value for value in told if value.startswith(("gen_ai.", "devall.", "server.", "mcp."))}
    assert len(told) > 45
    assert [
        value
        for value in sorted(told)
        if f"`{value}`" not in text and not value.startswith("devall.telemetry")
    ] == []


def test_the_application_of_the_page_does_what_the_page_says(write, workspace):
    write("poem.yaml", POEM)
    text = PAGE.read_text(encoding="utf-8")
    (code,) = [block for block in text.split("```") if "set_tracer_provider" in block]
    with ChatServer() as server:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=workspace,
            env=os.environ | server.env,
            capture_output=True,
            text=True,
            timeout=30,
        )
    assert done.returncode == 0, done.stderr
    assert '"name": "chat poet"' in done.stdout
    assert '"name": "invoke_workflow poem"' in done.stdout
