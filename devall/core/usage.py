"""What a run has used: calls, tokens and money."""

from __future__ import annotations

from dataclasses import dataclass

from devall.core.messages import JsonValue


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one model call, as the provider counts them.

    `input_tokens` includes `cached_tokens`; `output_tokens` includes `reasoning_tokens`.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


NOTHING_USED = TokenUsage()
"""Of an attempt that is known to have cost nothing: the endpoint refused it, or was not reached."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a model call will use at most, as far as that can be said before it is made."""

    provider: str
    model: str
    usage: TokenUsage
    """Input by the length of the request; output is its `max_tokens`, 0 where there is none."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Totals, failed attempts and subgraphs included."""

    model_calls: int = 0
    """Attempts, those included that failed or had no answer yet when the run ended."""
    tool_calls: int = 0
    input_tokens: int = 0
    """Cached ones included, once."""
    output_tokens: int = 0
    cached_tokens: int = 0
    """How many of the input tokens the provider had in its cache."""
    unknown_calls: int = 0
    """Model calls whose tokens nobody counted (the provider did not say, the answer broke off,
    the run ended before it): the totals are lower bounds then."""
    usd: float | None = 0.0
    """US dollars of the calls whose price is known; None: there were calls, and of none it is."""
    unpriced_calls: int = 0
    """Model calls whose cost is unknown: `usd` is a lower bound then."""

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def to_json(self) -> dict[str, JsonValue]:
        """The totals as `devall run --json` prints them."""
        return {
            "model_calls": self.model_calls,
            "tool_calls": self.tool_calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
            "unknown_calls": self.unknown_calls,
            "tokens_at_least": self.unknown_calls > 0,
            "usd": None if self.usd is None else round(self.usd, 8),
            "unpriced_calls": self.unpriced_calls,
            "usd_at_least": self.usd is not None and self.unpriced_calls > 0,
        }
