"""What is said goes along where it is asked for: in the conventions' form, and never a secret."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.loading.loader import LoadedWorkflow, load_mapping
from devall.testing.scripted_model import ScriptedModels

KEY = "sk-sentinel-0123456789"


@pytest.fixture(autouse=True)
def captured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")


def agent(name: str, **more: Any) -> dict[str, Any]:
    config = {"provider": "scripted", "name": name.lower()} | more.pop("config", {})
    return {"id": name, "type": "agent", "config": config, **more}


def flow(*nodes: dict[str, Any], **graph: Any) -> LoadedWorkflow:
    chain = [{"from": a["id"], "to": b["id"]} for a, b in pairwise(nodes)]
    data = {"id": "f", "start": nodes[0]["id"], "nodes": list(nodes), "edges": chain} | graph
    return load_mapping({"graph": data}, folder=Path.cwd())


async def test_messages_are_in_the_form_of_the_conventions(otlp):
    tools = {"type": "function", "config": {"tools": [{"name": "get_city_num"}]}}
    asks = {
        "text": "let me see",
        "tool_calls": [{"name": "get_city_num", "arguments": {"city": "Rome"}, "id": "c1"}],
    }
    models = ScriptedModels({"a": [{"error": "rate_limit_exceeded"}, asks, "done"]})
    retry = {"min_wait_seconds": 0, "max_wait_seconds": 0}
    workflow = flow(agent("A", config={"role": "Be brief.", "tooling": tools, "retry": retry}))
    result = await devall.run(workflow, task="Which number?", model_source=models)
    assert result.status == "completed", result.error
    _, first, second = (span.attributes for span in otlp.named("chat a"))
    assert json.loads(first["gen_ai.system_instructions"]) == [
        {"type": "text", "content": "Be brief."}
    ]
    asked = {"role": "user", "parts": [{"type": "text", "content": "Which number?"}]}
    assert json.loads(first["gen_ai.input.messages"]) == [asked]
    call = {"type": "tool_call", "id": "c1", "name": "get_city_num", "arguments": {"city": "Rome"}}
    said = {
        "role": "assistant",
        "parts": [{"type": "text", "content": "let me see"}, call],
    }
    assert json.loads(first["gen_ai.output.messages"]) == [said | {"finish_reason": "tool_call"}]
    *before, answer = json.loads(second["gen_ai.input.messages"])
    assert before == [asked, said]
    tool = otlp.span("execute_tool get_city_num").attributes
    assert json.loads(tool["gen_ai.tool.call.arguments"]) == {"city": "Rome"}
    result_text = tool["gen_ai.tool.call.result"]
    response = {"type": "tool_call_response", "id": "c1", "response": result_text}
    assert answer == {"role": "tool", "parts": [response]}
    names = [each["name"] for each in json.loads(second["gen_ai.tool.definitions"])]
    assert names == ["get_city_num"]
    root = otlp.span("invoke_workflow f").attributes
    assert json.loads(root["gen_ai.input.messages"]) == [asked]
    assert json.loads(root["gen_ai.output.messages"])[0]["parts"][0]["content"] == "done"


async def test_no_secret_goes_along(otlp, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", KEY)
    tools = {"type": "function", "config": {"tools": [{"name": "get_city_num"}]}}
    asks = {"tool_calls": [{"name": "get_city_num", "arguments": {"city": KEY}}]}
    script = {"a": [asks, f"it is {KEY}"], "b": [{"status": 401, "error": f"bad {KEY}"}]}
    workflow = flow(agent("A", config={"role": "use ${MY_API_KEY}", "tooling": tools}), agent("B"))
    models = ScriptedModels(script)
    await devall.run(workflow, task=f"take {KEY}", model_source=models)
    told = str(otlp.spans)
    assert "gen_ai.input.messages" in told
    assert KEY not in told
    assert "***" in told


async def test_what_a_node_says_whose_output_is_kept_out_of_logs_goes_along_nowhere(otlp):
    tools = {"type": "function", "config": {"tools": [{"name": "get_city_num"}]}}
    asks = {"tool_calls": [{"name": "get_city_num", "arguments": {"city": "the-hidden-words"}}]}
    workflow = flow(
        agent("A", log_output=False),
        agent("B", config={"input_mode": "prompt", "tooling": tools}),
        agent("C", log_output=False),
    )
    models = ScriptedModels(
        {"a": ["the-hidden-words"], "b": [asks, "seen"], "c": ["the-hidden-words, in short"]}
    )
    result = await devall.run(workflow, task="a task", model_source=models)
    assert result.answer == "the-hidden-words, in short"
    told = str(otlp.spans)
    assert "a task" in told
    assert "the-hidden-words" not in told
    assert "kept out of logs" in told


async def test_a_picture_is_told_of_by_its_name_and_no_bytes_go_along(otlp, tmp_path):
    picture = tmp_path / "dot.png"
    picture.write_bytes(bytes.fromhex("89504e470d0a1a0a") + b"\0" * 400)
    models = ScriptedModels({"a": ["seen"]})
    await devall.run(flow(agent("A")), task="look", model_source=models, attachments=[picture])
    (message,) = json.loads(otlp.span("chat a").attributes["gen_ai.input.messages"])
    (part,) = [each for each in message["parts"] if each["type"] != "text"]
    assert (part["type"], part["modality"]) == ("file", "image")
    assert part["mime_type"] == "image/png"
    assert part["file_id"].endswith(".png")
