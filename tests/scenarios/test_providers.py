"""Workflows whose agents are of different providers, in one run."""

from __future__ import annotations

import pytest

import devall
from devall.testing.chat_server import ChatServer

pytest.importorskip("anthropic", reason="pip install devall[anthropic]")

MIXED = """
    graph:
      start: A
      nodes:
        - id: A
          type: agent
          config:
            provider: anthropic
            name: claude
            role: Draw a number.
            params: {temperature: 0.2}
            tooling: {type: function, config: {tools: [{name: "mine:add"}]}}
        - {id: B, type: agent, config: {provider: azure, name: gpt-prod}}
        - {id: C, type: agent, config: {provider: ollama, name: llama}}
      edges:
        - {from: A, to: B}
        - {from: B, to: C}
"""
MINE = 'def add(a: int, b: int) -> int:\n    """The sum."""\n    return a + b\n'


async def test_anthropic_azure_and_ollama_work_in_one_run(write, monkeypatch):
    write("functions/function_calling/mine.py", MINE)
    file = write("w.yaml", MIXED)
    thinking = [{"type": "thinking", "thinking": "sum", "signature": "sig"}]
    call = {"name": "add", "arguments": {"a": 1, "b": 2}}
    script = {
        "claude": [
            {"status": 400, "text": "temperature: Extra inputs are not permitted"},
            {"tool_calls": [call], "extra": {"thinking": thinking}},
            "It is 3.",
        ],
        "gpt-prod": ["Three it is."],
        "llama": ["Fine."],
    }
    async with ChatServer(script, strict=True) as server:
        root = server.url.removesuffix("/v1")
        for name, value in {
            "ANTHROPIC_BASE_URL": root,
            "ANTHROPIC_API_KEY": "ant-key",
            "AZURE_OPENAI_ENDPOINT": root,
            "AZURE_OPENAI_API_KEY": "azure-key",
            "OLLAMA_HOST": f"127.0.0.1:{server.port}",
            "API_KEY": "somebody-else-s",
            "BASE_URL": "http://127.0.0.1:9/v1",
        }.items():
            monkeypatch.setenv(name, value)
        warned: list[str] = []
        result = await devall.run(
            file, task="go", on_event=lambda e: warned.append(str(getattr(e, "message", "")))
        )
        keys = [
            f"{r.headers.get('authorization')} {r.headers.get('api-key')}" for r in server.requests
        ]
        third = server.calls["claude"][2]["messages"]
    assert (result.status, result.answer) == ("completed", "Fine.")
    assert "somebody-else-s" not in " ".join(keys)
    assert [block["type"] for block in third[1]["content"]] == ["thinking", "tool_use"]
    assert third[2]["content"][0]["content"] == "3"
    assert any("does not take `temperature`" in text for text in warned)
    assert result.usage.model_calls == 4
