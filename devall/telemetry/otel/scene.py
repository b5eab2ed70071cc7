"""What all that is told of one run has in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from devall.core.events import Event
from devall.core.usage import TokenUsage
from devall.telemetry.hidden import HiddenOutputs
from devall.telemetry.otel import names
from devall.telemetry.otel.content import Content
from devall.telemetry.otel.measures import Measures
from devall.telemetry.otel.tree import Attributes, Opened, Tree, Value

OTHER = "_OTHER"
"""What the conventions call an error of no known kind."""


@dataclass(slots=True)
class Scene:
    """A run's spans and instruments, and what of its words may be told."""

    tree: Tree
    measures: Measures
    hidden: HiddenOutputs
    """What nodes with `log_output: false` have said."""
    content: Content | None = None
    """Tells what is said as well; None: nothing of it."""
    run: str = ""
    """The run's id."""

    def seen(self, event: Event, *fields: str) -> dict[str, Any]:
        """Fields of an event without what is hidden."""
        body = {field: getattr(event, field) for field in fields}
        self.hidden.cover(event, body)
        return body

    def note(self, event: Event, name: str, about: Attributes) -> None:
        """Tell an event of the span that it lies in."""
        opened = self.tree.around(event.path)
        if opened is not None:
            self.tree.event(opened, name, about, event.at)

    def end(
        self,
        opened: Opened,
        at: float,
        attributes: Attributes,
        *,
        failed: str | None = None,
        left: str = "cancelled",
    ) -> None:
        """Let a span end that others may lie in, and forget the conversations in it."""
        if self.content is not None:
            for each in [opened, *self.tree.open_within(opened)]:
                self.content.forget(each.key)
        self.tree.end(opened, at, attributes, failed=failed, left=left)


def words(value: object) -> str:
    """What went wrong: a message, or that of an outcome."""
    match value:
        case str():
            return value
        case {"error": {"message": str(text)}}:
            return text
        case _:
            error = getattr(value, "error", None)
            return str(error.message) if error is not None else ""


def count(opened: Opened | None, name: str) -> None:
    """Count something for a node, and for the unit and the subgraph that it lies in."""
    while opened is not None and opened.key:
        opened.add(name, 1)
        opened = opened.parent


def sum_up(opened: Opened | None, usage: TokenUsage | None, usd: float | None) -> None:
    """Add what a call has used to its node, and to the unit and the subgraph around that."""
    while opened is not None and opened.key:
        if usage is not None:
            opened.add(names.INPUT_SUM, usage.input_tokens)
            opened.add(names.OUTPUT_SUM, usage.output_tokens)
        if usd is not None:
            opened.add(names.USD, usd)
        opened = opened.parent


def sums(opened: Opened) -> dict[str, Value]:
    """What the calls of a node have used, as attributes."""
    whole = (n for n in opened.sums if n != names.LIVE)
    return {n: opened.sums[n] if n == names.USD else int(opened.sums[n]) for n in whole}
