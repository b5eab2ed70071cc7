"""Addresses of endpoints: which are on this machine, and what of them may be shown."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(url: str) -> bool:
    """Whether the URL names this machine."""
    return urlsplit(url).hostname in _LOOPBACK


def shown_url(url: str) -> str:
    """The URL without what may be secret in it: user, password, query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def is_http(url: str) -> bool:
    """Whether it is an http(s) URL with a host."""
    parts = urlsplit(url)
    return parts.scheme in {"http", "https"} and bool(parts.hostname)
