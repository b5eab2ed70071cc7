"""The moving picture of a run on a terminal, by rich.

What is over is printed once and scrolls away (a node with its words, a tool call, a warning);
what goes on stands below in a few lines that are drawn anew some times a second: running
nodes with the end of their streaming text, open tool calls, loops with their round, what
waits, and the totals. So a run of a thousand nodes costs no more lines than one of three.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Collection, Generator, Iterator

from rich.cells import cell_len
from rich.console import Console, Group, OverflowMethod, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

from devall.cli.board import Board, Visit
from devall.cli.streams import clean, one_line
from devall.cli.words import Line, Teller, Tone, count, duration
from devall.core.events import Event, NodeFinished, NodeSkipped, RunStarted

_INTERVAL = 0.2
"""Seconds between two pictures."""
_MOST_LINES = 6
"""Lines that are shown of what a node has said."""
_MANY_NODES = 40
"""From so many nodes on only the first line is shown of what a node has said."""
_TOO_MANY_NODES = 200
"""From so many nodes on those that are done or skipped are only counted."""

_STYLES: dict[Tone, tuple[str, str, str]] = {
    "good": ("✓", "+", "green"),
    "bad": ("✗", "x", "bold red"),
    "warning": ("!", "!", "yellow"),
    "question": ("?", "?", "bold yellow"),
    "tool": ("⚒", "*", "cyan"),
    "quiet": ("·", "-", "dim"),
    "plain": (" ", " ", ""),
}
_SPINNER = ("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\")


class LiveView:
    """Shows a run on standard error; an instance is itself the sink.

    Events are only taken in when they come; a thread draws, so that thousands of events a
    second cost no more drawing than one, and a blocked event loop still shows what it does.
    """

    def __init__(
        self, teller: Teller, *, answering: Collection[str] = (), console: Console | None = None
    ) -> None:
        self._teller = teller
        self._answering = frozenset(answering)
        self._console = console or Console(stderr=True, highlight=False, emoji=False)
        self._is_ascii = self._console.options.ascii_only
        self._overflow: OverflowMethod = "crop" if self._is_ascii else "ellipsis"
        self._board = Board()
        self._said: list[Line] = []
        self._lock = threading.RLock()  # what events change
        self._drawing = threading.RLock()  # the terminal; taken before `_lock`, if both are
        self._live: Live | None = None
        self._is_paused = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._most_lines = _MOST_LINES

    def __call__(self, event: Event, /) -> None:
        """Take the event in; it is drawn with the next picture."""
        with self._lock:
            self._board(event)
            line = self._teller.line(event)
            if line is not None and not line.is_passing and not self._is_counted_only(event):
                self._said.append(self._without_answer(event, line))
            if isinstance(event, RunStarted):
                self._most_lines = 1 if len(event.nodes) > _MANY_NODES else _MOST_LINES
                self._begin()

    def _is_counted_only(self, event: Event) -> bool:
        is_plain = isinstance(event, NodeFinished | NodeSkipped)
        return is_plain and len(self._board.root) > _TOO_MANY_NODES

    def note(self, text: str) -> None:
        """Say something above the picture."""
        with self._lock:
            self._said.append(Line("plain", text))
        self.draw()

    @contextlib.contextmanager
    def paused(self) -> Generator[None]:
        """The picture is gone until the end; what happens meanwhile is said afterwards."""
        self.draw()
        with self._drawing:
            live, self._live, self._is_paused = self._live, None, True
            if live is not None:
                live.stop()
        try:
            yield
        finally:
            with self._drawing:
                self._is_paused = False
                if live is not None and not self._stop.is_set():
                    self._start_live()

    def close(self) -> None:
        """Draw for the last time and give the terminal back; more than once is harmless."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._drawing:
            self._is_paused = False
            live, self._live = self._live, None
            if live is not None:
                live.update(Text(), refresh=False)
                live.stop()
        self.draw()

    def draw(self) -> None:
        """Say what is over, and draw what goes on; events may come in meanwhile."""
        with self._drawing:
            if self._is_paused:
                return
            with self._lock:
                said, self._said = self._said, []
                picture = self._picture() if self._live is not None else None
            if said:
                self._console.print(Group(*(part for line in said for part in self._printed(line))))
            if self._live is not None and picture is not None:
                self._live.update(picture, refresh=True)

    def _begin(self) -> None:
        if self._thread is None:
            self._start_live()
            self._thread = threading.Thread(target=self._keep_drawing, daemon=True, name="view")
            self._thread.start()

    def _start_live(self) -> None:
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def _keep_drawing(self) -> None:
        while not self._stop.wait(_INTERVAL):
            with contextlib.suppress(OSError):  # the terminal has gone: the run goes on
                self.draw()

    def _printed(self, line: Line) -> Iterator[RenderableType]:
        fancy, plain, style = _STYLES[line.tone]
        mark = Text(f"{plain if self._is_ascii else fancy} ", style)
        text_style = style if line.tone in {"bad", "warning", "quiet"} else ""
        text = Text(clean(line.text), text_style)
        width = max(20, self._console.width - 3)
        if line.is_one_line:
            text.truncate(width, overflow=self._overflow)
        for at, part in enumerate(text.wrap(self._console, width)):
            part.rstrip()
            yield Text.assemble("  " if at else mark, part)
        if line.body:
            lines = [text for text in clean(line.body).splitlines() if text.strip()]
            shown = "\n".join(lines[: self._most_lines])
            if len(lines) > self._most_lines:
                shown += f"\n… {count(len(lines) - self._most_lines, 'more line')}"
            yield Padding(Text(shown, "dim"), (0, 0, 0, 2))

    def _without_answer(self, event: Event, line: Line) -> Line:
        node = getattr(event, "node", None)
        return Line(line.tone, line.text) if line.body and node in self._answering else line

    def _picture(self) -> RenderableType:
        """What goes on now, in at most half of the terminal's height."""
        board, now = self._board, time.time()
        width = max(20, self._console.width - 1)
        room = max(4, self._console.height // 2)
        lines: list[Text] = []
        visits = list(board.visits.values())
        for at, visit in enumerate(visits):
            shown = list(self._visit(visit, now, width))
            if len(lines) + len(shown) > room and lines:
                lines.append(Text(f"  … {len(visits) - at} more running", "dim"))
                break
            lines += shown
        if loops := [f"{self._loop(names)}: round {number}" for names, number in self._loops()]:
            lines.append(Text("  loops   " + "; ".join(loops), "dim"))
        if waiting := board.of("waiting"):
            lines.append(Text("  waiting " + self._some(waiting, width), "dim"))
        lines.append(self._totals(now))
        for line in lines:
            line.truncate(width, overflow=self._overflow)
        return Group(*lines)

    def _visit(self, visit: Visit, now: float, width: int) -> Iterator[Text]:
        frames = _SPINNER[1] if self._is_ascii else _SPINNER[0]
        mark = "?" if visit.question else frames[int(now / _INTERVAL) % len(frames)]
        name = self._name(visit.node) + (f" (run {visit.number})" if visit.number > 1 else "")
        about = [duration(max(0, now - visit.began))]
        if visit.units:
            layer = f" of layer {visit.layer}" if visit.layer else ""
            about.append(f"{visit.units_done:,}/{visit.units:,} units{layer}")
        if visit.model:
            about.append(f"{self._name(visit.model)}, turn {visit.turn}")
        style = "bold yellow" if visit.question else "bold cyan"
        yield Text.assemble((f"{mark} {name}", style), ("  " + " · ".join(about), "dim"))
        if visit.question:
            yield Text(f"  {one_line(self._teller.text(visit.question), width)}", "yellow")
        if visit.note:
            yield Text(f"  {one_line(self._teller.text(visit.note), width)}", "yellow")
        for call in visit.calls.values():
            elapsed = duration(max(0, now - call.began))
            progress = f" {one_line(self._teller.text(call.progress), 60)}" if call.progress else ""
            yield Text(
                f"  {self._teller.call(call.tool, call.arguments)}{progress} {elapsed}", "cyan"
            )
        if tail := one_line(self._teller.settled(visit.tail)):
            yield Text("  " + _end_of(tail, width - 2), "dim italic")

    def _totals(self, now: float) -> Text:
        board = self._board
        done = sum(board.nodes[node] in {"done", "failed", "skipped"} for node in board.root)
        parts = [duration(max(0, now - board.began)), f"{done:,}/{len(board.root):,} nodes"]
        if failed := len(board.of("failed")):
            parts.append(f"{failed} failed")
        if skipped := len(board.of("skipped")):
            parts.append(f"{skipped} skipped")
        parts.append(count(board.model_calls, "model call"))
        if board.tool_calls:
            parts.append(count(board.tool_calls, "tool call"))
        if board.input_tokens or board.output_tokens:
            parts.append(f"{board.input_tokens:,} tokens in, {board.output_tokens:,} out")
        return Text("  " + " · ".join(parts))

    def _loops(self) -> list[tuple[tuple[str, ...], int]]:
        return list(self._board.loops.values())

    def _loop(self, nodes: tuple[str, ...]) -> str:
        return ", ".join(map(self._name, nodes[:3])) + (", …" if len(nodes) > 3 else "")

    def _some(self, nodes: list[str], width: int) -> str:
        """As many names as fit, and how many more there are."""
        text = ""
        for at, node in enumerate(nodes):
            more = f"{', ' if text else ''}{self._name(node)}"
            if len(text) + len(more) > width - 30 and text:
                return f"{text} and {len(nodes) - at:,} more"
            text += more
        return text

    def _name(self, name: str) -> str:
        return one_line(self._teller.text(name), 40)


def _end_of(text: str, width: int) -> str:
    """As much of the end of a text as fits; wide characters count as two."""
    text = text[-width:]
    while (over := cell_len(text) - width) > 0:
        text = text[-(-over // 2) :]
    return text
