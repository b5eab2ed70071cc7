"""Finds the callables that users put into `functions/`: tools, conditions, processors, thinking.

A file is listed by reading its syntax tree, and imported only when something in it is needed.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from devall.core.errors import SetupError
from devall.plugins.modules import FolderModules

Kind = Literal["tool", "edge", "edge_processor", "thinking"]

FOLDERS: Mapping[Kind, str] = {
    "tool": "function_calling",
    "edge": "edge",
    "edge_processor": "edge_processor",
    "thinking": "thinking",
}
"""Where the functions of a kind live, below `functions/`."""

ALL = "All"
"""`module:All` stands for every public function of a file."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with a name, and what would be right."""

    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class _File:
    """One file of functions, read but not imported."""

    path: Path
    functions: Mapping[str, int]
    """Public functions defined in it, in the file's order, with their lines."""
    broken: str = ""
    """`file:line: reason` where the file does not parse."""
    imports: Mapping[str, int] = field(default_factory=dict[str, int])
    """Packages without which the file does not import, with their lines."""

    @property
    def module(self) -> str:
        return self.path.stem

    def missing(self) -> str:
        """`file:line: reason` where it imports a package that is not there."""
        for top, line in self.imports.items():
            beside = self.path.with_name(top)
            is_near = top == "functions" or beside.is_dir() or beside.with_suffix(".py").is_file()
            if not (is_near or _is_installed(top)):
                return f"{self.path}:{line}: there is no package `{top}`"
        return ""


