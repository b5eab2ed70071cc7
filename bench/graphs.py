"""The workflows that are measured, as the text of their files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

TWO = """\
graph:
  start: A
  nodes:
    - {id: A, type: literal, config: {content: hello}}
    - {id: B, type: passthrough}
  edges:
    - {from: A, to: B}
"""
"""Nothing to wait for, and no model."""

LOOP = """\
graph:
  start: A
  nodes:
    - {id: A, type: passthrough}
    - {id: B, type: passthrough}
    - {id: C, type: passthrough}
  edges:
    - {from: A, to: B}
    - {from: B, to: A, condition: {type: keyword, config: {any: [again]}}}
    - {from: B, to: C, condition: {type: keyword, config: {none: [again]}}}
"""
"""The smallest graph with a cycle, for which networkx is imported."""


def tool_loop(rounds: int) -> str:
    """An agent with a tool, again and again until it says `stop`; at most so many rounds."""
    return f"""\
graph:
  start: A
  limits: {{max_loop_iterations: {rounds}}}
  nodes:
    - id: A
      type: agent
      config:
        provider: openai
        name: m
        tooling: {{type: function, idempotent: true, tools: [{{name: "kit:note"}}]}}
    - {{id: Z, type: passthrough}}
  edges:
    - {{from: A, to: A, condition: {{type: keyword, config: {{none: [stop]}}}}}}
    - {{from: A, to: Z, condition: {{type: keyword, config: {{any: [stop]}}}}}}
"""


def chain(count: int) -> str:
    """Literals and passthroughs by turns, each behind the other."""
    nodes = [_node(f"n{at}", at) for at in range(count)]
    return _file("n0", nodes, [(f"n{at}", f"n{at + 1}") for at in range(count - 1)])


def wide(count: int) -> str:
    """One node, a layer of literals and passthroughs, one node."""
    layer = range(count - 2)
    nodes = [_node("first", 1), *(_node(f"n{at}", at) for at in layer), _node("last", 1)]
    ways = [("first", f"n{at}") for at in layer] + [(f"n{at}", "last") for at in layer]
    return _file("first", nodes, ways)


def agents(count: int, *, stream: bool) -> str:
    """One literal, and so many agents beside each other behind it."""
    names = [f"A{at}" for at in range(count)]
    nodes = [_node("L", 0), *(_agent(name, "m", stream=stream) for name in names)]
    return _file("L", nodes, [("L", name) for name in names])


def layers(count: int, each: int) -> str:
    """One literal, and layers of agents, each agent behind one of the layer before."""
    nodes, ways = [_node("L", 0)], list[tuple[str, str]]()
    before = ["L"]
    for layer in range(count):
        names = [f"A{layer}_{at}" for at in range(each)]
        nodes += (_agent(name, "m", stream=True) for name in names)
        ways += [(before[at % len(before)], name) for at, name in enumerate(names)]
        before = names
    return _file("L", nodes, ways)


def branches(one: Sequence[str], other: Sequence[str]) -> str:
    """Two branches of agents with the given models, between one node and one node."""
    nodes = [_node("L", 0)]
    ways: list[tuple[str, str]] = []
    for branch, models in (("A", one), ("B", other)):
        names = [f"{branch}{at}" for at in range(len(models))]
        nodes += [_agent(*each, stream=True) for each in zip(names, models, strict=True)]
        ways += zip(["L", *names], [*names, "J"], strict=True)
    return _file("L", [*nodes, _node("J", 1)], ways)


def _node(name: str, number: int) -> str:
    if number % 2:
        return f"    - id: {name}\n      type: passthrough\n"
    config = f"      config:\n        content: text {number}\n"
    return f"    - id: {name}\n      type: literal\n{config}"


def _agent(name: str, model: str, *, stream: bool) -> str:
    params = "" if stream else "        params: {stream: false}\n"
    config = f"      config:\n        provider: openai\n        name: {model}\n{params}"
    return f"    - id: {name}\n      type: agent\n{config}"


def _file(start: str, nodes: Iterable[str], ways: Iterable[tuple[str, str]]) -> str:
    edges = "".join(f"    - from: {source}\n      to: {target}\n" for source, target in ways)
    return f"graph:\n  start: {start}\n  nodes:\n{''.join(nodes)}  edges:\n{edges}"
