"""Scripted models in this process."""

from __future__ import annotations

import asyncio

import pytest

from devall.core.errors import ModelRefused, ModelUnavailable
from devall.core.events import Event, TextDelta, Warned
from devall.core.messages import user
from devall.models.base import ChatRequest, ModelChoice
from devall.testing.recorder import Recorder
from devall.testing.scripted_model import ScriptedModels

REQUEST = ChatRequest((user("hi"),))


async def ask(models: ScriptedModels, name: str = "m"):
    heard: list[str] = []
    reply = await models.model(ModelChoice("openai", name)).complete(REQUEST, heard.append)
    return reply, "".join(heard)


async def test_replies_come_in_order_and_then_are_made_up():
    models = ScriptedModels({"m": ["one"]})
    first, heard = await ask(models)
    second, _ = await ask(models)
    assert (first.message.text, second.message.text, heard) == ("one", "m reply 2", "one")
    assert models.requests["m"] == [REQUEST, REQUEST]
    assert first.usage is not None


async def test_tool_calls_have_ids_of_their_own():
    calls = [{"name": "f", "arguments": {"a": 1}}, {"name": "f", "arguments": "{oops"}]
    reply, _ = await ask(ScriptedModels({"m": [{"tool_calls": calls}]}))
    assert reply.finish_reason == "tool_calls"
    assert [c.arguments for c in reply.message.tool_calls] == ['{"a": 1}', "{oops"]
    assert len({c.id for c in reply.message.tool_calls}) == 2


async def test_a_strict_source_fails_on_a_call_beyond_the_script():
    models = ScriptedModels({"m": []}, strict=True)
    with pytest.raises(AssertionError, match="no reply number 1 for model m"):
        await ask(models)
    with pytest.raises(AssertionError, match="beyond the script"):
        models.check_all_used()


async def test_replies_that_nobody_asked_for_are_named():
    models = ScriptedModels({"m": ["one", "two"]})
    await ask(models)
    with pytest.raises(AssertionError, match="'m': 1"):
        models.check_all_used()


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ({"status": 400}, ModelRefused),
        ({"error": "insufficient_quota"}, ModelRefused),
        ({"status": 503, "retry_after": 2}, ModelUnavailable),
        ({"fault": "half_stream"}, ModelUnavailable),
    ],
)
async def test_errors_are_those_of_a_real_endpoint(written, kind):
    with pytest.raises(kind) as caught:
        await ask(ScriptedModels({"m": [written]}))
    assert caught.value.retry_after == written.get("retry_after")


async def test_silence_can_be_cancelled():
    task = asyncio.create_task(ask(ScriptedModels({"m": [{"fault": "silence"}]})))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_closing_is_noted():
    models = ScriptedModels()
    await models.aclose()
    assert models.is_closed


def test_the_recorder_keeps_events_by_kind():
    sink = Recorder()
    events: list[Event] = [TextDelta(node="a", text="x"), Warned(code="c", message="m")]
    for event in events:
        sink(event)
    assert sink.events == events
    assert sink.of(TextDelta) == events[:1]
    assert sink.kinds() == ["TextDelta", "Warned"]
