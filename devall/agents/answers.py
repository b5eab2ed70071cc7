"""Answers that must fit a JSON Schema: checked, and asked for again where they do not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NoReturn

from devall.agents.thinking import Ask
from devall.core.errors import BadModelResponse
from devall.core.fences import fenced_block
from devall.core.messages import JsonValue, Message, assistant, user
from devall.loading.answer_schemas import validator_of

REPAIRS = 2
"""How often the model is asked again."""

_SHOWN_PROBLEMS = 5


class AnswerSchema:
    """What an agent's `output_schema` asks of its answers."""

    def __init__(self, schema: Mapping[str, JsonValue]) -> None:
        """Take the schema.

        Raises:
            SetupError: it is no JSON Schema, or refers to something outside.
        """
        self.schema = dict(schema)
        """As it was written."""
        self._validator = validator_of(self.schema)

    @cached_property
    def _text(self) -> str:
        return json.dumps(self.schema, ensure_ascii=False)

    @property
    def prompt(self) -> str:
        """What the agent is told of it from the beginning."""
        return f"Answer with nothing but JSON that fits this JSON Schema:\n{self._text}"

    async def checked(self, prompt: Sequence[Message], answer: Message, ask: Ask) -> Message:
        """The answer as JSON text that fits; repaired by asking again at most twice.

        Args:
            prompt: The conversation that the answer belongs to.
            answer: The model's answer, in a fenced block or bare.
            ask: Asks the model.

        Raises:
            BadModelResponse: it does not fit even so.
        """
        messages = [*prompt]
        text, problems = self._judged(answer.text)
        for _ in range(REPAIRS):
            if not problems:
                break
            messages += [assistant(answer.text, answer.source), user(self._complaint(problems))]
            answer = await ask(messages)
            text, problems = self._judged(answer.text)
        if not problems:
            return answer.with_text(text)
        raise BadModelResponse(
            f"the answer does not fit `output_schema`, also after {REPAIRS} more requests:"
            f" {'; '.join(problems)}",
            hint="simplify the schema, or describe the answer in `role`",
        )

    def _judged(self, text: str) -> tuple[str, list[str]]:
        """The JSON that the text is, or that its first fenced block is, and what is wrong with it."""
        text = text.strip()
        try:
            value = _parsed(text)
        except ValueError as error:
            found = fenced_block(text)
            if found is None:
                return text, [f"no valid JSON: {error}"]
            text = found.strip()
            try:
                value = _parsed(text)
            except ValueError as inner:
                return text, [f"no valid JSON in the fenced block: {inner}"]
        problems = [
            f"at {'/'.join(map(str, e.absolute_path)) or 'the top'}: {e.message}"
            for e in self._validator.iter_errors(value)
        ]
        return text, problems[:_SHOWN_PROBLEMS]

    def _complaint(self, problems: Sequence[str]) -> str:
        listed = "\n".join(f"- {problem}" for problem in problems)
        return (
            f"This answer does not fit. Problems:\n{listed}\n"
            f"Reply with nothing but JSON that fits this JSON Schema:\n{self._text}"
        )


def _parsed(text: str) -> JsonValue:
    """The value of a JSON text.

    Raises:
        ValueError: it is none.
    """
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError as error:
        raise ValueError("it is too deeply nested") from error


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")
