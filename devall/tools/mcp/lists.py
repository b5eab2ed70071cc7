"""Lists of tools that are used again, as `cache_ttl` allows.

What is kept belongs to the process and to no run, since `cache_ttl` holds across runs.
"""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass

from devall.tools.mcp.link import Listing

MOST = 256
"""Lists that are kept at most; the oldest goes first."""


@dataclass(frozen=True, slots=True)
class _Kept:
    listing: Listing
    at: float


_LISTS: dict[Hashable, _Kept] = {}


class KeptList:
    """The place of one server's list."""

    def __init__(self, key: Hashable, seconds: float) -> None:
        """Name a place; it may hold a list of an earlier run.

        Args:
            key: What makes a list the same: the server's address, headers and timeout, or how
                it is started.
            seconds: How long a list is used again; 0 = never.
        """
        self._key = key
        self.seconds = seconds

    def find(self) -> Listing | None:
        """The list, if it may be used again: neither too old for us nor for its server."""
        kept = _LISTS.get(self._key)
        if kept is None:
            return None
        ttl = kept.listing.ttl
        allowed = self.seconds if ttl is None else min(self.seconds, ttl)
        return kept.listing if time.monotonic() - kept.at < allowed else None

    def keep(self, listing: Listing) -> None:
        """Hold a fresh list."""
        _LISTS.pop(self._key, None)
        if self.seconds > 0:
            _LISTS[self._key] = _Kept(listing, time.monotonic())
            while len(_LISTS) > MOST:
                del _LISTS[next(iter(_LISTS))]

    def forget(self) -> None:
        """Drop the list: the server has another one now."""
        _LISTS.pop(self._key, None)
