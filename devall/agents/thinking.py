"""Second thoughts: what happens between an agent's answer and its output."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from devall.config.agents import Thinking
from devall.core.messages import Message, user

Ask = Callable[[Sequence[Message]], Awaitable[Message]]
"""Asks the agent's model, without tools."""


@dataclass(frozen=True, slots=True)
class Thought:
    """What is thought over."""

    prompt: tuple[Message, ...]
    """Role and inputs, memories among them; tool exchanges are not."""
    answer: Message


Thinker = Callable[[Thinking, Thought, Ask], Awaitable[Message]]
"""A kind of thinking: gives the answer that stands."""


async def reflection(thinking: Thinking, thought: Thought, ask: Ask) -> Message:
    """The model's second answer, given over role, input, its first answer and the prompt.

    The first one stands where the second is empty.
    """
    prompt = user(thinking.config.reflection_prompt)
    second = await ask((*thought.prompt, thought.answer, prompt))
    return second if second.parts else thought.answer


THINKERS: Mapping[str, Thinker] = MappingProxyType({"reflection": reflection})
"""The kinds of thinking by `thinking.type`."""
