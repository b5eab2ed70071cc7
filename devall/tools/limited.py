"""A toolset whose results never grow beyond what a model can take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from devall.core.errors import ToolError
from devall.core.messages import DataPart, JsonValue, MediaPart, TextPart
from devall.core.ports import Scope
from devall.tools.base import ToolResult, Toolset
from devall.tools.results import to_json_text
from devall.tools.slices import notice
from devall.tools.wrapped import WrappedToolset
from devall.workspace import Workspace


class LimitedToolset(WrappedToolset):
    """Cuts the text of a long result in the middle, and says so there.

    The whole text is kept as an attachment of the run, and can be read in slices.
    """

    def __init__(self, inner: Toolset, max_chars: int, workspace: Workspace | None = None) -> None:
        super().__init__(inner)
        self._max_chars = max_chars
        self._workspace = workspace

    async def call(
        self, name: str, arguments: Mapping[str, JsonValue], scope: Scope, call_id: str
    ) -> ToolResult:
        """Run a tool, and cut what it says.

        Raises:
            ToolError: as the tool; its text is cut as well.
        """
        try:
            result = await self.inner.call(name, arguments, scope, call_id)
        except ToolError as error:
            if len(str(error)) <= self._max_chars:
                raise
            raise type(error)(shorten(str(error), self._max_chars), hint=error.hint) from error
        text = "\n".join(_texts(result))
        if len(text) <= self._max_chars:
            return result
        kept = ""
        if self._workspace is not None:
            data = text.encode("utf-8", "replace")
            part = self._workspace.save_attachment(data, "text/plain", f"{name}.txt")
            kept = notice(part.attachment)
        cut = TextPart(shorten(text, self._max_chars, kept))
        others = tuple(part for part in result.parts if isinstance(part, MediaPart))
        return replace(result, parts=(cut, *others))


def _texts(result: ToolResult) -> Iterator[str]:
    """What a model reads of a result: its texts, and its data as JSON."""
    for part in result.parts:
        match part:
            case TextPart():
                yield part.text
            case DataPart():
                yield to_json_text(part.data)
            case MediaPart():
                pass


def shorten(text: str, max_chars: int, note: str = "") -> str:
    """The head and the tail of a text, with what was left out said in between.

    Args:
        text: More than `max_chars` characters.
        max_chars: The length of the whole, the notice included; where there is no room for
            one, head and tail take half of it.
        note: Said at the end of the notice.
    """
    notice = f"\n\n[... cut: {len(text)} characters, of which the middle is left out{note} ...]\n\n"
    room = max(max_chars - len(notice), max_chars // 2)
    head = (room + 1) // 2
    tail = room - head
    return text[:head] + notice + (text[-tail:] if tail else "")
