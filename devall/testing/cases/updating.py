"""A case brought up to date with its workflow: recorded anew, expectations rewritten."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from devall.core.errors import ConfigError, DevallError
from devall.core.messages import JsonValue
from devall.loading.document import Document
from devall.loading.places import Path as Steps
from devall.telemetry.redaction import Redactor
from devall.testing.cases.playing import Played, play, play_live
from devall.testing.cases.reading import Case, read_case
from devall.testing.cases.running import CaseResult, Updated, result_of
from devall.testing.cases.tape import Tape, write_tape
from devall.testing.cases.verdict import Unmet
from devall.testing.cases.yaml_text import flow, member_lines

_FLOW_VALUE = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,}\]\n#]*[^,}\]\n#\s]""")
_KEY = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^:\n]+""")
_SHORT = {"equals", "runs"}
"""Keys whose value may stand in their mapping's place."""


async def update_case(case: Case) -> CaseResult:
    """Run a case, and write anew what is not as it says.

    Where requests are others than those recorded they are made with live models, the rest is
    taken from the recording. Of expectations those are rewritten that stand in the file and say a
    value: `status`, `exit_code`, `equals`, `runs`, the code of an error; and none where a run fails
    that is to complete.

    Raises:
        asyncio.CancelledError: the task was cancelled.
    """
    began = time.perf_counter()
    played = await play(case)
    updated: list[Updated] = []
    if played.needs_recording:
        trouble = await _record(case)
        if trouble is not None:
            played = Played(
                played.result, (trouble, *played.unmet), played.redactor, needs_recording=True
            )
        else:
            updated.append("recording")
            case = read_case(case.file, case.name)
            played = await play(case)
    changes = [each for each in played.unmet if each.can_update]
    if changes and _may_be_right(played) and _rewrite(case, changes, played.redactor):
        updated.append("expectations")
        case = read_case(case.file, case.name)
        played = await play(case)
    return result_of(case, played, time.perf_counter() - began, tuple(updated))


def _may_be_right(played: Played) -> bool:
    """Whether what came may be what is wanted from now on."""
    if played.needs_recording:
        return False
    endings = {("expect", "status"), ("expect", "exit_code")}
    ends_otherwise = any(each.path in endings for each in played.unmet)
    return played.result.status == "completed" or not ends_otherwise


async def _record(case: Case) -> Unmet | None:
    """Record a case anew; what hindered it."""
    assert case.tape is not None
    assert case.recording is not None
    path = ("recording",)
    try:
        live = await play_live(case)
    except DevallError as error:
        more = f" ({error.hint})" if error.hint else ""
        return Unmet(path, f"its requests changed, and live models cannot answer: {error}{more}")
    wanted = {case.config.expect.status or case.tape.status, case.tape.status}
    if live.result.status not in wanted:
        error = live.result.error
        why = f": {error.message}" if error is not None else ""
        said = live.result.status.replace("_", " ")
        return Unmet(path, f"its requests changed; the live run is {said}, so nothing is kept{why}")
    tape = Tape(live.result.status, live.steps, live.result.run_id)
    text = write_tape(tape, live.redactor.value)
    try:
        case.recording.write_text(text, "utf-8", "backslashreplace", "\n")
    except OSError as error:
        return Unmet(path, f"it was made anew, but cannot be written: {error.strerror or error}")
    return None


def _rewrite(case: Case, changes: Sequence[Unmet], redactor: Redactor) -> bool:
    """Write expectations anew; whether any was."""
    document = case.document
    text = rewritten(document, [(each.path, redactor.value(each.got)) for each in changes])
    if text == document.text:
        return False
    before = case.file.read_bytes()
    try:
        case.file.write_text(text, "utf-8", "backslashreplace", "\n")
        read_case(case.file)
    except OSError:  # what is not as expected is told anyway
        return False
    except ConfigError:  # a form of YAML that is not foreseen: the file stays as it was
        case.file.write_bytes(before)
        return False
    return True


def rewritten(document: Document, changes: Sequence[tuple[Steps, JsonValue]]) -> str:
    """The text of a file in which some values are others.

    What is not written in the file is left out, and all else stays as it stands.
    """
    lines = document.text.split("\n")
    spots: list[tuple[int, int, int, int, JsonValue]] = []
    for path, value in changes:
        found = _written(document, path)
        if found is not None:
            place = document.place.find(found)
            spots.append((place.key_line, place.key_column, place.line, place.column, value))
    for key_line, key_column, line, column, value in sorted(spots, reverse=True):
        head = lines[key_line - 1]
        if head[: key_column - 1].strip():  # within `{...}`
            old = lines[line - 1]
            match = _FLOW_VALUE.match(old, column - 1)
            if match is not None:
                lines[line - 1] = old[: column - 1] + flow(value) + old[match.end() :]
            continue
        key = _KEY.match(head, key_column - 1)
        assert key is not None
        end = _end(lines, key_line, key_column - 1)
        lines[key_line - 1 : end] = member_lines(key[0].rstrip(), value, key_column - 1)
    return "\n".join(lines)


def _written(document: Document, path: Steps) -> Steps | None:
    """Where a value stands in the file, in short form too; None: it does not."""
    place = document.place
    for number, step in enumerate(path):
        child = place.child(step)
        if child is None:
            is_short = number == len(path) - 1 and step in _SHORT and place.children is None
            return path[:number] if is_short else None
        place = child
    return path


def _end(lines: Sequence[str], key_line: int, indent: int) -> int:
    """The line (from 1) with which the value of a key ends."""
    end = key_line
    for number in range(key_line + 1, len(lines) + 1):
        line = lines[number - 1]
        if not line.strip():
            continue
        if len(line) - len(line.lstrip(" ")) <= indent:
            break
        end = number
    return end
