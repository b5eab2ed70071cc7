"""Workflow files of ChatDev 2.0: which run as they are, what is changed, what is left to decide."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from devall.core.diagnostics import Diagnostic, Position
from devall.core.errors import ConfigError, UsageError
from devall.core.messages import JsonValue
from devall.graph.checked import load_workflow
from devall.loading.chatdev import Imported, import_document
from devall.loading.diagnostics import value_at
from devall.loading.document import Document, parse_document, read_document
from devall.loading.keys import nearest
from devall.loading.loader import LoadedGraph, Recorded
from devall.loading.places import Path as Steps
from devall.loading.references import Found, find_file, shown
from devall.loading.reports import finished
from devall.loading.rewriting import Rewriting
from devall.loading.values import graph_paths, items, member

SUFFIX = ".devall.yaml"
"""What the changed copy of a file is called beside it."""
Verdict = Literal["as it is", "changed", "left", "unreadable"]


@dataclass(slots=True)
class File:
    """A file of ChatDev."""

    path: Path
    document: Document
    imported: Imported
    left: list[Diagnostic] = field(default_factory=list[Diagnostic])
    """What a person has to decide, placed in the file as it is."""
    needs: list[str] = field(default_factory=list[str])
    """What has to be there when it runs: servers, commands, keys."""
    moves: list[Diagnostic] = field(default_factory=list[Diagnostic])
    """References that the copy has to others."""
    text: str = ""
    """What is written."""
    target: Path | None = None
    """Where it is written; None = nowhere."""
    _parsed: Document | None = None

    @property
    def name(self) -> str:
        """The file as messages name it."""
        return self.document.name

    @property
    def is_changed(self) -> bool:
        """Whether the copy is another text."""
        return bool(self.imported.changes or self.moves)

    @property
    def verdict(self) -> Verdict:
        """Whether it runs."""
        if not self.document.is_readable and not self.is_changed:
            return "unreadable"
        return "left" if self.left else "changed" if self.is_changed else "as it is"

    @property
    def now(self) -> Document:
        """The document as it will be."""
        if self._parsed is None or self._parsed.text != self.text:
            self._parsed = parse_document(self.text, self.name)
        return self._parsed


@dataclass(frozen=True, slots=True)
class Project:
    """The files that are imported together."""

    base: Path
    """The folder that they are in."""
    files: tuple[File, ...]
    others: tuple[Path, ...] = ()
    """YAML files that are no workflows."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What stands around the files."""

    variables: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    env_file: Path | None = None
    functions_dir: Path | None = None
    providers: Collection[str] = ()
    """The known ones."""


def import_project(place: Path, around: Surroundings) -> Project:
    """A file, or all workflow files of a folder, and those that they include; nothing is written.

    Raises:
        UsageError: there is no such file, or the folder holds none.
    """
    files: dict[Path, File] = {}
    others: list[Path] = []
    is_folder = place.is_dir()
    waiting = _yaml_files(place) if is_folder else [place]
    if not waiting:
        raise UsageError(
            f"{place} holds no YAML file", hint="name a folder of workflows, or a file"
        )
    for path in waiting:  # it grows
        real = path.resolve()
        if real in files:
            continue
        document = read_document(path, shown(path))
        if is_folder and document.is_readable and not _is_workflow(document):
            others.append(path)
            continue
        imported = import_document(document)
        files[real] = File(path, document, imported, text=imported.text)
        for _, written in references(files[real].now):
            found = find_file(written, path)
            if isinstance(found, Found):
                waiting.append(found.path)
    if not files:
        raise UsageError(
            f"{place} holds no workflow", hint="a workflow has `version`, `vars`, `graph`"
        )
    _look(files, around)
    base = place if is_folder else place.parent
    return Project(base.resolve(), tuple(files.values()), tuple(others))


def references(document: Document) -> Iterator[tuple[Steps, str]]:
    """The files that a document includes: where each name stands, and the name."""
    for graph in graph_paths(document.root):
        for index, node in enumerate(items(value_at(document.root, (*graph, "nodes")))):
            config = member(node, "config")
            path = member(member(config, "config"), "path")
            if member(config, "type") == "file" and isinstance(path, str) and "$" not in path:
                yield (*graph, "nodes", index, "config", "config", "path"), path


