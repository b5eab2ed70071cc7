"""What a model call costs, by the price list that `genai-prices` ships (no network)."""

from __future__ import annotations

from devall.core.usage import TokenUsage


def price_of(provider: str, model: str, usage: TokenUsage) -> float | None:
    """US dollars of a call; None where the model or its price is unknown.

    A provider that only says which protocol is spoken (`openai`) may serve another maker's
    model, so that the model's name is then looked for among all providers.
    """
    # Loaded here: the list costs half a second, and only runs with a bound on money need it.
    from genai_prices import Usage, calc_price

    used = Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens,
    )
    for provider_id in (provider, None):
        try:
            return float(calc_price(used, model_ref=model, provider_id=provider_id).total_price)
        except LookupError:
            continue
    return None
