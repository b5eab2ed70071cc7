"""The protocol's own conformance suite: with a workflow as its client, and with our server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(300)  # the first one may have to install them

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
PATHS = {"PYTHONPATH": os.pathsep.join((str(PROJECT), str(HERE)))}


@pytest.fixture
def suite(foreign: Any, workspace: Path) -> Callable[..., Any]:
    """Plays scenarios; gives the checks of each, and what the suite said."""

    async def play(side: str, *options: str) -> tuple[dict[str, dict[str, str]], str]:
        process = await asyncio.create_subprocess_exec(
            *foreign.conformance,
            side,
            *options,
            "--output-dir",
            "results",
            cwd=workspace,
            env=os.environ | PATHS,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said = (await process.communicate())[0].decode()
        found: dict[str, dict[str, str]] = {}
        for place in (workspace / "results").glob("*/checks.json"):
            # server-tools-list-2026-11-30T16-05-50-227Z
            name = re.sub(r"-\d{4}-\d\d-\d\dT.*", "", place.parent.name).removeprefix("server-")
            checks = json.loads(place.read_text(encoding="utf-8"))
            found[name] = {check["id"]: check["status"] for check in checks}
        return found, said

    return play


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        ("initialize", {"mcp-client-initialization"}),
        ("tools_call", {"tool-add-numbers"}),
        (
            "elicitation-sep1034-client-defaults",
            {
                f"client-elicitation-sep1034-{kind}-default"
                for kind in ("string", "integer", "number", "enum", "boolean")
            },
        ),
        (
            "sse-retry",
            {
                "client-sse-graceful-reconnect",
                "client-sse-retry-timing",
                "client-sse-last-event-id",
            },
        ),
    ],
)
async def test_a_workflow_conforms_as_a_client(suite: Any, scenario: str, expected: set[str]):
    script = HERE / "conformance_client.py"
    command = f"{sys.executable} {script}"
    found, said = await suite("client", "--scenario", scenario, "--command", command)
    checks = found[scenario]
    # A warning is there when a busy machine was late; too late, and too early, is a failure.
    passed = {name for name, status in checks.items() if status in {"SUCCESS", "WARNING"}}
    assert expected <= passed, said
    assert "FAILURE" not in checks.values(), said
    assert "CLIENT" not in said, said  # it has neither timed out nor ended with an error


# The others are about what we do not offer: resources, prompts, completion, sampling, log
# messages, and questions to the client in the midst of a call.
PLAYED = (
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "json-schema-2020-12",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)


async def test_tools_serve_conforms_as_a_server(suite: Any, started: Callable[..., str]):
    command = [sys.executable, "-m", "devall", "tools", "serve", str(HERE / "conformance.yaml")]
    command += ["--no-file-tools", "--http", "--port", "0"]
    url = started(command, r"http://\S+/mcp", **PATHS)
    found, said = await suite("server", "--suite", "all", "--url", url)
    for scenario in PLAYED:
        checks = set(found[scenario].values())
        assert "SUCCESS" in checks, f"{scenario}\n{said}"
        assert checks <= {"SUCCESS", "INFO"}, f"{scenario}: {found[scenario]}\n{said}"
