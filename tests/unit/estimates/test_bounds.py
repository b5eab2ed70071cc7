from __future__ import annotations

import pytest

from devall.config.agents import HistoryConfig
from devall.config.limits import Limits
from devall.core.usage import TokenUsage
from devall.estimates.asking import Asked
from devall.estimates.bounds import NOTHING, ONE, Bound, total, unbounded
from devall.estimates.ceilings import Ceiling
from devall.models.prices import price_of

ENDLESS = unbounded("A", "timeout", "how long it takes")
OTHER = unbounded("B", "--units", "how many there are")


def test_what_has_no_bound_takes_it_from_sums_and_products_and_says_why_once():
    found = ENDLESS + Bound(3) + OTHER + ENDLESS
    assert found.value is None
    assert [each.node for each in found.missing] == ["A", "B"]
    assert (ENDLESS * 3).missing == ENDLESS.missing
    assert ENDLESS * 0 == NOTHING
    assert total([Bound(1), Bound(2)]) == Bound(3)
    assert total([]) == NOTHING


def test_the_smallest_bound_that_is_known_holds():
    assert ENDLESS.least(Bound(5), Bound(4)) == Bound(4)
    assert [each.node for each in ENDLESS.least(OTHER).missing] == ["A", "B"]
    assert Bound(4).most(Bound(5)) == Bound(5)
    assert Bound(4).most(ENDLESS).value is None


def test_a_limit_holds_what_is_above_it_down_and_is_named():
    run = Ceiling(Limits(max_model_calls=12), "", ONE)
    node = run.under(Limits(max_model_calls=5), "node A", Bound(2))
    assert node.holds(Bound(40), "max_model_calls") == Bound(
        10, held_by=("limits.max_model_calls of node A",)
    )
    assert node.holds(Bound(9), "max_model_calls") == Bound(9)
    assert run.holds(ENDLESS, "max_model_calls") == Bound(12, held_by=("limits.max_model_calls",))
    assert node.once(Bound(40), "max_model_calls").value == 5


def asked(provider: str, model: str, **params: int) -> Asked:
    return Asked("A", provider, model, params, HistoryConfig())


@pytest.mark.parametrize(
    ("model", "calls", "sent", "written"),
    [
        ("gpt-4o-mini", 3, 3_000, 300),
        # Its price depends on the length of the request.
        ("gemini-2.5-pro", 2, 500_000, 2_000),
    ],
)
def test_dollars_are_never_less_than_the_calls_cost_one_by_one(model, calls, sent, written):
    provider = "gemini" if model.startswith("gemini") else "openai"
    each = TokenUsage(sent // calls, written // calls)
    found = asked(provider, model).usd(Bound(calls), Bound(sent), Bound(written), each)
    one = price_of(provider, model, each)
    assert one is not None
    assert found.value == pytest.approx(calls * one)


def test_an_answer_is_as_long_as_the_file_says_else_as_the_window():
    assert asked("openai", "gpt-4o-mini", max_tokens=50).answer == Bound(50)
    assert asked("openai", "gpt-4o-mini", max_tokens=50, n=3).answer == Bound(150)
    assert asked("openai", "gpt-4o-mini").answer.value == 128_000
    assert asked("anthropic", "claude-sonnet-4-5").answer.value == 8_192
    assert asked("local", "smollm2").answer.value == 2_048
    unknown = asked("openai", "nobody-knows").answer
    assert (unknown.value, unknown.missing[0].key) == (None, "params.max_tokens")
