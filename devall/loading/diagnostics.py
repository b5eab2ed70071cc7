"""What pydantic and the variables found, as diagnostics with the exact place."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from devall.core.diagnostics import Diagnostic, Position
from devall.core.messages import JsonValue
from devall.loading import keys
from devall.loading.document import Document
from devall.loading.places import Path, Place
from devall.loading.variables import Mistake
from devall.loading.wording import in_words

_LEGACY_MCP = (
    "`type: mcp` is now `mcp_remote` (a server behind a URL: `server`) or `mcp_local`"
    " (a program that is started here: `command`)"
)
_FALSE_WORDS = {"no": "false", "off": "false", "n": "false", "yes": "true", "on": "true"}
_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dict_attributes_type": "a mapping",
}
_CODES = {
    "missing": "missing-key",
    "extra_forbidden": "unknown-key",
    "literal_error": "unknown-value",
    "union_tag_invalid": "unknown-type",
    "union_tag_not_found": "missing-key",
    "string_too_short": "empty",
    "too_short": "empty",
    "finite_number": "out-of-range",
    "int_parsing_size": "out-of-range",
    **dict.fromkeys(
        ("greater_than", "greater_than_equal", "less_than", "less_than_equal"), "out-of-range"
    ),
    **dict.fromkeys(_WANTED, "wrong-type"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A diagnostic, and the value in the file that it is about."""

    path: Path
    diagnostic: Diagnostic
    is_echo: bool = False
    """Whether another finding says it better: a key is missing since it is misspelt."""


def of_schema(error: ValidationError, document: Document, values: JsonValue) -> list[Finding]:
    """What a file's values break of the format.

    Args:
        error: What pydantic found.
        document: The file.
        values: Its values, variables replaced.
    """
    found = error.errors(include_url=False, include_context=True, include_input=True)
    return [_Explained(cast("dict[str, Any]", each), document, values).finding() for each in found]


def of_variable(path: Path, mistake: Mistake, document: Document) -> Finding:
    """What is wrong with a variable in the text at a path, placed at the variable itself."""
    place = document.place.find(path)
    text = value_at(document.root, path)
    position = place.position(document.name)
    if isinstance(text, str):
        position = _within(document, place, text, mistake.offset)
    message = _subject(document.root, path) + mistake.message
    return Finding(path, Diagnostic(mistake.code, message, position, mistake.hint))


def value_at(root: JsonValue, path: Sequence[str | int]) -> JsonValue:
    """The value at a path; None where there is none."""
    value: Any = root
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def document_path(loc: Sequence[str | int], values: JsonValue) -> Path:
    """Where a location of pydantic's is in the file: without the steps that only name types.

    A step that is not there is left out: the item of a list that was written without one, the
    `config` of a short form. The last step of a missing key is left out as well.
    """
    path: list[str | int] = []
    value: Any = values
    was_tag = False
    for at, step in enumerate(loc):
        is_last = at == len(loc) - 1
        if isinstance(value, dict):
            mapping = cast("dict[str, JsonValue]", value)
            if not is_last and not was_tag and mapping.get("type") == step:
                was_tag = True
                continue
            inner: Any = mapping.get("config")
            if step in mapping:
                path.append(step)
                value = mapping[step]
            elif is_last and isinstance(inner, dict) and step in inner:
                # The settings of a split stand in its `config`, or beside `type`.
                path += ["config", step]
        elif isinstance(value, list) and isinstance(step, int):
            items = cast("list[Any]", value)
            if step < len(items):
                path.append(step)
                value = items[step]
        was_tag = False
    return tuple(path)


