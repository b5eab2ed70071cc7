"""A mistake or doubt about a file, with its exact place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a file; line and column count from 1, 0 = the file as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: a stable code, what is wrong, where, and what would be right."""

    code: str
    message: str
    position: Position
    hint: str = ""
    severity: Severity = "error"
    quoted: str = ""
    """The line of the file, as it stands; empty where there is none."""

    def __str__(self) -> str:
        text = f"{self.position}: {self.severity} [{self.code}] {self.message}"
        if self.hint:
            text += f" ({self.hint})"
        return text
