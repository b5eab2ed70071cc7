"""events.jsonl of real runs: each line is as the schema says, and every view is made of it again."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import devall
from devall.cli.board import Board
from devall.core.events import Event, ModelCallStarted, Sink, TextDelta
from devall.engine.ledger import Ledger
from devall.engine.result import RunResult
from devall.history.events import event_of, events_of, last_turn
from devall.history.story import story_of
from devall.runs.lost import lost_attempts
from devall.telemetry.run_log import KINDS
from devall.telemetry.schema import events_schema
from devall.testing.chat_server import ChatServer
from devall.testing.recorder import Recorder

LINES = {"type": "regex", "pattern": r"[^\n]+"}
TOOLS = [{"type": "function", "config": {"tools": [{"name": "mine:add"}, {"name": "mine:fail"}]}}]
MINE = '''
def add(a: int, b: int) -> int:
    """The sum."""
    return a + b

def fail() -> str:
    raise ValueError("it broke")
'''
ASKS = {
    "tool_calls": [
        {"name": "add", "arguments": {"a": 1, "b": 2}},
        {"name": "fail", "arguments": {}},
    ]
}


def agent(name: str, *, tooling: Sequence[Any] = (), **more: Any) -> dict[str, Any]:
    config = {"provider": "openai", "name": name.lower(), "tooling": list(tooling)}
    config["retry"] = {"min_wait_seconds": 0.01, "max_wait_seconds": 0.02}
    return {"id": name, "type": "agent", "config": config | more.pop("config", {}), **more}


def node(name: str, kind: str, **config: Any) -> dict[str, Any]:
    return {"id": name, "type": kind, "config": config}


def graph(nodes: Sequence[Any], *edges: Any, **more: Any) -> dict[str, Any]:
    listed = [
        dict(zip(("from", "to"), e.split(" -> "), strict=True)) if isinstance(e, str) else e
        for e in edges
    ]
    return {"start": nodes[0]["id"], "nodes": list(nodes), "edges": listed, **more}


def when(text: str, word: str) -> dict[str, Any]:
    source, target = text.split(" -> ")
    condition = {"type": "keyword", "config": {"any": [word]}}
    return {"from": source, "to": target, "condition": condition}


def fanned(text: str, kind: str = "map", **config: Any) -> dict[str, Any]:
    source, target = text.split(" -> ")
    dynamic = {"type": kind, "split": LINES, "config": config}
    return {"from": source, "to": target, "dynamic": dynamic}


def picky(body: Mapping[str, Any]) -> dict[str, Any]:
    said = " ".join(str(message["content"]) for message in body["messages"])
    return {"status": 400} if "bad" in said else {"text": f"<{said}>"}


INNER = graph([node("X", "literal", content="inside"), agent("Y")], "X -> Y", end="Y")
RUNS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "tools, retries, a skipped branch": (
        graph(
            [agent("A", tooling=TOOLS), agent("B"), node("No", "passthrough")],
            "A -> B",
            when("A -> No", "never"),
        ),
        {"a": [{"status": 503, "retry_after": 0}, ASKS, "3, and it broke"]},
    ),
    "a loop in a loop": (
        graph(
            [
                agent("Writer"),
                node("Counter", "loop_counter", max_iterations=2),
                agent("Critic"),
                node("End", "passthrough"),
            ],
            "Writer -> Counter",
            when("Writer -> Writer", "again"),
            "Counter -> Critic",
            "Writer -> Critic",
            when("Critic -> Writer", "REVISE"),
            when("Critic -> End", "ACCEPT"),
        ),
        {"writer": ["again", "one", "two"], "critic": ["REVISE", "ACCEPT"]},
    ),
    "units, some of them left out, and a tree": (
        graph(
            [node("L", "literal", content="one\nbad\nthree\nfour"), agent("M"), agent("T")],
            fanned("L -> M", on_unit_error="skip", max_parallel=2),
            fanned("M -> T", "tree", group_size=2),
        ),
        {"m": [picky] * 4},
    ),
    "a subgraph": (
        graph(
            [node("A", "literal", content="a"), node("S", "subgraph", type="config", config=INNER)],
            "A -> S",
        ),
        {},
    ),
    "a node that fails, and one that may": (
        graph(
            [node("L", "literal", content="l"), agent("May", on_error="continue"), agent("Must")],
            "L -> May",
            "L -> Must",
        ),
        {"may": [{"status": 400}], "must": [{"error": "invalid_api_key"}]},
    ),
    "long texts": (
        graph([agent("A"), agent("B")], "A -> B"),
        {"a": ["ä" * 100_000], "b": ["b" * 70_000]},
    ),
    "a vote": (graph([agent("A"), agent("B")], is_majority_voting=True), {}),
    "a loop that is too long": (
        graph([agent("A")], "A -> A", limits={"max_loop_iterations": 3}),
        {},
    ),
}


@dataclass(frozen=True, slots=True)
class Told:
    """A run as its listeners saw it, and where its log stands."""

    folder: Path
    events: list[Event]
    result: RunResult


@pytest.fixture
def tell(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    functions = workspace / "functions" / "function_calling"
    functions.mkdir(parents=True)
    (functions / "mine.py").write_text(MINE)

    async def tell(
        written: dict[str, Any], script: Any = None, on_event: Sink | None = None
    ) -> Told:
        file = workspace / "w.yaml"
        file.write_text(json.dumps({"graph": written}))
        recorder = Recorder()
        async with ChatServer(script or {}) as server:
            for name, value in server.env.items():
                monkeypatch.setenv(name, value)
            result = await devall.run(
                file,
                task="the task",
                run_id="r",
                logs_dir=workspace / "logs",
                functions_dir=workspace / "functions",
                on_event=on_event or recorder,
            )
        return Told(workspace / "logs" / "r", recorder.events, result)

    return tell


def closed(schema: Any) -> Any:
    """The schema where no field may stand that it does not name."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(value) for key, value in schema.items()}
    if isinstance(found.get("properties"), dict):
        found.setdefault("additionalProperties", False)
    return found


