"""Tools of common use: the time, and waiting."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field

from devall.tools.context import MORE_TIME, ToolContext


def get_current_time(
    timezone: Annotated[
        str, Field(description="An IANA time zone such as UTC or Europe/Berlin.")
    ] = "UTC",
) -> str:
    """Tell the current date and time, in ISO 8601 with the offset from UTC.

    Raises:
        ValueError: there is no such time zone.
    """
    try:
        zone = ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ValueError(
            f"there is no time zone {timezone!r}; a name such as UTC or Europe/Berlin is meant"
        ) from error
    return datetime.now(zone).isoformat(timespec="seconds")


async def wait(
    seconds: Annotated[float, Field(ge=0, le=3600, description="How long to wait, in seconds.")],
    *,
    _context: ToolContext,
) -> str:
    """Wait for a number of seconds, then go on."""
    allowed = _context.take_time(seconds)
    await asyncio.sleep(allowed)
    if allowed < seconds:
        return f"waited {allowed:g} s and no longer: {MORE_TIME}"
    return f"waited {seconds:g} s"
