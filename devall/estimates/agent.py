"""What an agent sends at most: the requests of its runs, their tokens, their price, their time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

from devall.agents.answers import REPAIRS
from devall.agents.gates import LONGEST_PAUSE
from devall.agents.prompts import conversation
from devall.agents.recall import STAGES, Moment
from devall.agents.retry import LONGEST_RETRY_AFTER
from devall.agents.skills import prompt_of
from devall.agents.thinking import THINKERS
from devall.config.memory import FileStore, MemoryStore
from devall.config.nodes import AgentNode
from devall.core.messages import JsonValue, Message
from devall.core.usage import TokenUsage
from devall.estimates.asking import Asked
from devall.estimates.bounds import NOTHING, ONE, Bound, unbounded
from devall.estimates.ceilings import Ceiling
from devall.estimates.costs import Cost, Largest, Least
from devall.estimates.facts import AgentFacts
from devall.estimates.texts import FRAME, at_least, at_most, estimated, of_text
from devall.memory.passages import PASSAGE
from devall.models.base import ToolSchema
from devall.tools import slices
from devall.tools.skills import LONGEST as LONGEST_OF_SKILLS

_TOLD_OF_TOOLS = 250
"""Tokens of what a model is told of tools that it has to call in words."""
_SCHEMA_PROBLEMS = 5
"""Problems of an answer that a repair names, each with a piece of the answer."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The parts of an agent's first request that are known from the file, as estimated tokens."""

    role: int
    skills: int
    schema: int
    tools: int
    tool_count: int

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.role + self.skills + self.schema + self.tools