SCHEMA = events_schema()
CHECK = {
    name: Draft202012Validator({**closed(SCHEMA["$defs"][name]), "$defs": closed(SCHEMA["$defs"])})
    for name in KINDS
}


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """The lines as they stand in the file, each as the schema says."""
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    for line in lines:
        errors = [error.message for error in CHECK[line["event"]].iter_errors(line)]
        assert not errors, f"{line}: {errors}"
    return lines


def boards(events: Sequence[Event]) -> list[str]:
    """What a view knows after each event, but for the text that streams."""
    board = Board()
    found: list[str] = []
    for event in events:
        if not isinstance(event, TextDelta):
            board(event)
            found.append(repr(board))
    return found


def totals(events: Sequence[Event], lost: Sequence[Any] = ()) -> tuple[Any, Any, Any]:
    ledger = Ledger()
    ledger.lose(lost)
    for event in events:
        ledger.note(event)
    return ledger.usage, dict(ledger.by_node), dict(ledger.by_model)


def assert_rebuilt(told: Told) -> None:
    """Whatever shows a run shows the same when it reads the log."""
    lines_of(told.folder)
    read = events_of(told.folder)
    assert last_turn(read) == [each for each in told.events if not isinstance(each, TextDelta)]
    assert boards(last_turn(read)) == boards(told.events)
    result = told.result
    assert totals(last_turn(read)) == (result.usage, result.usage_by_node, result.usage_by_model)
    story = story_of(read)
    live = story_of([each for each in told.events if not isinstance(each, TextDelta)])
    assert replace(story, took={}) == replace(live, took={})


@pytest.mark.parametrize("name", RUNS)
async def test_every_line_is_as_the_schema_says_and_every_view_is_made_of_it_again(tell, name):
    written, script = RUNS[name]
    assert_rebuilt(await tell(written, script))


async def test_a_run_that_waits_and_goes_on_is_rebuilt_turn_by_turn(tell, workspace, monkeypatch):
    written = graph(
        [agent("A"), node("H", "human", description="Well?"), agent("B")], "A -> H", "H -> B"
    )
    told = await tell(written)
    assert told.result.status == "waiting"
    assert_rebuilt(told)
    recorder = Recorder()
    async with ChatServer({}) as server:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        result = await devall.resume(
            "r", logs_dir=workspace / "logs", answers={"H": "yes"}, on_event=recorder
        )
    assert result.status == "completed"
    assert_rebuilt(Told(told.folder, recorder.events, result))
    kinds = [line["event"] for line in lines_of(told.folder)]
    assert kinds.count("run_started") == 2
    assert kinds.count("run_resumed") == 1
    answers = [line for line in lines_of(told.folder) if line["event"] == "model_call_finished"]
    assert [(each["node"], each["replayed"]) for each in answers] == [
        ("A", False),
        ("A", True),
        ("B", False),
    ]


async def test_calls_that_an_earlier_process_lost_are_counted_from_its_log(tell, workspace):
    told = await tell(graph([agent("A")]))
    started = next(each for each in told.events if isinstance(each, ModelCallStarted))
    log = told.folder / "events.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if '"model_call_started"' in line)
    log.write_text("".join(lines[: at + 1]))
    [lost] = lost_attempts(told.folder)
    assert (lost.path, lost.turn, lost.attempt) == (started.path, started.turn, started.attempt)
    usage, by_node, _ = totals([], [lost])
    assert (usage.model_calls, usage.unknown_calls) == (1, 1)
    assert list(by_node) == ["A"]


