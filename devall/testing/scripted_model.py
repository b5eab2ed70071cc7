"""Models that play a script in this process, without HTTP.

```python
models = ScriptedModels({"a": ["hello", {"tool_calls": [...]}]})  # a ModelSource
...  # run with it
models.requests["a"][0].messages  # what was asked
models.check_all_used()  # fails on unused replies
```

The script is that of `devall.testing.chat_server`; with `strict=True` a call beyond it
fails, else it is answered `<model> reply <n>`. An `error`, a `status` of 400 and more, and
the faults `silence`, `close` and `half_stream` fail as a real endpoint would; the other
faults need the server.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from devall.core.errors import ModelError, ModelRefused, ModelUnavailable
from devall.core.messages import Message, ToolCall
from devall.core.usage import TokenUsage
from devall.models.base import ChatReply, ChatRequest, ModelChoice, OnText, may_pass
from devall.testing import chat_wire
from devall.testing.script import Playback, Reply, ScriptLike


@dataclass(frozen=True, slots=True)
class ScriptedModel:
    """One model of a script."""

    name: str
    source: ScriptedModels
    provider: str = "scripted"
    url: str = ""

    async def complete(self, request: ChatRequest, on_text: OnText) -> ChatReply:
        """The next reply of the script.

        Raises:
            AssertionError: the script is strict and has no reply left.
            ModelRefused: the reply is an error that stays.
            ModelUnavailable: the reply is an error that may pass.
        """
        source = self.source
        source.requests.setdefault(self.name, []).append(request)
        reply = source.playback.next(self.name, {"model": self.name})
        number = len(source.requests[self.name])
        if reply is None:
            source.unexpected += 1
            raise AssertionError(f"the script has no reply number {number} for model {self.name}")
        if reply.delay:
            await asyncio.sleep(reply.delay)
        await self._fail(reply)
        if reply.text:
            on_text(reply.text)
        asked = chat_wire.Asked(self.name, number, {}, "chat")
        calls = tuple(
            ToolCall(chat_wire.call_id(c, asked, i), c.name, c.arguments_text, c.extra)
            for i, c in enumerate(reply.tool_calls)
        )
        message = Message("assistant", reply.text, tool_calls=calls, extra=reply.extra)
        return ChatReply(message, reply.finish, _usage(reply), self.name)

    async def _fail(self, reply: Reply) -> None:
        status = chat_wire.error_status(reply)
        match reply.fault:
            case "silence" | "stall":
                await asyncio.get_running_loop().create_future()
            case "close" | "half_stream" | "early_end":
                raise ModelUnavailable("the answer broke off", model=self.name)
            case _ if status >= 400:
                after = reply.retry_after
                is_passing = may_pass(status) and reply.error != "insufficient_quota"
                kind: type[ModelError] = ModelUnavailable if is_passing else ModelRefused
                raise kind(
                    chat_wire.error_body(reply)["error"]["message"],
                    model=self.name,
                    status=status,
                    retry_after=after if isinstance(after, int | float) else None,
                )
            case _:
                pass


def _usage(reply: Reply) -> TokenUsage | None:
    if reply.usage is None:
        return TokenUsage(1, max(1, len(reply.text.split())))
    if not reply.usage:
        return None
    return TokenUsage(
        int(reply.usage.get("prompt_tokens", 0)), int(reply.usage.get("completion_tokens", 0))
    )


@dataclass(slots=True)
class ScriptedModels:
    """A source of models that play one script."""

    script: ScriptLike | None = None
    strict: bool = False
    requests: dict[str, list[ChatRequest]] = field(default_factory=dict[str, list[ChatRequest]])
    """What each model was asked, in order."""
    unexpected: int = 0
    """Calls beyond a strict script."""
    is_closed: bool = False
    playback: Playback = field(init=False)
    _models: dict[str, ScriptedModel] = field(init=False, default_factory=dict[str, ScriptedModel])

    def __post_init__(self) -> None:
        self.playback = Playback.of(self.script, strict=self.strict)

    def model(self, choice: ModelChoice, /) -> ScriptedModel:
        """The scripted model of that name, whatever the provider."""
        if choice.name not in self._models:
            self._models[choice.name] = ScriptedModel(choice.name, self, choice.provider)
        return self._models[choice.name]

    def check_all_used(self) -> None:
        """Make sure that the whole script was played and nothing beyond it was asked.

        Raises:
            AssertionError: replies are left over, or calls went beyond a strict script.
        """
        assert not self.playback.unused(), f"replies left over: {self.playback.unused()}"
        assert not self.unexpected, f"{self.unexpected} calls beyond the script"

    async def aclose(self) -> None:
        """Nothing is open; that it was closed is noted."""
        self.is_closed = True
