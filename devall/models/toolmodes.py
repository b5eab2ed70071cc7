"""Tools for models that cannot call them: offered in words, read back from the reply."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from devall.core.errors import BadModelResponse, SetupError
from devall.core.messages import JsonValue, MediaPart, Message, TextPart, ToolCall
from devall.models.base import ChatModel, ChatReply, ChatRequest, OnText, ToolSchema, WrappedModel
from devall.models.convert import new_call_id
from devall.models.schemas import NO_TOOL, choice_schema
from devall.models.shapes import as_list, as_object, as_text

Mode = Literal["json_schema", "text"]

_BLOCK = re.compile(r"```[\w-]*\s*\n?(.*?)```|<tool_call>(.*?)</tool_call>", re.DOTALL)
_TOOL_PARAMS = frozenset({"tool_choice", "parallel_tool_calls"})
_CUT_CALL = re.compile(
    r'\s*\{\s*"tool"\s*:\s*"([^"]*)"\s*,\s*"(arguments|answer)"\s*:\s*(.*)', re.DOTALL
)


def with_tool_mode(model: ChatModel, mode: str) -> ChatModel:
    """The model, with tools in that mode.

    Raises:
        SetupError: there is no such mode.
    """
    if mode == "native":
        return model
    if mode not in {"json_schema", "text"}:
        raise SetupError(
            f"unknown tool mode {mode}", hint="`native`, `json_schema` or `text` are known"
        )
    return InWords(model, "text" if mode == "text" else "json_schema")


@dataclass(frozen=True, slots=True)
class InWords(WrappedModel):
    """A model that is told of tools in its system prompt; its replies look like native ones.

    In mode `json_schema` the endpoint holds the reply to a schema; in mode `text` the model
    is trusted to write `{"name", "arguments"}`, bare or fenced. Finished exchanges of call and
    result are folded into the user's message, since small models do not read them.
    """

    model: ChatModel
    mode: Mode

    async def complete(self, request: ChatRequest, on_text: OnText) -> ChatReply:
        """One attempt.

        Raises:
            ModelError: as the model itself; or the reply is not what was asked for.
        """
        tools, may_answer = _offered(request)
        params = {name: v for name, v in request.params.items() if name not in _TOOL_PARAMS}
        messages = folded(request.messages, has_tools=bool(tools))
        if not tools:
            plain = replace(request, messages=messages, tools=(), params=params)
            return await self.model.complete(plain, on_text)
        if self.mode == "json_schema":
            wanted = as_object(as_object(params.get("response_format")).get("json_schema"))
            schema = choice_schema(
                tools,
                may_answer=may_answer,
                answer=as_object(wanted.get("schema")) or request.answer_schema,
            )
            params["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "reply", "schema": schema, "strict": False},
            }
        told = _with_system(messages, _instructions(tools, self.mode, may_answer=may_answer))
        asked = replace(request, messages=told, tools=(), params=params)
        reply = await self.model.complete(asked, lambda _: None)
        found = self._read(reply, {tool.name for tool in tools}, may_answer=may_answer)
        if found.message.text:
            on_text(found.message.text)
        return found

    def _read(self, reply: ChatReply, names: set[str], *, may_answer: bool) -> ChatReply:
        """The reply as a native one.

        Raises:
            BadModelResponse: a call was demanded, and none was made.
        """
        text, calls = read_calls(reply.message.text, names)
        if not calls and reply.finish_reason == "length":
            text, calls = _read_cut(reply.message.text, names)
        if not calls and not may_answer and reply.finish_reason != "length":
            raise BadModelResponse(
                f"a tool call was demanded, and the model wrote: {text[:200]}",
                provider=self.provider,
                model=self.name,
                url=self.url,
                usage=reply.usage,
                hint="use a larger model, or `tool_mode: json_schema`",
            )
        reason = reply.finish_reason
        if calls and reason == "stop":
            reason = "tool_calls"
        message = replace(reply.message, content=text, tool_calls=calls)
        return replace(reply, message=message, finish_reason=reason)


def _offered(request: ChatRequest) -> tuple[tuple[ToolSchema, ...], bool]:
    """The tools that `tool_choice` leaves, and whether a plain answer is legal."""
    choice: JsonValue = request.params.get("tool_choice")
    if choice == "none":
        return (), True
    if choice == "required":
        return request.tools, False
    wanted = as_object(choice)
    name = as_text(as_object(wanted.get("function")).get("name") or wanted.get("name"))
    if not name:
        return request.tools, True
    return tuple(tool for tool in request.tools if tool.name == name), False


def _instructions(tools: Sequence[ToolSchema], mode: Mode, *, may_answer: bool) -> str:
    lines = ["You can use these tools:"]
    for tool in tools:
        arguments = json.dumps(dict(tool.parameters), ensure_ascii=False)
        lines.append(f"- {tool.name}: {tool.description} Arguments: {arguments}")
    lines.append("")
    if mode == "json_schema":
        lines.append("Reply with one JSON object and nothing else.")
        lines.append('To use a tool: {"tool": "NAME", "arguments": {...}}')
        if may_answer:
            lines.append(f'To answer: {{"tool": "{NO_TOOL}", "answer": "..."}}')
    else:
        lines.append("To use a tool, reply with one JSON object and nothing else:")
        lines.append('{"name": "NAME", "arguments": {...}}')
        lines.append("Otherwise answer in plain text." if may_answer else "Use a tool now.")
    return "\n".join(lines)


def _with_system(messages: tuple[Message, ...], text: str) -> tuple[Message, ...]:
    """The messages, the text added to the system prompt."""
    if messages and messages[0].role == "system":
        first = messages[0]
        return (first.with_text(f"{first.text}\n\n{text}"), *messages[1:])
    return (Message("system", text), *messages)


def folded(messages: Sequence[Message], *, has_tools: bool) -> tuple[Message, ...]:
    """The messages, each exchange of calls and results folded into the user's message.

    Args:
        messages: With tool calls and tool messages.
        has_tools: Whether tools are offered still.
    """
    found: list[Message] = []
    calls: tuple[ToolCall, ...] = ()
    for message in messages:
        if message.role == "assistant" and message.tool_calls:
            calls = message.tool_calls
            said = f"You said: {message.text}" if message.text else ""
            _add(found, said, ())
        elif message.role == "tool":
            media = tuple(part for part in message.parts if isinstance(part, MediaPart))
            _add(found, _result(message, calls), media)
        else:
            found.append(message)
    if messages and messages[-1].role == "tool":
        more = ", or use another tool if you need one" if has_tools else ""
        _add(found, f"Answer now{more}.", ())
    return tuple(found)


def _add(found: list[Message], text: str, media: tuple[MediaPart, ...]) -> None:
    """Put a paragraph, and media, into the last user message."""
    if not found or found[-1].role != "user":
        found.append(Message("user"))
    last = found[-1]
    joined = "\n\n".join(filter(None, (last.text, text)))
    all_media = (*(part for part in last.parts if isinstance(part, MediaPart)), *media)
    content = (TextPart(joined), *all_media) if all_media else joined
    found[-1] = replace(last, content=content)


def _result(message: Message, calls: tuple[ToolCall, ...]) -> str:
    """A sentence about one result; with the arguments where the tool was called twice."""
    call = next((c for c in calls if c.id == message.tool_call_id), None)
    if call is None:
        return f"A tool gave: {message.text}"
    is_alone = sum(c.name == call.name for c in calls) == 1
    whose = call.name if is_alone else f"{call.name} with {call.arguments}"
    return f"The tool {whose} {'failed' if message.is_error else 'gave'}: {message.text}"


def read_calls(text: str, names: set[str]) -> tuple[str, tuple[ToolCall, ...]]:
    """What a reply says: its text and its calls.

    The whole text may be one JSON object (or a list of them), or hold such in fenced blocks
    or `<tool_call>` tags. Objects that are no call stay text.
    """
    whole = text.strip()
    if (answer := _answer_in(whole)) is not None:
        return answer, ()
    if calls := _calls_in(whole, names):
        return "", calls
    calls: tuple[ToolCall, ...] = ()
    rest = whole
    for block in _BLOCK.finditer(whole):
        inner = (block[1] or block[2] or "").strip()
        if (answer := _answer_in(inner)) is not None:
            return answer, ()
        if added := _calls_in(inner, names):
            calls += added
            rest = rest.replace(block[0], "", 1)
    return (rest.strip() if calls else text), calls


def _parsed(text: str) -> JsonValue:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _answer_in(text: str) -> str | None:
    """The answer of `{tool: none, answer}`; None where the text is no such object."""
    if not text.startswith("{"):
        return None
    data = as_object(_parsed(text))
    if data.get("tool") != NO_TOOL or "answer" not in data:
        return None
    answer: JsonValue = data["answer"]
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def _calls_in(text: str, names: set[str]) -> tuple[ToolCall, ...]:
    """The calls that a JSON text holds; none where one of its objects is no call."""
    if not text.startswith(("{", "[")):
        return ()
    parsed = _parsed(text)
    objects = as_list(parsed) or [parsed]
    calls = [_call_in(as_object(item), names) for item in objects]
    return tuple(call for call in calls if call is not None) if None not in calls else ()


def _call_in(data: dict[str, JsonValue], names: set[str]) -> ToolCall | None:
    """A call, where the object looks like one: with a tool's name, or with no other keys."""
    name = as_text(data.get("tool") or data.get("name"))
    arguments: JsonValue = data.get("arguments", data.get("parameters"))
    if not name or arguments is None:
        return None
    if name not in names and data.keys() not in ({"name", "arguments"}, {"tool", "arguments"}):
        return None
    is_text = isinstance(arguments, str)
    written = arguments if is_text else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(new_call_id(), name, written)


def _read_cut(text: str, names: set[str]) -> tuple[str, tuple[ToolCall, ...]]:
    """What a reply says that was cut off in the middle of its JSON."""
    found = _CUT_CALL.match(text)
    if found is None:
        return text, ()
    name, kind, rest = found.groups()
    if kind == "arguments" and name in names:
        return "", (ToolCall(new_call_id(), name, rest),)
    if kind == "answer" and rest.startswith('"'):
        # A cut may fall within an escape: up to five characters of it go.
        for end in range(len(rest), max(len(rest) - 6, 0), -1):
            answer = _parsed(rest[:end] + '"')
            if isinstance(answer, str):
                return answer, ()
    return text, ()