class _Explained:
    """One of pydantic's errors, made a diagnostic."""

    def __init__(self, error: dict[str, Any], document: Document, values: JsonValue) -> None:
        self._type: str = error["type"]
        self._loc: tuple[str | int, ...] = error["loc"]
        self._context: dict[str, Any] = error.get("ctx") or {}
        self._text: str = error["msg"]
        self._document = document
        self._path = document_path(self._loc, values)
        self._value = value_at(values, self._path)
        self._raw = value_at(document.root, self._path)
        self._place = document.place.find(self._path)
        self._is_echo = False

    def finding(self) -> Finding:
        message, hint = self._words()
        subject = _subject(self._document.root, self._path)
        code = _CODES.get(self._type, self._type.replace("_", "-"))
        position = self._place.position(self._document.name)
        path = self._path
        if self._type == "extra_forbidden":
            position = self._place.key_position(self._document.name)
        elif self._type == "missing" and path[-1:] != self._loc[-1:]:
            path = (*path, self._loc[-1])
        return Finding(
            path, Diagnostic(code, subject + message, position, hint), is_echo=self._is_echo
        )

    def _words(self) -> tuple[str, str]:
        """The message, and what would be right."""
        kind = self._type
        name = self._name()
        if kind == "missing":
            return self._missing()
        if kind == "extra_forbidden":
            return self._unknown_key()
        if kind in {"literal_error", "union_tag_invalid"}:
            return self._unknown_value(name)
        if kind == "union_tag_not_found":
            given = self._mapping().get("type")
            if given is not None:
                return f"`type` must be text, not {in_words(given)}", ""
            near = keys.nearest("type", self._mapping())
            hint = f"is `{near[0]}` meant for it? " if near else ""
            return f"{name} has no `type`", f"{hint}one of {', '.join(keys.kinds_at(self._loc))}"
        if kind in _WANTED:
            return f"{name} must be {_WANTED[kind]}, not {self._is()}", self._type_hint()
        if kind in {"string_too_short", "too_short"}:
            return f"{name} is empty", ""
        if kind == "finite_number":
            return f"{name} must be a finite number", "leave the key out for no bound"
        if _CODES.get(kind) == "out-of-range":
            bound = float(next(iter(self._context.values()), 0))
            words = {"greater_than": "above", "greater_than_equal": "at least"}
            return f"{name} must be {words.get(kind, 'within')} {bound:g}", ""
        hint = f"known: {self._context['known'] or 'none'}" if "known" in self._context else ""
        return f"{name}: {self._text}", hint

    def _mapping(self) -> dict[str, JsonValue]:
        """The value, if it is a mapping; else an empty one."""
        return cast("dict[str, JsonValue]", self._value) if isinstance(self._value, dict) else {}

    def _name(self) -> str:
        """The key or item in question, in words."""
        names = [step for step in self._path if isinstance(step, str)]
        if not self._path:
            return "the file"
        if isinstance(self._path[-1], int):
            return f"item {self._path[-1] + 1} of `{names[-1]}`" if names else "an item"
        if len(names) > 1 and keys.is_free(self._loc):
            return f"`{names[-2]}.{names[-1]}`"
        return f"`{names[-1]}`"

    def _missing(self) -> tuple[str, str]:
        key = str(self._loc[-1])
        model = keys.model_at(self._loc)
        where = keys.said(model) if model else self._name()
        if self._path and self._path[-1] == key:
            return f"`{key}` is required in {where}, and nothing is given for it", ""
        known = keys.legal_keys(model) if model else ()
        stray = [each for each in self._mapping() if each not in known]
        near = keys.nearest(key, stray)
        self._is_echo = bool(near) and keys.nearest(near[0], known) == [key]
        hint = f"is `{near[0]}` meant for it?" if near else _MISSING_HINTS.get(key, "")
        return f"`{key}` is missing in {where}", hint

    def _unknown_key(self) -> tuple[str, str]:
        key = str(self._loc[-1])
        model = keys.model_at(self._loc)
        if model is None:
            return f"unknown key `{key}`", ""
        legal = keys.legal_keys(model)
        near = keys.nearest(key, legal)
        places = keys.where_else(key, model, self._loc)
        if places:
            hint = f"it belongs in {' or '.join(places)}"
        elif near:
            hint = f"did you mean `{near[0]}`?"
        else:
            hint = f"known here: {', '.join(legal)}; keys that begin with `x-` are free"
        return f"unknown key `{key}` in {keys.said(model)}", hint

    def _unknown_value(self, name: str) -> tuple[str, str]:
        is_type = self._type == "union_tag_invalid"
        known = (
            keys.kinds_at(self._loc)
            if is_type
            else _quoted_words(str(self._context.get("expected")))
        )
        if is_type:
            name = "`type`"
            self._place = self._place.find(("type",))
            value = self._mapping().get("type")
        else:
            value = self._value
        if is_type and value == "mcp" and "mcp_remote" in known:
            return "there is no type `mcp`", _LEGACY_MCP
        if not isinstance(value, str):
            return f"{name} must be one of {', '.join(known)}, not {in_words(value)}", ""
        near = keys.nearest(value, known)
        hint = f"did you mean `{near[0]}`? " if near else ""
        raw = str(value_at(self._raw, ("type",)) if is_type else self._raw)
        short = raw if len(raw) <= 40 else f"{raw[:40]}..."
        return f"{name} cannot be `{short}`", f"{hint}one of {', '.join(known)}"

    def _is(self) -> str:
        """What the value is, in words; where it came from, if it was a variable's."""
        words = in_words(self._value)
        if isinstance(self._value, float) and _WANTED.get(self._type) == "a whole number":
            words = "a fraction" if math.isfinite(self._value) else "an infinite one"
        if self._raw != self._value and isinstance(self._raw, str):
            return f"{words} (from `{self._raw.strip()}`)"
        return words

    def _type_hint(self) -> str:
        """How the file would say what is wanted."""
        value, raw = self._value, self._raw
        wanted = _WANTED[self._type]
        if raw != value and isinstance(raw, str):
            name = re.search(r"\$\{(\w+)", raw)
            if wanted == "text":
                return "quote the variable's value where it is set, or write more text around it"
            known = value_at(self._document.root, ("vars",))
            is_own = name is not None and isinstance(known, dict) and name[1] in known
            if name and isinstance(value, str) and not is_own:
                return (
                    f"a variable of the environment is text: `$({name[1]}: default)`"
                    " reads it as YAML"
                )
            return ""
        if wanted == "text" and isinstance(value, bool | int | float):
            token = self._token()
            return f'write it in quotes: "{token}"' if token else "write it in quotes"
        if wanted == "text" and isinstance(value, dict) and self._token() == "{":
            return "a text that begins with a brace must be quoted"
        if wanted == "text" and isinstance(value, list) and self._token() == "[":
            return "a text that begins with a bracket must be quoted"
        if wanted == "true or false" and isinstance(value, str):
            word = _FALSE_WORDS.get(value.lower())
            return f"`{value}` is text in YAML 1.2: write {word}" if word else ""
        if wanted in {"a number", "a whole number"} and isinstance(value, str):
            is_number = re.fullmatch(r"[-+]?[0-9]+(\.[0-9]+)?", value) is not None
            return "take the quotes away" if is_number else ""
        if wanted == "a list":
            return "write `[...]`, or one `- ` line for each item"
        return ""

    def _token(self) -> str:
        """The value as the file writes it, one word at most; empty where it may be a secret."""
        names = [step for step in self._path if isinstance(step, str)]
        if is_secret_key(names[-1] if names else ""):
            return ""
        line = self._document.line(self._place.line)
        found = re.match(r"[{\[]|[^\s,\]}#]+", line[self._place.column - 1 :])
        return found[0] if found else ""


