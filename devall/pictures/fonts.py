"""The fonts that a PNG picture is drawn with: the system's, and Lato where its package is there."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, files

PACKAGE = "font-lato"
_FACES = ("Lato-Regular.ttf", "Lato-Bold.ttf")


def font_files() -> list[str]:
    """Font files beside those of the system."""
    try:
        listed = files(PACKAGE) or []
    except PackageNotFoundError:
        return []
    return sorted(str(each.locate()) for each in listed if each.name in _FACES)


def unusual(texts: Iterable[str]) -> list[str]:
    """The characters that not every font has, each once, in the order in which they come."""
    found = dict.fromkeys(char for text in texts for char in text if ord(char) > 0x17F)
    return [char for char in found if char not in "…–" and char.isprintable()]
