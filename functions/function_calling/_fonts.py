"""Finds font files of the machine that have the characters of a text."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fontTools.ttLib import (  # pyright: ignore[reportMissingTypeStubs]
    TTFont,
    TTLibError,
)

_FOLDERS = (
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "~/.local/share/fonts",
    "~/.fonts",
    "/System/Library/Fonts",
    "/Library/Fonts",
    "~/Library/Fonts",
)
_SUFFIXES = {".ttf", ".otf", ".ttc", ".otc"}
# Regular, bold, italic, both.
_FAMILIES = (
    ("NotoSans-Regular", "NotoSans-Bold", "NotoSans-Italic", "NotoSans-BoldItalic"),
    (
        "LiberationSans-Regular",
        "LiberationSans-Bold",
        "LiberationSans-Italic",
        "LiberationSans-BoldItalic",
    ),
    ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSans-BoldOblique"),
    ("FreeSans", "FreeSansBold", "FreeSansOblique", "FreeSansBoldOblique"),
    ("Arial", "Arial Bold", "Arial Italic", "Arial Bold Italic"),
)
_MONOSPACED = (
    "NotoSansMono-Regular",
    "LiberationMono-Regular",
    "DejaVuSansMono",
    "FreeMono",
    "Courier New",
)
# Parts of names of fonts that have many characters.
_LARGE = ("cjk", "fallback", "wqy", "sourcehan", "unifont", "arial unicode", "dejavusans", "noto")
_MAX_FILES = 400
_MAX_FALLBACKS = 4


@dataclass(frozen=True, slots=True)
class Fonts:
    """What a text is set in."""

    styles: tuple[Path, Path, Path, Path]
    """Regular, bold, italic, both; one file may stand for all."""
    monospaced: Path
    fallbacks: tuple[Path, ...]
    """For characters that those before do not have."""
    missing: frozenset[str]
    """Characters that no font of the machine has."""


def fonts_for(text: str) -> Fonts | None:
    """Fonts for a text; None = the machine has none at all."""
    files = {path.stem: path for path in reversed(list(_font_files()))}
    if not files:
        return None
    styles = next(
        (tuple(files.get(name, files[f[0]]) for name in f) for f in _FAMILIES if f[0] in files),
        None,
    )
    others = _by_size(list(files.values()))
    if styles is None:
        first = next((path for path in others if _characters(path)), None)
        if first is None:
            return None
        styles = (first,) * 4
    regular, bold, italic, both = styles
    monospaced = next((files[name] for name in _MONOSPACED if name in files), regular)
    wanted = {c for c in text if c.isprintable() and not c.isspace()}
    # Each style has to have them: what one lacks is taken from a fallback.
    missing = frozenset(wanted - _characters(regular))
    fallbacks: list[Path] = []
    found = {path: _characters(path) & missing for path in others} if missing else {}
    while missing and len(fallbacks) < _MAX_FALLBACKS:
        best = max(found, key=lambda path: len(found[path] & missing), default=None)
        if best is None or not found[best] & missing:
            break
        fallbacks.append(best)
        missing -= found[best]
    return Fonts((regular, bold, italic, both), monospaced, tuple(fallbacks), missing)


def _font_files() -> Iterator[Path]:
    own = os.environ.get("DEVALL_REPORT_FONTS", "")
    for text in (*own.split(os.pathsep), *_FOLDERS):
        place = Path(text).expanduser()
        if text and place.is_file():
            yield place
        elif text and place.is_dir():
            yield from sorted(p for p in place.rglob("*") if p.suffix.lower() in _SUFFIXES)


def _by_size(files: Sequence[Path]) -> list[Path]:
    """Those first that promise many characters; only so many that a look at each is quick."""

    def promise(path: Path) -> tuple[int, str]:
        name = path.name.lower()
        hints = [number for number, part in enumerate(_LARGE) if part in name]
        return (hints[0] if hints else len(_LARGE), name)

    return sorted(files, key=promise)[:_MAX_FILES]


def _characters(path: Path) -> set[str]:
    """The characters of a font; none if it cannot be read."""
    try:
        with path.open("rb") as file, TTFont(file, fontNumber=0, lazy=True) as font:
            # Fonts of coloured pictures cannot be set.
            if not {"glyf", "CFF ", "CFF2"} & set(font.keys()):
                return set()
            return {chr(code) for code in font.getBestCmap() or ()}
    except (TTLibError, OSError, ValueError, KeyError, AssertionError, struct.error):
        return set()
