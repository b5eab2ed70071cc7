"""Bounds of a run, a graph or a node."""

from __future__ import annotations

from typing import Literal

from devall.config.base import ConfigModel, Count, CountOrNone, NotNegative, Positive

BOUNDS = ("max_seconds", "max_model_calls", "max_tool_calls", "max_tokens", "max_usd")
"""Those that add up over a graph and all that runs inside of it; absent = no bound."""


class Limits(ConfigModel):
    """Bounds that are looked at before and after each call; absent = no bound.

    Before a model call what it will use at most is estimated: the length of the request and its
    `max_tokens`. A call that would go over is not made. A reply that went over all the same is
    kept, and the run ends behind it. At 80 % of a bound a warning says so, once. A bound of a
    graph holds for all that runs inside of it, that of a node for all its runs together; inside
    of a subgraph, which starts fresh each time, both hold for one run of it.
    """

    max_seconds: Positive | None = None
    """Seconds of wall time; the clock stands still while a human is asked."""
    max_model_calls: CountOrNone | None = None
    """Calls of models, retries not counted."""
    max_tool_calls: CountOrNone | None = None
    """Calls of tools."""
    max_tokens: CountOrNone | None = None
    """Input and output tokens together, retries included; estimated where a provider does not
    count them."""
    max_usd: NotNegative | None = None
    """US dollars, by the prices that are known."""
    max_loop_iterations: Count = 100
    """Rounds of each loop of the graph; a counter in the loop with a larger count raises it."""
    on_loop_limit: Literal["fail", "continue"] = "fail"
    """What more rounds than that are: an error, or a silent end of the loop."""

    @property
    def is_bounding(self) -> bool:
        """Whether any of the bounds that add up is given."""
        return any(getattr(self, name) is not None for name in BOUNDS)

    def tightened(self, other: Limits) -> Limits:
        """These limits, with each bound of the others that is smaller: none is loosened."""
        found: dict[str, float] = {}
        for name in BOUNDS:
            given = [b for limits in (self, other) if (b := getattr(limits, name)) is not None]
            if given:
                found[name] = min(given)
        if "max_loop_iterations" in other.model_fields_set:
            rounds = min(self.max_loop_iterations, other.max_loop_iterations)
            found["max_loop_iterations"] = rounds
        return self.model_copy(update=found)
