"""`devall import chatdev`: what of ChatDev 2.0 runs here, and the changed copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli.failures import Reporter, diagnostics_text, to_line
from devall.cli.inputs import gather_variables
from devall.cli.streams import write_answer, write_note
from devall.cli.words import count
from devall.core.errors import UsageError
from devall.core.messages import JsonValue

if TYPE_CHECKING:
    from devall.graph.importing import File, Project


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """The options of `devall import chatdev`, as they were written."""

    place: Path
    write: bool = False
    output: Path | None = None
    in_place: bool = False
    force: bool = False
    functions_dir: Path | None = None
    variables: Sequence[str] = ()
    env_file: Path | None = None
    as_json: bool = False
    debug: bool = False


def execute(options: ImportOptions) -> int:
    """Look at the files, write the copies if that was asked for; the exit code."""
    return Reporter(options.as_json, options.debug).guard(lambda: _execute(options))


def _execute(options: ImportOptions) -> int:
    from devall.graph.importing import Surroundings, import_project, place_copies
    from devall.models.routes import PROVIDERS

    _check(options)
    around = Surroundings(
        gather_variables(None, options.variables),
        options.env_file,
        options.functions_dir,
        tuple(PROVIDERS),
    )
    project = import_project(options.place, around)
    if options.write:
        place_copies(project, output=options.output, in_place=options.in_place)
        _write(project, options)
    code = max(map(_code, project.files))
    if options.as_json:
        write_answer(to_line(_object(project, code)))
    else:
        _tell(project)
    return code


def _check(options: ImportOptions) -> None:
    for name, given in (("--output", options.output), ("--in-place", options.in_place)):
        if given and not options.write:
            raise UsageError(f"{name} says where copies go", hint="add --write")
    if options.output is not None and options.in_place:
        raise UsageError("--output and --in-place exclude each other")
    if not options.place.exists():
        raise UsageError(f"there is no file {options.place}")
    if options.env_file is not None and not options.env_file.is_file():
        raise UsageError(f"--env-file {options.env_file}: there is no such file")


def _code(file: File) -> int:
    return {"as it is": 0, "changed": 0, "left": 1, "unreadable": 3}[file.verdict]


def _write(project: Project, options: ImportOptions) -> None:
    """Write all copies, or none where one would take the place of something else."""
    from devall.loading.writing import replace_text

    targets: dict[Path, File] = {}
    for file in project.files:
        if file.target is None:
            continue
        real = file.target.resolve()
        if real in targets:
            raise UsageError(f"{file.name} and {targets[real].name} would both be {file.target}")
        targets[real] = file
        is_original = any(real == each.path.resolve() for each in project.files)
        if is_original and not options.in_place:
            raise UsageError(
                f"{file.target} is an original", hint="name another folder, or add --in-place"
            )
        if is_original or options.force or not real.exists():
            continue
        if not real.is_file() or real.read_bytes() != file.text.encode():
            raise UsageError(
                f"{file.target} is there already, and says something else",
                hint="take it away, or add --force",
            )
    for file in project.files:
        if file.target is None:
            continue
        try:
            file.target.parent.mkdir(parents=True, exist_ok=True)
            replace_text(file.target, file.text)
        except OSError as error:
            raise UsageError(
                f"{file.target} cannot be written: {error.strerror or error}"
            ) from error


def _tell(project: Project) -> None:
    for file in project.files:
        write_answer("\n".join(_lines(file)) + "\n")
    for path in project.others:
        write_note(f"{path}: no workflow, left out")
    if len(project.files) > 1:
        found = [file.verdict for file in project.files]
        wrong = found.count("left") + found.count("unreadable")
        write_answer(
            f"{len(found)} files: {found.count('as it is')} run as they are,"
            f" {found.count('changed')} after changes, {wrong} to decide about\n"
        )


def _lines(file: File) -> list[str]:
    """What is to be said about a file."""
    changes = [*file.imported.changes, *file.moves]
    said = {
        "as it is": "runs as it is",
        "changed": f"runs after {count(len(changes), 'change')}",
        "left": f"{count(len(file.left), 'thing')} to decide",
        "unreadable": "no YAML",
    }[file.verdict]
    if file.verdict == "left" and changes:
        said += f", after {count(len(changes), 'change')}"
    lines = [f"{file.name}: {said}"]
    lines += [f"  {each.position.line}: {each.message} ({each.hint})" for each in changes]
    lines += [f"  {each.position.line}: {each.message}" for each in file.imported.notes]
    if file.left:
        lines += [f"  {line}" for line in diagnostics_text(file.left).split("\n")[:-1]]
    if file.needs:
        lines.append(f"  it needs {'; '.join(file.needs)}")
    if file.target is not None:
        lines.append(f"  written to {file.target}")
    return lines


def _object(project: Project, code: int) -> dict[str, JsonValue]:
    from devall.loading.reports import as_json

    return {
        "exit_code": code,
        "files": [
            {
                "file": file.name,
                "verdict": file.verdict,
                "changes": [as_json(each) for each in (*file.imported.changes, *file.moves)],
                "left": [as_json(each) for each in file.left],
                "notes": [as_json(each) for each in file.imported.notes],
                "needs": list(file.needs),
                "written": None if file.target is None else str(file.target),
            }
            for file in project.files
        ],
        "others": [str(path) for path in project.others],
    }
