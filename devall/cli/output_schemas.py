"""The JSON Schema of what each command prints with `--json` (`devall schema --output`).

A command prints one object: its own, or, where it fails before it has one, that of a run which
never began. Keys may be added; none changes its meaning or goes away within a version.
"""

from __future__ import annotations

from typing import Any, cast

from pydantic import TypeAdapter

from devall.cli.doctor_outputs import DoctorOutput, ProvidersOutput
from devall.cli.history_outputs import DiffOutput, ReportOutput, ShowOutput, WhyOutput
from devall.cli.outputs import (
    GraphOutput,
    McpLoginOutput,
    ModelsListOutput,
    ModelsPullOutput,
    RunOutput,
    ToolsCallOutput,
    ToolsListOutput,
    ValidateOutput,
)
from devall.cli.plan_outputs import PlanOutput
from devall.cli.rewriting_outputs import FmtOutput, ImportOutput
from devall.cli.runs_outputs import (
    RunsAnswerOutput,
    RunsCancelOutput,
    RunsListOutput,
    RunsPruneOutput,
    RunsShowOutput,
    RunsTailOutput,
)
from devall.cli.testing_outputs import CaseAddOutput, CasesOutput
from devall.config.schema import DIALECT

OUTPUTS: dict[str, Any] = {
    "run": RunOutput,
    "resume": RunOutput,
    "replay": RunOutput,
    "validate": ValidateOutput | RunOutput,
    "fmt": FmtOutput | RunOutput,
    "import chatdev": ImportOutput | RunOutput,
    "graph": GraphOutput | RunOutput,
    "plan": PlanOutput | RunOutput,
    "tools list": ToolsListOutput | RunOutput,
    "tools call": ToolsCallOutput | RunOutput,
    "models list": ModelsListOutput | RunOutput,
    "models pull": ModelsPullOutput | RunOutput,
    "providers": ProvidersOutput | RunOutput,
    "doctor": DoctorOutput | RunOutput,
    "mcp login": McpLoginOutput | RunOutput,
    "show": ShowOutput | RunOutput,
    "why": WhyOutput | RunOutput,
    "diff": DiffOutput | RunOutput,
    "report": ReportOutput | RunOutput,
    "test": CasesOutput | RunOutput,
    "test add": CaseAddOutput | RunOutput,
    "runs list": RunsListOutput | RunOutput,
    "runs show": RunsShowOutput | RunOutput,
    "runs tail": RunsTailOutput | RunOutput,
    "runs answer": RunsAnswerOutput | RunOutput,
    "runs cancel": RunsCancelOutput | RunOutput,
    "runs prune": RunsPruneOutput | RunOutput,
}
"""Command to what it prints."""


def output_schema(command: str) -> dict[str, Any]:
    """The JSON Schema of what `devall COMMAND --json` prints."""
    schema = _open(TypeAdapter(OUTPUTS[command]).json_schema())
    return {"$schema": DIALECT, **schema, "title": f"devall {command} --json"}


def _open(schema: Any) -> Any:
    """The schema without the ban on further keys, which is for our own tests."""
    if isinstance(schema, list):
        return [_open(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    members = cast("dict[str, Any]", schema)
    return {
        key: _open(value)
        for key, value in members.items()
        if not (key == "additionalProperties" and value is False)
    }
