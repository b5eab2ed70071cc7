"""Sums of what a run's events say."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from devall.core.events import (
    ModelCallFailed,
    ModelCallFinished,
    ModelCallStarted,
    ToolCallFinished,
)
from devall.core.usage import NOTHING_USED, TokenUsage, Usage
from devall.engine.ledger import Ledger


def call(node: str = "A", model: str = "m", turn: int = 1) -> dict[str, Any]:
    return {"path": f"/{node}@1", "node": node, "provider": "p", "model": model, "turn": turn}


def started(**more: Any) -> ModelCallStarted:
    return ModelCallStarted(**call(**more))


def finished(usage: TokenUsage | None, usd: float | None = None, **more: Any) -> ModelCallFinished:
    return ModelCallFinished(**call(**more), seconds=1, usage=usage, usd=usd)


def failed(usage: TokenUsage | None, usd: float | None = None, **more: Any) -> ModelCallFailed:
    return ModelCallFailed(**call(**more), attempt=1, message="no", usage=usage, usd=usd)


def test_nothing_was_used_and_cost_nothing_at_first():
    assert Ledger().usage == Usage()
    assert Ledger().usage.usd == 0


def test_a_call_that_began_and_did_not_end_is_unknown():
    ledger = Ledger()
    ledger.note(started())
    assert ledger.usage == Usage(1, unknown_calls=1, usd=None, unpriced_calls=1)
    assert ledger.by_node["A"].unknown_calls == 1
    ledger.note(finished(TokenUsage(5, 2, 3), 0.5))
    assert ledger.usage == Usage(1, 0, 5, 2, 3, 0, 0.5, 0)
    assert ledger.by_node == {"A": ledger.usage}
    assert ledger.by_model == {"m": ledger.usage}


def test_attempts_that_failed_are_calls_and_what_they_were_charged_counts():
    ledger = Ledger()
    for event in (
        started(),
        failed(NOTHING_USED, 0.0),
        started(),
        failed(None),
        started(),
        failed(TokenUsage(7, 0), 0.1),
        started(),
        finished(TokenUsage(7, 1), 0.2),
    ):
        ledger.note(event)
    usage = ledger.usage
    assert (usage.model_calls, usage.tokens, usage.unknown_calls) == (4, 15, 1)
    assert round(usage.usd or 0, 6) == 0.3
    assert usage.to_json()["usd_at_least"]


def test_a_step_that_comes_from_the_journal_counts_as_the_call_that_it_was():
    ledger = Ledger()
    ledger.note(finished(TokenUsage(3, 3)))
    ledger.note(finished(TokenUsage(3, 3), turn=2))
    assert (ledger.usage.model_calls, ledger.usage.tokens) == (2, 12)
    assert ledger.usage.usd is None


EVENTS = st.lists(
    st.builds(
        lambda kind, node, model, usage, usd: (kind, node, model, usage, usd),
        st.sampled_from(["finished", "failed", "open", "tool"]),
        st.sampled_from(["A", "B", "S/A"]),
        st.sampled_from(["m", "n"]),
        st.none() | st.builds(TokenUsage, st.integers(0, 99), st.integers(0, 99)),
        st.none() | st.integers(0, 100).map(float),
    ),
    max_size=20,
)


@given(EVENTS)
def test_the_sums_by_node_and_by_model_are_those_of_the_whole(listed: list[Any]):
    ledger = Ledger()
    for turn, (kind, node, model, usage, usd) in enumerate(listed):
        match kind:
            case "tool":
                ledger.note(
                    ToolCallFinished(node=node, call_id="c", tool="t", seconds=0, result="")
                )
            case "open":
                ledger.note(started(node=node, model=model, turn=turn))
            case "finished":
                ledger.note(started(node=node, model=model, turn=turn))
                ledger.note(finished(usage, usd, node=node, model=model, turn=turn))
            case _:
                ledger.note(failed(usage, usd, node=node, model=model, turn=turn))
    whole = ledger.usage
    for parts in (ledger.by_node, ledger.by_model):
        for name in ("model_calls", "input_tokens", "output_tokens", "unknown_calls"):
            assert sum(getattr(u, name) for u in parts.values()) == getattr(whole, name)
        assert sum(u.usd or 0 for u in parts.values()) == (whole.usd or 0)
        assert sum(u.unpriced_calls for u in parts.values()) == whole.unpriced_calls
    assert sum(u.tool_calls for u in ledger.by_node.values()) == whole.tool_calls
