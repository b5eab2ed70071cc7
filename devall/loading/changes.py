"""Values of a workflow that are replaced before it is read, as `--set PATH=VALUE` names them."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from devall.core.errors import UsageError
from devall.core.messages import JsonValue
from devall.loading.document import Document


def with_changes(document: Document, changes: Mapping[str, JsonValue]) -> Document:
    """The document with other values; the text, and where things stand in it, stay.

    A path is `nodes.writer.config.role`: keys of mappings, and of lists the `id`, `name` or
    number of an entry; `graph.` in front may be left out. A key that is not there is added.

    Raises:
        UsageError: a path leads nowhere.
    """
    root = copy.deepcopy(document.root)
    for path, value in changes.items():
        _put(root, path, value)
    return replace(document, root=root)


def _put(root: JsonValue, path: str, value: JsonValue) -> None:
    steps = path.split(".")
    if steps[0] not in {"graph", "vars", "version"}:
        steps = ["graph", *steps]
    here, done = root, list[str]()
    while len(steps) > 1:
        here, used = _step(here, steps, path, done)
        done += steps[:used]
        steps = steps[used:]
    last = steps[0]
    if isinstance(here, dict):
        cast("dict[str, JsonValue]", here)[last] = value
        return
    entries = cast("list[JsonValue]", here)
    entries[_position(entries, last, path, done)] = value


def _step(here: JsonValue, steps: list[str], path: str, done: list[str]) -> tuple[JsonValue, int]:
    """The value one step further, and how many pieces of the path led there: ids may hold dots."""
    if isinstance(here, dict):
        known = cast("dict[str, JsonValue]", here)
        for used in range(len(steps) - 1, 0, -1):
            name = ".".join(steps[:used])
            if name in known and isinstance(known[name], dict | list):
                return known[name], used
        if steps[0] not in known:
            known[steps[0]] = dict[str, JsonValue]()
            return known[steps[0]], 1
    elif isinstance(here, list):
        entries = cast("list[JsonValue]", here)
        for used in range(len(steps) - 1, 0, -1):
            name = ".".join(steps[:used])
            if name in _names(entries):
                return entries[_names(entries).index(name)], used
        return entries[_position(entries, steps[0], path, done)], 1
    raise UsageError(f"--set {path}: {'.'.join(done)} holds no values below it")


def _position(entries: list[JsonValue], name: str, path: str, done: list[str]) -> int:
    names = _names(entries)
    if name in names:
        return names.index(name)
    if name.isdigit() and int(name) < len(entries):
        return int(name)
    known = [each for each in names if each]
    near = difflib.get_close_matches(name, known, 1) or known
    raise UsageError(
        f"--set {path}: {'.'.join(done) or 'the file'} has no entry {name}",
        hint=f"there is {', '.join(near)}"
        if near
        else f"entries go by number, 0 to {len(names) - 1}",
    )


def _names(entries: list[JsonValue]) -> list[str]:
    """What each entry of a list is called: its `id` or `name`, else nothing."""
    found: list[str] = []
    for entry in entries:
        known = cast("dict[str, JsonValue]", entry) if isinstance(entry, dict) else {}
        found.append(str(known.get("id") or known.get("name") or ""))
    return found
