"""What went to models and came back, from the journal; what `log_output` hides stays hidden."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

from devall.core.events import NodeFinished
from devall.core.ids import node_of
from devall.core.messages import JsonValue, Message, from_json, to_json, user
from devall.history.past import Past
from devall.history.story import Story
from devall.journal.base import StepRecord
from devall.telemetry.hidden import HiddenOutputs, kept_out


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
    nodes = {  # what they said may stand anywhere
        event.node
        for event in story.events
        if isinstance(event, NodeFinished) and not event.log_output
    }
    if not nodes:
        return steps
    hidden = HiddenOutputs(nodes)
    private = past.steps(lambda key, kind: kind in {"model", "human"} and node_of(key) in nodes)
    for step in private.values():
        if isinstance(step.value, str):
            hidden.learn_said(user(step.value))
        elif reply := reply_of(step):
            hidden.learn_said(from_json(reply))
    return _without_hidden(steps, nodes, hidden)


def exchanges_told(story: Story, within: Iterable[str] = ("",)) -> dict[str, StepRecord]:
    """The same as the events tell it, for a run in no journal: without the settings that went along.

    A conversation that was cut to fit the model's window stands there as it was before.

    Args:
        story: Its course.
        within: Logical paths: only what lies in one of them is told.
    """
    places = tuple(f"{path}/" for path in within)
    said: dict[str, list[JsonValue]] = {}
    found: dict[str, StepRecord] = {}
    for visit in story.visits.values():
        for call in visit.calls:
            if call.started is None or not call.key.startswith(places):
                continue
            conversation = said.setdefault(call.path, [])
            conversation += map(to_json, call.started.messages)
            tools = [{"name": name} for name in call.started.tools]
            request = {"messages": list(conversation), "tools": tools}
            reply = call.finished and call.finished.reply
            value = None
            if reply is not None:
                node = visit.node.rpartition("/")[2]
                conversation.append(to_json(replace(reply, source=node)))
                value = {"message": to_json(reply)}
            state = "begun" if value is None else "done"
            found[call.key] = StepRecord(call.key, "model", "", value, state, request)
    return found


def _without_hidden(
    steps: Mapping[str, StepRecord], nodes: set[str], hidden: HiddenOutputs
) -> dict[str, StepRecord]:
    found: dict[str, StepRecord] = {}
    for key, step in steps.items():
        request = cast("dict[str, JsonValue]", step.request or {})
        messages = [from_json(each) for each in request.get("messages", [])]
        hidden.learn_seen(messages)
        value = step.value
        if step.state == "done" and (reply := reply_of(step)):
            message = from_json(reply)
            if node_of(key) in nodes:
                calls = {"tool_calls": reply["tool_calls"]} if "tool_calls" in reply else {}
                told = {"role": message.role, "content": _kept_out(message)} | calls
            else:
                told = _readable(hidden.covered(message))
            value = {**cast("dict[str, JsonValue]", value), "message": told}
        shown = [_readable(hidden.covered(message)) for message in messages]
        found[key] = replace(step, request={**request, "messages": shown}, value=value)
    return found


def reply_of(step: StepRecord) -> dict[str, JsonValue]:
    """The model's message; empty where it gave none."""
    if step.state != "done":
        return {}
    value = cast("dict[str, JsonValue]", step.value or {})
    return value.get("message") or {}


def _readable(message: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The message as it is read: what is hidden is only described."""
    match message["content"]:
        case {"hidden": True, "chars": chars}:
            return {**message, "content": kept_out(chars)}
        case _:
            return message


def _kept_out(message: Message) -> str:
    return kept_out(len(message.text)) if message.text else ""
