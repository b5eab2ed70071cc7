from __future__ import annotations

from pathlib import Path

import pytest

from devall.cli import options
from devall.core.errors import UsageError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-0.5e3", -500.0),
        ("true", True),
        ("false", False),
        ("null", None),
        ('"5"', "5"),
        ('"a\\nb"', "a\nb"),
        ("", ""),
        ("007", "007"),
        ("+1", "+1"),
        ("1.", "1."),
        ("1.2.3", "1.2.3"),
        ("1e999", "1e999"),
        ("True", "True"),
        ("no", "no"),
        ("[1]", "[1]"),
        ('{"a": 1}', '{"a": 1}'),
        ('"', '"'),
        ('"a" or "b"', '"a" or "b"'),
        (" 5", " 5"),
        ("NaN", "NaN"),
        ("٣", "٣"),
    ],
)
def test_a_value_is_text_unless_it_is_a_json_number_or_word(text: str, value: object):
    found = options.parse_value(text)
    assert (found, type(found)) == (value, type(value))


def test_only_the_first_equals_sign_parts_name_and_value():
    assert options.parse_variables(["A=b=c", "N=1", "N=2"]) == {"A": "b=c", "N": 2}


@pytest.mark.parametrize("given", ["NAME", "=x", " =x"])
def test_what_is_no_assignment_is_refused(given: str):
    with pytest.raises(UsageError, match="no assignment") as raised:
        options.parse_variables([given])
    assert "NAME=VALUE" in raised.value.hint


def test_one_answer_is_for_every_time_and_several_are_in_order():
    given = ["H=yes", "S/X=one", "S/X=two=2"]
    assert options.parse_answers(given, {"H", "S/X"}) == {"H": "yes", "S/X": ["one", "two=2"]}


def test_ids_may_hold_equals_signs():
    assert options.parse_answers(["a=b=c=d"], {"a=b"}) == {"a=b": "c=d"}
    assert options.parse_choices(["a=b=gpt"], {"a=b"}, "--model") == {"a=b": "gpt"}


def test_an_answer_for_an_unknown_node_names_the_nearest():
    with pytest.raises(UsageError, match="no human node 'reviewr'") as raised:
        options.parse_answers(["reviewr=x"], ["reviewer", "author"])
    assert raised.value.hint == "did you mean reviewer?"


def test_an_answer_without_a_node_or_for_a_workflow_without_humans_says_so():
    with pytest.raises(UsageError, match="names no node"):
        options.parse_answers(["yes"], ["H"])
    with pytest.raises(UsageError) as raised:
        options.parse_answers(["H=x"], [])
    assert "this workflow has none" in raised.value.hint


def test_many_nodes_are_not_all_listed():
    with pytest.raises(UsageError) as raised:
        options.parse_answers(["zzz=x"], [f"node{n}" for n in range(100)])
    assert "and 92 more" in raised.value.hint


def test_a_name_without_a_node_is_for_all():
    given = ["gpt", "writer=mini", "hf.co/org=x/model"]
    with pytest.raises(UsageError, match=r"no agent 'hf\.co/org'"):
        options.parse_choices(given, ["writer"], "--model")
    assert options.parse_choices(given[:2], ["writer"], "--model") == {"": "gpt", "writer": "mini"}
    with pytest.raises(UsageError, match="gives no name"):
        options.parse_choices(["writer="], ["writer"], "--model")


def test_answers_of_a_file_are_texts_or_lists_of_texts():
    found = {"H": "yes", "J": ["a", 5, True]}
    assert options.check_answers(found, Path("a.yaml"), ["H", "J"]) == {
        "H": "yes",
        "J": ["a", "5", "true"],
    }


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "holds no answers"),
        (["x"], "holds no answers"),
        ({"H": None}, "neither a text nor a list"),
        ({"H": {"a": 1}}, "neither a text nor a list"),
        ({"H": [["a"]]}, "neither a text nor a list"),
        ({"G": "x"}, "there is no human node 'G'"),
        ({5: "x"}, "there is no human node '5'"),
    ],
)
def test_other_things_in_an_answers_file_are_refused(found: object, words: str):
    with pytest.raises(UsageError, match=words):
        options.check_answers(found, Path("a.yaml"), ["H"])


def test_a_variables_file_is_a_mapping_by_name():
    assert options.check_variables({"A": [1]}, Path("v")) == {"A": [1]}
    for wrong in (None, "x", {5: 1}):
        with pytest.raises(UsageError):
            options.check_variables(wrong, Path("v"))


def test_a_file_is_read_as_its_name_says(tmp_path: Path):
    place = tmp_path / "a.json"
    place.write_text('\ufeff{"a": 1}')
    assert options.read_values(place, "--vars-file", lambda *_: pytest.fail("YAML")) == {"a": 1}
    place.write_text("a: 1")
    with pytest.raises(UsageError, match=r"a\.json is no JSON"):
        options.read_values(place, "--vars-file", lambda *_: None)
    other = tmp_path / "a.yaml"
    other.write_text("text")
    read = options.read_values(other, "--vars-file", lambda text, name: (text, name))
    assert read == ("text", str(other))


def test_a_file_that_cannot_be_read_says_which_option_named_it(tmp_path: Path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name, words in [("none", "no such file"), ("binary", "no UTF-8"), ("", "is a directory")]:
        with pytest.raises(UsageError, match=f"--task-file .*{words}"):
            options.read_text(tmp_path / name, "--task-file")


def test_options_that_exclude_each_other_are_named():
    options.only_one([("--task", True), ("-", False)])
    with pytest.raises(UsageError, match="--task and - exclude each other"):
        options.only_one([("--task", True), ("--task-file", False), ("-", True)])
