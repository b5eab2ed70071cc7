"""What is said to models and tools, and by them, in the form that the GenAI conventions give."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from devall.core.messages import JsonValue, Message, to_json
from devall.telemetry.hidden import kept_out
from devall.telemetry.otel import names
from devall.telemetry.redaction import Redactor

_FINISH = {"tool_calls": "tool_call", "function_call": "tool_call"}


class Content:
    """Keeps the conversations of a run, whose events tell each message only once."""

    def __init__(self, redactor: Redactor) -> None:
        """Begin with nothing said; `redactor` takes secrets out."""
        self._redactor = redactor
        self._said: dict[str, list[dict[str, JsonValue]]] = {}
        """By the logical path of the node's run."""

    def asked(
        self, path: str, messages: Sequence[object], tools: Sequence[str], *, is_first: bool
    ) -> dict[str, str]:
        """The attributes of a request.

        Args:
            path: Of the node's run.
            messages: What no earlier request of the conversation held.
            tools: Names of the tools that the model is offered.
            is_first: Whether the conversation begins with this request.
        """
        said = self._said.setdefault(path, [])
        if is_first:
            said.clear()
        said.extend(map(_as_object, messages))
        system = [part for each in said if each["role"] == "system" for part in _parts(each)]
        others = [_message(each) for each in said if each["role"] != "system"]
        found = {names.INPUT_MESSAGES: self._written(others)}
        if system:
            found[names.SYSTEM_INSTRUCTIONS] = self._written(system)
        if tools:
            offered = [{"type": "function", "name": name} for name in tools]
            found[names.TOOL_DEFINITIONS] = self._written(offered)
        return found

    def answered(self, path: str, reply: object, finish: str) -> dict[str, str]:
        """The attributes of a reply, which is a part of the conversation from now on."""
        if reply is None:
            return {}
        whole = _as_object(reply)
        self._said.setdefault(path, []).append(whole)
        told = _message(whole) | {"finish_reason": _FINISH.get(finish, finish or "stop")}
        return {names.OUTPUT_MESSAGES: self._written([told])}

    def forget(self, path: str) -> None:
        """Let go of a conversation that is over."""
        self._said.pop(path, None)

    def message(self, role: str, value: object) -> str:
        """One message as a list of messages: the task, the answer."""
        part = _text(value if isinstance(value, str | dict) else str(value))
        return self._written([{"role": role, "parts": [part]}])

    def value(self, value: JsonValue) -> str:
        """The arguments or the result of a tool: text as it is, all else as JSON."""
        return self._redactor.text(value) if isinstance(value, str) else self._written(value)

    def _written(self, value: JsonValue) -> str:
        clean = self._redactor.value(value)
        return json.dumps(clean, ensure_ascii=False, default=str)


def _as_object(message: object) -> dict[str, JsonValue]:
    """A message as an event holds it, or what stands for it where it is hidden."""
    if isinstance(message, Message):
        return to_json(message)
    return dict(cast("Mapping[str, JsonValue]", message))


def _message(said: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """A message in the conventions' form."""
    return {"role": said["role"], "parts": _parts(said)}


def _parts(said: Mapping[str, JsonValue]) -> list[dict[str, JsonValue]]:
    content = said.get("content", "")
    if said["role"] == "tool":
        response = content if isinstance(content, str) else [_part(each) for each in _all(content)]
        call = said.get("tool_call_id", "")
        return [{"type": "tool_call_response", "id": call, "response": response}]
    return [
        *(_part(each) for each in _all(content)),
        *(_call(each) for each in said.get("tool_calls", ())),
    ]


def _call(call: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    arguments = _loaded(call["arguments"])
    return {"type": "tool_call", "id": call["id"], "name": call["name"], "arguments": arguments}


def _all(content: JsonValue) -> list[JsonValue]:
    """Content as parts, whatever its form."""
    if isinstance(content, list | tuple):
        return list(cast("Sequence[JsonValue]", content))
    return [content] if content else []


def _part(part: JsonValue) -> dict[str, JsonValue]:
    match part:
        case str() | {"hidden": True}:
            return _text(part)
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "content": text}
        case {"type": "data", "data": data}:
            return {"type": "data", "content": data}
        case {"type": str(kind), "mime_type": mime, "url": str(url)} if url:
            return {"type": "uri", "modality": kind, "mime_type": mime, "uri": url}
        case {"type": str(kind), "mime_type": mime, "attachment": str(file)}:
            # By its name in the run's folder: spans are no place for files.
            return {"type": "file", "modality": kind, "mime_type": mime, "file_id": file}
        case _:
            return {"type": "text", "content": str(part)}


def _text(value: Any) -> dict[str, JsonValue]:
    if isinstance(value, str):
        return {"type": "text", "content": value}
    return {"type": "text", "content": kept_out(value.get("chars", "?"))}


def _loaded(text: JsonValue) -> JsonValue:
    """Arguments as the model wrote them, read where they can be."""
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text