class FunctionCatalog:
    """The functions of one project, and those that ship with devall."""

    def __init__(self, project: Path | None, shipped: Path) -> None:
        """Make a catalogue; nothing is read until it is asked for a name.

        Args:
            project: The project's own `functions` folder, None = it has none.
            shipped: The `functions` folder that ships with devall.
        """
        roots = [shipped] if project is None else [project, shipped]
        unique = {root.resolve(): None for root in roots}
        self._roots = [_Root(path) for path in unique]

    def edge(self, name: str) -> Callable[..., Any]:
        """The condition of that name.

        Raises:
            SetupError: no such function, more than one, or its file does not import.
        """
        return self._one("edge", name)

    def edge_processor(self, name: str) -> Callable[..., Any]:
        """The processor of that name.

        Raises:
            SetupError: no such function, more than one, or its file does not import.
        """
        return self._one("edge_processor", name)

    def thinking(self, name: str) -> Callable[..., Any]:
        """The kind of thinking of that name.

        Raises:
            SetupError: no such function, more than one, or its file does not import.
        """
        return self._one("thinking", name)

    def tool(self, name: str) -> list[tuple[str, Any]]:
        """The tools that a name of a workflow stands for, each with its own name.

        What an import path leads to is no function, perhaps, but a class, an instance or a list:
        `devall.tools.own` knows what can be made of it.

        Args:
            name: `function`, `module:function`, `module:All`, or an import path
                `package.module:attribute`, with `()` behind it for a factory.

        Raises:
            SetupError: no such function, more than one, or its file does not import.
        """
        found = self._find("tool", name)
        if isinstance(found, Trouble):
            raise SetupError(found.message, hint=found.hint)
        if found is None:
            return [_imported(name)]
        folder, file, names = found
        return [(each, folder.load(file, each)) for each in names]

    def names(self, kind: Kind) -> tuple[str, ...]:
        """Every function of a kind, sorted; nothing is imported for it."""
        return tuple(sorted({name for f in self._files(kind) for name in f.functions}))

    def tool_names(self, name: str) -> tuple[str, ...]:
        """The names of the tools that a name stands for; nothing is imported for it.

        Empty for a name that is wrong, and for an import path: what it leads to has a name of
        its own, perhaps.
        """
        found = self._find("tool", name)
        if isinstance(found, Trouble):
            return ()
        return () if found is None else tuple(found[2])

    def modules(self, kind: Kind) -> tuple[str, ...]:
        """Every module of a kind, sorted; nothing is imported for it."""
        return tuple(sorted({f.module for f in self._files(kind)}))

    def check(self, kind: Kind, name: str) -> Trouble | None:
        """What is wrong with a name, as far as can be told without importing anything."""
        found = self._find(kind, name)
        if isinstance(found, Trouble):
            return found
        if found is None:
            top = name.partition(":")[0].partition(".")[0]
            if not _is_installed(top):
                return Trouble(
                    f"tool `{name}`: there is no package `{top}`",
                    "install it, or put its folder on PYTHONPATH",
                )
            return None
        if missing := found[1].missing():
            return Trouble(
                f"{_noun(kind)} `{name}` lives in a file that does not import: {missing}",
                "install it, or put its folder on PYTHONPATH",
            )
        return None

    def warnings(self, kind: Kind) -> tuple[str, ...]:
        """The files of a kind that certainly do not import, as `file:line: reason`."""
        return tuple(f.broken or f.missing() for f in self._files(kind) if f.broken or f.missing())

    def _files(self, kind: Kind) -> Iterator[_File]:
        for root in self._roots:
            yield from root.folders[kind].files.values()

    def _one(self, kind: Kind, name: str) -> Callable[..., Any]:
        found = self._find(kind, name)
        if isinstance(found, Trouble):
            raise SetupError(found.message, hint=found.hint)
        assert found is not None  # only tools may be import paths
        folder, file, names = found
        return folder.load(file, names[0])

    def _find(self, kind: Kind, name: str) -> tuple[_Folder, _File, Sequence[str]] | Trouble | None:
        """Where a name lives; None = an import path outside `functions/`."""
        module, colon, attribute = name.partition(":")
        if not colon:
            return self._find_bare(kind, name)
        broken = ""
        known = False
        for root in self._roots:
            folder = root.folders[kind]
            file = folder.files.get(module)
            if file is None:
                continue
            known = True
            broken = broken or file.broken
            if attribute == ALL and kind == "tool" and not file.broken:
                if not file.functions:
                    return Trouble(f"{file.path} defines no public function for `{name}`")
                return folder, file, tuple(file.functions)
            if attribute in file.functions:
                return folder, file, (attribute,)
        if broken:
            return Trouble(f"{_noun(kind)} `{name}` cannot be read: {broken}")
        if not known and kind == "tool" and attribute and ("." in module or _is_installed(module)):
            return None
        if known:
            near = [n for f in self._files(kind) if f.module == module for n in f.functions]
            return Trouble(
                f"{module}.py defines no public function `{attribute}`",
                _nearest(attribute, near, prefix=f"{module}:"),
            )
        return Trouble(
            f"unknown {_noun(kind)} `{name}`: there is no {FOLDERS[kind]}/{module}.py",
            _nearest(module, self.modules(kind), suffix=f":{attribute}"),
        )

    def _find_bare(self, kind: Kind, name: str) -> tuple[_Folder, _File, Sequence[str]] | Trouble:
        for root in self._roots:
            folder = root.folders[kind]
            holders = [f for f in folder.files.values() if name in f.functions]
            if len(holders) > 1:
                both = " and ".join(f"{f.path}:{f.functions[name]}" for f in holders)
                ways = " or ".join(f"`{f.module}:{name}`" for f in holders)
                return Trouble(f"{_noun(kind)} `{name}` is defined in {both}", f"write {ways}")
            if holders:
                return folder, holders[0], (name,)
        text = f"unknown {_noun(kind)} `{name}`"
        broken = [f.broken for f in self._files(kind) if f.broken]
        if broken:
            text += f"; what these files define is unknown: {'; '.join(broken)}"
        if kind == "tool" and name in self.modules(kind):
            return Trouble(text, f"`{name}:All` stands for all functions of {name}.py")
        return Trouble(text, _nearest(name, self.names(kind)))


class _Root:
    """One `functions` folder."""

    def __init__(self, path: Path) -> None:
        self.folders: Mapping[Kind, _Folder] = {
            kind: _Folder(path / name) for kind, name in FOLDERS.items()
        }


