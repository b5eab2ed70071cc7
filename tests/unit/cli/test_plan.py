from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

import devall as engine
from devall.cli.output_schemas import OUTPUTS, output_schema
from devall.estimates.texts import estimated
from devall.testing.scripted_model import ScriptedModels

EXAMPLES = sorted((Path(__file__).parents[3] / "yaml_instance").glob("*.yaml"))
ONE_AGENT = """
    graph:
      start: A
      nodes:
        - id: A
          type: agent
          config: {provider: openai, name: gpt-4o-mini, role: You answer., params: {max_tokens: 100}}
      edges: []
"""


def told(done):
    """What `--json` printed, checked against its schema."""
    found = json.loads(done.stdout)
    Draft202012Validator(output_schema("plan")).validate(found)
    TypeAdapter(OUTPUTS["plan"]).validate_json(done.stdout, strict=True)
    return found


def node_of(plan, name: str):
    return next(node for node in plan["nodes"] if node["node"] == name)


DICE = '''
    def throw(sides: int) -> str:
        """Throw a die.

        Args:
            sides: How many it has.
        """
        return "4" * 30
'''
CALLS = {"tool_calls": [{"name": "throw", "arguments": {"sides": n}} for n in (6, 8)]}
WORKFLOWS = {
    "tools": (
        """
        graph:
          start: A
          limits: {max_tool_calls: 9}
          nodes:
            - id: A
              type: agent
              config:
                provider: openai
                name: a
                role: You throw dice.
                params: {max_tokens: 40, tool_loop_limit: 4}
                tooling: {type: function, max_result_chars: 100, config: {tools: {name: throw}}}
          edges: []
        """,
        {"a": [CALLS, CALLS, CALLS, "done"]},
    ),
    "repairs": (
        """
        graph:
          start: A
          nodes:
            - id: A
              type: agent
              config:
                provider: openai
                name: a
                role: You write JSON.
                params: {max_tokens: 20}
                output_schema: {type: object, required: [n], properties: {n: {type: integer}}}
          edges: []
        """,
        {"a": ["no", '{"n": "x"}', '{"n": 1}']},
    ),
    "reflection": (
        """
        graph:
          start: A
          nodes:
            - id: A
              type: agent
              config:
                provider: openai
                name: a
                params: {max_tokens: 20}
                thinking: {type: reflection, config: {reflection_prompt: Is that all?}}
          edges: []
        """,
        {"a": ["the first answer", "the second answer"]},
    ),
    "retries": (
        """
        graph:
          start: A
          nodes:
            - id: A
              type: agent
              config:
                provider: openai
                name: a
                params: {max_tokens: 20}
                retry: {max_attempts: 3, min_wait_seconds: 0, max_wait_seconds: 0}
          edges: []
        """,
        {"a": [{"status": 503}, {"status": 503}, "at last"]},
    ),
    "map": (
        """
        graph:
          start: L
          end: B
          nodes:
            - {id: L, type: literal, config: {content: "red\\ngreen\\nblue"}}
            - id: A
              type: agent
              config: {provider: openai, name: a, role: A, params: {max_tokens: 9}}
            - id: B
              type: agent
              config: {provider: openai, name: b, role: B, params: {max_tokens: 9}}
          edges:
            - {from: L, to: A, dynamic: {type: map, split: {type: regex, pattern: "[a-z]+"}}}
            - {from: A, to: B}
        """,
        {"a": ["an answer"] * 3, "b": ["the end"]},
    ),
    "tree": (
        """
        graph:
          start: L
          end: A
          nodes:
            - {id: L, type: literal, config: {content: "1\\n2\\n3\\n4\\n5"}}
            - id: A
              type: agent
              config: {provider: openai, name: a, role: A, params: {max_tokens: 9}}
          edges:
            - from: L
              to: A
              dynamic: {type: tree, split: {type: regex, pattern: "[0-9]"}, config: {group_size: 2}}
        """,
        {"a": ["a sum"] * 6},
    ),
    "subgraph in a loop": (
        """
        graph:
          start: P
          end: Z
          nodes:
            - {id: P, type: passthrough}
            - id: S
              type: subgraph
              config:
                type: config
                config:
                  start: X
                  nodes:
                    - id: X
                      type: agent
                      config: {provider: openai, name: x, role: X, params: {max_tokens: 9}}
                    - id: Y
                      type: agent
                      config: {provider: openai, name: y, role: Y, params: {max_tokens: 9}}
                  edges: [{from: X, to: Y}]
            - {id: K, type: loop_counter, config: {max_iterations: 3}}
            - {id: Z, type: passthrough}
          edges:
            - {from: P, to: S}
            - {from: S, to: S}
            - {from: S, to: K}
            - {from: K, to: S}
            - {from: K, to: Z}
            - {from: S, to: Z, trigger: false}
        """,
        {"x": ["one more"] * 3, "y": ["and more"] * 3},
    ),
}
EXACT = {"tools": None, "tree": 6, "map": 4, "subgraph in a loop": 6, "reflection": 2, "repairs": 3}
"""Model calls of the plan, where they can be said beforehand."""


