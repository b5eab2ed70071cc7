"""The task of a run as its first message: text, and what is attached to it."""

from __future__ import annotations

import codecs
import mimetypes
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from devall.core.errors import UsageError
from devall.core.messages import Message, Part, TextPart, user
from devall.manifest import Maker
from devall.tools.results import sniff
from devall.workspace import Workspace

INLINE = 40_000
"""Characters of one attached text that stand in the message."""
INLINE_IN_ALL = 200_000
"""Characters of all attached texts together."""
LARGEST = 100_000_000
"""Bytes of one attachment."""
PDF = "application/pdf"
_UNKNOWN = "application/octet-stream"
_MEDIA = ("image/", "audio/", "video/")
_TEXTS = ("text/", "application/json", "application/xml", "application/yaml", "application/x-yaml")
_SVG = "image/svg+xml"
"""An image that no model takes as one: it is text."""
_ODD = re.compile(r"[^\w. -]+")
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_BY_USER = Maker("user")


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that goes with a task."""

    data: bytes
    mime_type: str = _UNKNOWN
    name: str = ""
    """What it is called in the workspace; empty = `attachment-1` and so on."""

    @classmethod
    def of_file(cls, path: Path | str) -> Attachment:
        """A file as an attachment; its name and its first bytes tell what it is.

        Raises:
            UsageError: it is missing, no file, too large, or cannot be read.
        """
        place = Path(path)
        try:
            if place.is_dir():
                raise UsageError(f"attachment {place} is a folder", hint="attach its files")
            size = place.stat().st_size
            if size > LARGEST:
                raise UsageError(
                    f"attachment {place} has {size:,} bytes; {LARGEST:,} are the most",
                    hint="put it where a tool of the workflow finds it",
                )
            data = place.read_bytes()
        except FileNotFoundError as error:
            raise UsageError(f"there is no file {place} to attach") from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise UsageError(f"attachment {place} cannot be read: {reason}") from error
        told = sniff(data[:64])
        guessed = mimetypes.guess_type(place.name)[0] or _UNKNOWN
        return cls(data, guessed if told == _UNKNOWN else told, place.name)


AttachmentLike = Attachment | Path | str
"""An attachment, or the path of a file."""


def task_message(task: str, attachments: Sequence[AttachmentLike], workspace: Workspace) -> Message:
    """What the start nodes get.

    Each attachment becomes a file of the workspace, for tools, and is kept with the run. Models
    are given images, audio, video and PDF files as such, and texts as text.

    Raises:
        UsageError: a file cannot be read, or two attachments have the same name.
    """
    if not attachments:
        return user(task)
    parts: list[Part] = [TextPart(task)] if task else []
    given = [
        each if isinstance(each, Attachment) else Attachment.of_file(each) for each in attachments
    ]
    room = INLINE_IN_ALL
    for attachment, name in _named(given):
        with workspace.at(name) as place:
            place.write(attachment.data)
        found = list(_parts(attachment, name, workspace, min(room, INLINE)))
        room -= sum(len(part.text) for part in found[1:] if isinstance(part, TextPart))
        room = max(room, 0)
        parts += found
    return Message("user", tuple(parts))


def _named(attachments: Iterable[Attachment]) -> Iterator[tuple[Attachment, str]]:
    """The attachments with their names in the workspace."""
    seen: set[str] = set()
    for number, attachment in enumerate(attachments, 1):
        name = _file_name(attachment.name) or f"attachment-{number}"
        if name in seen:
            raise UsageError(f"two attachments are called {name}", hint="rename one of them")
        seen.add(name)
        yield attachment, name


def _file_name(name: str) -> str:
    """The name without folders, and without what a file's name should not hold."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return _ODD.sub("_", last).strip(" .")[:100]


def _parts(attachment: Attachment, name: str, workspace: Workspace, room: int) -> Iterator[Part]:
    """A line that names the attachment, and what of it a model is given.

    Args:
        attachment: The file.
        name: What it is called in the workspace.
        workspace: Keeps it.
        room: Characters of a text that may stand in the message.
    """
    data, kind = attachment.data, attachment.mime_type
    kept = workspace.save_attachment(data, kind, name, _BY_USER)
    about = f"[attached: {name} ({kind}, {len(data)} bytes), a file in the workspace]"
    if kind != _SVG and (kind.startswith(_MEDIA) or kind == PDF):
        yield TextPart(about)
        yield kept
        return
    text = _text_of(data, kind)
    if text is None:
        yield TextPart(f"{about} (its content is not shown)")
    elif len(text) <= room:
        yield TextPart(about)
        yield TextPart(text)
    else:
        yield TextPart(f"{about} (only its first {room} of {len(text)} characters are shown)")
        if room:
            yield TextPart(text[:room])


def _text_of(data: bytes, kind: str) -> str | None:
    """What a file says; None where it is no text."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace") if kind.startswith(_TEXTS) else None
    return None if _NO_TEXT.search(text) else text
