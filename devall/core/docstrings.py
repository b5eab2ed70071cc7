"""The texts under the fields of classes, which the language itself does not keep."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import cast


def docstrings(module: str) -> dict[str, dict[str, str]]:
    """Class to field to the text under it, as a loaded module's source has them."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {
        node.name: dict(_texts(node.body)) for node in tree.body if isinstance(node, ast.ClassDef)
    }


def _texts(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, text in pairwise(body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str())):
                written = cast("ast.Constant", text.value).value
                yield name, inspect.cleandoc(cast("str", written)).replace("\n", " ")
            case _:
                pass
