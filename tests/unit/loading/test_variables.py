from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devall.loading.environment import Environment
from devall.loading.variables import Expansion, Outside, Scope, Unresolved, expand_all

ENVIRONMENT = {"HOST": "example.org", "PORT": "8001", "EMPTY": "", "API_KEY": "sk-1234"}


def scope(own: dict[str, Any] | None = None, given: dict[str, Any] | None = None) -> Scope:
    return Scope(Outside(Environment(ENVIRONMENT), given or {}), own or {})


def value(text: str, own: dict[str, Any] | None = None, given: dict[str, Any] | None = None) -> Any:
    found, mistakes = scope(own, given).expand(text)
    assert mistakes == []
    return found


def expanded(root: dict[str, Any], *, may_miss: bool = False) -> Expansion:
    return expand_all(root, scope(root.get("vars")), lambda _: may_miss)


def test_vars_come_before_the_environment_and_given_ones_before_both():
    assert value("${HOST}") == "example.org"
    assert value("${HOST}", {"HOST": "own"}) == "own"
    assert value("${HOST}", {"HOST": "own"}, {"HOST": "given"}) == "given"


def test_a_text_that_is_only_a_variable_takes_its_type():
    own = {"N": 3, "L": [1, "${N}"], "T": True, "X": None}
    assert value("${N}", own) == 3
    assert value("${L}", own) == [1, 3]
    assert value("${T}", own) is True
    assert value("${X}", own) is None
    assert value("${PORT}") == "8001"


def test_within_a_text_a_value_is_written_out():
    own = {"N": 3, "T": True, "X": None, "F": 0.5}
    assert value("${N}, ${T}, ${F}, <${X}>", own) == "3, true, 0.5, <>"


def test_vars_may_refer_to_each_other_in_any_order():
    own = {"A": "${B} and ${HOST}", "B": "${C}${C}", "C": 1}
    assert value("${A}", own) == "11 and example.org"


def test_a_default_stands_in_for_what_is_not_set_or_empty():
    assert value("${NOPE:-none}") == "none"
    assert value("${EMPTY:-none}") == "none"
    assert value("${EMPTY}") == ""
    assert value("${HOST:-none}") == "example.org"
    assert value("<${NOPE:-}>") == "<>"
    assert value("${NOPE:-${HOST}/x}") == "example.org/x"
    assert value("${NOPE:-${NEITHER:-deep}}") == "deep"


def test_an_escaped_brace_is_literal():
    assert value("$${HOST} ${HOST}") == "${HOST} example.org"
    assert value("$$${HOST}") == "$${HOST}"


@pytest.mark.parametrize(
    "text",
    [
        '{"en": 1}',
        "{{x}}",
        "$5 $HOST",
        "${1}",
        "${ HOST }",
        "${",
        "${HOST",
        "${a-b}",
        "${A:=b}",
        "}",
    ],
)
def test_what_is_no_variable_stays_as_it_is(text: str):
    assert value(text) == text


def test_an_environment_variable_may_be_read_as_yaml():
    assert value("$(PORT: 80)") == 8001
    assert value("$(NOPE: [1, two])") == [1, "two"]
    assert value("$(NOPE: true)") is True
    assert value("$(NOPE:)") is None
    assert value("$(PORT: 80)", {"PORT": 5}) == 8001
    assert value("see $(PORT: 80)") == "see $(PORT: 80)"


def test_a_default_that_is_no_yaml_is_a_mistake():
    found, mistakes = scope().expand("$(NOPE: [1)")
    assert isinstance(found, Unresolved)
    assert [each.code for each in mistakes] == ["bad-variable"]


def test_an_unknown_variable_is_placed_and_the_nearest_names_come_first():
    found, mistakes = scope({"TOPIC": "x", "OTHER": "y"}).expand("on ${TOPCI} today")
    assert found == Unresolved("TOPCI")
    assert (mistakes[0].code, mistakes[0].offset) == ("unresolved-variable", 3)
    assert mistakes[0].hint.startswith("did you mean `TOPIC`? known: OTHER;")


def test_every_unknown_variable_of_a_text_is_reported():
    _, mistakes = scope().expand("${A} ${B} ${A}")
    assert [each.name for each in mistakes] == ["A", "B", "A"]


def test_a_list_cannot_stand_within_a_text():
    _, mistakes = scope({"L": [1]}).expand("x ${L}")
    assert [(each.code, each.name) for each in mistakes] == [("bad-variable", "L")]


def test_a_cycle_is_reported_once_with_its_way():
    names = scope({"A": "${B}", "B": "x ${C}", "C": "${A}", "D": "${D}"})
    for name in "ABCD":
        names.expand(f"${{{name}}}")
    found = names.own_mistakes()
    assert [(path, each.message.partition(": ")[2]) for path, each in found] == [
        (("vars", "A"), "A -> B -> C -> A"),
        (("vars", "D"), "D -> D"),
    ]


