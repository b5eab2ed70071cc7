"""`devall schema`: the JSON Schema of the file format, or of what a command prints."""

from __future__ import annotations

import json

from devall.cli.failures import Reporter
from devall.cli.streams import write_answer
from devall.core.errors import UsageError
from devall.core.messages import JsonValue

EVENTS = "events"
TEST_CASE = "test-case"
"""What `--output` may name beside commands: a line of events.jsonl, the file of a test."""


def execute(output: str | None = None, *, debug: bool = False) -> int:
    """Print the schema; the exit code.

    Args:
        output: The command whose `--json` is described, or `events`, or `test-case`; None = the
            format of workflows.
        debug: Whether tracebacks are shown.
    """

    def work() -> int:
        write_answer(json.dumps(_schema(output), indent=2, ensure_ascii=False) + "\n")
        return 0

    return Reporter(debug=debug).guard(work)


def _schema(output: str | None) -> dict[str, JsonValue]:
    if output is None:
        from devall.config.schema import json_schema

        return json_schema()
    if output == EVENTS:
        from devall.config.schema import DIALECT
        from devall.telemetry.schema import events_schema

        return {"$schema": DIALECT, **events_schema()}
    if output == TEST_CASE:
        from devall.testing.cases.case import case_schema

        return case_schema()
    from devall.cli.output_schemas import OUTPUTS, output_schema

    if output not in OUTPUTS:
        known = ", ".join(f"'{name}'" if " " in name else name for name in OUTPUTS)
        raise UsageError(
            f"--output {output!r}: no such command prints JSON",
            hint=f"there is {known}; and {EVENTS}, {TEST_CASE}",
        )
    return output_schema(output)
