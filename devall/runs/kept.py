"""A run that stands in a journal, ready to be gone on with or to be replayed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from devall.core.messages import JsonValue
from devall.graph.checked import load_workflow
from devall.journal.base import StepRecord
from devall.journal.reader import Reader
from devall.journal.rows import RunRow
from devall.loading.loader import LoadedWorkflow, Recorded
from devall.runs.settings import Settings, recorded


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run of a journal and the workflow as its file says today."""

    folder: Path
    """The folder of all runs."""
    row: RunRow
    settings: Settings
    loaded: LoadedWorkflow

    @classmethod
    def find(
        cls,
        run_id: str,
        folder: Path,
        *,
        variables: Mapping[str, JsonValue] | None = None,
        env_file: Path | None = None,
    ) -> Self:
        """The run of that name, its workflow loaded as its file is today, to go on with it.

        Args:
            run_id: The name; a beginning will do that fits one only; `last` is the newest.
            folder: The folder of all runs.
            variables: Before those that the run was started with.
            env_file: In place of the one that it was started with.

        Raises:
            UsageError: there is no such run, or it is alive, or its file is gone.
            ConfigError: the file is wrong today.
        """
        with Reader(folder) as reader:
            row = reader.run(run_id)
        row.must_rest()
        settings = Settings.from_json(row.settings)
        loaded = load_workflow(
            row.workflow,
            variables=settings.variables_with(variables or {}),
            env_file=env_file or settings.env_file,
            functions_dir=settings.functions_dir,
            recorded=Recorded(changes=settings.changes),
        )
        return cls(folder, row, settings, loaded)

    @classmethod
    def recorded(
        cls, run_id: str, folder: Path, changes: Mapping[str, JsonValue] | None = None
    ) -> Self:
        """The run of that name, its workflow as its files and variables were then.

        Args:
            run_id: As for `find`.
            folder: The folder of all runs.
            changes: Values of the file that are others than then, by path.

        Raises:
            UsageError: there is no such run, or a path of a change leads nowhere.
            ConfigError: the file is wrong by the changes, or needs functions that are gone.
        """
        with Reader(folder) as reader:
            row = reader.run(run_id)
        settings = Settings.from_json(row.settings)
        settings = replace(settings, changes={**settings.changes, **(changes or {})})
        loaded = load_workflow(
            row.workflow,
            variables=settings.variables,
            functions_dir=settings.functions_dir,
            recorded=recorded(row.sources, settings),
        )
        return cls(folder, row, settings, loaded)

    def steps(self) -> list[StepRecord]:
        """What the run has done."""
        with Reader(self.folder) as reader:
            return list(reader.steps(self.row))