class AgentEstimate:
    """One agent of a graph: what follows from its own configuration."""

    def __init__(
        self,
        name: str,
        node: AgentNode,
        facts: AgentFacts,
        stores: tuple[MemoryStore, ...],
        ceiling: Ceiling,
    ) -> None:
        """Look at an agent.

        Args:
            name: Its name, `S/X` in a subgraph.
            node: As the file has it.
            facts: What it has to hand.
            stores: The memory stores of its graph.
            ceiling: The limits that it stands under, its own first.
        """
        self.name = name
        self._config = node.config
        self._may_be_left_out = node.on_error == "continue"
        self.facts = facts
        self._stores = {store.name: store for store in stores}
        self._ceiling = ceiling
        config = node.config
        sent = config.params.sent
        mode = config.params.tool_mode
        self.asked = Asked(name, facts.provider, facts.model, sent, config.history, mode)

    @cached_property
    def prompt(self) -> Prompt:
        """What is known of its first request."""
        skills = prompt_of(self.facts.skills)

        def of(role: str, skilled: str, schema: str) -> int:
            told = conversation(
                (), role=role, skills=skilled, answer=schema, input_mode=self._config.input_mode
            )
            return estimated([message for message in told if message.role == "system"])

        role = of(self._config.role, "", "")
        skilled = of(self._config.role, skills, "")
        whole = of(self._config.role, skills, self.facts.schema)
        tools = [tool.schema for side in self.facts.sources for tool in side.tools]
        return Prompt(
            role,
            skilled - role,
            whole - skilled,
            estimated(tools=tools) if tools else 0,
            len(tools),
        )

    @cached_property
    def has_tools(self) -> bool:
        """Whether it is offered any; a server may have some."""
        return any(side.tools or not side.is_known for side in self.facts.sources)

    @cached_property
    def turns(self) -> Bound:
        """Requests until it answers, in one run."""
        params = self._config.params
        choice = params.sent.get("tool_choice", "auto")
        if not self.has_tools or choice == "none":
            return ONE
        found = Bound(2 if params.tool_choice_then == "none" else params.tool_loop_limit + 1)
        for each in self._ceiling.chain():
            if (limit := each.limits.max_tool_calls) is not None:
                # Each turn but the last calls a tool, or was cut off, which it is not twice on end.
                found = found.capped(2 * limit + 2, each.label("max_tool_calls"))
        return self._ceiling.once(found, "max_model_calls")

    @cached_property
    def per_turn(self) -> Bound:
        """Tool calls in one answer."""
        if self._config.params.sent.get("parallel_tool_calls") is False:
            return ONE
        why = "an answer may ask for any number of tool calls"
        return unbounded(self.name, "limits.max_tool_calls", why)

    @cached_property
    def tool_calls(self) -> Bound:
        """Tool calls of one run; those of the last answer are not made any more."""
        if self.turns.value == 1:
            return NOTHING
        found = self.per_turn * ((self.turns.value or 1) - 1)
        return self._ceiling.once(found, "max_tool_calls")

    @cached_property
    def thoughts(self) -> Bound:
        """Requests for a second thought, in one run."""
        thinking = self._config.thinking
        if thinking is None:
            return NOTHING
        if thinking.type in THINKERS:
            return ONE
        why = f"thinking {thinking.type} may ask the model any number of times"
        return unbounded(self.name, "limits.max_model_calls", why)

    @cached_property
    def repairs(self) -> int:
        """Requests for an answer that fits `output_schema`, in one run."""
        return REPAIRS if self._config.output_schema is not None else 0

    @cached_property
    def calls(self) -> Bound:
        """Requests of one run."""
        found = self.turns + self.thoughts + Bound(self.repairs)
        return self._ceiling.once(found, "max_model_calls")

    @cached_property
    def answer(self) -> Bound:
        """Tokens of one answer."""
        return self.asked.answer

    @cached_property
    def tools(self) -> Bound:
        """Tokens of the tools that are offered."""
        found = NOTHING
        if self.has_tools:
            beside = ToolSchema(slices.NAME, slices.SPEC.description, slices.SPEC.parameters)
            told = estimated(tools=[beside]) + (0 if self.asked.calls_tools else _TOLD_OF_TOOLS)
            found = Bound(at_most(self.prompt.tools + told))
        for side in self.facts.sources:
            if not side.is_known:
                why = f"the tools of {side.label} are not known"
                found += unbounded(self.name, "", why)
        return found

    @cached_property
    def result(self) -> Bound:
        """Tokens of one tool result: a character may be one."""
        longest = max((side.most_chars for side in self.facts.sources), default=0)
        if self.facts.skills:
            longest = max(longest, LONGEST_OF_SKILLS)
        return Bound(max(longest, slices.LONGEST) + FRAME) if self.has_tools else NOTHING

    def memories(self, moment: Moment) -> Bound:
        """Tokens of what memories put into a request."""
        found = NOTHING
        for attachment in self._config.memories:
            stages = attachment.retrieve_stage or ("gen",)
            if not attachment.read or STAGES[moment].isdisjoint(stages):
                continue
            if isinstance(self._stores.get(attachment.name), FileStore):
                # A passage, its title and where it stands.
                found += Bound(attachment.top_k * (2 * PASSAGE + FRAME))
            else:
                why = f"how long the items of memory {attachment.name} are"
                found += unbounded(self.name, "", why)
        return found

    @cached_property
    def exchange(self) -> Bound:
        """Tokens of all tool calls and their results at the end of one run."""
        asked = self.answer * ((self.turns.value or 1) - 1)
        return asked + self.tool_calls * self.result

    @cached_property
    def words(self) -> Bound:
        """Tokens that one run remembers of its own words."""
        return self.exchange + self.answer + Bound(FRAME)

    @cached_property
    def system(self) -> Bound:
        """Tokens of the system prompt, and of the memories before the answer."""
        known = self.prompt.tokens - self.prompt.tools
        form: JsonValue = self._config.params.sent.get("response_format")
        if form is not None:
            known += estimated([Message("user", json.dumps(form, default=str))])
        return Bound(at_most(known)) + self.memories("answer")

    def cost(self, runs: Bound, seen: Bound, once: Bound) -> tuple[Cost, Largest]:
        """What so many runs cost, and the largest of their calls.

        Args:
            runs: How many.
            seen: Tokens of the messages that they see, all together.
            once: Tokens that one of them sees at most.
        """
        calls = self._ceiling.holds(runs * self.calls, "max_model_calls")
        cap, later = self.asked.request, Bound((self.turns.value or 1) - 1)
        first = seen + runs * self.system
        sent = (first + runs * self.tools).least(runs * cap)
        # Each later turn holds the first request and the exchange so far.
        grown = (first + runs * (self.tools + self._halfway)) * later
        sent += grown.least(runs * later * cap)
        sent += self._asked_again(runs, first, cap)
        largest = once + self.system + self.tools + self.exchange
        if self.repairs or self.thoughts.value != 0:
            largest += self._thought + self._repaired
        largest = largest.least(cap)
        sent = sent.least(calls * largest)
        written = calls * self.answer
        each = None
        if largest.value is not None and self.answer.value is not None:
            each = TokenUsage(int(largest.value), int(self.answer.value))
        attempts = self._config.retry.max_attempts if self._config.retry.enabled else 1
        tool_calls = self._ceiling.holds(runs * self.tool_calls, "max_tool_calls")
        usd = self.asked.usd(calls, sent, written, each)
        cost = Cost(calls, tool_calls, sent, written, sent + written, usd, calls * attempts)
        one = self.asked.usd(ONE, largest, self.answer, each)
        return cost, Largest(largest, self.answer, one, attempts)

    @property
    def _halfway(self) -> Bound:
        """Tokens of the exchange in a turn after the first, on the average."""
        turns = self.turns.value or 1
        results = self.tool_calls * self.result
        if self.per_turn.is_known:
            results = results.least(self.per_turn * self.result * (turns / 2))
        return self.answer * (turns / 2) + results

    @property
    def _thought(self) -> Bound:
        """Tokens that a second thought adds to the first request."""
        thinking = self._config.thinking
        if thinking is None:
            return NOTHING
        prompt = of_text(thinking.config.reflection_prompt)
        return self.answer + self.memories("thinking") + Bound(prompt + 2 * FRAME)

    @property
    def _repaired(self) -> Bound:
        """Tokens that one request for a better answer adds: the answer, and what is wrong with it."""
        if not self.repairs:
            return NOTHING
        told = at_most(self.prompt.schema) + 3 * FRAME + _SCHEMA_PROBLEMS * 50
        return self.answer * (1 + _SCHEMA_PROBLEMS) + Bound(told)

    def _asked_again(self, runs: Bound, first: Bound, cap: Bound) -> Bound:
        """Tokens of second thoughts and repairs."""
        found = NOTHING
        if self.thoughts.value != 0:
            found += (first * self.thoughts + runs * self.thoughts * self._thought).least(
                runs * self.thoughts * cap
            )
        for times in range(1, self.repairs + 1):
            found += (first + runs * (self.exchange + self._repaired * times)).least(runs * cap)
        return found

    def least(self, runs: int) -> Least:
        """What so many runs cost at least: one turn each."""
        if self._may_be_left_out:
            return Least(runs)
        thinking = self._config.thinking
        again = 1 if thinking is not None and thinking.type in THINKERS else 0
        told = at_least(self.prompt.tokens - self.prompt.tools) * (1 + again)
        sent = runs * told
        return Least(runs, runs * (1 + again), sent, self.asked.least_usd(sent))

    @cached_property
    def seconds(self) -> Bound:
        """Seconds of one run."""
        config = self._config
        attempts = config.retry.max_attempts if config.retry.enabled else 1
        wait = max(config.retry.max_wait_seconds, LONGEST_RETRY_AFTER) + 1
        each = attempts * (config.params.timeout + LONGEST_PAUSE) + (attempts - 1) * wait
        found = self.calls * each
        if self.has_tools:
            why = "how long its tools take: a call that tells of progress starts its time anew"
            found += unbounded(self.name, "timeout", why)
        return found