def test_what_a_variable_of_the_file_misses_is_reported_where_it_stands():
    names = scope({"A": ["${NOPE}"], "B": "${A}"})
    _, mistakes = names.expand("${B}")
    assert mistakes == []
    assert [(path, each.name) for path, each in names.own_mistakes()] == [
        (("vars", "A", 0), "NOPE")
    ]


def test_a_variable_that_only_a_value_wants_that_may_be_missing_may_miss_something():
    names = scope({"KEY": "${NO_KEY}", "OTHER": "${NO_KEY}"})
    found, mistakes = names.expand("${KEY}", is_certain=False)
    assert (found, mistakes) == (Unresolved("NO_KEY", "KEY"), [])
    assert [path for path, _ in names.own_mistakes()] == [("vars", "OTHER")]


def test_a_file_sees_the_variables_of_the_file_that_includes_it_below_its_own():
    parent = scope({"A": 1, "B": "${A}"}, {"G": "given"})
    child = Scope(Outside(Environment({})), {"A": 2}, parent)
    assert child.expand("${A} ${B} ${G}")[0] == "2 1 given"


def test_given_values_are_taken_as_they_are():
    assert value("${G}", {"X": 1}, {"G": "${X} $${HOST}"}) == "${X} $${HOST}"


def test_values_of_the_environment_are_never_expanded_again():
    outside = Outside(Environment({"A": "${B}", "B": "b"}))
    assert Scope(outside, {"C": "${A}"}).expand("${C} ${A}")[0] == "${B} ${B}"


def test_secrets_are_values_from_outside_with_a_telling_name():
    outside = Outside(
        Environment({"MY_TOKEN": "t-1", "password": "p-1", "HOST": "h-1", "UNUSED_KEY": "u-1"}),
        {"GIVEN_SECRET": "g-1"},
    )
    Scope(outside, {"KEY": "k-1"}).expand("${MY_TOKEN} ${password} ${HOST} ${KEY} ${GIVEN_SECRET}")
    assert outside.secrets == {"t-1", "p-1", "g-1"}


def test_it_is_known_where_each_value_came_from():
    outside = Outside(Environment({"A": "1", "B": "2"}, {"B": "dir/.env"}), {"C": 3})
    Scope(outside, {"D": "${A}"}).expand("${B} ${C} ${D}")
    assert outside.origins == {
        "A": "the environment",
        "B": "dir/.env",
        "C": "given",
        "D": "vars",
    }


def test_only_what_holds_a_variable_is_made_anew():
    root = {"a": {"b": [1, "x"]}, "c": {"d": "${HOST}", "e": [2]}}
    found = expanded(root)
    assert found.root == {"a": {"b": [1, "x"]}, "c": {"d": "example.org", "e": [2]}}
    assert found.root["a"] is root["a"]
    assert found.root["c"]["e"] is root["c"]["e"]
    assert root["c"]["d"] == "${HOST}"


def test_what_may_be_missing_becomes_none_and_is_noted():
    found = expanded({"a": {"api_key": "${NOPE}"}, "b": "${HOST}"}, may_miss=True)
    assert found.root["a"] == {"api_key": None}
    assert (found.missing, found.mistakes) == ([(("a", "api_key"), "NOPE")], [])


TEXT = st.text("${}:-() ABab1", max_size=30)


@given(TEXT)
def test_escaping_every_brace_gives_the_text_back(text: str):
    escaped = text.replace("${", "$${")
    if escaped.startswith("$("):
        escaped = " " + escaped
        text = " " + text
    assert scope({"A": "x"}).expand(escaped) == (text, [])


@given(st.dictionaries(st.sampled_from(["A", "B", "a", "b"]), TEXT, min_size=1), TEXT)
def test_a_value_from_outside_is_never_expanded(given_values: dict[str, str], around: str):
    outside = Outside(Environment(given_values))
    for name, text in given_values.items():
        assert Scope(outside, {}).expand(f"${{{name}}}") == (text, [])
        literal = around.replace("$", "")
        assert Scope(outside, {}).expand(f"{literal}${{{name}}}.")[0] == f"{literal}{text}."


@given(st.dictionaries(st.sampled_from("ABCDE"), TEXT), TEXT)
def test_any_vars_end_in_a_value_or_a_mistake(own: dict[str, str], text: str):
    names = scope(own)
    found, mistakes = names.expand(text)
    if isinstance(found, Unresolved):
        assert mistakes or names.own_mistakes()


@given(st.text(min_size=4, max_size=20), TEXT)
def test_no_message_holds_a_secret(secret: str, text: str):
    marked = f"\u2603{secret}"
    outside = Outside(Environment({"A_KEY": marked}), {"A_TOKEN": marked})
    names = Scope(outside, {"A": "${A_KEY}", "B": [text], "a": "${A_TOKEN} ${NOPE}"})
    said: list[str] = []
    for each in (text, "${A_KEY} ${B}", "$(A_KEY: 1)", "${a}", "${A_KEYS} ${A}"):
        said += [f"{m.message} {m.hint} {m.name}" for m in names.expand(each)[1]]
    said += [f"{m.message} {m.hint} {m.name}" for _, m in names.own_mistakes()]
    assert said
    assert not any("\u2603" in each for each in said)
