"""Names that every provider accepts, made from names that anything may have."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable

MAX_LENGTH = 64
_LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]+")


def is_legal(name: str) -> bool:
    """Whether a model may be offered the name as it is."""
    return _LEGAL.fullmatch(name) is not None


def public_name(full: str) -> str:
    """The name a model is offered: a legal name as it is, else a readable head and a hash.

    The hash is of the full name, so that two names which look alike once they are cut or
    cleaned stay apart, and the same name gives the same result in every process.
    """
    if is_legal(full):
        return full
    digest = hashlib.sha256(full.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    head = _ILLEGAL.sub("_", full).strip("_-") or "tool"
    return f"{head[: MAX_LENGTH - 9].rstrip('_-')}_{digest}"


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The known names that look most like a name, spelling and case aside; at most three."""
    folded: dict[str, str] = {}
    for each in known:
        folded.setdefault(_fold(each), each)
    found = difflib.get_close_matches(_fold(name), folded, n=3, cutoff=0.6)
    return [folded[each] for each in found]


def _fold(name: str) -> str:
    return re.sub(r"[\W_]+", "_", name).casefold()
