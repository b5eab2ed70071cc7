"""Findings about workflow files as SARIF 2.1.0, which code hosts show beside the lines."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from devall.core.diagnostics import Diagnostic, Position
from devall.core.messages import JsonValue

VERSION = "2.1.0"
SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_ROOT = "%SRCROOT%"


def sarif(
    diagnostics: Iterable[Diagnostic], *, version: str, root: Path, exit_code: int
) -> dict[str, JsonValue]:
    """The findings as a SARIF log of one run.

    Args:
        diagnostics: What was found; a stable code is a rule's id.
        version: That of devall.
        root: The folder from which files are named; those elsewhere have absolute URIs.
        exit_code: What the command ends with.
    """
    found = list(diagnostics)
    codes = list(dict.fromkeys(each.code for each in found))
    levels = {code: {each.severity for each in found if each.code == code} for code in codes}
    top = os.path.realpath(root)
    return {
        "$schema": SCHEMA,
        "version": VERSION,
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "devall",
                        "version": version,
                        "semanticVersion": version,
                        "rules": [_rule(code, levels[code]) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "invocations": [{"executionSuccessful": exit_code != 2, "exitCode": exit_code}],
                "results": [_result(each, codes.index(each.code), top) for each in found],
            }
        ],
    }


def _rule(code: str, levels: set[str]) -> dict[str, JsonValue]:
    words = code.replace("-", " ").replace("_", " ")
    return {
        "id": code,
        "shortDescription": {"text": words[:1].upper() + words[1:]},
        "defaultConfiguration": {"level": "error" if "error" in levels else "warning"},
    }


def _result(diagnostic: Diagnostic, rule: int, root: str) -> dict[str, JsonValue]:
    hint = f" ({diagnostic.hint})" if diagnostic.hint else ""
    return {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": diagnostic.severity,
        "message": {"text": diagnostic.message + hint},
        "locations": [{"physicalLocation": _location(diagnostic.position, root)}],
    }


def _location(position: Position, root: str) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {"artifactLocation": _artifact(position.file, root)}
    if position.line:
        found["region"] = {"startLine": position.line, "startColumn": max(position.column, 1)}
    return found


def _artifact(file: str, root: str) -> dict[str, JsonValue]:
    place = os.path.realpath(file)
    if place.startswith(root.rstrip(os.sep) + os.sep):
        inside = os.path.relpath(place, root).replace(os.sep, "/")
        return {"uri": quote(inside), "uriBaseId": _ROOT}
    return {"uri": Path(place).as_uri()}
