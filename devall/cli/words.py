"""What is said about an event: a line, and at most one text below it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from devall.cli.details import detail
from devall.cli.streams import one_line
from devall.core.amounts import count, dollars, duration
from devall.core.events import (
    EdgeFired,
    Event,
    HumanAsked,
    LoopLeft,
    LoopRound,
    MemoryIndexed,
    ModelCallDelayed,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallStarted,
    NodeFailed,
    NodeFinished,
    NodeSkipped,
    NodeStarted,
    RunResumed,
    RunStarted,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    ToolProgress,
    UnitFailed,
    UnitFinished,
    UnitStarted,
    Warned,
)
from devall.core.messages import JsonValue
from devall.core.usage import Usage
from devall.telemetry.hidden import HiddenOutputs
from devall.telemetry.redaction import Redactor

Tone = Literal["good", "bad", "warning", "question", "tool", "quiet", "plain"]

_SILENT = frozenset(
    {NodeStarted, EdgeFired, ModelCallFinished, UnitStarted, ToolProgress, TextDelta}
)
"""Events that nothing is said of, unless everything is wanted."""
LONGEST_ARGUMENTS = 40
"""Characters of a tool's arguments."""
LONGEST_RESULT = 160
"""Characters of a tool's result."""


@dataclass(frozen=True, slots=True)
class Line:
    """Something that is said."""

    tone: Tone
    text: str
    body: str = ""
    """A text that belongs to it: what a node has said."""
    is_passing: bool = False
    """Whether a live view shows it anyway while it lasts."""
    is_one_line: bool = False
    """Whether its end may be cut to make it fit on one line."""


