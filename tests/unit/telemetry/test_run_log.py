from __future__ import annotations

import hashlib
import json
import stat
import threading
import time
from pathlib import Path

import pytest

from devall.core.events import (
    EdgeFired,
    Event,
    HumanAnswered,
    NodeFinished,
    NodeStarted,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolCallStarted,
    ToolProgress,
)
from devall.core.messages import DataPart, Message, ToolCall, assistant, user
from devall.core.outcome import COMPLETED
from devall.core.usage import Usage
from devall.telemetry.redaction import MASK, Redactor
from devall.telemetry.run_log import RunLog, event_name, read_events

KEY = 'sk-live-"quoted"-123'


def written(folder: Path, *events: Event, secrets: tuple[str, ...] = (), **options):
    log = RunLog(folder, Redactor(secrets), **options)
    for event in events:
        log(event)
    log.close()
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def test_a_line_holds_version_name_and_fields(tmp_path: Path):
    event = NodeFinished(
        path="/A@1", at=5.25, node="A", visit=1, seconds=0.5, outputs=(assistant("hi", "A"),)
    )
    assert written(tmp_path, event) == [
        {
            "v": 1,
            "event": "node_finished",
            "path": "/A@1",
            "at": 5.25,
            "node": "A",
            "visit": 1,
            "seconds": 0.5,
            "outputs": [{"role": "assistant", "content": "hi", "source": "A"}],
            "log_output": True,
        }
    ]


def test_every_event_stands_in_the_file_at_once(tmp_path: Path):
    log = RunLog(tmp_path, Redactor())
    for count in range(1, 4):
        log(EdgeFired(source="A", target="B", edge=count))
        assert len((tmp_path / "events.jsonl").read_text().splitlines()) == count
    log.close()
    log.close()


def test_the_outcome_and_usage_are_objects(tmp_path: Path):
    end = RunFinished(
        run_id="r", outcome=COMPLETED, answer="ok", usage=Usage(model_calls=2), seconds=1.0
    )
    (line,) = written(tmp_path, end)
    assert line["outcome"] == {"status": "completed", "exit_code": 0, "error": None, "waiting": []}
    assert line["usage"]["model_calls"] == 2


def test_pieces_of_streaming_text_are_left_out(tmp_path: Path):
    assert written(tmp_path, TextDelta(node="A", text="x")) == []


def test_files_and_folders_are_the_users_alone(tmp_path: Path):
    folder = tmp_path / "logs" / "run"
    written(folder, RunStarted(run_id="r", workflow="w", task="t" * 70_000))
    for place in [*folder.rglob("*"), folder, folder.parent]:
        mode = stat.S_IMODE(place.stat().st_mode)
        assert mode == (0o700 if place.is_dir() else 0o600), place


def test_no_secret_reaches_the_file_in_any_part_of_an_event(tmp_path: Path):
    message = Message(
        "assistant",
        (DataPart({"inner": json.dumps({"k": KEY})}),),
        "A",
        tool_calls=(ToolCall("1", "t", json.dumps({"key": KEY})),),
        extra={"raw": [KEY]},
    )
    lines = written(
        tmp_path,
        NodeStarted(node="A", visit=1, inputs=(message, user(f"use {KEY}"))),
        ToolCallStarted(node="A", call_id="1", tool="t", arguments={"api_key": "x", "q": KEY}),
        RunStarted(run_id="r", workflow="w", task=("long " * 20_000) + KEY),
        secrets=(KEY,),
    )
    everything = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()).decode()
    assert "quoted" not in everything
    assert lines[0]["inputs"][1]["content"] == "use ***"
    assert lines[1]["arguments"] == {"api_key": MASK, "q": MASK}


def test_a_secret_that_is_an_events_own_word_does_not_spoil_the_line(tmp_path: Path):
    started = NodeStarted(node="node_started", visit=1)
    (line,) = written(tmp_path, started, secrets=("node_started", "1"))
    assert (line["v"], line["event"], line["node"]) == (1, "node_started", MASK)


def test_a_long_field_is_a_body_beside_the_file_once_for_each_content(tmp_path: Path):
    text = "ä" * 40_000
    events = (
        RunStarted(run_id="r", workflow="w", task=text),
        NodeStarted(node="A", visit=1, inputs=(user(text),)),
        NodeStarted(node="A", visit=2, inputs=(user(text),)),
    )
    lines = written(tmp_path, *events)
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert lines[0]["task"] == {"body": digest, "bytes": 80_000, "type": "text"}
    assert (tmp_path / "bodies" / digest).read_text() == text
    assert lines[1]["inputs"] == lines[2]["inputs"]
    assert len(list((tmp_path / "bodies").iterdir())) == 2
    assert [e.get("task") or e["inputs"][0]["content"] for e in read_events(tmp_path)] == [text] * 3


