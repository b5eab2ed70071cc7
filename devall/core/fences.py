"""Fenced blocks in the texts that models write."""

from __future__ import annotations

import re

_FENCED = re.compile(r"```[A-Za-z0-9]*\s*\n(.*?)```", re.DOTALL)


def fenced_block(text: str) -> str | None:
    """What the first fenced block of a text holds; None where there is none."""
    found = _FENCED.search(text)
    return None if found is None else found[1]
