"""`devall runs`: the list, one run, its events, and old runs deleted."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from pathlib import Path

import pytest

from devall.journal.owner import this_process
from tests.unit.cli.test_outputs import check

LITERAL = """
    graph:
      start: A
      nodes: [{id: A, type: literal, config: {content: "${WORD:-hello}"}}]
      edges: []
"""
HUMAN = """
    graph:
      start: [H, I]
      nodes:
        - {id: H, type: human, config: {description: Is it good?}}
        - {id: I, type: human, config: {description: And that?}}
      edges: []
"""


@pytest.fixture
def literal(write):
    return write("w.yaml", LITERAL)


def change(workspace: Path, run_id: str, **values: object) -> None:
    """Let the journal say something else of a run."""
    with sqlite3.connect(workspace / "logs/devall.db") as database:
        for name, value in values.items():
            database.execute(f"UPDATE runs SET {name} = ? WHERE id = ?", (value, run_id))
    database.close()


def aged(workspace: Path, run_id: str, days: float) -> None:
    at = time.time() - days * 86400
    change(workspace, run_id, began=at, ended=at)


def names(done) -> list[str]:
    return [run["run_id"] for run in json.loads(done.stdout)["runs"]]


def test_the_newest_run_comes_first_with_state_and_task(devall, literal, write):
    devall("run", literal, "--run-id", "one", "--task", "first task", code=0)
    devall("run", write("h.yaml", HUMAN), "--run-id", "two", code=75)
    head, two, one = devall("runs", "list", code=0).stdout.splitlines()
    assert head.split() == ["RUN", "STATE", "BEGAN", "TOOK", "TOKENS", "COST", "WORKFLOW", "TASK"]
    assert two.split()[:2] == ["two", "waiting"]
    assert one.split()[:2] == ["one", "completed"]
    assert one.endswith("w.yaml    first task")
    told = check("runs list", devall("runs", "list", "--json", code=0).stdout)
    assert [(run["run_id"], run["state"]) for run in told["runs"]] == [
        ("two", "waiting"),
        ("one", "completed"),
    ]
    assert names(devall("runs", "list", "--status", "waiting", "--json", code=0)) == ["two"]
    done = devall("runs", "list", "--limit", "1", code=0)
    assert "one" not in done.stdout
    assert "1 more run: --limit 2 shows all" in done.stderr


def test_an_empty_folder_has_no_runs_and_stays_empty(devall, workspace):
    done = devall("runs", "list", code=0)
    assert (done.stdout, done.stderr) == ("", "no runs in logs\n")
    for command in ("show", "tail", "cancel"):
        assert "there is no folder logs" in devall("runs", command, "last", code=2).stderr
    devall("runs", "prune", "--yes", code=0)
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list", "--status", "done"], "--status 'done' is unknown"),
        (["list", "--limit", "0"], "--limit 0 shows nothing"),
        (["list", "--logs-dir", "nowhere"], "there is no such folder"),
        (["prune", "--older-than", "3 moons"], "--older-than '3 moons' is no length of time"),
        (["prune", "--keep", "-1"], "--keep -1 is no number of runs"),
        (["prune", "--status", "running"], "runs that are alive are never deleted"),
        (["show", "nix"], "there is no run nix in logs"),
        (["cancel", "nix"], "there is no run nix in logs"),
    ],
)
def test_wrong_options_are_said_with_what_is_right(devall, literal, arguments, words):
    devall("run", literal, "--run-id", "one", code=0)
    done = devall("runs", *arguments, code=2)
    assert words in done.stderr
    assert done.stdout == ""


def test_a_beginning_that_fits_several_runs_names_them(devall, literal):
    devall("run", literal, "--run-id", "abc1", code=0)
    devall("run", literal, "--run-id", "abc2", code=0)
    done = devall("runs", "show", "abc", code=2)
    assert "2 runs begin like that" in done.stderr
    assert "abc1" in done.stderr
    assert "run abc2: completed" in devall("runs", "show", "abc2", code=0).stdout


def test_all_about_a_run_and_how_to_go_on_with_it(devall, write):
    devall("run", write("h.yaml", HUMAN), "--run-id", "two", "--var", "TOPIC=autumn", code=75)
    out = devall("runs", "show", "last", code=0).stdout
    assert "run two: waiting" in out
    assert 'variables: {"TOPIC": "autumn"}' in out
    assert "open question /H@1: Is it good?" in out
    assert "open question /I@1: And that?" in out
    command = "devall resume two --answer H=TEXT --answer I=TEXT"
    assert out.endswith(f"go on with it: {command}\n")
    told = check("runs show", devall("runs", "show", "two", "--json", code=0).stdout)
    assert told["questions"][0] == {"id": "/H@1", "question": "Is it good?"}
    assert told["resume_command"] == command
    assert told["result"]["status"] == "waiting"
    devall("resume", "two", "--answer", "H=yes", "--answer", "I=no", code=0)
    out = devall("runs", "show", "two", code=0).stdout
    assert "processes that were at it: 2" in out
    assert "go on" not in out.rpartition("node")[2]


def test_of_the_environment_only_names_are_shown(devall, literal):
    devall("run", literal, "--run-id", "one", env={"WORD": "a-word-of-mine"}, code=0)
    out = devall("runs", "show", "one", "--json", code=0).stdout
    assert json.loads(out)["settings"]["environment"] == ["WORD"]
    assert "a-word-of-mine" not in json.dumps(json.loads(out)["settings"])


def test_a_run_in_no_journal_is_listed_and_marked(devall, literal):
    devall("run", literal, "--run-id", "one", "--journal", "memory", code=0)
    done = devall("runs", "list", code=0)
    assert "one*" in done.stdout
    assert "*: in no journal (--journal memory)" in done.stderr
    done = devall("runs", "show", "last", code=0)
    assert "run one: completed" in done.stdout
    assert "hello" in done.stdout
    assert "cannot be gone on with" in done.stderr
    told = check("runs show", devall("runs", "show", "one", "--json", code=0).stdout)
    assert (told["in_journal"], told["result"], told["resume_command"]) == (False, None, None)
    assert "run one is not alive: completed" in devall("runs", "cancel", "one", code=0).stdout


def test_the_folder_of_runs_is_taken_from_the_environment_too(devall, literal):
    devall("run", literal, "--run-id", "one", "--logs-dir", "other", code=0)
    assert names(devall("runs", "list", "--json", env={"DEVALL_LOGS_DIR": "other"})) == ["one"]
    assert names(devall("runs", "list", "--json", "--logs-dir", "other")) == ["one"]


def test_events_are_told_as_the_plain_view_tells_them(devall, literal):
    shown = devall("run", literal, "--run-id", "one", code=0).stderr
    lines = devall("runs", "tail", "one", code=0).stdout.splitlines()
    assert lines[0] == "run one: w.yaml, 1 node"
    assert lines[-1] == "run one: completed"
    assert set(lines[:-1]) <= set(shown.splitlines())
    told = [
        check("runs tail", line + "\n")
        for line in devall("runs", "tail", "one", "--json", code=0).stdout.splitlines()
    ]
    assert told[0]["event"]["event"] == "run_started"
    assert told[-1]["event"]["event"] == "run_finished"


def test_a_run_that_was_gone_on_with_is_told_from_its_last_turn(devall, write):
    devall("run", write("h.yaml", HUMAN), "--run-id", "two", code=75)
    devall("resume", "two", "--answer", "H=yes", "--answer", "I=no", code=0)
    out = devall("runs", "tail", "two", "--follow", code=0).stdout
    assert out.count("run two: ") == 2
    assert out.endswith("run two: completed\n")


def test_events_with_large_texts_are_told(devall, literal):
    devall("run", literal, "--run-id", "one", env={"WORD": "x" * 100_000}, code=0)
    assert "A: done in" in devall("runs", "tail", "one", code=0).stdout
    shown = devall("show", "one", "A", code=0).stdout
    assert "x" * 100_000 in shown


def test_old_runs_are_deleted_with_all_that_is_theirs(devall, literal, workspace):
    for name in ("old", "young"):
        devall("run", literal, "--run-id", name, code=0)
    aged(workspace, "old", 31)
    (workspace / "logs/notes").mkdir()
    (workspace / "logs/notes/mine.txt").write_text("mine")
    done = devall("runs", "prune", "--dry-run", code=0)
    assert "1 run would be deleted" in done.stdout
    assert (workspace / "logs/old").is_dir()
    assert "--yes deletes them" in devall("runs", "prune", code=2).stderr
    done = devall("runs", "prune", "--yes", code=0)
    assert "1 run deleted" in done.stdout
    assert names(devall("runs", "list", "--json")) == ["young"]
    assert not (workspace / "logs/old").exists()
    assert (workspace / "logs/young/events.jsonl").exists()
    assert (workspace / "logs/notes/mine.txt").exists()
    with sqlite3.connect(workspace / "logs/devall.db") as database:
        left = database.execute("SELECT count(*) FROM epochs").fetchone()
    database.close()
    assert left == (1,)


def test_the_newest_stay_and_a_status_chooses(devall, literal, write, workspace):
    for name in ("a", "b", "c"):
        devall("run", literal, "--run-id", name, code=0)
    devall("run", write("h.yaml", HUMAN), "--run-id", "w", code=75)
    told = devall("runs", "prune", "--keep", "2", "--dry-run", "--json", code=0)
    assert names(told) == ["a", "b"]
    told = devall("runs", "prune", "--keep", "0", "--status", "waiting", "--dry-run", "--json")
    assert names(told) == ["w"]
    told = check(
        "runs prune", devall("runs", "prune", "--keep", "1", "--yes", "--json", code=0).stdout
    )
    assert [(run["run_id"], run["deleted"]) for run in told["runs"]] == [
        ("a", True),
        ("b", True),
        ("c", True),
    ]
    assert told["bytes"] > 0
    assert names(devall("runs", "list", "--json")) == ["w"]


def test_a_run_that_is_alive_is_never_deleted(devall, literal, workspace):
    devall("run", literal, "--run-id", "live", code=0)
    aged(workspace, "live", 31)
    change(
        workspace,
        "live",
        status="running",
        owner=this_process().to_text(),
        lease=time.time() + 60,
    )
    assert names(devall("runs", "prune", "--yes", "--json", code=0)) == []
    assert names(devall("runs", "prune", "--keep", "0", "--yes", "--json", code=0)) == []
    assert (workspace / "logs/live").is_dir()


def test_a_run_in_no_journal_that_may_be_alive_stays(devall, literal, workspace):
    devall("run", literal, "--run-id", "m", "--journal", "memory", code=0)
    events = workspace / "logs/m/events.jsonl"
    whole = events.read_text().splitlines(keepends=True)
    events.write_text("".join(whole[:-1]))
    assert names(devall("runs", "prune", "--keep", "0", "--dry-run", "--json")) == []
    os.utime(events, (time.time() - 2 * 86400,) * 2)
    assert names(devall("runs", "prune", "--keep", "0", "--dry-run", "--json")) == ["m"]
    devall("runs", "prune", "--keep", "0", "--yes", code=0)
    assert not (workspace / "logs/m").exists()


def test_nothing_outside_of_the_folder_of_runs_is_deleted(devall, literal, workspace):
    devall("run", literal, "--run-id", "one", code=0)
    outside = workspace / "outside"
    (workspace / "logs/one").rename(outside)
    (workspace / "logs/one").symlink_to(outside)
    (outside / "link").symlink_to(workspace / "w.yaml")
    done = devall("runs", "prune", "--keep", "0", "--yes", code=1)
    assert "is no folder of a run, and was left" in done.stderr
    assert (outside / "events.jsonl").exists()
    (workspace / "logs/one").unlink()
    devall("run", literal, "--run-id", "two", code=0)
    (workspace / "logs/two/away").symlink_to(outside)
    devall("runs", "prune", "--keep", "0", "--yes", code=0)
    assert (outside / "events.jsonl").exists()
    assert not (workspace / "logs/two").exists()


def test_the_room_of_deleted_runs_is_given_back(devall, literal, workspace):
    word = "".join(map(str, range(12_000)))
    for at in range(4):
        devall("run", literal, "--run-id", f"r{at}", "--task", word[at:], code=0)
    before = (workspace / "logs/devall.db").stat().st_size
    told = json.loads(devall("runs", "prune", "--keep", "0", "--yes", "--json", code=0).stdout)
    assert told["journal_bytes"] > 100_000
    assert (workspace / "logs/devall.db").stat().st_size < before / 2
    # Again, now that the file may shrink bit by bit.
    devall("run", literal, "--run-id", "again", "--task", word, code=0)
    told = json.loads(devall("runs", "prune", "--keep", "0", "--yes", "--json", code=0).stdout)
    assert told["journal_bytes"] > 20_000


def test_a_run_whose_folder_is_gone_is_still_listed_and_its_events_are_missed(
    devall, literal, workspace
):
    devall("run", literal, "--run-id", "one", code=0)
    for file in (workspace / "logs/one").iterdir():
        file.unlink()
    (workspace / "logs/one").rmdir()
    assert names(devall("runs", "list", "--json", code=0)) == ["one"]
    assert "(it is gone)" in devall("runs", "show", "one", code=0).stdout
    done = devall("show", "one", code=2)
    assert "the events of run one cannot be read" in done.stderr
    assert "devall runs show one" in done.stderr


def test_a_process_that_carries_out_other_runs_too_is_not_ended_for_one(devall, literal, workspace):
    for name in ("one", "two"):
        devall("run", literal, "--run-id", name, code=0)
        change(
            workspace,
            name,
            status="running",
            owner=this_process().to_text(),
            lease=time.time() + 60,
        )
    done = devall("runs", "cancel", "one", code=2)
    assert "carries out other runs too: two" in done.stderr
    assert "--others-too" in done.stderr


def test_a_file_that_is_no_journal_is_said_to_be_none(devall, write):
    write("logs/devall.db", "not a database, but a text that is long enough to be none\n" * 20)
    for arguments in (["list"], ["show", "last"], ["prune", "--yes"]):
        done = devall("runs", *arguments, code=4)
        assert "logs/devall.db cannot be " in done.stderr
