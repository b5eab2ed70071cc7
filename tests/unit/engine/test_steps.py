"""Effects as steps: done once for each path and request."""

from __future__ import annotations

import json

import pytest

from devall.core.errors import AnswerNeeded, LimitReached, SetupError, ToolInDoubt
from devall.engine.steps import take_step
from devall.journal.base import Step, StepRecord, fingerprint
from devall.journal.memory import MemoryJournal


def step(key: str, request: object) -> Step:
    return Step(key, "model", request, fingerprint(request))


class Effect:
    """Counts how often it is made."""

    def __init__(self, value: object) -> None:
        self.value = value
        self.made = 0

    async def __call__(self) -> object:
        self.made += 1
        return self.value


async def test_a_step_is_made_once_and_its_value_comes_from_the_journal_ever_after() -> None:
    journal, effect = MemoryJournal(), Effect({"text": "x"})
    for _ in range(3):
        assert await take_step(journal, step("/A@1/turn:1", {"q": 1}), effect) == {"text": "x"}
    assert effect.made == 1
    assert [record.key for record in journal.records] == ["/A@1/turn:1"]


async def test_another_request_under_the_same_key_is_made_anew() -> None:
    journal, effect = MemoryJournal(), Effect("x")
    await take_step(journal, step("/A@1/turn:1", {"prompt": "old"}), effect)
    await take_step(journal, step("/A@1/turn:1", {"prompt": "new"}), effect)
    assert effect.made == 2


async def test_the_same_request_under_another_key_is_another_step() -> None:
    journal, effect = MemoryJournal(), Effect("x")
    await take_step(journal, step("/A@1/turn:1", {}), effect)
    await take_step(journal, step("/A@2/turn:1", {}), effect)
    assert effect.made == 2


def test_a_fingerprint_does_not_depend_on_the_order_of_keys() -> None:
    one, other = {"a": 1, "b": [1, 2]}, json.loads('{"b": [1, 2], "a": 1}')
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint(one) != fingerprint({"a": 1, "b": [2, 1]})


class Begun:
    """A journal that holds a step as begun, and keeps what is appended."""

    def __init__(self) -> None:
        self.states: list[str] = []

    async def find(self, step: Step, /) -> StepRecord | None:
        return StepRecord(step.key, step.kind, step.fingerprint, None, "begun")

    async def begin(self, step: Step, /) -> None:
        self.states.append("begun")

    async def append(self, record: StepRecord, /) -> None:
        self.states.append(record.state)


class Fresh(Begun):
    """The same before the step was begun."""

    async def find(self, step: Step, /) -> StepRecord | None:
        return None


@pytest.mark.parametrize(
    "error",
    [
        AnswerNeeded([("/A@1/ask:doubt", "really?")]),
        ToolInDoubt("pay", "{}", "/A@1/c1"),
        SetupError("the server does not start"),
    ],
)
async def test_what_is_in_doubt_stays_so_until_it_is_decided(error: Exception) -> None:
    async def undecided() -> object:
        raise error

    journal = Begun()
    with pytest.raises(type(error)):
        await take_step(journal, step("/A@1/turn:1/tool:c1", {}), Effect("x"), undecided)
    assert journal.states == []


@pytest.mark.parametrize("error", [AnswerNeeded([("/A@1", "?")]), SetupError("no server")])
async def test_a_call_that_came_to_nothing_is_not_in_doubt(error: Exception) -> None:
    async def call() -> object:
        raise error

    journal = Fresh()
    with pytest.raises(type(error)):
        await take_step(journal, step("/A@1/turn:1/tool:c1", {}), call, call)
    assert journal.states == ["begun", "void"]


async def test_an_error_is_kept_and_raised() -> None:
    async def call() -> object:
        raise LimitReached("max_tokens", 5)

    journal = Fresh()
    with pytest.raises(LimitReached):
        await take_step(journal, step("/A@1/turn:1", {}), call)
    assert journal.states == ["failed"]
