"""`devall tools`: what tools the agents of a workflow have, and what one of them gives."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from devall.cli.bound import Bound, bound_agents, redactor_for, surveys
from devall.cli.failures import Reporter, error_text, to_line
from devall.cli.inputs import gather_variables, load, logs_folder
from devall.cli.interruption import Interruption
from devall.cli.streams import one_line, write_answer, write_note
from devall.cli.words import duration
from devall.core.errors import DevallError, ToolArguments, UsageError
from devall.core.messages import JsonValue, MediaPart, TextPart
from devall.core.outcome import outcome_of

if TYPE_CHECKING:
    from devall.core.events import Event
    from devall.loading.loader import LoadedWorkflow
    from devall.telemetry.redaction import Redactor
    from devall.tools.base import ToolResult, ToolSpec
    from devall.tools.survey import SourceReport, Survey
    from devall.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOptions:
    """The options that commands about a workflow's tools share, as they were written."""

    file: Path
    node: str | None = None
    ex_tools: Sequence[str] = ()
    variables: Sequence[str] = ()
    vars_file: Path | None = None
    env_file: Path | None = None
    functions_dir: Path | None = None
    logs_dir: Path | None = None
    as_json: bool = False
    debug: bool = False


Work = Callable[["LoadedWorkflow", "Redactor"], int]


def show(options: ToolOptions, *, connect: bool) -> int:
    """Print the tools of the agents; the exit code."""
    return reported(options, lambda loaded, redactor: _show(options, loaded, redactor, connect))


def call(options: ToolOptions, name: str, arguments: str, workspace: Path | None) -> int:
    """Call a tool and print its result; the exit code."""
    return reported(
        options,
        lambda loaded, redactor: _call(options, loaded, redactor, name, arguments, workspace),
    )


def workspace_for(folder: Path | None, logs_dir: Path | None) -> Workspace:
    """Where tools work that no run calls: the folder, or a new one as a run has it.

    Nothing is made before a tool needs it.
    """
    from devall.core.ids import new_run_id
    from devall.tools.outside import FolderWorkspace
    from devall.workspace import Workspace

    if folder is not None:
        if not folder.is_dir():
            raise UsageError(f"--workspace {folder}: there is no such folder")
        return FolderWorkspace(folder.resolve())
    place = logs_folder(logs_dir)
    return Workspace(place.resolve() / new_run_id())


def reported(options: ToolOptions, work: Work) -> int:
    """The exit code of work on the loaded file; what goes wrong is told without secrets."""

    def begin() -> int:
        variables = gather_variables(options.vars_file, options.variables)
        loaded = load(options.file, variables, options.env_file, options.functions_dir)
        redactor = redactor_for(loaded)
        reporter = Reporter(options.as_json, options.debug, str(options.file), redactor)
        return reporter.guard(lambda: work(loaded, redactor))

    return Reporter(options.as_json, options.debug, str(options.file)).guard(begin)


def _show(options: ToolOptions, loaded: LoadedWorkflow, redactor: Redactor, connect: bool) -> int:
    agents = bound_agents(loaded, options.node, options.ex_tools)
    found = Interruption(write_note).run(
        surveys(loaded, agents, connect=connect, functions_dir=options.functions_dir)
    )
    pairs = list(zip(agents, found, strict=True))
    code = 0 if all(s.is_usable and b.missing is None for b, s in pairs) else 4
    if options.as_json:
        nodes = [_node_object(bound, survey) for bound, survey in pairs]
        told = {"exit_code": code, "workflow": str(options.file), "nodes": nodes}
        write_answer(to_line(redactor.value(told)))
    else:
        lines = [line for bound, survey in pairs for line in _node_lines(bound, survey)]
        text = "\n".join(lines or ["no agent has tools"])
        write_answer(redactor.text(text) + "\n")
    return code


