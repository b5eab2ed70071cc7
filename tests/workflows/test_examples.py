"""The example workflows, each run as its user would, against a scripted model."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.config.agents import AgentConfig
from devall.config.nodes import AgentNode
from devall.core.events import ToolCallFinished
from devall.engine.result import RunResult
from devall.loading.loader import LoadedGraph
from devall.testing.chat_server import ChatServer
from devall.testing.recorder import Recorder

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = PROJECT / "yaml_instance"


async def example(
    name: str,
    script: Mapping[str, Sequence[Any]],
    task: str,
    monkeypatch: pytest.MonkeyPatch,
    **options: Any,
) -> tuple[RunResult, ChatServer]:
    """A run of an example whose agents' models are called as the nodes are."""
    async with ChatServer(script, strict=True) as server:
        for key, value in server.env.items():
            monkeypatch.setenv(key, value)
        models = {node: node for node in script}
        result = await devall.run(FOLDER / f"{name}.yaml", task=task, models=models, **options)
        assert result.status == "completed", result.error
        assert not server.unused()
    return result, server


def said(server: ChatServer, model: str, call: int = 0) -> list[tuple[str, str]]:
    return [(m["role"], m["content"]) for m in server.calls[model][call]["messages"]]


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
DRAW = {"tool_calls": [{"name": "rand_num", "arguments": {"a": 5, "b": 5}}]}
POEM = [DRAW, "Five lines for the number 5."]


@pytest.fixture
def mcp_url() -> Iterator[str]:
    """The URL of the example server, over HTTP."""
    command = [sys.executable, str(PROJECT / "mcp_example" / "mcp_server.py"), "--http"]
    with subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()


