"""How a run logs in to the servers that ask for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LoginPage:
    """Where a person logs in to a server."""

    url: str
    code: str = ""
    """To be typed there, on any device; empty: a browser on this machine opens the page."""
    url_with_code: str = ""
    """A page that needs no typing, where there is one."""
    note: str = ""
    """What the person should know beside."""

    def __str__(self) -> str:
        lines = [self.note] if self.note else []
        if self.code:
            lines.append(f"open {self.url} on any device and type the code {self.code}")
            lines += [f"or open {self.url_with_code}"] if self.url_with_code else []
        else:
            lines.append(f"open {self.url}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Logins:
    """By whom, and where what is obtained is kept."""

    show: Callable[[LoginPage], None] | None = None
    """Shows a person the page to log in at; None = a warning does, where there is a terminal."""
    folder: Path | None = None
    """Where tokens are kept; None = in the user's folder for configuration."""
    anew: bool = False
    """Whether tokens that are kept are dropped first."""
    by_code: bool = False
    """Whether a person logs in on another device, with a code; no browser is opened."""
