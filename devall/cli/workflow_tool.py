"""A workflow as one tool of a server: its arguments, and the run that a call makes."""

from __future__ import annotations

import base64
import binascii
import mimetypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from devall.app import Attachment, RunResult, redactor_of, run
from devall.cli.inputs import needs_task, nodes_of
from devall.core.errors import DevallError, ToolArguments
from devall.core.events import (
    Event,
    LoopRound,
    NodeFailed,
    NodeFinished,
    NodeSkipped,
    NodeStarted,
    ToolProgress,
    UnitFinished,
)
from devall.core.messages import JsonValue, MediaPart, Part, TextPart
from devall.core.ports import Scope
from devall.graph.checked import load_workflow
from devall.loading.environment import is_secret_name
from devall.loading.loader import LoadedWorkflow
from devall.telemetry.redaction import SHORTEST_IN_ANSWERS
from devall.tools.base import ToolResult, ToolSpec
from devall.tools.names import public_name
from devall.tools.schemas import SchemaCheck
from devall.tools.serve.offer import Offer, Reply
from devall.workspace import Workspace

_ATTACHMENT: Mapping[str, JsonValue] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "The file's name."},
        "mime_type": {"type": "string", "description": "Default: what the name speaks of."},
        "text": {"type": "string", "description": "What the file holds, for a text."},
        "data": {"type": "string", "description": "What the file holds, in base64."},
    },
    "required": ["name"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class WorkflowTool:
    """Runs a workflow once for each call; no call sees another's files."""

    loaded: LoadedWorkflow
    logs_dir: Path
    """Each run makes a folder in it."""
    variables: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """Values that no client can change."""
    env_file: Path | None = None
    functions_dir: Path | None = None
    ex_tools: Sequence[str] = ()
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    providers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def name(self) -> str:
        """The graph's id, or the name of the file, as a model may call it."""
        return public_name(self.loaded.root.config.id or self.loaded.path.stem)

    def offer(self) -> Offer:
        """The tool for a server."""
        graph = self.loaded.root.config
        parameters = self._parameters()
        about = graph.description or graph.initial_instruction or f"Runs {self.loaded.path.name}."
        spec = ToolSpec(self.name, about, parameters, {"destructiveHint": True})
        check = SchemaCheck(parameters)

        async def call(arguments: Mapping[str, JsonValue], scope: Scope, _session: str) -> Reply:
            try:
                check.check_arguments(arguments)
                return await self._run(arguments, scope)
            except DevallError as error:
                text = redactor_of(self.loaded).text(str(error))
                hint = f" ({error.hint})" if error.hint else ""
                return Reply(ToolResult((TextPart(text + hint),), is_error=True), _nothing)

        return Offer(spec, call)

    async def _run(self, arguments: Mapping[str, Any], scope: Scope) -> Reply:
        # Read anew for each call: the variables decide what the file says.
        given = cast("Mapping[str, JsonValue]", arguments.get("variables") or {})
        variables = {**given, **self.variables}
        loaded = load_workflow(
            self.loaded.path,
            variables=variables,
            env_file=self.env_file,
            functions_dir=self.functions_dir,
        )
        result = await run(
            loaded,
            task=arguments.get("task", ""),
            answers=arguments.get("answers"),
            attachments=[_attachment(each) for each in arguments.get("attachments") or ()],
            functions_dir=self.functions_dir,
            ex_tools=self.ex_tools,
            models=self.models,
            providers=self.providers,
            logs_dir=self.logs_dir,
            on_event=_Reports(scope, self.name).take,
        )
        spared = redactor_of(loaded).at_least(SHORTEST_IN_ANSWERS)
        return _reply(result, spared.text)

    def _parameters(self) -> dict[str, JsonValue]:
        graph = self.loaded.root.config
        properties: dict[str, JsonValue] = {
            "task": {"type": "string", "description": graph.initial_instruction or "The task."},
            "attachments": {
                "type": "array",
                "items": _ATTACHMENT,
                "description": "Files that go with the task; tools find them in the workspace.",
            },
        }
        offered = {name: _schema_of(value) for name, value in self._settable().items()}
        if offered:
            properties["variables"] = {
                "type": "object",
                "properties": offered,
                "additionalProperties": False,
                "description": "Settings of the workflow; what is not given is as the file has it.",
            }
        humans = nodes_of(self.loaded, "human")
        if humans:
            properties["answers"] = {
                "type": "object",
                "properties": {
                    name: {"type": "string", "description": f"What {name} answers when asked."}
                    for name in humans
                },
                "additionalProperties": False,
                "description": "What the humans of the workflow say: nobody is asked meanwhile.",
            }
        return {
            "type": "object",
            "properties": properties,
            "required": ["task"] if needs_task(self.loaded.root) else [],
            "additionalProperties": False,
        }

    def _settable(self) -> dict[str, JsonValue]:
        """The variables that a client may set.

        No secret, and none that holds a URL: a key would go to wherever a client says.
        """
        return {
            name: value
            for name, value in self.loaded.config.vars.items()
            if name not in self.variables
            and not is_secret_name(name)
            and not (isinstance(value, str) and "://" in value)
        }


@dataclass(slots=True)
class _Reports:
    """Makes progress of a run's events: one more for each node that begins or ends."""

    scope: Scope
    tool: str
    told: int = 0

    def take(self, event: Event) -> None:
        message = _message(event)
        if message:
            self.told += 1
            self.scope.emit(
                ToolProgress(
                    node="", call_id="", tool=self.tool, progress=self.told, message=message
                )
            )


def _message(event: Event) -> str:
    match event:
        case NodeStarted():
            again = f" (run {event.visit})" if event.visit > 1 else ""
            return f"{event.node} runs{again}"
        case NodeFinished():
            return f"{event.node} is done after {event.seconds:.1f} s"
        case NodeFailed():
            return f"{event.node} failed"
        case UnitFinished():
            return f"{event.node}: unit {event.unit} of {event.units} is done"
        case NodeSkipped():
            return f"{event.node} is skipped"
        case LoopRound():
            return f"round {event.round} of {', '.join(event.loop)}"
        case _:
            return ""


def _reply(result: RunResult, redact: Callable[[str], str]) -> Reply:
    """The answer, or why there is none, and by which run."""
    metadata = {
        "devall/run": {
            "run_id": result.run_id,
            "status": result.status,
            "exit_code": result.exit_code,
            "answer_node": result.answer_node,
            "seconds": round(result.seconds, 3),
        }
    }
    folder = result.logs_dir
    read = Workspace(folder).read_attachment if folder is not None else _nothing
    if result.status != "completed":
        text = redact(_failure(result))
        return Reply(ToolResult((TextPart(text),), is_error=True), read, metadata)
    said = TextPart(redact(result.answer or "(the run ended with no answer)"))
    message = result.message
    media = tuple(p for p in message.parts if isinstance(p, MediaPart)) if message else ()
    parts: tuple[Part, ...] = (said, *media)
    return Reply(ToolResult(parts), read, metadata)


def _failure(result: RunResult) -> str:
    if result.status == "waiting":
        questions = "; ".join(f"{path}: {text}" for path, text in result.waiting)
        return f"the run waits for a human: {questions} (give `answers`)"
    error = result.error
    if error is None:
        return result.status
    hint = f" ({error.hint})" if error.hint else ""
    return f"{result.status.replace('_', ' ')} [{error.code}]: {error.message}{hint}"


def _attachment(given: Mapping[str, Any]) -> Attachment:
    name = given["name"]
    kind = given.get("mime_type") or mimetypes.guess_type(name)[0]
    text: Any = given.get("text")
    encoded: Any = given.get("data")
    if (text is None) == (encoded is None):
        raise ToolArguments(f"attachment {name}: `text` or `data` is wanted, one of them")
    if text is not None:
        return Attachment(text.encode(), kind or "text/plain", name)
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ToolArguments(f"attachment {name}: `data` is no base64: {error}") from error
    return Attachment(data, kind or "application/octet-stream", name)


def _schema_of(value: JsonValue) -> dict[str, JsonValue]:
    match value:
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer"}
        case float():
            return {"type": "number"}
        case str():
            return {"type": "string"}
        case _:
            return {}


def _nothing(name: str) -> bytes:
    raise FileNotFoundError(name)
