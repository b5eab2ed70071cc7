"""`devall schema`: the JSON Schema of the file format."""

from __future__ import annotations

import json

from devall.cli.failures import Reporter
from devall.cli.streams import write_answer


def execute(*, debug: bool = False) -> int:
    """Print the schema; the exit code."""
    return Reporter(debug=debug).guard(_execute)


def _execute() -> int:
    from devall.config.schema import json_schema

    write_answer(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")
    return 0
