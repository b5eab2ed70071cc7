"""`${NAME}` and `$(NAME: default)`: what they stand for, and their replacement in one pass."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from devall.core.messages import JsonValue
from devall.loading.document import parse_value
from devall.loading.environment import Environment, is_secret_name
from devall.loading.places import Path
from devall.loading.wording import in_words

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_SPECIAL = re.compile(rf"\$\$\{{|\$\{{(?P<name>{_NAME})(?P<end>\}}|:-)")
_FROM_ENVIRONMENT = re.compile(rf"\$\(\s*(?P<name>{_NAME})\s*:(?P<default>.*)\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Unresolved:
    """In place of a value: the variable that nobody set."""

    name: str
    through: str = ""
    """The variable of the file that refers to it, where it is not the text itself."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """Something wrong with a variable's use in a text."""

    code: str
    message: str
    hint: str = ""
    name: str = ""
    """The variable, where one is to blame."""
    offset: int = 0
    """Where in the text, in characters."""


@dataclass(slots=True)
class Outside:
    """What all files of a load share: values from outside, and what was made of them."""

    environment: Environment
    given: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue], repr=False)
    """Values that the caller gives; they come before all others, and are taken as they are."""
    secrets: set[str] = field(default_factory=set[str], repr=False)
    """Values that must never be shown."""
    origins: dict[str, str] = field(default_factory=dict[str, str])
    """Where the value of each variable that was used came from, in words."""


