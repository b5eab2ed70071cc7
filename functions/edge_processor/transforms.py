"""Processors of edges: each takes the text of a message and gives the text that is delivered."""

from __future__ import annotations


def uppercase_payload(text: str) -> str:
    """The text in capital letters."""
    return text.upper()
