"""Conversations longer than the model's window, and endpoints that ask to wait; real HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.core.events import HistoryCut, ModelCallDelayed, ModelCallFailed, Warned
from devall.loading.loader import LoadedWorkflow, load_mapping
from devall.testing.chat_server import ChatServer
from devall.testing.recorder import Recorder

LONG = "A line of a page that is long enough to fill a window.\n"
TOOLS = {"tooling": [{"type": "function", "config": {"tools": [{"name": "pages:page"}]}}]}


def agent(name: str, model: str | None = None, **node: Any) -> dict[str, Any]:
    config = {"provider": "openai", "name": model or name.lower(), "retry": {"enabled": False}}
    return {"id": name, "type": "agent", "config": config | node.pop("config", {}), **node}


def workflow(nodes: Sequence[Any], edges: Sequence[Any] = (), **graph: Any) -> LoadedWorkflow:
    listed = [
        dict(zip(("from", "to"), e.split(" -> "), strict=True)) if isinstance(e, str) else e
        for e in edges
    ]
    data = {"graph": {"start": nodes[0]["id"], "nodes": list(nodes), "edges": listed, **graph}}
    return load_mapping(data, folder=Path.cwd())


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch):
    """Makes a server the endpoint of the agents."""

    def use(server: ChatServer) -> None:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)

    return use


@pytest.fixture
def pages(workspace: Path) -> Path:
    """A tool `page` in the project's own functions: pages of 100 lines."""
    folder = workspace / "functions" / "function_calling"
    folder.mkdir(parents=True)
    code = f"def page(number: int) -> str:\n    return f'page {{number}}\\n' + {LONG!r} * 100\n"
    (folder / "pages.py").write_text(code)
    return workspace / "functions"


def asks(*numbers: int, **more: Any) -> dict[str, Any]:
    calls = [{"name": "page", "arguments": {"number": n}} for n in numbers]
    # Without counts of the provider nothing corrects the estimates.
    return {"tool_calls": calls, "usage": {}, **more}


def is_whole(messages: Sequence[dict[str, Any]]) -> bool:
    """Whether each call has its results right behind it."""
    rest = list(messages)
    while rest:
        message = rest.pop(0)
        if message["role"] == "tool":
            return False
        for call in message.get("tool_calls", ()):
            if not rest or rest.pop(0).get("tool_call_id") != call["id"]:
                return False
    return True


def length(body: dict[str, Any]) -> int:
    return sum(len(str(message.get("content") or "")) for message in body["messages"])


async def test_a_history_is_cut_at_turns_told_of_and_the_task_stays(use, pages: Path) -> None:
    script = {"a": [*(asks(2 * n, 2 * n + 1) for n in range(6)), "done"]}
    recorder = Recorder()
    async with ChatServer(script) as server:
        use(server)
        config = {**TOOLS, "role": "you read", "history": {"max_tokens": 4000}}
        file = workflow([agent("A", config=config)])
        result = await devall.run(
            file, task="read all pages", functions_dir=pages, on_event=recorder
        )
        bodies = server.calls["a"]
    assert (result.status, result.answer) == ("completed", "done")
    for body in bodies:
        messages = body["messages"]
        assert is_whole(messages)
        assert messages[0]["content"] == "you read"
        assert messages[1]["content"] == "read all pages"
        assert length(body) < 4 * 4000
    newest = [m["content"] for m in bodies[-1]["messages"] if m["role"] == "tool"][-2:]
    assert [text.split("\n")[0] for text in newest] == ["page 10", "page 11"]
    assert any("left out here" in str(m["content"]) for m in bodies[-1]["messages"])
    cuts = recorder.of(HistoryCut)
    assert cuts[0].shortened
    assert cuts[-1].left_out
    assert {cut.most for cut in cuts} == {4000}
    assert all(cut.tokens <= 4000 for cut in cuts)
    assert [e.code for e in recorder.of(Warned) if e.code == "history_cut"] == ["history_cut"]
    assert [text for text in result.warnings if "`history.max_tokens` (4,000 tokens)" in text]


async def test_slices_of_a_shortened_result_can_be_read(use, pages: Path) -> None:
    def read(body: Any) -> dict[str, Any]:
        text = next(m["content"] for m in body["messages"] if "attachment " in str(m["content"]))
        name = text.partition("attachment ")[2].split(" ")[0]
        assert "read_tool_result" in [tool["function"]["name"] for tool in body["tools"]]
        arguments = {"attachment": name, "start": 5000, "length": 60}
        return {"tool_calls": [{"name": "read_tool_result", "arguments": arguments}]}

    script = {"a": [asks(1), asks(2), asks(3), read, "done"]}
    async with ChatServer(script) as server:
        use(server)
        config = {**TOOLS, "history": {"max_tokens": 4000, "keep_last": 2}}
        file = workflow([agent("A", config=config)])
        result = await devall.run(file, task="x", functions_dir=pages)
        newest = server.calls["a"][-1]["messages"][-1]
    assert result.answer == "done", result.error
    assert newest["content"].startswith("[characters 5000 to 5060 of 5507]")
    assert LONG[:20] in newest["content"] or LONG[-20:] in newest["content"]


