"""Whatever becomes of what is sent, the run's outcome is its own, and it ends in time."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from pathlib import Path

import pytest

import devall
from devall.core.events import RunFinished, Warned
from devall.loading.loader import load_mapping
from devall.telemetry.otel import exports
from devall.testing.recorder import Recorder

WORKFLOW = {
    "graph": {
        "id": "f",
        "start": "A",
        "nodes": [{"id": "A", "type": "literal", "config": {"content": "hello"}}],
    }
}


@pytest.fixture
def workflow():
    return load_mapping(WORKFLOW, folder=Path.cwd())


def telling(recorder: Recorder) -> list[str]:
    return [e.message for e in recorder.events if isinstance(e, Warned) and e.code == "telemetry"]


async def test_an_endpoint_that_cannot_be_reached_is_warned_of_once_and_the_run_is_as_it_was(
    workflow, monkeypatch, free_port, capfd
):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://user:word@127.0.0.1:{free_port}")
    recorder = Recorder()
    result = await devall.run(workflow, on_event=recorder)
    assert (result.status, result.answer) == ("completed", "hello")
    (told,) = telling(recorder)
    assert told == (
        f"traces or metrics could not be sent to http://127.0.0.1:{free_port}: Connection refused"
    )
    assert result.warnings == (told,)
    assert isinstance(recorder.events[-1], RunFinished)
    assert capfd.readouterr().err == ""


async def test_an_endpoint_that_refuses_is_warned_of(workflow, otlp):
    otlp.status = 403
    result = await devall.run(workflow)
    assert result.status == "completed"
    (told,) = result.warnings
    assert "Failed to export" in told
    assert "403" in told


async def test_an_endpoint_that_does_not_answer_is_waited_for_only_so_long(workflow, monkeypatch):
    monkeypatch.setattr(exports, "PATIENCE", 0.3)
    monkeypatch.setattr(exports, "LITTLE_PATIENCE", 0.1)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1.5")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
        result = await devall.run(workflow)
        assert "did not take them within 0.3 s" in result.warnings[0]
        assert [t for t in threading.enumerate() if t.name.startswith("Otel")]
        assert all(t.daemon for t in threading.enumerate() if "otel" in t.name.lower())
        while any("otel" in t.name.lower() for t in threading.enumerate()):
            await asyncio.sleep(0.05)


async def test_who_interrupts_the_end_does_not_wait_and_the_run_is_not_interrupted(workflow, otlp):
    otlp.delay = 1.0
    finished: list[RunFinished] = []

    def see(event: object) -> None:
        if isinstance(event, RunFinished):
            finished.append(event)

    task = asyncio.create_task(devall.run(workflow, on_event=see))
    while not [t for t in threading.enumerate() if t.name == "devall-otel-send"]:
        await asyncio.sleep(0.005)
    task.cancel("SIGINT")
    result = await task
    assert (result.status, result.exit_code, result.answer) == ("completed", 0, "hello")
    assert len(finished) == 1
    assert not otlp.spans
    while any("otel" in t.name.lower() for t in threading.enumerate()):
        await asyncio.sleep(0.05)


async def test_an_owner_who_cancels_the_end_gets_his_way(workflow, otlp):
    otlp.delay = 1.0
    finished: list[RunFinished] = []

    def see(event: object) -> None:
        if isinstance(event, RunFinished):
            finished.append(event)

    task = asyncio.create_task(devall.run(workflow, on_event=see))
    while not [t for t in threading.enumerate() if t.name == "devall-otel-send"]:
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [event.outcome.status for event in finished] == ["completed"]
    while any("otel" in t.name.lower() for t in threading.enumerate()):
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "opentelemetry-exporter-otlp-proto-grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "carrier-pigeon", "http/protobuf, or grpc"),
        ("OTEL_TRACES_EXPORTER", "zipkin", "`zipkin` is not installed"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "0", "the OTEL_* settings cannot be used"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "-5", "the OTEL_* settings cannot be used"),
    ],
)
async def test_what_cannot_be_exported_is_said_and_the_run_goes_on(
    workflow, otlp, monkeypatch, variable, value, words
):
    monkeypatch.setenv(variable, value)
    result = await devall.run(workflow)
    assert result.answer == "hello"
    (told,) = result.warnings
    assert words in told
    assert not otlp.paths


async def test_nothing_of_the_process_is_changed(workflow, otlp):
    from opentelemetry import metrics, trace

    before = [trace.get_tracer_provider(), metrics.get_meter_provider()]
    handlers = [*logging.getLogger().handlers]
    await devall.run(workflow)
    assert otlp.tree() == ["invoke_workflow f", "  literal A"]
    assert [trace.get_tracer_provider(), metrics.get_meter_provider()] == before
    assert isinstance(before[0], trace.ProxyTracerProvider)
    assert logging.getLogger().handlers == handlers
    added = logging.getLogger("opentelemetry").handlers
    # Those are of other tests, whose endpoint was given up.
    assert all(isinstance(handler, logging.NullHandler) for handler in added)


async def test_a_setting_that_the_sdk_finds_odd_is_told_of(workflow, otlp, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "tar")
    result = await devall.run(workflow)
    assert result.warnings == ("Unsupported compression type: tar",)
    assert otlp.tree() == ["invoke_workflow f", "  literal A"]


async def test_the_console_exporter_writes_to_standard_error(workflow, monkeypatch, capfd):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    await devall.run(workflow)
    written = capfd.readouterr()
    assert written.out == ""
    assert '"name": "invoke_workflow f"' in written.err


async def test_headers_and_compression_of_the_environment_are_used(workflow, otlp, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=poets")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    await devall.run(workflow)
    assert {each["x-tenant"] for each in otlp.headers} == {"poets"}
    assert {each["content-encoding"] for each in otlp.headers} == {"gzip"}
    assert otlp.tree() == ["invoke_workflow f", "  literal A"]


async def test_a_sampler_that_takes_nothing_leaves_the_metrics(workflow, otlp, monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    await devall.run(workflow)
    assert not otlp.spans
    assert otlp.point("devall.run.duration").count == 1


async def test_many_events_are_sent_before_the_end(otlp, monkeypatch):
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "50")
    nodes = [{"id": f"n{i}", "type": "passthrough"} for i in range(300)]
    edges = [{"from": f"n{i}", "to": f"n{i + 1}"} for i in range(299)]
    graph = {"id": "f", "start": "n0", "nodes": nodes, "edges": edges}
    await devall.run(load_mapping({"graph": graph}, folder=Path.cwd()), task="x")
    assert len(otlp.spans) == 301
    root = otlp.span("invoke_workflow f")
    assert {span.parent for span in otlp.spans} == {"", root.id}
