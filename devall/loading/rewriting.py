"""Changes of a document's text at the places of its values: all else stays as it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from devall.core.messages import JsonValue
from devall.loading.document import Document, Piece, scan
from devall.loading.places import Path, Place, unpacked

_NULLS = frozenset({"null", "Null", "NULL", "~"})


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A text that was changed."""

    text: str
    origins: tuple[int, ...]
    """For each of its lines: which line it was, from 1."""


@dataclass(eq=False)
class Rewriting:
    """Changes of one document, which are made all at once; each at a place of its own."""

    document: Document
    _edits: dict[tuple[int, int], tuple[int, str]] = field(
        default_factory=dict[tuple[int, int], tuple[int, str]]
    )
    """Line and column, from 0, to the columns that go and the text that comes."""

    def __bool__(self) -> bool:
        return bool(self._edits)

    def plain(self, path: Path) -> str | None:
        """The value at a path as it is written, if it is a word or words without quotes."""
        place = self.document.place.find(path)
        piece = self._pieces.get((place.line - 1, place.column - 1))
        if piece is None or piece.id != "<scalar>" or piece.style or piece.line != piece.end_line:
            return None
        return self.document.line(place.line)[piece.column : piece.end_column]

    def replace(self, path: Path, text: str) -> bool:
        """Write another value in place of the one at a path; False if it takes several lines."""
        place = self.document.place.find(path)
        spot = (place.line - 1, place.column - 1)
        piece = self._pieces.get(spot)
        if piece is None or piece.id != "<scalar>" or piece.line != piece.end_line:
            return False
        return self._edit(spot, piece.end_column - piece.column, text)

    def rename(self, path: Path, prefix: str) -> bool:
        """Put something before the name of the key at a path."""
        place = self.document.place.find(path)
        return self.rename_at(place.key_line, place.key_column, prefix)

    def rename_at(self, line: int, column: int, prefix: str) -> bool:
        """Put something before the name of the key that stands there, counted from 1."""
        piece = self._pieces.get((line - 1, column - 1))
        if piece is None or piece.id != "<scalar>":
            return False
        behind_quote = column if piece.style else column - 1
        return self._edit((line - 1, behind_quote), 0, prefix)

    def put(self, path: Path, key: str, value: JsonValue) -> bool:
        """Give a mapping a key: in place of an empty one that it has, or as its first."""
        text = json.dumps(value, ensure_ascii=False)
        place = self.document.place.find(path)
        keys = place.children
        if not isinstance(keys, dict) or not keys:
            return False
        if key in keys:
            written = self.plain((*path, key))
            if written in _NULLS:
                return self.replace((*path, key), text)
            own = unpacked(keys[key])
            return self._edit((own.line - 1, own.column - 1), 0, f" {text}")
        first = min((unpacked(each) for each in keys.values()), key=_key_spot)
        spot = (first.key_line - 1, first.key_column - 1)
        if self._is_flow(place, spot):
            return self._edit(spot, 0, f"{key}: {text}, ")
        return self._edit(spot, 0, f"{key}: {text}\n{' ' * spot[1]}")

    def apply(self) -> Rewritten:
        """The text with all changes made."""
        lines = self.document.text.split("\n")
        done: list[str] = []
        origins: list[int] = []
        by_line: dict[int, list[tuple[int, int, str]]] = {}
        for (line, column), (length, text) in self._edits.items():
            by_line.setdefault(line, []).append((column, length, text))
        for number, line in enumerate(lines):
            new = line
            for column, length, text in sorted(by_line.get(number, ()), reverse=True):
                new = new[:column] + text + new[column + length :]
            done.append(new)
            origins += [number + 1] * (new.count("\n") + 1)
        return Rewritten("\n".join(done), tuple(origins))

    def _edit(self, spot: tuple[int, int], length: int, text: str) -> bool:
        if spot in self._edits:
            return False
        self._edits[spot] = (length, text)
        return True

    @cached_property
    def _pieces(self) -> dict[tuple[int, int], Piece]:
        """Scalars and opening braces, by where they begin."""
        wanted = {"<scalar>", "{"}
        return {
            (piece.line, piece.column): piece
            for piece in scan(self.document.text)
            if piece.id in wanted
        }

    def _is_flow(self, place: Place, first: tuple[int, int]) -> bool:
        """Whether a mapping stands between braces."""
        begin = (place.line - 1, place.column - 1)
        return any(begin <= spot < first for spot, piece in self._pieces.items() if piece.id == "{")


def _key_spot(place: Place) -> tuple[int, int]:
    return place.key_line, place.key_column


def keys_at(place: Place, path: Path = ()) -> Iterator[tuple[Path, Place]]:
    """Every key of a document with the path of its value."""
    if isinstance(place.children, dict):
        for key, kept in place.children.items():
            child = unpacked(kept)
            yield (*path, key), child
            yield from keys_at(child, (*path, key))
    elif isinstance(place.children, list):
        for index, kept in enumerate(place.children):
            yield from keys_at(unpacked(kept), (*path, index))
