"""What nodes with `log_output: false` have said, taken out of whatever else would hold it.

What such a node says is its output, its model's replies and a human's answer. It is known again
as a whole message, by the node that a message comes from, and as a part of a longer text: in the
prompt of a later agent, in the arguments of a tool, in an error. Its tool calls and their results
are no output and stay.

Texts of fewer than `SHORTEST` characters are known only where they are the whole of a message.
Within texts they would be found by chance, and the gap in `answer with YES or NO` tells which of
the two was said.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, cast

from devall.core.events import (
    Event,
    HumanAnswered,
    ModelCallFinished,
    ModelCallStarted,
    NodeFinished,
    NodeStarted,
    RunFinished,
    UnitFinished,
)
from devall.core.messages import JsonValue, Message, to_json
from devall.core.outcome import Outcome

HIDDEN = "(kept out of logs"
"""How a text begins that stands for one which logs must not hold."""
SHORTEST = 8
"""Characters from which on a text is looked for within others."""
_FEW = 64
"""Texts up to which each is looked for by itself."""
_FIELDS = frozenset(
    {
        "inputs",
        "outputs",
        "messages",
        "reply",
        "task",
        "answer",
        "question",
        "arguments",
        "result",
        "message",
        "hint",
        "outcome",
    }
)
"""Fields of events that hold what somebody has said."""


class HiddenOutputs:
    """Knows what must not be written, and learns it from the events themselves."""

    def __init__(self, nodes: Collection[str] = ()) -> None:
        """Begin with the nodes that are known beforehand (`S/X` in a subgraph)."""
        self._nodes: set[str] = set()
        self._sources: set[str] = set()
        self._marks: set[str] = set()
        """What stands before the words of a node in a text that agents put together."""
        self._texts: set[str] = set()
        self._needles: dict[str, int] = {}
        """What is looked for within texts, with the characters of the text it stands for."""
        self._heads: dict[str, list[str]] = {}
        """The needles by their first characters."""
        for node in nodes:
            self._add_node(node)

    def learn(self, event: Event) -> bool:
        """Take in what the event tells of what is hidden; whether anything is."""
        if getattr(event, "log_output", True):
            if not self._nodes:
                return False
        elif isinstance(event, NodeFinished | UnitFinished):
            self._add_node(event.node)
        if getattr(event, "node", None) in self._nodes:
            for text in _said(event):
                self._add_text(text)
        self.learn_seen(_seen(event))
        return True

    def learn_said(self, message: Message) -> None:
        """Take in what a node has said that is hidden."""
        self._add_text(message.text)

    def learn_seen(self, messages: Iterable[Message]) -> None:
        """Take in what came along edges: a part of what was said, as a rule or an edge has it."""
        for message in messages:
            if message.source in self._sources and message.role != "tool":
                self._add_text(message.text)

    def cover(self, event: Event, body: dict[str, Any]) -> None:
        """Replace what must not be written in the event's fields; `body` has them by name."""
        if not self.learn(event):
            return
        if getattr(event, "node", None) in self._nodes:
            match event:
                case NodeFinished() | UnitFinished():
                    body["outputs"] = tuple(_without_content(m) for m in event.outputs)
                case HumanAnswered():
                    body["answer"] = hidden(event.answer)
                case ModelCallFinished(reply=Message() as reply):
                    body["reply"] = _without_content(reply) | _calls(reply)
                case _:
                    pass
        if isinstance(event, RunFinished) and event.answer in self._texts:
            body["answer"] = hidden(event.answer or "")
        for name in _FIELDS.intersection(body):
            body[name] = self.covered(body[name])

    def covered(self, value: Any) -> Any:
        """A value of an event without what must not be written."""
        match value:
            case str():
                return self._text(value)
            case Message():
                return self._message(value)
            case Outcome():
                return self._outcome(value)
            case Mapping():
                mapping = cast("Mapping[str, JsonValue]", value)
                return {key: self.covered(each) for key, each in mapping.items()}
            case list() | tuple():
                return [self.covered(each) for each in cast("list[JsonValue]", value)]
            case _:
                return value

    def _add_node(self, node: str) -> None:
        if node in self._nodes:
            return
        self._nodes.add(node)
        for source in {node, node.rpartition("/")[2]}:
            self._sources.add(source)
            # As agents/prompts.py and agents/recall.py write it.
            self._marks |= {f"=== {source} ===", f"=== {source}: ", f"- [{source}] "}

    def _add_text(self, text: str) -> None:
        if not text or text in self._texts:
            return
        self._texts.add(text)
        bare = text.strip()
        if len(bare) < SHORTEST:
            return
        for needle in _forms(bare):
            if needle not in self._needles:
                self._needles[needle] = len(bare)
                self._heads.setdefault(needle[:SHORTEST], []).append(needle)

    def _message(self, message: Message) -> JsonValue:
        text = message.text
        is_hidden = message.source in self._sources or text in self._texts
        if is_hidden or any(mark in text for mark in self._marks):
            return _without_content(message)
        whole = to_json(message)
        content = whole["content"]
        whole["content"] = (
            self._text(content)
            if isinstance(content, str)
            else [self._named(part, "text", "data") for part in content]
        )
        if message.tool_calls:
            whole["tool_calls"] = [
                self._named(call, "arguments", "extra") for call in whole["tool_calls"]
            ]
        return self._named(whole, "extra")

    def _outcome(self, outcome: Outcome) -> JsonValue:
        whole = asdict(outcome)
        if whole["error"] is not None:
            whole["error"] = self._named(whole["error"], "message", "hint")
        whole["waiting"] = [(path, self._text(question)) for path, question in outcome.waiting]
        return whole

    def _named(self, value: dict[str, JsonValue], *names: str) -> dict[str, JsonValue]:
        """The object, with these of its fields covered; the others are no words of anybody."""
        return {key: self.covered(each) if key in names else each for key, each in value.items()}

    def _text(self, text: str) -> str:
        if text in self._texts:
            return kept_out(len(text))
        for needle in self._found(text):
            text = text.replace(needle, kept_out(self._needles[needle]))
        return text

    def _found(self, text: str) -> list[str]:
        """The needles that stand in a text, the longest first."""
        if len(self._needles) <= _FEW:
            some: Iterator[str] = iter(self._needles)
        else:
            heads = {text[at : at + SHORTEST] for at in range(len(text) - SHORTEST + 1)}
            some = (needle for head in heads & self._heads.keys() for needle in self._heads[head])
        return sorted((needle for needle in some if needle in text), key=len, reverse=True)


