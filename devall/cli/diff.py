"""`devall diff`: how two runs differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli.failures import Reporter, to_line
from devall.cli.pages import Page, past_of, redactor_of_today
from devall.cli.streams import write_answer, write_note
from devall.cli.words import count
from devall.core.messages import JsonValue

if TYPE_CHECKING:
    from devall.history.difference import Difference, Differences


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffOptions:
    """The options of `devall diff`, as they were written."""

    first: str
    second: str
    every: bool = False
    logs_dir: Path | None = None
    full: bool = False
    as_json: bool = False
    debug: bool = False


def execute(options: DiffOptions) -> int:
    """Print how the runs differ; the exit code: 0 they do not, 1 they do."""
    return Reporter(options.as_json, options.debug).guard(lambda: _execute(options))


def _execute(options: DiffOptions) -> int:
    from devall.history.difference import difference

    first, second = (
        past_of(options.logs_dir, options.first),
        past_of(options.logs_dir, options.second),
    )
    differences = difference(first=first, second=second)
    code = int(not differences.is_same)
    if options.as_json:
        shown = differences.found if options.every else differences.found[:1]
        told: dict[str, JsonValue] = {
            "exit_code": code,
            "first": first.id,
            "second": second.id,
            "same": differences.is_same,
            "count": len(differences.found),
            "differences": [_object(each) for each in shown],
            "notes": list(differences.notes),
        }
        write_answer(to_line(redactor_of_today().value(told)))
        return code
    if first.workflow != second.workflow:
        write_note(f"note: the runs are of two files: {first.workflow}, {second.workflow}")
    for note in differences.notes:
        write_note(f"note: {note}")
    if differences.is_same:
        write_note(f"runs {first.id} and {second.id} do not differ")
        return code
    page = Page(options.full)
    page.add(*lines_of(differences, (first.id, second.id), every=options.every))
    page.write()
    return code


def lines_of(
    differences: Differences, names: tuple[str, str], *, every: bool = False
) -> Iterator[str]:
    """What differs, as lines: the first difference named and shown, and how many more there are.

    Args:
        differences: What was found.
        names: What the two runs are called.
        every: Whether all differences are shown.
    """
    found = differences.found
    for at, each in enumerate(found if every else found[:1]):
        if at:
            yield ""
        only = ""
        if "only" not in each.aspect and (each.first is None or each.second is None):
            only = f" (only in {names[0] if each.second is None else names[1]})"
        yield f"{each.place}: {each.aspect}{only}"
        yield from each.lines(names)
    if len(found) > 1 and not every:
        more = len(found) - 1
        yield f"{count(more, 'further difference')} in {_places(found[1:])} (--all shows all)"


def _places(found: tuple[Difference, ...]) -> str:
    places = list(dict.fromkeys(each.place for each in found))
    return ", ".join([*places[:5], "…"] if len(places) > 5 else places)


def _object(each: Difference) -> dict[str, JsonValue]:
    return {
        "node": each.node or None,
        "visit": each.visit,
        "path": each.path,
        "aspect": each.aspect,
        "first": each.first,
        "second": each.second,
    }
