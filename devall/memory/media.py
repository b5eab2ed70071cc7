"""The files that memories have beside their text, kept where the memories are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from devall.core.errors import SetupError
from devall.core.messages import JsonValue, MediaPart, Message, from_json, to_json
from devall.workspace import private_folder, write_private


class RunFiles(Protocol):
    """The attachments of a run."""

    def read_attachment(self, name: str) -> bytes:
        """The bytes of an attachment.

        Raises:
            FileNotFoundError: no attachment has that name.
        """
        ...

    def save_attachment(self, data: bytes, mime_type: str, name: str = "") -> MediaPart:
        """Keep binary data as an attachment; the part that stands for it."""
        ...


@dataclass(frozen=True, slots=True)
class KeptMedia:
    """Moves files between a run's attachments and the folder of a store.

    Its methods block: call them in a thread.
    """

    folder: Path | None
    """The store's own folder; None: the store lives no longer than the run, and the run's
    attachments are all it needs."""
    run: RunFiles | None
    """The run's attachments; None: there are none."""

    def keep(self, media: Sequence[MediaPart]) -> list[JsonValue]:
        """The parts as JSON; their files are in the store's folder.

        Raises:
            SetupError: the folder cannot be written.
        """
        for part in media:
            if part.attachment and self.folder is not None and self.run is not None:
                self._copy(self.folder, self.run, part.attachment)
        return media_to_json(media)

    def give(self, written: JsonValue) -> tuple[MediaPart, ...]:
        """The parts that `keep` wrote, as attachments of this run; without those that are gone."""
        found: list[MediaPart] = []
        for part in media_from_json(written):
            if not part.attachment or self.folder is None:
                found.append(part)
                continue
            place = self.folder / part.attachment
            if self.run is None or place.parent != self.folder or not place.is_file():
                continue
            found.append(self.run.save_attachment(place.read_bytes(), part.mime_type, part.name))
        return tuple(found)

    def _copy(self, folder: Path, run: RunFiles, name: str) -> None:
        place = folder / name
        if place.exists():
            return
        try:
            private_folder(folder)
            write_private(place, run.read_attachment(name))
        except OSError as error:
            raise SetupError(f"{place} of a memory cannot be written: {error}") from error


def media_folder(path: Path | None) -> Path | None:
    """Where the files of a store's items are: beside its file."""
    return None if path is None else path.with_name(f"{path.name}.files")


def media_to_json(media: Sequence[MediaPart]) -> list[JsonValue]:
    """The parts as they stand in the journal and in files."""
    return to_json(Message("user", tuple(media)))["content"]


def media_from_json(written: JsonValue) -> tuple[MediaPart, ...]:
    """The parts that `media_to_json` wrote; whatever is none is left out."""
    if not isinstance(written, list):
        return ()
    try:
        parts = from_json({"role": "user", "content": cast(list[JsonValue], written)}).parts
    except (KeyError, TypeError):
        return ()
    return tuple(part for part in parts if isinstance(part, MediaPart))
