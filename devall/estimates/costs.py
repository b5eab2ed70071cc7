"""What something costs at most and at least: calls, tokens, money; and sums under limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from devall.estimates.bounds import NOTHING, Bound, total
from devall.estimates.ceilings import Ceiling


@dataclass(frozen=True, slots=True)
class Cost:
    """Upper bounds, failed attempts of model calls left out."""

    model_calls: Bound = NOTHING
    tool_calls: Bound = NOTHING
    input_tokens: Bound = NOTHING
    output_tokens: Bound = NOTHING
    tokens: Bound = NOTHING
    """Both together."""
    usd: Bound = NOTHING
    attempts: Bound = NOTHING
    """Model calls, each repeated as often as `retry` allows."""


@dataclass(frozen=True, slots=True)
class Least:
    """What is used at least by a run that completes."""

    runs: int = 0
    model_calls: int = 0
    input_tokens: int = 0
    usd: float | None = 0.0
    """None: no price is known."""

    def __add__(self, other: Least) -> Least:
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return Least(
            self.runs + other.runs,
            self.model_calls + other.model_calls,
            self.input_tokens + other.input_tokens,
            usd,
        )


@dataclass(frozen=True, slots=True)
class Largest:
    """What one call uses at most."""

    input_tokens: Bound = NOTHING
    output_tokens: Bound = NOTHING
    usd: Bound = NOTHING
    attempts: int = 1

    def most(self, other: Largest) -> Largest:
        """What no call of either goes over."""
        return Largest(
            self.input_tokens.most(other.input_tokens),
            self.output_tokens.most(other.output_tokens),
            self.usd.most(other.usd),
            max(self.attempts, other.attempts),
        )


def added(costs: Sequence[Cost]) -> Cost:
    """All of them together."""
    return Cost(
        total(each.model_calls for each in costs),
        total(each.tool_calls for each in costs),
        total(each.input_tokens for each in costs),
        total(each.output_tokens for each in costs),
        total(each.tokens for each in costs),
        total(each.usd for each in costs),
        total(each.attempts for each in costs),
    )


def under(cost: Cost, largest: Largest, ceiling: Ceiling, *, around: bool = True) -> Cost:
    """The cost within limits: fewer calls are fewer tokens as well.

    Args:
        cost: Without the limits.
        largest: What one of the calls uses at most.
        ceiling: The limits.
        around: Whether those around them count as well.
    """
    hold = ceiling.holds if around else ceiling.own
    calls = hold(cost.model_calls, "max_model_calls")
    found = replace(cost, model_calls=calls, tool_calls=hold(cost.tool_calls, "max_tool_calls"))
    if calls != cost.model_calls:
        sent = cost.input_tokens.least(calls * largest.input_tokens)
        written = cost.output_tokens.least(calls * largest.output_tokens)
        found = replace(
            found,
            input_tokens=sent,
            output_tokens=written,
            tokens=cost.tokens.least(sent + written),
            usd=cost.usd.least(calls * largest.usd),
            attempts=cost.attempts.least(calls * largest.attempts),
        )
    tokens = hold(found.tokens, "max_tokens")
    return replace(
        found,
        input_tokens=hold(found.input_tokens, "max_tokens"),
        output_tokens=hold(found.output_tokens, "max_tokens"),
        tokens=tokens,
        usd=hold(found.usd, "max_usd"),
    )
