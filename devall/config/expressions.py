"""The expressions of edges: which part of Python's grammar they may use, and which functions."""

from __future__ import annotations

import ast
import warnings
from typing import Annotated, TypeAlias

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

LONGEST = 2_000
"""Characters of an expression at most."""
DEEPEST = 40
"""Levels of an expression at most."""
TEXT, DATA = "text", "data"
"""The names that are no fields: the message's whole text, and its whole JSON."""
CONSTANTS = {"true": True, "false": False, "null": None}
"""JSON's words, beside those of Python."""
FUNCTIONS = (
    "abs",
    "all",
    "any",
    "len",
    "lower",
    "max",
    "min",
    "number",
    "round",
    "strip",
    "sum",
    "upper",
)
"""What may be called by its name."""
METHODS = ("count", "endswith", "lower", "startswith", "strip", "upper")
"""What may be called on a text: `text.lower()`."""

_LEGAL = (
    ast.Expression,
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.UnaryOp,
    ast.Not,
    ast.USub,
    ast.UAdd,
    ast.BinOp,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.FloorDiv,
    ast.Mod,
    ast.Compare,
    ast.Eq,
    ast.NotEq,
    ast.Lt,
    ast.LtE,
    ast.Gt,
    ast.GtE,
    ast.In,
    ast.NotIn,
    ast.Is,
    ast.IsNot,
    ast.IfExp,
    ast.Call,
    ast.Name,
    ast.Constant,
    ast.Subscript,
    ast.Slice,
    ast.Attribute,
    ast.List,
    ast.Tuple,
    ast.GeneratorExp,
    ast.ListComp,
    ast.comprehension,
    ast.Load,
    ast.Store,
)
_SAID: dict[type[ast.AST], str] = {
    ast.Pow: "a power (`**`)",
    ast.Lambda: "a lambda",
    ast.JoinedStr: "an f-string",
    ast.NamedExpr: "an assignment (`:=`)",
    ast.Dict: "a mapping",
    ast.Set: "a set",
    ast.Starred: "a star",
    ast.Await: "`await`",
    ast.LShift: "`<<`",
    ast.RShift: "`>>`",
    ast.BitOr: "`|` (write `or`)",
    ast.BitAnd: "`&` (write `and`)",
    ast.BitXor: "`^`",
    ast.Invert: "`~` (write `not`)",
}


def parse_expression(text: str) -> ast.expr:
    """The tree of an expression, which holds nothing but what is legal.

    Raises:
        ValueError: it is none; the message says why and, where it can be told, from which
            character on.
    """
    if len(text) > LONGEST:
        raise ValueError(f"it has {len(text):,} characters, {LONGEST:,} are the most")
    if not text.strip():
        raise ValueError("it is empty")
    lead = len(text) - len(text.lstrip())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            # In brackets a line may end anywhere: YAML folds long ones.
            tree = ast.parse(f"({text.strip()}\n)", mode="eval")
    except SyntaxError as error:
        raise ValueError(_syntax(text, error, lead)) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ValueError("it is too deeply nested") from error
    _check(tree, 0)
    return tree.body


def _syntax(text: str, error: SyntaxError, lead: int) -> str:
    if "nested" in error.msg:
        return "it is too deeply nested"
    # The bracket in front counts for one character; columns are counted from 1.
    at = (error.offset or 0) - 1
    if error.lineno != 1 or not 0 < at <= len(text.strip()):
        return "it ends too early, or a bracket is wrong"
    rest = text.strip()[at - 1 :]
    word = error.msg.partition(".")[0]
    if "'=='" in error.msg:
        word = "an assignment stands there: `==` compares"
    return f"{word}, at `{rest[:20]}` (character {at + lead})"


def _check(node: ast.AST, depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError("it is too deeply nested")
    match node:
        case ast.Call():
            _check_call(node)
        case ast.Constant(value=value) if not isinstance(value, str | int | float | bool | None):
            raise ValueError(f"{value!r} is neither text nor number")
        case ast.Name(id=name) | ast.Attribute(attr=name) if name.startswith("_"):
            raise ValueError(f'`{name}` begins with `_`: write `data["{name}"]`')
        case ast.comprehension(is_async=1):
            raise ValueError("`async` is not known")
        case _ if not isinstance(node, _LEGAL):
            said = _SAID.get(type(node)) or f"{type(node).__name__}"
            raise ValueError(f"{said} is not known")
        case _:
            pass
    called = node.func if isinstance(node, ast.Call) else None
    for child in ast.iter_child_nodes(node):
        if child is called:
            if isinstance(child, ast.Attribute):
                _check(child.value, depth + 1)
            continue
        _check(child, depth + 1)


def _check_call(node: ast.Call) -> None:
    if node.keywords:
        raise ValueError("arguments with names are not known")
    match node.func:
        case ast.Name(id=name) if name in FUNCTIONS:
            return
        case ast.Name(id=name):
            raise ValueError(f"there is no function `{name}`; known: {', '.join(FUNCTIONS)}")
        case ast.Attribute(attr=name) if name in METHODS:
            return
        case ast.Attribute(attr=name):
            raise ValueError(f"a text has no function `{name}`; known: {', '.join(METHODS)}")
        case _:
            raise ValueError("only functions can be called")


def _as_expression(text: str) -> str:
    try:
        parse_expression(text)
    except ValueError as error:
        reason = str(error)
        raise PydanticCustomError(
            "bad_expression", "no expression: {reason}", {"reason": reason}
        ) from error
    return text


Expression: TypeAlias = Annotated[str, AfterValidator(_as_expression)]
"""An expression over a message."""
