"""Models in this process: one server for each GGUF file, on a free loopback port."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from devall.core.errors import SetupError
from devall.models import weights
from devall.models.base import ChatReply, ChatRequest, ModelChoice, OnText
from devall.models.exchange import Endpoints
from devall.models.failures import Place
from devall.models.openai import ChatCompletionsModel
from devall.models.openai_client import endpoint_at
from devall.models.schemas import bounded

_KEY = "local"


@dataclass(slots=True)
class LocalServers:
    """The servers of one source of models; started when first asked, shared by file."""

    endpoints: Endpoints
    environ: Mapping[str, str]
    _servers: dict[Path, asyncio.Task[Any]] = field(
        default_factory=dict[Path, "asyncio.Task[Any]"], init=False
    )

    def model(self, choice: ModelChoice) -> LocalModel:
        """The model of that name; nothing is loaded yet.

        Raises:
            SetupError: the weights are missing.
        """
        return LocalModel(choice, weights.find(choice.name, self.environ), self)

    async def url(self, file: Path) -> str:
        """The URL of the file's server, which is started where it does not run yet.

        Raises:
            SetupError: the file cannot be loaded.
        """
        if file not in self._servers:
            self._servers[file] = asyncio.create_task(asyncio.to_thread(_start, file))
        # A caller that is cancelled must not take the server from the others.
        server = await asyncio.shield(self._servers[file])
        return f"{server.listening_address}/v1"

    async def aclose(self) -> None:
        """Stop every server, those too that are just starting."""
        tasks, self._servers = list(self._servers.values()), {}
        if tasks:
            await asyncio.wait(tasks)
        servers: list[Any] = [
            task.result() for task in tasks if not task.cancelled() and task.exception() is None
        ]
        tasks.clear()
        # The last reference stops the server, which waits for its threads.
        await asyncio.to_thread(servers.clear)


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model of a GGUF file."""

    choice: ModelChoice
    file: Path
    servers: LocalServers

    @property
    def provider(self) -> str:
        """The provider's name in the workflow."""
        return self.choice.provider

    @property
    def name(self) -> str:
        """The model's name in the workflow."""
        return self.choice.name

    @property
    def url(self) -> str:
        """Empty: the model runs in this process."""
        return ""

    async def complete(self, request: ChatRequest, on_text: OnText) -> ChatReply:
        """One attempt; the first one loads the file.

        Raises:
            ModelError: as of any endpoint.
            SetupError: the file cannot be loaded.
        """
        url = await self.servers.url(self.file)
        place = Place(self.provider, self.name, "", "", _KEY, self.choice.timeout)
        model = ChatCompletionsModel(endpoint_at(self.servers.endpoints, url, _KEY), place)
        return await model.complete(_held(request), on_text)


def _held(request: ChatRequest) -> ChatRequest:
    """The request, its answer held to the schema that it must fit: small models seldom do alone."""
    if request.answer_schema is None or request.tools or "response_format" in request.params:
        return request
    form = {"name": "answer", "schema": bounded(request.answer_schema), "strict": False}
    params = {**request.params, "response_format": {"type": "json_schema", "json_schema": form}}
    return replace(request, params=params)


def _start(file: Path) -> Any:
    """A server with the file loaded; it stops when it is let go of.

    One thread and no polling: on a busy machine two threads gave 0.6 tokens a second, one
    gave 27 to 75.

    Raises:
        SetupError: the file cannot be loaded.
    """
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    for threads in (params.cpuparams, params.cpuparams_batch):
        threads.n_threads = 1
        threads.poll = 0
    params.use_jinja = True
    known = file.stem in weights.CATALOGUE
    params.n_ctx = weights.context_of(file.stem)
    params.n_parallel = 1
    params.cache_ram_mib = 0
    params.cache_prompt = not known
    params.ui = False
    params.verbosity = 0
    try:
        return xllamacpp.Server(params)
    except (RuntimeError, ValueError, OSError) as error:
        raise SetupError(f"the model in {file} cannot be loaded: {error}") from error