_MISSING_HINTS = {
    "graph": "a workflow has `version`, `vars` and `graph`",
    "start": "name the node, or the list of nodes, that gets the task",
    "nodes": "a graph has at least one node",
    "id": "every node needs one: edges name it",
    "provider": "openai, gemini, local, or one that a plugin adds",
}


def is_secret_key(key: str) -> bool:
    """Whether what stands at a key must never be shown."""
    return key == "api_key" or key.lower() == "authorization"


def _subject(root: JsonValue, path: Path) -> str:
    """What of a graph a path is in, for the head of a message: "node S/A: ", "edge A -> B: "."""
    ids: list[str] = []
    edge = ""
    for at in range(1, len(path)):
        if not isinstance(path[at], int):
            continue
        item = value_at(root, path[: at + 1])
        mapping = cast("dict[str, JsonValue]", item) if isinstance(item, dict) else {}
        name, source, target = (mapping.get(key) for key in ("id", "from", "to"))
        if path[at - 1] == "nodes" and isinstance(name, str) and name:
            ids.append(name)
        elif path[at - 1] == "edges" and isinstance(source, str):
            edge = (
                f"edge {source} -> {target}" if isinstance(target, str) else f"edge from {source}"
            )
    node = [f"node {'/'.join(ids)}"] if ids else []
    said = [*node, edge] if edge else node
    return f"{', '.join(said)}: " if said else ""


def _quoted_words(text: str) -> list[str]:
    return re.findall(r"'([^']*)'", text)


def _within(document: Document, place: Place, text: str, offset: int) -> Position:
    """Where the variable at an offset of a scalar stands in the file.

    Found by counting: the file writes it as the text does. The scalar's place where it does not
    (an escape between double quotes).
    """
    part = re.match(r"\$[{(]\w*", text[offset:])
    if part is not None and document.text:
        before = text.count(part[0], 0, offset)
        at = place.column - 1
        for number in range(place.line, place.line + 2 * text.count("\n") + 100):
            line = document.line(number)
            while (at := line.find(part[0], at)) >= 0:
                if not before:
                    return Position(document.name, number, at + 1)
                before -= 1
                at += 1
            at = 0
    return place.position(document.name)
