"""Tells, without calling anything, what gives tools from what is one."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Iterable as AbstractIterable
from typing import Any, Self, cast, get_args, get_origin, get_type_hints


def is_shaped(found: object) -> bool:
    """Whether it is a tool's class, or an instance of one: it has `_run` or `_arun`, and a name."""
    runs = callable(getattr(found, "_run", None)) or callable(getattr(found, "_arun", None))
    if not runs:
        return False
    if inspect.isclass(found):
        # A pydantic class has no attribute for a field, only its annotation.
        return any("name" in (vars(c) | inspect.get_annotations(c)) for c in found.__mro__)
    return hasattr(found, "name")


def is_factory(found: object) -> bool:
    """Whether it takes no arguments and gives tools, as its annotation or its code says."""
    if not callable(found) or inspect.isclass(found) or is_shaped(found):
        return False
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return False
    required = (
        p.default is p.empty and p.kind not in {p.VAR_POSITIONAL, p.VAR_KEYWORD}
        for p in signature.parameters.values()
    )
    if any(required):
        return False
    function = inspect.unwrap(found)
    owner = getattr(found, "__self__", None)
    hint = _return_hint(function)
    if hint is Self:
        return is_shaped(owner)
    if hint is not Any and hint is not object:
        return _means_tools(hint)
    return not signature.parameters and _returns_tools(function, {"cls": owner})


def _return_hint(function: Any) -> object:
    """What the function is said to give; Any where nothing is said, or nothing to be understood."""
    try:
        return get_type_hints(function).get("return", Any)
    except (NameError, TypeError, AttributeError):
        return Any


def _means_tools(hint: object) -> bool:
    origin = get_origin(hint) or hint
    if origin is Callable or (inspect.isclass(origin) and is_shaped(origin)):
        return True
    is_many = inspect.isclass(origin) and issubclass(origin, AbstractIterable)
    return is_many and any(_means_tools(each) for each in get_args(hint))


def _returns_tools(function: Any, around: Mapping[str, object]) -> bool:
    """Whether each `return` gives an instance of a tool's class, or a function made within."""
    function = getattr(function, "__func__", function)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return False
    if not isinstance(tree, ast.FunctionDef):
        return False
    local: dict[str, ast.AST] = {}
    returned: list[ast.expr | None] = []
    for node in _own_nodes(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                local[node.name] = node
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                local[name] = value
            case ast.Return():
                returned.append(node.value)
            case _:
                pass
    known = inspect.getclosurevars(function)
    names = {**known.builtins, **known.globals, **known.nonlocals, **around}
    return bool(returned) and all(_is_tool(each, local, names) for each in returned)


def _own_nodes(tree: ast.FunctionDef) -> Iterator[ast.AST]:
    """What stands in the function, and not in one within it."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))


def _is_tool(
    node: ast.AST | None, local: Mapping[str, ast.AST], names: Mapping[str, object]
) -> bool:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            return True
        case ast.List(elts=found) | ast.Tuple(elts=found):
            return bool(found) and all(_is_tool(each, local, names) for each in found)
        case ast.Name(id=name) if name in local:
            rest = {key: value for key, value in local.items() if key != name}
            return _is_tool(local[name], rest, names)
        case ast.Name() | ast.Attribute():
            found = _resolved(node, names)
            return found is not None and not inspect.isclass(found) and is_shaped(found)
        case ast.Call(func=called):
            found = _resolved(called, names)
            return inspect.isclass(found) and is_shaped(cast("object", found))
        case _:
            return False


def _resolved(node: ast.expr, names: Mapping[str, object]) -> object:
    """What a name, or a dotted one, stands for; None = unknown."""
    match node:
        case ast.Name(id=name):
            return names.get(name)
        case ast.Attribute(value=value, attr=attribute):
            return inspect.getattr_static(_resolved(value, names), attribute, None)
        case _:
            return None
