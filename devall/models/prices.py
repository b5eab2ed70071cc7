"""What the list that `genai-prices` ships knows of models: prices and windows (no network).

The package would only fetch a newer list for whoever starts its `UpdatePrices`; nobody here does.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from devall.core.usage import NOTHING_USED, TokenUsage

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, Provider

SMALLEST_WINDOW = 4_000
"""Tokens that every model that chats takes: shorter requests need no look at the list."""

_MILLION = 1_000_000


def price_of(provider: str, model: str, usage: TokenUsage) -> float | None:
    """US dollars of a call; None where the model or its price is unknown.

    A provider that only says which protocol is spoken (`openai`) may serve another maker's
    model, so that the model's name is then looked for among all providers. What runs on one's own
    machines (`local`, `ollama`) costs nothing.
    """
    if provider in {"local", "ollama"} or usage == NOTHING_USED:
        return 0.0
    known = _known(provider, model)
    if known is None:
        return None
    cached = min(usage.cached_tokens, usage.input_tokens)
    rates = _rates(provider, model)
    if rates is None:
        return _calculated(provider, model, usage.input_tokens, cached, usage.output_tokens)
    fresh = usage.input_tokens - cached
    counts = (fresh, cached, usage.output_tokens)
    return sum(count * rate for count, rate in zip(counts, rates, strict=True)) / _MILLION


def window_of(provider: str, model: str) -> int | None:
    """Tokens that the model's window holds; None where it is unknown."""
    found = None if provider == "local" else _known(provider, model)
    return found[1].context_window if found else None


@lru_cache(maxsize=256)
def _known(provider: str, model: str) -> tuple[Provider, ModelInfo] | None:
    # Loaded here: the list costs a twentieth of a second, and not every run asks a model.
    from genai_prices.data_snapshot import get_snapshot

    snapshot = get_snapshot()
    for provider_id in (provider, None):
        try:
            return snapshot.find_provider_model(model, None, provider_id, None)
        except LookupError:
            continue
    return None


@lru_cache(maxsize=256)
def _rates(provider: str, model: str) -> tuple[float, float, float] | None:
    """Dollars of a million tokens (new input, cached input, output); None: it is not so simple.

    The package's own sums take a seventh of a millisecond, which runs of thousands of calls feel.
    """
    from genai_prices.types import ModelPrice, TieredPrices

    known = _known(provider, model)
    assert known is not None
    prices = known[1].prices
    if not isinstance(prices, ModelPrice):
        return None
    if any(isinstance(price, TieredPrices) for price in vars(prices).values()):
        return None
    counts = ((_MILLION, 0, 0), (_MILLION, _MILLION, 0), (0, 0, _MILLION))
    fresh, cached, written = (_calculated(provider, model, *each) for each in counts)
    if fresh is None or cached is None or written is None:
        return None
    return fresh, cached, written


@lru_cache(maxsize=1024)
def _calculated(
    provider: str, model: str, input_tokens: int, cached: int, output_tokens: int
) -> float | None:
    """Dollars by the package's own sums; None where it knows the model and no price."""
    from genai_prices import Usage
    from genai_prices.types import ModelPrice

    known = _known(provider, model)
    assert known is not None
    maker, found = known
    is_priced = not isinstance(found.prices, ModelPrice) or any(
        price is not None for price in vars(found.prices).values()
    )
    if not is_priced:
        return 0.0 if found.id.endswith(":free") else None
    used = Usage(input_tokens=input_tokens, output_tokens=output_tokens, cache_read_tokens=cached)
    return float(found.calc_price(used, maker).total_price)
