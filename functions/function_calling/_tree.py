"""Folders below an open one: listed, copied, moved and removed without following a link."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from devall.core.errors import ToolFailed
from devall.workspace import Place

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Entry:
    """Something in a folder."""

    path: str
    """From the listed folder on."""
    name: str
    type: str
    """file, directory, link or other."""
    size: int | None
    """Bytes of a file."""
    modified: float
    """Seconds since 1970."""
    depth: int
    """0: in the listed folder itself."""


def open_folder(place: Place) -> int:
    """A descriptor of the folder at a place.

    Raises:
        OSError: it is missing, or no folder.
    """
    return os.open(place.name, _FOLDER, dir_fd=place.folder)


def entries(folder: int, *, max_depth: int, hidden: bool) -> Iterator[Entry]:
    """What is in a folder, sorted by name, a folder before what it holds.

    Args:
        folder: Its descriptor.
        max_depth: Levels of folders that are shown, 1 = this one alone.
        hidden: Whether names that begin with a dot are shown.
    """
    yield from _entries(folder, "", 0, max_depth, hidden)


def _entries(folder: int, prefix: str, depth: int, max_depth: int, hidden: bool) -> Iterator[Entry]:
    with os.scandir(folder) as found:
        names = sorted(each.name for each in found)
    for name in names:
        if name.startswith(".") and not hidden:
            continue
        try:
            info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:  # gone in the meantime
            continue
        kind = _kind(info.st_mode)
        # A name that is not UTF-8 has no JSON form.
        shown = os.fsencode(name).decode("utf-8", "replace")
        path = prefix + shown
        size = info.st_size if kind == "file" else None
        yield Entry(path, shown, kind, size, info.st_mtime, depth)
        if kind != "directory" or depth + 1 >= max_depth:
            continue
        try:
            inner = os.open(name, _FOLDER, dir_fd=folder)
        except OSError:  # gone, replaced or not readable
            continue
        try:
            yield from _entries(inner, path + "/", depth + 1, max_depth, hidden)
        finally:
            os.close(inner)


def remove(place: Place) -> None:
    """Take away what is at a place, a folder with all it holds; a link itself, not its target."""
    _require_no_root(place)
    found = place.stat()
    if found is not None and stat.S_ISDIR(found.st_mode):
        shutil.rmtree(place.name, dir_fd=place.folder)
    else:
        os.unlink(place.name, dir_fd=place.folder)


def copy(source: Place, target: Place, *, overwrite: bool) -> list[str]:
    """Copy a file or folder, wholly or not at all; what in it is no file, folder or link.

    Args:
        source: What is copied; a link in it stays a link.
        target: Its new name.
        overwrite: Whether something that is there is replaced.

    Raises:
        ToolFailed: one lies in the other, or the target is there.
    """
    _check(source, target, overwrite)
    temporary = _temporary(target)
    left_out: list[str] = []
    try:
        _copy(source.folder, source.name, target.folder, temporary, source.path, left_out)
        _settle(target.folder, temporary, target)
    except BaseException:
        with suppress(OSError):
            remove(Place(target.folder, temporary, temporary))
        raise
    return left_out


def move(source: Place, target: Place, *, overwrite: bool) -> None:
    """Give a file, folder or link another name.

    Raises:
        ToolFailed: one lies in the other, or the target is there.
    """
    _check(source, target, overwrite)
    _settle(source.folder, source.name, target)


def _check(source: Place, target: Place, overwrite: bool) -> None:
    _require_no_root(source)
    _require_no_root(target)
    if source.stat() is None:
        raise ToolFailed(f"there is no {source.path!r} in the workspace")
    if (target.path + "/").startswith(source.path + "/"):
        raise ToolFailed(f"{target.path!r} lies in {source.path!r} itself")
    if target.stat() is not None:
        if not overwrite:
            raise ToolFailed(
                f"there is a {target.path!r} already",
                hint="choose another name, or set overwrite to replace it",
            )
        if (source.path + "/").startswith(target.path + "/"):
            raise ToolFailed(f"{target.path!r} holds {source.path!r}: replacing it would lose both")


def _settle(folder: int, name: str, target: Place) -> None:
    """Rename to the target's name; what was there goes only when the new is in its place."""
    there = target.stat()
    aside = ""
    if there is not None:
        here = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(there.st_mode) or stat.S_ISDIR(here.st_mode):
            aside = _temporary(target)
            _rename(target.folder, target.name, target.folder, aside)
    try:
        _rename(folder, name, target.folder, target.name)
    except OSError:
        if aside:
            _rename(target.folder, aside, target.folder, target.name)
        raise
    if aside:
        remove(Place(target.folder, aside, aside))


def _rename(folder: int, name: str, to_folder: int, to_name: str) -> None:
    os.replace(name, to_name, src_dir_fd=folder, dst_dir_fd=to_folder)


def _copy(
    folder: int, name: str, to_folder: int, to_name: str, path: str, left_out: list[str]
) -> None:
    info = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(info.st_mode):
        os.symlink(os.readlink(name, dir_fd=folder), to_name, dir_fd=to_folder)
    elif stat.S_ISREG(info.st_mode):
        with Place(folder, name, path).open() as file:
            handle = os.open(to_name, _NEW, 0o600, dir_fd=to_folder)
            with os.fdopen(handle, "wb") as new:
                shutil.copyfileobj(file, new, 1 << 20)
                os.fchmod(handle, stat.S_IMODE(info.st_mode) & 0o777)
    elif stat.S_ISDIR(info.st_mode):
        os.mkdir(to_name, 0o700, dir_fd=to_folder)
        source = os.open(name, _FOLDER, dir_fd=folder)
        try:
            target = os.open(to_name, _FOLDER, dir_fd=to_folder)
            try:
                with os.scandir(source) as found:
                    names = [each.name for each in found]
                for each in names:
                    _copy(source, each, target, each, f"{path}/{each}", left_out)
                os.fchmod(target, stat.S_IMODE(info.st_mode) & 0o777)
            finally:
                os.close(target)
        finally:
            os.close(source)
    else:
        left_out.append(path)


def _require_no_root(place: Place) -> None:
    if place.name == ".":
        raise ToolFailed(
            "the workspace itself cannot be moved, copied or deleted",
            hint="name a file or folder in it",
        )


def _temporary(place: Place) -> str:
    return f".{place.name[:40]}.{secrets.token_hex(6)}"


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"
