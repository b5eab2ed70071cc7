"""Logging in on another device, with a code that is typed there (RFC 8628)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import httpx2
from mcp.client.auth.exceptions import OAuthFlowError

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
INTERVAL = 5.0
"""Seconds between two polls where the server does not say."""
SLOWER = 5.0
"""Seconds more for each time that the server asks for it."""
HOLDS = 600.0
"""Seconds that a code holds where the server does not say."""


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """What a person types, and what is exchanged for the token then."""

    device_code: str
    user_code: str
    page: str
    page_with_code: str
    seconds: float
    """How long it holds."""
    interval: float


class ClientUnknownError(Exception):
    """The authorization server does not know the client, or not for this flow."""


async def ask_for_code(
    client: httpx2.AsyncClient, endpoint: str, form: Mapping[str, str], headers: Mapping[str, str]
) -> DeviceCode:
    """A new code.

    Raises:
        ClientUnknownError: the client has to be registered anew.
        OAuthFlowError: there is none.
    """
    response = await client.post(endpoint, data=dict(form), headers=dict(headers))
    told = told_by(response)
    if told.get("error") in {"invalid_client", "unauthorized_client"}:
        raise ClientUnknownError
    try:
        return DeviceCode(
            device_code=str(told["device_code"]),
            user_code=str(told["user_code"]),
            page=str(told["verification_uri"]),
            page_with_code=str(told.get("verification_uri_complete") or ""),
            seconds=_seconds(told.get("expires_in"), HOLDS),
            interval=_seconds(told.get("interval"), INTERVAL),
        )
    except KeyError as error:
        raise OAuthFlowError(f"no code was given: {reason(response)}") from error


async def token_for(
    client: httpx2.AsyncClient, request: httpx2.Request, code: DeviceCode
) -> httpx2.Response:
    """The answer that holds the token, once a person has typed the code.

    Args:
        client: Sends the polls.
        request: One poll.
        code: What was shown.

    Raises:
        OAuthFlowError: it was refused, or not typed in time.
    """
    now = asyncio.get_running_loop().time
    until = now() + code.seconds
    interval = code.interval
    while now() + interval < until:
        await asyncio.sleep(interval)
        try:
            response = await client.send(request)
        except httpx2.TransportError:
            interval *= 2  # as the RFC has it for a server that does not answer
            continue
        if response.is_success:
            return response
        match told_by(response).get("error"):
            case "authorization_pending":
                pass
            case "slow_down":
                interval += SLOWER
            case "access_denied":
                raise OAuthFlowError("it was denied there")
            case "expired_token":
                break
            case _ if response.status_code in {429, 500, 502, 503, 504}:
                interval *= 2
            case _:
                raise OAuthFlowError(reason(response))
    raise OAuthFlowError(f"the code {code.user_code} was not typed within {code.seconds:g} s")


def told_by(response: httpx2.Response) -> dict[str, Any]:
    """What an authorization server says, empty where it is not in the form of OAuth."""
    try:
        told: object = json.loads(response.content)
    except ValueError:
        return {}
    return cast("dict[str, Any]", told) if isinstance(told, dict) else {}


def reason(response: httpx2.Response) -> str:
    """Why an authorization server refuses, in its words: `400 invalid_grant: not any more`."""
    told = told_by(response)
    words = [str(told[key]) for key in ("error", "error_description") if told.get(key)]
    said = ": ".join(words) or " ".join(response.text.split())
    return f"{response.status_code} {said[:200]}".rstrip()


def _seconds(value: object, default: float) -> float:
    return max(float(value), 0.1) if isinstance(value, int | float) and value else default
