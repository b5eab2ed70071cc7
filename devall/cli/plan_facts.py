"""What an estimate starts from, gathered: files are read and functions imported, nothing is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli.bound import bound_agents, surveys
from devall.core.errors import SetupError, UsageError

if TYPE_CHECKING:
    from devall.agents.skills import Card
    from devall.config.agents import AgentConfig
    from devall.core.messages import Message
    from devall.estimates.facts import AgentFacts, Facts, OfferedTool, ToolSide
    from devall.history.past import Past
    from devall.loading.loader import LoadedGraph, LoadedWorkflow
    from devall.nodes.crew import Overrides
    from devall.tools.base import ToolSpec
    from devall.tools.survey import SourceReport


async def gather(
    loaded: LoadedWorkflow,
    *,
    task: Message | None,
    overrides: Overrides,
    ex_tools: Sequence[str],
    functions_dir: Path | None,
    units: int | None,
    logs: Path,
) -> Facts:
    """What is known of a run of the workflow before it begins.

    Args:
        loaded: The workflow.
        task: Its task; None = not given.
        overrides: Models and providers that stand before those of the file.
        ex_tools: Tools that every agent has beside its own.
        functions_dir: The project's own functions.
        units: How many units dynamic edges are taken to make.
        logs: The folder of runs: the newest run of the workflow knows what servers offered.

    Raises:
        SetupError: the schema of an answer cannot be used, a skill is not there, or EX_TOOLS is
            not well written.
    """
    from devall.estimates.facts import AgentFacts, Facts
    from devall.nodes.agent import choice_of

    agents = bound_agents(loaded, None, ex_tools)
    found = await surveys(loaded, agents, connect=False, functions_dir=functions_dir)
    reports = {bound.node: survey.sources for bound, survey in zip(agents, found, strict=True)}
    asks_servers = any(
        each.state == "not asked" for sources in reports.values() for each in sources
    )
    past = newest_run(loaded, logs) if asks_servers else None
    known: dict[str, AgentFacts] = {}
    for name, graph, config in _agents(loaded.root, ""):
        choice = overrides.apply(choice_of(config), name)
        sources = [_side(each, name, past) for each in reports.get(name, ())]
        cards = _cards(graph, config)
        known[name] = AgentFacts(
            choice.provider,
            choice.name,
            (*sources, *([_of_skills()] if cards else ())),
            cards,
            _schema(graph, config),
        )
    return Facts(task, known, units)


def newest_run(loaded: LoadedWorkflow, logs: Path) -> Past | None:
    """The newest run of the workflow that a journal has."""
    from devall.history.past import Past
    from devall.journal.reader import FILE_NAME, Reader

    if not (logs / FILE_NAME).is_file():
        return None
    place = str(loaded.path.resolve())
    try:
        with Reader(logs) as journal:
            row = next((each for each in journal.runs() if each.workflow == place), None)
    except SetupError:
        return None  # somebody else's file: it was only to help
    return None if row is None else Past(row.id, logs, row)


def _agents(graph: LoadedGraph, prefix: str) -> Iterator[tuple[str, LoadedGraph, AgentConfig]]:
    for node in graph.config.nodes:
        if node.type == "agent":
            yield prefix + node.id, graph, node.config
        elif node.type == "subgraph":
            yield from _agents(graph.subgraphs[node.id], f"{prefix}{node.id}/")


def _cards(graph: LoadedGraph, config: AgentConfig) -> tuple[Card, ...]:
    """The skills of an agent."""
    from devall.agents.skills import Card
    from devall.loading.skills import find_skills

    if not config.skills.enabled:
        return ()
    skills = find_skills(graph.file).skills
    allow = [each.name for each in config.skills.allow]
    return tuple(
        Card(skill.name, skill.description, skill.allowed)
        for name, skill in skills.items()
        if not allow or name in allow
    )


def _schema(graph: LoadedGraph, config: AgentConfig) -> str:
    from devall.agents.answers import AnswerSchema
    from devall.loading.answer_schemas import read_schema

    if config.output_schema is None:
        return ""
    return AnswerSchema(read_schema(config.output_schema, graph.file.parent)).prompt


def _side(report: SourceReport, node: str, past: Past | None) -> ToolSide:
    """A source as the estimate takes it."""
    from devall.estimates.facts import ToolSide

    most, label = report.source.max_result_chars, report.label
    is_server = report.source.type != "function"
    if report.state == "ready":
        return ToolSide(label, "known", _offered(report.tools, most), most)
    if report.state == "failed":
        return ToolSide(label, f"cannot be used: {report.error}", (), most, is_known=False)
    recorded = _recorded(past, node, label.partition(" ")[2]) if past is not None else []
    if recorded and past is not None:
        state = f"not contacted; its tools as of run {past.id}"
        return ToolSide(label, state, _offered(recorded, most), most, is_server=is_server)
    return ToolSide(label, "not contacted", (), most, is_known=False, is_server=is_server)


def _recorded(past: Past, node: str, address: str) -> list[ToolSpec]:
    """The tools of a server that a node was offered in an earlier run."""
    from devall.core.ids import node_of
    from devall.tools.base import ToolSpec

    try:
        steps = past.steps(
            lambda key, kind: (
                kind == "tools" and key.endswith("turn:1/tools") and node_of(key) == node
            )
        )
    except UsageError:
        return []
    newest = [step.value for step in steps.values() if step.state == "done" and step.value]
    specs = [ToolSpec(**spec) for spec in newest[-1]] if newest else []
    return [spec for spec in specs if spec.metadata.get("server") == address]


def _offered(specs: Sequence[ToolSpec], most: int) -> tuple[OfferedTool, ...]:
    from devall.estimates.facts import OfferedTool
    from devall.models.base import ToolSchema

    return tuple(
        OfferedTool(
            ToolSchema(spec.name, spec.description, spec.parameters, len(str(spec.parameters))),
            most,
        )
        for spec in specs
    )


def _of_skills() -> ToolSide:
    """The two tools by which skills are used."""
    from devall.estimates.facts import ToolSide
    from devall.tools.skills import LONGEST, SPECS

    return ToolSide("skills", "known", _offered(SPECS, LONGEST), LONGEST)
