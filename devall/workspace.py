"""Where a run keeps its files and attachments; the one place that confines paths."""

from __future__ import annotations

import hashlib
import mimetypes
import os
import stat
import tempfile
from pathlib import Path
from typing import Literal

from devall.core.errors import ToolFailed
from devall.core.messages import MediaPart


class Workspace:
    """A run's folder: `files` to work in, `attachments` by content.

    Folders are private to the user and made when they are first used.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def files(self) -> Path:
        """The working folder of the run's code and file tools."""
        return private_folder(self.root / "workspace")

    @property
    def attachments(self) -> Path:
        """The folder of binary data, named by SHA-256 and suffix."""
        return private_folder(self.root / "attachments")

    def confine(self, path: str) -> Path:
        """The real place of a path that a tool was given, inside of `files`.

        Raises:
            ToolFailed: the path leads out (absolute, `..`, a symlink), or names a device.
        """
        base = self.files.resolve()
        place = (base / path).resolve()
        if not place.is_relative_to(base):
            raise ToolFailed(
                f"path {path!r} leads out of the workspace",
                hint="give a path relative to the workspace, without `..` or links that lead out",
            )
        if place.exists() and not (place.is_file() or place.is_dir()):
            kind = stat.S_IFMT(place.stat().st_mode)
            raise ToolFailed(f"path {path!r} is no file or folder (mode {kind:o})")
        return place

    def save_attachment(self, data: bytes, mime_type: str, name: str = "") -> MediaPart:
        """Keep binary data, once for each content; the part that stands for it."""
        suffix = mimetypes.guess_extension(mime_type) or Path(name).suffix or ".bin"
        file_name = hashlib.sha256(data).hexdigest() + suffix
        place = self.attachments / file_name
        if not place.exists():
            write_private(place, data)
        return MediaPart(_media_kind(mime_type), mime_type, attachment=file_name, name=name)

    def read_attachment(self, name: str) -> bytes:
        """The bytes of an attachment.

        Raises:
            FileNotFoundError: no attachment has that name.
        """
        if Path(name).name != name:
            raise FileNotFoundError(name)
        return (self.attachments / name).read_bytes()


def private_folder(place: Path) -> Path:
    """The folder, made with its parents if need be; what is made is the user's alone (0700)."""
    if not place.is_dir():
        for missing in reversed([p for p in (place, *place.parents) if not p.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
    return place


def write_private(place: Path, data: bytes) -> None:
    """Write a file at once or not at all, readable by the user alone (0600)."""
    handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name[:40]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).replace(place)
    except BaseException:
        Path(temporary).unlink()
        raise


def _media_kind(mime_type: str) -> Literal["image", "audio", "video", "file"]:
    match mime_type.partition("/")[0]:
        case "image" | "audio" | "video" as kind:
            return kind
        case _:
            return "file"
