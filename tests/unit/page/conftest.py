"""Runs with scripted models, their pages, and a browser to open them in."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.history.past import find_past
from devall.history.story import story_of
from devall.page.document import Document, document_of
from devall.testing.scripted_model import ScriptedModels
from tests.browser import CHROMIUM, Browser


@pytest.fixture
def browser() -> Iterator[Browser]:
    """A browser that ends with the test; where there is none the test is skipped."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium: make browser")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        opened = Browser(Path(folder))
        try:
            yield opened
        finally:
            opened.close()


def agent(name: str, role: str = "You are careful.", **more: Any) -> dict[str, Any]:
    """An agent whose model has its name."""
    config = {"provider": "openai", "name": name.lower(), "role": role, **more.pop("config", {})}
    return {"id": name, "type": "agent", "config": config, **more}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """The folder of runs."""
    return tmp_path / "logs"


@pytest.fixture
def run(tmp_path: Path, logs: Path) -> Callable[..., Awaitable[str]]:
    """Runs a graph with scripted models; the run's id."""

    async def start(
        graph: Mapping[str, Any],
        replies: Mapping[str, Sequence[Any]] | None = None,
        *,
        run_id: str = "the-run",
        **options: Any,
    ) -> str:
        file = tmp_path / "flow.yaml"
        file.write_text(json.dumps({"graph": {"edges": [], **graph}}))
        models = ScriptedModels({name: list(each) for name, each in (replies or {}).items()})
        await devall.run(file, run_id=run_id, logs_dir=logs, model_source=models, **options)
        return run_id

    return start


@pytest.fixture
def document(logs: Path) -> Callable[..., Document]:
    """The page of a run."""

    def write(run: str, **options: Any) -> Document:
        past = find_past(logs, run)
        events = past.events()
        options.setdefault("workflow", past.workflow_then())
        return document_of(past, events, story_of(events), version="0", **options)

    return write


@pytest.fixture
def page(document: Callable[..., Document], tmp_path: Path) -> Callable[..., Path]:
    """The file of a run's page."""

    def write(run: str, **options: Any) -> Path:
        file = tmp_path / f"{run}.html"
        file.write_text(document(run, **options).html, encoding="utf-8")
        return file

    return write


def add_functions(folder: Path) -> Path:
    """A project's functions: a lookup that may fail."""
    place = folder / "functions" / "function_calling" / "mine.py"
    place.parent.mkdir(parents=True)
    place.write_text(
        'def lookup(word: str) -> str:\n    """Looks a word up."""\n'
        '    if word == "nothing":\n        raise LookupError("no such word")\n'
        '    return f"{word}: found <b>here</b>"\n'
    )
    return folder / "functions"
