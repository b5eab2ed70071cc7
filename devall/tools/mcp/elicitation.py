"""What servers ask of a human in the midst of a call, and how a human's words become an answer."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from devall.core.messages import NOTHING, JsonValue
from devall.tools.schemas import SchemaCheck

TRIES = 3
"""How often a field is asked for until its words fit."""
DECLINE = "!decline"
CANCEL = "!cancel"
_YES = frozenset({"y", "yes", "true", "ok", "accept", "done", "1"})
_NO = frozenset({"n", "no", "false", "0"})

Ask = Callable[[str], Awaitable[str]]
"""Gives a human's words to a question."""


@dataclass(frozen=True, slots=True)
class Form:
    """Values that the server asks for."""

    message: str
    schema: Mapping[str, JsonValue]
    """JSON Schema of a flat object."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A page that the server asks a human to open; what is typed there it never tells us."""

    message: str
    url: str


Elicitation: TypeAlias = Form | Visit


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server is told."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, JsonValue] = NOTHING
    """The values, where a form was accepted."""


class _EndedError(Exception):
    """The human does not want to go on."""

    def __init__(self, action: Literal["decline", "cancel"]) -> None:
        super().__init__(action)
        self.reply = Reply(action)


async def answered(question: Elicitation, server: str, ask: Ask) -> Reply:
    """The reply to a server, from a human's words.

    Fields are asked for one after the other. No words mean the field's default; a field that
    has none and is not required is left out. `!decline` and `!cancel` end it. A JSON object
    as the first words is the whole form.

    Args:
        question: What the server asks.
        server: What the server is called.
        ask: Asks the human.
    """
    head = f"{server} asks: {question.message}"
    try:
        if isinstance(question, Visit):
            asked = f"{head}\nOpen {question.url}\nand answer `yes` when it is done; `no` declines."
            return Reply("accept" if await _agrees(asked, ask) else "decline")
        if not _fields(question.schema):
            return Reply("accept" if await _agrees(f"{head}\nyes or no?", ask) else "decline")
        return Reply("accept", await _filled(question.schema, head, ask))
    except _EndedError as ended:
        return ended.reply


async def _agrees(text: str, ask: Ask) -> bool:
    return (await _words(text, ask)).casefold() in _YES


async def _words(text: str, ask: Ask) -> str:
    words = (await ask(text)).strip()
    if words.casefold() in {DECLINE, CANCEL}:
        raise _EndedError("decline" if words.casefold() == DECLINE else "cancel")
    return words


def _fields(schema: Mapping[str, JsonValue]) -> dict[str, dict[str, JsonValue]]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    found = cast("Mapping[str, Any]", properties)
    return {
        name: dict(cast("Mapping[str, JsonValue]", field))
        for name, field in found.items()
        if isinstance(field, Mapping)
    }


async def _filled(schema: Mapping[str, JsonValue], head: str, ask: Ask) -> dict[str, JsonValue]:
    required = cast("list[str]", schema.get("required") or [])
    content: dict[str, JsonValue] = {}
    begun = head
    for name, field in _fields(schema).items():
        text = f"{begun}\n{_described(name, field, is_required=name in required)}"
        for left in reversed(range(TRIES)):
            words = await _words(text, ask)
            if begun == head and (whole := _whole(words, schema)) is not None:
                return whole
            value, trouble = _read(words, field, is_required=name in required)
            if not trouble:
                break
            if not left:
                raise _EndedError("cancel")
            text = f"{name}: {trouble}. {_described(name, field, is_required=name in required)}"
        else:
            raise AssertionError
        if value is not None:
            content[name] = value
        begun = ""
    return content


def _whole(words: str, schema: Mapping[str, JsonValue]) -> dict[str, JsonValue] | None:
    """The form, where the words are one; its defaults fill what they leave out."""
    if not words.startswith("{"):
        return None
    try:
        value: Any = json.loads(words)
    except ValueError:
        return None
    defaults = {n: f["default"] for n, f in _fields(schema).items() if "default" in f}
    filled = defaults | cast("dict[str, JsonValue]", value)
    return None if SchemaCheck(schema).misfits(filled) else filled


def _described(name: str, field: Mapping[str, JsonValue], *, is_required: bool) -> str:
    """A field in words: `age (integer, required) How old?`."""
    facts = [str(field.get("type", "text")).replace("string", "text")]
    if options := _options(field):
        shown = [value if value == title else f"{value} ({title})" for value, title in options]
        facts = [("some of " if field.get("type") == "array" else "one of ") + ", ".join(shown)]
    if "default" in field:
        facts.append(f"default {json.dumps(field['default'], ensure_ascii=False)}")
    elif is_required:
        facts.append("required")
    about = " ".join(str(field[key]) for key in ("title", "description") if field.get(key))
    return f"{name} ({', '.join(facts)}) {about}".rstrip()


def _options(field: Mapping[str, JsonValue]) -> list[tuple[str, str]]:
    """The values that a field may have, each with what it is called."""
    if field.get("type") == "array":
        items = field.get("items")
        return _options(cast("Mapping[str, JsonValue]", items)) if isinstance(items, dict) else []
    for key in ("oneOf", "anyOf"):
        branches = field.get(key)
        if isinstance(branches, list):
            known = [
                cast("dict[str, Any]", branch)
                for branch in cast("list[Any]", branches)
                if isinstance(branch, dict) and "const" in branch
            ]
            return [(str(b["const"]), str(b.get("title", b["const"]))) for b in known]
    values = cast("list[Any]", field.get("enum") or [])
    titles = cast("list[Any]", field.get("enumNames") or values)
    return [(str(value), str(title)) for value, title in zip(values, titles, strict=False)]


def _read(
    words: str, field: Mapping[str, JsonValue], *, is_required: bool
) -> tuple[JsonValue, str]:
    """The value that the words stand for (None = none), and what is wrong with them."""
    if not words:
        if "default" in field:
            return field["default"], ""
        return None, "an answer is needed" if is_required else ""
    value = _value(words, field)
    misfits = SchemaCheck(field).misfits(value)
    return value, misfits[0] if misfits else ""


def _value(words: str, field: Mapping[str, JsonValue]) -> JsonValue:
    titles = {title.casefold(): value for value, title in _options(field)}
    match field.get("type"):
        case "boolean":
            folded = words.casefold()
            return folded in _YES if folded in _YES | _NO else words
        case "integer" | "number":
            try:
                return json.loads(words)
            except ValueError:
                return words
        case "array":
            if words.startswith("["):
                return _value_of_json(words)
            parts = [part.strip() for part in words.split(",") if part.strip()]
            return [titles.get(part.casefold(), part) for part in parts]
        case _:
            return titles.get(words.casefold(), words)


def _value_of_json(words: str) -> JsonValue:
    try:
        return json.loads(words)
    except ValueError:
        return words
