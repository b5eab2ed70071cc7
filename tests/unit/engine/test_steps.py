"""Effects as steps: done once for each path and request."""

from __future__ import annotations

import json

from devall.engine.steps import take_step
from devall.journal.base import Step, fingerprint
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
