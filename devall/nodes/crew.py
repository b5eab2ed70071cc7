"""The agents of a run: their models, tools and memories, shared where they are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

from devall.agents.gates import Gates
from devall.agents.thinking import THINKERS, Thinker, own_thinker
from devall.config.nodes import AgentNode
from devall.config.tools import InDoubt
from devall.core.errors import SetupError
from devall.core.events import Sink
from devall.core.ports import HumanChannel
from devall.graph.model import Plan
from devall.loading.loader import LoadedGraph
from devall.loading.skills import find_skills
from devall.models.base import ModelChoice, ModelSource
from devall.models.routes import WITHOUT_KEY
from devall.nodes.agent import AgentExecutor, choice_of
from devall.nodes.memories import Memories
from devall.plugins.functions import FunctionCatalog
from devall.tools.extra import with_extra
from devall.tools.mcp.pool import McpServers
from devall.workspace import Workspace

_OWN_VARIABLES = {"api_key": "API_KEY", "base_url": "BASE_URL"}
"""Variables that are looked up by provider anyway: a file may name them without their being set."""


@dataclass(frozen=True, slots=True)
class Overrides:
    """Models and providers that stand before those of the file.

    By node: `S/X`, `X` for the nodes of that name wherever they are, `''` for all.
    """

    models: Mapping[str, str] = field(default_factory=dict[str, str])
    providers: Mapping[str, str] = field(default_factory=dict[str, str])

    def apply(self, choice: ModelChoice, node: str) -> ModelChoice:
        """The choice for a node; another provider brings its own endpoint and key."""
        provider = _named(self.providers, node)
        if provider and provider != choice.provider:
            choice = replace(choice, provider=provider, base_url=None, api_key=None)
        name = _named(self.models, node)
        return replace(choice, name=name) if name else choice


def _named(given: Mapping[str, str], node: str) -> str | None:
    """What stands for a node; its full name first."""
    return given.get(node) or given.get(node.rpartition("/")[2]) or given.get("")


@dataclass(slots=True)
class Crew:
    """Makes the executors of agent nodes, and owns what they share for one run."""

    models: ModelSource
    functions: FunctionCatalog
    servers: McpServers
    workspace: Workspace
    overrides: Overrides
    emit: Sink
    extra: Sequence[str] = ()
    """Tools that every agent has beside its own, as a workflow names functions."""
    human: HumanChannel | None = None
    """Answers what MCP servers ask during a call."""
    in_doubt: InDoubt | None = None
    """What is done with calls that an interrupted run left in doubt; None = as the file says."""
    remembers: bool = True
    """False: memory stores are neither read nor written."""
    run_id: str = ""
    """The run, for the ids of memories."""
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    """Where tools find their settings and keys; None = the environment of devall."""
    _gates: Gates = field(default_factory=Gates)
    _memories: Memories = field(init=False)

    def __post_init__(self) -> None:
        self._memories = Memories(
            self.models, self.workspace, self.emit, self.environment, self.remembers
        )

    def agent(self, plan: Plan, node: AgentNode, name: str) -> AgentExecutor:
        """The executor of a node, for one run of its graph; `name` is `S/X` in a subgraph."""
        folder = plan.file.parent
        tools = None
        tooling = with_extra(node.config.tooling, self.extra)
        skills = node.config.skills
        if tooling or skills.enabled:
            from devall.tools.manager import ToolManager  # a twelfth of a small run's start

            tools = ToolManager(
                tooling,
                functions=self.functions,
                servers=self.servers,
                workspace=self.workspace,
                base=folder,
                emit=self.emit,
                human=self.human,
                node=name,
                in_doubt=self.in_doubt,
                environment=self.environment,
            )
        if tools is not None and skills.enabled:
            from devall.agents.skills import SkilledTools

            allow = [each.name for each in skills.allow]
            tools = SkilledTools(tools, lambda: find_skills(plan.file).skills, allow)
        return AgentExecutor(
            node,
            models=self.models,
            choice=self.overrides.apply(choice_of(node.config), name),
            tools=tools,
            memories=self._memories.of(plan, node.id),
            attachments=self.workspace.read_attachment,
            keep_text=self._keep_text,
            gates=self._gates,
            base=folder,
            run_id=self.run_id,
            thinkers=self._thinkers(node),
        )

    def _thinkers(self, node: AgentNode) -> Mapping[str, Thinker]:
        """The kinds of thinking: ours, and the one of the project that the node names."""
        thinking = node.config.thinking
        if thinking is None or thinking.type in THINKERS:
            return THINKERS
        name = thinking.type
        return {name: own_thinker(name, self.functions.thinking(name), node.id)}

    def _keep_text(self, text: str) -> str:
        """Keep a text as an attachment; its name."""
        data = text.encode("utf-8", "replace")
        return self.workspace.save_attachment(data, "text/plain").attachment

    async def aclose(self) -> None:
        """Close servers and stores."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._memories.aclose)
            stack.push_async_callback(self.servers.aclose)


def check_models(
    plan: Plan, loaded: LoadedGraph, models: ModelSource, overrides: Overrides, prefix: str = ""
) -> None:
    """Make sure, before anything runs, that the model of every agent can be had.

    Raises:
        SetupError: a provider is unknown; a key, an extra, weights or a variable is missing.
    """
    for node in plan.nodes:
        if not isinstance(node.config, AgentNode):
            continue
        name = prefix + node.id
        written = choice_of(node.config.config)
        choice = overrides.apply(written, name)
        if choice.provider == written.provider:
            check_variables(loaded, node.index, name)
        models.model(choice)
    for name, child in plan.subplans.items():
        check_models(child, loaded.subgraphs[name], models, overrides, f"{prefix}{name}/")


def check_variables(loaded: LoadedGraph, index: int, node: str) -> None:
    """Make sure that every variable is set that an agent's model needs.

    Raises:
        SetupError: one is not.
    """
    for path, variable, position in loaded.missing_variables:
        if path[:2] == ("nodes", index) and _OWN_VARIABLES.get(str(path[-1])) != variable:
            raise SetupError(
                f"node {node}: variable {variable} is not set ({position})",
                hint=f"set it in the environment or in .env, {WITHOUT_KEY}",
            )