async def test_demo_mcp(mcp_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    result, server = await example(
        "demo_mcp",
        {"A": POEM, "B": ["Short."]},
        "5 5",
        monkeypatch,
        variables={"MCP_URL": mcp_url},
        on_event=recorder,
    )
    assert result.answer == "Short."
    assert [event.result for event in recorder.of(ToolCallFinished)] == ["5"]
    assert server.calls["A"][0]["tool_choice"] == "required"
    assert said(server, "B")[-1] == ("user", "Five lines for the number 5.")


@pytest.mark.parametrize("python", [sys.executable, None], ids=["named", "not named"])
async def test_demo_mcp_local(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, python: str | None
) -> None:
    monkeypatch.delenv("PYTHON", raising=False)
    if python is None:
        monkeypatch.setenv("PATH", str(tmp_path))  # there is no other `python` than devall's
    result, server = await example(
        "demo_mcp_local",
        {"A": POEM, "B": ["Short."]},
        "5 5",
        monkeypatch,
        variables={} if python is None else {"PYTHON": python},
    )
    assert result.answer == "Short."
    assert said(server, "A", 1)[-1] == ("tool", "5")


async def test_demo_function_call(monkeypatch: pytest.MonkeyPatch) -> None:
    number = {"tool_calls": [{"name": "get_city_num", "arguments": {"city": "Beijing"}}]}
    weather = {"tool_calls": [{"name": "get_weather", "arguments": {"city_num": 3701}}]}
    result, server = await example(
        "demo_function_call",
        {"Forecaster": [number, weather, "It is fine."]},
        "What is the weather in Beijing?",
        monkeypatch,
    )
    assert result.answer == "It is fine."
    assert json.loads(said(server, "Forecaster", 1)[-1][1]) == {"city_num": 3701}


async def test_demo_code_is_mended_until_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    result, server = await example(
        "demo_code",
        {
            "Coder": ["```python\nprint(1 / 0)\n```", "```python\nprint(2 + 3)\n```"],
            "Reporter": ["It shows 5."],
        },
        "Add two and three.",
        monkeypatch,
    )
    assert result.answer == "It shows 5."
    assert "ZeroDivisionError" in said(server, "Coder", 1)[-1][1]
    assert said(server, "Reporter")[-1] == ("user", "5\n")


async def test_demo_human_goes_round_until_the_editor_accepts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result, _ = await example(
        "demo_human",
        {"Writer": ["Bread.", "Fresh bread."]},
        "A slogan for a bakery",
        monkeypatch,
        answers={"Editor": ["longer", "accept"]},
    )
    assert result.answer == "Fresh bread."


async def test_demo_loop_counter_ends_after_three_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = await example(
        "demo_loop_counter",
        {"Writer": ["one", "two", "three"], "Critic": ["better", "better", "better"]},
        "A haiku about rain",
        monkeypatch,
    )
    assert result.answer == "three"


async def test_demo_majority_voting(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = await example(
        "demo_majority_voting",
        {"Careful": ["51"], "Quick": ["52"], "Sceptic": ["51"]},
        "What is 17 times 3?",
        monkeypatch,
    )
    assert result.answer == "51"


async def test_demo_sub_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    result, server = await example(
        "demo_sub_graph",
        {
            "Planner": ["Tell of storms."],
            "Write/Writer": ["one", "two", "three"],
            "Write/Critic": ["more", "more", "more"],
            "Title/Titler": ["The Lamp"],
        },
        "A story about a lighthouse",
        monkeypatch,
    )
    assert result.answer == "The Lamp"
    assert said(server, "Write/Writer")[-1] == ("user", "Tell of storms.")
    assert said(server, "Title/Titler")[-1] == ("user", "three")


async def test_demo_context_reset_keeps_the_brief_until_there_is_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result, server = await example(
        "demo_context_reset",
        {
            "Copywriter": [
                "We mend bikes.",
                "We mend your bike today.",
                "Bikes.",
                "We lend bikes.",
            ],
            "Editor": ["We REFINE [whose?] bikes.", "**FINE** Mend it.", "[what?] Bikes.", "FINE"],
        },
        "A leaflet",
        monkeypatch,
        answers={"Client": ["A poster: we lend bikes", "ok."]},
    )
    assert result.answer == "We lend bikes."
    seen = [said(server, "Copywriter", call)[1:] for call in range(4)]
    assert seen[0] == [("user", "A leaflet")]
    assert seen[1] == [("user", "A leaflet"), ("user", "We REFINE [whose?] bikes.")]
    assert seen[2] == [("user", "A poster: we lend bikes")]
    assert seen[3] == [("user", "A poster: we lend bikes"), ("user", "[what?] Bikes.")]


async def test_demo_blackboard_shows_each_agent_what_the_others_wrote(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result, server = await example(
        "demo_blackboard",
        {"Place": ["The park, at noon."], "People": ["Ida cooks."], "Money": ["The plan."]},
        "A street festival",
        monkeypatch,
    )
    assert result.answer == "The plan."
    assert "The park, at noon." not in str(said(server, "Place"))
    assert "The park, at noon." in str(said(server, "People"))
    board = str(said(server, "Money"))
    assert board.index("Ida cooks.") < board.index("The park, at noon.")
    assert all(said(server, name)[-1] == ("user", "A street festival") for name in server.calls)


@pytest.mark.parametrize("embedding", ["openai", "local"])
async def test_demo_simple_memory_remembers_from_run_to_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, embedding: str
) -> None:
    options: dict[str, Any] = {
        "variables": {"MEMORY": str(tmp_path / "memory.json"), "EMBEDDING": embedding}
    }
    name = "demo_simple_memory"
    for task in ("My daughter Ida is allergic to nuts.", "My car is red."):
        await example(name, {"Assistant": ["I see."]}, task, monkeypatch, **options)
    result, server = await example(
        name,
        {"Assistant": ["A cake without nuts."]},
        "Is my daughter Ida allergic to a cake with nuts?",
        monkeypatch,
        **options,
    )
    assert result.answer == "A cake without nuts."
    assert "Ida is allergic to nuts." in str(said(server, "Assistant"))


async def test_demo_file_memory_answers_from_the_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "bread.md").write_text("# Bread\n\nSour dough rests for twelve hours.\n")
    (docs / "tea.md").write_text("# Tea\n\nGreen tea is made with water of 70 degrees.\n")
    variables = {"DOCS": str(docs), "INDEX": str(tmp_path / "index"), "EMBEDDING": "local"}
    _, server = await example(
        "demo_file_memory",
        {"Librarian": ["Twelve hours (bread.md)."]},
        "How long does sour dough rest?",
        monkeypatch,
        variables=variables,
    )
    shown = str(said(server, "Librarian"))
    assert "rests for twelve hours" in shown
    assert "bread.md" in shown


async def test_demo_skills_refuses_what_the_active_skill_does_not_allow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorder = Recorder()
    use = {"tool_calls": [{"name": "activate_skill", "arguments": {"name": "release-notes"}}]}
    delete = {"tool_calls": [{"name": "delete_path", "arguments": {"path": "RELEASE.md"}}]}
    _, server = await example(
        "demo_skills",
        {"Writer": [use, delete, "Done."]},
        "Export orders as CSV",
        monkeypatch,
        on_event=recorder,
    )
    assert [event.is_error for event in recorder.of(ToolCallFinished)] == [False, True]
    assert "Sort the commits" in said(server, "Writer", 1)[-1][1]
    assert "not allowed while skill `release-notes`" in said(server, "Writer", 2)[-1][1]


async def test_demo_attachments_shows_the_files_to_the_first_agent_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cup.png").write_bytes(base64.b64decode(PNG))
    (tmp_path / "menu.txt").write_text("Tea 3.50")
    result, server = await example(
        "demo_attachments",
        {"Viewer": ["cup.png: a red cup."], "Writer": ["cup.png: A red cup on a table."]},
        "For our shop.",
        monkeypatch,
        attachments=[tmp_path / "cup.png", tmp_path / "menu.txt"],
    )
    assert result.answer == "cup.png: A red cup on a table."
    shown = server.calls["Viewer"][0]["messages"][-1]["content"]
    assert [part["image_url"]["url"] for part in shown if part["type"] == "image_url"] == [
        f"data:image/png;base64,{PNG}"
    ]
    assert "Tea 3.50" in str(shown)
    assert said(server, "Writer")[1:] == [("user", "cup.png: a red cup.")]


PLOT = """\
import csv
rows = list(csv.DictReader(open("sales.csv")))
totals = {}
for row in rows:
    totals[row["region"]] = totals.get(row["region"], 0) + float(row["revenue"])
bars = "".join(
    f'<rect x="{40 * number}" y="0" width="30" height="{total / 500:.0f}"/>'
    for number, total in enumerate(totals.values())
)
open("plot.svg", "w").write(f'<svg xmlns="http://www.w3.org/2000/svg">{bars}</svg>')
print(totals)
"""


async def test_data_analysis_really_calculates_and_leaves_plot_and_report(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = "# Sales\n\n**North.**\n\n![plot](plot.svg)\n"
    save = {"name": "save_file", "arguments": {"path": "report.md", "content": report}}
    result, server = await example(
        "data_analysis",
        {
            "Analyst": [
                {"tool_calls": [{"name": "execute_code", "arguments": {"code": PLOT}}]},
                "North: 23445. The plot is plot.svg.",
            ],
            "Reporter": [{"tool_calls": [save]}, "North grows."],
        },
        "Which region grows?",
        monkeypatch,
        attachments=[FOLDER / "data" / "sales.csv"],
        logs_dir=tmp_path,
    )
    assert result.answer == "North grows."
    assert "'north': 23445.0" in said(server, "Analyst", 1)[-1][1]
    assert result.logs_dir is not None
    files = result.logs_dir / "workspace"
    assert (files / "plot.svg").read_text().count("<rect") == 3
    assert (files / "report.md").read_text() == report


async def test_software_team_leaves_the_code_that_passed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def save(path: str, content: str) -> dict[str, Any]:
        arguments = {"path": path, "content": content}
        return {"tool_calls": [{"name": "save_file", "arguments": arguments}]}

    tests = (
        "import unittest, solution\n\nclass T(unittest.TestCase):\n"
        "    def test_it(self): self.assertEqual(solution.double(3), 6)\n"
    )
    code = "def double(n):\n    return n * 2\n"
    result, server = await example(
        "software_team",
        {
            "Architect": ["double(n)"],
            "Tester": [save("test_solution.py", tests), "test_it"],
            "Programmer": ["I forgot to save.", save("solution.py", code), "Saved."],
            "Reporter": ["It doubles."],
        },
        "A function that doubles",
        monkeypatch,
        logs_dir=tmp_path,
    )
    assert result.answer == "It doubles."
    assert "No module named 'solution'" in said(server, "Programmer", 1)[-1][1]
    assert result.logs_dir is not None
    assert (result.logs_dir / "workspace" / "solution.py").read_text() == code


async def test_blender_builder_goes_on_until_the_judge_accepts_the_picture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def call(name: str, /, **arguments: Any) -> dict[str, Any]:
        return {"tool_calls": [{"name": name, "arguments": arguments}]}

    def make(name: str) -> dict[str, Any]:
        return call("execute_blender_code", code=f'bpy.context.object.name = "{name}"')

    recorder = Recorder()
    stand_in = Path(__file__).with_name("blender_stand_in.py")
    result, server = await example(
        "blender_builder",
        {
            "Planner": ["A tower on a rock."],
            "Builder": [
                call("get_scene_info"),
                make("Tower"),
                "Tower",
                make("Rock"),
                "Tower, Rock",
            ],
            "Judge": [
                call("get_viewport_screenshot"),
                "1. There is no rock.",
                call("get_scene_info"),
                "ACCEPTED",
            ],
        },
        "A lighthouse",
        monkeypatch,
        variables={"UVX": sys.executable, "BLENDER_MCP": str(stand_in)},
        on_event=recorder,
    )
    assert result.answer == "Tower, Rock"
    offered = {
        name: [tool["function"]["name"] for tool in server.calls[name][0]["tools"]]
        for name in ("Builder", "Judge")
    }
    assert sorted(offered["Builder"]) == [
        "execute_blender_code",
        "get_object_info",
        "get_scene_info",
    ]
    assert sorted(offered["Judge"]) == ["get_scene_info", "get_viewport_screenshot"]
    assert f"data:image/png;base64,{PNG}" in str(server.calls["Judge"][1]["messages"])
    assert "A tower on a rock." in str(said(server, "Judge", 2))
    assert said(server, "Builder", 3)[-1] == ("user", "1. There is no rock.")
    assert json.loads(recorder.of(ToolCallFinished)[-1].result) == {
        "objects": ["Camera", "Light", "Tower", "Rock"]
    }


def heard(server: ChatServer, model: str, call: int = 0) -> str:
    """All that a model was told by others than its role, as one text."""
    return "\n".join(text for role, text in said(server, model, call) if role != "system")


async def test_demo_edge_transform_gives_the_picker_names_without_reasons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = "Five:\n- Solara: of the sun\n2. **Day's Eye**: an old word"
    _, server = await example(
        "demo_edge_transform",
        {"Namer": [names], "Picker": ["Both.\nName: Solara"]},
        "A lamp",
        monkeypatch,
    )
    assert heard(server, "Picker") == "Solara\nDay's Eye"


async def test_demo_sub_graph_path_reviews_the_text_under_each_aim(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, server = await example(
        "demo_sub_graph_path",
        {
            "Style/Reviewer": ["all of style"],
            "Style/Sifter": ["style"],
            "Facts/Reviewer": ["all of facts"],
            "Facts/Sifter": ["facts"],
            "Editor": ["Done."],
        },
        "Rome in a day",
        monkeypatch,
        variables={"LANGUAGE": "Latin"},
    )
    for part, aim in (("Style", "short sentences"), ("Facts", "need a source")):
        assert aim in heard(server, f"{part}/Reviewer")
        assert "Rome in a day" in heard(server, f"{part}/Reviewer")
        assert "in Latin" in said(server, f"{part}/Sifter")[0][1]
    for text in ("Rome in a day", "style", "facts"):
        assert text in heard(server, "Editor")
    assert "all of" not in heard(server, "Editor")


async def test_code_review_shows_the_lead_the_diff_and_every_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def finding(text: str) -> str:
        found = {"file": "a.py", "line": 1, "severity": "minor", "text": text}
        return json.dumps({"findings": [found]})

    verdict = {"verdict": "approve", "summary": "Fine.", "findings": []}
    result, server = await example(
        "code_review",
        {
            "Bugs": [finding("a bug")],
            "Security": [finding("a hole")],
            "Tests": [finding("no test")],
            "Lead": [json.dumps(verdict)],
        },
        "+++ b/a.py",
        monkeypatch,
    )
    assert json.loads(result.answer or "") == verdict
    for text in ("+++ b/a.py", "a bug", "a hole", "no test"):
        assert text in heard(server, "Lead")
    assert all("+++ b/a.py" in heard(server, model) for model in server.calls)


async def test_software_team_gives_the_programmer_the_design_and_then_the_tests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passing = "import unittest\n\nclass T(unittest.TestCase):\n    def test_it(self): pass\n"
    save = {"name": "save_file", "arguments": {"path": "test_solution.py", "content": passing}}
    _, server = await example(
        "software_team",
        {
            "Architect": ["double(n)"],
            "Tester": [{"tool_calls": [save]}, "test_it: nothing"],
            "Programmer": ["Saved."],
            "Reporter": ["It doubles."],
        },
        "A function that doubles",
        monkeypatch,
    )
    assert heard(server, "Programmer") == "double(n)\ntest_it: nothing"


async def test_deep_research_tells_the_author_the_question_and_what_was_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chapter = {"title": "Summary", "level": 1, "content": "Nothing is known."}
    result, server = await example(
        "deep_research",
        {
            "Planner": [json.dumps({"parts": ["trees"]})],
            "Researcher": ["Nothing was found."],
            "Author": [
                {"tool_calls": [{"name": "report_create_chapter", "arguments": chapter}]},
                "Summary",
            ],
            "Editor": ["Nothing to change."],
        },
        "How do cities cool themselves?",
        monkeypatch,
    )
    assert result.answer == "# Summary\n\nNothing is known.\n"
    assert heard(server, "Researcher") == "trees"
    assert "How do cities cool themselves?" in heard(server, "Author")
    assert "Nothing was found." in heard(server, "Author")


@pytest.mark.parametrize(
    ("desk", "node"), [("billing", "Billing"), ("technical", "Technical"), ("orders", "Orders")]
)
async def test_support_desk_gives_the_mail_to_the_desk_that_it_is_for(
    monkeypatch: pytest.MonkeyPatch, desk: str, node: str
) -> None:
    route = {"desk": desk, "anger": 7, "refund": 100, "language": "English"}
    result, server = await example(
        "support_desk",
        {"Router": [json.dumps(route)], node: ["Yes."], "Answer": ["Yes, gladly."]},
        "Can I pay later?",
        monkeypatch,
    )
    assert result.answer == "Yes, gladly."
    assert heard(server, node) == "Can I pay later?"
    assert heard(server, "Answer") == "Yes."


async def test_triage_issue_goes_on_with_the_humans_word(monkeypatch: pytest.MonkeyPatch) -> None:
    triage = {
        "kind": "bug",
        "priority": "urgent",
        "labels": ["api"],
        "summary": "All data is gone",
        "missing": [],
    }
    result, _ = await example(
        "triage_issue",
        {"Triage": [json.dumps(triage)]},
        "All data is gone",
        monkeypatch,
        answers={"Duty": "Ida takes it."},
    )
    assert result.answer == "Ida takes it."


async def test_translate_text_joins_five_paragraphs_in_two_layers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result, server = await example(
        "translate_text",
        {"Translator": list("ABCDE"), "Joiner": ["A-D", "E", "A-E"]},
        "one\n\ntwo\n\n\nthree\n\nfour\n\nfive\n",
        monkeypatch,
        variables={"LANGUAGE": "French"},
    )
    assert result.answer
    asked = [heard(server, "Translator", call) for call in range(5)]
    assert sorted(asked) == ["five", "four", "one", "three", "two"]
    assert sorted(len(said(server, "Joiner", call)) for call in range(3)) == [2, 3, 5]


async def test_write_article_reminds_the_critic_of_the_brief_in_every_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, server = await example(
        "write_article",
        {"Writer": ["one", "two"], "Critic": ["1. dull", "ACCEPTED"], "Editor": ["two!"]},
        "Why cities plant trees",
        monkeypatch,
    )
    assert heard(server, "Critic", 0) == "Why cities plant trees\none"
    assert heard(server, "Critic", 1) == "Why cities plant trees\ntwo"
    assert heard(server, "Editor") == "two"


def cases() -> Iterator[str]:
    """The workflows of all cases beside this file."""
    for case in Path(__file__).parent.glob("*/case.yaml"):
        found = re.search(
            r"^workflow: .*?yaml_instance/(\S+)\.yaml", case.read_text(), re.MULTILINE
        )
        assert found, case
        yield found[1]


EXAMPLES = sorted(FOLDER.rglob("*.yaml"))


def named(file: Path) -> str:
    return file.relative_to(FOLDER).as_posix()


def test_every_example_has_a_test() -> None:
    tests = Path(__file__).read_text(encoding="utf-8")
    run = set(cases()) | set(re.findall(r'"(\w+)"', tests))
    assert not [named(file) for file in EXAMPLES if named(file).removesuffix(".yaml") not in run]
    assert len(EXAMPLES) >= 24


def test_the_table_of_examples_is_complete() -> None:
    table = (FOLDER / "README.md").read_text(encoding="utf-8")
    linked = re.findall(r"^\| \[(\S+?)\]\((\S+?\.yaml)\) \|", table, re.MULTILINE)
    assert [link for text, link in linked if text != link.removesuffix(".yaml")] == []
    assert sorted(link for _, link in linked) == sorted(map(named, EXAMPLES))


@pytest.mark.parametrize("file", EXAMPLES, ids=named)
def test_every_example_passes_validation_and_says_what_it_is_for(file: Path) -> None:
    loaded = devall.load_workflow(file)
    assert not loaded.warnings
    text = file.read_text(encoding="utf-8")
    head = text[: text.index("version:")]
    assert head.startswith("# ")
    assert f"devall run yaml_instance/{named(file)}" in head
    assert loaded.config.graph.description


@pytest.mark.parametrize("file", EXAMPLES, ids=named)
def test_the_agents_of_every_example_are_those_of_the_environment(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MODEL", "BASE_URL", "API_KEY"):
        monkeypatch.setenv(name, f"http://{name}")
    found = list(agents(devall.load_workflow(file).root))
    assert {each.provider for each in found} == {"openai"}
    assert {each.name for each in found} == {"http://MODEL"}
    assert {(each.base_url, each.api_key) for each in found} == {
        ("http://BASE_URL", "http://API_KEY")
    }


def agents(graph: LoadedGraph) -> Iterator[AgentConfig]:
    """The agents of a graph and of those in it."""
    yield from (node.config for node in graph.config.nodes if isinstance(node, AgentNode))
    for inner in graph.subgraphs.values():
        yield from agents(inner)
