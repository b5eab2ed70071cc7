from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from pydantic import TypeAdapter

from devall.plugins.functions import FunctionCatalog
from devall.plugins.shipped import shipped_functions


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


async def test_wait_says_how_long_it_waited(catalog: FunctionCatalog):
    [(_, wait)] = catalog.tool("wait")
    assert await wait(0.01) == "waited 0.01 s"


@pytest.mark.parametrize("name", ["weather:All", "utils:All"])
def test_every_shipped_tool_has_types_and_words_for_its_schema(catalog: FunctionCatalog, name: str):
    for _, tool in catalog.tool(name):
        schema = TypeAdapter(tool).json_schema()
        assert tool.__doc__
        for argument in schema["properties"].values():
            assert argument["description"]
            assert argument["type"]
