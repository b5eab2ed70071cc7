"""Images and models that take none, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.core.errors import ModelRefused, ModelUnavailable
from devall.core.messages import MediaPart, Message, TextPart, ToolCall, user
from devall.models.base import ChatModel, ChatReply, ChatRequest, ModelChoice
from devall.models.images import ImageGate
from devall.models.providers import Models
from devall.testing.chat_server import ChatServer
from devall.testing.scripted_model import ScriptedModels

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
CHART = MediaPart("image", "image/png", attachment="0a1b.png", name="chart.png")
MESSAGES = (
    user("What does it show?"),
    Message("assistant", tool_calls=(ToolCall("c1", "draw", "{}"),)),
    Message("tool", (TextPart("[image chart.png]"), CHART), tool_call_id="c1"),
)
IN_TASK = (Message("user", (TextPart("What does it show?"), CHART)),)


def refusal(text: str, status: int = 400) -> dict[str, Any]:
    error = {"message": text, "type": "invalid_request_error"}
    return {"status": status, "body": {"error": error}}


def has_image(body: Mapping[str, Any]) -> bool:
    return "data:image/png" in json.dumps(body)


async def ask(
    model: ChatModel, messages: tuple[Message, ...] = MESSAGES, **params: Any
) -> ChatReply:
    request = ChatRequest(messages, params=params, attachments=lambda _: PNG)
    return await model.complete(request, lambda _: None)


@pytest.mark.parametrize("protocol", ["chat", "responses"])
@pytest.mark.parametrize(
    "said",
    [
        "Invalid content type. image_url is only supported by certain models.",
        "unknown variant `image_url`, expected `text` at line 1 column 300",
        "messages[2].content must be a string",
        "Image input is not enabled for this model",
        "At most 0 image(s) may be provided in one request.",
        "some-model is not a multimodal model",
    ],
)
async def test_a_model_that_refuses_images_is_asked_again_without_and_never_sent_one_again(
    said: str, protocol: str
):
    name = f"blind-{protocol}-{said[:12]}"
    async with ChatServer({name: [refusal(said), "a line", "another"]}, strict=True) as server:
        models = Models(environ=server.env)
        choice = ModelChoice("openai", name, protocol=protocol)
        reply = await ask(models.model(choice))
        assert reply.message.text == "a line"
        assert ["takes no images" in note for note in reply.notes] == [True]
        reply = await ask(models.model(choice), IN_TASK)
        assert reply.message.text == "another"
        assert len(reply.notes) == 1
        await models.aclose()
    bodies = server.calls[name]
    assert list(map(has_image, bodies)) == [True, False, False]
    for body in bodies[1:]:
        assert "[image chart.png: left out, since this model takes no images]" in json.dumps(body)


async def test_a_complaint_about_one_image_is_not_held_against_the_model():
    script = {"picky": [refusal("Invalid image: too large"), "without", "with"]}
    async with ChatServer(script, strict=True) as server:
        models = Models(environ=server.env)
        model = models.model(ModelChoice("openai", "picky"))
        assert "refused these images" in (await ask(model)).notes[0]
        assert (await ask(model)).notes == ()
        await models.aclose()
    assert list(map(has_image, server.calls["picky"])) == [True, False, True]


@pytest.mark.parametrize(
    ("messages", "images", "answer"),
    [
        (MESSAGES, None, refusal("temperature is not supported")),
        (MESSAGES, True, refusal("image_url is not supported")),
        ((user("hi"),), None, refusal("image_url is not supported")),
        (MESSAGES, None, refusal("this key is not supported", 401)),
    ],
    ids=["another refusal", "images: true", "no image was sent", "another status"],
)
async def test_other_refusals_stand_after_one_request(
    messages: tuple[Message, ...], images: bool | None, answer: dict[str, Any]
):
    async with ChatServer({"my-vision": [answer]}, strict=True) as server:
        models = Models(environ=server.env)
        with pytest.raises(ModelRefused, match="is not supported"):
            await ask(models.model(ModelChoice("openai", "my-vision", images=images)), messages)
        await models.aclose()
    assert len(server.requests) == 1


async def test_a_server_that_says_so_by_status_500_is_understood_and_a_crash_is_none():
    script = {
        "llama": [refusal("image input is not supported - hint: provide the mmproj", 500), "ok"],
        "crash": [refusal("image worker died", 500)],
    }
    async with ChatServer(script, strict=True) as server:
        models = Models(environ=server.env)
        assert (await ask(models.model(ModelChoice("openai", "llama")))).message.text == "ok"
        with pytest.raises(ModelUnavailable):
            await ask(models.model(ModelChoice("openai", "crash")))
        await models.aclose()


async def test_a_model_that_refuses_either_way_is_not_remembered_as_one_without_images():
    wrong = refusal("no such model for images", 404)
    async with ChatServer({"gone": [wrong, wrong, "seen"]}, strict=True) as server:
        models = Models(environ=server.env)
        model = models.model(ModelChoice("openai", "gone"))
        with pytest.raises(ModelRefused):
            await ask(model)
        assert (await ask(model)).notes == ()
        await models.aclose()
    assert list(map(has_image, server.calls["gone"])) == [True, False, True]


async def test_a_model_that_is_said_to_take_none_is_sent_none():
    async with ChatServer({"text": ["ok", "ok"]}, strict=True) as server:
        models = Models(environ=server.env)
        model = models.model(ModelChoice("openai", "text", images=False, tool_mode="text"))
        assert [len((await ask(model)).notes) for _ in range(2)] == [1, 0]
        await models.aclose()
    assert not any(map(has_image, server.calls["text"]))
    assert "chart.png: left out" in json.dumps(server.calls["text"])


async def test_models_of_this_process_are_sent_none():
    pytest.importorskip("xllamacpp")
    model = Models({}).model(ModelChoice("local", "smollm2"))
    gate = getattr(model, "model", model)
    assert isinstance(gate, ImageGate)
    assert gate.takes is False
    played = ImageGate(ScriptedModels({"m": ["ok"]}).model(ModelChoice("local", "m")), gate.takes)
    assert (await ask(played)).notes


FLOW = """
version: 0.4.0
graph:
  start: A
  nodes:
    - id: A
      type: agent
      config:
        provider: openai
        name: blind-run
        retry: {enabled: false}
        tooling: {type: function, config: {tools: [{name: draw}]}}
"""
DRAW = '''
def draw():
    """Draw."""
    return bytes.fromhex("89504e470d0a1a0a") + bytes(20)
'''


async def test_a_run_whose_tool_draws_goes_on_with_a_model_that_takes_no_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "functions/function_calling").mkdir(parents=True)
    (tmp_path / "functions/function_calling/pens.py").write_text(DRAW)
    (tmp_path / "flow.yaml").write_text(FLOW)
    call = {"tool_calls": [{"name": "draw"}]}
    replies = [call, refusal("this model does not support image input"), call, "seen"]
    async with ChatServer({"blind-run": replies}, strict=True) as server:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        result = await devall.run(tmp_path / "flow.yaml", task="go", logs_dir=tmp_path / "logs")
    assert (result.status, result.answer) == ("completed", "seen")
    assert list(map(has_image, server.calls["blind-run"])) == [False, True, False, False]
    assert sum("takes no images" in warning for warning in result.warnings) == 1
