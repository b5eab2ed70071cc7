"""How what was sent to models is compared with what a case expects."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

Compare = Callable[[Mapping[str, Any], Mapping[str, Any]], None]


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return content or ""


def _same_text(role: str, sent: str, wanted: str) -> bool:
    if sent == wanted:
        return True
    if role != "tool":
        return False
    try:
        return bool(json.loads(sent) == json.loads(wanted))
    except ValueError:
        return False


def _compare_message(sent: Mapping[str, Any], wanted: Mapping[str, Any], where: str) -> None:
    assert sent["role"] == wanted["role"], where
    if "contains" in wanted:
        for text in wanted["contains"]:
            assert text in _text(sent), where
    else:
        text = wanted.get("content") or ""
        assert _same_text(wanted["role"], _text(sent), text), (where, _text(sent), text)
    calls = [
        {"name": c["function"]["name"], "arguments": json.loads(c["function"]["arguments"])}
        for c in sent.get("tool_calls") or ()
    ]
    assert calls == (wanted.get("tool_calls") or []), where


def _compare_request(sent: Mapping[str, Any], wanted: Mapping[str, Any], where: str) -> None:
    messages: Sequence[Mapping[str, Any]] = sent["messages"]
    if "messages" in wanted:
        texts = [(message["role"], _text(message)) for message in messages]
        assert len(messages) == len(wanted["messages"]), (where, texts, wanted["messages"])
        for at, (one, other) in enumerate(zip(messages, wanted["messages"], strict=True)):
            _compare_message(one, other, f"{where}, message {at + 1}")
    if "count" in wanted:
        assert len(messages) == wanted["count"], where
    if "first" in wanted:
        _compare_message(messages[0], wanted["first"], f"{where}, first")
    if "last" in wanted:
        _compare_message(messages[-1], wanted["last"], f"{where}, last")
    for text in wanted.get("contains", ()):
        assert any(text in _text(message) for message in messages), (where, text)
    offered = sorted(tool["function"]["name"] for tool in sent.get("tools") or ())
    assert offered == wanted.get("tools", []), where


@pytest.fixture(scope="session")
def compare_calls() -> Compare:
    """Fails where the requests to a model differ from those that are expected."""

    def compare(sent: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        assert {model: len(calls) for model, calls in sent.items() if calls} == {
            model: len(calls) for model, calls in wanted.items()
        }
        for model, calls in wanted.items():
            for at, (one, other) in enumerate(zip(sent[model], calls, strict=True)):
                _compare_request(one, other, f"model {model}, request {at + 1}")

    return compare
