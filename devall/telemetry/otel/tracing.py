"""Whether a run is traced, by whose providers, and what comes before and after it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from devall.core.errors import SetupError
from devall.core.events import Event, RunFinished
from devall.telemetry.hidden import HiddenOutputs
from devall.telemetry.otel.wanted import Wanted, is_disabled, takes_content, wanted
from devall.telemetry.redaction import Redactor
from devall.telemetry.run_log import open_private

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import SpanContext, TracerProvider

    from devall.telemetry.otel.exports import Exports
    from devall.telemetry.otel.spans import Spans

FILE_NAME = "traceparent"
"""In a run's folder: the span of each of its processes, one a line, as W3C writes them."""


class Tracing:
    """A run's traces and metrics; an instance is itself the sink.

    Where nothing is wanted it takes nothing, and costs nothing.
    """

    def __init__(self) -> None:
        self._spans: Spans | None = None
        self._exports: Exports | None = None
        self.warnings: list[str] = []
        """What of it cannot be done, to be told once the run has begun."""

    @classmethod
    def of_environment(
        cls,
        redactor: Redactor,
        *,
        folder: Path | None = None,
        hidden: Callable[[], Collection[str]] = tuple,
    ) -> Tracing:
        """What the process asks for: by providers that it has set, or by its environment.

        Args:
            redactor: What takes the secrets out.
            folder: The run's folder, where its spans are kept, to be linked to when it is resumed.
            hidden: Gives the nodes with `log_output: false`.
        """
        found = cls()
        environment = os.environ
        if is_disabled(environment):
            return found
        asked = wanted(environment)
        if _application_traces() is None and not asked:
            return found
        try:
            found._open(asked, environment, redactor, folder, hidden)
        except ImportError:
            found.warnings.append(
                f"{asked.cause} asks for traces or metrics, and the extra for them is missing:"
                " pip install devall[otel]"
            )
        except SetupError as error:
            hint = f" ({error.hint})" if error.hint else ""
            found.warnings.append(f"{error}{hint}; the run is not traced")
        return found

    def __bool__(self) -> bool:
        return self._spans is not None

    def __call__(self, event: Event, /) -> None:
        """Take an event, in the task that it happens in."""
        if self._spans is not None:
            self._spans(event)

    async def finish(self, event: RunFinished) -> str:
        """Let the run's span end, and send what is left in bounded time.

        Returns:
            What went wrong; empty: nothing.

        Raises:
            asyncio.CancelledError: the task was cancelled, and what is left is lost.
        """
        if self._spans is not None:
            self._spans.finish(event)
        exports, self._exports = self._exports, None
        if exports is None:
            return ""
        return await exports.finish(is_hurried=event.outcome.status == "cancelled")

    async def aclose(self) -> None:
        """Let go of everything, where the run broke off; else nothing is left to do."""
        if self._spans is not None:
            self._spans.drop()
            self._spans = None
        exports, self._exports = self._exports, None
        if exports is not None:
            await asyncio.shield(exports.finish(is_hurried=True))

    def _open(
        self,
        asked: Wanted,
        environment: Mapping[str, str],
        redactor: Redactor,
        folder: Path | None,
        hidden: Callable[[], Collection[str]],
    ) -> None:
        """Choose the providers, and begin.

        Raises:
            ImportError: the extra is missing.
            SetupError: an exporter cannot be had.
        """
        release = _release()
        traces, metrics = _application_traces(), None
        if traces is not None:
            from opentelemetry import metrics as api

            metrics = api.get_meter_provider()
            content = takes_content(environment)
        else:
            from devall.telemetry.otel.exports import Exports

            self._exports = Exports(asked, environment, release)
            traces, metrics = self._exports.traces, self._exports.metrics
            content = asked.content
            self.warnings += [*asked.notes, *self._exports.notes]
        from devall.telemetry.otel.content import Content
        from devall.telemetry.otel.measures import Measures
        from devall.telemetry.otel.scene import Scene
        from devall.telemetry.otel.spans import Spans
        from devall.telemetry.otel.tree import Tree

        place = folder / FILE_NAME if folder is not None else None
        scene = Scene(
            Tree(traces.get_tracer("devall", release), redactor.text),
            Measures(metrics.get_meter("devall", release)),
            HiddenOutputs(hidden()),
            Content(redactor) if content else None,
        )
        self._spans = Spans(
            scene,
            parent=_parent(environment),
            earlier=_earlier(place) if place is not None else None,
            on_start=lambda span: _keep(place, span) if place is not None else None,
        )


def _release() -> str:
    """The version of devall; empty where it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("devall")
    except PackageNotFoundError:
        return ""


def _application_traces() -> TracerProvider | None:
    """The provider that the application around the run has set, if it has."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    from opentelemetry.trace import NoOpTracerProvider, ProxyTracerProvider, get_tracer_provider

    provider = get_tracer_provider()
    is_set = not isinstance(provider, ProxyTracerProvider | NoOpTracerProvider)
    return provider if is_set else None


def _parent(environment: Mapping[str, str]) -> Context | None:
    """What the environment says the run is a part of; a span that is current is nearer."""
    from opentelemetry import propagate
    from opentelemetry.trace import get_current_span

    if get_current_span().get_span_context().is_valid:
        return None
    carrier = {
        field: environment.get(_variable(field), "")
        for field in propagate.get_global_textmap().fields
    }
    found = propagate.extract({field: value for field, value in carrier.items() if value})
    return found if get_current_span(found).get_span_context().is_valid else None


def _variable(field: str) -> str:
    """The variable that carries a field from process to process: `TRACEPARENT`."""
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in field).upper()


def _keep(place: Path, span: SpanContext) -> None:
    """Write down the run's span for whoever goes on with the run."""
    if not span.is_valid:
        return
    handle = open_private(place)
    try:
        os.write(
            handle, f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}\n".encode()
        )
    finally:
        os.close(handle)


def _earlier(place: Path) -> SpanContext | None:
    """The span of the process that had the run before."""
    from opentelemetry.trace import SpanContext, TraceFlags

    try:
        lines = place.read_text(encoding="ascii").splitlines()
        _, trace, span, flags = lines[-1].split("-")
        found = SpanContext(int(trace, 16), int(span, 16), True, TraceFlags(int(flags, 16)))
    except (IndexError, OSError, ValueError):
        return None
    return found if found.is_valid else None
