"""`devall runs prune`: old runs deleted, with all that was kept of them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli.failures import Reporter, to_line
from devall.cli.inputs import logs_folder
from devall.cli.pages import Page, columns, moment, size
from devall.cli.runs import check_status
from devall.cli.streams import is_terminal, one_line, write_answer, write_note
from devall.cli.words import count
from devall.core.errors import UsageError

if TYPE_CHECKING:
    from devall.history.past import Past
    from devall.history.pruning import Choice, Pruned

DEFAULT_AGE = "30d"
"""How old runs are that go, where neither --older-than nor --keep says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneOptions:
    """The options of `devall runs prune`, as they were written."""

    older_than: str | None = None
    keep: int | None = None
    status: str | None = None
    dry_run: bool = False
    yes: bool = False
    logs_dir: Path | None = None
    as_json: bool = False
    debug: bool = False


def execute(options: PruneOptions) -> int:
    """Delete the runs; the exit code: 1 where one could not be deleted."""
    return Reporter(options.as_json, options.debug).guard(lambda: _execute(options))


def _execute(options: PruneOptions) -> int:
    from devall.history.past import all_past
    from devall.history.pruning import give_back, prune, size_of

    choice = _choice(options)
    logs = logs_folder(options.logs_dir)
    runs = choice.of(all_past(logs))
    if options.dry_run or not runs:
        return _told(options, [(past, size_of(past.folder), "") for past in runs], 0)
    if not options.yes and not _is_confirmed(runs, logs):
        write_note("nothing was deleted")
        return 0
    done: list[Pruned] = list(prune(logs, runs))
    freed, is_done = give_back(logs)
    if not is_done:
        write_note(
            "the journal keeps its size while runs are alive; the room in it is used again,"
            " and a later prune gives it back"
        )
    return _told(options, [(each.past, each.size, each.problem) for each in done], freed)


def _choice(options: PruneOptions) -> Choice:
    from devall.history.pruning import Choice, parse_age

    check_status(options.status)
    if options.status == "running":
        raise UsageError("runs that are alive are never deleted", hint="cancel them first")
    if options.keep is not None and options.keep < 0:
        raise UsageError(f"--keep {options.keep} is no number of runs", hint="give one from 0")
    age = options.older_than
    if age is None and options.keep is None:
        age = DEFAULT_AGE
    return Choice(None if age is None else parse_age(age), options.keep or 0, options.status)


def _is_confirmed(runs: list[Past], logs: Path) -> bool:
    """Ask whether the runs shall go.

    Raises:
        UsageError: nobody can be asked.
    """
    what = f"{count(len(runs), 'run')} of {logs}"
    if not is_terminal(sys.stdin) or not is_terminal(sys.stderr):
        raise UsageError(
            f"{what} would be deleted for good", hint="--dry-run shows which, --yes deletes them"
        )
    for past in runs[:20]:
        write_note(f"  {past.id}  {past.state}  {one_line(past.task, 50)}")
    if len(runs) > 20:
        write_note(f"  … and {len(runs) - 20} more")
    sys.stderr.write(f"delete {what} for good? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _told(options: PruneOptions, runs: list[tuple[Past, int, str]], freed: int) -> int:
    problems = [problem for *_, problem in runs if problem]
    done = [(past, number) for past, number, problem in runs if not problem]
    total = sum(number for _, number in done) + freed
    code = int(bool(problems))
    if options.as_json:
        told = {
            "exit_code": code,
            "dry_run": options.dry_run,
            "runs": [
                {
                    "run_id": past.id,
                    "state": past.state,
                    "bytes": number,
                    "deleted": not problem and not options.dry_run,
                    "problem": problem or None,
                }
                for past, number, problem in runs
            ],
            "bytes": total,
            "journal_bytes": freed,
        }
        write_answer(to_line(told))
        return code
    for problem in problems:
        write_note(f"not deleted: {problem}")
    page = Page()
    if options.dry_run and runs:
        rows = [["RUN", "STATE", "BEGAN", "SIZE"]]
        rows += [[p.id, p.state, moment(p.began), size(number)] for p, number, _ in runs]
        page.add(*columns(rows, right={3}))
    verb = "would be deleted" if options.dry_run else "deleted"
    journal = f", {size(freed)} of it in the journal" if freed else ""
    page.add(f"{count(len(done), 'run')} {verb}, {size(total)}{journal}")
    page.write()
    return code