def place_copies(project: Project, *, output: Path | None = None, in_place: bool = False) -> None:
    """Say where each file is written, and let copies include copies.

    Args:
        project: The files.
        output: The folder for all of them; None = those that change go beside the originals.
        in_place: Whether they take the places of the originals.
    """
    while True:
        for file in project.files:
            file.target = _target(file, project.base, output, in_place)
        turned = [_turn(file, project) for file in project.files]
        if not any(turned):
            break
    for file in project.files:
        folder = _functions_above(file.path)
        if output is not None and folder is not None and folder != _functions_above(output / "_"):
            file.needs.append(f"its functions: --functions-dir {shown(folder)}")


def _functions_above(path: Path) -> Path | None:
    """The `functions` folder that a file's project has."""
    folders = (each / "functions" for each in path.resolve().parents)
    return next((folder for folder in folders if folder.is_dir()), None)


def _target(file: File, base: Path, output: Path | None, in_place: bool) -> Path | None:
    if file.verdict == "unreadable":
        return None
    real = file.path.resolve()
    if output is not None:
        is_inside = real.is_relative_to(base)
        return output / (real.relative_to(base) if is_inside else real.name)
    if not file.is_changed:
        return None
    return file.path if in_place else file.path.with_name(f"{file.path.stem}{SUFFIX}")


def _turn(file: File, project: Project) -> bool:
    """Let what the file includes be the copies; whether that changes anything."""
    by_real = {each.path.resolve(): each for each in project.files}
    rewriting = Rewriting(file.now)
    moves: list[Diagnostic] = []
    for steps, written in references(rewriting.document):
        found = find_file(written, file.path)
        included = by_real.get(found.real) if isinstance(found, Found) else None
        if included is None or included is file:
            continue
        here = (file.target or file.path).resolve().parent
        there = (included.target or included.path).resolve()
        if here == file.path.resolve().parent and there == included.path.resolve():
            continue
        name = Path(os.path.relpath(there, here)).as_posix()
        if name != written and rewriting.replace(steps, json.dumps(name, ensure_ascii=False)):
            at = rewriting.document.place.find(steps)
            position = Position(file.name, file.imported.line(at.line), at.column)
            message = f"it includes `{name}` now"
            moves.append(Diagnostic("include", message, position, "that is the copy", "warning"))
    if not moves:
        return False
    file.text = rewriting.apply().text
    file.moves += moves
    return True


def _look(files: Mapping[Path, File], around: Surroundings) -> None:
    """Find out what is left to decide, with all changes made."""
    recorded = Recorded(texts={str(real): file.text for real, file in files.items()})
    included = {
        found.real
        for file in files.values()
        for _, written in references(file.now)
        if isinstance(found := find_file(written, file.path), Found)
    }
    seen: set[Path] = set()
    order = sorted(files, key=lambda real: real in included)  # those first that none includes
    for real in order:
        if real not in seen:
            seen |= _load(files, real, around, recorded)
    for file in files.values():
        file.left += file.imported.doubts
        file.left += _unknown_providers(file, around.providers)
        file.left.sort(key=lambda each: each.position)
        file.needs = list(
            dict.fromkeys([*file.needs, *_servers(file.now), *_interpreters(file.now)])
        )


def _load(
    files: Mapping[Path, File], real: Path, around: Surroundings, recorded: Recorded
) -> set[Path]:
    """Load one file and those within; which ones that were."""
    file = files[real]
    diagnostics: Sequence[Diagnostic]
    try:
        loaded = load_workflow(
            file.path,
            variables=around.variables,
            env_file=around.env_file,
            functions_dir=around.functions_dir,
            recorded=recorded,
        )
    except ConfigError as error:
        diagnostics = error.diagnostics
        covered = {real, *_included(files, real)}
    else:
        diagnostics = loaded.warnings
        covered = {Path(each) for each in loaded.texts}
        for graph in _walk(loaded.root):
            missing = [f"the variable {name}" for _, name, _ in graph.missing_variables]
            files.get(graph.file.resolve(), file).needs += missing
    for each in diagnostics:
        if each.severity == "error":
            owner = files.get(Path(each.position.file).resolve(), file)
            owner.left.append(_original(owner, each))
    return covered


