from __future__ import annotations

import pytest

from devall.telemetry.otel.wanted import protocol, wanted

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}


@pytest.mark.parametrize(
    ("environment", "traces", "metrics"),
    [
        ({}, (), ()),
        ({"OTEL_SERVICE_NAME": "x", "OTEL_EXPORTER_OTLP_HEADERS": "a=b"}, (), ()),
        (ENDPOINT, ("otlp",), ("otlp",)),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, (), ()),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/v1/traces"}, ("otlp",), ()),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c/v1/metrics"}, (), ("otlp",)),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, ("otlp",), ()),
        ({"OTEL_TRACES_EXPORTER": "console, otlp,console"}, ("console", "otlp"), ()),
        (ENDPOINT | {"OTEL_METRICS_EXPORTER": "none"}, ("otlp",), ()),
        (ENDPOINT | {"OTEL_TRACES_EXPORTER": "none"}, (), ("otlp",)),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "True"}, (), ()),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "false"}, ("otlp",), ("otlp",)),
    ],
)
def test_signals_are_told_where_an_exporter_or_an_endpoint_is_named(environment, traces, metrics):
    found = wanted(environment)
    assert (found.traces, found.metrics) == (traces, metrics)
    assert bool(found) is bool(traces or metrics)
    assert bool(found.cause) is bool(found)
    assert not found.content


@pytest.mark.parametrize(
    ("said", "content", "notes"),
    [
        ("true", True, 0),
        ("SPAN_ONLY", True, 0),
        ("span_and_event", True, 0),
        ("EVENT_ONLY", False, 1),
        ("NO_CONTENT", False, 0),
        ("false", False, 0),
    ],
)
def test_contents_go_along_only_where_that_is_asked_for(said, content, notes):
    found = wanted(ENDPOINT | {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": said})
    assert found.content is content
    assert len(found.notes) == notes


def test_the_protocol_of_a_signal_stands_before_that_of_all():
    environment = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    assert protocol({}, "traces") == "http/protobuf"
    assert protocol(environment, "traces") == "grpc"
    own = environment | {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}
    assert protocol(own, "traces") == "http/protobuf"
    assert protocol(own, "metrics") == "grpc"
