"""YAML tokens to plain values and their places: the grammar of YAML 1.2."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, cast

from devall.core.diagnostics import Diagnostic, Position
from devall.core.messages import JsonValue
from devall.loading.places import Place, Spot, unpacked
from devall.loading.wording import explain_syntax, in_words

MAX_DEPTH = 100
"""Deepest nesting."""
MAX_VALUES = 1_000_000
"""Most values of a document, those that aliases repeat counted each time."""

_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: dict[str, JsonValue] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_FIRST = frozenset("+-.~0123456789nNtTfF")

_CORE_TAG = "tag:yaml.org,2002:"
_TAGS: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "null": type(None),
    "map": dict,
    "seq": list,
}
_AFTER_KEY = frozenset({"?", ":", "<block end>"})
_AFTER_FLOW = frozenset({":", ",", "]", "}"})
_AFTER_ENTRY = frozenset({"-", "<block end>"})
_AFTER_DANGLING_ENTRY = frozenset({"-", "?", ":", "<block end>"})


class Tokens(Protocol):
    """A scanner of YAML; tokens are known by their `id`."""

    def peek_token(self) -> Any:
        """The next token, which stays."""
        ...

    def get_token(self) -> Any:
        """The next token, which is taken."""
        ...


class Refusal(Exception):
    """Why a text is not read."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


def plain_value(text: str) -> JsonValue:
    """What a scalar without quotes means in YAML 1.2: no dates, no yes and no, no octal 0."""
    if text and (text[0] not in _FIRST or len(text) > 4000):
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        base = {"o": 8, "x": 16}.get(text[1:2], 10)
        return int(text if base == 10 else text[2:], base)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


@dataclass(slots=True)
class _Anchor:
    """What an anchor stands for; `place` is None until it is complete."""

    value: JsonValue = None
    place: Place | None = None
    size: int = 1


