"""An estimate as a page of plain text, 80 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from devall.cli.pages import columns
from devall.cli.plan_words import (
    grouped,
    money_at_most,
    number,
    time_at_most,
    tokens_at_most,
)
from devall.cli.streams import one_line
from devall.cli.words import count, duration
from devall.estimates.bounds import Bound, Missing
from devall.estimates.costs import Cost
from devall.estimates.rounds import Rounds
from devall.estimates.values import AgentValue, GraphValue, LoopValue, NodeValue, Stage

WIDTH = 80
_NAME = 16
"""Characters of a node's name in the table."""


def page(workflow: str, plan: GraphValue, *, is_task_known: bool) -> list[str]:
    """The lines of a plan."""
    nodes = plan.all_nodes()
    agents = [node for node in nodes if node.agent is not None]
    loops = list(_loops(plan))
    head = f"{workflow}: {count(len(nodes), 'node')}, {count(len(agents), 'agent')}"
    if loops:
        head += f", {count(len(loops), 'loop')}"
    lines = [head, "", "ORDER  (what stands in one line may run side by side)"]
    lines += _order(plan, "  ", {node.name: node for node in nodes})
    if agents:
        lines += ["", "AGENTS  (~ = estimated tokens)"]
        for node in agents:
            lines += _agent(node)
    lines += [
        "",
        "AT MOST  (all runs of a node together)",
        *_table(plan, nodes, loops),
    ]
    if summary := list(_summary(plan)):
        lines += ["", *summary]
    if missing := list(remedies_of(plan)):
        lines += ["", "NO BOUND, AND WHAT WOULD GIVE ONE"]
        for text in missing:
            lines += _wrapped(text, "  - ")
    if told := notes(plan, is_task_known=is_task_known):
        lines += ["", "WHAT THIS RESTS ON"]
    for note in told:
        lines += _wrapped(note, "  - ")
    return lines


def _order(plan: GraphValue, indent: str, nodes: dict[str, NodeValue]) -> Iterator[str]:
    inner = {each.name: each for each in plan.subgraphs}
    yield from _stages(plan.stages, indent, nodes, inner)


def _stages(
    stages: Sequence[Stage],
    indent: str,
    nodes: dict[str, NodeValue],
    inner: dict[str, GraphValue],
) -> Iterator[str]:
    for position, stage in enumerate(stages, 1):
        names = [_step(nodes[step]) for step in stage if isinstance(step, str)]
        mark = f"{position}. "
        below = indent + " " * len(mark)
        if names:
            yield from _wrapped(", ".join(names), indent + mark)
        for at, loop in enumerate(step for step in stage if not isinstance(step, str)):
            lead = indent + mark if not names and not at else below
            told = f"loop, {_rounds(loop.rounds)}:"
            yield from _wrapped(told, lead)
            yield from _stages(loop.stages, below, nodes, inner)
        for step in stage:
            if isinstance(step, str) and step in inner:
                yield f"{below}inside {step}:"
                yield from _order(inner[step], below + "  ", nodes)


def _step(node: NodeValue) -> str:
    name = node.name.rpartition("/")[2] if "/" in node.name else node.name
    kind = "" if node.type == "agent" else f" ({node.type.replace('_', ' ')})"
    return f"{name}{kind}" + (" for each unit" if node.units is not None else "")


def _rounds(rounds: Rounds) -> str:
    most = f"at most {count(rounds.most, 'round')}"
    match rounds.key:
        case "max_iterations":
            why = f"max_iterations of {rounds.node}"
        case "edges" if rounds.node:
            why = f"{rounds.node} always leaves it"
        case "edges":
            why = "nothing starts another"
        case _:
            why = rounds.key
    timers = "".join(f", or {duration(s)} by timer {name}" for name, s in rounds.timers)
    loose = ", ".join(rounds.loose)
    told = f"; {loose} need not run in each round" if loose else ""
    trust = ", ".join(rounds.trusted)
    told += f"; if {trust} says the same of the same text" if trust else ""
    return f"{most} ({why}{timers}{told})"


