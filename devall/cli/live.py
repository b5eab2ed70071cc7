"""The moving picture of a run on a terminal, by rich.

What is over is printed once and scrolls away (a node with its words, a tool call, a warning);
what goes on stands below in a few lines that are drawn anew some times a second (picture.py):
running nodes with the end of their streaming text, units as a bar, open tool calls, loops with
their round, what comes next, all nodes by their state, and the totals. So a run of a thousand
nodes costs no more lines than one of three.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Collection, Generator, Iterator

from rich.console import Console, Group, OverflowMethod, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

from devall.cli.board import Board
from devall.cli.picture import Picture
from devall.cli.streams import clean, spelled
from devall.cli.words import Line, Teller, Tone
from devall.core.amounts import count
from devall.core.events import (
    Event,
    HumanAsked,
    LoopRound,
    ModelCallDelayed,
    ModelCallStarted,
    NodeFinished,
    NodeSkipped,
    RunStarted,
    TextDelta,
    UnitFinished,
)

_INTERVAL = 0.2
"""Seconds between two pictures."""
_SHARE = 0.03
"""Of the time of a processor what drawing may take; pictures are fewer where one is dear."""
_LONGEST_INTERVAL = 1.0
_MOST_LINES = 6
"""Lines that are shown of what a node has said."""
_MANY_NODES = 40
"""From so many nodes on only the first line is shown of what a node has said."""
_TOO_MANY_NODES = 200
"""From so many nodes on those that are done or skipped are only counted."""

_LONG = 100
"""Characters from which on what was said once is not said again."""
_PLAIN = frozenset({NodeFinished, NodeSkipped})
_PASSING = frozenset(
    {TextDelta, ModelCallStarted, ModelCallDelayed, HumanAsked, LoopRound, UnitFinished}
)
"""Events that the picture shows: no line is made of them only to be thrown away."""
_STYLES: dict[Tone, tuple[str, str, str]] = {
    "good": ("✓", "+", "green"),
    "bad": ("✗", "x", "bold red"),
    "warning": ("!", "!", "yellow"),
    "question": ("?", "?", "bold yellow"),
    "tool": ("⚒", "*", "cyan"),
    "quiet": ("·", "-", "dim"),
    "plain": (" ", " ", ""),
}


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
        self._picture = Picture(self._board, teller, self._is_ascii)
        self._said: list[Line] = []
        self._shown: set[int] = set()
        """Hashes of what nodes have said."""
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
            if self._is_shown_anyway(event):
                return
            line = self._teller.line(event)
            if line is not None and not line.is_passing:
                self._said.append(self._without_known(event, line))
            if isinstance(event, RunStarted):
                self._most_lines = 1 if len(event.nodes) > _MANY_NODES else _MOST_LINES
                self._begin()

    def _is_shown_anyway(self, event: Event) -> bool:
        if self._teller.is_verbose:
            return False
        kind = type(event)
        return kind in _PASSING or (kind in _PLAIN and len(self._board.root) > _TOO_MANY_NODES)

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
                picture = self._drawn() if self._live is not None else None
            with self._console:  # one write, so that nothing flickers
                if said:
                    parts = (part for line in said for part in self._printed(line))
                    self._console.print(Group(*parts))
                if self._live is not None and picture is not None:
                    self._live.update(picture, refresh=True)

    def _drawn(self) -> RenderableType:
        width, height = self._console.size
        return Group(*self._picture.lines(max(20, width - 1), height, time.time()))

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
        pause = _INTERVAL
        while not self._stop.wait(pause):
            began = time.thread_time()
            with contextlib.suppress(OSError):  # the terminal has gone: the run goes on
                self.draw()
            pause = min(max(_INTERVAL, (time.thread_time() - began) / _SHARE), _LONGEST_INTERVAL)

    def _printed(self, line: Line) -> Iterator[RenderableType]:
        fancy, plain, style = _STYLES[line.tone]
        mark = Text(f"{plain if self._is_ascii else fancy} ", style)
        text_style = style if line.tone in {"bad", "warning", "quiet"} else ""
        text = Text(self._spelled(line.text), text_style)
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
                more = f"… {count(len(lines) - self._most_lines, 'more line')}"
                shown += f"\n{self._spelled(more)}"
            yield Padding(Text(shown, "dim"), (0, 0, 0, 2))

    def _spelled(self, text: str) -> str:
        return spelled(clean(text), self._console.encoding)

    def _without_known(self, event: Event, line: Line) -> Line:
        """The line without words that are shown elsewhere: the answer, what stands above."""
        if not line.body:
            return line
        if getattr(event, "node", None) in self._answering:
            return Line(line.tone, line.text)
        words = hash(line.body)
        if len(line.body) > _LONG and words in self._shown:
            return Line(line.tone, f"{line.text}, with words that stand above")
        self._shown.add(words)
        return line