def _node_lines(bound: Bound, survey: Survey) -> Iterator[str]:
    yield bound.node
    if not survey.sources and bound.skills is None:
        yield "  no tools"
    for report in survey.sources:
        yield f"  {report.label}  {_state(report)}"
        for spec in report.tools:
            own = spec.metadata.get("original_name")
            renamed = f" (its own name: {own})" if own != spec.name else ""
            about = one_line(spec.description, 100)
            yield f"    {spec.name}({_arguments(spec)}){renamed}{'  ' if about else ''}{about}"
        for oddity in report.oddities:
            yield f"    note: {one_line(oddity)}"
    if bound.skills is not None:
        from devall.tools.skills import SPECS

        yield f"  skills {', '.join(bound.skills) or '(none found)'}  ready"
        yield from (f"    {spec.name}({_arguments(spec)})" for spec in SPECS)
    for error in _problems(bound, survey):
        yield from (f"  {line}" for line in _error_lines(error))


def _state(report: SourceReport) -> str:
    match report.state:
        case "not asked":
            return "not asked (--connect asks it)"
        case "failed":
            where = "" if report.source.required else ", and left out (`required: false`)"
            return f"FAILED after {duration(report.seconds)}{where}: {_sentence(report)}"
        case "ready" if report.protocol:
            return f"ready in {duration(report.seconds)}, protocol {report.protocol}"
        case "ready":
            return "ready"


def _arguments(spec: ToolSpec) -> str:
    """The arguments as a signature: `path: string, lines?: integer`."""
    properties = cast("Mapping[str, Any]", spec.parameters.get("properties") or {})
    required = cast("Sequence[str]", spec.parameters.get("required") or ())
    return ", ".join(
        f"{name}{'' if name in required else '?'}: {_type(schema)}"
        for name, schema in properties.items()
    )


def _type(schema: object) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    mapping = cast("Mapping[str, Any]", schema)
    kind: Any = mapping.get("type")
    if isinstance(kind, str):
        return kind
    if isinstance(kind, list):
        return " or ".join(str(each) for each in cast("list[object]", kind))
    either = mapping.get("anyOf") or mapping.get("oneOf")
    if isinstance(either, list):
        return " or ".join(dict.fromkeys(_type(each) for each in cast("list[object]", either)))
    return "any"


def _problems(bound: Bound, survey: Survey) -> Iterator[DevallError]:
    if bound.missing is not None:
        yield bound.missing
    if survey.collision is not None:
        yield survey.collision


def _error_lines(error: DevallError) -> list[str]:
    found = outcome_of(error).error
    return error_text(found).splitlines() if found is not None else []


def _sentence(report: SourceReport) -> str:
    """Why a source failed, its label, which stands before it, left out."""
    error = report.error
    hint = f" ({error.hint})" if error is not None and error.hint else ""
    return str(error).removeprefix(f"{report.label}: ") + hint


def _node_object(bound: Bound, survey: Survey) -> dict[str, JsonValue]:
    return {
        "node": bound.node,
        "skills": None if bound.skills is None else list(bound.skills),
        "sources": [_source_object(report) for report in survey.sources],
        "problems": [_error_object(error) for error in _problems(bound, survey)],
    }


def _source_object(report: SourceReport) -> dict[str, JsonValue]:
    from devall.config.prefixes import prefix_of

    return {
        "type": report.source.type,
        "source": report.label,
        "prefix": prefix_of(report.source),
        "required": report.source.required,
        "state": report.state,
        "seconds": round(report.seconds, 3),
        "protocol": report.protocol or None,
        "oddities": list(report.oddities),
        "error": report.error and _error_object(report.error),
        "tools": [spec_object(spec) for spec in report.tools],
    }


def spec_object(spec: ToolSpec) -> dict[str, JsonValue]:
    """A tool as a JSON object."""
    return {
        "name": spec.name,
        "description": spec.description,
        "parameters": dict(spec.parameters),
        "metadata": dict(spec.metadata),
    }


