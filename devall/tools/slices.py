"""Slices of tool results that were cut: the tool `read_tool_result`.

It is offered from the turn on in which the conversation holds the notice of a cut, and only
then: whether it is offered follows from messages that the journal holds, so that a run which is
resumed offers what it offered before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from devall.core.errors import ToolArguments, ToolFailed
from devall.core.messages import JsonValue, Message, TextPart
from devall.tools.base import ToolResult, ToolSpec
from devall.tools.schemas import SchemaCheck
from devall.workspace import Workspace

NAME = "read_tool_result"
LONGEST = 20_000
"""Characters of one slice at most."""
_MARK = f"(`{NAME}` gives slices of it)"

SPEC = ToolSpec(
    NAME,
    "Read a slice of the whole text of an earlier tool result that was cut.",
    {
        "type": "object",
        "properties": {
            "attachment": {
                "type": "string",
                "description": "Name of the attachment, as the cut result gives it.",
            },
            "start": {
                "type": "integer",
                "minimum": 0,
                "description": "Character at which the slice begins; 0 = the beginning.",
            },
            "length": {
                "type": "integer",
                "minimum": 1,
                "maximum": LONGEST,
                "description": f"Characters of the slice; {LONGEST} at most.",
            },
        },
        "required": ["attachment"],
        "additionalProperties": False,
    },
    {"source": "devall", "original_name": NAME},
)
_CHECK = SchemaCheck(SPEC.parameters)


def notice(attachment: str) -> str:
    """What a cut result says of its whole text."""
    return f"; the whole text is attachment {attachment} {_MARK}"


def is_wanted(messages: Sequence[Message]) -> bool:
    """Whether a conversation holds the notice of a cut."""
    return any(_MARK in message.text for message in messages)


def read(workspace: Workspace | None, arguments: Mapping[str, JsonValue]) -> ToolResult:
    """A slice, and where it stands in the whole.

    Raises:
        ToolArguments: the arguments do not fit.
        ToolFailed: there is no such attachment, or it is no text.
    """
    _CHECK.check_arguments(arguments)
    name: str = arguments["attachment"]
    start: int = arguments.get("start", 0)
    length: int = arguments.get("length", LONGEST)
    try:
        if workspace is None:
            raise FileNotFoundError(name)
        text = workspace.read_attachment(name).decode()
    except UnicodeDecodeError as error:
        raise ToolFailed(f"attachment {name} is no text") from error
    except (OSError, ValueError) as error:
        raise ToolFailed(f"there is no attachment {name}") from error
    if start >= len(text):
        raise ToolArguments(f"`start` is {start}, and the text has {len(text)} characters")
    end = min(start + length, len(text))
    where = f"[characters {start} to {end} of {len(text)}]"
    return ToolResult((TextPart(f"{where}\n{text[start:end]}"),))
