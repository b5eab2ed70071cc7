from __future__ import annotations

from dataclasses import replace

from devall.core import events as kinds
from devall.core.events import Event, NodeFinished, NodeStarted, RunFinished, RunStarted, TextDelta
from devall.core.messages import Message, ToolCall, assistant, user
from devall.core.outcome import ErrorReport, Outcome
from devall.core.shape import EdgeShape, GraphShape, LoopShape, NodeShape
from devall.core.usage import TokenUsage, Usage
from devall.history.events import event_of, events_of, last_turn
from devall.telemetry.redaction import Redactor
from devall.telemetry.run_log import RunLog

VALUES = {
    "run_id": "r",
    "workflow": "w.yaml",
    "turn": 2,
    "kept": 3,
    "changed": ("A",),
    "following": ("B",),
    "outcome": Outcome("failed", 1, ErrorReport("x", "why", "A", "hint"), (("/H@1", "ok?"),)),
    "answer": "an answer",
    "usage": Usage(model_calls=2),
    "seconds": 0.5,
    "node": "A",
    "visit": 1,
    "code": "c",
    "message": "m",
    "loop": ("A", "B"),
    "round": 2,
    "rounds": 2,
    "exited": True,
    "source": "A",
    "target": "B",
    "edge": 0,
    "provider": "openai",
    "model": "gpt",
    "attempt": 1,
    "left_out": 1,
    "shortened": 0,
    "tokens": 9,
    "most": 10,
    "call_id": "c1",
    "tool": "add",
    "arguments": {"a": 1},
    "progress": 0.5,
    "result": "3",
    "question": "ok?",
    "text": "t",
    "unit": 1,
    "units": 3,
    "store": "notes",
    "texts": 3,
    "done": 64,
    "files": 103,
    "passages": 200,
}


GRAPH = GraphShape(
    "g",
    (
        NodeShape("A", "agent"),
        NodeShape("S", "subgraph", GraphShape("s", (NodeShape("X", "python"),))),
    ),
    (
        EdgeShape("A", "S", condition={"type": "keyword", "config": {"any": ["x"]}}),
        EdgeShape("S", "A", trigger=False, dynamic="map"),
    ),
    (LoopShape(("A", "S"), 3),),
    ("A",),
    ("S",),
)


def every_kind() -> list[Event]:
    """An event of each kind, with all that it must have."""
    from dataclasses import MISSING, fields

    found: list[Event] = []
    for kind in vars(kinds).values():
        if not (isinstance(kind, type) and issubclass(kind, Event)) or kind in {Event, TextDelta}:
            continue
        needed = [f.name for f in fields(kind) if f.default is f.default_factory is MISSING]
        found.append(kind(path="/A@1", at=1.5, **{name: VALUES[name] for name in needed}))
    return found


def test_every_event_is_read_back_as_it_was(tmp_path):
    written = every_kind()
    written += [
        NodeStarted(
            node="A",
            visit=1,
            inputs=(
                user("a" * 100_000),
                Message("assistant", "", "B", tool_calls=(ToolCall("i", "add", "{}"),)),
            ),
        ),
        kinds.ModelCallFinished(
            node="A", provider="p", model="m", turn=1, seconds=1, usage=TokenUsage(1, 2)
        ),
        RunStarted(run_id="r", workflow="w", nodes=("A", "S"), graph=GRAPH),
        kinds.ModelCallStarted(
            node="A",
            provider="p",
            model="m",
            turn=1,
            messages=(Message("system", "be brief"), user("b" * 100_000)),
            tools=("add", "multiply"),
        ),
        kinds.ModelCallFinished(
            node="A",
            provider="p",
            model="m",
            turn=1,
            seconds=1,
            reply=Message(
                "assistant", "", tool_calls=(ToolCall("i", "add", "{}", {"x": 1}),), extra={"y": 2}
            ),
        ),
    ]
    assert len(written) > 20
    log = RunLog(tmp_path, Redactor())
    for event in written:
        log(event)
    log.close()
    assert events_of(tmp_path) == written


def test_what_was_kept_out_of_the_log_is_described(tmp_path):
    log = RunLog(tmp_path, Redactor())
    log(NodeFinished(node="A", visit=1, seconds=1, outputs=(assistant("hush"),), log_output=False))
    end = next(each for each in every_kind() if isinstance(each, RunFinished))
    log(replace(end, answer="hush"))
    log.close()
    node, run = events_of(tmp_path)
    assert isinstance(node, NodeFinished)
    assert isinstance(run, RunFinished)
    assert node.outputs[0].text == run.answer == "(kept out of logs: 4 characters)"


def test_hidden_prompts_and_replies_are_read_back_as_such(tmp_path):
    call = {"node": "A", "provider": "p", "model": "m", "turn": 1}
    log = RunLog(tmp_path, Redactor(), hidden={"A"})
    log(kinds.ModelCallFinished(**call, seconds=1, reply=assistant("hush")))
    log(kinds.ModelCallStarted(**call | {"node": "B"}, messages=(user("hush", "A"),)))
    log.close()
    finished, started = events_of(tmp_path)
    assert isinstance(finished, kinds.ModelCallFinished)
    assert isinstance(started, kinds.ModelCallStarted)
    assert finished.reply is not None
    assert finished.reply.text == started.messages[0].text == "(kept out of logs: 4 characters)"


def test_events_of_a_newer_devall_are_left_out():
    assert event_of({"event": "node_dreamt", "at": 1}) is None
    assert event_of({"event": "edge_fired", "source": "A"}) is None
    line = {"event": "edge_fired", "source": "A", "target": "B", "edge": 1, "mood": "good"}
    assert event_of(line | {"at": 2.0}) == kinds.EdgeFired(source="A", target="B", edge=1, at=2.0)


def test_the_last_process_at_a_run_tells_all():
    first, second = (RunStarted(run_id="r", workflow="w", at=at) for at in (1, 2))
    end = kinds.NodeSkipped(node="A")
    assert last_turn([first, end, second, end]) == [second, end]