def _error_object(error: DevallError) -> dict[str, JsonValue]:
    return {"code": error.code, "message": str(error), "hint": error.hint or None}


def _call(
    options: ToolOptions,
    loaded: LoadedWorkflow,
    redactor: Redactor,
    name: str,
    arguments: str,
    folder: Path | None,
) -> int:
    from devall.tools.arguments import parse_arguments

    try:
        given = parse_arguments(arguments, {})
    except ToolArguments as error:
        raise UsageError(f"--args: {error}", hint="write --args '{\"NAME\": VALUE}'") from error
    bound = _one_of(bound_agents(loaded, options.node, options.ex_tools), options.node)
    if bound.missing is not None:
        raise bound.missing
    workspace = workspace_for(folder, options.logs_dir)
    began = time.perf_counter()
    result = Interruption(write_note).run(
        _called(options, loaded, redactor, bound, name, given, workspace)
    )
    seconds = time.perf_counter() - began
    if options.as_json:
        told = {
            "exit_code": int(result.is_error),
            "tool": name,
            "is_error": result.is_error,
            "seconds": round(seconds, 3),
            "content": [_part_object(part, workspace) for part in result.parts],
        }
        write_answer(to_line(redactor.value(told)))
    elif result.is_error:
        write_note(redactor.text(result.text))
    else:
        text = redactor.text(result.text)
        write_answer(text if text.endswith("\n") else text + "\n")
        for part in result.parts:
            if isinstance(part, MediaPart) and part.attachment:
                write_note(f"{part.type}: {workspace.attachments / part.attachment}")
    return int(result.is_error)


def _one_of(agents: Sequence[Bound], node: str | None) -> Bound:
    if len(agents) == 1:
        return agents[0]
    names = ", ".join(each.node for each in agents)
    if not agents:
        raise UsageError("no agent of this workflow has tools")
    raise UsageError(
        f"{'several agents have tools' if node is None else f'{node} is not one node'}",
        hint=f"name one with --node: {names}",
    )


async def _called(
    options: ToolOptions,
    loaded: LoadedWorkflow,
    redactor: Redactor,
    bound: Bound,
    name: str,
    arguments: Mapping[str, JsonValue],
    workspace: Workspace,
) -> ToolResult:
    from devall.core.events import ToolProgress, Warned
    from devall.plugins.project import functions_for
    from devall.tools.manager import ToolManager
    from devall.tools.mcp.pool import McpServers
    from devall.tools.names import nearest

    def take(event: Event) -> None:
        match event:
            case ToolProgress():
                total = f" of {event.total:g}" if event.total is not None else ""
                write_note(redactor.text(f"{event.progress:g}{total} {event.message}".rstrip()))
            case Warned():
                write_note(redactor.text(f"warning: {event.message}"))
            case _:
                pass

    async with (
        McpServers(emit=take, redact=redactor.text) as servers,
        ToolManager(
            bound.sources,
            functions=functions_for(loaded.path, options.functions_dir),
            servers=servers,
            workspace=workspace,
            base=bound.base,
            emit=take,
            node=bound.node,
            environment=loaded.environment.values,
        ) as tools,
    ):
        known = [spec.name for spec in tools.specs()]
        if name not in known:
            near = nearest(name, known)
            raise UsageError(
                f"node {bound.node} has no tool {name}",
                hint=f"did you mean {near[0]}?" if near else f"tools: {', '.join(known)}",
            )
        return await tools.call(name, arguments)


def _part_object(part: object, workspace: Workspace) -> dict[str, JsonValue]:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case MediaPart():
            path = str(workspace.attachments / part.attachment) if part.attachment else None
            return {
                "type": part.type,
                "mime_type": part.mime_type,
                "url": part.url or None,
                "path": path,
                "name": part.name or None,
            }
        case _:
            return {"type": "data", "data": getattr(part, "data", None)}
