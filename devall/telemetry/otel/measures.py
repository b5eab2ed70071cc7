"""The instruments: tokens and durations, with the boundaries that the conventions advise."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.metrics import Histogram, Meter
from opentelemetry.trace import set_span_in_context

from devall.core.usage import TokenUsage
from devall.telemetry.otel import names
from devall.telemetry.otel.tree import Attributes, Opened

TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864]
SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
FIRST_CHUNK = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
LONG = [*SECONDS, 163.84, 327.68, 655.36, 1310.72, 2621.44, 5242.88]
"""For what may wait for a human: up to an hour and a half."""


class Measures:
    """Records what a run's calls, nodes and the run itself took."""

    def __init__(self, meter: Meter) -> None:
        """Make the instruments."""
        self._tokens = _histogram(
            meter,
            names.TOKEN_USAGE,
            "Number of input and output tokens used.",
            TOKENS,
            "{token}",
        )
        self._calls = _histogram(
            meter, names.OPERATION_DURATION, "GenAI operation duration.", SECONDS
        )
        self._first = _histogram(
            meter,
            names.FIRST_CHUNK_TIME,
            "Time until the first piece of a streamed answer.",
            FIRST_CHUNK,
        )
        self._tools = _histogram(meter, names.TOOL_DURATION, "Duration of a tool's call.", SECONDS)
        self._runs = _histogram(meter, names.RUN_DURATION, "Duration of a workflow's run.", LONG)
        self._nodes = _histogram(meter, names.NODE_DURATION, "Duration of a node's run.", LONG)

    def call(
        self,
        opened: Opened,
        seconds: float,
        more: Attributes,
        usage: TokenUsage | None,
        first: float | None = None,
    ) -> None:
        """Record a model's call: one attempt, and what it used."""
        where = _place(opened)
        labels = {**opened.labels, **more}
        self._calls.record(seconds, labels, where)
        if first is not None:
            self._first.record(first, labels, where)
        if usage is None:
            return
        labels.pop(names.ERROR, None)
        for kind, count in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            if count:
                self._tokens.record(count, {**labels, names.TOKEN_TYPE: kind}, where)

    def tool(self, opened: Opened, seconds: float, more: Attributes) -> None:
        """Record a tool's call."""
        self._tools.record(seconds, {**opened.labels, **more}, _place(opened))

    def node(self, opened: Opened, seconds: float, more: Attributes) -> None:
        """Record a node's run."""
        self._nodes.record(seconds, {**opened.labels, **more}, _place(opened))

    def run(self, opened: Opened, seconds: float, more: Attributes) -> None:
        """Record a run."""
        self._runs.record(seconds, {**opened.labels, **more}, _place(opened))


def _histogram(
    meter: Meter, name: str, about: str, bounds: Sequence[float], unit: str = "s"
) -> Histogram:
    return meter.create_histogram(name, unit, about, explicit_bucket_boundaries_advisory=bounds)


def _place(opened: Opened) -> Context:
    """Where a measurement is an example of what was measured."""
    return set_span_in_context(opened.span, Context())
