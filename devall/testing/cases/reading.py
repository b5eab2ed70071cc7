"""Where cases are, and what their files say."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError

from devall.config.base import ConfigModel
from devall.core.diagnostics import Diagnostic, Position
from devall.core.errors import ConfigError, UsageError
from devall.core.messages import JsonValue
from devall.loading.diagnostics import document_path, value_at
from devall.loading.document import Document, read_document
from devall.loading.keys import legal_keys, nearest
from devall.loading.places import Path as Steps
from devall.loading.references import shown
from devall.loading.reports import finished
from devall.loading.wording import in_words
from devall.telemetry.redaction import MASK
from devall.testing.cases.case import CaseFile
from devall.testing.cases.tape import Tape, read_tape

FILE_NAME = "case.yaml"
"""Of a case, in a folder of its own."""
FOLDER = Path("tests/workflows")
"""Where cases are, unless somebody says otherwise."""

MACHINE = "<machine>"
"""Stands for a path that is this machine's own business."""
STAND_IN = re.compile(rf"{re.escape(MASK)}|{MACHINE}|<(run|project|home)>")

_WANTED = {
    "string": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "tuple": "a list",
    "dict": "a mapping",
    "model": "a mapping",
    "model_attributes": "a mapping",
}


@dataclass(frozen=True, slots=True)
class Case:
    """A case that can be run."""

    name: str
    """Its folder, from where it was looked for."""
    file: Path
    config: CaseFile
    document: Document = field(repr=False)
    task: str = ""
    tape: Tape | None = field(default=None, repr=False)
    """What was recorded; None: the case is scripted."""

    @property
    def workflow(self) -> Path:
        """The workflow's file, as messages name it."""
        return Path(shown(self.file.parent / self.config.workflow))

    @property
    def recording(self) -> Path | None:
        """The file of the recording."""
        written = self.config.recording
        return None if written is None else self.file.parent / written

    @property
    def functions_dir(self) -> Path | None:
        """The project's own functions, where the case names them."""
        written = self.config.functions_dir
        return None if written is None else self.file.parent / written

    def environment(self, *, live: bool) -> dict[str, str]:
        """The variables that the case sets; where it is made anew the machine has some of its own.

        Args:
            live: Whether it is: what only stands for a secret or a path gives way then.
        """
        return {
            name: value
            for name, value in self.config.env.items()
            if not (live and name in os.environ and STAND_IN.search(value))
        }

    def place(self, path: Steps) -> Position:
        """Where in the file something stands, or what it would stand in."""
        return self.document.place.find(path).key_position(self.document.name)


def find_cases(paths: Sequence[Path]) -> list[tuple[str, Path]]:
    """The cases below some paths, each with its name, in order.

    Args:
        paths: Folders that are looked through, and files of cases.

    Raises:
        UsageError: a path is not there.
    """
    found: dict[Path, str] = {}
    for path in paths:
        if path.is_dir():
            for file in sorted(_below(path)):
                folder = file.parent.relative_to(path)
                name = folder.as_posix() if folder.parts else file.resolve().parent.name
                found.setdefault(file, name)
        elif path.is_file():
            is_usual = path.name == FILE_NAME
            found.setdefault(path, path.resolve().parent.name if is_usual else path.stem)
        else:
            raise UsageError(
                f"there is no {path}",
                hint=f"name a folder with cases, or a case's {FILE_NAME}; `devall test add RUN NAME`"
                " makes one of a run",
            )
    return [(name, file) for file, name in found.items()]


def read_cases(found: Iterable[tuple[str, Path]]) -> list[Case]:
    """The cases in these files.

    Raises:
        ConfigError: some are wrong; all that was found is in it.
    """
    cases: list[Case] = []
    wrong: list[Diagnostic] = []
    for name, file in found:
        try:
            cases.append(read_case(file, name))
        except ConfigError as error:
            wrong += error.diagnostics
    if wrong:
        raise ConfigError(wrong)
    return cases


def read_case(file: Path, name: str = "") -> Case:
    """The case in a file, or in a folder.

    Args:
        file: The file, or the folder of a `case.yaml`.
        name: What it is called; empty = like its folder.

    Raises:
        UsageError: there is none.
        ConfigError: it is wrong; all that was found is in it.
    """
    if file.is_dir():
        file /= FILE_NAME
    document = read_document(file, shown(file))
    problems = list(document.problems)
    config: CaseFile | None = None
    root: JsonValue = document.root
    if document.is_readable:
        if not isinstance(root, dict):
            place = document.place.position(document.name)
            text = f"a case is a mapping, not {in_words(root)}"
            problems.append(Diagnostic("wrong-type", text, place, "see docs/testing.md"))
        else:
            try:
                config = CaseFile.model_validate(root)
            except ValidationError as error:
                problems += _explained(error, document)
    case = Case(name or file.resolve().parent.name, file, config or _NOTHING, document)
    task, tape = case.config.task or "", None
    if config is not None:
        problems += _missing_files(case)
        if config.task_file and not problems:
            task = _task_in(case, config.task_file, problems)
        if case.recording is not None and case.recording.is_file():
            try:
                tape = read_tape(case.recording, shown(case.recording))
            except ConfigError as error:
                problems += error.diagnostics
    if problems:
        quoted = finished([p for p in problems if not p.quoted], [document], ())
        raise ConfigError([*quoted, *(p for p in problems if p.quoted)])
    return Case(case.name, file, case.config, document, task, tape)


