from __future__ import annotations

from pathlib import Path

from jsonschema import Draft7Validator

from devall.core.diagnostics import Diagnostic, Position
from devall.reports.sarif import sarif

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
# What SARIF 2.1.0 asks of the parts that are written here, no other properties allowed.
SCHEMA = {
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "items": {"$ref": "#/definitions/run"}},
    },
    "definitions": {
        "run": {
            "type": "object",
            "required": ["tool"],
            "additionalProperties": False,
            "properties": {
                "tool": {
                    "type": "object",
                    "required": ["driver"],
                    "additionalProperties": False,
                    "properties": {"driver": {"$ref": "#/definitions/driver"}},
                },
                "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                "invocations": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["executionSuccessful"],
                        "additionalProperties": False,
                        "properties": {
                            "executionSuccessful": {"type": "boolean"},
                            "exitCode": {"type": "integer"},
                        },
                    },
                },
                "results": {"type": "array", "items": {"$ref": "#/definitions/result"}},
            },
        },
        "driver": {
            "type": "object",
            "required": ["name"],
            "additionalProperties": False,
            "properties": {
                "name": {"type": "string"},
                "version": {"type": "string"},
                "semanticVersion": {"type": "string", "pattern": r"^\d+\.\d+\.\d+"},
                "rules": {
                    "type": "array",
                    "uniqueItems": True,
                    "items": {
                        "type": "object",
                        "required": ["id"],
                        "additionalProperties": False,
                        "properties": {
                            "id": {"type": "string"},
                            "shortDescription": TEXT,
                            "defaultConfiguration": {
                                "type": "object",
                                "additionalProperties": False,
                                "properties": {"level": LEVEL},
                            },
                        },
                    },
                },
            },
        },
        "result": {
            "type": "object",
            "required": ["message"],
            "additionalProperties": False,
            "properties": {
                "ruleId": {"type": "string"},
                "ruleIndex": {"type": "integer", "minimum": 0},
                "level": LEVEL,
                "message": TEXT,
                "locations": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["physicalLocation"],
                        "additionalProperties": False,
                        "properties": {"physicalLocation": {"$ref": "#/definitions/place"}},
                    },
                },
            },
        },
        "place": {
            "type": "object",
            "required": ["artifactLocation"],
            "additionalProperties": False,
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "required": ["uri"],
                    "additionalProperties": False,
                    "properties": {
                        "uri": {"type": "string", "pattern": r"^[A-Za-z0-9._~%/:-]+$"},
                        "uriBaseId": {"type": "string"},
                    },
                },
                "region": {
                    "type": "object",
                    "required": ["startLine"],
                    "additionalProperties": False,
                    "properties": {
                        "startLine": {"type": "integer", "minimum": 1},
                        "startColumn": {"type": "integer", "minimum": 1},
                    },
                },
            },
        },
    },
}


def check(log: object) -> None:
    errors = list(Draft7Validator(SCHEMA).iter_errors(log))
    assert errors == []


def test_findings_become_results_with_rules_levels_and_places(workspace: Path):
    found = [
        Diagnostic("unknown-key", "no key `x`", Position("sub/a b#.yaml", 3, 5), "take it away"),
        Diagnostic("endless-loop", "never ends", Position("/elsewhere/w.yaml"), severity="warning"),
        Diagnostic("unknown-key", "no key `y`", Position("w.yaml", 4, 0)),
    ]
    log = sarif(found, version="1.2.3", root=Path(), exit_code=3)
    check(log)
    [run] = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["unknown-key", "endless-loop"]
    first, second, third = run["results"]
    assert first["message"]["text"] == "no key `x` (take it away)"
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "sub/a%20b%23.yaml", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 3, "startColumn": 5}
    assert (second["level"], third["level"]) == ("warning", "error")
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == [
        result["ruleId"] for result in run["results"]
    ]
    outside = second["locations"][0]["physicalLocation"]
    assert outside == {"artifactLocation": {"uri": "file:///elsewhere/w.yaml"}}
    assert third["locations"][0]["physicalLocation"]["region"]["startColumn"] == 1


def test_nothing_found_is_a_log_too(workspace: Path):
    log = sarif([], version="1.2.3", root=Path(), exit_code=0)
    check(log)
    assert log["runs"][0]["results"] == []
