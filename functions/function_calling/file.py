"""Files of the run's workspace: listed, read, written, edited, searched, shown."""

from __future__ import annotations

import json
import mimetypes
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, NoReturn

from pydantic import Field

from devall.core.errors import ToolArguments, ToolFailed
from devall.core.messages import MediaPart
from devall.manifest import FILE_NAME as MANIFEST
from devall.processes import run_child
from devall.tools.context import ToolContext
from devall.tools.results import sniff
from devall.workspace import Place

from ._run import shortened, workspace_of
from ._text import (
    HEAD,
    Encoding,
    Newline,
    TextEdit,
    characters,
    codec_named,
    edited,
    encoding_of,
    newline_name,
    newline_of,
    split_lines,
)
from ._tree import copy, entries, move, open_folder, remove

_MAX_TEXT = 64 << 20
_MAX_SHOWN = 20 << 20
_MAX_TEXT_SHOWN = 200_000
_SEARCH_SECONDS = 60.0
_ATTACHMENTS = "attachments/"

FilePath = Annotated[
    str, Field(description="The file, relative to the workspace, such as `notes/plan.md`.")
]
SourcePath = Annotated[str, Field(description="What is there now, relative to the workspace.")]
TargetPath = Annotated[
    str, Field(description="Its new path, relative to the workspace, the name included.")
]
Overwrite = Annotated[
    bool, Field(description="Replace what is at the new path; otherwise that is an error.")
]
ReadEncoding = Annotated[str, Field(description="The file's text encoding; `auto` finds it out.")]


def describe_available_files(
    *,
    recursive: Annotated[bool, Field(description="Look into folders too.")] = True,
    limit: Annotated[int, Field(ge=1, le=5000, description="How many to list at most.")] = 200,
    include_hidden: Annotated[bool, Field(description="List names that begin with a dot.")] = False,
    _context: ToolContext,
) -> dict[str, Any]:
    """List the files that can be worked with: those of the workspace, then the run's attachments.

    An attachment's id is what load_file and the reading tools take.
    """
    workspace = workspace_of(_context)
    found: list[dict[str, Any]] = []
    depth = 8 if recursive else 1
    with workspace.at(".") as place, _opened_folder(place) as folder:
        for entry in entries(folder, max_depth=depth, hidden=include_hidden):
            found.append(
                {
                    "id": entry.path,
                    "name": entry.name,
                    "source": "workspace",
                    "path": entry.path,
                    "type": entry.type,
                    "size": entry.size,
                    "depth": entry.depth,
                }
            )
            if len(found) > limit:
                break
    found.extend(
        {
            "id": each.name,
            "name": each.name,
            "source": "attachment",
            "mime": mimetypes.guess_type(each.name)[0] or "application/octet-stream",
            "type": "file",
            "size": each.stat().st_size,
        }
        for each in sorted(workspace.attachments.iterdir())
        if each.is_file() and not each.name.startswith(".") and each.name != MANIFEST
    )
    return {"files": found[:limit], "truncated": len(found) > limit}


def list_directory(
    path: Annotated[str, Field(description="The folder, relative to the workspace.")] = ".",
    *,
    recursive: Annotated[bool, Field(description="List what folders hold too.")] = False,
    max_depth: Annotated[
        int, Field(ge=1, le=64, description="With recursive: levels of folders, 1 = this one.")
    ] = 3,
    include_hidden: Annotated[bool, Field(description="List names that begin with a dot.")] = False,
    limit: Annotated[int, Field(ge=1, le=5000, description="How many to list at most.")] = 500,
    _context: ToolContext,
) -> dict[str, Any]:
    """List a folder of the workspace: names, kinds, sizes in bytes, times of change."""
    found: list[dict[str, Any]] = []
    depth = max_depth if recursive else 1
    with workspace_of(_context).at(path) as place, _opened_folder(place) as folder:
        for entry in entries(folder, max_depth=depth, hidden=include_hidden):
            found.append(
                {
                    "name": entry.name,
                    "relative_path": entry.path,
                    "type": entry.type,
                    "size": entry.size,
                    "modified": _time(entry.modified),
                    "depth": entry.depth,
                }
            )
            if len(found) > limit:
                break
        return {
            "directory": place.path,
            "entries": found[:limit],
            "truncated": len(found) > limit,
            "recursive": recursive,
        }


def create_folder(
    path: Annotated[str, Field(description="The new folder, relative to the workspace.")],
    *,
    parents: Annotated[bool, Field(description="Make missing folders above it too.")] = True,
    exist_ok: Annotated[bool, Field(description="It is no error if the folder is there.")] = True,
    _context: ToolContext,
) -> dict[str, Any]:
    """Make a folder in the workspace."""
    with workspace_of(_context).at(path, make_parents=parents) as place:
        there = place.stat()
        if there is None:
            os.mkdir(place.name, 0o777, dir_fd=place.folder)
        elif not place.is_folder():
            raise ToolFailed(f"there is a file {place.path!r} already; a folder cannot be made")
        elif not exist_ok:
            raise ToolFailed(f"there is a folder {place.path!r} already")
        return {"path": place.path, "created": there is None}


