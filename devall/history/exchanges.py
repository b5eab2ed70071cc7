"""What went to models and came back, from the journal; what `log_output` hides stays hidden."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

from devall.core.events import NodeFinished
from devall.core.ids import node_of
from devall.core.messages import JsonValue
from devall.history.events import hidden_text
from devall.history.past import Past
from devall.history.story import Story
from devall.journal.base import StepRecord


def exchanges(past: Past, story: Story, within: Iterable[str] = ("",)) -> dict[str, StepRecord]:
    """The steps in which models were asked, by key; none for a run that is in no journal.

    Args:
        past: The run.
        story: Its course.
        within: Logical paths: only what lies in one of them is read.

    Raises:
        UsageError: a part of them is gone.
    """
    places = tuple(f"{path}/" for path in within)
    steps = past.steps(lambda key, kind: kind == "model" and key.startswith(places))
    nodes = {
        event.node
        for event in story.events
        if isinstance(event, NodeFinished) and not event.log_output
    }
    return _without_hidden(steps, nodes) if nodes else steps


def _without_hidden(steps: Mapping[str, StepRecord], nodes: set[str]) -> dict[str, StepRecord]:
    sources = nodes | {node.rpartition("/")[2] for node in nodes}
    texts = {
        str(text)
        for key, step in steps.items()
        if node_of(key) in nodes and (text := reply_of(step).get("content"))
    }
    found: dict[str, StepRecord] = {}
    for key, step in steps.items():
        request = cast("dict[str, JsonValue]", step.request or {})
        messages = cast("list[dict[str, JsonValue]]", request.get("messages", []))
        shown = [_hidden(each, sources, texts) for each in messages]
        value = step.value
        if node_of(key) in nodes and step.state == "done" and isinstance(value, Mapping):
            reply = cast("dict[str, JsonValue]", value)
            value = {**reply, "message": _hidden({**reply_of(step), "source": ""}, {""}, texts)}
        found[key] = replace(step, request={**request, "messages": shown}, value=value)
    return found


def reply_of(step: StepRecord) -> dict[str, JsonValue]:
    """The model's message; empty where it gave none."""
    if step.state != "done":
        return {}
    value = cast("dict[str, JsonValue]", step.value or {})
    return value.get("message") or {}


def _hidden(
    message: dict[str, JsonValue], sources: set[str], texts: set[str]
) -> dict[str, JsonValue]:
    content = message.get("content")
    if not content or (message.get("source") not in sources and str(content) not in texts):
        return message
    return {**message, "content": hidden_text({"chars": len(str(content))})}