class Tree:
    """Builds the one document of a text, one method a production.

    `problems` holds what is wrong without hindering the rest.
    """

    def __init__(self, tokens: Tokens, name: str) -> None:
        self.problems: list[Diagnostic] = []
        self._name = name
        self._peek = tokens.peek_token
        self._next = tokens.get_token
        self._anchors: dict[str, _Anchor] = {}
        self._depth = 0
        self._size = 0

    def build(self) -> tuple[JsonValue, Place]:
        """The root value, and its place.

        Raises:
            Refusal: the text is no YAML, or none that is read.
        """
        self._next()  # the stream's start
        while self._peek().id == "<directive>":
            self._next()
        if self._peek().id == "<document start>":
            self._next()
        start = self._peek()
        if start.id in {"<document end>", "<document start>", "<stream end>"}:
            root, place = None, _place(start.start_mark)
        else:
            root, place = self._node()
        while self._peek().id == "<document end>":
            self._next()
        end = self._peek()
        if end.id in {"<document start>", "<directive>"}:
            self._refuse(
                "many-documents",
                "a second document begins here",
                end,
                "a workflow file holds one document: make two files of it",
            )
        if end.id != "<stream end>":
            self._unexpected("a document", start, end)
        return root, place

    def _node(
        self, key: tuple[int, int] | None = None, *, may_dangle: bool = False
    ) -> tuple[JsonValue, Place]:
        """A value and its place; `may_dangle`: a sequence as a key's value needs no indent."""
        self._size += 1
        token = self._peek()
        if token.id == "<scalar>":
            self._next()
            value = plain_value(token.value) if token.plain else token.value
            return value, _place(token.start_mark, key)
        if token.id == "<alias>":
            return self._alias(self._next(), key)
        place = _place(token.start_mark, key)
        anchor: _Anchor | None = None
        tag: Any = None
        before = self._size
        while token.id in {"<anchor>", "<tag>"}:
            if (anchor if token.id == "<anchor>" else tag) is not None:
                self._unexpected("a value", token, token)
            if token.id == "<anchor>":
                anchor = self._anchors[token.value] = _Anchor()
            else:
                tag = token
            self._next()
            token = self._peek()
        if tag is None:
            value = self._content(token, place, may_dangle, may_be_empty=anchor is not None)
        else:
            value = self._tagged(tag, token, place, may_dangle)
        if anchor is not None:
            anchor.value, anchor.place, anchor.size = value, place, self._size - before + 1
        return value, place

    def _content(
        self, token: Any, place: Place, may_dangle: bool, *, may_be_empty: bool
    ) -> JsonValue:
        """The value behind a node's tag and anchor."""
        match token.id:
            case "<block mapping start>":
                return self._within(self._block_mapping, place)
            case "<block sequence start>":
                return self._within(self._block_sequence, place)
            case "{":
                return self._within(self._flow_mapping, place)
            case "[":
                return self._within(self._flow_sequence, place)
            case "-" if may_dangle:
                return self._within(self._dangling_sequence, place)
            case "<scalar>":
                self._next()
                return plain_value(token.value) if token.plain else token.value
            case _:
                if not may_be_empty:
                    self._unexpected("a value", token, token)
                return None

    def _tagged(self, tag: Any, token: Any, place: Place, may_dangle: bool) -> JsonValue:
        handle, suffix = tag.value
        full = f"{_CORE_TAG if handle == '!!' else handle or ''}{suffix}"
        kind = full.removeprefix(_CORE_TAG)
        if token.id == "<scalar>" and kind in {"str", "!"}:
            self._next()
            return token.value
        if kind not in _TAGS:
            self._refuse(
                "custom-tag",
                f"the tag {full.replace(_CORE_TAG, '!!')} is not allowed",
                tag,
                "a workflow holds plain values: leave the tag out",
            )
        value = self._content(token, place, may_dangle, may_be_empty=True)
        if token.id == "<scalar>":
            value = plain_value(token.value)
        is_int = isinstance(value, int) and not isinstance(value, bool)
        if kind == "float" and is_int:
            value = float(value)
        if not isinstance(value, _TAGS[kind]) or (kind == "int" and not is_int):
            self._refuse("custom-tag", f"the value does not fit the tag !!{kind}", tag)
        return value

    def _alias(self, token: Any, key: tuple[int, int] | None) -> tuple[JsonValue, Place]:
        name = token.value
        anchor = self._anchors.get(name)
        if anchor is None:
            self._refuse(
                "unknown-anchor",
                f"`*{name}` refers to an anchor, but there is no `&{name}` above",
                token,
                "a text that begins with `*` must be quoted",
            )
        place = anchor.place
        if place is None:
            self._refuse("unknown-anchor", f"`*{name}` stands within what it repeats", token)
        self._size += anchor.size - 1
        if self._size > MAX_VALUES:
            self._refuse(
                "too-large", f"the aliases make more than {MAX_VALUES:,} values of this file", token
            )
        return anchor.value, Place(place.line, place.column, place.children, key)

    def _within(self, production: Callable[[Place], JsonValue], place: Place) -> JsonValue:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse("too-large", f"nested more than {MAX_DEPTH} levels deep", self._peek())
        if self._size > MAX_VALUES:
            self._refuse("too-large", f"more than {MAX_VALUES:,} values", self._peek())
        value = production(place)
        self._depth -= 1
        return value

    def _block_sequence(self, place: Place) -> JsonValue:
        start = self._next()
        items = self._entries(place, _AFTER_ENTRY)
        end = self._next()
        if end.id != "<block end>":
            self._unexpected("a block collection", start, end)
        return items

    def _dangling_sequence(self, place: Place) -> JsonValue:
        return self._entries(place, _AFTER_DANGLING_ENTRY)

    def _entries(self, place: Place, empty_before: frozenset[str]) -> list[JsonValue]:
        items: list[JsonValue] = []
        places: list[Place | Spot] = []
        place.children = places
        while self._peek().id == "-":
            entry = self._next()
            if self._peek().id in empty_before:
                item, inner = None, _place(entry.start_mark)
            else:
                item, inner = self._node()
            items.append(item)
            places.append(inner.packed)
        return items

    def _block_mapping(self, place: Place) -> JsonValue:
        start = self._next()
        pairs = _Pairs(self.problems, self._name)
        while True:
            token = self._peek()
            if token.id == "<block end>":
                self._next()
                return pairs.fill(place)
            if token.id not in {"?", ":"}:
                self._unexpected("a block mapping", start, token)
            self._pair(pairs, _AFTER_KEY)

    def _flow_mapping(self, place: Place) -> JsonValue:
        start = self._next()
        pairs = _Pairs(self.problems, self._name)
        self._next_item("}", None)
        while self._peek().id != "}":
            self._pair(pairs, _AFTER_FLOW)
            self._next_item("}", start)
        self._next()
        return pairs.fill(place)

    def _flow_sequence(self, place: Place) -> JsonValue:
        start = self._next()
        items: list[JsonValue] = []
        places: list[Place | Spot] = []
        place.children = places
        while (token := self._peek()).id != "]":
            if token.id == "?":
                inner = _place(token.start_mark)
                pairs = _Pairs(self.problems, self._name)
                self._pair(pairs, _AFTER_FLOW)
                item = pairs.fill(inner)
            else:
                item, inner = self._node()
            items.append(item)
            places.append(inner.packed)
            self._next_item("]", start)
        self._next()
        return items

    def _next_item(self, end: str, start: Any) -> None:
        """Take the comma between two items, or stay before the end."""
        token = self._peek()
        if start is None or token.id == end:
            return
        if token.id != ",":
            context = "a flow mapping" if end == "}" else "a flow sequence"
            self._unexpected(context, start, token)
        self._next()

    def _pair(self, pairs: _Pairs, empty_before: frozenset[str]) -> None:
        """A key and its value, either of which may be absent."""
        token = self._peek()
        if token.id == "?":
            self._next()
        key = self._peek()
        if key.id in empty_before:
            spot = pairs.key(None, token.start_mark)
        elif key.id == "<scalar>":
            self._next()
            text = key.value
            spot = pairs.key(
                plain_value(text) if key.plain else text,
                key.start_mark,
                is_merge=key.plain and text == "<<",
            )
        else:
            spot = pairs.key(self._node()[0], key.start_mark)
        token = self._peek()
        if token.id == ":":
            self._next()
            if self._peek().id not in empty_before:
                pairs.value(*self._node(spot, may_dangle=empty_before is _AFTER_KEY))
                return
        pairs.value(None, _place(token.end_mark, spot))

    def _refuse(self, code: str, message: str, token: Any, hint: str = "") -> NoReturn:
        mark = token.start_mark
        position = Position(self._name, mark.line + 1, mark.column + 1)
        raise Refusal(Diagnostic(code, message, position, hint))

    def _unexpected(self, context: str, start: Any, token: Any) -> NoReturn:
        at, since = token.start_mark, start.start_mark
        raise Refusal(
            explain_syntax(
                self._name,
                f"unexpected {token.id}",
                context,
                (at.line + 1, at.column + 1),
                (since.line + 1, since.column + 1),
            )
        )


