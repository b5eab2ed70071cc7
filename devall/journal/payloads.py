"""Values as the journal writes them: large pieces once each, by the hash of their content.

A conversation is sent again with every turn, so that requests written whole would grow with
the square of its length. A piece (a message, a tool, a text) of more than `INLINE` characters
is written once per run, and stands as `{"$piece": HASH}` elsewhere; one of more than `LARGE`
characters stands in a file of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import cast

from devall.core.messages import JsonValue

INLINE = 256
LARGE = 64 * 1024
_MARK = "$piece"

_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)

Keep = Callable[[str, str], None]
"""Takes the hash of a piece and its JSON text."""


def pack(value: JsonValue, keep: Keep) -> str:
    """The value as JSON text; its large pieces are handed to `keep`.

    Pieces are the value itself, the members of an object and the elements of the lists in it.
    """
    if isinstance(value, Mapping):
        mapping = cast(Mapping[str, JsonValue], value)
        if not _is_piece(mapping):
            members = [f"{_text(key)}:{_member(each, keep)}" for key, each in mapping.items()]
            return "{" + ",".join(members) + "}"
    return _member(value, keep)


def is_plain(text: str) -> bool:
    """Whether a JSON text holds no piece: it is its own value."""
    return _MARK not in text


def unpack(text: str, read: Callable[[str], JsonValue]) -> JsonValue:
    """The value of a JSON text, its pieces (values themselves) read back by their hash."""
    if is_plain(text):
        return json.loads(text)

    def piece(found: dict[str, JsonValue]) -> JsonValue:
        if not _is_piece(found):
            return found
        return read(str(found[_MARK]))

    return json.loads(text, object_hook=piece)


def _member(value: JsonValue, keep: Keep) -> str:
    if isinstance(value, list | tuple):
        return "[" + ",".join(_piece(each, keep) for each in cast(list[JsonValue], value)) + "]"
    return _piece(value, keep)


def _piece(value: JsonValue, keep: Keep) -> str:
    text = _text(value)
    if len(text) <= INLINE and _MARK not in text:  # else it might be taken for one of ours
        return text
    name = hashlib.sha256(text.encode()).hexdigest()
    keep(name, text)
    return f'{{"{_MARK}":"{name}"}}'


def _is_piece(value: Mapping[str, JsonValue]) -> bool:
    return len(value) == 1 and _MARK in value


def _text(value: JsonValue) -> str:
    text = _encoder.encode(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:  # half of a surrogate pair, from a cut text
            return json.dumps(value)
    return text