class Scope:
    """The variables that one file sees.

    Looked up in this order: given by the caller, the file's `vars`, those of the file that
    includes it, the environment, `.env`. The values of `vars` are worked out when they are
    first asked for.
    """

    def __init__(
        self, outside: Outside, own: Mapping[str, JsonValue], parent: Scope | None = None
    ) -> None:
        self._outside = outside
        self._own = own
        self._parent = parent
        self._values: dict[str, JsonValue | Unresolved] = {}
        self._open: list[str] = []
        self._mistakes: list[tuple[Path, Mistake]] = []
        self._wanted: dict[str, bool] = {}  # used by the file: whether it is needed for certain
        self._refers: dict[str, set[str]] = {}

    def own_mistakes(self) -> list[tuple[Path, Mistake]]:
        """What is wrong within `vars` itself, by path; asked for when all texts are expanded.

        A variable that misses another one is no mistake where only values want it that may be
        missing.
        """
        names = [name for name in self._own if name not in self._outside.given]
        for name in names:
            self._own_value(name)
        referred = set[str]().union(*self._refers.values())
        needed = [n for n in names if self._wanted.get(n, n not in referred)]
        for name in needed:  # it grows
            needed += sorted(self._refers.get(name, set()) - set(needed))
        return [
            (path, mistake)
            for path, mistake in self._mistakes
            if mistake.code != "unresolved-variable" or path[1] in needed
        ]

    def value(self, name: str, *, is_certain: bool = False) -> JsonValue | Unresolved:
        """The value of a variable.

        Args:
            name: The variable.
            is_certain: Whether the file cannot be loaded without it.
        """
        if name in self._outside.given:
            value = self._outside.given[name]
            self._outside.origins[name] = "given"
            if isinstance(value, str) and value and is_secret_name(name):
                self._outside.secrets.add(value)
            return value
        if name in self._own:
            if self._open:
                self._refers.setdefault(self._open[-1], set()).add(name)
            else:
                self._wanted[name] = is_certain or self._wanted.get(name, False)
            self._outside.origins[name] = "vars"
            value = self._own_value(name)
            return Unresolved(value.name, name) if isinstance(value, Unresolved) else value
        if self._parent is not None:
            return self._parent.value(name, is_certain=is_certain)
        return self.from_environment(name)

    def from_environment(self, name: str) -> str | Unresolved:
        """The value of a variable of the environment or `.env`."""
        value = self._outside.environment.values.get(name)
        if value is None:
            return Unresolved(name)
        self._outside.origins[name] = self._outside.environment.origin(name)
        if value and is_secret_name(name):
            self._outside.secrets.add(value)
        return value

    def known(self) -> list[str]:
        """The names that a file may use, those of the whole environment aside."""
        above = self._parent.known() if self._parent is not None else list(self._outside.given)
        return list(dict.fromkeys([*self._own, *above, *self._outside.environment.files]))

    def hint(self, name: str) -> str:
        """What would be right in place of an unknown name: the nearest names first."""
        known = self.known()
        near = difflib.get_close_matches(name, [*known, *self._outside.environment.values], 3, 0.7)
        near = list(dict.fromkeys(near))
        rest = [each for each in sorted(known) if each not in near][:8]
        said = f"did you mean {' or '.join(f'`{each}`' for each in near)}? " if near else ""
        said += f"known: {', '.join(rest)}; " if rest else ""
        return f"{said}set it in `vars`, the environment or .env; `$${{` is a literal `${{`"

    def expand(
        self, text: str, *, is_certain: bool = True
    ) -> tuple[JsonValue | Unresolved, list[Mistake]]:
        """What a text stands for, its variables replaced, and what is wrong with it.

        Args:
            text: As the file has it.
            is_certain: Whether the file cannot be loaded without the variables in it.
        """
        whole = _FROM_ENVIRONMENT.fullmatch(text)
        if whole is not None:
            return self._typed(whole["name"], whole["default"])
        pieces, mistakes = self._pieces(text, is_certain)
        if len(pieces) == 1:
            return pieces[0], mistakes
        missing = next((each for each in pieces if isinstance(each, Unresolved)), None)
        return missing or "".join(map(_as_text, pieces)), mistakes

    def _typed(
        self, name: str, default: str | None
    ) -> tuple[JsonValue | Unresolved, list[Mistake]]:
        """`$(NAME: default)`: the environment's text, or the default, read as YAML."""
        found = self.from_environment(name)
        text = (default or "").strip() if isinstance(found, Unresolved) else found
        try:
            return parse_value(text), []
        except ValueError:
            what = "its default" if isinstance(found, Unresolved) else f"the value of {name}"
            message = f"`$({name}: ...)` takes YAML, and {what} is none"
            return Unresolved(name), [Mistake("bad-variable", message, name=name)]

    def _pieces(
        self, text: str, is_certain: bool
    ) -> tuple[list[JsonValue | Unresolved], list[Mistake]]:
        """The parts of a text: literal ones, and values of variables."""
        pieces: list[JsonValue | Unresolved] = []
        mistakes: list[Mistake] = []
        literal: list[str] = []
        at = 0
        while found := _SPECIAL.search(text, at):
            literal.append(text[at : found.start()])
            name = cast("str | None", found["name"])
            if name is None:
                literal.append("${")
                at = found.end()
                continue
            default: str | None = None
            at = found.end()
            if found["end"] == ":-":
                end = _closing(text, at)
                if end is None:  # no brace closes it: it is no variable
                    literal.append(found[0])
                    continue
                default, at = text[at:end], end + 1
            value = self._one(name, default, is_certain and default is None)
            if isinstance(value, Unresolved) and default is not None:
                value, inner = self.expand(default, is_certain=is_certain)
                mistakes += inner
            elif isinstance(value, Unresolved) and is_certain and not value.through:
                mistakes.append(
                    Mistake(
                        "unresolved-variable",
                        f"the variable `{value.name}` is not set",
                        self.hint(value.name),
                        value.name,
                        found.start(),
                    )
                )
            is_alone = found.start() == 0 and at == len(text)
            if isinstance(value, list | dict) and not is_alone:
                kind = in_words(cast("JsonValue", value))
                mistakes.append(
                    Mistake(
                        "bad-variable",
                        f"the variable `{name}` is {kind}: it cannot stand within a text",
                        f"write `${{{name}}}` alone as the whole value",
                        name,
                        found.start(),
                    )
                )
                value = Unresolved(name, name)
            if any(literal):
                pieces.append("".join(literal))
            literal = []
            pieces.append(cast("JsonValue | Unresolved", value))
        literal.append(text[at:])
        if any(literal) or not pieces:
            pieces.append("".join(literal))
        return pieces, mistakes

    def _one(self, name: str, default: str | None, is_certain: bool) -> JsonValue | Unresolved:
        """A variable's value; with a default, an empty one counts as not set, as in a shell."""
        value = self.value(name, is_certain=is_certain)
        return Unresolved(name) if default is not None and value in (None, "") else value

    def _own_value(self, name: str) -> JsonValue | Unresolved:
        """The value of one of the file's `vars`, its own variables replaced."""
        if name in self._values:
            return self._values[name]
        if name in self._open:
            circle = [*self._open[self._open.index(name) :], name]
            first = circle[0]
            if not any(m.code == "variable-cycle" and m.name in circle for _, m in self._mistakes):
                message = f"the variable `{first}` refers to itself: {' -> '.join(circle)}"
                mistake = Mistake("variable-cycle", message, "give one of them a value", first)
                self._mistakes.append((("vars", first), mistake))
            return Unresolved(name, name)
        self._open.append(name)
        value = self._inside(self._own[name], ("vars", name))
        self._open.pop()
        self._values[name] = value
        return value

    def _inside(self, value: JsonValue, path: Path) -> JsonValue | Unresolved:
        """A value of `vars` with the variables in it replaced, at any depth."""
        if isinstance(value, str):
            if "$" not in value:
                return value
            found, mistakes = self.expand(value)
            self._mistakes += [(path, mistake) for mistake in mistakes]
            return found
        missing: Unresolved | None = None
        items: Iterable[tuple[str | int, JsonValue]]
        if isinstance(value, dict):
            items = cast("dict[str, JsonValue]", value).items()
        elif isinstance(value, list):
            items = enumerate(cast("list[JsonValue]", value))
        else:
            return value
        done = {key: self._inside(each, (*path, key)) for key, each in items}
        missing = next((each for each in done.values() if isinstance(each, Unresolved)), None)
        return missing or (done if isinstance(value, dict) else list(done.values()))


