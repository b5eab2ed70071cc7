"""How a run logs in to the servers that ask for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Logins:
    """By whom, and where what is obtained is kept."""

    show: Callable[[str], None] | None = None
    """Shows a person the page to log in at; None = a warning does, where there is a terminal."""
    folder: Path | None = None
    """Where tokens are kept; None = in the user's folder for configuration."""
    anew: bool = False
    """Whether tokens that are kept are dropped first."""
