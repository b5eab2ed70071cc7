"""Which answer goes to which open question."""

from __future__ import annotations

from pathlib import Path

import pytest

from devall.core.errors import UsageError
from devall.journal.base import Step, fingerprint
from devall.journal.reader import FILE_NAME
from devall.journal.sqlite import NewRun, SqliteStore
from devall.nodes.crew import Overrides
from devall.runs.questions import answer_open, fits, has_doubts, question_id
from devall.runs.settings import Settings

UNITS = [f"/M@1/unit:{number}/answer" for number in (1, 2, 3)]
ASKED = [*UNITS, "/S@1/H@2/answer", "/A@1/ask:c1.1"]


@pytest.fixture
async def journal(tmp_path: Path):
    """A run that was taken over with questions open."""
    store = SqliteStore(tmp_path / FILE_NAME)
    store.open()
    new = NewRun(id="r", workflow="w", task="x", settings={}, sources={}, nodes={})
    first = await store.begin(new, lambda value: value)
    for key in ASKED:
        await first.begin(Step(key, "human", None, fingerprint(None)))
    await first.finish("waiting", {})
    yield await store.take_over("r", nodes={}, redact=lambda value: value)
    await store.aclose()


async def test_one_text_answers_all_questions_of_a_node_and_later_ones(journal):
    left = await answer_open(journal, {"M": "yes", "H": "no"})
    assert left == {"M": "yes", "H": "no"}
    assert journal.open_questions() == ["/A@1/ask:c1.1"]


async def test_texts_of_a_list_go_to_the_questions_in_order_and_the_rest_is_left(journal):
    assert await answer_open(journal, {"M": ["1", "2"]}) == {}
    assert journal.open_questions() == ASKED[2:]
    assert await answer_open(journal, {"M": ["3", "4"]}) == {"M": ["4"]}


async def test_an_answer_by_id_is_for_that_question_alone(journal):
    assert await answer_open(journal, {"/M@1/unit:2": "two", "/A@1/ask:c1.1": "asked"}) == {}
    assert journal.open_questions() == [UNITS[0], UNITS[2], ASKED[3]]


def test_a_question_is_meant_by_its_id_or_its_node():
    key = "/S@1/H@2/answer"
    assert [
        name for name in ("/S@1/H@2", key, "S/H", "H", "S", "/S@1", "X") if fits(name, key)
    ] == [
        "/S@1/H@2",
        key,
        "S/H",
        "H",
    ]
    assert question_id(key) == "/S@1/H@2"
    assert question_id("/A@1/ask:c1.1") == "/A@1/ask:c1.1"


async def test_a_human_who_was_asked_about_a_call_in_doubt_decides(journal):
    assert not has_doubts(journal)
    store = journal.store
    await journal.begin(Step("/A@1/ask:doubt:c1", "human", None, fingerprint(None)))
    await journal.finish("waiting", {})
    later = await store.take_over("r", nodes={}, redact=lambda value: value)
    assert has_doubts(later)
    await later.answer("/A@1/ask:doubt:c1", "retry")
    await later.finish("failed", {})
    assert has_doubts(await store.take_over("r", nodes={}, redact=lambda value: value))


def test_settings_come_back_as_they_were():
    settings = Settings(
        variables={"n": 1},
        answers={"H": ["a", "b"], "I": "c"},
        overrides=Overrides({"A": "m"}, {"": "openai"}),
        functions_dir=Path("functions"),
        ex_tools=("t",),
        durability="full",
        environment={"URL": "http://x"},
    )
    found = Settings.from_json(settings.to_json())
    assert found.functions_dir == Path("functions").resolve()
    assert found.to_json() == settings.to_json()


def test_answers_of_a_list_that_were_used_are_not_given_again():
    settings = Settings(answers={"H": ["a", "b", "c"], "S/I": ["d"], "J": "e"})
    used = ["/H@1/answer", "/S@1/H@1/answer", "/S@1/I@1/answer", "/J@1/answer"]
    assert settings.answers_left(used) == {"H": ["c"], "S/I": [], "J": "e"}


def test_a_variable_that_was_a_secret_must_be_given_again():
    settings = Settings(variables={"KEY": "***", "n": 1})
    assert settings.variables_with({"KEY": "k"}) == {"KEY": "k", "n": 1}
    with pytest.raises(UsageError, match="variable KEY held a secret"):
        settings.variables_with({})
