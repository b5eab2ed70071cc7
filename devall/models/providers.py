"""Which providers there are, and the source that gives their models."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from devall.core.errors import SetupError
from devall.models.base import ChatModel, ModelChoice
from devall.models.images import ImageGate

if TYPE_CHECKING:
    from devall.models.local import LocalServers
    from devall.models.openai_client import Endpoints

WITHOUT_KEY = "or run with the model that needs no key: `--provider local --model smollm2`"
"""The end of every hint about a key that is missing."""

_NO_KEY = "none"
"""What is sent to a server on this machine where no key was given: the client wants one."""


@dataclass(frozen=True, slots=True)
class Provider:
    """Where a provider's models are, and how they are spoken to."""

    base_url: str
    """Where nothing else is said; empty: in this process."""
    key_names: tuple[str, ...] = ("API_KEY",)
    """Variables of the environment that may hold the key, the first that is set."""
    url_names: tuple[str, ...] = ("BASE_URL",)
    """Variables of the environment that may hold the URL, the first that is set."""
    tool_mode: str = "native"
    protocols: tuple[str, ...] = ("chat", "responses")
    images: bool | None = None
    """Whether its models take images; None = it is found out."""


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(
        "https://api.openai.com/v1",
        ("API_KEY", "OPENAI_API_KEY"),
        ("BASE_URL", "OPENAI_BASE_URL"),
    ),
    "gemini": Provider(
        "https://generativelanguage.googleapis.com/v1beta/openai/",
        ("API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"),
        ("BASE_URL", "GEMINI_BASE_URL"),
        protocols=("chat",),
    ),
    # The protocol is of no account in this process: a file that asks for one still runs.
    "local": Provider("", (), (), tool_mode="json_schema", images=False),
}
"""The providers that ship with the package, by the name a workflow gives."""


def provider_of(name: str, providers: Mapping[str, Provider] = PROVIDERS) -> Provider:
    """The provider of that name.

    Raises:
        SetupError: there is none; the nearest names are in the hint.
    """
    if name in providers:
        return providers[name]
    near = difflib.get_close_matches(name, providers, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise SetupError(
        f"unknown provider {name}", hint=f"{hint}known providers: {', '.join(providers)}"
    )


@dataclass(slots=True)
class Models:
    """The source of models: clients by endpoint and key, and servers of local models.

    Nothing is opened before a model needs it.
    """

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    """Where keys and URLs are looked up that the workflow does not give."""
    providers: Mapping[str, Provider] = field(default_factory=lambda: PROVIDERS)
    _endpoints: Endpoints | None = field(default=None, init=False)
    _local: LocalServers | None = field(default=None, init=False)

    def model(self, choice: ModelChoice, /) -> ChatModel:
        """The model of that choice, in its tool mode.

        Raises:
            SetupError: the provider is unknown, or a key, an extra or a file is missing.
        """
        provider = provider_of(choice.provider, self.providers)
        if choice.protocol not in provider.protocols:
            raise SetupError(
                f"provider {choice.provider} does not speak protocol {choice.protocol}",
                hint=f"use {' or '.join(f'`{p}`' for p in provider.protocols)}",
            )
        model = self._remote(choice, provider) if provider.base_url else self._in_process(choice)
        takes_images = provider.images if choice.images is None else choice.images
        model = ImageGate(model, takes_images)
        mode = choice.tool_mode or provider.tool_mode
        if mode == "native":
            return model
        from devall.models.toolmodes import with_tool_mode

        return with_tool_mode(model, mode)

    async def aclose(self) -> None:
        """Close every client and server that was opened."""
        if self._endpoints is not None:
            await self._endpoints.aclose()
        if self._local is not None:
            await self._local.aclose()

    def _in_process(self, choice: ModelChoice) -> ChatModel:
        from devall.models.local import LocalServers

        if self._local is None:
            self._local = LocalServers(self._opened(), self.environ)
        return self._local.model(choice)

    def _remote(self, choice: ModelChoice, provider: Provider) -> ChatModel:
        from devall.models.openai import ChatCompletionsModel, ResponsesModel
        from devall.models.openai_client import is_loopback, shown_url
        from devall.models.openai_errors import Place

        url = self._url(choice, provider)
        key, key_source = self._key(choice, provider)
        if not key:
            if not is_loopback(url):
                raise _missing_key(choice, provider, shown_url(url))
            key = _NO_KEY
        place = Place(
            choice.provider,
            choice.name,
            shown_url(url),
            key_source,
            key,
            choice.timeout,
            choice.protocol,
        )
        endpoint = self._opened().at(url, key)
        kind = ResponsesModel if choice.protocol == "responses" else ChatCompletionsModel
        return kind(endpoint, place)

    def _opened(self) -> Endpoints:
        from devall.models.openai_client import Endpoints

        if self._endpoints is None:
            self._endpoints = Endpoints()
        return self._endpoints

    def _url(self, choice: ModelChoice, provider: Provider) -> str:
        given = (self.environ.get(name) for name in provider.url_names)
        url = choice.base_url or next(filter(None, given), "") or provider.base_url
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise SetupError(
                f"`base_url` of model {choice.name} is no http(s) URL: {url}",
                hint="a URL begins with http:// or https://, and as a rule ends in /v1",
            )
        return url

    def _key(self, choice: ModelChoice, provider: Provider) -> tuple[str, str]:
        """The key, and in words where it came from."""
        if choice.api_key:
            return choice.api_key, "`api_key` of the node"
        for name in provider.key_names:
            if key := self.environ.get(name):
                return key, f"the variable {name}"
        return "", ""


def _missing_key(choice: ModelChoice, provider: Provider, url: str) -> SetupError:
    first, *others = provider.key_names
    also = f" (or {', '.join(others)})" if others else ""
    return SetupError(
        f"no key for provider {choice.provider} (model {choice.name} at {url}): "
        f"the variable {first} is not set",
        hint=f"set {first}{also} in the environment or in a .env file beside the workflow, "
        + WITHOUT_KEY,
    )
