"""The node of kind agent: a model bound to its role, tools and memories."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from devall.agents.answers import AnswerSchema
from devall.agents.gates import Gates
from devall.agents.recall import Attached
from devall.agents.skills import OpenableTools, SkilledTools
from devall.agents.thinking import THINKERS, Thinker
from devall.agents.turns import Agent
from devall.agents.window import KeepText
from devall.config.agents import AgentConfig
from devall.config.nodes import AgentNode
from devall.core.errors import SetupError
from devall.core.messages import Message
from devall.core.ports import NodeResult, Scope
from devall.loading.answer_schemas import read_schema
from devall.manifest import Maker, made_by
from devall.memory.base import MemoryStore
from devall.models.base import AttachmentReader, ModelChoice, ModelSource


class AgentExecutor:
    """Runs one agent of a graph; its tools are opened when they are needed, and kept."""

    def __init__(
        self,
        node: AgentNode,
        *,
        models: ModelSource,
        choice: ModelChoice | None = None,
        tools: OpenableTools | None = None,
        memories: Mapping[str, MemoryStore] | None = None,
        attachments: AttachmentReader | None = None,
        keep_text: KeepText | None = None,
        gates: Gates | None = None,
        base: Path | None = None,
        run_id: str = "",
        thinkers: Mapping[str, Thinker] = THINKERS,
    ) -> None:
        """Bind the node to what it works with; nothing is opened yet.

        Args:
            node: As the workflow has it.
            models: Gives the model, at the first run.
            choice: Which model; None = the one that the file names.
            tools: The node's tools, not yet opened; None where it has no sources.
            memories: The graph's stores by name.
            attachments: Reads the run's attachments.
            keep_text: Keeps a text as an attachment of the run.
            gates: The ways to endpoints, shared by the agents of the run.
            base: Where the path of an `output_schema` begins: the folder of the file.
            run_id: The run, for the ids of memories.
            thinkers: The kinds of thinking by name.
        """
        self._node = node
        self._models = models
        self._choice = choice or choice_of(node.config)
        self._tools = tools
        self._memories = memories or {}
        self._attachments = attachments
        self._keep_text = keep_text
        self._gates = gates or Gates()
        self._base = base or Path()
        self._run_id = run_id
        self._thinkers = thinkers
        self._agent: Agent | None = None
        self._opening = asyncio.Lock()

    async def run(self, scope: Scope, inputs: Sequence[Message], /) -> NodeResult:
        """One run of the agent.

        Raises:
            SetupError: a required tool source, a key, an extra or a file is missing.
            RunError: the run failed; see `devall.agents.turns.Agent.run`.
        """
        async with self._opening:  # units of a dynamic edge begin at the same time
            if self._agent is None:
                self._agent = await self._opened()
        with made_by(Maker("node", scope.node)):
            return await self._agent.run(scope, inputs)

    async def aclose(self) -> None:
        """Let go of the tools; the model and the memories are shared and stay open."""
        if self._agent is not None and self._tools is not None:
            self._agent = None
            await self._tools.aclose()

    async def _opened(self) -> Agent:
        config = self._node.config
        written = config.output_schema
        schema = None if written is None else AnswerSchema(read_schema(written, self._base))
        model = self._models.model(self._choice)
        memories = [
            Attached(self._store(attachment.name), attachment, self._run_id)
            for attachment in config.memories
        ]
        for bound in memories:
            await bound.store.open()
        return Agent(
            self._node.id,
            config,
            model,
            tools=self._tools,
            memories=memories,
            schema=schema,
            attachments=self._attachments,
            keep_text=self._keep_text,
            gate=self._gates.at(model.provider, model.url),
            thinkers=self._thinkers,
            skills=self._tools if isinstance(self._tools, SkilledTools) else None,
        )

    def _store(self, name: str) -> MemoryStore:
        try:
            return self._memories[name]
        except KeyError:
            known = ", ".join(self._memories) or "none"
            raise SetupError(
                f"there is no memory {name}", hint=f"`graph.memory` has: {known}"
            ) from None


def choice_of(config: AgentConfig) -> ModelChoice:
    """The model that an agent's configuration names."""
    return ModelChoice(
        config.provider,
        config.name,
        config.base_url,
        config.api_key,
        config.params.protocol,
        config.params.timeout,
        config.params.tool_mode,
        None if config.params.images == "auto" else config.params.images,
        config.params.echo_reasoning,
        config.params.api_version,
    )
