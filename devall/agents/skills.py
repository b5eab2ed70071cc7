"""An agent's skills: what it is told of them, which one is active, which tools that allows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Protocol, cast

from devall.agents.calls import ChangingTools, Tools
from devall.core.errors import SetupError, ToolError
from devall.core.messages import JsonValue, Message, TextPart, ToolCall
from devall.core.ports import Scope
from devall.loading.skills import Skill
from devall.tools import skills as own
from devall.tools import slices
from devall.tools.arguments import parse_arguments
from devall.tools.base import ToolResult, ToolSpec

_ALWAYS = frozenset({own.ACTIVATE, own.READ, slices.NAME})
"""What no skill can forbid."""
_SHELL = frozenset(";&|<>`$()\n")
"""Characters by which a command could hold another one."""
_HEAD = (
    "You have skills: folders of instructions for a kind of task. Where one fits what you are"
    f" asked, call {own.ACTIVATE} with its name before you begin, and do as it says."
)


class OpenableTools(Tools, Protocol):
    """Tools that their user closes."""

    async def aclose(self) -> None:
        """Let go of what was opened."""
        ...


@dataclass(frozen=True, slots=True)
class Card:
    """What is known of a skill from the beginning of an agent's run."""

    name: str
    description: str
    allowed: tuple[str, ...] | None = None
    """Globs of the tools that may be called while it is active; None = all."""

    def allows(self, call: ToolCall, spec: ToolSpec | None) -> bool:
        """Whether a call may be made while the skill is active.

        Args:
            call: As the model wrote it.
            spec: The tool, where there is one of that name.
        """
        if self.allowed is None or call.name in _ALWAYS:
            return True
        return any(_fits(glob, call, spec) for glob in self.allowed)

    def refusal(self, call: ToolCall, spec: ToolSpec | None) -> str:
        """What the model is told of a call that may not be made; empty: it may."""
        if self.allows(call, spec):
            return ""
        return (
            f"tool `{call.name}` is not allowed while skill `{self.name}` is active: its"
            f" `allowed-tools` are {', '.join(self.allowed or ()) or 'none'}; do without it, or"
            " make a skill active that allows it"
        )


@dataclass(slots=True)
class SkilledTools:
    """A node's tools, and beside them the two by which it uses its skills."""

    inner: OpenableTools
    find: Callable[[], Mapping[str, Skill]]
    """Finds the project's skills, when they are first needed."""
    allow: Collection[str] = ()
    """Only these; empty = all that are found."""
    _skills: Mapping[str, Skill] | None = field(default=None, init=False)

    async def cards(self, scope: Scope) -> tuple[Card, ...]:
        """The skills of a run of the agent: a run that is resumed has those it had before.

        Raises:
            SetupError: one that is allowed is not there.
        """

        async def listed() -> JsonValue:
            return [
                {
                    "name": skill.name,
                    "description": skill.description,
                    "allowed": None if skill.allowed is None else list(skill.allowed),
                }
                for skill in self._found().values()
            ]

        found = await scope.step("tools", "turn:1/skills", {"allow": sorted(self.allow)}, listed)
        return tuple(
            Card(
                each["name"],
                each["description"],
                None if each["allowed"] is None else tuple(each["allowed"]),
            )
            for each in found
        )

    async def ready(self) -> None:
        """Open the node's tools.

        Raises:
            SetupError: a source that is required cannot be used, or a tool has the name of one
                of the two.
        """
        await self.inner.ready()
        if self._found():
            taken = [spec.name for spec in self.inner.specs() if spec.name in _OWN]
            if taken:
                raise SetupError(
                    f"the agent has a tool `{taken[0]}`, and skills bring one of that name",
                    hint="give the tool's source a `prefix`",
                )

    def specs(self) -> Sequence[ToolSpec]:
        """The node's tools, and the two of skills where there are any."""
        return (*self.inner.specs(), *(_OWN.values() if self._found() else ()))

    async def call(self, call: ToolCall, scope: Scope) -> ToolResult:
        """What a call gives."""
        if call.name not in _OWN or not self._found():
            return await self.inner.call(call, scope)
        skills = self._found()
        try:
            arguments = parse_arguments(call.arguments, _OWN[call.name].parameters)
            if call.name == own.READ:
                return own.read(skills, arguments)
            return own.activate(
                skills, arguments, self._usable(skills.get(str(arguments.get("name"))))
            )
        except ToolError as error:
            text = f"{error} ({error.hint})" if error.hint else str(error)
            return ToolResult((TextPart(text),), is_error=True)

    async def settle(self, call: ToolCall, spec: ToolSpec, scope: Scope) -> ToolResult | None:
        """What a call gives of which nobody knows whether it was done."""
        return await self.inner.settle(call, spec, scope)

    @property
    def may_change(self) -> bool:
        """Whether the node's tools may be others from one turn to the next."""
        return isinstance(self.inner, ChangingTools) and self.inner.may_change

    async def refresh(self) -> None:
        """Take over what the sources offer now."""
        if isinstance(self.inner, ChangingTools):
            await self.inner.refresh()

    def beside(self, messages: Sequence[Message]) -> Sequence[ToolSpec]:
        """Tools that a conversation calls for by what stands in it."""
        return self.inner.beside(messages) if isinstance(self.inner, ChangingTools) else ()

    async def aclose(self) -> None:
        """Let go of the node's tools."""
        await self.inner.aclose()

    def _found(self) -> Mapping[str, Skill]:
        if self._skills is None:
            found = self.find()
            missing = [name for name in self.allow if name not in found]
            if missing:
                known = f"there are: {', '.join(found)}" if found else "there are none"
                raise SetupError(f"there is no skill {missing[0]}", hint=known)
            wanted = self.allow or found
            self._skills = {name: skill for name, skill in found.items() if name in wanted}
        return self._skills

    def _usable(self, skill: Skill | None) -> list[str]:
        """The node's tools that may be called while a skill is active."""
        if skill is None:
            return []
        names = [spec.name for spec in self.inner.specs()]
        globs = [glob.partition("(")[0] for glob in skill.allowed or ()]
        return [name for name in names if any(fnmatchcase(name, glob) for glob in globs)]


