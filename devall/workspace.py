"""Where a run keeps its files and attachments; the one place that confines paths.

Code of the run may work in the same folder at the same time, and put a link where a folder was
a moment ago. So a path is not looked at and then used: it is walked, name by name, from a
descriptor of the folder, links read by hand, and what is done at its end is done relative to
the descriptor that the walk has arrived at. (A hard link to a file outside cannot be told from
a file; making one takes code that can open that file anyway.)
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import mimetypes
import os
import posixpath
import secrets
import shutil
import stat
import tempfile
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, NoReturn

from devall.core.errors import ToolFailed
from devall.core.messages import MediaPart
from devall.manifest import FILE_NAME, Maker, Manifest, current_maker

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_LINKS = 40
_RELATIVE = "give a path relative to the workspace, such as `notes/plan.md`"


@dataclass(frozen=True, slots=True)
class Place:
    """The end of a path: an open folder, and a name in it.

    Operations that take a `dir_fd` stay in the workspace as long as they follow no link.
    """

    folder: int
    """Descriptor of the folder, open as long as the block of `Workspace.at`."""
    name: str
    """`.` for the workspace itself."""
    path: str
    """From the workspace on, without links; `.` for the workspace itself."""

    def stat(self) -> os.stat_result | None:
        """What is there, a link unfollowed; None = nothing."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def is_folder(self) -> bool:
        """Whether a folder is there.

        Raises:
            OSError: nothing is there.
        """
        mode = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False).st_mode
        return stat.S_ISDIR(mode)

    def open(self) -> BinaryIO:
        """The regular file that is there, for reading.

        Raises:
            OSError: it is missing, or no regular file.
        """
        # A look first: opening a device may do something. Non-blocking: a pipe may take its place.
        _require_file(self.stat())
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(self.name, flags, dir_fd=self.folder)
        try:
            _require_file(os.fstat(handle))
            return os.fdopen(handle, "rb")
        except BaseException:
            os.close(handle)
            raise

    def write(self, data: bytes) -> None:
        """Make or replace the file at once or not at all; a file that was there keeps its rights.

        Raises:
            OSError: something else than a regular file is there, or the disk is full.
        """
        before = self.stat()
        if before is not None:
            _require_file(before)
        temporary = f".{self.name[:40]}.{secrets.token_hex(6)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(temporary, flags, 0o666, dir_fd=self.folder)
        try:
            with os.fdopen(handle, "wb") as file:
                if before is not None:
                    os.fchmod(handle, stat.S_IMODE(before.st_mode) & 0o777)
                file.write(data)
            os.replace(temporary, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=self.folder)
            raise

    def append(self, data: bytes) -> None:
        """Put data behind what the file holds; it is made if need be.

        Raises:
            OSError: something else than a regular file is there, or the disk is full.
        """
        before = self.stat()
        if before is None:
            self.write(data)
            return
        _require_file(before)
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(self.name, flags, dir_fd=self.folder)
        with os.fdopen(handle, "ab") as file:
            _require_file(os.fstat(handle))
            file.write(data)

    @contextmanager
    def locked(self) -> Generator[None]:
        """A block that no other has at the same time for a name of the same folder.

        It holds between threads and processes, since each has a descriptor of its own.
        """
        fcntl.flock(self.folder, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self.folder, fcntl.LOCK_UN)


