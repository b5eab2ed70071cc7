"""Questions to the human who started the run."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from devall.tools.context import ToolContext


async def call_user(
    instruction: Annotated[
        str,
        Field(min_length=1, description="What the user is to tell or decide, with all they need."),
    ],
    *,
    _context: ToolContext,
) -> str:
    """Ask the user, and get their answer. Use it only for what you cannot find out yourself."""
    return await _context.ask(instruction) or "(the user's answer is empty)"
