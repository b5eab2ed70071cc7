"""What a workflow of ChatDev 2.0 says otherwise than ours: what is certain is changed.

ChatDev reads YAML 1.1, and passes over every key that it does not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic import ValidationError

from devall.config.workflow import Workflow
from devall.core.diagnostics import Diagnostic, Position
from devall.core.messages import JsonValue
from devall.loading import keys
from devall.loading.diagnostics import document_path, is_secret_key, value_at
from devall.loading.document import Document, parse_document
from devall.loading.environment import is_secret_name
from devall.loading.places import Path
from devall.loading.rewriting import Rewriting, keys_at
from devall.loading.values import graph_paths, items, member, members
from devall.loading.yaml_1_1 import BOOLS, is_date, is_octal, old_number

FREE = "x-"
_ROUNDS = 6
_EMPTY: tuple[JsonValue, ...] = (None, "", [], {})
_LABELS = frozenset({"description"})
"""Keys that are for people, wherever they stand."""
_MCP = {"server": "mcp_remote", "command": "mcp_local"}


@dataclass(frozen=True, slots=True)
class Imported:
    """A file of ChatDev, as it will be."""

    text: str
    origins: tuple[int, ...]
    """For each line: which one it was, from 1."""
    changes: tuple[Diagnostic, ...] = ()
    """What was changed, and why; placed in the file as it was."""
    doubts: tuple[Diagnostic, ...] = ()
    """What a person has to decide; placed in the file as it was."""
    notes: tuple[Diagnostic, ...] = ()
    """What means something else than in ChatDev and needs no change."""

    def line(self, number: int) -> int:
        """The line of the original that a line of the new text was."""
        return self.origins[number - 1] if 0 < number <= len(self.origins) else number


def import_document(document: Document) -> Imported:
    """A document with all changes made whose meaning is certain."""
    changes: list[Diagnostic] = []
    if not document.is_readable:
        straight = _without_tabs(document)
        if straight is None:
            return Imported(document.text, _numbers(document.text))
        document, found = straight
        changes.append(found)
    now, origins = document, _numbers(document.text)
    rules = _Rules(now)
    for _ in range(_ROUNDS):
        rules = _Rules(now)
        rules.run()
        if not rules.rewriting:
            break
        changed = rules.rewriting.apply()
        after = parse_document(changed.text, document.name)
        if not after.is_readable:
            break
        changes += [_moved(each, origins) for each in rules.changes]
        origins = tuple(origins[number - 1] for number in changed.origins)
        now = after
    return Imported(
        now.text,
        origins,
        tuple(sorted(changes, key=lambda each: each.position)),
        tuple(_moved(each, origins) for each in rules.doubts),
        tuple(_moved(each, origins) for each in rules.notes),
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(range(1, text.count("\n") + 2))


def _moved(found: Diagnostic, origins: Sequence[int]) -> Diagnostic:
    at = found.position
    line = origins[at.line - 1] if 0 < at.line <= len(origins) else at.line
    return replace(found, position=Position(at.file, line, at.column))


def _without_tabs(document: Document) -> tuple[Document, Diagnostic] | None:
    """The document with spaces for the tabs that begin its lines, where all widths agree."""
    if "\t" not in document.text:
        return None
    found: list[Document] = []
    for width in (2, 4, 8):
        text = re.sub(
            r"^[ \t]*\t[ \t]*",
            lambda blank, width=width: blank[0].replace("\t", " " * width),
            document.text,
            flags=re.MULTILINE,
        )
        tried = parse_document(text, document.name)
        if tried.is_readable:
            found.append(tried)
    if not found or any(each.root != found[0].root for each in found):
        return None
    line = 1 + document.text[: document.text.index("\t")].count("\n")
    message = "tabs at the beginnings of lines are spaces now"
    position = Position(document.name, line, 1)
    return found[0], Diagnostic("tabs", message, position, "YAML is indented by spaces")


@dataclass
class _Rules:
    """One look at a document."""

    document: Document
    changes: list[Diagnostic] = field(default_factory=list[Diagnostic])
    doubts: list[Diagnostic] = field(default_factory=list[Diagnostic])
    notes: list[Diagnostic] = field(default_factory=list[Diagnostic])
    rewriting: Rewriting = field(init=False)
    _texts: set[Path] = field(default_factory=set[Path])
    """Where text is wanted and something else stands."""

    def __post_init__(self) -> None:
        self.rewriting = Rewriting(self.document)

    def run(self) -> None:
        """Apply all rules; those of duplicate keys alone, since they hide values."""
        if self._twice():
            return
        root = self.document.root
        if not isinstance(root, dict):
            return
        self._wrong()
        self._words(root, ())
        for path in graph_paths(root):
            self._start(path)
            self._dynamic(path)

    def _changed(self, is_done: bool, code: str, message: str, path: Path, why: str) -> bool:
        if is_done:
            place = self.document.place.find(path)
            position = place.key_position(self.document.name)
            self.changes.append(Diagnostic(code, message, position, why, "warning"))
        return is_done

    def _doubt(self, code: str, message: str, path: Path, hint: str) -> None:
        position = self.document.place.find(path).key_position(self.document.name)
        self.doubts.append(Diagnostic(code, message, position, hint))

    def _twice(self) -> bool:
        """Keys that stand twice, where both say the same."""
        twice = [each for each in self.document.problems if each.code == "duplicate-key"]
        if not twice:
            return False
        by_key = {(p[-1], at.key_line): p for p, at in keys_at(self.document.place)}
        for problem in twice:
            found = re.search(
                r"`(.*)` stands twice in one mapping, on lines? (\d+)", problem.message
            )
            path = by_key.get((found[1], int(found[2]))) if found is not None else None
            if path is None:
                continue
            second = problem.position
            alone = Rewriting(self.document)
            alone.rename(path, f"{FREE}{second.line}-")
            other = parse_document(alone.apply().text, self.document.name)
            if value_at(other.root, path) != value_at(self.document.root, path):
                message = f"of the two `{path[-1]}` ChatDev takes the second"
                self.notes.append(Diagnostic("duplicate-key", message, second, "", "warning"))
                continue
            is_done = self.rewriting.rename_at(second.line, second.column, f"{FREE}{second.line}-")
            if is_done:
                message = (
                    f"`{path[-1]}` stands twice and says the same twice: the second is put aside"
                )
                why = "a mapping has each key once"
                self.changes.append(Diagnostic("duplicate-key", message, second, why, "warning"))
        return bool(self.rewriting)

    def _wrong(self) -> None:
        """What the format refuses and means one thing only."""
        try:
            Workflow.model_validate(self.document.root)
        except ValidationError as error:
            for each in error.errors(include_url=False, include_context=True, include_input=True):
                found = cast("dict[str, Any]", each)
                path = document_path(found["loc"], self.document.root)
                self._mistake(found["type"], found["loc"], path)

    def _mistake(self, kind: str, loc: tuple[str | int, ...], path: Path) -> None:
        value = value_at(self.document.root, path)
        if kind == "extra_forbidden":
            self._unknown(loc, path, value)
        elif kind == "bool_type" and isinstance(value, str):
            self._yes_or_no(path)
        elif kind in {"int_type", "float_type"} and isinstance(value, str):
            self._number(path)
        elif kind == "string_type" and isinstance(value, bool | int | float):
            self._text(path, value, is_free=keys.is_free(loc))
        elif kind == "tuple_type" and isinstance(value, str):
            done = self.rewriting.replace(path, f"[{json.dumps(value, ensure_ascii=False)}]")
            why = "ChatDev takes one text for a list of one"
            self._changed(done, "wrong-type", f"`{path[-1]}` is a list of one now", path, why)
        elif kind == "union_tag_invalid" and member(value, "type") == "mcp":
            self._mcp(path, value)

    def _unknown(self, loc: tuple[str | int, ...], path: Path, value: JsonValue) -> None:
        """A key that ChatDev passes over: put aside, unless it seems to be meant for another."""
        key = str(path[-1])
        model = keys.model_at(loc)
        around = value_at(self.document.root, path[:-1])
        if model is None:
            return
        near = keys.nearest(key, keys.legal_keys(model))
        is_meant = any(member(around, each) is None for each in near)
        is_misplaced = keys.is_legal_near(key, model, loc) and not self._is_said(key, path)
        if value not in _EMPTY and key not in _LABELS and (is_meant or is_misplaced):
            return  # the loader says which key, or which place
        self._changed(
            self.rewriting.rename(path, FREE),
            "unknown-key",
            f"`{key}` is `{FREE}{key}` now",
            path,
            f"ChatDev passes over it in {keys.said(model)}; keys with `{FREE}` are free here",
        )

    def _is_said(self, key: str, path: Path) -> bool:
        """Whether a key also stands near by, where it may mean something."""
        above = (value_at(self.document.root, path[:end]) for end in range(len(path) - 2, 0, -1))
        if any(member(each, key) not in _EMPTY for each in above):
            return True
        own = members(value_at(self.document.root, path[:-1]))
        inner = [each for name, each in own.items() if name != key]
        deeper = [below for each in inner for below in members(each).values()]
        return any(member(each, key) not in _EMPTY for each in (*inner, *deeper))

    def _yes_or_no(self, path: Path) -> bool:
        written = self.rewriting.plain(path)
        word = BOOLS.get(written or "")
        if word is None:
            return False
        why = "ChatDev reads YAML 1.1, where it is a boolean; it is text here"
        done = self.rewriting.replace(path, word)
        return self._changed(done, "yaml-1.1", f"`{written}` is `{word}` now", path, why)

    def _number(self, path: Path) -> bool:
        written = self.rewriting.plain(path) or ""
        number = old_number(written)
        if number is None:
            return False
        why = "so ChatDev reads it: YAML 1.1 has octal numbers, sixties and `_` in numbers"
        done = self.rewriting.replace(path, str(number))
        return self._changed(done, "yaml-1.1", f"`{written}` is `{number}` now", path, why)

    def _text(self, path: Path, value: JsonValue, *, is_free: bool) -> None:
        """A number or word where text is wanted: what is written is meant."""
        self._texts.add(path)
        written = self.rewriting.plain(path)
        if written is None or (is_free and written != str(value)):
            return  # ChatDev makes text of what YAML 1.1 reads, which is not what is written
        done = self.rewriting.replace(path, json.dumps(written))
        why = "text is wanted, and without quotes it is none"
        is_secret = any(is_secret_key(str(each)) or is_secret_name(str(each)) for each in path)
        said = "the value" if is_secret else f"`{written}`"
        self._changed(done, "wrong-type", f"{said} is in quotes now", path, why)

    def _mcp(self, path: Path, value: JsonValue) -> None:
        block = member(value, "config") or value
        kinds = [kind for key, kind in _MCP.items() if isinstance(member(block, key), str)]
        if len(kinds) == 1:
            done = self.rewriting.replace((*path, "type"), kinds[0])
            why = "it names a server" if kinds[0] == "mcp_remote" else "it names a command"
            self._changed(done, "unknown-type", f"`mcp` is `{kinds[0]}` now", (*path, "type"), why)

    def _words(self, value: JsonValue, path: Path) -> None:
        """Words and numbers that YAML 1.1 reads otherwise, where the format takes any value."""
        if isinstance(value, dict):
            for key, each in members(value).items():
                if not key.startswith(FREE):
                    self._words(each, (*path, key))
        elif isinstance(value, list):
            for index, each in enumerate(items(value)):
                self._words(each, (*path, index))
        elif isinstance(value, int) and not isinstance(value, bool) and path not in self._texts:
            written = self.rewriting.plain(path) or ""
            if is_octal(written) and int(written) == value:
                self._number(path)
        elif isinstance(value, str) and (written := self.rewriting.plain(path)) is not None:
            self._word(path, written)

    def _word(self, path: Path, written: str) -> None:
        if path[-1] == "condition" and self._yes_or_no(path):
            return
        is_sent = "params" in path[:-1]
        if is_sent and (self._yes_or_no(path) or self._number(path)):
            return
        if path[0] == "vars" and written in BOOLS:
            self._doubt(
                "yaml-1.1",
                f"`{written}` is {BOOLS[written]} to ChatDev and text here",
                path,
                f'write `{BOOLS[written]}`, or `"{written}"` for the word',
            )
        elif is_date(written):
            position = self.document.place.find(path).position(self.document.name)
            message = f"`{written}` is text here; YAML 1.1 has dates"
            self.notes.append(Diagnostic("yaml-1.1", message, position, "", "warning"))

    def _start(self, path: Path) -> None:
        """A graph without a start, where one node alone has nothing before it."""
        graph = value_at(self.document.root, path)
        if member(graph, "start") not in _EMPTY or member(graph, "is_majority_voting") is True:
            return
        targets = [member(edge, "to") for edge in items(member(graph, "edges"))]
        ids = [member(node, "id") for node in items(member(graph, "nodes"))]
        first = [each for each in ids if isinstance(each, str) and each not in targets]
        if len(first) == 1 and "start" not in cast("dict[str, JsonValue]", graph):
            done = self.rewriting.put(path, "start", first[0])
            why = "no edge leads to it, and to every other one does"
            self._changed(done, "missing-key", f"`start` is `{first[0]}` now", path, why)

    def _dynamic(self, path: Path) -> None:
        """A `dynamic` on a node, which belongs on the edge into it."""
        graph = value_at(self.document.root, path)
        edges = items(member(graph, "edges"))
        for index, node in enumerate(items(member(graph, "nodes"))):
            wanted = member(node, "dynamic")
            if wanted in _EMPTY:
                continue
            at = (*path, "nodes", index, "dynamic")
            ways = [
                (number, edge)
                for number, edge in enumerate(edges)
                if member(edge, "to") == member(node, "id")
                and member(edge, "carry_data") is not False
            ]
            if any(member(edge, "dynamic") not in _EMPTY for _, edge in ways):
                why = "edges into the node say how it runs; on a node it means nothing"
                done = self.rewriting.rename(at, FREE)
                self._changed(done, "misplaced-dynamic", "`dynamic` is `x-dynamic` now", at, why)
            elif len(ways) == 1:
                number, edge = ways[0]
                if self.rewriting.put((*path, "edges", number), "dynamic", wanted):
                    done = self.rewriting.rename(at, FREE)
                    said = f"`dynamic` stands on the edge from `{member(edge, 'from')}` now"
                    why = "on a node it means nothing, and this edge alone brings it something"
                    self._changed(done, "misplaced-dynamic", said, at, why)
            else:
                message = f"node {member(node, 'id')}: `dynamic` on a node means nothing"
                hint = "put it on those edges into the node whose messages are to be split"
                self._doubt("misplaced-dynamic", message, at, hint)
