from __future__ import annotations

import pytest

from devall.plugins.functions import FunctionCatalog
from devall.plugins.shipped import shipped_functions


@pytest.fixture(scope="module")
def catalog() -> FunctionCatalog:
    return FunctionCatalog(None, shipped_functions())


@pytest.mark.parametrize(
    ("name", "text", "holds"),
    [
        ("contains_keyword", "pull the TRIGGER now", True),
        ("contains_keyword", "pull nothing", False),
        ("not_contains_keyword", "pull nothing", True),
        ("not_contains_keyword", "Trigger", False),
        ("length_greater_than_5", "123456", True),
        ("length_greater_than_5", "12345", False),
        ("always_false", "true", False),
        ("code_pass", "42\n", True),
        ("code_pass", "==CODE EXECUTION FAILED==\nexit code 1", False),
        ("code_fail", "==CODE EXECUTION FAILED==\nexit code 1", True),
        ("code_fail", "", False),
        ("should_stop_loop", "Well done.\nVerdict: STOP", True),
        ("should_stop_loop", "verdict: done.", True),
        ("should_stop_loop", "**Verdict:** Done", True),
        ("should_stop_loop", "Verdict: CONTINUE", False),
        ("should_stop_loop", "Verdict: stopgap", False),
        ("should_stop_loop", "I would stop, but give no verdict", False),
        ("should_stop_loop", "My verdict: STOP", False),
        ("should_stop_loop", "", False),
        ("should_stop_loop", "Verdict: CONTINUE\nVerdict: STOP", False),
        ("need_reflection_loop", "Verdict: REVISE", True),
        ("need_reflection_loop", "no verdict", True),
        ("need_reflection_loop", "Verdict: stop", False),
    ],
)
def test_a_shipped_condition_says_whether_its_edge_fires(
    catalog: FunctionCatalog, name: str, text: str, holds: bool
):
    assert catalog.edge(name)(text) is holds


def test_the_shipped_processor_gives_capital_letters(catalog: FunctionCatalog):
    assert catalog.edge_processor("uppercase_payload")("straße 1") == "STRASSE 1"


def test_the_shipped_conditions_are_those_that_the_documents_name(catalog: FunctionCatalog):
    assert sorted(catalog.names("edge")) == [
        "always_false",
        "code_fail",
        "code_pass",
        "contains_keyword",
        "length_greater_than_5",
        "need_reflection_loop",
        "not_contains_keyword",
        "should_stop_loop",
    ]
    assert sorted(catalog.names("edge_processor")) == ["code_save_and_run", "uppercase_payload"]
