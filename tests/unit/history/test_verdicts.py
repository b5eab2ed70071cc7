from __future__ import annotations

import pytest
from pydantic import TypeAdapter

from devall.config.edges import Edge
from devall.core.messages import assistant
from devall.graph.model import PlanEdge
from devall.history.verdicts import Verdicts


def edge(**values) -> PlanEdge:
    config = TypeAdapter(Edge).validate_python({"from": "A", "to": "B"} | values)
    return PlanEdge(0, 0, 1, config)


def reason(text: str, fired: int, **values) -> str:
    return Verdicts().reason(edge(**values), "/A@1", 0, assistant(text), fired, 1)


def keyword(**config) -> dict[str, object]:
    return {"condition": {"type": "keyword", "config": config}}


@pytest.mark.parametrize(
    ("config", "text", "fired", "words"),
    [
        ({"any": ["go"]}, "let us go on", 1, "'go' stands in \"let us go on\""),
        ({"any": ["go", "on"]}, "let us stay", 0, "'go' or 'on' is not in \"let us stay\""),
        ({"none": ["stop"]}, "go", 1, "none of 'stop' stands in \"go\""),
        ({"none": ["stop"], "any": ["go"]}, "stop, go", 0, "'stop' of `none` stands in"),
        ({"regex": ["g.+d"]}, "a good one", 1, '/g.+d/ matches "good" in "a good one"'),
        ({"regex": ["^x"]}, "y", 0, '/^x/ is not in "y"'),
        ({"any": ["GO"], "case_sensitive": False}, "We Go!", 1, "'GO' stands in \"We Go!\""),
        ({"any": ["go"]}, "a" * 99 + " go " + "b" * 99, 1, f'"…{"a" * 29} go {"b" * 29}…"'),
        ({"any": ["x"]}, "a" * 99, 0, f'"{"a" * 80}…"'),
    ],
)
def test_a_keyword_condition_is_told_by_what_was_found(config, text, fired, words):
    assert words in reason(text, fired, **keyword(**config))


@pytest.mark.parametrize(
    ("when", "text", "fired", "words"),
    [
        ("score > 7", '{"score": 8}', 1, '`score > 7` is true of "{"score": 8}"'),
        ("score > 7", "none", 0, '`score > 7` is false of "none"'),
        ("score > 7", '{"score": "8"}', 0, "cannot be decided: `>` cannot compare the text '8'"),
        ("score > 7", "[hidden: 9 characters]", 0, ""),
    ],
)
def test_an_expression_is_told_with_the_text_that_it_was_held_against(when, text, fired, words):
    condition = {"condition": {"type": "expression", "config": {"when": when}}}
    assert words in reason(text, fired, **condition)
    assert Verdicts().condition(edge(**condition)) == f"expression `{when}`"


def test_folding_that_changes_lengths_still_finds_the_text():
    found = reason("İstanbul, GO", 1, **keyword(any=["go"], case_sensitive=False))
    assert found == "'go' stands in \"İstanbul, GO\""


def test_a_processing_that_drops_a_message_is_told():
    process = {
        "process": {"type": "regex_extract", "config": {"pattern": "a(b)", "on_no_match": "drop"}}
    }
    assert reason("xyz", 0, **process) == '/a(b)/ matches nothing in "xyz"'
    assert reason("ab", 1, **process) == "/a(b)/ matches"
    both = reason("xyz", 0, **process, **keyword(any=["x"]))
    assert both == '\'x\' stands in "xyz"; /a(b)/ matches nothing in "xyz"'
    assert Verdicts().condition(edge(**process, **keyword(any=["x"]))) == (
        "keywords: any of 'x'; regex_extract /a(b)/ must match"
    )


def test_a_text_that_is_kept_out_of_logs_decides_without_being_shown():
    found = reason("(kept out of logs: 9 characters)", 0, **keyword(any=["x"]))
    assert found == "decided by a text that is kept out of logs"


def test_an_edge_that_is_always_shut_says_so():
    assert reason("x", 0, condition=False) == "its condition is false, always"
    assert reason("x", 1) == "it has no condition"
