"""The whole report for files with the mistakes that users make; UPDATE_GOLDEN=1 rewrites them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from devall.core.errors import ConfigError, UsageError
from devall.graph.rules import check
from devall.loading.loader import load_workflow
from devall.loading.reports import render_text
from devall.plugins.functions import FunctionCatalog
from devall.plugins.shipped import shipped_functions

CASES = Path(__file__).parent / "cases"
NAMES = sorted(path.name for path in CASES.iterdir() if path.is_dir())
ENVIRONMENT = {
    "TEXT_FLAG": "False",
    "TEXT_NUMBER": "2.5",
    "BROKEN_YAML": "[1, ",
    "SERVICE_TOKEN": "token-value-1234",
}


def report(file: Path) -> str:
    functions = FunctionCatalog(None, shipped_functions())
    try:
        loaded = load_workflow(file, check=lambda graph: check(graph, functions))
    except ConfigError as error:
        return render_text(error.diagnostics)
    except UsageError as error:
        return f"{error}\n{error.hint}"
    return "\n".join(filter(None, [render_text(loaded.warnings), "loads"]))


@pytest.mark.parametrize("name", NAMES)
def test_a_broken_file_is_reported_as_written_down(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / name
    shutil.copytree(CASES / name, folder)
    if (folder / "dotenv.txt").exists():  # a checkout holds no .env
        (folder / "dotenv.txt").rename(folder / ".env")
    monkeypatch.chdir(folder)
    for variable in list(os.environ):
        monkeypatch.delenv(variable)
    for variable, value in ENVIRONMENT.items():
        monkeypatch.setenv(variable, value)

    found = report(Path("workflow.yaml")) + "\n"

    expected = CASES / name / "report.txt"
    monkeypatch.undo()
    if os.environ.get("UPDATE_GOLDEN"):
        expected.write_text(found)
    assert found == expected.read_text()


def test_there_are_enough_of_them():
    assert len(NAMES) >= 45


@pytest.mark.parametrize("name", NAMES)
def test_no_report_shows_a_secret(name: str):
    text = (CASES / name / "report.txt").read_text()
    assert "literal-secret" not in text
    assert "token-value-1234" not in text
