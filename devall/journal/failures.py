"""Errors as the journal keeps them, for replays and for whoever looks back."""

from __future__ import annotations

from collections.abc import Mapping

from devall.core.errors import RecordedFailure, RunError
from devall.core.messages import JsonValue


def failure_to_json(error: RunError) -> JsonValue:
    """What `failure_from_json` reads."""
    return {
        "code": error.code,
        "exit_code": error.exit_code,
        "message": str(error),
        "hint": error.hint,
    }


def failure_from_json(value: Mapping[str, JsonValue]) -> RecordedFailure:
    """The error that was kept."""
    return RecordedFailure(value["code"], value["exit_code"], value["message"], value["hint"])