def _said(event: Event) -> Iterator[str]:
    """What a node says in an event."""
    match event:
        case NodeFinished() | UnitFinished():
            yield from (message.text for message in event.outputs)
        case HumanAnswered():
            yield event.answer
        case ModelCallFinished(reply=Message() as reply):
            yield reply.text
        case _:
            pass


def _seen(event: Event) -> tuple[Message, ...]:
    """What a node or its model is shown in an event."""
    match event:
        case NodeStarted():
            return event.inputs
        case ModelCallStarted():
            return event.messages
        case _:
            return ()


def _forms(text: str) -> Iterator[str]:
    """A text as it stands in others: as it is, in JSON, and in JSON within JSON."""
    yield text
    for ascii_only in (True, False):
        escaped = text
        for _ in range(2):
            escaped = json.dumps(escaped, ensure_ascii=ascii_only)[1:-1]
            yield escaped


def hidden(text: str) -> dict[str, JsonValue]:
    """What stands in a file in place of a text that is hidden as a whole."""
    return {"hidden": True, "chars": len(text)}


def kept_out(chars: object) -> str:
    """What stands for people in place of a text of so many characters."""
    return f"{HIDDEN}: {chars} characters)"


def _calls(reply: Message) -> dict[str, JsonValue]:
    calls = to_json(replace(reply, content="")).get("tool_calls")
    return {"tool_calls": calls} if calls else {}


def _without_content(message: Message) -> dict[str, JsonValue]:
    whole = to_json(message)
    shown = {key: whole[key] for key in ("role", "source", "keep") if key in whole}
    return {**shown, "content": hidden(message.text)}