def delete_path(
    path: Annotated[str, Field(description="The file or folder, relative to the workspace.")],
    *,
    recursive: Annotated[bool, Field(description="Delete a folder with all it holds.")] = False,
    missing_ok: Annotated[bool, Field(description="It is no error if nothing is there.")] = False,
    _context: ToolContext,
) -> dict[str, Any]:
    """Delete a file or a folder of the workspace. There is no way back."""
    try:
        # A link is deleted, not what it leads to.
        with workspace_of(_context).at(path, follow=False) as place:
            is_folder = place.is_folder()
            if is_folder and not recursive:
                _refuse(f"{place.path!r} is a folder", "set recursive to delete it with its files")
            remove(place)
            kind = "directory" if is_folder else "file"
            return {"path": place.path, "deleted": True, "type": kind}
    except ToolFailed as error:
        if missing_ok and isinstance(error.__cause__, FileNotFoundError):
            return {"path": path, "deleted": False, "reason": "missing"}
        raise


def load_file(
    path_or_id: Annotated[
        str, Field(description="A file, relative to the workspace, or the id of an attachment.")
    ],
    *,
    _context: ToolContext,
) -> MediaPart | str:
    """Look at a file: an image, a PDF, audio or video is shown to you; a text is given as text."""
    with _source(_context, path_or_id) as file:
        size = os.fstat(file.fileno()).st_size
        if size > _MAX_SHOWN:
            raise ToolFailed(
                f"{path_or_id!r} has {size} bytes; at most {_MAX_SHOWN} can be shown",
                hint="make it smaller by code, or read it in parts",
            )
        data = file.read()
    name = path_or_id.rpartition("/")[2]
    kind = sniff(data)
    if kind == "application/octet-stream":
        guess = mimetypes.guess_type(name)[0] or ""
        kind = guess if guess.startswith(("audio/", "video/")) else kind
    if kind.partition("/")[0] in {"image", "audio", "video"} or kind == "application/pdf":
        return _context.attach(data, kind, name)
    if kind != "application/octet-stream":
        raise ToolFailed(f"{path_or_id!r} is {kind}, which cannot be shown", hint="open it by code")
    text = encoding_of(data[:HEAD], path_or_id).decode(data, path_or_id)
    return shortened(text, _MAX_TEXT_SHOWN)


def save_file(
    path: FilePath,
    content: Annotated[str, Field(description="The text to write.")],
    *,
    encoding: Annotated[str, Field(description="The text encoding to write in.")] = "utf-8",
    mode: Annotated[
        Literal["overwrite", "append"],
        Field(description="Replace the file, or add to its end."),
    ] = "overwrite",
    _context: ToolContext,
) -> dict[str, Any]:
    """Write a text file of the workspace, wholly or not at all; missing folders are made."""
    data = Encoding(codec_named(encoding)).encode(content)
    with workspace_of(_context).at(path, make_parents=True) as place, place.locked():
        if mode == "append":
            place.append(data)
        else:
            place.write(data)
        found = place.stat()
        return {"path": place.path, "size": found.st_size if found else len(data)}


def read_text_file_snippet(
    path: Annotated[
        str, Field(description="A text file, relative to the workspace, or an attachment's id.")
    ],
    *,
    offset: Annotated[int, Field(ge=0, description="Characters to leave out before.")] = 0,
    limit: Annotated[int, Field(ge=1, le=200_000, description="Characters to read.")] = 4000,
    encoding: ReadEncoding = "auto",
    _context: ToolContext,
) -> dict[str, Any]:
    """Read a part of a text file of any size, counted in characters."""
    with _source(_context, path) as file:
        used = encoding_of(file.read(HEAD), path, encoding)
        kept: list[str] = []
        length = 0
        for piece in characters(file, used):
            start = max(offset - length, 0)
            stop = max(offset + limit - length, 0)
            kept.append(piece[start:stop])
            length += len(piece)
    return {
        "snippet": "".join(kept),
        "offset": offset,
        "length": length,
        "truncated": offset + limit < length,
        "encoding": used.name,
    }


