"""Workflows of agents at random, run and held against their estimates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from ruamel.yaml import YAML

import devall
from devall.cli.plan_facts import gather
from devall.core.messages import user
from devall.estimates.estimate import estimate
from devall.estimates.texts import estimated
from devall.graph.checked import load_workflow
from devall.graph.compile import compile_graph
from devall.nodes.crew import Overrides
from devall.testing.scripted_model import ScriptedModels

SAY = '''
    def say(n: int) -> str:
        """Say something.

        Args:
            n: How much.
        """
        return "é" * n
'''
Write = Callable[[str, str], Path]
AGAIN = {"type": "keyword", "config": {"any": ["again"]}}
DONE = {"type": "keyword", "config": {"none": ["again"]}}


async def hold(workflow: Any, task: str, reply: Callable[[str], Any], place: Path) -> str:
    """Run a workflow, its answers given by `reply`, and compare; its status.

    What agents are asked and say is measured as runs estimate it, which is half of what `at most`
    counts for texts that are known.
    """
    with place.open("w", encoding="utf-8") as file:
        YAML(typ="safe").dump(workflow, file)
    loaded = load_workflow(place)
    facts = await gather(
        loaded,
        task=user(task),
        overrides=Overrides(),
        ex_tools=(),
        functions_dir=None,
        units=40,
        logs=place.parent / "logs",
    )
    found = estimate(compile_graph(loaded.root), facts)
    nodes = found.all_nodes()
    names = [node.agent.model for node in nodes if node.agent is not None]
    models = ScriptedModels({name: [lambda _, name=name: reply(name)] * 500 for name in names})
    result = await devall.run(loaded, task=task, model_source=models)
    for node in nodes:
        runs = result.nodes[node.name].runs
        assert node.runs.value is not None
        assert runs <= node.runs.value, node.name
        assert runs >= node.least.runs or result.status != "completed", node.name
        if node.agent is None:
            continue
        requests = models.requests.get(node.agent.model, [])
        sizes = [estimated(each.messages, each.tools) for each in requests]
        cost, largest = node.cost, node.agent.largest.input_tokens
        assert cost.model_calls.value is not None
        assert len(requests) <= cost.model_calls.value, node.name
        used = result.usage_by_node.get(node.name)
        assert cost.tool_calls.value is not None
        assert (used.tool_calls if used else 0) <= cost.tool_calls.value, node.name
        if cost.input_tokens.value is not None and largest.value is not None:
            assert sum(sizes) <= cost.input_tokens.value, node.name
            assert max(sizes, default=0) <= largest.value, node.name
    return result.status


def crew(random: Random, name: str) -> dict[str, Any]:
    """An agent of any kind."""
    config: dict[str, Any] = {
        "provider": "openai",
        "name": name.lower(),
        "role": "r" * random.randint(0, 300),
        "params": {"max_tokens": 30, "tool_loop_limit": random.randint(1, 4)},
        "input_mode": random.choice(["messages", "prompt"]),
    }
    if random.random() < 0.6:
        most = random.choice([50, 400])
        tools = {"tools": {"name": "say"}}
        config["tooling"] = {"type": "function", "max_result_chars": most, "config": tools}
    if random.random() < 0.3:
        config["output_schema"] = {"type": "object", "required": ["a"]}
    if random.random() < 0.3:
        asked = {"reflection_prompt": "Sure? " * random.randint(1, 20)}
        config["thinking"] = {"type": "reflection", "config": asked}
    window = random.choice([0, 0, -1, 1, 3, 6])
    return {"id": name, "type": "agent", "context_window": window, "config": config}


@pytest.mark.parametrize("seed", range(4))
async def test_agents_with_tools_repairs_and_thoughts_in_a_loop(seed: int, write: Write) -> None:
    random = Random(seed)
    place = write("w.yaml", "")
    write("functions/function_calling/say.py", SAY)
    statuses: list[str] = []
    for _ in range(12):
        nodes = [crew(random, name) for name in "ABC"]
        armed = {n["id"].lower() for n in nodes if "tooling" in n["config"]}

        def reply(name: str, armed: set[str] = armed) -> Any:
            told = random.choice(["again " * random.randint(1, 15), '{"a": 1}', '{"a": "xxxxxx"}'])
            if name not in armed or random.random() < 0.5:
                return told
            count = random.randint(1, 3)
            sizes = [random.choice([3, 200, 1000]) for _ in range(count)]
            return {"tool_calls": [{"name": "say", "arguments": {"n": n}} for n in sizes]}

        def way(one: str, other: str, **more: Any) -> dict[str, Any]:
            return {"from": one, "to": other, "keep_message": random.random() < 0.3, **more}

        counter = {"max_iterations": random.randint(1, 4)}
        nodes.append({"id": "K", "type": "loop_counter", "config": counter})
        passing = {"only_last_message": random.random() < 0.5}
        nodes.append({"id": "Z", "type": "passthrough", "config": passing})
        edges = [
            way("A", "B"),
            way("B", "A", condition=AGAIN),
            way("B", "K", condition=AGAIN),
            way("K", "A"),
            way("K", "Z"),
            way("B", "Z", condition=DONE),
            way("A", "Z", trigger=False),
            way("Z", "C"),
        ]
        graph = {"start": "A", "end": "C", "limits": {"max_tool_calls": 60}}
        workflow = {"graph": graph | {"nodes": nodes, "edges": edges}}
        statuses.append(await hold(workflow, "t" * random.randint(0, 500), reply, place))
    assert statuses.count("completed") > 6


def plain(random: Random, name: str, model: str = "") -> dict[str, Any]:
    config = {
        "provider": "openai",
        "name": (model or name).lower(),
        "role": "r" * random.randint(0, 60),
        "params": {"max_tokens": 30},
    }
    window = random.choice([0, 0, 0, -1, 2])
    return {"id": name, "type": "agent", "context_window": window, "config": config}


def inner(random: Random, name: str) -> dict[str, Any]:
    """A subgraph of two agents, one of them perhaps in a loop."""
    edges: list[Any] = [{"from": "X", "to": "Y", "keep_message": random.random() < 0.3}]
    if random.random() < 0.5:
        edges.append({"from": "Y", "to": "Y", "condition": AGAIN})
    graph = {
        "start": random.choice([["X"], ["X", "Y"]]),
        "end": "Y",
        "limits": {"max_loop_iterations": random.randint(1, 3), "on_loop_limit": "continue"},
        "nodes": [plain(random, "X", f"{name}x"), plain(random, "Y", f"{name}y")],
        "edges": edges,
    }
    return {"id": name, "type": "subgraph", "config": {"type": "config", "config": graph}}


@pytest.mark.parametrize("seed", range(4))
async def test_units_of_agents_passthroughs_and_subgraphs(seed: int, write: Write) -> None:
    random = Random(seed)
    place = write("w.yaml", "")

    def reply(_: str) -> str:
        words = ["again", "red", "blue", "x" * 8]
        return "\n".join(random.choice(words) for _ in range(random.randint(1, 5)))

    def way(one: str, other: str, **more: Any) -> dict[str, Any]:
        return {"from": one, "to": other, "keep_message": random.random() < 0.2, **more}

    def target(name: str) -> dict[str, Any]:
        passing = {"only_last_message": random.random() < 0.5}
        found = {"id": name, "type": "passthrough", "config": passing}
        return random.choice([plain(random, name), inner(random, name), found])

    for _ in range(12):
        words = {"type": "regex", "pattern": r"\w+"}
        split = random.choice([{"type": "message"}, words, words | {"on_no_match": "empty"}])
        how = {
            "max_parallel": random.randint(1, 4),
            "group_size": random.randint(2, 3),
            "on_unit_error": random.choice(["fail", "skip"]),
        }
        dynamic = {"type": random.choice(["map", "map", "tree"]), "split": split, "config": how}
        literal = {"id": "A", "type": "literal", "config": {"content": "one two three four"}}
        source = random.choice([plain(random, "A"), literal, {"id": "A", "type": "passthrough"}])
        nodes = [{"id": "S", "type": "passthrough"}, source, target("B"), target("C")]
        nodes.append(plain(random, "D"))
        again = {"dynamic": {"type": "map", "split": {"type": "message"}}}
        edges = [
            way("S", "A"),
            way("A", "B", dynamic=dynamic),
            way("B", "C", **(again if random.random() < 0.4 else {})),
            way("C", "D"),
        ]
        if random.random() < 0.6:
            edges.append(way("S", "B"))
        if random.random() < 0.5:
            counter = {"max_iterations": random.randint(1, 3)}
            nodes.append({"id": "K", "type": "loop_counter", "config": counter})
            edges += [
                way("C", "A", condition=AGAIN),
                way("C", "K", condition=AGAIN),
                way("K", "A"),
                way("K", "D"),
            ]
        limits = {"max_loop_iterations": 3, "on_loop_limit": "continue"}
        graph = {"start": "S", "end": "D", "nodes": nodes, "edges": edges, "limits": limits}
        task = "one two " * random.randint(1, 3)
        assert await hold({"graph": graph}, task, reply, place) == "completed"
