"""Skills: folders of instructions with a SKILL.md, found upwards of a workflow, and checked."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from devall.core.diagnostics import Diagnostic, Position
from devall.core.errors import ToolFailed
from devall.core.messages import JsonValue
from devall.loading.document import Document, parse_document
from devall.loading.keys import nearest
from devall.loading.references import shown
from devall.workspace import Workspace

FOLDER = Path(".agents", "skills")
FILE = "SKILL.md"
MAX_BYTES = 1_000_000
"""Of one file of a skill."""
_KEYS = ("name", "description", "allowed-tools", "license", "compatibility", "metadata")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1024
_GLOB = re.compile(r"[^\s,()]+(?:\([^()]*\))?")
_WORDS = "letters a-z, digits, and single hyphens between them"


class SkillFiles(Workspace):
    """The files of one skill: no path leads out of its folder."""

    @property
    def files(self) -> Path:
        """The folder itself."""
        return self.root

    def read(self, path: str) -> str:
        """A text file.

        Raises:
            ToolFailed: the path leads out, or there is no text file of a reasonable size.
        """
        try:
            with self.at(path) as place, place.open() as file:
                data = file.read(MAX_BYTES + 1)
        except ToolFailed as error:
            raise ToolFailed(_of_skill(str(error)), hint=_of_skill(error.hint)) from error
        if len(data) > MAX_BYTES:
            raise ToolFailed(f"{path!r} has more than {MAX_BYTES:,} bytes")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ToolFailed(f"{path!r} is no text in UTF-8") from error


@dataclass(frozen=True, slots=True)
class Skill:
    """A folder of instructions."""

    name: str
    description: str
    folder: Path
    body: str
    """What stands behind the front matter."""
    allowed: tuple[str, ...] | None = None
    """Globs of the tools that may be called while it is active; None = all."""

    @property
    def files(self) -> SkillFiles:
        """What its folder holds."""
        return SkillFiles(self.folder)


@dataclass(frozen=True, slots=True)
class FoundSkills:
    """What was found in a project's folder of skills."""

    folder: Path | None
    """None: there is no such folder."""
    skills: Mapping[str, Skill]
    """By name, in the order of the names."""
    problems: tuple[Diagnostic, ...] = ()
    """What is wrong with others, and doubtful about these."""


def find_skills(workflow: Path) -> FoundSkills:
    """The skills that a workflow can use: those of the nearest `.agents/skills` upwards of it."""
    places = (parent / FOLDER for parent in workflow.resolve().parents)
    folder = next((place for place in places if place.is_dir()), None)
    if folder is None:
        return FoundSkills(None, {})
    skills: dict[str, Skill] = {}
    problems: list[Diagnostic] = []
    for place in sorted(folder.iterdir()):
        if not os.path.lexists(place / FILE):
            continue
        skill, found = _read(place)
        problems += found
        if skill is None:
            continue
        if skill.name in skills:
            text = f"skill {skill.name} is there already, in {shown(skills[skill.name].folder)}"
            problems.append(_problem(Position(shown(place / FILE), 1, 1), text))
        else:
            skills[skill.name] = skill
    return FoundSkills(folder, dict(sorted(skills.items())), tuple(problems))


def globs_of(written: JsonValue) -> tuple[str, ...] | None:
    """The globs of an `allowed-tools`: a list of texts, or one text with blanks or commas between.

    Raises:
        ValueError: it is something else.
    """
    if written is None:
        return None
    texts = cast("list[JsonValue]", written) if isinstance(written, list) else [written]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a text, or a list of texts, is wanted")
    joined = " ".join(cast("list[str]", texts))
    if _GLOB.sub("", joined).replace(",", "").strip():
        raise ValueError("names of tools are wanted, with blanks or commas between")
    return tuple(_GLOB.findall(joined))


def _read(folder: Path) -> tuple[Skill | None, list[Diagnostic]]:
    name = shown(folder / FILE)
    try:
        text = SkillFiles(folder.resolve()).read(FILE)
    except ToolFailed as error:
        return None, [_problem(Position(name), f"the skill cannot be read: {error}")]
    text = text.replace("\r\n", "\n")
    front, closing, body = text.removeprefix("---\n").partition("\n---\n")
    if not closing and front.endswith("\n---"):
        front, closing = front.removesuffix("\n---"), "---"
    if not text.startswith("---\n") or not closing:
        hint = "begin with a line `---`, `name`, `description`, and a line `---`"
        return None, [_problem(Position(name, 1, 1), "there is no front matter", hint)]
    document = parse_document(f"\n{front}\n", name)  # so that its lines are those of the file
    if not document.is_readable or not isinstance(document.root, dict):
        found = list(document.problems) or [
            _problem(Position(name, 2, 1), "the front matter is no mapping")
        ]
        return None, [_as_warning(each) for each in found]
    return _checked(folder, document, cast("dict[str, JsonValue]", document.root), body)


def _checked(
    folder: Path, document: Document, front: dict[str, JsonValue], body: str
) -> tuple[Skill | None, list[Diagnostic]]:
    name, description = front.get("name"), front.get("description")
    broken = [
        _problem(_spot(document, key), f"`{key}` is missing, or is no text")
        for key, value in (("name", name), ("description", description))
        if not isinstance(value, str) or not value.strip()
    ]
    allowed = None
    try:
        allowed = globs_of(front.get("allowed-tools"))
    except ValueError as error:
        broken.append(_problem(_spot(document, "allowed-tools"), f"`allowed-tools`: {error}"))
    doubts = [_as_warning(each) for each in document.problems]
    doubts += _unknown_keys(document, front)
    if broken:
        return None, [*broken, *doubts]
    name, description = str(name).strip(), str(description).strip()
    doubts += _of_name(document, name, folder)
    if len(description) > _LONGEST_DESCRIPTION:
        text = (
            f"`description` has {len(description):,} characters: {_LONGEST_DESCRIPTION:,} at most"
        )
        doubts.append(_problem(_spot(document, "description"), text))
    return Skill(name, description, folder.resolve(), body.strip(), allowed), doubts


def _of_name(document: Document, name: str, folder: Path) -> Iterator[Diagnostic]:
    spot = _spot(document, "name")
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        text = f"`{name[:80]}` should be {_WORDS}: {_LONGEST_NAME} characters at most"
        yield _problem(spot, text)
    elif name != folder.name:
        yield _problem(spot, f"skill {name} is in a folder with another name, {folder.name}")


def _unknown_keys(document: Document, front: dict[str, JsonValue]) -> Iterator[Diagnostic]:
    """Keys that look like known ones, misspelt; others are the user's own."""
    for key in front:
        near = nearest(key.replace("_", "-"), [each for each in _KEYS if each not in front])
        if key not in _KEYS and near:
            yield _problem(
                _spot(document, key), f"unknown key `{key}`", f"did you mean `{near[0]}`?"
            )


def _spot(document: Document, key: str) -> Position:
    """Where a key of the front matter stands; its beginning where it is missing."""
    line = next(
        (
            number
            for number, text in enumerate(document.text.split("\n"), 1)
            if re.match(rf"""["']?{re.escape(key)}["']?\s*:""", text)
        ),
        1,
    )
    return Position(document.name, line, 1)


def _problem(position: Position, message: str, hint: str = "") -> Diagnostic:
    return Diagnostic("skill", message, position, hint, "warning")


def _as_warning(found: Diagnostic) -> Diagnostic:
    return Diagnostic(found.code, found.message, found.position, found.hint, "warning")


def _of_skill(text: str) -> str:
    """What is said of a path in a workspace, said of a skill's folder."""
    return text.replace("workspace", "skill's folder")