def test_the_output_of_a_node_with_log_output_false_is_nowhere(tmp_path: Path):
    secret_words = "the plan nobody may read"
    out = assistant(secret_words, "A")
    lines = written(
        tmp_path,
        HumanAnswered(node="H", answer=secret_words),
        NodeFinished(node="A", visit=1, seconds=0.1, outputs=(out,), log_output=False),
        NodeStarted(node="B", visit=1, inputs=(user(secret_words, "A"), user("open", "C"))),
        NodeStarted(node="C", visit=1, inputs=(user(secret_words),)),
        RunFinished(run_id="r", outcome=COMPLETED, answer=secret_words, usage=Usage(), seconds=1),
        hidden={"H"},
    )
    assert secret_words not in (tmp_path / "events.jsonl").read_text()
    shown = {"hidden": True, "chars": len(secret_words)}
    assert lines[0]["answer"] == shown
    assert lines[1]["outputs"] == [{"role": "assistant", "source": "A", "content": shown}]
    assert lines[2]["inputs"][1]["content"] == "open"
    assert lines[4]["answer"] == shown


@pytest.mark.parametrize("hidden", [{"S/A"}, set()])
def test_a_hidden_node_of_a_subgraph_is_known_by_either_name(tmp_path: Path, hidden: set[str]):
    lines = written(
        tmp_path,
        NodeFinished(
            node="S/A", visit=1, seconds=0, outputs=(assistant("one", "A"),), log_output=False
        ),
        NodeStarted(node="S/B", visit=1, inputs=(user("one changed on its way", "A"),)),
        hidden=hidden,
    )
    assert lines[1]["inputs"][0]["content"] == {"hidden": True, "chars": 22}


def test_what_json_cannot_say_becomes_something_it_can(tmp_path: Path):
    lines = written(
        tmp_path,
        ToolProgress(node="A", call_id="1", tool="t", progress=float("nan"), total=float("inf")),
        RunStarted(run_id="r", workflow="w", task="cut \ud83d here"),
        ToolCallStarted(node="A", call_id="1", tool="t", arguments={"path": tmp_path, "s": {1}}),
    )
    assert (lines[0]["progress"], lines[0]["total"]) == (None, None)
    assert lines[1]["task"] == "cut \ud83d here"
    assert lines[2]["arguments"] == {"path": str(tmp_path), "s": [1]}


def test_a_torn_last_line_does_not_swallow_the_next_one(tmp_path: Path):
    (tmp_path / "events.jsonl").write_text('{"v":1,"event":"edge_fi')
    log = RunLog(tmp_path, Redactor())
    log(EdgeFired(source="A", target="B", edge=0))
    log.close()
    assert [event["event"] for event in read_events(tmp_path)] == ["edge_fired"]


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path):
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / "events.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="events"):
        RunLog(tmp_path, Redactor())


def test_lines_of_several_threads_stay_whole(tmp_path: Path):
    log = RunLog(tmp_path, Redactor())

    def write(number: int) -> None:
        for _ in range(200):
            log(RunStarted(run_id="r", workflow="w", task=str(number) * 2_000))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    assert all(len(set(event["task"])) == 1 for event in read_events(tmp_path))
    assert len(read_events(tmp_path)) == 1600


def test_names_in_the_file_are_the_classes_names_in_small_letters():
    assert event_name(ToolCallStarted) == "tool_call_started"
    assert event_name(RunFinished) == "run_finished"


def test_secrets_and_hidden_nodes_do_not_make_a_small_event_dear(tmp_path: Path):
    event = NodeFinished(node="A", visit=1, seconds=0.5, outputs=(assistant("hi", "A"),))
    plain = RunLog(tmp_path / "plain", Redactor())
    guarded = RunLog(tmp_path / "guarded", Redactor([f"sk-{n}-abcdefghijkl" for n in range(4)]))
    best = {plain: 1e9, guarded: 1e9}
    for log in [plain, guarded] * 5:
        begin = time.perf_counter()
        for _ in range(300):
            log(event)
        best[log] = min(best[log], time.perf_counter() - begin)
    assert best[guarded] < 4 * best[plain]
    plain.close()
    guarded.close()