async def test_what_log_output_hides_stands_nowhere_in_the_folder_but_the_run_has_it(tell):
    words = 'the "plan"\nwhich nobody may read'
    inner = graph([agent("In")], end="In")
    written = graph(
        [
            agent("A", log_output=False),
            agent("B", config={"input_mode": "prompt"}),
            node("P", "passthrough"),
            {**node("S", "subgraph", type="config", config=inner), "log_output": False},
            agent("C"),
            agent("M"),
        ],
        "A -> B",
        "A -> P",
        "A -> S",
        "S -> C",
        "P -> C",
        fanned("A -> M"),
        log_level="DEBUG",
        end="P",
    )
    script = {
        "a": [words],
        "b": [f"I was told: {words}."],
        "in": ["what is said inside is hidden too"],
        "m": [picky, picky],
    }
    told = await tell(written, script)
    assert told.result.answer == words
    assert "which nobody may read" in str(told.events)
    lines = lines_of(told.folder)
    for place in told.folder.rglob("*"):
        if place.is_file():
            text = place.read_text()
            assert "nobody may read" not in text, place
            assert "said inside" not in text, place
    assert not [e.node for e in told.events if getattr(e, "log_output", False) and "In" in e.path]
    assert lines[-1]["answer"] == {"hidden": True, "chars": len(words)}
    read = events_of(told.folder)
    assert len(read) == len([each for each in told.events if not isinstance(each, TextDelta)])
    assert boards(read)[-1] == boards(told.events)[-1]
    assert totals(read)[0] == told.result.usage


@pytest.mark.parametrize(
    ("level", "has"),
    [
        ("DEBUG", {"DEBUG", "INFO", "WARNING", "ERROR"}),
        ("INFO", {"INFO", "WARNING", "ERROR"}),
        ("WARNING", {"WARNING", "ERROR"}),
        ("ERROR", {"ERROR"}),
        ("CRITICAL", set()),
    ],
)
async def test_log_level_bounds_the_lines_for_people_and_not_the_events(tell, level, has):
    script = {"a": [{"error": "invalid_api_key"}]}
    told = await tell(graph([agent("A")], log_level=level), script)
    lines = (told.folder / "run.log").read_text().splitlines()
    assert {line.split()[1] for line in lines} == has
    assert_rebuilt(told)


async def test_a_line_stands_in_the_files_when_listeners_hear_of_the_event(tell, workspace):
    seen: list[tuple[int, int]] = []
    wanted = 0

    def look(event: Event) -> None:
        nonlocal wanted
        if isinstance(event, TextDelta):
            return
        wanted += 1
        folder = workspace / "logs" / "r"
        lines = (folder / "events.jsonl").read_text().splitlines()
        shown = (folder / "run.log").read_text().splitlines()
        assert json.loads(lines[-1])["at"] == event.at
        seen.append((len(lines) - wanted, len(shown) - wanted))

    await tell(RUNS["a subgraph"][0] | {"log_level": "DEBUG"}, on_event=look)
    assert wanted > 8
    assert set(seen) == {(0, 0)}


async def test_events_of_later_versions_with_more_fields_are_still_read(tell):
    told = await tell(graph([node("L", "literal", content="l")]))
    for line in lines_of(told.folder):
        assert event_of(line | {"mood": "good"}) == event_of(line)


PAGE = (Path(__file__).parents[2] / "docs" / "runs.md").read_text(encoding="utf-8")


def test_the_page_names_every_event():
    section = PAGE.partition("## The log of events")[2]
    assert not [name for name in KINDS if f"`{name}`" not in section]


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
async def test_the_commands_of_the_page_read_a_log(tell):
    told = await tell(graph([agent("Writer", tooling=TOOLS)]), {"writer": [ASKS, "3 it is"]})
    section = PAGE.partition("## The log of events")[2]
    commands = [line for line in section.splitlines() if line.startswith("jq ")]
    assert len(commands) == 6
    said = [
        subprocess.run(
            command, shell=True, cwd=told.folder, capture_output=True, text=True, check=True
        ).stdout
        for command in commands
    ]
    assert "/Writer@1" in said[0]
    assert json.loads(said[1])[0]["model"] == "writer"
    assert '["/Writer@1","add",{"a":1,"b":2}]' in said[2]
    assert said[3] == ""
    assert said[4] == "the task\n"
    assert said[5] == ""
