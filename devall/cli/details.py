"""What is said about events that only somebody wants to hear of who asked for every one."""

from __future__ import annotations

from collections.abc import Callable

from devall.core.amounts import count, dollars, duration
from devall.core.events import (
    EdgeFired,
    EmbeddingFinished,
    Event,
    HistoryCut,
    HumanAnswered,
    LoopRound,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallStarted,
    NodeStarted,
    ToolCallStarted,
    ToolProgress,
    UnitFailed,
    UnitFinished,
    UnitStarted,
)
from devall.core.messages import JsonValue
from devall.core.usage import TokenUsage

Say = Callable[[str], str]


def detail(event: Event, say: Say, quote: Say, call: Callable[[str, JsonValue], str]) -> str | None:
    """The line about an event; None: there is nothing to say.

    Args:
        event: One that is not spoken of otherwise.
        say: A name as it may be shown.
        quote: What somebody has said, as it may be shown.
        call: A tool call as one would write it.
    """
    match event:
        case NodeStarted():
            run = f" (run {event.visit})" if event.visit > 1 else ""
            return f"{say(event.node)}{run}: begins with {count(len(event.inputs), 'input')}"
        case EdgeFired():
            return f"{say(event.source)} -> {say(event.target)}: fires"
        case LoopRound():
            of = f" of at most {event.bound:,}" if event.bound is not None else ""
            return f"loop {', '.join(map(say, event.loop))}: round {event.round:,}{of}"
        case UnitStarted():
            return f"{say(event.node)}: {_unit(event)} begins"
        case UnitFinished():
            return f"{say(event.node)}: {_unit(event)} done in {duration(event.seconds)}"
        case UnitFailed():
            failed = f"{_unit(event)} failed after {duration(event.seconds)}"
            return f"{say(event.node)}: {failed}: {quote(event.message)} [{event.code}]"
        case HumanAnswered():
            return f"{say(event.node)}: was answered: {quote(event.answer)}"
        case HistoryCut():
            cut = f"{count(event.left_out, 'message')} left out, {event.shortened:,} shortened"
            size = f"{event.tokens:,} of at most {event.most:,} tokens"
            return f"{say(event.node)}: turn {event.turn}: {cut}: {size}"
        case EmbeddingFinished():
            texts = f"{count(event.texts, 'text')} embedded by {say(event.model)}"
            return f"memory {say(event.store)}: {texts} in {duration(event.seconds)}"
        case ToolCallStarted():
            return f"{say(event.node)}: {call(event.tool, event.arguments)} begins"
        case ToolProgress():
            of = f"/{event.total:g}" if event.total else ""
            told = f" {quote(event.message)}" if event.message else ""
            return f"{say(event.node)}: {say(event.tool)}: {event.progress:g}{of}{told}"
        case _:
            return _of_model(event, say, quote)


def _of_model(event: Event, say: Say, quote: Say) -> str | None:
    match event:
        case ModelCallStarted():
            again = f", attempt {event.attempt}" if event.attempt > 1 else ""
            sent = count(len(event.messages), "new message")
            tools = f", {count(len(event.tools), 'tool')}" if event.tools else ""
            asked = f"{say(event.model)} is asked, turn {event.turn}{again}: {sent}{tools}"
            return f"{say(event.node)}: {asked}"
        case ModelCallFinished():
            took = "from the journal" if event.replayed else duration(event.seconds)
            parts = [f"{say(event.model)}, turn {event.turn} ({took})", *_used(event.usage)]
            if event.usd is not None:
                parts.append(dollars(event.usd))
            if event.reply is not None and event.reply.tool_calls:
                parts.append(count(len(event.reply.tool_calls), "tool call"))
            elif event.finish_reason:
                parts.append(event.finish_reason)
            return f"{say(event.node)}: {', '.join(parts)}"
        case ModelCallFailed():
            return f"{say(event.node)}: {quote(event.message)}"
        case _:
            return None


def _used(usage: TokenUsage | None) -> list[str]:
    if usage is None:
        return ["tokens unknown"]
    return [f"{usage.input_tokens:,} tokens in", f"{usage.output_tokens:,} out"]


def _unit(event: UnitStarted | UnitFinished | UnitFailed) -> str:
    layer = f" of layer {event.layer}" if event.layer else ""
    return f"unit {event.unit:,} of {event.units:,}{layer}"
