"""Conditions that are expressions over the fields and the text of a message.

What a message does not have is `null`: a field that is missing, all fields where the text is no
JSON. Compared by order, or looked for, `null` gives false; calculated with, it gives `null`;
`len` of it is 0. So of two edges `score >= 8` and `not (score >= 8)` exactly one fires, whatever
the message holds. What cannot be compared for other reasons (text with a number) is an error.
"""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from devall.config.expressions import CONSTANTS, DATA, TEXT, parse_expression
from devall.core.fences import fenced_block
from devall.core.messages import JsonValue

MOST_WORK = 200_000
"""Pieces of work of one evaluation: a part that is evaluated, or some thousand characters."""
_CHARACTERS = 1_000
"""Characters of a text that count as one piece of work."""
_LONGEST = 100_000
"""Characters or items of what `+` puts together."""
_NUMBER = re.compile(r"[+-]?(\d{1,300}(\.\d{0,300})?|\.\d{1,300})(e[+-]?\d{1,3})?", re.IGNORECASE)
_WORDS: Mapping[type[Any], str] = {
    type(None): "null",
    bool: "a truth value",
    str: "text",
    list: "a list",
    dict: "a mapping",
}


class ExpressionFailed(Exception):
    """An expression has no value; the text says why."""


class Expression:
    """An expression, ready to be held against messages one after the other."""

    def __init__(self, when: str) -> None:
        """Take an expression that the configuration has checked.

        Raises:
            ValueError: it is none.
        """
        from simpleeval import (  # pyright: ignore[reportMissingTypeStubs] -- it has none
            EvalWithCompoundTypes,
        )

        tree = parse_expression(when)
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        self._reads_json = bool(names - {TEXT, *CONSTANTS})
        self._tree = ast.fix_missing_locations(_WithoutMissingLists().visit(tree))
        self._left = 0
        walker: Any = EvalWithCompoundTypes(
            operators={
                ast.Add: self._add,
                ast.Not: operator.not_,
                ast.Eq: operator.eq,
                ast.NotEq: operator.ne,
                ast.Is: operator.is_,
                ast.IsNot: operator.is_not,
                ast.In: self._is_in,
                ast.NotIn: self._is_not_in,
                **{kind: _calculated(sign, work) for kind, (sign, work) in _ARITHMETIC.items()},
                **{kind: _signed(sign, work) for kind, (sign, work) in _SIGNS.items()},
                **{kind: _ordered(sign, work) for kind, (sign, work) in _ORDER.items()},
            },
            functions={},
            names={},
        )
        walker.nodes |= {
            ast.Call: self._call,
            ast.Attribute: self._attribute,
            ast.Subscript: self._subscript,
        }
        # It would walk through all data for each part; values of JSON hold nothing to find.
        walker._check_disallowed_items = self._account  # noqa: SLF001 - there is no other way in
        self._walker = walker

    def holds(self, text: str) -> bool:
        """Whether the expression is true of a message.

        Args:
            text: The message's text; its fields are those of the JSON object that it is, or
                that its first fenced block is.

        Raises:
            ExpressionFailed: values do not go together, or it is too much work.
        """
        data = _json_of(text) if self._reads_json else None
        fields = cast("dict[str, JsonValue]", data) if isinstance(data, dict) else {}
        self._walker.names = _Names({**fields, TEXT: text, DATA: data, **CONSTANTS})
        self._left = MOST_WORK
        try:
            return bool(self._walker.eval("", self._tree))
        except (ZeroDivisionError, OverflowError, TypeError, ValueError, RecursionError) as error:
            raise ExpressionFailed(str(error)) from error
        except Exception as error:
            # The walker's own refusals have a common base that it keeps for itself.
            if type(error).__module__ == "simpleeval":
                raise ExpressionFailed(str(error)) from error
            raise

    def _account(self, item: object) -> None:
        """One more part was evaluated."""
        self._work(1 + (len(item) // _CHARACTERS if isinstance(item, str) else 0))

    def _work(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise ExpressionFailed("it is too much work: the message is too long for it")

    def _evaluated(self, node: ast.expr) -> JsonValue:
        return self._walker._eval(node)  # noqa: SLF001 - handlers of nodes call it

    def _attribute(self, node: ast.Attribute) -> JsonValue:
        return _member(self._evaluated(node.value), node.attr)

    def _subscript(self, node: ast.Subscript) -> JsonValue:
        return _member(self._evaluated(node.value), self._evaluated(node.slice))

    def _call(self, node: ast.Call) -> JsonValue:
        arguments = [self._evaluated(each) for each in node.args]
        if isinstance(node.func, ast.Attribute):
            return self._of_text(node.func.attr, self._evaluated(node.func.value), arguments)
        name = cast("ast.Name", node.func).id
        if name == _ITEMS:
            return _items(arguments[0])
        if not arguments:
            raise ExpressionFailed(f"`{name}()` wants a value")
        self._work(sum(map(_length, arguments)) // 10)
        if arguments[0] is None and (len(arguments) == 1 or name not in {"max", "min", "sum"}):
            return 0 if name == "len" else None
        if name in _OF_TEXT:
            return self._of_text(name, arguments[0], arguments[1:])
        return _FUNCTIONS[name](*arguments)

    def _of_text(self, name: str, value: JsonValue, arguments: Sequence[JsonValue]) -> JsonValue:
        """What a method of a text gives."""
        if value is None:
            return None
        if not all(isinstance(each, str) for each in (value, *arguments)):
            wrong = next(each for each in (value, *arguments) if not isinstance(each, str))
            raise ExpressionFailed(f"`{name}` is for text, and there is {_said(wrong)}")
        self._work(len(value) // _CHARACTERS)
        return getattr(cast("str", value), name)(*arguments)

    def _is_in(self, item: JsonValue, where: JsonValue) -> bool:
        if where is None or (item is None and isinstance(where, str)):
            return False
        if isinstance(where, str):
            if not isinstance(item, str):
                raise ExpressionFailed(f"`in` a text looks for text, and there is {_said(item)}")
            self._work(len(where) // _CHARACTERS)
            return item in where
        if isinstance(where, list | dict | tuple):
            self._work(len(cast("list[Any]", where)) // 10)
            return item in cast("list[Any]", where)
        raise ExpressionFailed(f"`in` wants a text, a list or a mapping, and not {_said(where)}")

    def _is_not_in(self, item: JsonValue, where: JsonValue) -> bool:
        return not self._is_in(item, where)

    def _add(self, one: JsonValue, other: JsonValue) -> JsonValue:
        if one is None or other is None:
            return None
        kinds = {_kind(one), _kind(other)}
        if len(kinds) > 1 or not kinds <= {"number", "text", "list"}:
            raise ExpressionFailed(
                f"`+` cannot add {_said(other)} to {_said(one)}{_advice(one, other)}"
            )
        if kinds != {"number"} and len(one) + len(other) > _LONGEST:
            raise ExpressionFailed("`+` makes something too long")
        return one + other


class _Names(dict[str, JsonValue]):
    """The fields of a message; one that is missing is null."""

    def __missing__(self, key: str) -> None:
        return None


_ITEMS = "_items"
"""Goes through a list, or through nothing where it is missing; no expression can write it."""


class _WithoutMissingLists(ast.NodeTransformer):
    """Lets `for item in items` find nothing where `items` is missing."""

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.iter = ast.Call(ast.Name(_ITEMS, ast.Load()), [node.iter], [])
        return node


def _items(value: JsonValue) -> JsonValue:
    if value is None:
        return []
    if isinstance(value, list | tuple | dict):
        return list(cast("list[Any]", value))
    raise ExpressionFailed(f"`for` wants a list, and not {_said(value)}")


def _member(value: JsonValue, key: JsonValue) -> JsonValue:
    """A field of a mapping, an item or a slice of a list or text; what is not there is null."""
    if isinstance(value, dict):
        return cast("dict[Any, Any]", value).get(key) if isinstance(key, str) else None
    if not isinstance(value, list | str):
        return None
    size = _length(cast("JsonValue", value))
    is_there = isinstance(key, slice) or (isinstance(key, int) and -size <= key < size)
    return cast("list[Any]", value)[key] if is_there else None


def _json_of(text: str) -> JsonValue:
    """The JSON that a text is, or that its first fenced block is; null where neither is."""
    fenced = fenced_block(text)
    for each in (text,) if fenced is None else (text, fenced):
        try:
            return json.loads(each)
        except (ValueError, RecursionError):
            continue
    return None


def _kind(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__


def _length(value: JsonValue) -> int:
    """The length of a text or list; 0 = that of anything else."""
    return len(cast("str", value)) if isinstance(value, str | list) else 0


def _said(value: JsonValue) -> str:
    """A value in an error: short."""
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if _kind(value) == "number":
        return f"the number {value!s:.40}"
    kind = cast("type[Any]", type(value))
    return _WORDS.get(kind, kind.__name__)


def _advice(one: JsonValue, other: JsonValue) -> str:
    is_mixed = {_kind(one), _kind(other)} == {"text", "number"}
    return ": `number(...)` makes a number of a text" if is_mixed else ""


def _ordered(sign: str, work: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compare(one: JsonValue, other: JsonValue) -> bool:
        if one is None or other is None:
            return False
        kinds = {_kind(one), _kind(other)}
        if len(kinds) > 1 or not kinds <= {"number", "text", "list"}:
            raise ExpressionFailed(
                f"`{sign}` cannot compare {_said(one)} with {_said(other)}{_advice(one, other)}"
            )
        return work(one, other)

    return compare


def _calculated(sign: str, work: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def calculate(one: JsonValue, other: JsonValue) -> JsonValue:
        if one is None or other is None:
            return None
        if not _kind(one) == _kind(other) == "number":
            raise ExpressionFailed(
                f"`{sign}` wants two numbers, and there are {_said(one)} and {_said(other)}"
                f"{_advice(one, other)}"
            )
        return work(one, other)

    return calculate


def _signed(sign: str, work: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def calculate(one: JsonValue) -> JsonValue:
        if one is None:
            return None
        if _kind(one) != "number":
            raise ExpressionFailed(f"`{sign}` wants a number, and there is {_said(one)}")
        return work(one)

    return calculate


def _divided(one: float, other: float) -> float:
    return one / other


def _divided_whole(one: float, other: float) -> float:
    return one // other


Work = Callable[..., Any]
_ARITHMETIC: Mapping[type[ast.AST], tuple[str, Work]] = {
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", _divided),
    ast.FloorDiv: ("//", _divided_whole),
    ast.Mod: ("%", operator.mod),
}
_SIGNS: Mapping[type[ast.AST], tuple[str, Work]] = {
    ast.USub: ("-", operator.neg),
    ast.UAdd: ("+", operator.pos),
}
_ORDER: Mapping[type[ast.AST], tuple[str, Work]] = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
}
_OF_TEXT = ("lower", "strip", "upper")


def _number(value: JsonValue) -> JsonValue:
    """The number that a value is or that its text is; else null."""
    if isinstance(value, str):
        text = value.strip()
        if not _NUMBER.fullmatch(text):
            return None
        return int(text) if text.lstrip("+-").isdecimal() else float(text)
    return value if _kind(value) == "number" else None


def _numbers(name: str, given: Sequence[JsonValue]) -> list[Any]:
    """The numbers (or texts, for `min` and `max`) of a list or of several values, nulls left out.

    Raises:
        ExpressionFailed: there is something else among them, or both.
    """
    found = list(cast("list[Any]", given[0])) if len(given) == 1 else list(given)
    found = [each for each in found if each is not None]
    kinds = {_kind(each) for each in found}
    if len(kinds) > 1 or not kinds <= ({"number"} if name == "sum" else {"number", "text"}):
        raise ExpressionFailed(f"`{name}` wants numbers, and there are {', '.join(sorted(kinds))}")
    return found


def _rounded(value: JsonValue, digits: JsonValue = None) -> JsonValue:
    if _kind(value) != "number":
        raise ExpressionFailed(f"`round` wants a number, and there is {_said(value)}")
    return round(value, digits)


def _all(values: JsonValue) -> bool:
    return all(_items(values))


def _any(values: JsonValue) -> bool:
    return any(_items(values))


def _most(*given: JsonValue) -> JsonValue:
    return max(_numbers("max", given), default=None)


def _least(*given: JsonValue) -> JsonValue:
    return min(_numbers("min", given), default=None)


def _sum(*given: JsonValue) -> JsonValue:
    return sum(_numbers("sum", given))


_FUNCTIONS: Mapping[str, Callable[..., JsonValue]] = {
    "abs": _signed("abs", abs),
    "all": _all,
    "any": _any,
    "len": len,
    "max": _most,
    "min": _least,
    "number": _number,
    "round": _rounded,
    "sum": _sum,
}
