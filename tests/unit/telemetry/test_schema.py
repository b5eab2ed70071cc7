from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from devall.core.events import ModelCallStarted, RunStarted, TextDelta
from devall.telemetry.run_log import KINDS, event_name
from devall.telemetry.schema import events_schema

SCHEMA = events_schema()
SKIPPED = {"v": 1, "event": "node_skipped", "at": 1.5, "path": "", "node": "A"}


def test_it_is_a_schema_with_a_definition_for_each_event_of_the_file():
    Draft202012Validator.check_schema(SCHEMA)
    assert [each["$ref"] for each in SCHEMA["oneOf"]] == [f"#/$defs/{name}" for name in KINDS]
    assert len(KINDS) > 20
    assert event_name(TextDelta) not in KINDS


@pytest.mark.parametrize("name", KINDS)
def test_each_event_and_each_of_its_fields_has_a_place(name: str):
    found = SCHEMA["$defs"][name]
    names = [each.name for each in fields(KINDS[name])]
    assert list(found["properties"]) == ["v", "event", *names]
    assert found["description"] == KINDS[name].__doc__.strip()


def test_the_texts_under_fields_are_their_descriptions():
    node = SCHEMA["$defs"][event_name(RunStarted)]["properties"]["nodes"]
    assert node["description"] == "Ids of the root graph's nodes, in file order."
    messages = SCHEMA["$defs"][event_name(ModelCallStarted)]["properties"]["messages"]
    assert messages["description"].startswith("Those of the request that no earlier one")
    assert SCHEMA["$defs"]["GraphShape"]["properties"]["nodes"]["description"] == "In file order."


@pytest.mark.parametrize(
    ("change", "is_valid"),
    [
        ({}, True),
        ({"more": [1]}, True),
        ({"v": 2}, False),
        ({"event": "node_dreamt"}, False),
        ({"node": None}, False),
        ({"at": "now"}, False),
    ],
)
def test_a_line_is_one_event_of_this_version(change: dict[str, Any], is_valid: bool):
    assert Draft202012Validator(SCHEMA).is_valid(SKIPPED | change) is is_valid


@pytest.mark.parametrize(
    ("answer", "is_valid"),
    [
        ("yes", True),
        ({"hidden": True, "chars": 3}, True),
        ({"body": "a" * 64, "bytes": 70_000, "type": "text"}, True),
        ({"body": "../etc", "bytes": 1, "type": "text"}, False),
        ({"chars": 3}, False),
        (3, False),
    ],
)
def test_a_text_may_be_hidden_or_stand_elsewhere(answer: Any, is_valid: bool):
    line = {"v": 1, "event": "human_answered", "at": 1, "node": "H", "answer": answer}
    assert Draft202012Validator(SCHEMA).is_valid(line) is is_valid
