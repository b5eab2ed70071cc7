"""Writes docs/report.png: the upper part of the page of a run whose models are scripted."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import devall
from devall.testing.scripted_model import ScriptedModels

PROJECT = Path(__file__).resolve().parents[1]
WIDTH, HEIGHT = 1000, 1690
TOOLS = '''
import time


def mean_level(station: str, year: int) -> str:
    """The mean level of the sea at a station, in metres."""
    time.sleep(0.2)
    return f"{station} {year}: 3.{year % 7}"


def read_chart(name: str) -> str:
    """The text of a chart."""
    time.sleep(0.3)
    raise LookupError(f"there is no chart {name}")
'''
ANSWER = """The sea at our two stations stands **4 cm higher** than in 1990.

| station | 1990 | 2020 |
| --- | ---: | ---: |
| Brest | 3.2 m | 3.4 m |
| Cuxhaven | 2.9 m | 3.1 m |

Storms are not part of these figures."""


def _agent(name: str, model: str, role: str, tools: bool = False) -> dict[str, Any]:
    config: dict[str, Any] = {"provider": "openai", "name": model, "role": role}
    if tools:
        named = [{"name": "sea:mean_level"}, {"name": "sea:read_chart"}]
        config["tooling"] = [{"type": "function", "config": {"tools": named}}]
    return {"id": name, "type": "agent", "config": config}


def _verdict(word: str) -> dict[str, Any]:
    return {"type": "keyword", "config": {"any": [word]}}


WORKFLOW = {
    "graph": {
        "id": "Sea levels",
        "start": ["Levels", "Storms", "Fishers"],
        "end": ["Writer"],
        "nodes": [
            _agent("Levels", "gpt-4.1-mini", "You know the gauges.", tools=True),
            _agent("Storms", "gpt-4o", "You know the storms."),
            _agent("Fishers", "gpt-4o-mini", "You ask the fishers."),
            _agent("Writer", "gpt-4.1", "You write for the town council."),
            _agent("Editor", "gpt-4o-mini", "You edit."),
            {"id": "Translator", "type": "passthrough"},
        ],
        "edges": [
            {"from": "Levels", "to": "Writer"},
            {"from": "Storms", "to": "Writer"},
            {"from": "Fishers", "to": "Writer"},
            {"from": "Writer", "to": "Editor"},
            {"from": "Editor", "to": "Writer", "condition": _verdict("REVISE")},
            {"from": "Storms", "to": "Translator", "condition": _verdict("IN FRENCH")},
        ],
    }
}


def _reply(text: str, delay: float, tokens: tuple[int, int], *calls: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
    return {"text": text, "delay": delay, "usage": usage, "tool_calls": list(calls)}


def _call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


MODELS = {
    "gpt-4.1-mini": [
        _reply(
            "",
            0.4,
            (812, 61),
            _call("mean_level", station="Brest", year=2020),
            _call("read_chart", name="Cuxhaven"),
        ),
        _reply("The levels rose by 4 cm.", 0.5, (1302, 90)),
    ],
    "gpt-4o-mini": [
        _reply("The fishers say that the quay is under water more often.", 0.9, (640, 48)),
        _reply("REVISE: give the figures in a table.", 0.4, (1480, 22)),
        _reply("ACCEPT", 0.3, (1902, 3)),
    ],
    "gpt-4o": [_reply("Storm surges: three in 1990, seven in 2020.", 1.3, (530, 204))],
    "gpt-4.1": [
        _reply("The sea rises. We measured it.", 0.8, (2104, 310)),
        _reply(ANSWER, 0.9, (2590, 402)),
    ],
}


def main() -> int:
    """Run, report, take the picture; the exit code."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        print("there is no chromium: make browser", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "functions" / "function_calling").mkdir(parents=True)
        (folder / "functions" / "function_calling" / "sea.py").write_text(TOOLS)
        file = folder / "sea.yaml"
        file.write_text(json.dumps(WORKFLOW))
        devall.run_sync(
            file,
            task="How has the sea changed since 1990? A page for the town council.",
            run_id="20261130-212502-5f3a9c",
            logs_dir=folder / "logs",
            model_source=ScriptedModels(MODELS),
        )
        page = folder / "report.html"
        command = [sys.executable, "-m", "devall", "report", "last", "-o", str(page)]
        subprocess.run([*command, "--logs-dir", str(folder / "logs")], check=True)
        subprocess.run(
            [
                browser,
                *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
                f"--user-data-dir={folder / 'profile'}",
                f"--window-size={WIDTH},{HEIGHT}",
                f"--screenshot={PROJECT / 'docs' / 'report.png'}",
                page.as_uri(),
            ],
            check=True,
            stderr=subprocess.DEVNULL,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
