"""The task of a run as its first message: text, and what is attached to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from devall.core.errors import UsageError
from devall.core.messages import Message, Part, TextPart, user
from devall.workspace import Workspace

INLINE = 40_000
"""Characters of an attached text that stand in the message; longer ones are in the file alone."""
_MEDIA = ("image/", "audio/", "video/")
_TEXTS = ("text/", "application/json", "application/xml", "application/yaml", "application/x-yaml")
_ODD = re.compile(r"[^\w. -]+")


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that goes with a task."""

    data: bytes
    mime_type: str = "application/octet-stream"
    name: str = ""
    """What it is called in the workspace; empty = `attachment-1` and so on."""


def task_message(task: str, attachments: Sequence[Attachment], workspace: Workspace) -> Message:
    """What the start nodes get.

    Each attachment becomes a file of the workspace, for tools. Models are given images, audio and
    video as such, and texts as text.

    Raises:
        UsageError: two attachments have the same name.
    """
    if not attachments:
        return user(task)
    parts: list[Part] = [TextPart(task)] if task else []
    seen: set[str] = set()
    for number, attachment in enumerate(attachments, 1):
        name = _file_name(attachment.name) or f"attachment-{number}"
        if name in seen:
            raise UsageError(f"two attachments are called {name}")
        seen.add(name)
        with workspace.at(name) as place:
            place.write(attachment.data)
        parts += _parts(attachment, name, workspace)
    return Message("user", tuple(parts))


def _file_name(name: str) -> str:
    """The name without folders, and without what a file's name should not hold."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return _ODD.sub("_", last).strip(" .")[:100]


def _parts(attachment: Attachment, name: str, workspace: Workspace) -> Iterator[Part]:
    kind = attachment.mime_type
    yield TextPart(
        f"[attached: {name} ({kind}, {len(attachment.data)} bytes), a file in the workspace]"
    )
    if kind.startswith(_MEDIA):
        yield workspace.save_attachment(attachment.data, kind, name)
    elif kind.startswith(_TEXTS):
        text = attachment.data.decode("utf-8", "replace")
        if len(text) <= INLINE:
            yield TextPart(text)