def _agent(node: NodeValue) -> Iterator[str]:
    agent = node.agent
    assert agent is not None
    window = f", window {agent.window:,}" if agent.window is not None else ", window unknown"
    yield from _wrapped(f"{node.name}: {agent.model} ({agent.provider}){window}", "  ")
    yield from _wrapped(_prompt(agent), "      ")
    yield from _wrapped(_calls(agent), "      ")
    for side in agent.sources:
        if side.is_known:
            tools = ", ".join(tool.schema.name for tool in side.tools) or "none"
            label = (
                ""
                if side.state == "known" and side.label.startswith("functions")
                else (f"{side.label} ")
            )
            state = "" if side.state == "known" else f"({side.state}) "
            yield from _wrapped(
                f"tools: {label}{state}{'' if not label else ': '}{tools}", "      "
            )
        else:
            yield from _wrapped(f"tools: {side.label}: {side.state}", "      ")


def _prompt(agent: AgentValue) -> str:
    prompt = agent.prompt
    parts = [
        f"{name} ~{tokens:,}"
        for name, tokens in (
            ("role", prompt.role),
            ("skills", prompt.skills),
            ("output_schema", prompt.schema),
            (count(prompt.tool_count, "tool"), prompt.tools),
        )
        if tokens
    ]
    parts += [f"memory {name}" for name in agent.memories]
    inputs = tokens_at_most(agent.inputs) if agent.inputs.is_known else "of any length"
    parts.append(f"inputs {'up to ' if agent.inputs.is_known else ''}{inputs}")
    largest = agent.largest.input_tokens
    whole = f"; a request up to {tokens_at_most(largest)}" if largest.is_known else ""
    return f"prompt: {' + '.join(parts)}{whole}"


def _calls(agent: AgentValue) -> str:
    told = f"up to {number(agent.calls)} calls in a run"
    if not agent.calls.is_known:
        told = "any number of calls in a run"
    elif agent.calls.value == 1:
        told = "1 call in a run"
    parts: list[str] = []
    turns = agent.turns.value or 1
    if turns > 1:
        parts.append(f"{turns:g} turns")
    if agent.thoughts.value != 0:
        parts.append("a second thought")
    if agent.repairs:
        parts.append(count(agent.repairs, "repair"))
    if parts:
        told += f" ({' + '.join(parts) if turns > 1 else ' + '.join(['1', *parts])})"
    answer = f"up to {tokens_at_most(agent.answer)}" if agent.answer.is_known else "any number of"
    given = (
        ""
        if agent.is_answer_given or not agent.answer.held_by
        else (f" ({agent.answer.held_by[0]})")
    )
    return f"{told}; an answer: {answer} tokens{given}"


def _table(plan: GraphValue, nodes: Sequence[NodeValue], loops: Sequence[LoopValue]) -> list[str]:
    rows = [["", "runs", "calls", "tools", "tokens in", "out", "USD", "time/run"]]
    for node in nodes:
        if node.type not in {"agent", "python", "subgraph"}:
            continue
        is_each = node.units == "unknown"
        cost = node.each if is_each else node.cost
        runs = "per unit" if is_each else number(node.runs)
        rows.append([_short(node.name), runs, *_cells(cost), time_at_most(node.seconds)])
    for loop in loops:
        name = _short(f"loop {', '.join(loop.nodes)}")
        rows.append([name, f"x{loop.rounds.most:,}", *_cells(loop.cost), ""])
    rows.append(["all", "", *_cells(plan.cost), time_at_most(plan.seconds)])
    return [f"  {line}" for line in columns(_narrow(rows), right=range(1, 8))]


def _narrow(rows: list[list[str]]) -> list[list[str]]:
    """The rows without columns in which nothing stands."""
    empty = [
        at
        for at in range(1, len(rows[0]))
        if all(row[at] in {"", "0", "0 s", "$0"} for row in rows[1:]) and rows[0][at] != "calls"
    ]
    return [[cell for at, cell in enumerate(row) if at not in empty] for row in rows]


def _cells(cost: Cost) -> list[str]:
    return [
        number(cost.model_calls),
        number(cost.tool_calls),
        tokens_at_most(cost.input_tokens),
        tokens_at_most(cost.output_tokens),
        money_at_most(cost.usd),
    ]


