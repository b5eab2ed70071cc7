"""Bounds of a run, a graph or a node."""

from __future__ import annotations

from typing import Literal

from devall.config.base import ConfigModel, Count, CountOrNone, NotNegative, Positive


class Limits(ConfigModel):
    """Bounds that are looked at before a call is made; absent = no bound."""

    max_seconds: Positive | None = None
    """Seconds of wall time."""
    max_model_calls: CountOrNone | None = None
    """Calls of models, retries not counted."""
    max_tool_calls: CountOrNone | None = None
    """Calls of tools."""
    max_tokens: CountOrNone | None = None
    """Input and output tokens together."""
    max_usd: NotNegative | None = None
    """US dollars, by the prices that are known."""
    max_loop_iterations: Count = 100
    """Rounds of each loop of the graph; a counter in the loop with a larger count raises it."""
    on_loop_limit: Literal["fail", "continue"] = "fail"
    """What more rounds than that are: an error, or a silent end of the loop."""
