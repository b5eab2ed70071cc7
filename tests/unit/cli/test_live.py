from __future__ import annotations

import io
import time

import pytest
from rich.cells import cell_len
from rich.console import Console

from devall.cli.live import LiveView
from devall.cli.words import Teller
from devall.core.events import (
    LoopRound,
    ModelCallStarted,
    NodeFinished,
    NodeSkipped,
    NodeStarted,
    RunStarted,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    UnitFinished,
    UnitStarted,
    Warned,
)
from devall.core.messages import assistant
from devall.telemetry.redaction import Redactor

SECRET = "sk-0123456789abcdef"


class Screen:
    """A terminal that keeps what is written to it; `picture` is what was drawn last."""

    def __init__(self, width: int = 80, height: int = 24, **options) -> None:
        self.file = io.StringIO()
        self.console = Console(
            file=self.file, force_terminal=True, width=width, height=height, color_system=None
        )
        self.view = LiveView(Teller(Redactor([SECRET])), console=self.console, **options)

    @property
    def text(self) -> str:
        return self.file.getvalue()

    def picture(self) -> list[str]:
        """The lines that stand on the screen below what has scrolled away."""
        self.file.seek(0)
        self.file.truncate()
        self.view.draw()
        shown = self.text.rpartition("\x1b[2K")[2]
        return [line.rstrip() for line in shown.split("\n")]


@pytest.fixture
def screen():
    screen = Screen()
    yield screen
    screen.view.close()


def begin(view: LiveView, *nodes: str) -> None:
    view(RunStarted(run_id="r", workflow="w.yaml", nodes=nodes or ("A", "B", "C"), at=time.time()))


def start(view: LiveView, node: str, model: str = "gpt") -> None:
    path = f"/{node}@1"
    view(NodeStarted(path=path, node=node, visit=1, at=time.time()))
    view(ModelCallStarted(path=path, node=node, provider="openai", model=model, turn=1))


def test_the_picture_shows_how_many_units_are_over(screen: Screen):
    begin(screen.view)
    screen.view(NodeStarted(path="/A@1", node="A", visit=1, at=time.time()))
    for number in (1, 2):
        place = {"path": f"/A@1/unit:{number}", "node": "A", "unit": number, "units": 40}
        screen.view(UnitStarted(**place))
        screen.view(UnitFinished(**place, seconds=0.1))
    lines = screen.picture()
    assert lines[0].endswith(" · 2/40 units")
    assert lines[1] == "  " + "━" * 3 + "─" * 57


def test_the_picture_shows_what_runs_and_what_waits(screen: Screen):
    begin(screen.view)
    start(screen.view, "A")
    screen.view(LoopRound(loop=("A", "B"), round=2))
    screen.view(TextDelta(path="/A@1", node="A", text="once upon\na time"))
    lines = screen.picture()
    assert " A  0." in lines[0]
    assert lines[0].endswith(" s · gpt, turn 1")
    assert lines[1:4] == [
        "  once upon a time",
        "  loops  A, B: round 2",
        "  nodes  ● A  · B  · C",
    ]
    assert "0/3 nodes · 1 running · 1 model call" in lines[4]


def test_what_is_over_is_said_once_with_its_words(screen: Screen):
    begin(screen.view)
    start(screen.view, "A")
    words = "\n".join(f"line {n}" for n in range(9))
    screen.view(
        NodeFinished(path="/A@1", node="A", visit=1, seconds=2, outputs=(assistant(words),))
    )
    screen.view(NodeSkipped(node="B"))
    screen.view.draw()
    said = screen.text
    assert "✓ A: done in 2.0 s" in said
    assert "  line 5" in said
    assert "line 6" not in said
    assert "… 3 more lines" in said
    assert "· B: skipped" in said
    screen.view.close()
    assert screen.text.count("✓ A: done") == 1


def test_long_words_that_a_node_hands_on_are_not_shown_again(screen: Screen):
    begin(screen.view)
    for node in ("A", "B"):
        for words in ("short", "once: " + "many words " * 20):
            screen.view(
                NodeFinished(
                    path=f"/{node}@1", node=node, visit=1, seconds=2, outputs=(assistant(words),)
                )
            )
    screen.view.close()
    assert screen.text.count("once:") == 1
    assert "B: done in 2.0 s, with words that stand above" in screen.text
    assert screen.text.count("  short") == 2