def read_file_segment(
    path: Annotated[
        str, Field(description="A text file, relative to the workspace, or an attachment's id.")
    ],
    *,
    start_line: Annotated[int, Field(ge=1, description="First line to read, from 1.")] = 1,
    line_count: Annotated[int, Field(ge=1, description="How many lines to read.")] = 40,
    inline_line_numbers: Annotated[
        bool, Field(description="Put `number:` before each line.")
    ] = False,
    encoding: ReadEncoding = "auto",
    include_line_offsets: Annotated[
        bool, Field(description="Tell at which character of the file each line begins.")
    ] = False,
    _context: ToolContext,
) -> dict[str, Any]:
    """Read lines of a text file, with their numbers for apply_text_edits."""
    with _source(_context, path) as file:
        text, used, info = _whole_text(file, path, encoding)
    lines = split_lines(text)
    first = start_line - 1
    if first >= len(lines) and not (first == 0 and not lines):
        raise ToolFailed(f"{path!r} has {len(lines)} lines: there is no line {start_line}")
    chosen = lines[first : first + line_count]
    numbered = enumerate(chosen, start_line)
    result: dict[str, Any] = {
        "path": path,
        "encoding": used.name,
        "newline": newline_name(lines),
        "start_line": start_line,
        "end_line": first + len(chosen),
        "lines_returned": len(chosen),
        "total_lines": len(lines),
        "truncated": first + len(chosen) < len(lines),
        "file_size": info.st_size,
        "modified": _time(info.st_mtime),
        "snippet": "".join(
            f"{number}:{body}{end}" if inline_line_numbers else body + end
            for number, (body, end) in numbered
        ),
    }
    if include_line_offsets:
        at = sum(len(body) + len(end) for body, end in lines[:first])
        offsets: list[dict[str, int]] = []
        for number, (body, end) in enumerate(chosen, start_line):
            offsets.append({"line": number, "offset": at})
            at += len(body) + len(end)
        result["line_offsets"] = offsets
    return result


def apply_text_edits(
    path: FilePath,
    *,
    start_line: Annotated[
        int, Field(ge=0, description="First line to replace, from 1; 0 where `edits` is given.")
    ] = 0,
    end_line: Annotated[
        int | None,
        Field(
            description="Last line to replace, default start_line; start_line - 1 inserts before"
            " start_line and replaces nothing."
        ),
    ] = None,
    replacement: Annotated[
        str, Field(description="What is to stand there; empty deletes the lines.")
    ] = "",
    expected: Annotated[
        str | None,
        Field(description="What these lines hold now; if they do not, nothing is changed."),
    ] = None,
    edits: Annotated[
        Sequence[TextEdit],
        Field(description="More edits, or all; every line number counts in the file as it is now."),
    ] = (),
    encoding: ReadEncoding = "auto",
    newline: Annotated[
        Newline, Field(description="The line end of all lines; `preserve` changes none.")
    ] = "preserve",
    ensure_trailing_newline: Annotated[
        bool | None,
        Field(description="Whether the file is to end with a line end; default: as before."),
    ] = None,
    _context: ToolContext,
) -> dict[str, Any]:
    """Replace, insert or delete lines of a text file: all edits of a call, or none of them.

    Encoding and line ends stay as they are. A line number one past the last adds at the end.
    """
    wanted = list(edits)
    if start_line:
        first = {"start_line": start_line, "end_line": end_line}
        wanted.insert(
            0, TextEdit.model_validate({**first, "replacement": replacement, "expected": expected})
        )
    if not wanted:
        raise ToolArguments("give start_line and replacement, or a list of edits")
    with workspace_of(_context).at(path) as place, place.locked():
        with place.open() as file:
            text, used, _ = _whole_text(file, path, encoding)
        new, lines = edited(text, wanted, newline, ensure_trailing_newline)
        data = used.encode(new)
        place.write(data)
        return {
            "path": place.path,
            "encoding": used.name,
            "newline": newline_name(lines) if lines else newline_of(lines),
            "line_count": len(lines),
            "applied_edits": len(wanted),
            "trailing_newline": bool(lines and lines[-1][1]),
            "file_size": len(data),
        }


def rename_path(
    src: SourcePath,
    dst: TargetPath,
    *,
    overwrite: Overwrite = False,
    _context: ToolContext,
) -> dict[str, Any]:
    """Give a file or folder of the workspace another name."""
    return _moved(src, dst, overwrite, "rename", _context)


def copy_path(
    src: SourcePath,
    dst: TargetPath,
    *,
    overwrite: Overwrite = False,
    _context: ToolContext,
) -> dict[str, Any]:
    """Copy a file, or a folder with all it holds, within the workspace."""
    workspace = workspace_of(_context)
    with (
        workspace.at(src) as source,
        workspace.at(dst, follow=False, make_parents=True) as target,
    ):
        if source.path == target.path:
            return {"path": target.path, "operation": "copy", "skipped": True}
        left_out = copy(source, target, overwrite=overwrite)
        result: dict[str, Any] = {
            "path": target.path,
            "source": source.path,
            "operation": "copy",
        }
        return result | ({"left_out": left_out} if left_out else {})


