"""The source that gives the models of a run, by their providers."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from devall.core.errors import SetupError
from devall.core.messages import JsonValue
from devall.models.base import ChatModel, ModelChoice
from devall.models.failures import Place
from devall.models.images import ImageGate
from devall.models.routes import NO_KEY, PROVIDERS, Provider, Route, provider_of, route_of

if TYPE_CHECKING:
    from devall.models.exchange import Endpoint, Endpoints
    from devall.models.local import LocalServers
    from devall.models.openai_embeddings import EmbeddingsModel


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
        provider, route = looked_up(choice, self.environ, self.providers)
        is_here = provider.kind == "local"
        model = self._in_process(choice) if is_here else self._remote(choice, provider, route)
        takes_images = provider.images if choice.images is None else choice.images
        model = ImageGate(model, takes_images)
        mode = choice.tool_mode or provider.tool_mode
        if mode == "native":
            return model
        from devall.models.toolmodes import with_tool_mode

        return with_tool_mode(model, mode)

    def embeddings(self, choice: ModelChoice, params: Mapping[str, JsonValue]) -> EmbeddingsModel:
        """The embedding model of that choice.

        Args:
            choice: The model; its provider speaks OpenAI's protocol.
            params: Sent with every request.

        Raises:
            SetupError: the key is missing, or the URL is none.
        """
        provider = provider_of(choice.provider, self.providers)
        route = route_of(choice, provider, self.environ)
        from devall.models.openai_client import endpoint_at
        from devall.models.openai_embeddings import EmbeddingsModel

        key = route.key or NO_KEY
        source = route.key_words.replace("of the node", "of the `embedding`")
        place = Place(choice.provider, choice.name, route.shown, source, key, choice.timeout)
        return EmbeddingsModel(endpoint_at(self._opened(), route.url, key), place, params)

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

    def endpoint(self, provider: Provider, route: Route) -> Endpoint:
        """The endpoint of a route, for whoever asks it for other things than answers."""
        key = route.key or NO_KEY
        if provider.kind == "anthropic":
            from devall.models.anthropic_client import messages_at

            return messages_at(self._opened(), route.url, key)
        from devall.models.openai_client import azure_at, endpoint_at

        if provider.kind == "azure":
            return azure_at(self._opened(), route.url, key, route.version)
        return endpoint_at(self._opened(), route.url, key)

    def _remote(self, choice: ModelChoice, provider: Provider, route: Route) -> ChatModel:
        endpoint, place = self.endpoint(provider, route), place_of(choice, route)
        if provider.kind == "anthropic":
            from devall.models.anthropic import MessagesModel

            return MessagesModel(endpoint, place)
        from devall.models.openai import ChatCompletionsModel, ResponsesModel

        kind = ResponsesModel if choice.protocol == "responses" else ChatCompletionsModel
        return kind(endpoint, place, choice.echo_reasoning)

    def _opened(self) -> Endpoints:
        from devall.models.exchange import Endpoints

        if self._endpoints is None:
            self._endpoints = Endpoints()
        return self._endpoints


def place_of(choice: ModelChoice, route: Route) -> Place:
    """Where the requests of a choice go, for error texts."""
    return Place(
        choice.provider,
        choice.name,
        route.shown,
        route.key_words,
        route.key or NO_KEY,
        choice.timeout,
        choice.protocol,
    )


def looked_up(
    choice: ModelChoice,
    environ: Mapping[str, str],
    providers: Mapping[str, Provider] = PROVIDERS,
) -> tuple[Provider, Route]:
    """The provider of a choice and where it leads, if all is there that it needs.

    Raises:
        SetupError: the provider is unknown, or a key, a URL or an extra is missing.
    """
    provider = provider_of(choice.provider, providers)
    if choice.protocol not in provider.protocols:
        raise SetupError(
            f"provider {choice.provider} does not speak protocol {choice.protocol}",
            hint=f"use {' or '.join(f'`{p}`' for p in provider.protocols)}",
        )
    route = route_of(choice, provider, environ)
    check_extra(choice.provider, provider)
    return provider, route


def check_extra(name: str, provider: Provider) -> None:
    """Make sure that the extra of a provider is installed.

    Raises:
        SetupError: it is not.
    """
    if provider.package and importlib.util.find_spec(provider.package) is None:
        raise SetupError(
            f"provider {name} needs the package {provider.package}, which is not installed",
            hint=f"pip install devall[{provider.extra}]",
        )
