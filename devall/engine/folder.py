"""The folder of one run: its name, and who takes it away."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from devall.core.errors import UsageError
from devall.core.ids import is_run_id, new_run_id
from devall.workspace import private_folder


@contextmanager
def run_folder(run_id: str | None, logs_dir: str | Path | None) -> Generator[tuple[str, Path]]:
    """The run's name and its folder, which is the user's alone.

    Args:
        run_id: The name; None = a new one.
        logs_dir: The folder of all runs; None = the run's folder is not kept.

    Raises:
        UsageError: the name is no name for a folder, or is taken; the folder cannot be made.
    """
    name = new_run_id() if run_id is None else run_id
    if not is_run_id(name):
        raise UsageError(
            f"run id {name!r} is not possible",
            hint="letters, digits, `.`, `_` and `-`, at most 100, beginning with a letter or digit",
        )
    if logs_dir is None:
        with tempfile.TemporaryDirectory(prefix="devall-") as temporary:
            yield name, Path(temporary)
        return
    place = Path(logs_dir) / name
    try:
        private_folder(place.parent)
        place.mkdir(mode=0o700)
    except FileExistsError:
        raise UsageError(
            f"there is a run {name} in {logs_dir} already", hint="choose another run id"
        ) from None
    except OSError as error:
        raise UsageError(
            f"{place} cannot be made: {error.strerror}", hint="choose another folder for logs"
        ) from error
    yield name, place