@pytest.mark.parametrize("name", WORKFLOWS)
def test_what_a_run_does_lies_within_its_plan(devall, write, name):
    text, script = WORKFLOWS[name]
    file = write("w.yaml", text)
    write("functions/function_calling/dice.py", DICE)
    plan = told(devall("plan", file, "--task", "three words here", "--json", code=0))
    models = ScriptedModels(script)
    result = engine.run_sync(file, task="three words here", model_source=models)
    assert result.status == "completed", result.error
    assert models.playback.unused() == {}
    whole = plan["graphs"][0]
    cost = whole["cost"]
    if EXACT.get(name):
        assert cost["model_calls"]["at_most"] == EXACT[name]
    assert cost["model_calls"]["at_most"] >= whole["at_least"]["model_calls"]
    assert whole["at_least"]["model_calls"] <= result.usage.model_calls
    assert result.usage.model_calls <= cost["attempts"]["at_most"]
    assert result.usage.tool_calls <= cost["tool_calls"]["at_most"]
    for node in plan["nodes"]:
        assert result.nodes[node["node"]].runs <= node["runs"]["at_most"]
        if node["agent"] is None:
            continue
        requests = models.requests[node["agent"]["model"]]
        sent = [estimated(each.messages, each.tools) for each in requests]
        assert sum(sent) <= node["cost"]["input_tokens"]["at_most"] * node["agent"]["attempts"]
        assert max(sent) <= node["agent"]["prompt"]["largest_request"]["at_most"]
        if name != "retries":
            assert len(requests) <= node["cost"]["model_calls"]["at_most"]
            assert sum(sent) <= node["cost"]["input_tokens"]["at_most"]


def test_there_are_examples():
    assert len(EXAMPLES) > 25


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_every_example_is_planned_in_80_columns(devall, file):
    done = devall("plan", file, "--task", "a task", code=0)
    assert done.stderr == ""
    assert "AT MOST" in done.stdout
    assert max(map(len, done.stdout.replace(str(file), "").splitlines())) <= 80


@pytest.mark.parametrize("name", ["deep_research", "demo_sub_graph", "demo_mcp", "demo_skills"])
def test_plans_of_examples_are_objects_of_the_schema(devall, project: Path, name):
    plan = told(devall("plan", project / f"yaml_instance/{name}.yaml", "--json", code=0))
    assert plan["nodes"]


def test_the_page_names_order_loops_tools_and_bounds(devall, project: Path):
    done = devall("plan", project / "yaml_instance/write_article.yaml", "--task", "trees", code=0)
    assert "2. loop, at most 4 rounds (max_iterations of Rounds):\n     1. Writer" in done.stdout
    done = devall("plan", project / "yaml_instance/demo_function_call.yaml", "--task", "x", code=0)
    assert "tools: " in done.stdout
    done = devall("plan", project / "yaml_instance/demo_mcp.yaml", "--task", "x", code=0)
    assert "tools: mcp_remote http://127.0.0.1:8001/mcp: not contacted" in done.stdout
    assert "set `limits.max_tool_calls` on the node or the graph" in " ".join(done.stdout.split())


