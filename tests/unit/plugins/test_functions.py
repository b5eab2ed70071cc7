from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from devall.core.errors import SetupError
from devall.plugins.functions import FunctionCatalog


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return root


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    return write(
        tmp_path / "shipped",
        {
            "function_calling/weather.py": """
                from json import dumps
                UNIT = "C"
                def get_city(name): return name
                async def get_weather(city): return city + UNIT
                def _private(): ...
                """,
            "edge/words.py": "def has_word(text): return 'x' in text\n",
            "edge_processor/case.py": "def upper(text): return text.upper()\n",
        },
    )


def test_bare_names_qualified_names_and_all_are_found(shipped: Path) -> None:
    catalog = FunctionCatalog(None, shipped)
    assert catalog.tool("get_city")[0][1]("Rome") == "Rome"
    assert [n for n, _ in catalog.tool("weather:get_weather")] == ["get_weather"]
    assert [n for n, _ in catalog.tool("weather:All")] == ["get_city", "get_weather"]
    assert catalog.edge("has_word")("x") is True
    assert catalog.edge_processor("case:upper")("a") == "A"


def test_names_are_listed_without_importing_anything(tmp_path: Path) -> None:
    root = write(tmp_path, {"edge/boom.py": "def ok(text): ...\nraise RuntimeError\n"})
    catalog = FunctionCatalog(None, root)
    assert catalog.names("edge") == ("ok",)
    assert catalog.check("edge", "ok") is None


def test_an_imported_function_is_no_tool_of_the_file(shipped: Path) -> None:
    catalog = FunctionCatalog(None, shipped)
    with pytest.raises(SetupError, match="dumps"):
        catalog.tool("weather:dumps")
    assert "dumps" not in catalog.names("tool")


def test_an_unknown_name_brings_the_nearest_ones(shipped: Path) -> None:
    catalog = FunctionCatalog(None, shipped)
    trouble = catalog.check("tool", "get_wether")
    assert trouble is not None
    assert "get_wether" in trouble.message
    assert "`get_weather`" in trouble.hint
    module = catalog.check("tool", "wether:All")
    assert module is not None
    assert "`weather:All`" in module.hint
    bare = catalog.check("tool", "weather")
    assert bare is not None
    assert "weather:All" in bare.hint


def test_a_name_defined_twice_needs_its_module(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {"edge/one.py": "def run(text): return 1\n", "edge/two.py": "def run(text): return 2\n"},
    )
    catalog = FunctionCatalog(None, root)
    with pytest.raises(SetupError) as caught:
        catalog.edge("run")
    assert "one.py:1" in str(caught.value)
    assert "two.py:1" in str(caught.value)
    assert "`one:run` or `two:run`" in caught.value.hint
    assert catalog.edge("two:run")("") == 2


def test_a_projects_own_function_shadows_a_shipped_one(tmp_path: Path, shipped: Path) -> None:
    own = write(tmp_path / "own", {"function_calling/sky.py": "def get_city(n): return 'own'\n"})
    catalog = FunctionCatalog(own, shipped)
    assert catalog.tool("get_city")[0][1]("x") == "own"
    assert catalog.tool("weather:get_city")[0][1]("x") == "x"


def test_a_file_that_does_not_import_names_file_and_line(tmp_path: Path) -> None:
    root = write(tmp_path, {"edge/bad.py": "\nimport no_such_thing_at_all\ndef f(t): ...\n"})
    with pytest.raises(SetupError, match=r"bad\.py:2: ModuleNotFoundError") as caught:
        FunctionCatalog(None, root).edge("f")
    assert "no_such_thing_at_all" in str(caught.value)


def test_a_file_that_calls_exit_is_an_error_and_not_the_end(tmp_path: Path) -> None:
    root = write(tmp_path, {"edge/bad.py": "def f(t): ...\nraise SystemExit(3)\n"})
    with pytest.raises(SetupError, match=r"bad\.py:2: SystemExit"):
        FunctionCatalog(None, root).edge("f")


def test_a_file_that_does_not_parse_spoils_only_what_lives_in_it(tmp_path: Path) -> None:
    root = write(tmp_path, {"edge/bad.py": "def f(:\n", "edge/good.py": "def g(t): return 1\n"})
    catalog = FunctionCatalog(None, root)
    assert catalog.edge("g")("") == 1
    assert "bad.py:1" in catalog.warnings("edge")[0]
    trouble = catalog.check("edge", "f")
    assert trouble is not None
    assert "bad.py:1" in trouble.message
    qualified = catalog.check("edge", "bad:f")
    assert qualified is not None
    assert "bad.py:1" in qualified.message


