"""A case made of a run that stands in a journal."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from devall.core.errors import UsageError
from devall.core.ids import is_run_id
from devall.core.messages import JsonValue, from_json
from devall.graph.checked import load_workflow
from devall.journal.base import StepRecord
from devall.journal.reader import Reader
from devall.journal.rows import RunRow
from devall.runs.settings import Settings, recorded
from devall.telemetry.redaction import Redactor, environment_secrets
from devall.testing.cases.playing import ALL, play
from devall.testing.cases.reading import FILE_NAME, MACHINE, read_case
from devall.testing.cases.running import CaseResult, result_of
from devall.testing.cases.tape import Tape, write_tape
from devall.testing.cases.yaml_text import yaml_lines

RECORDING = "recording.jsonl"
"""What the file beside the case is called."""
_OWN = frozenset({"API_KEY", "BASE_URL"})
"""Variables of endpoints: a recording needs none, and recording anew those of the machine."""

Change = Callable[[JsonValue], JsonValue]


@dataclass(frozen=True, slots=True)
class Made:
    """A case that was made."""

    file: Path
    result: CaseResult
    """How it goes with the workflow's file of today."""


async def make_case(
    run_id: str, name: str, *, logs_dir: Path, folder: Path, replaces: bool = False
) -> Made:
    """Make a case of a run, and run it once.

    Args:
        run_id: The run; a beginning will do that fits one only; `last` is the newest.
        name: Of the case: its folder, `group/name` in a folder of cases.
        logs_dir: The folder of all runs.
        folder: Where cases are.
        replaces: Whether a case of that name may be replaced.

    Raises:
        UsageError: there is no such run, it has not ended, or the name is taken.
        ConfigError: the workflow's file is wrong.
    """
    home = _home(folder, name, replaces=replaces)
    with Reader(logs_dir) as reader:
        row = reader.run(run_id)
        _check(row)
        steps = _steps(reader, row)
    settings = Settings.from_json(row.settings)
    redactor = _redactor(row, settings)
    tape = Tape(str(cast("Mapping[str, JsonValue]", row.result)["status"]), steps, row.id)
    if not isinstance(row.task["content"], str):
        tape = replace(tape, task=row.task)
    result: CaseResult | None = None
    file = home / FILE_NAME
    places = _places(logs_dir / row.id)
    for number in range(len(places), -1, -1):
        change = _changed(redactor, places[:number])
        said = _case_of(row, settings, home, change)
        if number == len(places):
            said["env"] = {n: _without_path(v) for n, v in said.get("env", {}).items()}
        _write(home, {k: v for k, v in said.items() if v}, write_tape(tape, change))
        case = read_case(file, name)
        result = result_of(case, await play(case), 0)
        if result.is_passed:
            break
    assert result is not None
    return Made(file, result)


def _home(folder: Path, name: str, *, replaces: bool) -> Path:
    """The case's folder, which may be written to."""
    if not all(is_run_id(part) for part in name.split("/")):
        raise UsageError(
            f"{name!r} cannot be a case's name",
            hint="letters, digits, `.`, `_` and `-`; `group/name` for a folder in between",
        )
    home = folder / name
    if (home / FILE_NAME).exists() and not replaces:
        raise UsageError(
            f"there is a case {home / FILE_NAME} already",
            hint="choose another name, or replace it: --force",
        )
    return home


def _check(row: RunRow) -> None:
    """Make sure that a run can be a case."""
    if row.is_alive or row.result is None or row.state in {"interrupted", "cancelled"}:
        state = "running" if row.is_alive else row.state
        raise UsageError(
            f"run {row.id} has not come to an end: it is {state}",
            hint=f"go on with it first: devall resume {row.id}",
        )
    if not Path(row.workflow).is_file():
        raise UsageError(f"the workflow of run {row.id} is gone: {row.workflow}")


def _steps(reader: Reader, row: RunRow) -> list[StepRecord]:
    """What the run has done; an answer that came later stands with its question."""
    asked = {
        each.key: reader.record(row, each).request
        for each in reader.rows(row)
        if each.kind == "human" and each.state == "begun"
    }
    return [
        replace(step, request=asked[step.key])
        if step.request is None and step.key in asked
        else step
        for step in reader.steps(row)
    ]