class _Folder:
    """The files of one kind in one place."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._modules = FolderModules(path)

    @cached_property
    def files(self) -> Mapping[str, _File]:
        """Module name to file, sorted by name; a name that begins with `_` is private."""
        if not self._path.is_dir():
            return {}
        paths = sorted(p for p in self._path.glob("*.py") if not p.name.startswith("_"))
        return {p.stem: _read(p) for p in paths if p.is_file()}

    def load(self, file: _File, name: str) -> Callable[..., Any]:
        """The function of a file, which is imported for it.

        Raises:
            SetupError: the file does not import.
        """
        try:
            module = self._modules.load(file.module)
        # A user's file may raise anything while it is imported, and call sys.exit.
        except (Exception, SystemExit) as error:
            where = _where(error, file.path)
            raise SetupError(
                f"{where}: {type(error).__name__} while importing the file"
                f" that `{name}` lives in: {error}",
            ) from error
        found = getattr(module, name, None)
        if not callable(found):
            raise SetupError(f"{file.path}:{file.functions[name]}: `{name}` is no function")
        return found


def _read(path: Path) -> _File:
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except SyntaxError as error:
        return _File(path, {}, f"{path}:{error.lineno or 1}: {error.msg}")
    except (OSError, ValueError) as error:
        return _File(path, {}, f"{path}:1: {error}")
    functions = {d.name: d.lineno for d in _definitions(tree.body)}
    return _File(path, functions, imports=dict(_packages(tree.body)))


def _packages(body: Sequence[ast.stmt]) -> Iterator[tuple[str, int]]:
    """The packages that a module imports whatever happens: not those under `if` and `try`."""
    for statement in body:
        match statement:
            case ast.Import(names=names):
                yield from ((name.name.partition(".")[0], statement.lineno) for name in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0], statement.lineno
            case _:
                pass


def _definitions(body: Sequence[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Public functions of a module, those under `if` and `try` included."""
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if not statement.name.startswith("_"):
                    yield statement
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
                pass
            case ast.If() | ast.For() | ast.While():
                yield from _definitions([*statement.body, *statement.orelse])
            case ast.With():
                yield from _definitions(statement.body)
            case ast.Try():
                handlers = [each for h in statement.handlers for each in h.body]
                yield from _definitions([*statement.body, *handlers, *statement.orelse])
            case _:
                pass


def _imported(name: str) -> tuple[str, Any]:
    """What an import path leads to, with its own name."""
    module, _, attribute = name.removesuffix("()").partition(":")
    try:
        found: Any = importlib.import_module(module)
    # The module is a user's code: it may raise anything while it is imported.
    except (Exception, SystemExit) as error:
        raise SetupError(
            f"tool `{name}`: `{module}` does not import: {type(error).__name__}: {error}",
            hint="install the package, or put its folder on PYTHONPATH",
        ) from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            near = [n for n in dir(found) if not n.startswith("_")]
            raise SetupError(
                f"tool `{name}`: `{module}` has no `{attribute}`",
                hint=_nearest(part, near, prefix=f"{module}:"),
            )
        found = getattr(found, part)
    return attribute.rpartition(".")[2], found


def _is_installed(top: str) -> bool:
    try:
        return top in sys.modules or importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        return False


def _where(error: BaseException, path: Path) -> str:
    """The innermost line of the file that an import went wrong at."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno or 1}"
    lines = [
        frame.lineno or 1
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    return f"{path}:{lines[-1] if lines else 1}"


def _noun(kind: Kind) -> str:
    return {
        "tool": "tool",
        "edge": "condition",
        "edge_processor": "processor",
        "thinking": "kind of thinking",
    }[kind]


def _nearest(name: str, known: Sequence[str], prefix: str = "", suffix: str = "") -> str:
    found = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if found:
        return "did you mean " + " or ".join(f"`{prefix}{each}{suffix}`" for each in found) + "?"
    some = sorted(known)
    if not some:
        return ""
    more = f" and {len(some) - 12} more" if len(some) > 12 else ""
    return "known: " + ", ".join(f"{prefix}{each}" for each in some[:12]) + more
