"""One agent's run: from its inputs to its answer, turn by turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from devall.agents.answers import AnswerSchema
from devall.agents.calls import Calls, Tools, with_unique_ids
from devall.agents.gates import Gate
from devall.agents.offers import Offers, Rewritten
from devall.agents.prompts import conversation, with_note
from devall.agents.recall import Attached, Recall
from devall.agents.repeats import Repeats
from devall.agents.requests import Requests
from devall.agents.skills import Card, SkilledTools, active, prompt_of
from devall.agents.thinking import THINKERS, Thinker, Thought
from devall.agents.window import KeepText
from devall.config.agents import AgentConfig
from devall.core.errors import LimitReached, OutputTruncated, SetupError
from devall.core.events import Warned
from devall.core.messages import NOTHING, JsonValue, Message, ToolCall, user
from devall.core.ports import NodeResult, Scope
from devall.models.base import AttachmentReader, ChatModel, ChatReply, ToolSchema
from devall.tools.base import ToolSpec

_OF_TOOLS = ("tool_choice", "parallel_tool_calls")
"""Parameters that endpoints refuse in a request without tools."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A model with a role, tools and memories, as all its runs share it."""

    id: str
    """The node's id: what its messages come from."""
    config: AgentConfig
    model: ChatModel
    tools: Tools | None = None
    """None where the agent has no sources."""
    memories: Sequence[Attached] = ()
    schema: AnswerSchema | None = None
    attachments: AttachmentReader | None = None
    """Reads the run's attachments that messages name."""
    keep_text: KeepText | None = None
    """Keeps a text as an attachment of the run."""
    gate: Gate = field(default_factory=Gate, repr=False, compare=False)
    """The way to the model's endpoint, shared with the run's other agents."""
    skills: SkilledTools | None = None
    """Its tools, where it has skills: the same object as `tools`."""
    thinkers: Mapping[str, Thinker] = field(default_factory=lambda: THINKERS)
    told: set[str] = field(default_factory=set[str], repr=False, compare=False)
    """What was said once, and need not be said for each run."""
    rewritten: Rewritten = field(
        default_factory=dict[str, tuple[ToolSpec, ToolSchema]], repr=False, compare=False
    )
    """What the provider is offered of each tool."""

    async def run(self, scope: Scope, inputs: Sequence[Message]) -> NodeResult:
        """One run: the answer, and the tool exchange that led to it.

        Raises:
            LimitReached: a bound was reached, `params.tool_loop_limit` among them.
            PromptTooLong: a request cannot fit the model's window.
            NoProgress: the model repeats the same calls.
            OutputTruncated: the model's tool calls were cut off twice in a row.
            ModelError: the model refused, stayed out of reach, or answered with nonsense.
            SetupError: a key, an extra or a kind of thinking is missing.
        """
        return await _Run(self, scope).result(inputs)


