"""Imports the files of a folder by their path, without touching `sys.path`.

A file runs as a submodule of a package that is made up for its folder, so that two projects
with files of the same name live side by side in one process. `import sibling` inside such a
file is answered from its own folder by the `__import__` in the module's own builtins, which
works inside a function body as well.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib.util
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType


class FolderModules:
    """The modules of one folder, each imported when it is first asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        digest = hashlib.sha256(str(path).encode()).hexdigest()[:12]
        # The name depends on the place alone: a second catalogue of the same folder replaces
        # the modules in sys.modules instead of adding to them.
        self._package = f"_devall_functions_{digest}"
        self._loaded: dict[str, ModuleType] = {}
        self._lock = threading.RLock()

    def load(self, stem: str) -> ModuleType:
        """The module of a file; imported once.

        Raises:
            Exception: whatever the file raises.
        """
        with self._lock:
            return self._load(stem)

    def _load(self, stem: str) -> ModuleType:
        if stem in self._loaded:
            return self._loaded[stem]
        package = ModuleType(self._package)
        package.__path__ = [str(self._path)]
        package = sys.modules.setdefault(self._package, package)
        full = f"{self._package}.{stem}"
        path = self._path / f"{stem}.py"
        if not path.is_file():
            path = self._path / stem / "__init__.py"
        inside = [str(path.parent)] if path.name == "__init__.py" else None
        spec = importlib.util.spec_from_file_location(full, path, submodule_search_locations=inside)
        if spec is None or spec.loader is None:  # not for a file that ends in .py
            raise ImportError(f"cannot import {path}")
        module = importlib.util.module_from_spec(spec)
        own = dict(vars(builtins))
        own["__import__"] = self._import
        vars(module)["__builtins__"] = own
        # Registered before it runs: siblings may import each other in a circle.
        self._loaded[stem] = module
        sys.modules[full] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            self._loaded.pop(stem, None)
            sys.modules.pop(full, None)
            raise
        setattr(package, stem, module)
        return module

    def _is_sibling(self, name: str) -> bool:
        return (self._path / f"{name}.py").is_file() or (
            self._path / name / "__init__.py"
        ).is_file()

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 -- the names of __import__
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """`__import__` as the files of this folder see it: siblings come from the folder."""
        names = tuple(fromlist or ())
        prefix = f"functions.{self._path.name}"
        inside = name
        if level == 0 and (name == prefix or name.startswith(prefix + ".")):
            inside = name[len(prefix) + 1 :]
        if level > 1 or (level == 0 and name.partition(".")[0] in sys.stdlib_module_names):
            wanted: list[str] = []
        else:
            wanted = [inside.partition(".")[0]] if inside else list(names)
        siblings = [each for each in wanted if self._is_sibling(each)]
        if not siblings:
            return builtins.__import__(name, globals, locals, names, level)
        with self._lock:
            for each in siblings:
                self._load(each)
        package = sys.modules[self._package]
        if not inside:  # from . import sibling
            return package
        found = builtins.__import__(f"{self._package}.{inside}", globals, locals, names, 0)
        if names:
            return found
        if inside == name:  # import sibling.part binds the sibling
            return sys.modules[f"{self._package}.{siblings[0]}"]
        top = ModuleType("functions")
        setattr(top, self._path.name, package)
        return top