_NOTHING = CaseFile(workflow="-")


def _below(folder: Path) -> Iterator[Path]:
    for here, folders, files in os.walk(folder):
        folders[:] = [n for n in folders if not n.startswith(".") and n != "__pycache__"]
        if FILE_NAME in files:
            yield Path(here) / FILE_NAME


def _task_in(case: Case, written: str, problems: list[Diagnostic]) -> str:
    try:
        return (case.file.parent / written).read_text("utf-8-sig").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no UTF-8 text"
        place = case.place(("task_file",))
        problems.append(Diagnostic("missing-file", f"`{written}` cannot be read: {why}", place))
        return ""


def _missing_files(case: Case) -> Iterator[Diagnostic]:
    """Files that the case names and that are not there."""
    config = case.config
    named: list[tuple[Steps, JsonValue]] = [
        ((key,), getattr(config, key)) for key in ("workflow", "task_file", "recording")
    ]
    if config.expect.answer is not None:
        named.append((("expect", "answer", "json_schema"), config.expect.answer.json_schema))
    for node, expected in config.expect.nodes.items():
        if expected.output is not None:
            path = ("expect", "nodes", node, "output", "json_schema")
            named.append((path, expected.output.json_schema))
    for path, written in named:
        if isinstance(written, str) and not (case.file.parent / written).is_file():
            yield Diagnostic(
                "missing-file",
                f"there is no file `{written}`",
                case.document.place.find(path).position(case.document.name),
                f"looked for {shown(case.file.parent / written)}: paths are relative to the case",
            )


def _explained(error: ValidationError, document: Document) -> Iterator[Diagnostic]:
    """What pydantic found, each at its place."""
    for each in error.errors(include_url=False, include_context=True, include_input=False):
        yield _one(cast("dict[str, Any]", each), document)


def _one(error: Mapping[str, Any], document: Document) -> Diagnostic:
    kind: str = error["type"]
    loc: Steps = error["loc"]
    path = document_path(loc, document.root)
    place = document.place.find(path)
    name = f"`{'.'.join(map(str, path))}`" if path else "the case"
    known = legal_keys(model) if (model := _model_at(loc[:-1])) is not None else ()
    position = place.position(document.name)
    if kind == "extra_forbidden":
        key = str(loc[-1])
        near = nearest(key, known)
        hint = f"did you mean `{near[0]}`?" if near else f"known here: {', '.join(known)}"
        inside = f" in `{'.'.join(map(str, path[:-1]))}`" if path[:-1] else ""
        position = place.key_position(document.name)
        return Diagnostic("unknown-key", f"unknown key `{key}`{inside}", position, hint)
    if kind == "missing":
        return Diagnostic("missing-key", f"`{loc[-1]}` is missing in {name}", position)
    value = value_at(document.root, path)
    base = kind.removesuffix("_type").removesuffix("_from_float")
    if base in _WANTED and base != kind:
        hint = "write it in quotes" if base == "string" and value is not None else ""
        text = f"{name} must be {_WANTED[base]}, not {in_words(value)}"
        return Diagnostic("wrong-type", text, position, hint)
    text = str(error["msg"])
    if kind == "literal_error":
        return Diagnostic("unknown-value", f"{name} cannot be `{value}`", position, text)
    code = kind.replace("_", "-")
    return Diagnostic(code, f"{name}: {text[:1].lower()}{text[1:]}", position)


def _model_at(loc: Steps) -> type[ConfigModel] | None:
    """The model that a location of pydantic's leads to."""
    current: Any = CaseFile
    for step in loc:
        args = get_args(current)
        if isinstance(current, type) and issubclass(current, BaseModel):
            found = current.model_fields.get(str(step))
            current = None if found is None else found.annotation
        elif get_origin(current) is tuple:
            current = args[0]
        elif get_origin(current) is dict:
            current = args[1]
        current = _plain(current)
    is_model = isinstance(current, type) and issubclass(current, ConfigModel)
    return cast("type[ConfigModel]", current) if is_model else None


def _plain(annotation: Any) -> Any:
    """An annotation without `Annotated` and `| None`."""
    while get_origin(annotation) in {Annotated, Union, UnionType}:
        annotation = next(a for a in get_args(annotation) if a is not type(None))
    return annotation
