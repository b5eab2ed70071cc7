"""What the tools that ship ask of the run that calls them."""

from __future__ import annotations

from devall.core.errors import ToolFailed
from devall.tools.context import ToolContext
from devall.workspace import Workspace


def workspace_of(context: ToolContext) -> Workspace:
    """The run's workspace.

    Raises:
        ToolFailed: the tool is called outside of a run.
    """
    if context.workspace is None:
        raise ToolFailed(f"{context.tool} works in a run's workspace, and there is none here")
    return context.workspace


def shortened(text: str, limit: int) -> str:
    """Head and tail of a text, with what was left out said in between."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    left_out = len(text) - head - tail
    return f"{text[:head]}\n[... {left_out} characters left out ...]\n{text[-tail:]}"
