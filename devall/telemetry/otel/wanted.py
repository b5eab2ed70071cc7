"""What the standard environment variables ask for; costs no import of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Signal = Literal["traces", "metrics"]

HTTP = "http/protobuf"
_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_WITH_SPANS = frozenset({"true", "1", "span_only", "span_and_event"})
_EVENTS_ALONE = "event_only"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be told, and by what."""

    traces: tuple[str, ...] = ()
    """Names of exporters: `otlp`, `console`, ...; none: no traces."""
    metrics: tuple[str, ...] = ()
    content: bool = False
    """Whether what is said to models and tools, and by them, goes along."""
    cause: str = ""
    """The variable that asks for it."""
    notes: tuple[str, ...] = ()
    """What of it cannot be done."""

    def __bool__(self) -> bool:
        return bool(self.traces or self.metrics)


def wanted(environment: Mapping[str, str]) -> Wanted:
    """What a process's environment asks for; nothing is the default.

    A signal is wanted where its exporter is named (`OTEL_TRACES_EXPORTER`), or an endpoint of
    OTLP is given for it or for all; `OTEL_SDK_DISABLED` and an exporter `none` stand above that.
    """
    if is_disabled(environment):
        return Wanted()
    traces, first = _exporters(environment, "traces")
    metrics, second = _exporters(environment, "metrics")
    captured = environment.get(_CAPTURE, "").strip().lower()
    notes: list[str] = []
    if captured == _EVENTS_ALONE and traces:
        notes.append(f"{_CAPTURE} is EVENT_ONLY, and contents go with spans only: SPAN_ONLY")
    return Wanted(traces, metrics, captured in _WITH_SPANS, first or second, tuple(notes))


def is_disabled(environment: Mapping[str, str]) -> bool:
    """Whether nothing of OpenTelemetry is to be done at all."""
    return environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def takes_content(environment: Mapping[str, str]) -> bool:
    """Whether what is said to models and tools, and by them, goes along with spans."""
    return environment.get(_CAPTURE, "").strip().lower() in _WITH_SPANS


def protocol(environment: Mapping[str, str], signal: Signal) -> str:
    """How OTLP is spoken: `http/protobuf` where nothing else is asked for."""
    own = environment.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "").strip()
    return own or environment.get("OTEL_EXPORTER_OTLP_PROTOCOL", "").strip() or HTTP


def _exporters(environment: Mapping[str, str], signal: Signal) -> tuple[tuple[str, ...], str]:
    """The names of a signal's exporters, and the variable that asks for it."""
    variable = f"OTEL_{signal.upper()}_EXPORTER"
    named = [name.strip() for name in environment.get(variable, "").split(",") if name.strip()]
    if named:
        kept = tuple(dict.fromkeys(name for name in named if name.lower() != "none"))
        return kept, variable if kept else ""
    for each in (f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        if environment.get(each, "").strip():
            return ("otlp",), each
    return (), ""
