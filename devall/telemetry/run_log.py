"""logs/<run>/events.jsonl: every event of a run, one JSON object a line, as it happens.

A line is `{"v": 1, "event": "node_finished", "at": ..., "path": ..., ...}` with the fields of
the event's class under their own names; fields at their default may be absent in a later
version, none changes its meaning within a version. Three things are not written as they are:

- pieces of streaming text (`text_delta`) are left out: the whole text follows;
- a field of more than 64 KB is `{"body": "<sha256>", "bytes": n, "type": "text" | "json"}`,
  and stands in `bodies/<sha256>` beside the file;
- what a node with `log_output: false` says is `{"hidden": true, "chars": n}`, as its output,
  its model's reply, another node's input, a message of a prompt, and the run's answer; as a part
  of a longer text it is `(kept out of logs: n characters)`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, cast

from devall.core import events
from devall.core.events import Event, TextDelta, ToolCallStarted
from devall.core.messages import JsonValue, Message, to_json
from devall.core.shape import GraphShape
from devall.core.shape import to_json as shape_to_json
from devall.telemetry.hidden import HiddenOutputs
from devall.telemetry.redaction import Redactor

VERSION = 1
LONGEST = 64 * 1024
"""Bytes of a field beyond which it is a body of its own."""
FILE_NAME = "events.jsonl"
_FOLDER_MODE = 0o700
_FILE_MODE = 0o600


class RunLog:
    """Writes a run's events into its folder; an instance is itself the sink.

    Files are readable by the user alone. A line is one append, so that whoever reads along
    sees whole lines, and events may come from several threads.
    """

    def __init__(self, folder: Path, redactor: Redactor, *, hidden: Collection[str] = ()) -> None:
        """Open the file, behind what an earlier process wrote.

        Args:
            folder: The run's folder; made if need be.
            redactor: What takes the secrets out.
            hidden: Nodes with `log_output: false` (`S/X` in a subgraph), where they are
                known beforehand: a human's answer comes before its node's output does.

        Raises:
            OSError: the folder or file cannot be made.
        """
        private_folder(folder)
        self._folder = folder
        self._redactor = redactor
        self._hidden = HiddenOutputs(hidden)
        self._file = open_private(folder / FILE_NAME)
        self._is_torn = _ends_torn(folder / FILE_NAME)

    def __call__(self, event: Event, /) -> None:
        """Write the event."""
        kind = type(event)
        if kind is TextDelta:
            return
        self._append(self._line(event, kind))

    def close(self) -> None:
        """Close the file; more than once is harmless."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _line(self, event: Event, kind: type[Event]) -> bytes:
        name, names = _SHAPES.get(kind) or _shape(kind)
        body: dict[str, Any] = {"v": VERSION, "event": name}
        for field in names:
            body[field] = getattr(event, field)
        self._hidden.cover(event, body)
        if kind is ToolCallStarted:
            body["arguments"] = self._redactor.value(body["arguments"])
        line = encode(body)
        if self._redactor.may_be_in(line):
            clean = self._redactor.value(json.loads(line))
            body = {**clean, "v": VERSION, "event": name, "at": event.at}
            line = encode(body)
        data = _to_bytes(line)
        return data if len(data) <= LONGEST else self._with_bodies(body)

    def _with_bodies(self, body: dict[str, Any]) -> bytes:
        for field, value in body.items():
            is_text = isinstance(value, str)
            data = _to_bytes(value if is_text else encode(value))
            if len(data) > LONGEST:
                kind = "text" if is_text else "json"
                body[field] = {"body": self._keep(data), "bytes": len(data), "type": kind}
        return _to_bytes(encode(body))

    def _keep(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        place = private_folder(self._folder / "bodies") / digest
        if not place.exists():
            unfinished = place.with_suffix(f".{os.getpid()}.part")
            handle = open_private(unfinished)
            try:
                _write(handle, data)
            finally:
                os.close(handle)
            unfinished.replace(place)
        return digest

    def _append(self, line: bytes) -> None:
        if self._is_torn:
            line = b"\n" + line
        self._is_torn = True
        _write(self._file, line + b"\n")
        self._is_torn = False


def read_events(folder: Path) -> list[dict[str, JsonValue]]:
    """The lines of a run's events.jsonl with bodies put back; a torn last line is left out.

    Raises:
        OSError: the file, or a body, is not there.
    """
    with (folder / FILE_NAME).open(encoding="utf-8", errors="replace") as file:
        found: list[dict[str, JsonValue]] = []
        for line in file:
            with contextlib.suppress(json.JSONDecodeError):
                found.append(json.loads(line))
    return [with_bodies(event, folder) for event in found]


def with_bodies(event: dict[str, JsonValue], folder: Path) -> dict[str, JsonValue]:
    """A line's object with the fields put back that stand in files of their own.

    Raises:
        OSError: one is not there.
    """
    for field, value in event.items():
        match value:
            case {"body": str(digest), "bytes": int(), "type": kind}:
                text = (folder / "bodies" / digest).read_text(encoding="utf-8")
                event[field] = json.loads(text) if kind == "json" else text
            case _:
                pass
    return event


_SHAPES: dict[type[Event], tuple[str, tuple[str, ...]]] = {}


def _shape(kind: type[Event]) -> tuple[str, tuple[str, ...]]:
    """The event's name in the file, and its fields; kept, since thousands are written."""
    shape = _SHAPES[kind] = event_name(kind), tuple(f.name for f in fields(kind))
    return shape


def event_name(kind: type[Event]) -> str:
    """The name of a kind of event in files: `ToolCallStarted` is `tool_call_started`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


KINDS: Mapping[str, type[Event]] = {
    event_name(each): each
    for each in vars(events).values()
    if isinstance(each, type) and issubclass(each, Event) and each not in {Event, TextDelta}
}
"""The events of the file by their names in it."""


def _plain(value: object) -> JsonValue:
    """What `json` does not know, in its terms."""
    if isinstance(value, Message):
        return to_json(value)
    if isinstance(value, GraphShape):
        return shape_to_json(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, Mapping):
        return dict(cast(Mapping[str, JsonValue], value))
    if isinstance(value, set | frozenset):
        return sorted(cast(set[str], value))
    return str(value)


_ENCODERS = [
    json.JSONEncoder(
        ensure_ascii=False,
        separators=(",", ":"),
        check_circular=False,
        default=_plain,
        allow_nan=allow_nan,
    )
    for allow_nan in (False, True)
]


def encode(value: object) -> str:
    """A value of events as one line of JSON; numbers that JSON does not have become null."""
    strict, lenient = _ENCODERS
    try:
        return strict.encode(value)
    except ValueError:
        return strict.encode(json.loads(lenient.encode(value), parse_constant=lambda _: None))


def _to_bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, from a cut text
        return text.encode("utf-8", "backslashreplace")


def private_folder(folder: Path) -> Path:
    """The folder, made with its parents if need be; what is made is the user's alone (0700)."""
    if not folder.is_dir():
        private_folder(folder.parent)
        folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
    return folder


def open_private(file: Path) -> int:
    """A file's descriptor to append to; readable by the user alone (0600)."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(file, flags, _FILE_MODE)


def _ends_torn(file: Path) -> bool:
    with file.open("rb") as opened:
        if opened.seek(0, os.SEEK_END) == 0:
            return False
        opened.seek(-1, os.SEEK_END)
        return opened.read(1) != b"\n"


def _write(handle: int, data: bytes) -> None:
    written = os.write(handle, data)
    while written < len(data):
        written += os.write(handle, data[written:])
