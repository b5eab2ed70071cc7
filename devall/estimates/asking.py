"""What is known of a model before it is asked: its window, its longest answer, its price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from devall.agents.sizes import MOST_SCALE, longest_output
from devall.config.agents import HistoryConfig
from devall.core.messages import JsonValue
from devall.core.usage import TokenUsage
from devall.estimates.bounds import NOTHING, Bound, Missing, unbounded
from devall.models.convert_messages import MOST_TOKENS
from devall.models.prices import price_of, window_of
from devall.models.routes import PROVIDERS
from devall.models.weights import context_of

_NEARLY_NOTHING = 1e-9


@dataclass(frozen=True, slots=True)
class Asked:
    """A model as one node asks it."""

    node: str
    provider: str
    model: str
    params: Mapping[str, JsonValue]
    """What is sent with each request."""
    history: HistoryConfig
    tool_mode: str | None = None
    """As the file has it."""

    @property
    def window(self) -> int | None:
        """Tokens that its window holds; None: not known."""
        if self._kind == "local":
            return context_of(self.model)
        return window_of(self.provider, self.model)

    @property
    def request(self) -> Bound:
        """Tokens of one request: the window, or as many as `history.max_tokens` leaves."""
        window, given = self.window, self.history.max_tokens
        found = unbounded(self.node, "history.max_tokens", "how long a request may be")
        if window is not None:
            found = Bound(window, (), (f"the window of {self.model}",))
        # What is kept to is an estimate.
        return found.capped(
            None if given is None else given * MOST_SCALE, f"history.max_tokens of {self.node}"
        )

    @property
    def answer(self) -> Bound:
        """Tokens of one answer: what the file says, else what is known of the model."""
        several: JsonValue = self.params.get("n")
        times = several if isinstance(several, int) and several > 1 else 1
        if given := longest_output(self.params):
            return Bound(given * times)
        if self._kind == "anthropic":
            return Bound(MOST_TOKENS, (), ("8,192 tokens, which devall asks for",))
        if self.window is not None:
            return Bound(self.window * times, (), (f"the window of {self.model}",))
        return unbounded(self.node, "params.max_tokens", "how long an answer may be")

    @property
    def calls_tools(self) -> bool:
        """Whether tools are offered as such, and not in words."""
        known = PROVIDERS.get(self.provider)
        mode = self.tool_mode or (known.tool_mode if known is not None else "native")
        return mode == "native"

    @property
    def is_given(self) -> bool:
        """Whether the file says how long an answer may be."""
        return longest_output(self.params) > 0

    @property
    def has_price(self) -> bool:
        """Whether it is known what a call costs."""
        return price_of(self.provider, self.model, TokenUsage(1, 1)) is not None

    @property
    def is_free(self) -> bool:
        """Whether its calls cost nothing, as it runs on a machine of one's own."""
        return price_of(self.provider, self.model, TokenUsage(1, 1)) == 0

    def usd(self, calls: Bound, sent: Bound, written: Bound, each: TokenUsage | None) -> Bound:
        """Dollars that calls cost at most, nothing of them cached.

        Args:
            calls: How many.
            sent: Input tokens of all of them.
            written: Output tokens of all of them.
            each: The tokens of the largest of them, which prices may depend on; None: not known.
        """
        if calls.value == 0 or self.is_free:
            return NOTHING
        if not self.has_price:
            why = f"no price is known of {self.model} ({self.provider})"
            return unbounded(self.node, "name", why)
        if each is None:
            found = sent + written
            missing = Missing(self.node, "history.max_tokens", "how long a request may be")
            return Bound(None, found.missing or (missing,))
        read = self._price(each.input_tokens, 0)
        answered = self._price(each.input_tokens, each.output_tokens) - read
        found = sent * (read / max(1, each.input_tokens))
        found += written * (answered / max(1, each.output_tokens))
        fee = 2 * self._price(1, 0) - self._price(2, 0)
        return found + calls * fee if fee > _NEARLY_NOTHING else found

    def least_usd(self, sent: int) -> float | None:
        """Dollars that so many input tokens cost at least, if they are known: all of them cached."""
        return price_of(self.provider, self.model, TokenUsage(sent, 0, sent))

    def _price(self, sent: int, written: int) -> float:
        found = price_of(self.provider, self.model, TokenUsage(sent, written))
        assert found is not None
        return found

    @property
    def _kind(self) -> str:
        known = PROVIDERS.get(self.provider)
        return known.kind if known is not None else "openai"