def test_a_plan_needs_no_key_and_prices_are_those_of_the_list(devall, write, monkeypatch):
    for name in ("API_KEY", "OPENAI_API_KEY", "BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    keyed = ONE_AGENT.replace("role: You answer.", "role: You answer., api_key: '${API_KEY}'")
    plan = told(devall("plan", write("w.yaml", keyed), "--task", "x" * 400, "--json", code=0))
    agent = node_of(plan, "A")
    sent = agent["cost"]["input_tokens"]["at_most"]
    assert 200 < sent < 260, "twice a quarter of 400 bytes, and what stands around it"
    assert agent["cost"]["usd"]["at_most"] == pytest.approx(sent * 0.15e-6 + 100 * 0.6e-6, abs=1e-8)


def test_a_budget_that_the_worst_case_may_go_over_ends_with_5(devall, write):
    file = write("w.yaml", ONE_AGENT)
    devall("plan", file, "--task", "x", "--max-usd", "0.01", code=0)
    done = devall("plan", file, "--task", "x", "--max-usd", "0.00001", code=5)
    assert "AT MOST" in done.stdout
    assert "error [limit_reached]: the worst case is $0.0000" in done.stderr
    assert "more than --max-usd 1e-05" in done.stderr
    assert "max_usd: 1e-05" in done.stderr
    told_as_json = told(
        devall("plan", file, "--task", "x", "--max-usd", "0.00001", "--json", code=5)
    )
    assert told_as_json["exit_code"] == 5
    assert told_as_json["exceeded"][0]["option"] == "--max-usd"


def test_a_cost_that_nobody_knows_is_over_every_budget(devall, write):
    file = write("w.yaml", ONE_AGENT.replace("gpt-4o-mini", "nobody-knows"))
    done = devall("plan", file, "--task", "x", "--max-usd", "1000", code=5)
    assert "no price is known of nobody-knows (openai)" in done.stderr
    devall("plan", file, "--task", "x", "--max-usd", "0", "--provider", "local", code=0)


def test_tokens_and_time_have_their_bounds_too(devall, write):
    file = write("w.yaml", ONE_AGENT)
    assert (
        "--max-tokens 10"
        in devall("plan", file, "--task", "x", "--max-tokens", "10", code=6).stderr
    )
    devall("plan", file, "--task", "x", "--max-tokens", "1000", "--max-seconds", "3000", code=0)
    assert (
        "--max-seconds 5"
        in devall("plan", file, "--task", "x", "--max-seconds", "5", code=6).stderr
    )


def test_without_the_task_its_length_is_not_made_up(devall, write):
    plan = told(devall("plan", write("w.yaml", ONE_AGENT), "--json", code=0))
    assert plan["task_tokens"] is None
    asked = node_of(plan, "A")["agent"]["prompt"]
    assert asked["inputs"]["at_most"] is None
    assert asked["inputs"]["missing"][0]["key"] == "--task"
    assert asked["largest_request"]["at_most"] == 128_000, "the window of the model"


def test_units_that_are_not_known_are_assumed_or_named(devall, write):
    file = write(
        "w.yaml",
        """
        graph:
          start: A
          nodes:
            - {id: A, type: passthrough}
            - id: B
              type: agent
              config: {provider: openai, name: gpt-4o-mini, params: {max_tokens: 50}}
          edges:
            - {from: A, to: B, dynamic: {type: map, split: {type: json_path, json_path: names}}}
        """,
    )
    done = devall("plan", file, code=0)
    assert "per unit" in done.stdout
    assert "give --units" in done.stdout
    plan = told(devall("plan", file, "--units", "20", "--json", code=0))
    assert node_of(plan, "B")["units"] == "assumed"
    assert plan["graphs"][0]["cost"]["model_calls"]["at_most"] == 20
    known = told(devall("plan", file, "--task", '{"names": ["x", "y", "z"]}', "--json", code=0))
    assert node_of(known, "B")["units"] == "known"
    assert known["graphs"][0]["cost"]["model_calls"]["at_most"] == 3
    devall("plan", file, "--units", "0", code=2)


def test_limits_of_the_file_hold_the_worst_case_down(devall, write):
    text = ONE_AGENT.replace(
        "start: A", "start: A\n      limits: {max_usd: 0.00002, max_tokens: 70}"
    )
    plan = told(devall("plan", write("w.yaml", text), "--task", "x", "--json", code=0))
    cost = plan["graphs"][0]["cost"]
    assert (cost["usd"]["at_most"], cost["usd"]["rests_on"]) == (0.00002, ["limits.max_usd"])
    assert (cost["tokens"]["at_most"], cost["tokens"]["rests_on"]) == (70, ["limits.max_tokens"])
    assert any("calls under way may go over them" in note for note in plan["notes"])


def test_other_models_are_planned_with(devall, write, project: Path):
    file = write("w.yaml", ONE_AGENT)
    plan = told(devall("plan", file, "--task", "x", "--model", "A=gpt-4o", "--json", code=0))
    assert node_of(plan, "A")["agent"]["model"] == "gpt-4o"
    done = devall("plan", file, "--task", "x", "--provider", "ollama", "--model", "qwen3", code=0)
    assert "Models of ollama run on your own machine and cost nothing." in done.stdout
    short = devall(
        "plan", project / "yaml_instance/demo_sub_graph.yaml", "--model", "Writer=gpt-4o"
    )
    assert "Write/Writer: gpt-4o (openai)" in short.stdout
    assert "there are A" in devall("plan", file, "--model", "a=gpt-4o", code=2).stderr


def test_what_is_wrong_with_the_call_or_the_file_is_told_as_elsewhere(devall, write):
    assert "there is no file none.yaml" in devall("plan", "none.yaml", code=2).stderr
    wrong = write("wrong.yaml", ONE_AGENT.replace("start: A", "start: B"))
    assert "wrong.yaml:3:" in devall("plan", wrong, code=3).stderr
    found = told(devall("plan", wrong, "--json", code=3))
    assert found["error"]["code"] == "config"
    file = write("w.yaml", ONE_AGENT)
    devall("plan", file, "--task", "x", "--task-file", "y", code=2)
    devall("plan", file, "--max-usd", "-1", code=2)


def test_a_function_that_does_not_import_is_said_and_not_counted(devall, write):
    tooling = "tooling: {type: function, config: {tools: {name: broken}}}, role: You answer."
    file = write("w.yaml", ONE_AGENT.replace("role: You answer.", tooling))
    write(
        "functions/function_calling/broken.py",
        "def broken() -> str: ...\nimport nothing_of_that_name",
    )
    done = devall("plan", file, "--task", "x")
    assert done.returncode in {0, 3}
    assert "nothing_of_that_name" in done.stdout + done.stderr


def test_what_servers_offered_the_last_time_is_known(
    devall, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    file = project / "yaml_instance/demo_mcp_local.yaml"
    before = told(devall("plan", file, "--task", "x", "--json", code=0))
    servers = [s for n in before["nodes"] if n["agent"] for s in n["agent"]["sources"]]
    assert [each["state"] for each in servers] == ["not contacted"]
    result = engine.run_sync(
        file, task="1 6", logs_dir=tmp_path / "logs", model_source=ScriptedModels({})
    )
    assert result.status == "completed", result.error
    after = told(devall("plan", file, "--task", "x", "--json", "--logs-dir", tmp_path / "logs"))
    servers = [s for n in after["nodes"] if n["agent"] for s in n["agent"]["sources"]]
    assert Counter(each["state"] for each in servers) == {
        f"not contacted; its tools as of run {result.run_id}": 1
    }
    assert servers[0]["tools"]


def test_the_page_shows_what_is_printed(devall, write, project: Path):
    blocks = (project / "docs/plan.md").read_text("utf-8").split("```")
    workflow = next(block for block in blocks if block.startswith("yaml\n# essay.yaml"))
    shown = next(block for block in blocks if block.startswith("\nessay.yaml: "))
    write("essay.yaml", workflow.removeprefix("yaml\n"))
    done = devall("plan", "essay.yaml", "--task", "Why do cities plant trees?", code=0)
    assert done.stdout.startswith(shown.strip() + "\n\nWHAT THIS RESTS ON")