def move_path(
    src: SourcePath,
    dst: TargetPath,
    *,
    overwrite: Overwrite = False,
    _context: ToolContext,
) -> dict[str, Any]:
    """Move a file or folder to another place in the workspace; missing folders are made."""
    return _moved(src, dst, overwrite, "move", _context)


async def search_in_files(
    pattern: Annotated[
        str,
        Field(min_length=1, max_length=10_000, description="What to look for within a line."),
    ],
    *,
    globs: Annotated[
        Sequence[str],
        Field(description="Only these files, such as `*.py` (in any folder) or `src/**`."),
    ] = (),
    exclude_globs: Annotated[
        Sequence[str], Field(description="None of these files and folders, such as `build/`.")
    ] = (),
    use_regex: Annotated[
        bool, Field(description="The pattern is a regular expression of Python.")
    ] = True,
    case_sensitive: Annotated[bool, Field(description="Upper and lower case differ.")] = False,
    max_results: Annotated[
        int, Field(ge=1, le=2000, description="Stop after so many matches.")
    ] = 200,
    before_context: Annotated[
        int, Field(ge=0, le=50, description="Lines to show before a match.")
    ] = 2,
    after_context: Annotated[
        int, Field(ge=0, le=50, description="Lines to show after a match.")
    ] = 2,
    include_hidden: Annotated[
        bool, Field(description="Search names that begin with a dot too.")
    ] = False,
    _context: ToolContext,
) -> dict[str, Any]:
    """Search the text files of the workspace, line by line; lines and columns count from 1."""
    wanted = {
        "pattern": pattern,
        "globs": globs,
        "exclude_globs": exclude_globs,
        "use_regex": use_regex,
        "case_sensitive": case_sensitive,
        "max_results": max_results,
        "before_context": before_context,
        "after_context": after_context,
        "include_hidden": include_hidden,
    }
    program = Path(__file__).with_name("_search.py")
    result = await run_child(
        [sys.executable, "-I", "-S", str(program), json.dumps(wanted)],
        cwd=workspace_of(_context).files,
        env={},
        seconds=_SEARCH_SECONDS,
        max_output=64 << 20,
    )
    if result.exit_code is None:
        raise ToolFailed(
            f"the search did not end within {_SEARCH_SECONDS:g} s",
            hint="take a simpler pattern (nested repetitions are slow), or name fewer files",
        )
    if result.exit_code:
        raise ToolFailed(f"the search failed: {result.stderr.decode(errors='replace')[-500:]}")
    found: dict[str, Any] = json.loads(result.stdout)
    if "error" in found:
        raise ToolArguments(
            f"pattern {pattern!r} is no regular expression: {found['error']}",
            hint="set use_regex to false to look for these very characters",
        )
    return found


def _moved(
    src: str, dst: str, overwrite: bool, operation: str, context: ToolContext
) -> dict[str, Any]:
    workspace = workspace_of(context)
    # A link moves itself, not what it leads to.
    with (
        workspace.at(src, follow=False) as source,
        workspace.at(dst, follow=False, make_parents=True) as target,
    ):
        if source.path == target.path and source.stat() is not None:
            return {"path": target.path, "operation": operation, "skipped": True}
        move(source, target, overwrite=overwrite)
        return {"path": target.path, "previous_path": source.path, "operation": operation}


def _refuse(text: str, hint: str) -> NoReturn:
    raise ToolFailed(text, hint=hint)


@contextmanager
def _opened_folder(place: Place) -> Generator[int]:
    folder = open_folder(place)
    try:
        yield folder
    finally:
        os.close(folder)


@contextmanager
def _source(context: ToolContext, path: str) -> Generator[BinaryIO]:
    """A file of the workspace, or else the attachment of that id, open for reading."""
    workspace = workspace_of(context)
    name = path.removeprefix(_ATTACHMENTS)
    with suppress(ToolFailed), workspace.at(path) as place:
        if place.stat() is not None:
            name = ""
    attachment = workspace.attachments / name
    if name not in {"", MANIFEST} and "/" not in name and attachment.is_file():
        with attachment.open("rb") as file:
            yield file
        return
    with workspace.at(path) as place, place.open() as file:
        yield file


def _whole_text(file: BinaryIO, path: str, encoding: str) -> tuple[str, Encoding, os.stat_result]:
    info = os.fstat(file.fileno())
    if info.st_size > _MAX_TEXT:
        raise ToolFailed(
            f"{path!r} has {info.st_size} bytes, and lines are counted up to {_MAX_TEXT}",
            hint="read it in parts with read_text_file_snippet, or work on it by code",
        )
    data = file.read()
    used = encoding_of(data[:HEAD], path, encoding)
    return used.decode(data, path), used, info


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