def _redactor(row: RunRow, settings: Settings) -> Redactor:
    """What takes out secrets that the journal may have missed: it is no file for git."""
    loaded = load_workflow(
        row.workflow,
        variables=settings.variables,
        functions_dir=settings.functions_dir,
        recorded=recorded(row.sources, settings),
    )
    return Redactor(loaded.secrets | environment_secrets(loaded.environment.values))


def _places(run: Path) -> list[tuple[str, str]]:
    """Paths of this machine that mean nothing on another one, and what stands for them."""
    others = [(Path.cwd(), "<project>"), (Path.home(), "<home>")]
    found = [(str(path.resolve()), mark) for path, mark in others if len(path.parts) > 2]
    return [(str(run.resolve()), "<run>"), (str(run), "<run>"), *found]


def _changed(redactor: Redactor, places: list[tuple[str, str]]) -> Change:
    """What takes secrets and paths out of a value."""

    def text(given: str) -> str:
        for path, mark in places:
            given = given.replace(path, mark)
        return given

    def change(value: JsonValue) -> JsonValue:
        return _mapped(redactor.value(value), text)

    return change


def _mapped(value: JsonValue, text: Callable[[str], str]) -> JsonValue:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        members = cast("dict[str, JsonValue]", value)
        return {text(key): _mapped(each, text) for key, each in members.items()}
    if isinstance(value, list):
        return [_mapped(each, text) for each in cast("list[JsonValue]", value)]
    return value


def _write(home: Path, case: Mapping[str, JsonValue], tape: str) -> None:
    """Write a case's files.

    Raises:
        UsageError: they cannot be written.
    """
    lines = "".join(f"{line}\n" for line in yaml_lines(case))
    try:
        home.mkdir(parents=True, exist_ok=True)
        (home / RECORDING).write_text(tape, "utf-8", "backslashreplace", "\n")
        (home / FILE_NAME).write_text(lines, "utf-8", "backslashreplace", "\n")
    except OSError as error:
        raise UsageError(f"{home} cannot be written: {error.strerror or error}") from error


def _case_of(row: RunRow, settings: Settings, home: Path, change: Change) -> dict[str, JsonValue]:
    """What the case's file says."""
    overrides = settings.overrides
    environment = {n: v for n, v in settings.environment.items() if n not in _OWN}
    functions = settings.functions_dir
    said: dict[str, JsonValue] = {
        "workflow": _relative(Path(row.workflow), home),
        "task": from_json(row.task).text,
        "vars": dict(settings.variables),
        "env": change(environment),
        "answers": {n: w if isinstance(w, str) else list(w) for n, w in settings.answers.items()},
        "models": {name or ALL: model for name, model in overrides.models.items()},
        "providers": {name or ALL: provider for name, provider in overrides.providers.items()},
        "functions_dir": _relative(functions, home) if functions is not None else None,
        "ex_tools": list(settings.ex_tools),
        "limits": dict(settings.limits),
        "recording": RECORDING,
    }
    result = cast("Mapping[str, JsonValue]", row.result)
    expect: dict[str, JsonValue] = {"status": result["status"]}
    if (error := result.get("error")) is not None:
        told = {"code": error["code"], "node": error["node"]}
        expect["error"] = {key: each for key, each in told.items() if each}
    if result["answer"] is not None:
        expect["answer"] = {"equals": change(result["answer"])}
    runs = {name: node["runs"] for name, node in result["nodes"].items()}
    if runs:
        expect["nodes"] = runs
    found = {key: each for key, each in said.items() if each not in (None, "", {}, [])}
    return found | {"expect": expect}


def _without_path(value: str) -> str:
    """The value of a variable, unless it is the path of something that is there."""
    return MACHINE if value.startswith("/") and Path(value).exists() else value


def _relative(path: Path, home: Path) -> str:
    return Path(os.path.relpath(path.resolve(), home.resolve())).as_posix()
