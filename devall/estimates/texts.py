"""Sizes of texts in tokens, from below and above, and texts that are known before a run."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor

from devall.agents.sizes import LEAST_SCALE, MESSAGE_TOKENS, MOST_SCALE, Sizes
from devall.core.messages import Message
from devall.models.base import ToolSchema

FRAME = 2 * MESSAGE_TOKENS
"""Tokens around a message at most."""

_sizes = Sizes()


def estimated(messages: Sequence[Message] = (), tools: Sequence[ToolSchema] = ()) -> int:
    """Tokens, as an agent's run estimates them before its first request."""
    return _sizes.of_request(messages, tools).tokens


def at_most(tokens: float) -> int:
    """Tokens that a text of so many estimated ones has at most."""
    return ceil(tokens * MOST_SCALE)


def at_least(tokens: float) -> int:
    """Tokens that a text of so many estimated ones has at least."""
    return floor(tokens * LEAST_SCALE)


def of_text(text: str) -> int:
    """Tokens of a text at most, its frame included."""
    return at_most(estimated([Message("user", text)]))
