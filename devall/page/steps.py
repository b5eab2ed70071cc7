"""What a run of a node did, in order: turns of a model, tool calls, questions, warnings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from devall.core.amounts import count, dollars, duration
from devall.core.events import HistoryCut, Warned
from devall.core.messages import JsonValue, MediaPart, Message, from_json
from devall.history.exchanges import reply_of
from devall.history.story import ModelCall, Question, ToolUse, Visit
from devall.journal.base import StepRecord
from devall.page.clock import Clock
from devall.page.images import Images
from devall.page.texts import Text, Texts, pretty

LONGEST_ARGUMENTS = 60
"""Characters of a tool's arguments, on its line."""
LONG = 280
"""Characters from which on a text is not said twice."""


@dataclass(frozen=True, slots=True)
class Said:
    """One message."""

    role: str
    source: str
    """The node it comes from; empty: none."""
    text: Text
    marks: Sequence[str] = ()
    """What else is to be known of it: that it is kept, what is attached."""
    asks: Sequence[str] = ()
    """The tool calls that it asks for."""
    images: Sequence[tuple[str, str]] = ()
    """Pictures: what an `<img>` shows, and their names."""
    same: str = ""
    """Where the same long text stands already, in words; the text is not shown then."""


@dataclass(slots=True)
class Turn:
    """A request to a model and its reply, attempts together."""

    number: int
    model: str
    provider: str
    facts: list[str]
    failures: list[str] = field(default_factory=list[str])
    """Why attempts failed."""
    tools: list[str] = field(default_factory=list[str])
    """What it was offered."""
    prompt: list[Said] = field(default_factory=list[Said])
    is_told: bool = True
    """Whether it is known what was sent."""
    goes_on: bool = False
    """Whether the prompt stands behind the messages of the turn before."""
    reply: Said | None = None
    is_open: bool = False
    """Whether there was no answer."""
    kind: Literal["turn"] = "turn"


@dataclass(slots=True)
class Use:
    """A call of a tool."""

    name: str
    server: str
    call: str
    """As one would write it, short."""
    facts: list[str]
    state: Literal["good", "bad", "open"]
    result: str
    """Its beginning."""
    arguments: Text
    answer: Text
    kind: Literal["tool"] = "tool"


