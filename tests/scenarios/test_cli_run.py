"""`devall run` as a process: its streams, its files, its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from devall.testing.chat_server import ChatServer

AGENTS = """
    graph:
      start: A
      end: B
      initial_instruction: Two numbers, please.
      nodes:
        - {id: A, type: agent, config: {provider: openai, name: poet, role: "You are a poet."}}
        - {id: B, type: agent, config: {provider: openai, name: critic}}
      edges: [{from: A, to: B}]
"""
LITERALS = """
    graph:
      start: A
      nodes:
        - {id: A, type: literal, config: {content: "${WORD:-hello}"}}
        - {id: B, type: passthrough}
      edges: [{from: A, to: B}]
"""


@pytest.fixture
def poem(write):
    return write("poem.yaml", AGENTS)


def test_the_answer_alone_is_on_standard_output(devall, poem):
    with ChatServer({"poet": ["a poem"], "critic": ["a fine poem\n"]}) as server:
        done = devall("run", poem, "--task", "1 100", env=server.env, code=0)
        assert server.calls["poet"][0]["messages"][-1]["content"] == "1 100"
    assert done.stdout == "a fine poem\n"
    assert "A: done in" in done.stderr
    assert "completed in" in done.stderr


def test_no_secret_is_in_any_byte_written(devall, poem, workspace):
    key = "sk-sentinel-0123456789"
    script = {"poet": [f"echo {key}"], "critic": [{"status": 401, "error": f"bad key {key}"}]}
    with ChatServer(script) as server:
        env = server.env | {"API_KEY": key}
        done = devall("run", poem, "--task", f"use {key}", "--json", "--debug", env=env, code=1)
    files = [p for p in (workspace / "logs").rglob("*") if p.is_file()]
    written = [p.read_bytes().decode("latin-1") for p in files]
    assert key not in "".join([done.stdout, done.stderr, *written])
    assert "***" in "".join(written)


def test_without_a_task_and_a_terminal_the_option_is_named_and_nothing_is_asked(devall, poem):
    done = devall("run", poem, "--json", env={"API_KEY": "k" * 8, "BASE_URL": "http://x"}, code=2)
    assert "Two numbers, please." in done.stderr
    assert "--task TEXT" in done.stderr
    assert json.loads(done.stdout)["error"]["code"] == "usage"


def test_a_reader_that_has_gone_is_quiet(write, workspace):
    file = write("w.yaml", LITERALS.replace("hello", "x" * 300_000))
    script = f'"{sys.executable}" -m devall run {file} -q | head -c 5; echo " ${{PIPESTATUS[0]}}"'
    done = subprocess.run(
        ["bash", "-c", script], cwd=workspace, capture_output=True, text=True, timeout=30
    )
    assert (done.stdout, done.stderr) == ("xxxxx 0\n", "")


def test_progress_that_nobody_reads_does_not_end_the_run(write, workspace):
    file = write("w.yaml", LITERALS)
    script = (
        f'"{sys.executable}" -m devall run {file} 2>&1 >out.txt | true; echo ${{PIPESTATUS[0]}}'
    )
    done = subprocess.run(
        ["bash", "-c", script], cwd=workspace, capture_output=True, text=True, timeout=30
    )
    assert (done.stdout, done.stderr) == ("0\n", "")
    assert (workspace / "out.txt").read_text() == "hello\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_not_matter(write, workspace, closed):
    file = write("w.yaml", LITERALS)
    script = f'"{sys.executable}" -m devall run {file} --run-id r {closed}'
    done = subprocess.run(
        ["bash", "-c", script], cwd=workspace, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert (workspace / "logs/r/events.jsonl").exists()


def test_a_full_disk_under_standard_output_is_no_success(write, workspace):
    file = write("w.yaml", LITERALS)
    script = f'"{sys.executable}" -m devall run {file} > /dev/full'
    done = subprocess.run(
        ["bash", "-c", script], cwd=workspace, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unreadable_terminal_encoding_is_no_reason_to_fail(devall, write):
    file = write("w.yaml", LITERALS.replace("hello", "日本 → ✓"))
    env = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    assert devall("run", file, env=env, code=0).stdout == "日本 → ✓\n"


def test_an_empty_folder_is_enough(devall, workspace):
    assert "there is no file" in devall("run", "x.yaml", code=2).stderr
    assert list(workspace.iterdir()) == []


def test_two_runs_at_once_in_one_folder_do_not_meet(write, workspace):
    file = write("w.yaml", LITERALS)
    command = [sys.executable, "-m", "devall", "run", str(file), "-q"]
    started = [
        subprocess.Popen(command, cwd=workspace, stdout=subprocess.PIPE, env=os.environ)
        for _ in range(3)
    ]
    assert [process.communicate(timeout=30)[0] for process in started] == [b"hello\n"] * 3
    assert sum(place.is_dir() for place in (workspace / "logs").iterdir()) == 3


def test_the_module_and_its_version(devall):
    assert devall("--version", code=0).stdout.startswith("devall 0.")


def test_debug_shows_where_a_failure_of_a_run_came_from(devall, write):
    write("functions/edge/mine.py", "def picky(text: str) -> bool:\n    raise ValueError('no')\n")
    write(
        "w.yaml",
        """
        graph:
          start: A
          nodes:
            - {id: A, type: literal, config: {content: x}}
            - {id: B, type: passthrough}
          edges:
            - {from: A, to: B, condition: picky}
        """,
    )
    plain = devall("run", "w.yaml", code=1)
    assert "Traceback" not in plain.stderr
    done = devall("run", "w.yaml", "--debug", code=1)
    assert "Traceback" in done.stderr
    assert "mine.py" in done.stderr


def test_files_are_attached_and_kept(devall, poem, workspace):
    (workspace / "a.txt").write_text("an attached text")
    (workspace / "b.txt").write_text("another one")
    with ChatServer({"poet": ["a poem"], "critic": ["fine"]}) as server:
        done = devall("run", poem, "--attach", "a.txt", "--attach", "b.txt", env=server.env, code=0)
        content = server.calls["poet"][0]["messages"][-1]["content"]
    assert done.stdout == "fine\n"
    assert "an attached text" in str(content)
    assert "another one" in str(content)
    [manifest] = (workspace / "logs").glob("*/attachments/manifest.json")
    assert [e["name"] for e in json.loads(manifest.read_text())] == ["a.txt", "b.txt"]


def test_a_file_that_cannot_be_attached_is_wrong_usage(devall, poem, workspace):
    done = devall("run", poem, "--task", "x", "--attach", "none.txt", code=2)
    assert "there is no file none.txt to attach" in done.stderr
    assert not list((workspace / "logs").glob("*"))