_OWN = {spec.name: spec for spec in own.SPECS}


def prompt_of(cards: Sequence[Card]) -> str:
    """What the system prompt says of an agent's skills; empty where it has none."""
    if not cards:
        return ""
    return "\n".join([_HEAD, *(f"- {card.name}: {card.description}" for card in cards)])


def active(cards: Sequence[Card], exchange: Sequence[Message]) -> Card | None:
    """The skill that was made active last in a run of the agent; None: no one was.

    It follows from the conversation alone, so that it is the same for a run that is resumed.

    Args:
        cards: The agent's skills.
        exchange: What the agent's run has said and been answered so far; what it remembers of
            earlier runs does not count.
    """
    known = {card.name: card for card in cards}
    calls = {
        call.id: call
        for message in exchange
        for call in message.tool_calls
        if call.name == own.ACTIVATE
    }
    found: Card | None = None
    for message in exchange:
        call = calls.get(message.tool_call_id)
        if message.role == "tool" and call is not None and not message.is_error:
            arguments = parse_arguments(call.arguments, own.ACTIVATE_SPEC.parameters)
            found = known.get(str(arguments.get("name"))) or found
    return found


def _fits(glob: str, call: ToolCall, spec: ToolSpec | None) -> bool:
    """Whether a call is one of `name`, `name*` or `name(what its main text begins with:*)`."""
    name, bracket, rest = glob.partition("(")
    if not fnmatchcase(call.name, name):
        return False
    if not bracket:
        return True
    wanted, text = rest.removesuffix(")"), _main_text(call, spec)
    if text is None or _SHELL & set(text) or ".." in text.split("/"):
        return False
    if wanted.endswith(":*"):
        prefix = wanted.removesuffix(":*")
        return text == prefix or text.startswith(f"{prefix} ")
    return fnmatchcase(text, wanted)


def _main_text(call: ToolCall, spec: ToolSpec | None) -> str | None:
    """The argument that says what a call does: the tool's first text, required ones first.

    The tool's schema tells, and not the order in which the model wrote the arguments.
    """
    if spec is None:
        return None
    declared = cast("Mapping[str, JsonValue]", spec.parameters.get("properties") or {})
    texts = [name for name, about in declared.items() if _is_text(about)]
    required = cast("Sequence[str]", spec.parameters.get("required") or ())
    name = next((each for each in texts if each in required), texts[0] if texts else None)
    try:
        value = parse_arguments(call.arguments, spec.parameters).get(name) if name else None
    except ToolError:
        return None
    return value if isinstance(value, str) else None


def _is_text(about: JsonValue) -> bool:
    return isinstance(about, dict) and cast("dict[str, JsonValue]", about).get("type") == "string"