def test_the_answer_is_not_shown_twice():
    screen = Screen(answering=["A"])
    begin(screen.view)
    start(screen.view, "A")
    screen.view(
        NodeFinished(path="/A@1", node="A", visit=1, seconds=2, outputs=(assistant("the answer"),))
    )
    screen.view.close()
    assert "A: done" in screen.text
    assert "the answer" not in screen.text


def test_a_tool_call_is_one_line_however_long(screen: Screen):
    begin(screen.view)
    start(screen.view, "A")
    call = {"path": "/A@1", "node": "A", "call_id": "1", "tool": "search"}
    screen.view(ToolCallStarted(**call, arguments={"q": "word " * 100}, at=time.time()))
    assert screen.picture()[1].startswith('  search(q="word')
    screen.view(ToolCallFinished(**call, seconds=0.5, result="found " * 100))
    screen.view.draw()
    lines = [line for line in screen.text.split("\n") if "⚒" in line or "found" in line]
    assert len(lines) == 1
    assert "(0.5 s) → found" in lines[0]
    assert lines[0].rstrip().endswith("…")


def test_the_picture_fits_into_half_of_the_terminal(screen: Screen):
    nodes = [f"node {n}" for n in range(500)]
    begin(screen.view, *nodes)
    for node in nodes[:60]:
        start(screen.view, node)
    screen.picture()
    lines = screen.picture()
    assert len(lines) <= 24 // 2
    assert any("more running" in line for line in lines)
    assert sum("●" in line for line in lines) == 1


def test_of_very_many_nodes_those_that_are_done_are_only_counted():
    screen = Screen()
    nodes = [f"n{n}" for n in range(300)]
    begin(screen.view, *nodes)
    for node in nodes:
        screen.view(NodeStarted(path=f"/{node}@1", node=node, visit=1))
        screen.view(NodeFinished(path=f"/{node}@1", node=node, visit=1, seconds=0))
    screen.view(Warned(code="c", message="still said"))
    screen.view.draw()
    assert "300/300 nodes" in screen.text
    assert "still said" in screen.text
    assert ": done" not in screen.text
    screen.view.close()


def test_no_line_is_wider_than_the_terminal():
    screen = Screen(width=40)
    begin(screen.view, "日本語" * 30, "B" * 90)
    start(screen.view, "日本語" * 30, model="m" * 50)
    screen.view(TextDelta(path=f"/{'日本語' * 30}@1", node="x", text="日本" * 100))
    assert max(cell_len(line) for line in screen.picture()) <= 40
    screen.view.close()


def test_secrets_and_control_characters_reach_no_terminal(screen: Screen):
    begin(screen.view)
    start(screen.view, "A")
    shown = []
    for piece in ("the key: \x1b[31m", SECRET[:9], SECRET[9:], " and more"):
        screen.view(TextDelta(path="/A@1", node="A", text=piece))
        shown += screen.picture()
    out = (assistant(f"\x1b]0;title\x07{SECRET}"),)
    screen.view(NodeFinished(path="/A@1", node="A", visit=1, seconds=1, outputs=out))
    screen.view.draw()
    text = "".join(shown) + screen.text
    assert "sk-0" not in text
    assert "\x1b[31m" not in text
    assert "\x1b]0" not in text
    assert any("the key: *** and more" in line for line in shown)


def test_while_it_is_paused_nothing_is_drawn_and_nothing_is_lost(screen: Screen):
    begin(screen.view)
    start(screen.view, "A")
    with screen.view.paused():
        screen.file.seek(0)
        screen.file.truncate()
        screen.view(Warned(code="c", message="meanwhile"))
        screen.view.draw()
        assert screen.text == ""
    screen.view.draw()
    assert "meanwhile" in screen.text


def test_the_cursor_is_given_back(screen: Screen):
    begin(screen.view)
    screen.view.close()
    screen.view.close()
    assert screen.text.rpartition("\x1b[?25l")[2].count("\x1b[?25h") == 1


def test_notes_are_said_before_a_run_begins_too():
    screen = Screen()
    screen.view.note("interrupted")
    assert "interrupted" in screen.text
    screen.view.close()
