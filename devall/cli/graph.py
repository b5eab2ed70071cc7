"""`devall graph`: a workflow's graph as a picture, and what a run of it did."""

from __future__ import annotations

import base64
import locale
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, assert_never

from devall.cli import options as parsing
from devall.cli.failures import Reporter, to_line
from devall.cli.inputs import gather_variables, load
from devall.cli.streams import is_terminal, write_answer, write_bytes, write_note
from devall.core.errors import UsageError
from devall.core.messages import JsonValue

if TYPE_CHECKING:
    from devall.history.past import Past
    from devall.loading.loader import LoadedGraph, LoadedWorkflow
    from devall.pictures.course import Course
    from devall.pictures.looks import Theme

Format = Literal["mermaid", "dot", "svg", "png", "ascii"]

FORMATS: tuple[Format, ...] = ("mermaid", "dot", "svg", "png", "ascii")
SUFFIXES: Mapping[str, Format] = {
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".dot": "dot",
    ".gv": "dot",
    ".svg": "svg",
    ".png": "png",
    ".txt": "ascii",
}
"""Of a file that is written: the kind of picture."""
THEMES: tuple[Theme, ...] = ("light", "dark", "auto")
WIDTH = 100
"""Columns of a picture of text where no terminal and no COLUMNS says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOptions:
    """The options of `devall graph`, as they were written."""

    file: Path | None = None
    format: str | None = None
    output: Path | None = None
    run: str | None = None
    theme: str | None = None
    scale: float = 2
    logs_dir: Path | None = None
    variables: Sequence[str] = ()
    vars_file: Path | None = None
    env_file: Path | None = None
    functions_dir: Path | None = None
    as_json: bool = False
    debug: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """What is drawn."""

    name: str
    """The workflow, as it is told."""
    loaded: LoadedWorkflow
    course: Course | None = None
    run_id: str | None = None

    @property
    def graph(self) -> LoadedGraph:
        """Its graph."""
        return self.loaded.root


def execute(options: GraphOptions) -> int:
    """Draw the graph; the exit code."""
    reporter = Reporter(options.as_json, options.debug, str(options.file or ""))
    return reporter.guard(lambda: _execute(options))


def _execute(options: GraphOptions) -> int:
    kind = _format(options)
    theme = parsing.one_of(options.theme, THEMES, "--theme")
    if not 0.25 <= options.scale <= 8:
        raise UsageError(f"--scale {options.scale:g} is not from 0.25 to 8")
    if kind == "png":
        if theme == "auto":
            raise UsageError("a PNG picture cannot follow its viewer", hint="--theme light or dark")
        if options.output is None and not options.as_json and is_terminal(sys.stdout):
            raise UsageError(
                "a PNG picture is nothing for a terminal", hint="write it to a file: -o graph.png"
            )
    subject = _subject(options)
    drawing = _drawing(subject, kind, theme, options.scale)
    if options.output is not None:
        _write(options.output, drawing)
    if options.as_json:
        write_answer(to_line(_object(subject, kind, drawing, options.output)))
    elif options.output is None:
        if isinstance(drawing, bytes):
            write_bytes(drawing)
        else:
            write_answer(drawing)
    return 0


def _format(options: GraphOptions) -> Format:
    given = parsing.one_of(options.format, FORMATS, "--format")
    if given is not None or options.output is None:
        return given or "mermaid"
    suffix = options.output.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(
            f"--output {options.output}: its suffix names no kind of picture",
            hint=f"{', '.join(SUFFIXES)}, or say --format",
        )
    return SUFFIXES[suffix]


def _subject(options: GraphOptions) -> _Subject:
    if options.run is None:
        if options.file is None:
            raise UsageError(
                "which workflow is to be drawn?", hint="name its file, or a run with --run RUN"
            )
        return _Subject(name=str(options.file), loaded=_load(options, options.file))
    from devall.cli.pages import past_of
    from devall.history.course import course_of

    past = past_of(options.logs_dir, options.run)
    story = past.story()
    if options.file is None:
        if options.variables or options.vars_file or options.env_file:
            raise UsageError(
                "with --run and no file the workflow is drawn as it was in the run",
                hint="leave --var, --vars-file and --env-file out, or name the file",
            )
        loaded, name = past.workflow_then(), past.workflow
    else:
        loaded, name = _load(options, options.file), str(options.file)
        known = story.started.nodes if story.started is not None else ()
        if why := _difference(past, loaded, known):
            write_note(f"note: {options.file} is not what run {past.id} ran: {why}")
    return _Subject(
        name=name,
        loaded=loaded,
        course=course_of(story, is_over=past.state != "running"),
        run_id=past.id,
    )


def _load(options: GraphOptions, file: Path) -> LoadedWorkflow:
    variables = gather_variables(options.vars_file, options.variables)
    return load(file, variables, options.env_file, options.functions_dir)


def _difference(past: Past, loaded: LoadedWorkflow, known: Sequence[str]) -> str:
    """How a file differs from what a run ran, in words; nothing: it does not."""
    if past.is_kept:
        then = past.workflow_then()
        if then.path.resolve() != loaded.path.resolve():
            return f"it ran {past.workflow}"
        return "" if _shape(then.root) == _shape(loaded.root) else "its graph has changed since"
    if past.workflow and Path(past.workflow).resolve() != loaded.path.resolve():
        return f"it ran {past.workflow}"
    now = tuple(node.id for node in loaded.root.config.nodes)
    return "" if now == tuple(known) else "its nodes have changed since"


def _shape(graph: LoadedGraph) -> list[object]:
    """What a picture shows of a graph."""
    config = graph.config
    found: list[object] = [config.start, config.end, config.edges, config.is_majority_voting]
    found += [(node.id, node.type) for node in config.nodes]
    return found + [_shape(child) for child in graph.subgraphs.values()]


def _drawing(subject: _Subject, kind: Format, theme: Theme | None, scale: float) -> str | bytes:
    """The picture, without secrets (a condition may look for one)."""
    from devall.cli.pages import redactor_of_today

    clean = redactor_of_today(subject.loaded.secrets).text
    if kind != "png":
        return clean(_text(subject, kind, theme))
    from devall.pictures.png import png

    chosen = "dark" if theme == "dark" else "light"
    found = png(subject.graph, subject.course, theme=chosen, scale=scale, clean=clean)
    for note in found.notes:
        write_note(f"note: {note}")
    return found.data


def _text(
    subject: _Subject, kind: Literal["mermaid", "dot", "svg", "ascii"], theme: Theme | None
) -> str:
    graph, course = subject.graph, subject.course
    match kind:
        case "mermaid":
            from devall.pictures.mermaid import mermaid

            return mermaid(graph, course)
        case "dot":
            from devall.pictures.dot import dot

            return dot(graph, course)
        case "svg":
            from devall.pictures.svg import svg

            return svg(graph, course, theme=theme or "auto")
        case "ascii":
            from devall.pictures.ascii import ascii_art

            width = shutil.get_terminal_size((WIDTH, 24)).columns
            return ascii_art(graph, course, width=width, plain=not _is_utf_8())
        case _:
            assert_never(kind)


def _is_utf_8() -> bool:
    """Whether a terminal shows more than ASCII, by the locale (Python's own is always UTF-8)."""
    return locale.getencoding().lower().replace("-", "") == "utf8"


def _write(file: Path, drawing: str | bytes) -> None:
    data = drawing if isinstance(drawing, bytes) else drawing.encode("utf-8", "replace")
    try:
        file.write_bytes(data)
    except OSError as error:
        raise UsageError(
            f"--output {file} cannot be written: {error.strerror or error}",
            hint="" if file.parent.is_dir() else f"there is no folder {file.parent}",
        ) from error


def _object(
    subject: _Subject, kind: Format, drawing: str | bytes, output: Path | None
) -> dict[str, JsonValue]:
    text = drawing if isinstance(drawing, str) else base64.b64encode(drawing).decode("ascii")
    return {
        "workflow": subject.name,
        "format": kind,
        "drawing": text,
        "run_id": subject.run_id,
        "output": None if output is None else str(output),
        "nodes": list(_nodes(subject.graph)),
        "edges": list(_edges(subject.graph)),
    }


def _nodes(graph: LoadedGraph, prefix: str = "") -> Iterator[dict[str, JsonValue]]:
    config = graph.config
    for index, node in enumerate(config.nodes):
        place = graph.locate(("nodes", index))
        yield {
            "node": prefix + node.id,
            "type": node.type,
            "start": config.is_majority_voting or node.id in config.start,
            "end": node.id in config.end,
            "file": place.file,
            "line": place.line,
            "column": place.column,
        }
        if node.id in graph.subgraphs:
            yield from _nodes(graph.subgraphs[node.id], f"{prefix}{node.id}/")


def _edges(graph: LoadedGraph, prefix: str = "") -> Iterator[dict[str, JsonValue]]:
    for edge in graph.config.edges:
        condition = edge.condition
        yield {
            "from": prefix + edge.from_,
            "to": prefix + edge.to,
            "trigger": edge.trigger,
            "carry_data": edge.carry_data,
            "conditional": not (condition.type == "always" and condition.value),
            "dynamic": edge.dynamic.type if edge.dynamic is not None else None,
        }
    for name, child in graph.subgraphs.items():
        yield from _edges(child, f"{prefix}{name}/")