@pytest.mark.parametrize(
    "line",
    [
        "from helper import value",
        "import helper; value = helper.value",
        "import helper as h; value = h.value",
        "from .helper import value",
        "from . import helper; value = helper.value",
        "from functions.function_calling.helper import value",
        "import functions.function_calling.helper as h; value = h.value",
    ],
)
def test_a_file_imports_its_siblings(tmp_path: Path, line: str) -> None:
    root = write(
        tmp_path,
        {
            "function_calling/helper.py": "value = 7\n",
            "function_calling/main.py": f"{line}\ndef get(): return value\n",
            "function_calling/late.py": f"def later():\n    {line}\n    return value\n",
        },
    )
    path, modules = list(sys.path), set(sys.modules)
    catalog = FunctionCatalog(None, root)
    assert catalog.tool("get")[0][1]() == 7
    assert catalog.tool("later")[0][1]() == 7
    assert sys.path == path
    assert all(name.startswith("_devall_functions_") for name in set(sys.modules) - modules)


def test_siblings_of_the_same_name_do_not_meet(tmp_path: Path) -> None:
    found: list[int] = []
    for number in (1, 2):
        root = write(
            tmp_path / str(number),
            {
                "edge/helper.py": f"value = {number}\n",
                "edge/main.py": "def get():\n    import helper\n    return helper.value\n",
            },
        )
        found.append(FunctionCatalog(None, root).edge("get")())
    assert found == [1, 2]


def test_only_the_file_that_is_needed_is_imported(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    root = write(
        tmp_path,
        {
            "edge/other.py": f"open({str(mark)!r}, 'w').close()\ndef other(t): ...\n",
            "edge/good.py": "def g(t): return 1\n",
        },
    )
    FunctionCatalog(None, root).edge("g")
    assert not mark.exists()


def test_an_import_path_reaches_any_installed_function(shipped: Path) -> None:
    catalog = FunctionCatalog(None, shipped)
    name, function = catalog.tool("os.path:basename")[0]
    assert (name, function("/a/b")) == ("basename", "b")
    assert catalog.tool("math:sqrt")[0][1](9) == 3
    with pytest.raises(SetupError, match="no_such"):
        catalog.tool("os.path:no_such")
    trouble = catalog.check("tool", "no_such_package_here.x:y")
    assert trouble is not None
    assert "no_such_package_here" in trouble.message


def test_missing_folders_are_empty(tmp_path: Path) -> None:
    catalog = FunctionCatalog(tmp_path / "nowhere", tmp_path / "neither")
    assert catalog.names("tool") == ()
    with pytest.raises(SetupError, match="unknown condition `x`"):
        catalog.edge("x")


def test_a_dataclass_with_postponed_annotations_loads(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "edge/data.py": """
                from __future__ import annotations
                from dataclasses import dataclass
                @dataclass
                class P:
                    x: int
                def get(text) -> P: return P(1)
                """
        },
    )
    assert FunctionCatalog(None, root).edge("get")("").x == 1


def test_the_tools_of_a_name_are_known_without_an_import(shipped: Path) -> None:
    catalog = FunctionCatalog(None, shipped)
    assert catalog.tool_names("weather:All") == ("get_city", "get_weather")
    assert catalog.tool_names("get_city") == ("get_city",)
    assert catalog.tool_names("os.path:basename") == ()  # known once it is imported
    assert catalog.tool_names("nonsense") == ()


def test_a_package_that_is_not_there_is_found_without_an_import(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {
            "function_calling/one.py": """
                from __future__ import annotations
                import json, os.path
                import beside
                from functions.function_calling import beside as same
                from . import near
                try:
                    import no_such_package_a
                except ImportError:
                    no_such_package_a = None
                from no_such_package_b.inner import thing
                def a(): ...
                """,
            "function_calling/beside.py": "raise AssertionError('imported')\ndef b(): ...",
        },
    )
    catalog = FunctionCatalog(None, root)
    place = f"{root / 'function_calling' / 'one.py'}:11: there is no package `no_such_package_b`"
    for name in ("a", "one:a", "one:All"):
        trouble = catalog.check("tool", name)
        assert trouble is not None
        assert trouble.message == f"tool `{name}` lives in a file that does not import: {place}"
    assert catalog.check("tool", "b") is None
    assert catalog.warnings("tool") == (place,)
