"""A loopback HTTP server that takes what an exporter sends by OTLP, and decodes it."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics_wire
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_wire


@dataclass(slots=True)
class SentEvent:
    """An event of a span."""

    name: str
    attributes: dict[str, Any]


@dataclass(slots=True)
class SentSpan:
    """A span as it came."""

    name: str
    trace: str
    id: str
    parent: str
    kind: str
    began: int
    ended: int
    status: str
    message: str
    scope: str
    attributes: dict[str, Any]
    events: list[SentEvent]
    links: list[tuple[str, str]]
    resource: dict[str, Any]

    def event(self, name: str) -> SentEvent:
        """Its one event of that name."""
        (found,) = [each for each in self.events if each.name == name]
        return found


@dataclass(slots=True)
class Point:
    """A data point of a histogram."""

    count: int
    sum: float
    bounds: list[float]
    attributes: dict[str, Any]


@dataclass(slots=True)
class Receiver:
    """What was sent, in the order of arrival."""

    status: int = 200
    """What requests are answered with."""
    delay: float = 0
    """Seconds before they are."""
    spans: list[SentSpan] = field(default_factory=list)
    metrics: dict[str, list[Point]] = field(default_factory=dict)
    """Newest data points by the name of the instrument."""
    units: dict[str, str] = field(default_factory=dict)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    url: str = ""
    _server: ThreadingHTTPServer | None = None

    @property
    def env(self) -> dict[str, str]:
        """The environment that sends everything here."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.url}

    def span(self, name: str) -> SentSpan:
        """The one span of that name."""
        found = [span for span in self.spans if span.name == name]
        assert len(found) == 1, f"{len(found)} spans {name!r} among\n{self.tree()}"
        return found[0]

    def named(self, name: str) -> list[SentSpan]:
        """The spans of that name, in the order in which they began."""
        return sorted((s for s in self.spans if s.name == name), key=lambda s: s.began)

    def point(self, name: str, **wanted: Any) -> Point:
        """The one data point with these attributes, dots of whose names are written as `__`."""
        wanted = {key.replace("__", "."): value for key, value in wanted.items()}
        found = [
            point
            for point in self.metrics.get(name, ())
            if all(point.attributes.get(key) == value for key, value in wanted.items())
        ]
        assert len(found) == 1, f"{len(found)} points of {name} with {wanted}: {self.metrics}"
        return found[0]

    def tree(self) -> list[str]:
        """The spans' names, each indented below its parent, in the order in which they began."""
        ids = {span.id for span in self.spans}
        children: dict[str, list[SentSpan]] = {}
        for span in sorted(self.spans, key=lambda s: s.began):
            children.setdefault(span.parent if span.parent in ids else "", []).append(span)

        def below(parent: str, depth: int) -> list[str]:
            lines: list[str] = []
            for span in children.get(parent, ()):
                lines += ["  " * depth + span.name, *below(span.id, depth + 1)]
            return lines

        return below("", 0)

    def take(self, path: str, headers: dict[str, str], data: bytes) -> None:
        """Decode a request."""
        self.paths.append(path)
        self.headers.append(headers)
        if headers.get("content-encoding") == "gzip":
            data = gzip.decompress(data)
        if path.endswith("/v1/traces"):
            for each in trace_wire.ExportTraceServiceRequest.FromString(data).resource_spans:
                resource = _attributes(each.resource.attributes)
                for scope in each.scope_spans:
                    self.spans += [_span(s, scope.scope.name, resource) for s in scope.spans]
        elif path.endswith("/v1/metrics"):
            for each in metrics_wire.ExportMetricsServiceRequest.FromString(data).resource_metrics:
                for scope in each.scope_metrics:
                    for metric in scope.metrics:
                        self.units[metric.name] = metric.unit
                        self.metrics[metric.name] = [
                            Point(p.count, p.sum, [*p.explicit_bounds], _attributes(p.attributes))
                            for p in metric.histogram.data_points
                        ]

    def __enter__(self) -> Self:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["content-length"]))
                if receiver.delay:
                    time.sleep(receiver.delay)
                if receiver.status == 200:
                    names = {key.lower(): value for key, value in self.headers.items()}
                    receiver.take(self.path, names, data)
                try:
                    self.send_response(receiver.status)
                    self.send_header("content-length", "0")
                    self.end_headers()
                except OSError:
                    pass  # whoever asked has gone

            def log_message(self, *args: Any) -> None:
                pass

        server = self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()


_KINDS = {1: "internal", 2: "server", 3: "client"}
_STATUS = {0: "unset", 1: "ok", 2: "error"}


def _span(span: Any, scope: str, resource: dict[str, Any]) -> SentSpan:
    return SentSpan(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        _KINDS[span.kind],
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        _STATUS[span.status.code],
        span.status.message,
        scope,
        _attributes(span.attributes),
        [SentEvent(event.name, _attributes(event.attributes)) for event in span.events],
        [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
        resource,
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    read: dict[str, Callable[[], Any]] = {
        "array_value": lambda: [_value(each) for each in value.array_value.values],
        "kvlist_value": lambda: _attributes(value.kvlist_value.values),
    }
    return read.get(kind, lambda: getattr(value, kind) if kind else None)()