Wants: TypeAlias = Callable[[Path], bool]
"""Whether the value at a path may be missing a variable when the file is loaded."""


@dataclass(slots=True)
class Expansion:
    """A file's values with their variables replaced."""

    root: JsonValue
    mistakes: list[tuple[Path, Mistake]] = field(default_factory=list[tuple[Path, Mistake]])
    missing: list[tuple[Path, str]] = field(default_factory=list[tuple[Path, str]])
    """Values that may be missing, and the variable that is not set."""
    unknown: set[Path] = field(default_factory=set[Path])
    """Values that could not be worked out: nothing can be said about them."""


def expand_all(root: dict[str, JsonValue], scope: Scope, may_miss: Wants) -> Expansion:
    """The file's values, `vars` aside, with their variables replaced; one pass over each text."""
    found = Expansion(root)
    found.root = {
        key: each if key == "vars" else _walk(each, (key,), scope, may_miss, found)
        for key, each in root.items()
    }
    return found


def _walk(value: JsonValue, path: Path, scope: Scope, may_miss: Wants, to: Expansion) -> JsonValue:
    """The value with its variables replaced; the same object where nothing changes."""
    if isinstance(value, str):
        if "$" not in value:
            return value
        is_certain = not may_miss(path)
        found, mistakes = scope.expand(value, is_certain=is_certain)
        to.mistakes += [(path, mistake) for mistake in mistakes]
        if not isinstance(found, Unresolved):
            return found
        if is_certain or mistakes:
            to.unknown.add(path)
            return value
        to.missing.append((path, found.name))
        return None
    if isinstance(value, dict):
        mapping = cast("dict[str, JsonValue]", value)
        changed = {
            key: new
            for key, each in mapping.items()
            if (new := _walk(each, (*path, key), scope, may_miss, to)) is not each
        }
        return mapping | changed if changed else mapping
    if isinstance(value, list):
        items = cast("list[JsonValue]", value)
        new = [_walk(each, (*path, index), scope, may_miss, to) for index, each in enumerate(items)]
        return new if any(a is not b for a, b in zip(new, items, strict=True)) else items
    return value


def _closing(text: str, at: int) -> int | None:
    """Where the brace stands that closes a default; variables within it have their own."""
    depth = 1
    while at < len(text):
        if text.startswith("${", at):
            depth += 1
            at += 2
            continue
        if text[at] == "}":
            depth -= 1
            if not depth:
                return at
        at += 1
    return None


def _as_text(value: JsonValue | Unresolved) -> str:
    """A value within a text."""
    match value:
        case str():
            return value
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case _:
            return str(value)