@dataclass(slots=True)
class Asked:
    """A question to a human."""

    question: Text
    answer: Text | None
    facts: list[str]
    node: str = ""
    anchor: str = ""
    kind: Literal["human"] = "human"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that a reader should know."""

    text: str
    code: str = ""
    kind: Literal["notice"] = "notice"


Step = Turn | Use | Asked | Notice


@dataclass(slots=True)
class Steps:
    """Tells what runs of nodes did."""

    texts: Texts
    clock: Clock
    records: Mapping[str, StepRecord]
    """What models were asked, by key, where events do not tell."""
    images: Images

    def said(self, message: Message, known: Mapping[str, str] | None = None) -> Said:
        """A message as the page shows it.

        Args:
            message: The message.
            known: Long texts that stand above already, and what they are called.
        """
        marks = ["kept"] if message.keep else []
        images: list[tuple[str, str]] = []
        for part in message.parts:
            if isinstance(part, MediaPart):
                name = self.texts.line(part.name or part.attachment or part.url, 80)
                marks.append(f"{part.type}: {name} ({self.texts.line(part.mime_type, 40)})")
                if source := self.images.source(part):
                    images.append((source, name))
        asks = [self.texts.line(f"{call.name}({call.arguments})") for call in message.tool_calls]
        same = (known or {}).get(message.text, "") if len(message.text) >= LONG else ""
        text = self.texts.add("" if same else message.text)
        source = self.texts.line(message.source, 80)
        return Said(message.role, source, text, tuple(marks), tuple(asks), tuple(images), same)

    def of(self, visit: Visit) -> dict[str, list[Step]]:
        """What the run of a node did, by path: its own, and those of its units."""
        found: dict[str, list[Step]] = {}
        outputs = {each.text: "the output above" for each in visit.outputs}
        sent: dict[str, list[Message]] = {}
        known = {each.text: "the input above" for each in visit.inputs}
        for each in visit.happenings:
            match each:
                case ModelCall():
                    path = each.path
                    step = self._turn(each, known, outputs, sent.get(path))
                    sent[path] = self._messages(each)
                case ToolUse():
                    path, step = each.started.path, self._use(each)
                    if each.finished is not None:
                        known[each.finished.result] = f"the result of {step.name} above"
                case Question():
                    path, step = each.path, self.asked(each, visit.node)
                case Warned():
                    path = each.path
                    step = Notice(self.texts.line(each.message, 600), self.texts.line(each.code))
                case HistoryCut():
                    path, step = each.path, Notice(_cut(each))
            found.setdefault(path, []).append(step)
        return found

    def asked(self, question: Question, node: str, anchor: str = "") -> Asked:
        """A question to a human."""
        spans = self.clock.humans.get(question.path, [])
        took = sum(span.seconds for span in spans)
        facts = [f"after {duration(took)}"] if spans and question.answer is not None else []
        answer = None if question.answer is None else self.texts.add(question.answer)
        name = self.texts.line(node, 80)
        return Asked(self.texts.add(question.text), answer, facts, name, anchor)

    def _messages(self, call: ModelCall) -> list[Message]:
        """The whole request, where the journal has it."""
        record = self.records.get(call.key)
        request = cast("Mapping[str, JsonValue]", (record and record.request) or {})
        messages = cast("list[dict[str, JsonValue]]", request.get("messages") or [])
        return [_message(each) for each in messages]

    def _turn(
        self,
        call: ModelCall,
        known: Mapping[str, str],
        outputs: Mapping[str, str],
        before: list[Message] | None,
    ) -> Turn:
        say = self.texts.line
        turn = Turn(call.turn, say(call.model, 80), say(call.provider, 40), _facts(call))
        turn.failures = [
            f"attempt {each.attempt} failed: {say(each.message, 600)}"
            + (f"; again in {duration(each.wait)}" if each.wait is not None else "")
            for each in call.failures
        ]
        turn.is_open = call.finished is None
        started = self.clock.sent.get((call.path, call.turn)) or call.started
        record = self.records.get(call.key)
        if started is not None and started.messages:
            prompt, turn.tools = list(started.messages), [say(each, 80) for each in started.tools]
            turn.goes_on = call.turn > 1
        else:
            prompt = self._messages(call)
            request = cast("Mapping[str, JsonValue]", (record and record.request) or {})
            tools = cast("list[Mapping[str, JsonValue]]", request.get("tools") or [])
            turn.tools = [say(str(each.get("name")), 80) for each in tools]
            if before and prompt[: len(before)] == before:
                prompt, turn.goes_on = prompt[len(before) :], True
            turn.is_told = bool(prompt) or record is not None
        turn.prompt = [self.said(message, known) for message in prompt]
        reply = call.finished.reply if call.finished is not None else None
        if reply is None and record is not None and (told := reply_of(record)):
            reply = _message(told)
        if reply is not None:
            turn.reply = self.said(reply, {} if reply.tool_calls else outputs)
        return turn

    def _use(self, use: ToolUse) -> Use:
        started, end = use.started, use.finished
        say = self.texts.line
        name = say(started.tool, 80)
        if end is None:
            facts, state, result = ["no answer"], "open", ""
        else:
            facts = ["from the journal" if end.replayed else duration(end.seconds)]
            state, result = ("bad" if end.is_error else "good"), end.result
        return Use(
            name,
            say(started.server, 80),
            f"{name}({say(_arguments(started.arguments), LONGEST_ARGUMENTS)})",
            facts,
            state,
            say(result, 120),
            self.texts.add(pretty(started.arguments)),
            self.texts.add(result),
        )


def _arguments(arguments: JsonValue) -> str:
    """Arguments as one would write them: `word="tide", most=3`."""
    if not isinstance(arguments, Mapping):
        return _json(arguments)
    named = cast("Mapping[str, JsonValue]", arguments)
    return ", ".join(f"{name}={_json(value)}" for name, value in named.items())


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _message(value: Mapping[str, JsonValue]) -> Message:
    return from_json({"content": "", **value})


def _cut(event: HistoryCut) -> str:
    return (
        f"turn {event.turn}: {count(event.left_out, 'message')} left out and"
        f" {count(event.shortened, 'result')} shortened, to fit {event.most:,} tokens"
    )


def _facts(call: ModelCall) -> list[str]:
    end = call.finished
    if end is None:
        return ["no answer"]
    facts = ["from the journal" if end.replayed else duration(end.seconds)]
    if (usage := end.usage) is not None:
        cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
        facts.append(
            f"{count(usage.input_tokens, 'token')} in{cached}, {usage.output_tokens:,} out"
        )
    if end.usd is not None:
        facts.append(dollars(end.usd))
    if end.finish_reason and end.finish_reason not in {"stop", "tool_calls"}:
        facts.append(f"finished: {end.finish_reason}")
    if call.attempts > 1:
        facts.append(count(call.attempts, "attempt"))
    return facts
