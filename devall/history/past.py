"""A run of the past: its row in the journal, if it has one, and its folder of logs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from devall.core.errors import UsageError
from devall.core.events import Event, RunFinished, RunStarted
from devall.core.ids import is_run_id
from devall.core.messages import JsonValue
from devall.core.ports import StepKind
from devall.history.events import event_of, events_of
from devall.history.story import Story, story_of
from devall.journal.base import StepRecord
from devall.journal.reader import FILE_NAME, Reader
from devall.journal.rows import RunRow
from devall.loading.loader import LoadedWorkflow, Recorded, load_workflow
from devall.runs.settings import Settings
from devall.telemetry.run_log import FILE_NAME as EVENTS

_TAIL = 256 * 1024
"""Bytes in which a run's last event stands for sure."""


@dataclass(frozen=True, slots=True)
class Past:
    """A run in a folder of runs."""

    id: str
    logs: Path
    """The folder of all runs."""
    row: RunRow | None = None
    """None: it is in no journal (`--journal memory`), and only its events are there."""
    first: RunStarted | None = None
    last: RunFinished | None = None
    """Its first and last event, where there is no row to tell."""

    @property
    def folder(self) -> Path:
        """Its own folder."""
        return self.logs / self.id

    @property
    def is_kept(self) -> bool:
        """Whether the journal has it."""
        return self.row is not None

    @property
    def state(self) -> str:
        """How it ended, `running` or `interrupted`; `unfinished`: its events do not say which."""
        if self.row is not None:
            return self.row.state
        return self.last.outcome.status if self.last is not None else "unfinished"

    @property
    def workflow(self) -> str:
        """Path of the file."""
        if self.row is not None:
            return self.row.workflow
        return self.first.workflow if self.first is not None else ""

    @property
    def task(self) -> str:
        """The text of the task."""
        if self.row is None:
            return self.first.task if self.first is not None else ""
        content = cast("Mapping[str, JsonValue]", self.row.task).get("content", "")
        if isinstance(content, str):
            return content
        parts = cast("list[dict[str, JsonValue]]", content)
        return "\n".join(str(part["text"]) for part in parts if part.get("type") == "text")

    @property
    def began(self) -> float:
        """When it began; where nobody says, when its folder was made."""
        if self.row is not None:
            return self.row.began
        return self.first.at if self.first is not None else self.folder.stat().st_mtime

    @property
    def seconds(self) -> float | None:
        """How long it took, pauses between processes left out where that is known."""
        if self.row is None:
            return None if self.last is None else self.last.seconds
        result = self.row.result
        if self.row.epoch == 1 and result is not None:
            return float(result["seconds"])
        return None if self.row.ended is None else self.row.ended - self.row.began

    @property
    def usage(self) -> Mapping[str, JsonValue] | None:
        """What it has used, as `devall run --json` has it; None: it has not ended yet."""
        if self.row is not None:
            return None if self.row.result is None else self.row.result["usage"]
        return None if self.last is None else self.last.usage.to_json()

    def events(self) -> list[Event]:
        """Its events.

        Raises:
            UsageError: they are not there (any more).
        """
        try:
            return events_of(self.folder)
        except OSError as error:
            raise UsageError(
                f"the events of run {self.id} cannot be read: {error.strerror or error}"
                f" ({self.folder / EVENTS})",
                hint="what it ended with is still told by: devall runs show " + self.id
                if self.is_kept
                else "",
            ) from error

    def story(self) -> Story:
        """Its course.

        Raises:
            UsageError: its events are not there.
        """
        return story_of(self.events())

    def steps(
        self,
        is_wanted: Callable[[str, StepKind], bool] = lambda _key, _kind: True,
    ) -> dict[str, StepRecord]:
        """Its steps in the journal by key, each as it was last written; none without journal.

        Args:
            is_wanted: Tells by key and kind which ones are read.

        Raises:
            UsageError: a part of them is gone.
        """
        if self.row is None:
            return {}
        with Reader(self.logs) as reader:
            newest = {row.key: row for row in reader.rows(self.row)}
            try:
                return {
                    key: reader.record(self.row, row)
                    for key, row in newest.items()
                    if row.state != "void" and is_wanted(key, row.kind)
                }
            except (LookupError, OSError) as error:
                raise UsageError(
                    f"a part of run {self.id} is gone: {error}",
                    hint=f"its large texts are files in {self.folder}",
                ) from error

    def workflow_then(self) -> LoadedWorkflow:
        """The workflow as it was when the run began; without journal, as its file is today.

        Raises:
            ConfigError, UsageError: it cannot be read.
        """
        if self.row is None:
            return load_workflow(self.workflow)
        settings = Settings.from_json(self.row.settings)
        env_file = settings.env_file
        return load_workflow(
            self.row.workflow,
            variables=settings.variables,
            env_file=env_file if env_file is not None and env_file.is_file() else None,
            recorded=Recorded(self.row.sources, settings.environment),
        )

    def workflow_now(self) -> LoadedWorkflow:
        """The workflow as its files are today.

        Raises:
            ConfigError, UsageError: it cannot be read.
        """
        if self.row is None:
            return load_workflow(self.workflow)
        settings = Settings.from_json(self.row.settings)
        return load_workflow(
            self.row.workflow, variables=settings.variables, env_file=settings.env_file
        )


def all_past(logs: Path) -> list[Past]:
    """The runs of a folder, the newest first, those that are in no journal included.

    Raises:
        SetupError: the journal cannot be read.
    """
    found: list[Past] = []
    if (logs / FILE_NAME).is_file():
        with Reader(logs) as reader:
            found = [Past(row.id, logs, row) for row in reader.runs()]
    known = {each.id for each in found}
    try:
        names = sorted(entry.name for entry in os.scandir(logs) if entry.is_dir())
    except OSError:
        names = []
    for name in names:
        if name not in known and is_run_id(name) and (logs / name / EVENTS).is_file():
            found.append(_of_folder(logs, name))
    return sorted(found, key=lambda each: each.began, reverse=True)


def find_past(logs: Path, name: str) -> Past:
    """The run of that name; `last` is the newest, and a beginning will do that fits one only.

    Raises:
        UsageError: there is none, or several begin like that.
        SetupError: the journal cannot be read.
    """
    if not logs.is_dir():
        raise UsageError(
            f"there is no folder {logs}, and so no run {name}",
            hint="name the folder of the runs with --logs-dir, or set DEVALL_LOGS_DIR",
        )
    known = all_past(logs)
    exact = [each for each in known if each.id == name]
    like = exact or [each for each in known if name and each.id.startswith(name)]
    if name == "last" and not exact and known:
        return known[0]
    if len(like) == 1:
        return like[0]
    names = [each.id for each in like or known][:3]
    many = f": {len(like)} runs begin like that" if like else ""
    raise UsageError(
        f"there is no run {name} in {logs}{many}",
        hint=f"there is {', '.join(names)}" if names else "nothing has run there yet",
    )


def _of_folder(logs: Path, name: str) -> Past:
    """A run that has events and no row."""
    first: Event | None = None
    last: Event | None = None
    try:
        with (logs / name / EVENTS).open("rb") as file:
            first = _event(file.readline(_TAIL))
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            lines = file.read().splitlines()
            last = _event(lines[-1]) if lines else None
    except OSError:
        pass
    return Past(
        name,
        logs,
        None,
        first if isinstance(first, RunStarted) else None,
        last if isinstance(last, RunFinished) else None,
    )


def _event(line: bytes) -> Event | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return event_of(cast("dict[str, JsonValue]", found)) if isinstance(found, dict) else None
