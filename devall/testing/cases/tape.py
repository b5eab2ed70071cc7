"""The steps of a run in a file: one JSON object a line, the same in every process."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast, get_args

from devall.core.diagnostics import Diagnostic, Position
from devall.core.errors import ConfigError, NotRecorded
from devall.core.ids import node_of
from devall.core.messages import JsonValue
from devall.core.ports import StepKind
from devall.journal.base import Step, StepRecord, StepState, fingerprint
from devall.journal.memory import MemoryJournal
from devall.journal.recording import Recording

VERSION = 1
"""Of the file's form."""

_KINDS = frozenset(get_args(StepKind))
_STATES = frozenset({"done", "failed", "begun"})
_ASKED = frozenset({"model", "tool", "human", "python"})
"""Steps of which a whole run leaves none out."""
_PART = re.compile(r"(\d+)")
_HINT = "make the case anew: devall test add RUN NAME --force, or devall test NAME --update"


@dataclass(frozen=True, slots=True)
class Tape:
    """What a run has done."""

    status: str
    """How it ended."""
    steps: Sequence[StepRecord]
    run_id: str = ""
    task: JsonValue = None
    """The first message, where it has several parts (files that were given); None: text alone."""


def write_tape(tape: Tape, change: Callable[[JsonValue], JsonValue]) -> str:
    """The text of a tape's file.

    In order of the steps' paths: parallel nodes end in another order each time.

    Args:
        tape: The steps; those that are not certain are left out.
        change: Takes out of requests and values what must not stand in a file.
    """
    head: dict[str, JsonValue] = {
        "recording": VERSION,
        "run": tape.run_id,
        "status": tape.status,
    }
    if tape.task is not None:
        head["task"] = change(tape.task)
    lines = [_line(head)]
    for step in sorted(tape.steps, key=lambda each: _order(each.key)):
        if step.state not in _STATES or (step.state == "begun" and step.kind != "human"):
            continue
        found: dict[str, JsonValue] = {"step": step.key, "kind": step.kind}
        if step.state != "done":
            found["state"] = step.state
        found["request"] = change(step.request)
        if step.state != "begun":
            found["value"] = change(_plain(step))
        lines.append(_line(found))
    return "".join(lines)