class Workspace:
    """A run's folder: `files` to work in, `attachments` by content.

    Folders are private to the user and made when they are first used.
    """

    def __init__(self, root: Path, redact: Callable[[bytes], bytes] | None = None) -> None:
        """A workspace; nothing is made yet.

        Args:
            root: The run's folder.
            redact: Takes secrets out of attachments before they are written.
        """
        self.root = root
        self._redact = redact
        self._manifest: Manifest | None = None

    @property
    def files(self) -> Path:
        """The working folder of the run's code and file tools."""
        return private_folder(self.root / "workspace")

    @property
    def attachments(self) -> Path:
        """The folder of binary data, named by SHA-256 and suffix; `manifest.json` lists it."""
        return private_folder(self.root / "attachments")

    def confine(self, path: str) -> Path:
        """The real place of a path that a tool was given, inside of `files`.

        For programs that take a path and no descriptor; `at` is safe against what changes
        between the look and the use.

        Raises:
            ToolFailed: the path leads out (absolute, `..`, a symlink), or names a device.
        """
        with self._walked(path, follow=True, missing="keep") as place:
            found = place.stat()
            if found is not None and not stat.S_ISLNK(found.st_mode):
                _require_plain(path, found)
            return self.files.resolve() / place.path

    @contextmanager
    def at(self, path: str, *, follow: bool = True, make_parents: bool = False) -> Generator[Place]:
        """The place of a path that a tool was given, to work at within the block.

        Args:
            path: Relative to `files`.
            follow: Whether a link at the end of the path is followed, as those on the way are.
            make_parents: Whether missing folders on the way are made.

        Raises:
            ToolFailed: the path leads out, a folder on the way is missing, or what is done in
                the block fails in the file system; the text says what would be right.
        """
        with self._walked(path, follow=follow, missing="make" if make_parents else "fail") as place:
            try:
                yield place
            except OSError as error:
                raise ToolFailed(_sentence(path, error)) from error

    def save_attachment(
        self, data: bytes, mime_type: str, name: str = "", maker: Maker | None = None
    ) -> MediaPart:
        """Keep binary data, once for each content; the part that stands for it.

        Args:
            data: The bytes.
            mime_type: What they are.
            name: What it is called.
            maker: Who made it; None = whoever is at work (`devall.manifest.made_by`).
        """
        if self._redact is not None:
            data = self._redact(data)
        suffix = mimetypes.guess_extension(mime_type) or Path(name).suffix or ".bin"
        digest = hashlib.sha256(data).hexdigest()
        file_name = digest + suffix
        folder = self.attachments
        if not (folder / file_name).exists():
            write_private(folder / file_name, data)
        if self._manifest is None:
            self._manifest = Manifest(folder, self._redact)
        self._manifest.add(
            file_name,
            name=name,
            mime_type=mime_type,
            size=len(data),
            sha256=digest,
            maker=maker or current_maker(),
        )
        return MediaPart(_media_kind(mime_type), mime_type, attachment=file_name, name=name)

    def read_attachment(self, name: str) -> bytes:
        """The bytes of an attachment.

        Raises:
            FileNotFoundError: no attachment has that name.
        """
        if Path(name).name != name or name == FILE_NAME:
            raise FileNotFoundError(name)
        return (self.attachments / name).read_bytes()

    @contextmanager
    def _walked(
        self, path: str, *, follow: bool, missing: Literal["fail", "make", "keep"]
    ) -> Generator[Place]:
        walk = _Walk(self.files, path)
        try:
            try:
                place = walk.to_the_end(follow=follow, missing=missing)
            except OSError as error:
                raise ToolFailed(_sentence(path, error)) from error
            yield place
        finally:
            walk.close()