def _original(file: File, found: Diagnostic) -> Diagnostic:
    """A finding about the new text, placed in the file as it is and quoting that."""
    at = found.position
    number = file.imported.line(at.line)
    old, new = file.document.line(number), file.now.line(at.line)
    is_behind = old != new and old.endswith(new[at.column - 1 :])
    column = at.column - (len(new) - len(old) if is_behind else 0)
    moved = replace(found, position=Position(file.name, number, column))
    if old == new and found.quoted:
        return moved  # its line is quoted without the secrets that are known
    return finished([moved], [file.document], ())[0]


def _included(files: Mapping[Path, File], real: Path) -> set[Path]:
    """All files within one, as far as they are known."""
    found: set[Path] = set()
    waiting = [real]
    for each in waiting:  # it grows
        for _, written in references(files[each].now):
            target = find_file(written, files[each].path)
            if isinstance(target, Found) and target.real in files and target.real not in found:
                found.add(target.real)
                waiting.append(target.real)
    return found


def _walk(graph: LoadedGraph) -> Iterator[LoadedGraph]:
    yield graph
    for each in graph.subgraphs.values():
        yield from _walk(each)


def _agents(document: Document) -> Iterator[tuple[Steps, Any]]:
    """The configs of a document's agents, and where they stand."""
    return _configs(document, "agent")


def _configs(document: Document, kind: str) -> Iterator[tuple[Steps, Any]]:
    """The configs of nodes of a kind."""
    for graph in graph_paths(document.root):
        for index, node in enumerate(items(value_at(document.root, (*graph, "nodes")))):
            if member(node, "type") == kind:
                yield (*graph, "nodes", index, "config"), member(node, "config")


def _unknown_providers(file: File, known: Collection[str]) -> Iterator[Diagnostic]:
    document = file.now
    found: list[Diagnostic] = []
    for steps, config in _agents(document):
        provider = member(config, "provider")
        if not isinstance(provider, str) or not provider or "$" in provider or provider in known:
            continue
        near = nearest(provider, known)
        hint = f"did you mean `{near[0]}`? " if near else ""
        at = document.place.find((*steps, "provider"))
        position = Position(file.name, at.line, at.column)
        message = f"there is no provider `{provider}`"
        found.append(
            Diagnostic("unknown-provider", message, position, f"{hint}one of {', '.join(known)}")
        )
    if known:
        yield from (_original(file, each) for each in found)


def _servers(document: Document) -> Iterator[str]:
    """The MCP servers that a document's agents use."""
    for _, config in _agents(document):
        tooling = member(config, "tooling")
        for source in items(tooling) if isinstance(tooling, list) else [tooling]:
            block = member(source, "config") or source
            server, command = member(block, "server"), member(block, "command")
            if member(source, "type") == "mcp_remote" and isinstance(server, str):
                yield f"the MCP server {_without_secrets(server)}"
            elif member(source, "type") == "mcp_local" and isinstance(command, str):
                yield f"the command {_command(command)}"


def _interpreters(document: Document) -> Iterator[str]:
    """What runs the code of a document's python nodes, where that is named."""
    for _, config in _configs(document, "python"):
        interpreter = member(config, "interpreter")
        if isinstance(interpreter, str) and interpreter:
            yield f"the interpreter {_command(interpreter)}"


def _command(written: str) -> str:
    """A command, and whether it is missing."""
    is_missing = "$" not in written and shutil.which(written) is None
    return f"{written}, which is not here" if is_missing else written


def _without_secrets(url: str) -> str:
    """A URL without what may stand before its host or behind its path."""
    parts = urlsplit(url)
    return (
        f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.netloc else url
    )


def _is_workflow(document: Document) -> bool:
    return isinstance(member(document.root, "graph"), dict)


def _yaml_files(folder: Path) -> list[Path]:
    """The YAML files of a folder, at any depth; our own copies, and hidden ones, aside."""
    found: Iterable[Path] = (
        path for pattern in ("*.yaml", "*.yml") for path in folder.rglob(pattern) if path.is_file()
    )
    return sorted(
        path
        for path in found
        if not path.name.endswith(SUFFIX)
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
