"""`devall report` of real runs."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from devall.testing.chat_server import ChatServer
from tests.unit.cli.test_outputs import HUMAN, LITERAL, check


@pytest.fixture
def ran(devall, write):
    """A run whose model says a secret of the environment."""
    text = LITERAL.replace("content: x", "content: the answer is sk-very-secret-key")
    devall("run", write("w.yaml", text), "--task", "go", "--run-id", "r1", code=0)
    return "r1"


def test_the_page_lies_in_the_run_s_folder_and_is_the_user_s_alone(devall, ran):
    done = devall("report", "last", code=0)
    assert done.stdout == "logs/r1/report.html\n"
    assert "report of run r1 (completed)" in done.stderr
    file = Path("logs/r1/report.html")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().startswith("<!DOCTYPE html>")
    devall("report", "r", code=0)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_file_can_be_named_and_standard_output_too(devall, ran):
    assert devall("report", ran, "-o", "out/page.html", code=0).stdout == "out/page.html\n"
    printed = devall("report", ran, "--output", "-", code=0)
    assert printed.stdout.startswith("<!DOCTYPE html>")
    assert printed.stdout.endswith("</html>\n")
    assert not printed.stderr
    assert len(printed.stdout) == len(Path("out/page.html").read_text())
    assert not Path("logs/r1/report.html").exists()


def test_what_was_written_is_as_its_schema_says(devall, ran):
    told = check("report", devall("report", ran, "--json", code=0).stdout)
    file = Path(told["file"])
    assert told["bytes"] == file.stat().st_size
    assert (told["run_id"], told["state"], told["nodes"], told["cut_texts"]) == (
        "r1",
        "completed",
        1,
        0,
    )
    check("report", devall("report", "none", "--json", code=2).stdout)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nobody",), "there is no run nobody"),
        (("r1", "-o", "-", "--json"), "standard output is for the object of --json"),
        (("r1", "-o", "w.yaml/page.html"), "cannot be written"),
        (("r1", "--logs-dir", "elsewhere"), "there is no folder elsewhere"),
    ],
)
def test_what_cannot_be_done_is_wrong_usage(devall, ran, arguments, words):
    done = devall("report", *arguments, code=2)
    assert words in done.stderr
    assert not done.stdout or "--json" in arguments


def test_a_secret_of_today_is_taken_out(devall, ran):
    env = {"SOME_API_KEY": "sk-very-secret-key"}
    assert "sk-very-secret-key" not in devall("report", ran, "-o", "-", env=env, code=0).stdout


def test_a_run_that_waits_says_what_it_waits_for_and_how_to_go_on(devall, write):
    devall("run", write("h.yaml", HUMAN), "--run-id", "h", code=75)
    page = devall("report", "h", "-o", "-", code=0).stdout
    assert page.index("Waiting for a human") < page.index("Is it good?") < page.index("<main")
    assert "devall resume h --answer H=TEXT" in page


def test_a_failure_is_no_reason_not_to_report(devall, write):
    file = write(
        "a.yaml",
        "graph: {start: A, nodes: [{id: A, type: agent, config: {provider: openai, name: m}}], edges: []}",
    )
    with ChatServer({"m": [{"status": 401, "error": "no"}]}) as server:
        done = devall("run", file, "--task", "go", "--run-id", "f", env=server.env, code=1)
    assert "how it went, as a page: devall report f\n" in done.stderr
    page = devall("report", "f", "-o", "-", code=0).stdout
    assert "Failed" in page
    assert "devall resume f" in page


def test_a_workflow_that_is_gone_leaves_a_page_without_picture(devall, write):
    file = write("w.yaml", LITERAL)
    devall("run", file, "--task", "go", "--run-id", "m", "--journal", "memory", code=0)
    Path(file).unlink()
    done = devall("report", "m", code=0)
    assert "note: No picture" in done.stderr
    told = check("report", devall("report", "m", "--json", code=0).stdout)
    assert not told["picture"]
