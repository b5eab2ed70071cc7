"""What a run gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from devall.core.messages import JsonValue, Message
from devall.core.outcome import ErrorReport, Outcome, Status
from devall.core.usage import Usage
from devall.engine.context import NodeSummary


@dataclass(frozen=True, slots=True)
class RunResult:
    """A finished run: its answer, and how it went."""

    run_id: str
    workflow: str
    """Path of the file, as it was given."""
    outcome: Outcome
    answer: str | None = None
    """Text of the answer; None: nothing that could answer has run."""
    answer_node: str | None = None
    message: Message | None = field(default=None, repr=False)
    """The answer with all its parts."""
    nodes: Mapping[str, NodeSummary] = field(default_factory=dict[str, NodeSummary])
    """By id, `S/X` in a subgraph."""
    usage: Usage = field(default_factory=Usage)
    usage_by_node: Mapping[str, Usage] = field(default_factory=dict[str, Usage])
    """Of the nodes that called a model or a tool; `S/X` in a subgraph."""
    usage_by_model: Mapping[str, Usage] = field(default_factory=dict[str, Usage])
    """By the model's name in the workflow."""
    seconds: float = 0
    warnings: tuple[str, ...] = ()
    logs_dir: Path | None = None
    """The run's own folder; None: nothing was written."""
    exception: Exception | None = field(default=None, repr=False, compare=False)
    """What ended the run, with its traceback, where something went wrong."""

    @property
    def status(self) -> Status:
        """completed, failed, limit_reached, waiting or cancelled."""
        return self.outcome.status

    @property
    def exit_code(self) -> int:
        """What the command line ends with."""
        return self.outcome.exit_code

    @property
    def error(self) -> ErrorReport | None:
        """Why the run failed, if it did."""
        return self.outcome.error

    @property
    def waiting(self) -> tuple[tuple[str, str], ...]:
        """(path of the human node's run, what is asked), for each open question."""
        return self.outcome.waiting

    def to_json(self) -> dict[str, JsonValue]:
        """The object that `devall run --json` prints."""
        error = self.error
        return {
            "run_id": self.run_id,
            "workflow": self.workflow,
            "status": self.status,
            "exit_code": self.exit_code,
            "answer": self.answer,
            "answer_node": self.answer_node,
            "nodes": {
                name: {"runs": node.runs, "status": node.status}
                for name, node in self.nodes.items()
            },
            "usage": self.usage.to_json(),
            "usage_by_node": {name: u.to_json() for name, u in self.usage_by_node.items()},
            "usage_by_model": {name: u.to_json() for name, u in self.usage_by_model.items()},
            "seconds": round(self.seconds, 3),
            "error": error
            and {
                "code": error.code,
                "message": error.message,
                "node": error.node,
                "hint": error.hint or None,
            },
            "waiting": [{"path": path, "question": text} for path, text in self.waiting],
            "warnings": list(self.warnings),
            "logs_dir": None if self.logs_dir is None else str(self.logs_dir),
        }
