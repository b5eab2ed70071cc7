"""What goes on in a run, in a few lines that fit the terminal; moves nothing and writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import OverflowMethod
from rich.text import Text

from devall.cli.board import Board, State
from devall.cli.streams import one_line
from devall.cli.strip import bar, end_of, packed, strip_of
from devall.cli.visits import Loop, Units, Visit
from devall.cli.words import Teller, money
from devall.core.amounts import count, duration

_MOST_CALLS = 3
"""Tool calls under way that are shown of one run of a node."""
_WIDEST_BAR = 60
_SLOW = 0.5
"""Seconds after which it is said that an agent has not come to its model yet."""
_SPINNER = ("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\")
_FRAME = 0.2
"""Seconds that a frame of the spinner lasts."""


@dataclass(frozen=True, slots=True)
class Picture:
    """Draws a board."""

    board: Board
    teller: Teller
    is_ascii: bool = False

    def lines(self, width: int, height: int, now: float) -> list[Text]:
        """The run as it stands, in at most half of the terminal's height.

        What runs comes first, then the loops, what comes next, all nodes, and the totals.
        """
        room = max(6, height // 2)
        below = [
            *self._loops(width),
            *self._next(width),
            *self._strip(width, max(1, room // 4)),
            *self._totals(width, now),
        ]
        lines = [*self._running(width, max(2, room - len(below)), now), *below]
        overflow: OverflowMethod = "crop" if self.is_ascii else "ellipsis"
        for line in lines:
            line.truncate(width, overflow=overflow)
        return lines

    def _running(self, width: int, room: int, now: float) -> Iterator[Text]:
        """The runs of nodes under way, as many as there is room for."""
        inside_of = {path.rpartition("/")[0] for path in self.board.visits}
        visits = [
            visit  # a subgraph is not shown beside what runs inside of it
            for path, visit in self.board.visits.items()
            if path not in inside_of
        ]
        used = 0
        for at, visit in enumerate(visits):
            shown = list(self._visit(visit, now, width))
            is_last = at == len(visits) - 1
            if used and used + len(shown) + (not is_last) > room:
                yield Text(f"  {self._dots} {len(visits) - at:,} more running", "dim")
                return
            used += len(shown)
            yield from shown

    def _visit(self, visit: Visit, now: float, width: int) -> Iterator[Text]:
        frames = _SPINNER[self.is_ascii]
        mark = "?" if visit.question else frames[int(now / _FRAME) % len(frames)]
        name = self._name(visit.node) + (f" (run {visit.number})" if visit.number > 1 else "")
        about = [duration(max(0, now - visit.began)), *self._about(visit, now)]
        style = "bold yellow" if visit.question else "bold cyan"
        between = f" {'-' if self.is_ascii else '·'} "
        yield Text.assemble((f"{mark} {name}", style), ("  " + between.join(about), "dim"))
        if visit.units is not None:
            yield self._bar(visit.units, width)
        if visit.question:
            yield Text(f"  {one_line(self.teller.text(visit.question), width)}", "yellow")
        if visit.note:
            yield Text(f"  {self._note(visit, now, width)}", "yellow")
        calls = list(visit.calls.values())
        for call in calls[:_MOST_CALLS]:
            elapsed = duration(max(0, now - call.began))
            progress = f" {one_line(self.teller.text(call.progress), 60)}" if call.progress else ""
            told = self.teller.call(call.tool, call.arguments)
            yield Text(f"  {told}{progress} {elapsed}", "cyan")
        if len(calls) > _MOST_CALLS:
            more = count(len(calls) - _MOST_CALLS, "more tool call")
            yield Text(f"  {self._dots} {more}", "cyan")
        if tail := one_line(self.teller.settled(visit.tail)):
            yield Text("  " + end_of(tail, width - 2, self._dots), "dim italic")

    def _about(self, visit: Visit, now: float) -> Iterator[str]:
        """What is to be said of a run of a node beside its time."""
        units = visit.units
        if units is not None:
            layer = f" of layer {units.layer}" if units.layer else ""
            yield f"{units.over:,}/{units.total:,} units{layer}"
            if units.failed:
                yield f"{units.failed:,} failed"
            if units.open:
                yield f"{len(units.open):,} running"
        if visit.question:
            yield "waits for an answer"
        elif visit.model and (units is None or units.open):
            model = f"{self._name(visit.model)}, turn {visit.turn}"
            yield f"waits for {model}" if visit.is_asking and units is None else model
        elif visit.note:
            return
        elif self.board.types.get(visit.node) == "agent" and now - visit.began > _SLOW:
            yield "waits for its tools and memories"

    def _bar(self, units: Units, width: int) -> Text:
        parts: list[tuple[State, int]] = [
            ("done", units.done),
            ("failed", units.failed),
            ("running", len(units.open)),
        ]
        size = max(10, min(_WIDEST_BAR, width - 4))
        return Text("  ").append_text(bar(parts, units.total, size, is_ascii=self.is_ascii))

    def _note(self, visit: Visit, now: float, width: int) -> str:
        text = one_line(self.teller.text(visit.note), width)
        if not visit.until:
            return text
        return f"again in {duration(max(0, visit.until - now))}: {text}"

    def _loops(self, width: int) -> list[Text]:
        found = [Text(self._loop(loop), "") for loop in self.board.loops.values()]
        return self._listed("loops", found, width, 1)

    def _loop(self, loop: Loop) -> str:
        nodes = ", ".join(map(self._name, loop.nodes[:3]))
        more = f", {self._dots}" if len(loop.nodes) > 3 else ""
        is_bounded = loop.bound is not None and loop.round <= loop.bound
        of = f"/{loop.bound:,}" if is_bounded else ""
        return f"{nodes}{more}: round {loop.round:,}{of}"

    def _next(self, width: int) -> list[Text]:
        """What waits for something that runs, and for what."""
        found: list[Text] = []
        for node, sources in self.board.next():
            names = ", ".join(map(self._name, sources[:3]))
            more = f" and {len(sources) - 3:,} more" if len(sources) > 3 else ""
            found.append(Text.assemble(self._name(node), (f" waits for {names}{more}", "dim")))
            if len(found) > 8:  # more than fit on a line
                break
        return self._listed("next", found, width, 1)

    def _strip(self, width: int, most_lines: int) -> list[Text]:
        board = self.board
        nodes: list[tuple[str, State]] = [(node, board.nodes[node]) for node in board.root]
        lines = strip_of(
            nodes,
            width - _LABEL,
            most_lines,
            is_ascii=self.is_ascii,
            shown=lambda name, longest: one_line(self.teller.text(name), longest),
        )
        return self._labelled("nodes", lines)

    def _totals(self, width: int, now: float) -> list[Text]:
        board = self.board
        done = sum(board.nodes[node] in {"done", "failed", "skipped"} for node in board.root)
        parts = [duration(max(0, now - board.began)), f"{done:,}/{len(board.root):,} nodes"]
        if running := sum(board.nodes[node] in {"running", "asking"} for node in board.root):
            parts.append(f"{running:,} running")
        if failed := len(board.of("failed")):
            parts.append(f"{failed:,} failed")
        if skipped := len(board.of("skipped")):
            parts.append(f"{skipped:,} skipped")
        if board.model_calls:
            parts.append(count(board.model_calls, "model call"))
        if board.tool_calls:
            parts.append(count(board.tool_calls, "tool call"))
        if board.input_tokens or board.output_tokens:
            parts.append(f"{board.input_tokens:,} tokens in, {board.output_tokens:,} out")
        if board.usd:
            parts.append(money(board.usage))
        elif board.unpriced_calls:
            parts.append("cost unknown")
        between = " - " if self.is_ascii else " · "
        lines = packed(map(Text, parts), width - 2, between)
        return [Text("  ").append_text(line) for line in lines]

    def _listed(self, label: str, parts: list[Text], width: int, most_lines: int) -> list[Text]:
        """Parts behind a label, with how many there are no lines for."""
        if not parts:
            return []
        lines = packed(parts, width - _LABEL, "; ")
        if len(lines) > most_lines:
            lines = lines[:most_lines]
            lines[-1].append(f"; {self._dots}", "dim")
        return self._labelled(label, lines)

    def _labelled(self, label: str, lines: list[Text]) -> list[Text]:
        return [
            Text.assemble((f"  {'' if at else label:<{_LABEL - 2}}", "dim"), line)
            for at, line in enumerate(lines)
        ]

    def _name(self, name: str) -> str:
        return one_line(self.teller.text(name), 40)

    @property
    def _dots(self) -> str:
        return "..." if self.is_ascii else "…"


_LABEL = 9
"""Cells of the labels on the left."""
