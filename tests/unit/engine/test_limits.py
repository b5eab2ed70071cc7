"""Bounds: what is set aside before a call, and clocks that stand still."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from devall.config.limits import Limits
from devall.core.errors import LimitReached, RunError
from devall.core.events import ModelCallFailed, ModelCallFinished
from devall.core.usage import Estimate, TokenUsage
from devall.engine.limits import Deadline, Meter


def estimate(read: int, written: int = 0) -> Estimate:
    return Estimate("p", "m", TokenUsage(read, written))


def finished(path: str, usage: TokenUsage | None, **more: Any) -> ModelCallFinished:
    names = {"node": "A", "provider": "p", "model": "m", "turn": 1, "seconds": 1}
    return ModelCallFinished(path=path, **names, usage=usage, **more)


def failed(path: str, wait: float | None = None) -> ModelCallFailed:
    names = {"node": "A", "provider": "p", "model": "m", "turn": 1, "attempt": 1}
    return ModelCallFailed(path=path, **names, message="no", wait=wait)


def test_what_a_call_may_use_is_set_aside_until_it_is_answered():
    meter = Meter(Limits(max_tokens=100))
    meter.allow("model_call", "/A@1", estimate(40, 20))
    with pytest.raises(LimitReached, match="calls under way may use 60"):
        meter.allow("model_call", "/B@1", estimate(50))
    meter.note(finished("/A@1", TokenUsage(10, 5)))
    meter.allow("model_call", "/B@1", estimate(50))


def test_a_failed_call_gives_back_what_was_set_aside_once_it_is_not_repeated():
    meter = Meter(Limits(max_tokens=100))
    meter.allow("model_call", "/A@1", estimate(90))
    meter.note(failed("/A@1", wait=1.0))
    with pytest.raises(LimitReached):
        meter.allow("model_call", "/B@1", estimate(50))
    meter.note(failed("/A@1"))
    meter.allow("model_call", "/B@1", estimate(50))


def test_the_run_of_a_node_that_went_over_is_known_and_so_are_its_units():
    meter = Meter(Limits(max_tokens=100), "S")
    meter.note(finished("/S@1/M@1/unit:3", TokenUsage(90, 20)))
    assert meter.over("/S@1/M@1/unit:1") is None
    over = meter.over("/S@1/M@1")
    assert over is not None
    assert str(over) == "limit max_tokens of S reached (100): 110 are used"
    meter.note(finished("/B@1", TokenUsage(1, 1)))
    assert meter.over("/B@1") is None


def test_estimates_count_where_nobody_counted():
    meter = Meter(Limits(max_tokens=100))
    meter.note(finished("/A@1", None, estimate=TokenUsage(60, 50)))
    assert meter.over("/A@1") is not None


def test_a_bound_of_no_dollars_lets_only_free_calls_pass():
    meter = Meter(Limits(max_usd=0))
    meter.allow("model_call", "/A@1", estimate(10))
    with pytest.raises(LimitReached) as caught:
        meter.allow("model_call", "/A@1", estimate(10), usd=0.01)
    assert caught.value.exit_code == 5


def test_a_bound_of_no_tokens_or_calls_lets_nothing_pass():
    for limits in (Limits(max_tokens=0), Limits(max_model_calls=0)):
        with pytest.raises(LimitReached):
            Meter(limits).allow("model_call", "/A@1", estimate(0))
    with pytest.raises(LimitReached):
        Meter(Limits(max_tool_calls=0)).allow("tool_call")


def test_each_bound_that_comes_near_is_said_once():
    meter = Meter(Limits(max_model_calls=10, max_tokens=1000))
    said: list[str] = []
    for _ in range(10):
        meter.allow("model_call", "/A@1", estimate(1))
        meter.note(finished("/A@1", TokenUsage(90, 10)))
        said += meter.news()
    assert said == ["8 of `max_model_calls` (10) are used", "800 of `max_tokens` (1000) are used"]


def test_limits_are_tightened_and_never_loosened():
    found = Limits(max_usd=1, max_tokens=5).tightened(Limits(max_usd=2, max_seconds=3))
    assert (found.max_usd, found.max_tokens, found.max_seconds) == (1, 5, 3)
    assert found.max_model_calls is None
    assert Limits(max_loop_iterations=500).tightened(Limits(max_usd=1)).max_loop_iterations == 500
    assert Limits().tightened(Limits(max_loop_iterations=7)).max_loop_iterations == 7


async def test_blocks_of_one_deadline_share_its_time():
    deadline = Deadline(0.15)
    async with deadline.within(RunError("late")):
        await asyncio.sleep(0.1)
    with pytest.raises(RunError, match="late"):
        async with deadline.within(RunError("late")):
            await asyncio.sleep(5)


async def test_a_deadline_stands_still_while_it_is_held_and_tells_when_little_is_left():
    told: list[str] = []
    deadline = Deadline(2, lambda: told.append("near"))
    async with deadline.within(RunError("late")):
        with deadline.held(), deadline.held():
            await asyncio.sleep(2.1)
        assert told == []
        await asyncio.sleep(1.65)
    assert told == ["near"]


async def test_a_deadline_that_is_kept_tells_nothing():
    told: list[str] = []
    deadline = Deadline(1, lambda: told.append("near"))
    for _ in range(2):
        async with deadline.within(RunError("late")):
            await asyncio.sleep(0.01)
    await asyncio.sleep(1)
    assert told == []