async def test_a_prompt_that_cannot_fit_is_not_sent_and_says_what_to_do(use) -> None:
    async with ChatServer() as server:
        use(server)
        file = workflow([agent("A", config={"history": {"max_tokens": 500}})])
        result = await devall.run(file, task="word " * 1000)
        assert server.requests == []
    assert (result.status, result.exit_code) == ("failed", 1)
    error = result.error
    assert error is not None
    assert (error.code, error.node) == ("prompt_too_long", "A")
    assert "about 1,254 tokens" in error.message
    assert "500" in error.message
    assert "`history.max_tokens`" in error.message
    assert "summarise" in error.hint


@pytest.mark.parametrize(
    ("model", "params", "is_sent"),
    [
        ("gpt-4", {}, False),
        ("gpt-4", {"max_tokens": 4000}, False),
        ("gpt-4o-mini", {}, True),
        ("nobodys-model", {}, True),
    ],
)
async def test_the_window_is_that_of_the_model_where_it_is_known(
    use, model: str, params: Any, is_sent: bool
) -> None:
    async with ChatServer() as server:
        use(server)
        file = workflow([agent("A", model, config={"params": params})])
        words = 5000 if params else 9000
        result = await devall.run(file, task="word " * words)
        assert len(server.requests) == is_sent
    assert (result.status == "completed") == is_sent
    if result.error:
        assert "the model's window leaves" in result.error.message


async def test_max_tokens_of_the_history_stand_before_the_models_window(use) -> None:
    async with ChatServer() as server:
        use(server)
        file = workflow([agent("A", "gpt-4", config={"history": {"max_tokens": 20_000}})])
        result = await devall.run(file, task="word " * 9000)
    assert result.status == "completed"


async def test_old_turns_of_a_node_that_remembers_are_left_out(use) -> None:
    async with ChatServer({"a": [f"answer {n} {LONG * 12}" for n in range(8)]}) as server:
        use(server)
        config = {"history": {"max_tokens": 700, "keep_last": 1}}
        loop = {"from": "A", "to": "B"}, {"from": "B", "to": "A"}
        nodes = [agent("A", config=config, context_window=-1), agent("B", context_window=0)]
        file = workflow(nodes, loop, limits={"max_loop_iterations": 6, "on_loop_limit": "continue"})
        await devall.run(file, task="the task")
        bodies = server.calls["a"]
    assert len(bodies) == 6
    texts = [str(m["content"]) for m in bodies[-1]["messages"]]
    assert texts[0] == "the task"
    assert "left out here" in texts[1]
    assert texts[-1] == "b reply 5"
    assert texts[-2].startswith("answer 4")


@pytest.mark.parametrize(
    "retry",
    [
        {"retry_on_status_codes": [400]},
        {"retry_on_error_substrings": ["maximum context"]},
        {"retry_on_exception_types": ["BadRequestError", "ContextOverflow"]},
    ],
)
async def test_a_request_that_is_too_long_for_the_endpoint_is_not_repeated(use, retry: Any) -> None:
    async with ChatServer({"a": [{"error": "context_length_exceeded"}]}) as server:
        use(server)
        quick = {"min_wait_seconds": 0, "max_wait_seconds": 0}
        result = await devall.run(workflow([agent("A", config={"retry": quick | retry})]), task="x")
        assert len(server.requests) == 1
    assert result.error is not None
    assert result.error.code == "context_length"
    assert "history.max_tokens" in result.error.hint


async def test_when_an_endpoint_asks_to_wait_the_calls_of_other_nodes_wait_too(use) -> None:
    pause, others = 2.0, range(1, 5)
    script = {
        "first": [{"error": "rate_limit_exceeded", "retry_after": pause}, "ok"],
        # Under way already, and done a moment after the first was refused.
        **{f"w{n}": [{"text": "go", "delay": 0.3}] for n in others},
        **{f"m{n}": ["ok"] for n in others},
    }
    recorder = Recorder()
    async with ChatServer(script) as server:
        use(server)
        nodes = [
            {"id": "S", "type": "literal", "config": {"content": "x"}},
            agent("First", config={"retry": {"max_attempts": 3}}),
            *(agent(f"{kind}{n}") for kind in "WM" for n in others),
        ]
        edges = ["S -> First", *(e for n in others for e in (f"S -> W{n}", f"W{n} -> M{n}"))]
        result = await devall.run(workflow(nodes, edges), task="x", on_event=recorder)
        requests = server.requests
    assert result.status == "completed", result.error
    assert {name: len(bodies) for name, bodies in server.calls.items()} == {
        **dict.fromkeys([f"{kind}{n}" for kind in "wm" for n in others], 1),
        "first": 2,
    }
    refused = next(r.at for r in requests if r.model == "first")
    later = [r.at for r in requests if r.model.startswith("m")]
    assert min(later) >= refused + pause
    assert {event.node for event in recorder.of(ModelCallDelayed)} >= {f"M{n}" for n in others}
    assert len(recorder.of(ModelCallFailed)) == 1


async def test_a_run_that_waits_for_an_endpoint_can_be_cancelled(use) -> None:
    script = {"a": [{"error": "rate_limit_exceeded", "retry_after": 50}]}
    async with ChatServer(script) as server:
        use(server)
        nodes = [agent("A", config={"retry": {"max_attempts": 2}}), agent("B")]
        nodes[0]["on_error"] = "continue"
        file = workflow(
            [{"id": "S", "type": "literal", "config": {"content": "x"}}, *nodes],
            ["S -> A", "S -> B"],
            limits={"max_seconds": 0.5},
        )
        began = time.monotonic()
        result = await asyncio.wait_for(devall.run(file, task="x"), 10)
    assert result.status == "limit_reached"
    assert time.monotonic() - began < 9
