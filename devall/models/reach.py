"""Trying endpoints without a run: the cheapest call that says whether they would answer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from devall.core.errors import DevallError, ModelRefused
from devall.core.messages import JsonValue, user
from devall.models.base import ChatRequest, ModelChoice
from devall.models.providers import Models, looked_up, place_of
from devall.models.shapes import as_list, as_object, as_text

LONGEST = 20.0
"""Seconds after which an endpoint counts as one that does not answer."""

_WITHOUT_LIST = frozenset({403, 404, 405, 501})
"""Statuses of endpoints that have no list of models, or do not show it to this key."""


@dataclass(frozen=True, slots=True)
class Reached:
    """How an endpoint answered."""

    seconds: float
    by: str = ""
    """`models`: it has listed its models; `token`: the model has written a token."""
    models: tuple[str, ...] = ()
    """Those that it lists; empty: it does not say, or not all."""
    error: DevallError | None = None
    """Why it is of no use."""

    def lists(self, name: str) -> bool | None:
        """Whether it has a model of that name; None: it does not say."""
        if not self.models:
            return None
        return any(
            name == each or each.removesuffix(":latest") == name or each.endswith(f"/{name}")
            for each in self.models
        )


async def reach(choice: ModelChoice, environ: Mapping[str, str]) -> Reached:
    """Ask the endpoint of a choice for its models; else the model for one token.

    Args:
        choice: Of a provider that is not in this process.
        environ: Where keys and URLs are looked up.
    """
    choice = replace(choice, timeout=min(choice.timeout, LONGEST))
    models = Models(environ)
    began = time.monotonic()
    try:
        listed = await _listed(models, choice, environ)
        if listed is not None:
            return Reached(time.monotonic() - began, "models", listed)
        began = time.monotonic()
        request = ChatRequest((user("Say yes."),), params={"max_tokens": 1})
        await models.model(choice).complete(request, lambda _: None)
        return Reached(time.monotonic() - began, "token")
    except DevallError as error:
        return Reached(time.monotonic() - began, error=error)
    finally:
        await models.aclose()


async def _listed(
    models: Models, choice: ModelChoice, environ: Mapping[str, str]
) -> tuple[str, ...] | None:
    """The models that the endpoint lists, none where not all; None: it has no list."""
    provider, route = looked_up(choice, environ)
    path = "/v1/models" if provider.kind == "anthropic" else "/models"
    try:
        found = await models.endpoint(provider, route).ask(path, place_of(choice, route))
    except ModelRefused as error:
        if error.status in _WITHOUT_LIST:
            return None
        raise
    if provider.kind == "azure" or found.get("has_more"):
        return ()  # models there are, and not deployments
    listed: list[JsonValue] = as_list(found.get("data"))
    names = (as_text(as_object(each).get("id")) for each in listed)
    return tuple(name for name in names if name)