class _Pairs:
    """A mapping as it is read."""

    def __init__(self, problems: list[Diagnostic], name: str) -> None:
        self._problems = problems
        self._name = name
        self._values: dict[str, JsonValue] = {}
        self._places: dict[str, Place | Spot] = {}
        self._merged: list[tuple[JsonValue, Place]] = []
        self._key: str | None = None
        self._is_merge = False

    def key(self, key: JsonValue, mark: Any, *, is_merge: bool = False) -> tuple[int, int]:
        """Take a key; its line and column."""
        spot = (mark.line + 1, mark.column + 1)
        self._is_merge = is_merge
        self._key = None
        if not isinstance(key, str):
            hint = (
                "a text that holds braces must be quoted" if isinstance(key, dict) else "quote it"
            )
            self._problem("bad-key", f"a key must be text, not {in_words(key)}", spot, hint)
        elif key in self._places:
            first = unpacked(self._places[key])
            lines = f"lines {first.key_line} and {spot[0]}"
            if first.key_line == spot[0]:
                lines = f"line {spot[0]}"
            message = f"the key `{key}` stands twice in one mapping, on {lines}"
            self._problem("duplicate-key", message, spot, "leave one of them out")
        else:
            self._key = key
        return spot

    def value(self, value: JsonValue, place: Place) -> None:
        """Take the value of the key that was taken last."""
        if self._is_merge:
            self._merged.append((value, place))
        elif self._key is not None:
            self._values[self._key] = value
            self._places[self._key] = place.packed

    def fill(self, place: Place) -> dict[str, JsonValue]:
        """The mapping, its parts placed."""
        for value, inner in self._merged:
            sources: list[tuple[JsonValue, Place]] = [(value, inner)]
            if isinstance(value, list):
                places = map(unpacked, cast("list[Place | Spot]", inner.children))
                sources = list(zip(cast("list[JsonValue]", value), places, strict=True))
            for source, at in sources:
                if not isinstance(source, dict):
                    spot = (at.line, at.column)
                    self._problem(
                        "bad-merge", "`<<` takes a mapping, or a list of mappings", spot, ""
                    )
                    continue
                inside = cast("dict[str, Place | Spot]", at.children)
                for key, each in cast("dict[str, JsonValue]", source).items():
                    if key not in self._values:
                        self._values[key] = each
                        self._places[key] = inside[key]
        place.children = self._places
        return self._values

    def _problem(self, code: str, message: str, spot: tuple[int, int], hint: str) -> None:
        self._problems.append(Diagnostic(code, message, Position(self._name, *spot), hint))


def _place(mark: Any, key: tuple[int, int] | None = None) -> Place:
    return Place(mark.line + 1, mark.column + 1, None, key)
