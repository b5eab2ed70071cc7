"""Prices and windows by the list that is installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from devall.core.usage import NOTHING_USED, TokenUsage
from devall.models.prices import SMALLEST_WINDOW, price_of, window_of

MILLION = 1_000_000


def test_cached_tokens_are_part_of_the_input_and_cost_their_own_price():
    fresh = price_of("openai", "gpt-4o-mini", TokenUsage(MILLION, 0, 0))
    cached = price_of("openai", "gpt-4o-mini", TokenUsage(MILLION, 0, MILLION))
    half = price_of("openai", "gpt-4o-mini", TokenUsage(MILLION, 0, MILLION // 2))
    assert fresh is not None
    assert cached is not None
    assert 0 < cached < fresh
    assert half == pytest.approx((fresh + cached) / 2)


def test_more_cached_tokens_than_input_are_no_error():
    assert price_of("openai", "gpt-4o-mini", TokenUsage(10, 0, 99)) == pytest.approx(
        price_of("openai", "gpt-4o-mini", TokenUsage(10, 0, 10))
    )


@pytest.mark.parametrize(
    ("provider", "model"),
    [("openai", "gpt-4o-mini"), ("openai", "claude-sonnet-4-5"), ("gemini", "gemini-2.5-pro")],
)
@pytest.mark.parametrize("tokens", [(1000, 10, 0), (1000, 500, 800), (300_000, 2_000, 1_000)])
def test_prices_are_those_of_the_package_tiers_included(provider, model, tokens):
    from genai_prices import Usage, calc_price

    used = Usage(input_tokens=tokens[0], output_tokens=tokens[1], cache_read_tokens=tokens[2])
    maker = {"gpt": "openai", "cla": "anthropic", "gem": "google"}[model[:3]]
    expected = calc_price(used, model, provider_id=maker).total_price
    assert price_of(provider, model, TokenUsage(*tokens)) == pytest.approx(float(expected))


@pytest.mark.parametrize("model", ["nobodys-model", "", "m"])
def test_a_model_that_is_not_in_the_list_has_neither_price_nor_window(model):
    assert price_of("openai", model, TokenUsage(1, 1)) is None
    assert window_of("openai", model) is None


def test_what_runs_in_process_or_used_nothing_costs_nothing():
    assert price_of("local", "smollm2", TokenUsage(100, 100)) == 0
    assert price_of("openai", "nobodys-model", NOTHING_USED) == 0


def test_windows_are_known_by_model_whoever_serves_it():
    assert window_of("openai", "gpt-4o-mini") == 128_000
    assert window_of("openai", "claude-sonnet-4-5") == window_of("anthropic", "claude-sonnet-4-5")
    assert window_of("local", "gpt-4o-mini") is None


def test_no_model_that_chats_has_a_smaller_window_than_needs_no_look():
    from genai_prices.data_snapshot import get_snapshot

    small = [
        model.id
        for provider in get_snapshot().providers
        for model in provider.models
        if model.context_window and model.context_window < SMALLEST_WINDOW
    ]
    chatting = ("embed", "bge", "guard", "trio")
    assert not [name for name in small if not any(part in name for part in chatting)]


CHILD = """
import sys, threading
def hook(event, args):
    if event.startswith(("socket.connect", "socket.getaddrinfo", "socket.gethostbyname")):
        print("network:", event, args)
sys.addaudithook(hook)
from devall.core.usage import TokenUsage
from devall.models.prices import price_of, window_of
assert price_of("openai", "gpt-4o-mini", TokenUsage(10, 10)) > 0
assert price_of("openai", "nobodys", TokenUsage(10, 10)) is None
assert window_of("openai", "gpt-4o") > 0
assert threading.active_count() == 1
"""


def test_nothing_goes_to_the_network():
    done = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
