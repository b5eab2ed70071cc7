"""The two tools of agents with skills: one makes a skill active, one reads a skill's files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from devall.core.errors import ToolFailed
from devall.core.messages import JsonValue, TextPart
from devall.loading.skills import FILE, Skill
from devall.tools.base import ToolResult, ToolSpec
from devall.tools.names import nearest
from devall.tools.schemas import SchemaCheck

ACTIVATE = "activate_skill"
READ = "read_skill_file"
LONGEST = 40_000
"""Characters of one result at most."""
_MOST_FILES = 100
_DEEPEST = 4

_NAME = {"type": "string", "description": "Name of the skill."}
ACTIVATE_SPEC = ToolSpec(
    ACTIVATE,
    "Make a skill active: its instructions are given, and its rules on tools hold until another"
    " skill is made active or your work ends.",
    {
        "type": "object",
        "properties": {"name": _NAME},
        "required": ["name"],
        "additionalProperties": False,
    },
    {"source": "devall", "original_name": ACTIVATE, "readOnlyHint": True},
)
READ_SPEC = ToolSpec(
    READ,
    "Read a text file of a skill's folder.",
    {
        "type": "object",
        "properties": {
            "name": _NAME,
            "path": {
                "type": "string",
                "description": "The file, relative to the skill's folder.",
            },
            "offset": {
                "type": "integer",
                "minimum": 0,
                "description": "Characters to leave out before; 0 = from the beginning.",
            },
        },
        "required": ["name", "path"],
        "additionalProperties": False,
    },
    {"source": "devall", "original_name": READ, "readOnlyHint": True},
)
SPECS = ACTIVATE_SPEC, READ_SPEC
_CHECKS = {spec.name: SchemaCheck(spec.parameters) for spec in SPECS}


def activate(
    skills: Mapping[str, Skill], arguments: Mapping[str, JsonValue], tools: Sequence[str]
) -> ToolResult:
    """What a model is told of the skill that is active from now on.

    Args:
        skills: Those of the agent.
        arguments: As the model gives them.
        tools: Names of the agent's tools that may be called while it is active, where it says
            which.

    Raises:
        ToolArguments: the arguments do not fit.
        ToolFailed: there is no such skill.
    """
    _CHECKS[ACTIVATE].check_arguments(arguments)
    skill = _skill(skills, arguments)
    parts = [f"Skill {skill.name} is active. Its instructions:\n\n{_slice(skill.body, 0)}"]
    if files := list(_files(skill)):
        listed = ", ".join(files[:_MOST_FILES])
        more = " and more" if len(files) > _MOST_FILES else ""
        parts.append(f"Files of the skill ({READ} gives them): {listed}{more}")
    if skill.allowed is not None:
        listed = ", ".join(tools) or "none of yours"
        parts.append(f"While it is active these of your tools may be called: {listed}")
    return ToolResult((TextPart("\n\n".join(parts)),))


def read(skills: Mapping[str, Skill], arguments: Mapping[str, JsonValue]) -> ToolResult:
    """A file of a skill, or a part of it.

    Raises:
        ToolArguments: the arguments do not fit.
        ToolFailed: there is no such skill or file, or the path leads out of its folder.
    """
    _CHECKS[READ].check_arguments(arguments)
    text = _skill(skills, arguments).files.read(str(arguments["path"]))
    return ToolResult((TextPart(_slice(text, int(arguments.get("offset", 0)))),))


def _skill(skills: Mapping[str, Skill], arguments: Mapping[str, JsonValue]) -> Skill:
    name = str(arguments["name"])
    found = skills.get(name)
    if found is None:
        near = nearest(name, tuple(skills))
        words = f"did you mean {near[0]}?" if near else f"there are: {', '.join(skills) or 'none'}"
        raise ToolFailed(f"there is no skill {name!r}; {words}")
    return found


def _slice(text: str, offset: int) -> str:
    piece = text[offset : offset + LONGEST]
    end = offset + len(piece)
    if end >= len(text) and not offset:
        return piece
    more = f"; the rest: offset {end}" if end < len(text) else ""
    return f"[characters {offset} to {end} of {len(text)}{more}]\n{piece}"


def _files(skill: Skill) -> Iterator[str]:
    """The files of a skill beside its SKILL.md, hidden ones and links left out."""
    for folder, folders, files in os.walk(skill.folder):
        inside = os.path.relpath(folder, skill.folder)
        depth = 0 if inside == "." else inside.count(os.sep) + 1
        folders[:] = sorted(f for f in folders if not f.startswith(".") and depth < _DEEPEST)
        for name in sorted(files):
            path = name if inside == "." else f"{inside}/{name}"
            if not name.startswith(".") and path != FILE and not (skill.folder / path).is_symlink():
                yield path