class Teller:
    """Puts events into words, without secrets; remembers what a later line needs."""

    def __init__(self, redactor: Redactor | None = None, *, is_verbose: bool = False) -> None:
        """Make one; `is_verbose`: there is a line for every event."""
        self._redactor = redactor or Redactor()
        self.is_verbose = is_verbose
        self._hidden = HiddenOutputs()
        self._arguments: dict[tuple[str, str], JsonValue] = {}
        self._units: dict[tuple[str, int], int] = {}
        """By node's run and layer: the units that are over."""

    def line(self, event: Event) -> Line | None:
        """What is said about the event; None = nothing."""
        kind = type(event)
        if kind in _SILENT and not self.is_verbose:
            return None
        self._hidden.learn(event)
        line = self._line(event)
        if not self.is_verbose or kind is TextDelta:
            return line
        if line is None or (line.is_passing and isinstance(event, LoopRound | UnitFinished)):
            text = detail(event, self._say, self._quote, self.call)
            return None if text is None else Line("quiet", text)
        return replace(line, is_passing=False)

    def _line(self, event: Event) -> Line | None:
        match event:
            case NodeFinished():
                return self._finished(event)
            case NodeFailed():
                return self._failed(event)
            case UnitFinished() | UnitFailed():
                return self._unit(event)
            case NodeSkipped():
                return Line("quiet", f"{self._say(event.node)}: skipped")
            case LoopRound(round=1):
                return None
            case LoopRound():
                text = f"loop {self._names(event.loop)}: round {event.round}"
                return Line("quiet", text, is_passing=True)
            case LoopLeft():
                how = "left" if event.exited else "ended, as nothing triggered another round,"
                rounds = count(event.rounds, "round")
                return Line("quiet", f"loop {self._names(event.loop)}: {how} after {rounds}")
            case HumanAsked():
                asked = f"{self._say(event.node)}: asks a human: {self._quote(event.question)}"
                return Line("question", asked, is_passing=True)
            case MemoryIndexed():
                what = f"{event.done} of {count(event.files, 'file')} read"
                passages = count(event.passages, "passage")
                return Line("quiet", f"memory {self._say(event.store)}: {what}, {passages}")
            case Warned():
                node = f"{self._say(event.node)}: " if event.node else ""
                return Line("warning", f"{node}{self._quote(event.message)} [{event.code}]")
            case RunResumed():
                return Line("plain", self._say(_of_resumed(event)))
            case RunStarted():
                nodes = count(len(event.nodes), "node")
                return Line("quiet", f"run {event.run_id}: {self._say(event.workflow)}, {nodes}")
            case _:
                return self._call(event)

    def call(self, tool: str, arguments: JsonValue) -> str:
        """A tool call as one would write it: `rand_num(a=1, b=100)`."""
        shown = self._redactor.value(self._hidden.covered(arguments))
        if isinstance(shown, dict):
            named = cast(dict[str, JsonValue], shown)
            words = ", ".join(f"{name}={_json(value)}" for name, value in named.items())
        else:
            words = _json(shown)
        return f"{self._say(tool)}({one_line(words, LONGEST_ARGUMENTS)})"

    def text(self, text: str) -> str:
        """A text without secrets."""
        return self._redactor.text(text)

    def settled(self, text: str) -> str:
        """The text so far of a stream, without secrets or what may become one."""
        return self._redactor.settled(text)

    def _call(self, event: Event) -> Line | None:
        match event:
            case ModelCallStarted(turn=1, attempt=1):
                asked = f"{self._say(event.node)}: {self._say(event.model)} is asked"
                return Line("quiet", asked, is_passing=True)
            case ModelCallFailed(wait=None):
                return None  # what fails by it says so
            case ModelCallFailed():
                again = f"; again in {duration(event.wait or 0)}"
                message = self._quote(event.message, 400)
                return Line("warning", f"{self._say(event.node)}: {message}{again}")
            case ModelCallDelayed():
                told = f"waits {duration(event.seconds)}, as its endpoint asked"
                text = f"{self._say(event.node)}: {self._say(event.model)} {told}"
                return Line("warning", text, is_passing=True)
            case ToolCallStarted():
                self._arguments[event.path, event.call_id] = event.arguments
                return None
            case ToolCallFinished():
                arguments = self._arguments.pop((event.path, event.call_id), {})
                call = self.call(event.tool, arguments)
                result = self._quote(event.result, LONGEST_RESULT) or "nothing"
                time = "from the journal" if event.replayed else duration(event.seconds)
                how = f"failed ({time}): " if event.is_error else f"({time}) → "
                text = f"{self._say(event.node)}: {call} {how}{result}"
                return Line("bad" if event.is_error else "tool", text, is_one_line=True)
            case _:
                return None

    def _unit(self, event: UnitFinished | UnitFailed) -> Line | None:
        """How far the units are, at most ten times; each one that is left out."""
        key = event.path.rpartition("/unit:")[0], event.layer
        done = self._units[key] = self._units.get(key, 0) + 1
        if done == event.units:
            del self._units[key]
        if isinstance(event, UnitFailed) and event.continued:
            text = f"unit {event.unit} of {event.units:,} failed and is left out"
            message = self._quote(event.message, 400)
            return Line("warning", f"{self._say(event.node)}: {text}: {message} [{event.code}]")
        if (
            isinstance(event, UnitFailed)
            or done * 10 // event.units == (done - 1) * 10 // event.units
        ):
            return None
        layer = f" of layer {event.layer}" if event.layer else ""
        text = f"{self._say(event.node)}: {done:,}/{event.units:,} units{layer} done"
        return Line("quiet", text, is_passing=True)

    def _finished(self, event: NodeFinished) -> Line:
        text = f"{self._visit(event)}: done in {duration(event.seconds)}"
        said = [message.text for message in event.outputs]
        if not said:
            return Line("good", f"{text}, without a word")
        if not event.log_output:
            return Line("good", f"{text} (its output is kept out of logs)")
        return Line("good", text, self.text(self._hidden.covered(said[-1])))

    def _failed(self, event: NodeFailed) -> Line:
        after = f"{self._visit(event)}: failed after {duration(event.seconds)}"
        goes_on = "; the run goes on without it" if event.continued else ""
        text = f"{after}: {self._quote(event.message, 1000)} [{event.code}]{goes_on}"
        return Line("warning" if event.continued else "bad", text)

    def _visit(self, event: NodeFinished | NodeFailed) -> str:
        return self._say(event.node) + (f" (run {event.visit})" if event.visit > 1 else "")

    def _names(self, loop: tuple[str, ...]) -> str:
        shown = [self._say(node, 40) for node in loop[:4]]
        return ", ".join([*shown, "…"] if len(loop) > len(shown) else shown)

    def _say(self, text: str, longest: int = 200) -> str:
        return one_line(self._redactor.text(text), longest)

    def _quote(self, text: str, longest: int = 200) -> str:
        """What somebody has said, without what logs must not hold."""
        return self._say(self._hidden.covered(text), longest)


def money(usage: Usage, unpriced: Sequence[str] = ()) -> str:
    """What it cost: `$0.012`, `at least $0.012`, `cost unknown (no price for m)`."""
    named = f" (no price for {', '.join(unpriced)})" if unpriced else ""
    if usage.usd is None or (not usage.usd and usage.unpriced_calls):
        return f"cost unknown{named}"
    at_least = "at least " if usage.unpriced_calls else ""
    return f"{at_least}{dollars(usage.usd)}{named}"


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _of_resumed(event: RunResumed) -> str:
    text = f"going on with what is kept: {count(event.kept, 'step')}"
    if event.changed:
        text += f"; run again: {', '.join(event.changed)}"
    if event.following:
        text += f", and what follows: {', '.join(event.following)}"
    return text
