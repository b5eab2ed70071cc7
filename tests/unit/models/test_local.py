"""A model in this process: the real one, where extra and weights are there."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import devall
from devall.core.errors import SetupError
from devall.core.messages import Message, user
from devall.models import weights
from devall.models.base import ChatRequest, ModelChoice, ToolSchema
from devall.models.providers import Models

HAS_EXTRA = importlib.util.find_spec("xllamacpp") is not None
needs_extra = pytest.mark.skipif(
    not HAS_EXTRA, reason="xllamacpp is not installed: pip install devall[local]"
)
needs_weights = pytest.mark.skipif(
    not weights.installed(),
    reason="the weights of smollm2 are not here: devall models pull smollm2",
)

CHOICE = ModelChoice("local", "smollm2")
POET = Message(
    "system",
    "You are a poet. Write a poem of four lines about the number that the tool gives. "
    "Name the number in the poem.",
)
RAND = ToolSchema(
    "rand_num",
    "Draw a random whole number between a and b, both included.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)


def quiet(_: str) -> None:
    pass


@needs_extra
def test_missing_weights_are_told_before_anything_is_loaded(tmp_path: Path):
    with pytest.raises(SetupError) as caught:
        Models({"DEVALL_CACHE_DIR": str(tmp_path)}).model(CHOICE)
    assert "devall models pull smollm2" in caught.value.hint
    assert caught.value.exit_code == 4


@needs_weights
def test_a_missing_extra_names_the_command_that_installs_it():
    code = (
        "import sys; sys.modules['xllamacpp'] = None\n"
        "from devall.models.base import ModelChoice\n"
        "from devall.models.providers import Models\n"
        "try: Models().model(ModelChoice('local', 'smollm2'))\n"
        "except Exception as error: print(type(error).__name__, error, error.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "SetupError" in done.stdout
    assert "pip install devall[local]" in done.stdout


@needs_extra
@pytest.mark.slow
async def test_a_file_that_cannot_be_loaded_is_told(tmp_path: Path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\0" * 100)
    models = Models({})
    model = models.model(ModelChoice("local", str(broken)))
    for _ in range(2):
        with pytest.raises(SetupError, match=r"broken\.gguf cannot be loaded"):
            await model.complete(ChatRequest((user("hi"),)), quiet)
    await models.aclose()


@needs_extra
@needs_weights
@pytest.mark.slow
async def test_the_poet_draws_a_number_and_writes_about_it():
    models = Models()
    model = models.model(CHOICE)
    task = user("Draw a number from 1 to 100.")
    params = {"temperature": 0, "max_tokens": 60}
    first = await model.complete(
        ChatRequest((POET, task), (RAND,), params | {"tool_choice": "required"}), quiet
    )
    (call,) = first.message.tool_calls
    assert call.name == "rand_num"
    assert json.loads(call.arguments).keys() == {"a", "b"}
    heard: list[str] = []
    result = Message("tool", "73", tool_call_id=call.id)
    poem = await model.complete(
        ChatRequest((POET, task, first.message, result), (RAND,), params | {"tool_choice": "none"}),
        heard.append,
    )
    await models.aclose()
    assert "73" in poem.message.text
    assert "".join(heard) == poem.message.text
    assert len(heard) > 5
    assert poem.usage is not None
    assert 5 < poem.usage.output_tokens <= 60


@needs_extra
@needs_weights
@pytest.mark.slow
async def test_an_agent_with_an_output_schema_is_held_to_it(tmp_path: Path):
    schema = {
        "type": "object",
        "required": ["colour", "count"],
        "properties": {
            "colour": {"enum": ["red", "green"]},
            "count": {"type": "integer", "minimum": 1, "maximum": 9},
        },
    }
    config = {"provider": "local", "name": "smollm2", "output_schema": schema}
    config["params"] = {"temperature": 0, "max_tokens": 40}
    node = {"id": "A", "type": "agent", "config": config}
    file = tmp_path / "flow.yaml"
    file.write_text(json.dumps({"version": "0.4.0", "graph": {"start": "A", "nodes": [node]}}))
    result = await devall.run(file, task="Nine red apples.")
    assert result.answer is not None
    found = json.loads(result.answer)
    assert found["colour"] in {"red", "green"}
    assert 1 <= found["count"] <= 9
    assert result.usage.model_calls == 1  # it needed no repair


@needs_extra
@needs_weights
@pytest.mark.slow
async def test_models_of_one_file_share_a_server_and_the_same_words_come_back():
    models = Models()
    request = ChatRequest((user("Say hello."),), params={"temperature": 0, "max_tokens": 8})
    replies = await asyncio.gather(
        *(models.model(CHOICE).complete(request, quiet) for _ in range(3))
    )
    assert models._local is not None
    assert len(models._local._servers) == 1
    await models.aclose()
    assert len({reply.message.text for reply in replies}) == 1
    assert replies[0].finish_reason == "length"


@needs_extra
@needs_weights
@pytest.mark.slow
async def test_cancelling_stops_the_model_and_leaves_it_usable():
    models = Models()
    model = models.model(CHOICE)
    begun = asyncio.Event()
    story = ChatRequest((user("Write a very long story about a fox."),))
    task = asyncio.create_task(model.complete(story, lambda _: begun.set()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    short = ChatRequest((user("Say hello."),), params={"max_tokens": 3})
    assert (await model.complete(short, quiet)).message.text
    await models.aclose()


@needs_extra
@needs_weights
@pytest.mark.slow
@pytest.mark.parametrize("closing", ["await models.aclose()", "pass"])
def test_the_interpreter_ends_whether_or_not_the_server_was_closed(closing):
    code = (
        "import asyncio\n"
        "from devall.core.messages import user\n"
        "from devall.models.base import ChatRequest, ModelChoice\n"
        "from devall.models.providers import Models\n"
        "async def main():\n"
        "    models = Models()\n"
        "    model = models.model(ModelChoice('local', 'smollm2'))\n"
        "    begun = asyncio.Event()\n"
        "    story = ChatRequest((user('Write a long story.'),))\n"
        "    task = asyncio.create_task(model.complete(story, lambda _: begun.set()))\n"
        "    await begun.wait()\n"
        "    print('begun')\n"
        f"    {closing}\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=50
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "begun" in done.stdout