def read_tape(path: Path, name: str) -> Tape:
    """The tape in a file.

    Args:
        path: The file.
        name: How messages call it.

    Raises:
        ConfigError: it is no tape.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise _broken(name, 0, "", f"the recording cannot be read: {why}") from error
    head, *lines = text.split("\n")
    version = _object(head, name, 1).get("recording")
    if version != VERSION:
        found = f"version {version}" if version is not None else "no version"
        raise _broken(name, 1, head, f"a recording of version {VERSION} is wanted, not {found}")
    steps = [_step(line, name, number) for number, line in enumerate(lines, 2) if line.strip()]
    told = _object(head, name, 1)
    return Tape(str(told.get("status", "")), steps, str(told.get("run", "")), told.get("task"))


@dataclass(slots=True)
class Given:
    """Answers that a case gives beforehand; they stand before those that were recorded."""

    answers: Mapping[str, str | Sequence[str]]
    _used: dict[str, int] = field(default_factory=dict[str, int])

    def has_next(self, node: str) -> bool:
        """Whether there is an answer for the next question of a node; it counts as asked."""
        for name in (node, node.rpartition("/")[2]):
            words = self.answers.get(name)
            if isinstance(words, str):
                return True
            used = self._used.get(name, 0)
            if words is not None and used < len(words):
                self._used[name] = used + 1
                return True
        return False


class Player(Recording):
    """A recording that remembers what it was asked for and did not hold, and what nobody asked."""

    def __init__(self, tape: Tape, answers: Mapping[str, str | Sequence[str]]) -> None:
        """A player at its start.

        Args:
            tape: The steps.
            answers: What humans say beside what was recorded.
        """
        end = "" if tape.status == "completed" else tape.status
        super().__init__(tape.steps, end=end)
        self._tape = tape
        self._given = Given(answers)
        self._asked: set[str] = set()
        self.missing: list[NotRecorded] = []
        """Requests that the recording does not hold."""

    async def find(self, step: Step, /) -> StepRecord | None:
        """The recorded step; None: the case gives the answer of a human.

        Raises:
            RecordedFailure: it failed, and fails again.
            NotRecorded: it is not there, or came from another request.
        """
        self._asked.add(step.key)
        if step.kind == "human" and self._given.has_next(node_of(step.key)):
            return None
        try:
            return await super().find(step)
        except NotRecorded as error:
            self.missing.append(error)
            raise

    @property
    def is_whole(self) -> bool:
        """Whether the recorded run came to its end."""
        return self._tape.status == "completed"

    def unused(self) -> list[str]:
        """Recorded steps that nobody asked for."""
        return [
            each.key
            for each in self._tape.steps
            if each.kind in _ASKED and each.key not in self._asked
        ]


class Remake(MemoryJournal):
    """The steps of a run that is made anew; what was recorded for the same request is taken over.

    `records` are those that count.
    """

    def __init__(
        self, steps: Sequence[StepRecord], answers: Mapping[str, str | Sequence[str]]
    ) -> None:
        """A journal that knows what was recorded.

        Args:
            steps: The recorded steps.
            answers: What humans say beside what was recorded.
        """
        super().__init__()
        self._recorded = {each.key: each for each in steps if each.state == "done"}
        self._given = Given(answers)

    async def find(self, step: Step, /) -> StepRecord | None:
        """The recorded step; None: it is made."""
        known = self._recorded.get(step.key)
        if known is None or known.fingerprint != step.fingerprint:
            return None
        if step.kind == "human" and self._given.has_next(node_of(step.key)):
            return None
        await self.append(known)
        return known

    async def begin(self, step: Step, /) -> None:
        """Keep that a question is open."""
        if step.kind == "human":
            state: StepState = "begun"
            await self.append(
                StepRecord(step.key, step.kind, step.fingerprint, None, state, step.request)
            )


def _line(value: Mapping[str, JsonValue]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


def _plain(step: StepRecord) -> JsonValue:
    """The value of a step; where programs of servers are is this machine's own business."""
    if step.kind != "tools" or not step.value:
        return step.value
    return [
        {**spec, "metadata": {**spec["metadata"], "server": _without_folders(server)}}
        if isinstance(server := spec["metadata"].get("server"), str)
        else spec
        for spec in cast("list[dict[str, JsonValue]]", step.value)
    ]


def _without_folders(command: str) -> str:
    return " ".join(
        word.rpartition("/")[2] if word.startswith("/") else word for word in command.split(" ")
    )


def _order(key: str) -> list[tuple[int, str]]:
    """Paths in natural order: turn 10 comes after turn 9."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _PART.split(key)]


def _step(line: str, name: str, number: int) -> StepRecord:
    found = _object(line, name, number)
    key, kind, state = found.get("step"), found.get("kind"), found.get("state", "done")
    if not isinstance(key, str) or kind not in _KINDS or state not in _STATES:
        raise _broken(name, number, line, "this line is no recorded step")
    request = found.get("request")
    return StepRecord(
        key,
        cast("StepKind", kind),
        fingerprint(request),
        found.get("value"),
        cast("StepState", state),
        request,
    )


def _object(line: str, name: str, number: int) -> dict[str, JsonValue]:
    try:
        found: JsonValue = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _broken(name, number, line, "this line is no JSON") from error
    if not isinstance(found, dict):
        raise _broken(name, number, line, "this line is no JSON object")
    return cast("dict[str, JsonValue]", found)


def _broken(name: str, line: int, quoted: str, message: str) -> ConfigError:
    place = Position(name, line, 1 if line else 0)
    return ConfigError([Diagnostic("recording", message, place, _HINT, quoted=quoted)])
