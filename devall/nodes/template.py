"""A text that is made of the last input."""

from __future__ import annotations

import os
from collections.abc import Sequence

from devall.config.nodes import TemplateConfig
from devall.core.messages import Message, user
from devall.core.ports import NodeResult, Scope
from devall.loading.templates import template_of
from devall.telemetry.redaction import without_secrets


class TemplateExecutor:
    """Fills in its template: `input` is the text of the last input, `inputs` those of all.

    `environment` has the variables of the environment whose names do not say that they are
    secrets.
    """

    def __init__(self, node: str, config: TemplateConfig) -> None:
        self._node = node
        self._fill = template_of(config.template)

    async def run(self, _scope: Scope, inputs: Sequence[Message], /) -> NodeResult:
        """The text; an empty one where nothing came in.

        Raises:
            TemplateError: the template cannot be filled in.
        """
        if not inputs:
            return NodeResult((user("", self._node),))
        values = {
            "input": inputs[-1].text,
            "inputs": [message.text for message in inputs],
            "environment": without_secrets(os.environ),
        }
        return NodeResult((user(self._fill(values), self._node),))
