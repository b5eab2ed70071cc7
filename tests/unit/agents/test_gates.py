"""Pauses that endpoints ask for."""

from __future__ import annotations

import asyncio

import pytest

from devall.agents.gates import LONGEST_PAUSE, Gate, Gates


class Clock:
    """A clock that goes only where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def gate() -> Gate:
    clock = Clock()
    return Gate(clock, clock.sleep)


async def test_an_open_gate_lets_pass_without_a_word():
    told: list[float] = []
    await gate().passed(told.append)
    assert told == []


async def test_a_gate_that_is_shut_is_waited_for_and_tells_so():
    shut, told = gate(), []
    shut.shut(10)
    await shut.passed(told.append)
    assert len(told) == 1
    assert 10 <= told[0] <= 11
    assert shut.wait == 0


async def test_a_pause_is_bounded_and_a_longer_one_stands():
    shut = gate()
    shut.shut(9999)
    assert shut.wait == LONGEST_PAUSE
    shut.shut(1)
    assert shut.wait == LONGEST_PAUSE


async def test_a_wait_that_is_cancelled_leaves_the_gate_to_others():
    shut = Gate()
    shut.shut(30)
    waiting = asyncio.create_task(shut.passed(lambda _: None))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert 0 < shut.wait <= 30


def test_gates_are_those_of_endpoints():
    gates = Gates()
    assert gates.at("openai", "http://a/v1") is gates.at("openai", "http://a/v1")
    assert gates.at("openai", "http://a/v1") is not gates.at("openai", "http://b/v1")
