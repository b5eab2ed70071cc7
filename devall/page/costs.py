"""What a run has used, by node, by model and by tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from devall.core.amounts import dollars
from devall.core.messages import JsonValue
from devall.history.past import Past
from devall.history.story import ModelCall, Story


@dataclass(frozen=True, slots=True)
class Used:
    """What one node, one model or the whole run has used."""

    name: str
    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usd: float | None = 0.0
    """None: there were calls, and the price of none is known."""
    unknown_calls: int = 0
    """Calls whose tokens nobody counted."""
    unpriced_calls: int = 0
    anchor: str = ""
    share: float = 0
    """Percent of the whole: of the money where it is known, else of the tokens."""

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    @property
    def cost(self) -> str:
        """The money in words."""
        if self.usd is None or (self.unpriced_calls and not self.usd):
            return "unknown"
        at_least = "≥ " if self.unpriced_calls else ""
        return f"{at_least}{dollars(self.usd)}"


@dataclass(slots=True)
class ToolTotal:
    """The calls of one tool."""

    name: str
    server: str
    calls: int = 0
    failed: int = 0
    seconds: float = 0


@dataclass(slots=True)
class Costs:
    """All tables."""

    total: Used
    by: str = "tokens"
    """What the shares are of."""
    nodes: list[Used] = field(default_factory=list[Used])
    models: list[Used] = field(default_factory=list[Used])
    tools: list[ToolTotal] = field(default_factory=list[ToolTotal])

    @property
    def has_servers(self) -> bool:
        """Whether tools of servers were called."""
        return any(each.server for each in self.tools)


def costs_of(
    past: Past, story: Story, anchors: Mapping[str, str], say: Callable[[str], str]
) -> Costs:
    """What the run has used.

    Args:
        past: The run; where its journal has its totals, they are those.
        story: Its course, which tells the rest.
        anchors: Where the page tells more, by node.
        say: Makes a text fit to be shown on one line.
    """
    result = past.row.result if past.row is not None else None
    if result is not None and "usage_by_node" in result:
        total = _of_json("", result["usage"])
        nodes = _all_of_json(result["usage_by_node"])
        models = _all_of_json(result.get("usage_by_model") or {})
    else:
        nodes, models = _told(story)
        finished = story.finished
        total = _sum(nodes) if finished is None else _of_json("", finished.usage.to_json())
    costs = Costs(total, "cost" if total.usd else "tokens")
    whole = total.usd or total.tokens
    for found, into in ((nodes, costs.nodes), (models, costs.models)):
        for used in found:
            if not (used.model_calls or used.tool_calls):
                continue
            part = (used.usd or 0.0) if total.usd else used.tokens
            share = min(100.0, part / whole * 100) if whole else 0
            anchor = anchors.get(used.name, "") if into is costs.nodes else ""
            into.append(replace(used, name=say(used.name), anchor=anchor, share=share))
        into.sort(key=lambda each: -each.share)
    costs.tools = _tools(story, say)
    return costs


def _told(story: Story) -> tuple[list[Used], list[Used]]:
    """What the calls of the course have used, by node and by model."""
    nodes: dict[str, Used] = {}
    models: dict[str, Used] = {}
    for visit in story.visits.values():
        for call in visit.calls:
            for name, found in ((visit.node, nodes), (call.model, models)):
                found[name] = _with(found.get(name, Used(name)), call)
        if visit.tools:
            used = nodes.get(visit.node, Used(visit.node))
            nodes[visit.node] = replace(used, tool_calls=used.tool_calls + len(visit.tools))
    return list(nodes.values()), list(models.values())


def _with(used: Used, call: ModelCall) -> Used:
    end = call.finished
    counted = [each.usage for each in call.failures] + [end.usage if end is not None else None]
    prices = [each.usd for each in call.failures] + [end.usd if end is not None else None]
    usages = [usage for usage in counted if usage is not None]
    known = [usd for usd in prices if usd is not None]
    usd = sum(known) + (used.usd or 0.0) if known or used.usd else None
    return replace(
        used,
        model_calls=used.model_calls + max(1, call.attempts),
        input_tokens=used.input_tokens + sum(each.input_tokens for each in usages),
        output_tokens=used.output_tokens + sum(each.output_tokens for each in usages),
        cached_tokens=used.cached_tokens + sum(each.cached_tokens for each in usages),
        usd=usd,
        unknown_calls=used.unknown_calls + len(counted) - len(usages),
        unpriced_calls=used.unpriced_calls + len(prices) - len(known),
    )


def _sum(parts: Iterable[Used]) -> Used:
    total = Used("")
    for each in parts:
        known = [usd for usd in (total.usd, each.usd) if usd is not None]
        total = replace(
            total,
            model_calls=total.model_calls + each.model_calls,
            tool_calls=total.tool_calls + each.tool_calls,
            input_tokens=total.input_tokens + each.input_tokens,
            output_tokens=total.output_tokens + each.output_tokens,
            cached_tokens=total.cached_tokens + each.cached_tokens,
            usd=sum(known) if known else None,
            unknown_calls=total.unknown_calls + each.unknown_calls,
            unpriced_calls=total.unpriced_calls + each.unpriced_calls,
        )
    if total.unpriced_calls and not total.usd:
        return replace(total, usd=None)
    return total


def _all_of_json(found: Mapping[str, JsonValue]) -> list[Used]:
    return [_of_json(name, each) for name, each in found.items()]


def _of_json(name: str, found: JsonValue) -> Used:
    """Totals as `devall run --json` has them."""
    each = cast("Mapping[str, JsonValue]", found)
    usd = each.get("usd", 0.0)
    return Used(
        name,
        int(each.get("model_calls", 0)),
        int(each.get("tool_calls", 0)),
        int(each.get("input_tokens", 0)),
        int(each.get("output_tokens", 0)),
        int(each.get("cached_tokens", 0)),
        None if usd is None else float(usd),
        int(each.get("unknown_calls", 0)),
        int(each.get("unpriced_calls", 0)),
    )


def _tools(story: Story, say: Callable[[str], str]) -> list[ToolTotal]:
    found: dict[tuple[str, str], ToolTotal] = {}
    for visit in story.visits.values():
        for use in visit.tools:
            key = use.started.tool, use.started.server
            total = found.setdefault(key, ToolTotal(say(key[0]), say(key[1])))
            total.calls += 1
            if use.finished is not None:
                total.failed += use.finished.is_error
                total.seconds += use.finished.seconds
    return sorted(found.values(), key=lambda each: -each.calls)
