"""Two tools that belong together: a city's number, and the weather of that number."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field


def get_city_num(
    city: Annotated[str, Field(description="The city's name, for example Beijing.")],
) -> dict[str, int]:
    """Look up the number of a city, which get_weather asks for."""
    return {"city_num": 3701}


def get_weather(
    city_num: Annotated[int, Field(description="The city's number, as get_city_num gives it.")],
    unit: Annotated[
        Literal["celsius", "fahrenheit"], Field(description="The unit of the temperature.")
    ] = "celsius",
) -> dict[str, int | str]:
    """Tell the weather of a city by the city's number."""
    return {"city_num": city_num, "temperature": 20 if unit == "celsius" else 68, "unit": unit}