class _Run:
    """What one run of an agent has to hand."""

    def __init__(self, agent: Agent, scope: Scope) -> None:
        config = agent.config
        self._agent = agent
        self._scope = scope
        self._params = dict(config.params.sent)
        self._requests = Requests(
            scope.node,
            agent.model,
            config.retry,
            scope,
            agent.attachments,
            config.history,
            agent.keep_text,
            agent.gate,
            agent.told,
        )
        self._recall = Recall(agent.memories, agent.id, scope)
        self._repeats = Repeats(config.params.repeat_limit)
        self._offers = Offers(agent.tools, agent.model, scope, agent.told, agent.rewritten)
        self._was_cut = False
        self._skills: Sequence[Card] = ()

    async def result(self, inputs: Sequence[Message]) -> NodeResult:
        config = self._agent.config
        if self._agent.skills is not None:
            self._skills = await self._agent.skills.cards(self._scope)
        start = conversation(
            inputs,
            role=config.role or "",
            skills=prompt_of(self._skills),
            answer=self._agent.schema.prompt if self._agent.schema else "",
            input_mode=config.input_mode,
        )
        asked = _question(start)
        prompt = with_note(start, await self._recall.read("answer", asked.text))
        answer, exchange = await self._answer(prompt)
        if config.thinking is not None:
            answer = await self._second_thought(prompt, asked.text, answer)
        if self._agent.schema is not None:
            answer = await self._agent.schema.checked((*prompt, *exchange), answer, self._repair)
        await self._recall.write(asked, answer)
        output = Message("assistant", answer.content, self._agent.id)
        return NodeResult((output,), (*exchange, answer))

    async def _answer(self, prompt: Sequence[Message]) -> tuple[Message, tuple[Message, ...]]:
        """The first answer without tool calls, and the exchange before it."""
        limit = self._agent.config.params.tool_loop_limit
        exchange: tuple[Message, ...] = ()
        while True:
            whole = (*prompt, *exchange)
            offered = await self._offered(whole)
            sent = self._sent(has_tools=bool(offered))
            shown = self._requests.fitted(whole, self._offers.schemas(offered), sent)
            if shown != whole:
                offered = self._offers.with_beside(offered, shown)
            reply = await self._requests.send(
                shown, self._offers.schemas(offered), sent, self._answer_schema()
            )
            message = replace(reply.message, source=self._agent.id)
            if not message.tool_calls:
                self._warn_if_cut(reply)
                return message, exchange
            if self._requests.turn > limit:
                raise LimitReached("tool_loop_limit", limit, f"node {self._scope.node}")
            exchange += await self._exchange(prompt, exchange, message, reply, offered)

    async def _offered(self, messages: Sequence[Message]) -> Sequence[ToolSpec]:
        """The tools of the request that comes next."""
        turn = self._requests.turn + 1
        if turn == 1 or self._agent.config.params.tool_choice_then == "auto":
            return await self._offers.of_turn(turn, messages)
        return ()

    def _sent(self, *, has_tools: bool) -> Mapping[str, JsonValue]:
        """The parameters of the request that comes next."""
        dropped: tuple[str, ...] = ()
        if not has_tools:
            dropped = _OF_TOOLS
        elif self._requests.turn and self._params.get("tool_choice") not in ("auto", "none"):
            dropped = ("tool_choice",)
        return {key: value for key, value in self._params.items() if key not in dropped}

    async def _exchange(
        self,
        prompt: Sequence[Message],
        exchange: Sequence[Message],
        message: Message,
        reply: ChatReply,
        offered: Sequence[ToolSpec],
    ) -> tuple[Message, ...]:
        """A message with tool calls and the results that go back."""
        before = (*prompt, *exchange)
        taken = {call.id for earlier in before for call in earlier.tool_calls}
        turn = self._requests.turn
        calls = with_unique_ids(message.tool_calls, turn, taken)
        message = replace(message, tool_calls=calls)
        if reply.finish_reason == "length":
            return (message, *self._cut(calls, reply))
        self._was_cut = False
        runner = Calls(
            node=self._scope.node,
            source=self._agent.id,
            tools=self._agent.tools,
            offered={spec.name: spec for spec in offered},
            scope=self._scope,
            at_once=self._agent.config.parallel_tool_calls,
        )
        # All calls of a turn go by the skill that was active when the model wrote them.
        if skill := active(self._skills, exchange):
            runner = replace(runner, refusal=skill.refusal)
        results = await runner.run(turn, calls)
        told = self._repeats.note(
            (call, result.text) for call, result in zip(calls, results, strict=True)
        )
        if told:
            newest = results[-1]
            results = (*results[:-1], newest.with_text(f"{newest.text}\n\n{told}"))
        return (message, *results)

    def _cut(self, calls: Sequence[ToolCall], reply: ChatReply) -> list[Message]:
        """The results of calls that are not run, since the message that holds them was cut."""
        tokens = reply.usage.output_tokens if reply.usage else None
        if self._was_cut:
            raise OutputTruncated(self._agent.model.name, tokens)
        self._was_cut = True
        at = f" at {tokens} tokens" if tokens else ""
        text = (
            f"Not run: your message was cut off{at} before it was whole."
            " Make it shorter: fewer calls in one message, and smaller pieces in each."
        )
        self._warn("output_truncated", f"tool calls were cut off{at} and not run")
        return [
            Message("tool", text, self._agent.id, tool_call_id=call.id, is_error=True)
            for call in calls
        ]

    async def _second_thought(
        self, prompt: Sequence[Message], asked: str, answer: Message
    ) -> Message:
        thinking = self._agent.config.thinking
        assert thinking is not None
        thinker = self._agent.thinkers.get(thinking.type)
        if thinker is None:
            raise SetupError(
                f"there is no kind of thinking {thinking.type}",
                hint=f"known: {', '.join(self._agent.thinkers)}",
            )
        noted = with_note(prompt, await self._recall.read("thinking", asked))
        return await thinker(thinking, Thought(noted, answer), self._ask)

    async def _repair(self, messages: Sequence[Message]) -> Message:
        return await self._ask(messages, self._answer_schema())

    def _answer_schema(self) -> Mapping[str, JsonValue] | None:
        schema = self._agent.schema
        return None if schema is None else schema.schema

    async def _ask(
        self, messages: Sequence[Message], answer_schema: Mapping[str, JsonValue] | None = None
    ) -> Message:
        """The model's answer without tools; calls that it makes all the same are not run."""
        sent = self._sent(has_tools=False)
        reply = await self._requests.send(messages, params=sent, answer_schema=answer_schema)
        self._warn_if_cut(reply)
        message = replace(reply.message, source=self._agent.id)
        # What the provider put beside the calls may name them: sent back, they would be open.
        return replace(message, tool_calls=(), extra=NOTHING) if message.tool_calls else message

    def _warn_if_cut(self, reply: ChatReply) -> None:
        if reply.finish_reason in {"length", "content_filter"}:
            self._warn(
                "answer_truncated", f"the answer was cut off (finish_reason {reply.finish_reason})"
            )

    def _warn(self, code: Literal["answer_truncated", "output_truncated"], text: str) -> None:
        scope = self._scope
        scope.emit(Warned(path=scope.path, code=code, message=text, node=scope.node))


def _question(messages: Sequence[Message]) -> Message:
    """What the agent is asked: the newest user message; an empty one where there is none."""
    return next((m for m in reversed(messages) if m.role == "user"), user(""))
