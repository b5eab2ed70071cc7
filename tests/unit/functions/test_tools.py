from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from devall.plugins.functions import FunctionCatalog
from devall.plugins.shipped import shipped_functions
from devall.tools.signature import read_signature

if TYPE_CHECKING:
    from tests.unit.functions.conftest import Tools


@pytest.fixture(scope="module")
def catalog() -> FunctionCatalog:
    return FunctionCatalog(None, shipped_functions())


def test_the_weather_module_offers_its_two_tools_in_their_order(catalog: FunctionCatalog):
    assert [name for name, _ in catalog.tool("weather:All")] == ["get_city_num", "get_weather"]


@pytest.mark.parametrize("city", ["Beijing", "Shanghai", ""])
def test_every_city_has_the_same_number(catalog: FunctionCatalog, city: str):
    [(_, get_city_num)] = catalog.tool("get_city_num")
    assert get_city_num(city) == {"city_num": 3701}


def test_the_weather_comes_in_the_unit_that_is_asked_for(catalog: FunctionCatalog):
    [(_, get_weather)] = catalog.tool("get_weather")
    assert get_weather(3701, "fahrenheit") == {
        "city_num": 3701,
        "temperature": 68,
        "unit": "fahrenheit",
    }
    assert get_weather(3701)["unit"] == "celsius"


def test_the_current_time_carries_the_offset_of_its_zone(catalog: FunctionCatalog):
    [(_, get_current_time)] = catalog.tool("get_current_time")
    assert datetime.fromisoformat(get_current_time()).utcoffset() == timedelta(0)
    tokyo = datetime.fromisoformat(get_current_time("Asia/Tokyo"))
    assert tokyo.utcoffset() == timedelta(hours=9)


@pytest.mark.parametrize("zone", ["Europe/Atlantis", "", "../etc/passwd", "/etc/localtime"])
def test_a_zone_that_does_not_exist_is_named(catalog: FunctionCatalog, zone: str):
    [(_, get_current_time)] = catalog.tool("get_current_time")
    with pytest.raises(ValueError, match="there is no time zone"):
        get_current_time(zone)


async def test_wait_says_how_long_it_waited(tools_of: Callable[..., Tools]):
    assert await tools_of("utils").text("wait", seconds=0.01) == "waited 0.01 s"
    told = await tools_of("utils", timeout=0.05).text("wait", seconds=60)
    assert told.startswith("waited 0.05 s and no longer: `timeout`")


MODULES = {
    "code_executor": ["execute_code"],
    "deep_research": [
        "search_save_result",
        "search_load_all",
        "search_load_by_url",
        "search_high_light_key",
        "report_read",
        "report_read_chapter",
        "report_outline",
        "report_create_chapter",
        "report_rewrite_chapter",
        "report_continue_chapter",
        "report_reorder_chapters",
        "report_del_chapter",
        "report_export_pdf",
    ],
    "file": [
        "describe_available_files",
        "list_directory",
        "create_folder",
        "delete_path",
        "load_file",
        "save_file",
        "read_text_file_snippet",
        "read_file_segment",
        "apply_text_edits",
        "rename_path",
        "copy_path",
        "move_path",
        "search_in_files",
    ],
    "user": ["call_user"],
    "utils": ["get_current_time", "wait"],
    "uv_related": ["init_python_env", "install_python_packages", "uv_run"],
    "video": ["render_manim", "concat_videos"],
    "weather": ["get_city_num", "get_weather"],
    "web": ["web_search", "read_webpage_content", "get_webpage_content"],
}


def test_these_modules_and_tools_ship(catalog: FunctionCatalog):
    assert catalog.modules("tool") == tuple(sorted(MODULES))
    found = {module: [name for name, _ in catalog.tool(f"{module}:All")] for module in MODULES}
    assert found == MODULES


def test_every_shipped_tool_is_found_by_its_bare_name(catalog: FunctionCatalog):
    for names in MODULES.values():
        assert [catalog.tool(name)[0][0] for name in names] == names


@pytest.mark.parametrize("module", MODULES)
def test_every_shipped_tool_has_types_and_words_for_its_schema(
    catalog: FunctionCatalog, module: str
):
    for name, tool in catalog.tool(f"{module}:All"):
        signature = read_signature(tool, name)
        assert signature.description.endswith(".")
        properties = signature.parameters["properties"]
        assert "_context" not in properties
        for argument in properties.values():
            assert argument["description"].endswith(".")
            assert argument.keys() & {"type", "anyOf"}
        # What refers to nothing outside of the schema is what every provider takes.
        assert json.loads(json.dumps(signature.parameters)) == signature.parameters


def test_listing_the_tools_imports_none_of_the_libraries_behind_them():
    code = """
import sys
from devall.plugins.functions import FunctionCatalog
from devall.plugins.shipped import shipped_functions
catalog = FunctionCatalog(None, shipped_functions())
for module in catalog.modules("tool"):
    catalog.tool(f"{module}:All")
print(sorted({"ddgs", "trafilatura", "fpdf", "httpx2", "openai", "fastmcp"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
