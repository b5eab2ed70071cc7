"""The kinds of nodes, and the graph they stand in: a node may hold a graph itself."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from devall.config.agents import AgentConfig
from devall.config.base import (
    ConfigModel,
    Count,
    Many,
    OneOrMany,
    Positive,
    Text,
    TextMap,
    always_the_same,
)
from devall.config.edges import Edge
from devall.config.limits import Limits
from devall.config.memory import MemoryStore


class HumanConfig(ConfigModel):
    """What a human is asked."""

    description: str = ""
    """The question."""
    timeout: Positive | None = None
    """Seconds to wait for an answer; absent = for ever."""
    default: str | None = None
    """The answer when nobody gave one in time."""


class LiteralConfig(ConfigModel):
    """A text that is always the same."""

    content: str
    """The text."""
    role: Literal["user", "assistant"] = "user"
    """Who seems to say it."""


class PassthroughConfig(ConfigModel):
    """Which inputs go on."""

    only_last_message: bool = True
    """Whether only the last input goes on, or all do."""


class TemplateConfig(ConfigModel):
    """A text that is made of the last input."""

    template: Text
    """A template in Jinja's language: `input` is the text of the last input, `inputs` those of all,
    `environment` the variables of the environment that are no secrets. Beside Jinja's filters there
    are `fromjson` and `tojson`. A name without a value is an error."""


class PythonConfig(ConfigModel):
    """How the code in the last input is run."""

    interpreter: str = ""
    """The program that runs it; empty = the Python that runs devall."""
    args: Many[str] = ()
    """Arguments behind the file with the code."""
    env: TextMap = Field(default_factory=dict)
    """Environment variables that are added."""
    timeout_seconds: Positive = 60
    """Seconds after which the code is ended."""
    encoding: Text = "utf-8"
    """Encoding of the file and of what the code prints."""


class LoopCounterConfig(ConfigModel):
    """A count that lets a loop end."""

    max_iterations: Count = 10
    """Silent until it has run so often, then it speaks."""
    reset_on_emit: bool = True
    """Whether it starts anew when it has spoken."""
    message: str | None = None
    """What it says; absent = that the limit is reached."""


class LoopTimerConfig(ConfigModel):
    """A clock that lets a loop end."""

    max_duration: Positive = 60
    """Silent until so much time is up, then it speaks."""
    duration_unit: Literal["seconds", "minutes", "hours"] = "seconds"
    """Unit of `max_duration`."""
    reset_on_emit: bool = True
    """Whether it starts anew when it has spoken."""
    message: str | None = None
    """What it says; absent = that the time is up."""
    passthrough: bool = False
    """Whether it hands on its input until the time is up, instead of being silent."""


class SubgraphPath(ConfigModel):
    """Where a workflow file is."""

    path: Text
    """Relative to the file that names it, then to `yaml_instance/`."""


class NodeBase(ConfigModel):
    """What every node has."""

    legacy = frozenset({"dynamic"})

    id: Text
    """Unique within the graph; any text."""
    description: str = ""
    """For people."""
    context_window: Annotated[int, Field(ge=-1)] = 0
    """What is remembered of a run: 0 = only kept messages, -1 = all, n = the newest n."""
    log_output: bool = True
    """Whether its output may stand in logs."""
    timeout: Positive | None = None
    """Seconds for one run of the node."""
    on_error: Literal["fail", "continue"] = "fail"
    """When it fails: the run ends, or the node counts as skipped."""
    limits: Limits = Field(default_factory=always_the_same(Limits))
    """Bounds of all its runs together."""


class AgentNode(NodeBase):
    """A language model with a role."""

    type: Literal["agent"] = "agent"
    """The kind of node."""
    config: AgentConfig
    """The agent."""


class HumanNode(NodeBase):
    """A question to a human."""

    type: Literal["human"] = "human"
    """The kind of node."""
    config: HumanConfig = Field(default_factory=HumanConfig)
    """The question."""


class LiteralNode(NodeBase):
    """A text that is always the same."""

    type: Literal["literal"] = "literal"
    """The kind of node."""
    config: LiteralConfig
    """The text."""


class TemplateNode(NodeBase):
    """A text that is made of the last input by a template."""

    type: Literal["template"] = "template"
    """The kind of node."""
    config: TemplateConfig
    """The template."""


class PassthroughNode(NodeBase):
    """A place where ways meet; it hands on its input."""

    type: Literal["passthrough"] = "passthrough"
    """The kind of node."""
    config: PassthroughConfig = Field(default_factory=always_the_same(PassthroughConfig))
    """Which inputs go on."""


class PythonNode(NodeBase):
    """Runs the Python code in its last input."""

    type: Literal["python"] = "python"
    """The kind of node."""
    config: PythonConfig = Field(default_factory=PythonConfig)
    """How the code is run."""


class LoopCounterNode(NodeBase):
    """Ends a loop after a number of rounds."""

    type: Literal["loop_counter"] = "loop_counter"
    """The kind of node."""
    config: LoopCounterConfig = Field(default_factory=LoopCounterConfig)
    """The count."""


class LoopTimerNode(NodeBase):
    """Ends a loop after some time."""

    type: Literal["loop_timer"] = "loop_timer"
    """The kind of node."""
    config: LoopTimerConfig = Field(default_factory=LoopTimerConfig)
    """The clock."""


class SubgraphFile(ConfigModel):
    """A graph in a file of its own."""

    type: Literal["file"] = "file"
    """Where the graph stands."""
    config: SubgraphPath
    """Which file."""


class SubgraphInline(ConfigModel):
    """A graph that stands in the node itself."""

    type: Literal["config"] = "config"
    """Where the graph stands."""
    config: Graph
    """The graph."""


SubgraphConfig: TypeAlias = Annotated[SubgraphFile | SubgraphInline, Field(discriminator="type")]


class SubgraphNode(NodeBase):
    """A whole graph as one node."""

    type: Literal["subgraph"] = "subgraph"
    """The kind of node."""
    config: SubgraphConfig
    """The graph, or where it is."""


Node: TypeAlias = Annotated[
    AgentNode
    | HumanNode
    | LiteralNode
    | PassthroughNode
    | TemplateNode
    | PythonNode
    | SubgraphNode
    | LoopCounterNode
    | LoopTimerNode,
    Field(discriminator="type"),
]
"""A node, by its `type`."""


class Graph(ConfigModel):
    """Nodes, and the edges between them."""

    legacy = frozenset({"organization"})

    id: str = ""
    """Name of the graph."""
    description: str = ""
    """For people."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = "INFO"
    """Least weight of what is logged."""
    initial_instruction: str = ""
    """Shown to whoever has to type the task."""
    is_majority_voting: bool = False
    """Whether every node runs on the task, and the commonest output is the answer."""
    start: OneOrMany[Text]
    """Ids of the nodes that get the task: one, or a list."""
    end: OneOrMany[str] = ()
    """Ids of the nodes whose output is the answer: one, or a list; empty = the sink."""
    memory: OneOrMany[MemoryStore] = ()
    """Stores that agents share."""
    nodes: Many[Node]
    """The nodes."""
    edges: Many[Edge] = ()
    """The edges, in the order in which they are looked at."""
    limits: Limits = Field(default_factory=always_the_same(Limits))
    """Bounds of a run of the graph."""