def _summary(plan: GraphValue) -> Iterator[str]:
    if plan.cost.model_calls.value == 0:
        return
    least = plan.least
    money = (
        "a cost that is not known"
        if least.usd is None
        else f"${least.usd:.6f}"
        if least.usd
        else "$0"
    )
    yield from _wrapped(
        f"AT LEAST  {count(least.model_calls, 'call')}, {count(least.input_tokens, 'token')} in,"
        f" {money}: what runs in any case, once and in one turn; all of it cached, answers not"
        " counted",
        "",
        "          ",
    )
    attempts = plan.cost.attempts
    if attempts.is_known and attempts != plan.cost.model_calls:
        yield from _wrapped(
            f"RETRIES   up to {number(attempts)} attempts for those"
            f" {count(int(plan.cost.model_calls.value or 0), 'call')}; what failed ones cost is"
            " not known, and not counted",
            "",
            "          ",
        )
    held = [
        name
        for bound in _totals(plan)
        for name in bound.held_by
        if "limits." in name or "timeout" in name or "max_duration" in name
    ]
    if held:
        told = ", ".join(dict.fromkeys(held))
        yield from _wrapped(f"HELD BY   {told}", "", "          ")


def _totals(plan: GraphValue) -> tuple[Bound, ...]:
    cost = plan.cost
    return cost.model_calls, cost.tool_calls, cost.tokens, cost.usd, plan.seconds


def remedies_of(plan: GraphValue) -> Iterator[str]:
    """What would give bounds, each once."""
    found: dict[Missing, None] = {}
    for bound in _totals(plan):
        found |= dict.fromkeys(bound.missing)
    yield from grouped(found)


def notes(plan: GraphValue, *, is_task_known: bool = True) -> list[str]:
    """What the numbers rest on, and what is not in them."""
    from importlib.metadata import version

    nodes = plan.all_nodes()
    agents = [node.agent for node in nodes if node.agent is not None]
    found: list[str] = []
    if not is_task_known:
        found.append("The task is not given: its length is not known.")
    if agents:
        found.append(
            "Tokens of text are estimated, a quarter of its bytes, as a run does before each call;"
            " at most counts twice that. A token that one model writes is one that the next reads."
        )
        if any(not each.is_answer_given for each in agents):
            found.append(
                "An answer without `params.max_tokens` may fill the model's window, as far as that"
                " is known."
            )
        free = sorted({each.provider for each in agents if each.provider in {"local", "ollama"}})
        if len(free) < len({each.provider for each in agents}):
            found.append(
                f"Prices are those of genai-prices {version('genai-prices')}, nothing cached."
            )
        if free:
            found.append(f"Models of {', '.join(free)} run on your own machine and cost nothing.")
    if any("limits.max_usd" in name or "limits.max_tokens" in name for name in _holding(plan)):
        largest = plan.largest.usd
        by = f", by {money_at_most(largest)} at most" if largest.is_known else ""
        found.append(
            "max_usd and max_tokens are looked at before each call, with what it is estimated to"
            f" use: calls under way may go over them{by} each, and then the run ends."
        )
    humans = [node.name for node in nodes if node.type == "human"]
    if humans:
        found.append(f"Waiting for humans ({', '.join(humans)}) is in no time.")
    if any(node.units == "assumed" for node in nodes):
        found.append("The number of units is the one of --units.")
    if any(each.memories for each in agents):
        found.append("Requests for embeddings of memories are not counted.")
    if any(side.tools or not side.is_known for each in agents for side in each.sources):
        found.append("Images and other files in results of tools are not counted.")
    if plan.seconds.value != 0:
        found.append("Time is that of timeouts: functions of edges and memories have none.")
    return found


def _holding(plan: GraphValue) -> Iterator[str]:
    yield from plan.cost.usd.held_by
    yield from plan.cost.tokens.held_by


def _loops(plan: GraphValue) -> Iterator[LoopValue]:
    yield from _loops_in(plan.stages)
    for inner in plan.subgraphs:
        yield from _loops(inner)


def _loops_in(stages: Sequence[Stage]) -> Iterator[LoopValue]:
    for stage in stages:
        for step in stage:
            if not isinstance(step, str):
                yield step
                yield from _loops_in(step.stages)


def _short(name: str) -> str:
    return one_line(name, _NAME)


def _wrapped(text: str, first: str, rest: str | None = None) -> list[str]:
    """A text in lines of 80 columns."""
    return textwrap.wrap(
        one_line(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first) if rest is None else rest,
        break_on_hyphens=False,
        break_long_words=False,
    )
