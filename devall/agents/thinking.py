"""Second thoughts: what happens between an agent's answer and its output."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from devall.config.agents import Thinking
from devall.core.errors import DevallError, FunctionError
from devall.core.messages import NOTHING, Message, user

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
"""The kinds of thinking that ship with the package, by `thinking.type`."""

OwnThinking = Callable[[Thought, Ask, Mapping[str, Any]], Any]
"""A function of `functions/thinking/`, as users write it:

```python
async def second_opinion(thought, ask, settings):
    question = user(settings["question"])
    return await ask((*thought.prompt, thought.answer, question))
```

It gives a message or a text, which stands in the answer's place; nothing, and the first answer
stands. `settings` is what the file has as `thinking.config`. One that does not ask the model may
be a plain function.
"""


def own_thinker(name: str, function: OwnThinking, node: str) -> Thinker:
    """A project's own kind of thinking.

    Args:
        name: What the file calls it.
        function: What it does.
        node: Id of the agent, for error texts.

    Raises:
        FunctionError: by the thinker: the function raised, or gave something else.
    """

    async def think(thinking: Thinking, thought: Thought, ask: Ask) -> Message:
        try:
            value = await _result(function, thought, ask, thinking.settings)
        except DevallError:
            raise
        except Exception as error:  # a user's function may raise anything
            raise FunctionError("thinking", name, f"node {node}", error) from error
        match value:
            case Message():
                return replace(value, role="assistant", tool_calls=(), extra=NOTHING)
            case str() if value.strip():
                return replace(thought.answer, content=value)
            case None | str():
                return thought.answer
            case _:
                wrong = TypeError(f"it gave {type(value).__name__}, not a message or a text")
                raise FunctionError("thinking", name, f"node {node}", wrong)

    return think


async def _result(
    function: OwnThinking, thought: Thought, ask: Ask, settings: Mapping[str, Any]
) -> object:
    if inspect.iscoroutinefunction(function):
        return await function(thought, ask, settings)
    return await asyncio.to_thread(function, thought, ask, settings)