class _Walk:
    """One path on its way through the workspace."""

    def __init__(self, root: Path, path: str) -> None:
        self._path = path
        self._todo = deque(_names(root, path))
        self._root = root.resolve()
        self._folders = [os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        self._names: list[str] = []
        """Of the open folders, the root's left out."""
        self._links = 0

    def close(self) -> None:
        while self._folders:
            os.close(self._folders.pop())

    def to_the_end(self, *, follow: bool, missing: Literal["fail", "make", "keep"]) -> Place:
        """Follow the path; links are read by hand, `..` (links have it) goes back by descriptor."""
        while self._todo:
            name = self._todo.popleft()
            if name == "..":
                self._back()
                continue
            is_last = not self._todo
            here = self._folders[-1]
            try:
                mode = os.stat(name, dir_fd=here, follow_symlinks=False).st_mode
            except FileNotFoundError:
                if is_last:
                    return self._place(name)
                if missing == "keep":
                    return self._beyond(name)
                if missing == "fail":
                    raise
                with suppress(FileExistsError):
                    os.mkdir(name, 0o777, dir_fd=here)
                mode = stat.S_IFDIR
            if stat.S_ISLNK(mode) and (follow or not is_last):
                self._follow(os.readlink(name, dir_fd=here))
            elif is_last:
                return self._place(name)
            else:
                self._folders.append(os.open(name, _FOLDER, dir_fd=here))
                self._names.append(name)
        # The workspace itself, or a folder that a link's `..` ended at.
        if not self._names:
            return Place(self._folders[-1], ".", ".")
        os.close(self._folders.pop())
        return self._place(self._names.pop())

    def _place(self, name: str) -> Place:
        return Place(self._folders[-1], name, posixpath.join(*self._names, name))

    def _beyond(self, name: str) -> Place:
        """The place of a path whose last folders are not there yet."""
        rest = (name, *self._todo)
        if ".." in rest:
            self._leads_out()
        return self._place(posixpath.join(*rest))

    def _back(self) -> None:
        if not self._names:
            self._leads_out()
        self._names.pop()
        os.close(self._folders.pop())

    def _follow(self, target: str) -> None:
        self._links += 1
        if self._links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.startswith("/"):
            base = self._root.as_posix().rstrip("/") + "/"
            if not (target.rstrip("/") + "/").startswith(base):
                self._leads_out()
            while self._names:
                self._back()
            target = target[len(base) :]
        self._todo.extendleft(reversed([n for n in target.split("/") if n not in {"", "."}]))

    def _leads_out(self) -> NoReturn:
        raise ToolFailed(
            f"path {self._path!r} leads out of the workspace: there is a link on it",
            hint="name a file or folder in the workspace itself",
        )


def copy_files(run: Path, to: Path) -> None:
    """Give a run the files and attachments that another one has made.

    Args:
        run: Folder of the other run.
        to: Folder of the run.
    """
    for name in ("workspace", "attachments"):
        if (run / name).is_dir():
            shutil.copytree(run / name, to / name, symlinks=True)


def private_folder(place: Path) -> Path:
    """The folder, made with its parents if need be; what is made is the user's alone (0700)."""
    if not place.is_dir():
        for missing in reversed([p for p in (place, *place.parents) if not p.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
    return place


def write_private(place: Path, data: bytes, *, sync: bool = False) -> None:
    """Write a file at once or not at all, readable by the user alone (0600).

    Args:
        place: The file.
        data: Its bytes.
        sync: Whether it must outlive a power cut.
    """
    handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name[:40]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        Path(temporary).replace(place)
    except BaseException:
        Path(temporary).unlink()
        raise


def _names(root: Path, path: str) -> list[str]:
    """The names that a path consists of.

    Raises:
        ToolFailed: it does not begin at the workspace, or no file can have such a name.
    """
    try:
        os.fsencode(path)
    except UnicodeEncodeError as error:
        raise ToolFailed(f"path {path!r} is no name that a file can have") from error
    if "\0" in path:
        raise ToolFailed(f"path {path!r} is no name that a file can have: it holds a zero byte")
    names = [name for name in path.split("/") if name not in {"", "."}]
    if path.startswith("/"):
        inside = _within(root, path)
        right = f"write {inside!r}" if inside else _RELATIVE
        raise ToolFailed(
            f"path {path!r} is absolute and would lead out of the workspace", hint=right
        )
    if names and names[0] == "~":
        right = f"write {'/'.join(names[1:])!r}" if names[1:] else _RELATIVE
        raise ToolFailed(f"path {path!r} names a home folder, and there is none here", hint=right)
    if ".." in names:
        short = posixpath.normpath("/".join(names))
        right = _RELATIVE if short.startswith("..") else f"write {short!r}"
        raise ToolFailed(
            f"path {path!r} holds `..`, which could lead out of the workspace", hint=right
        )
    return names


def _within(root: Path, path: str) -> str:
    """What an absolute path would be from the workspace on; empty if it is elsewhere."""
    for base in {root.absolute(), root.resolve()}:
        short = os.path.relpath(posixpath.normpath(path), base)
        if short.split("/")[0] != "..":
            return short
    return ""


def _require_plain(path: str, found: os.stat_result) -> None:
    """Raises ToolFailed: the thing is neither file nor folder."""
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise ToolFailed(
            f"path {path!r} is a {_kind(found.st_mode)}",
            hint="name a regular file or a folder",
        )


def _require_file(found: os.stat_result | None) -> None:
    """Raises OSError: there is no regular file."""
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder, and a file is wanted")
    if not stat.S_ISREG(found.st_mode):
        raise OSError(
            errno.EINVAL, f"it is a {_kind(found.st_mode)}; only regular files are opened"
        )


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFIFO: "pipe (FIFO)",
        stat.S_IFSOCK: "socket",
        stat.S_IFCHR: "device",
        stat.S_IFBLK: "device",
        stat.S_IFLNK: "link",
    }
    return kinds.get(stat.S_IFMT(mode), "special file")


def _sentence(path: str, error: OSError) -> str:
    """What went wrong at a path."""
    match error.errno:
        case errno.ENOENT:
            return f"there is no {path!r} in the workspace"
        case errno.ENOTDIR:
            return f"path {path!r} goes through something that is no folder"
        case errno.ELOOP:
            return f"path {path!r} goes round in a circle of links, or became a link just now"
        case errno.ENAMETOOLONG:
            return f"path {path[:80]!r}... is longer than a file's name may be"
        case _:
            return f"path {path!r}: {error.strerror or error}"


def _media_kind(mime_type: str) -> Literal["image", "audio", "video", "file"]:
    match mime_type.partition("/")[0]:
        case "image" | "audio" | "video" as kind:
            return kind
        case _:
            return "file"
