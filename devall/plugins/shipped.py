"""Where the functions and workflows are that ship with the package."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def shipped_functions() -> Path:
    """The folder `functions/` of the project."""
    return _shipped("functions")


def shipped_workflows() -> Path:
    """The folder `yaml_instance/` of the project."""
    return _shipped("yaml_instance")


def _shipped(folder: str) -> Path:
    """A folder that lies beside the package in the checkout and inside it in the wheel."""
    inside = _PACKAGE / "_shipped" / folder
    return inside if inside.is_dir() else _PACKAGE.parent / folder
