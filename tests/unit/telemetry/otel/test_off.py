"""Where nobody asks for traces nothing is imported, and nothing is done for an event."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

RUN = """
import asyncio, sys
{before}
from pathlib import Path
import devall
from devall.loading.loader import load_mapping
from devall.testing.scripted_model import ScriptedModels

def flow(count):
    nodes = [{{"id": f"n{{i}}", "type": "passthrough"}} for i in range(count)]
    nodes.append({{"id": "A", "type": "agent", "config": {{"provider": "scripted", "name": "a"}}}})
    ids = [node["id"] for node in nodes]
    edges = [{{"from": a, "to": b}} for a, b in zip(ids, ids[1:])]
    graph = {{"start": ids[0], "nodes": nodes, "edges": edges}}
    return load_mapping({{"graph": graph}}, folder=Path.cwd())

def run(count):
    result = asyncio.run(devall.run(flow(count), task="x", model_source=ScriptedModels({{}})))
    print(result.status, *result.warnings)
{after}
"""


def output(after: str, before: str = "", **environment: str) -> list[str]:
    code = RUN.format(before=before, after=after)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_TRACES_EXPORTER": "none", "TRACEPARENT": "00-1-2-01", "OTEL_SERVICE_NAME": "x"},
    ],
    ids=["nothing", "disabled", "none"],
)
def test_without_being_asked_nothing_of_opentelemetry_is_imported(workspace, environment):
    # Only the environment of the process asks, and no file beside a workflow.
    (workspace / ".env").write_text("OTEL_TRACES_EXPORTER=console\n", encoding="utf-8")
    report = "print(*(n for n in sys.modules if n.split('.')[0] == 'opentelemetry'))"
    assert output(f"run(1)\n{report}", **environment) == ["completed", ""]


def test_without_being_asked_no_event_costs_anything():
    count = """
called = 0
def look(frame, event, argument):
    global called
    called += event == "call" and "telemetry/otel" in frame.f_code.co_filename
run(1)
counts = []
for nodes in (10, 400):
    called = 0
    sys.setprofile(look)
    run(nodes)
    sys.setprofile(None)
    counts.append(called)
print(*counts)
"""
    few, many = map(int, output(count)[-1].split())
    assert 0 < few == many < 40


def test_asked_for_and_not_installed_it_says_what_to_install_and_the_run_goes_on():
    blocked = "for name in ('sdk', 'exporter'): sys.modules['opentelemetry.' + name] = None"
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    (said,) = output("run(1)", blocked, **environment)
    assert said == (
        "completed OTEL_EXPORTER_OTLP_ENDPOINT asks for traces or metrics, and the extra for them"
        " is missing: pip install devall[otel]"
    )
