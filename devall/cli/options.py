"""What the options of the command line mean; pure, no file is looked at that they do not name."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, cast

from devall.config.limits import Limits
from devall.core.errors import UsageError
from devall.core.messages import JsonValue

Word = TypeVar("Word", bound=str)

_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_LARGEST = 50 * 1024 * 1024


def parse_value(text: str) -> JsonValue:
    """The value of `--var NAME=VALUE`.

    A JSON number, `true`, `false` and `null` are what they say; a text in double quotes is the
    text within (`'"5"'` is the text 5); everything else is text as it stands: `007`, `no`,
    `1.2.3`, `[a]`. So a value means the same here as unquoted in the file, except that lists
    and objects need `--vars-file`.
    """
    if text in {"true", "false", "null"}:
        return json.loads(text)
    if _NUMBER.fullmatch(text):
        number: int | float = json.loads(text)
        return number if math.isfinite(number) else text
    if len(text) >= 2 and text[0] == text[-1] == '"':
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return text
    return text


def parse_variables(given: Iterable[str]) -> dict[str, JsonValue]:
    """The variables of `--var NAME=VALUE`; of two with one name the last stands.

    Raises:
        UsageError: one has no `=`, or no name before it.
    """
    found: dict[str, JsonValue] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name.strip():
            raise UsageError(
                f"--var {item!r} is no assignment", hint="write --var NAME=VALUE, e.g. --var N=5"
            )
        found[name.strip()] = parse_value(value)
    return found


def parse_changes(given: Iterable[str]) -> dict[str, JsonValue]:
    """The values of `--set PATH=VALUE`, by path; values as those of `--var`.

    Raises:
        UsageError: one has no `=`, or no path before it.
    """
    found: dict[str, JsonValue] = {}
    for item in given:
        path, equals, value = item.partition("=")
        if not equals or not all(path.strip().split(".")):
            raise UsageError(
                f"--set {item!r} is no assignment",
                hint="write --set PATH=VALUE, e.g. --set nodes.writer.config.name=gpt-5",
            )
        found[path.strip()] = parse_value(value)
    return found


def one_of(given: str | None, known: Sequence[Word], option: str) -> Word | None:
    """The word that an option gives; None = it was not given.

    Raises:
        UsageError: it is none of those that are known.
    """
    if given is None:
        return None
    for word in known:
        if word == given:
            return word
    near = difflib.get_close_matches(given, known, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UsageError(f"{option} {given!r} is not known", hint=f"{hint}known: {', '.join(known)}")


def parse_answers(given: Iterable[str], nodes: Collection[str]) -> dict[str, str | Sequence[str]]:
    """The answers of `--answer NODE=TEXT`: one for every time, several in order.

    Raises:
        UsageError: one has no `=`, or names no human node.
    """
    found: dict[str, list[str]] = {}
    for item in given:
        node, text = split_node(item, nodes, option="--answer", value="TEXT", kind="human node")
        if not node:
            raise UsageError(
                f"--answer {item!r} names no node", hint=f"write --answer NODE=TEXT{_among(nodes)}"
            )
        found.setdefault(node, []).append(text)
    return {node: texts[0] if len(texts) == 1 else texts for node, texts in found.items()}


def parse_choices(given: Iterable[str], nodes: Collection[str], option: str) -> dict[str, str]:
    """The names of `--model [NODE=]NAME` by node; without a node the key is empty: all nodes.

    Raises:
        UsageError: a node that is no agent, or no name.
    """
    found: dict[str, str] = {}
    for item in given:
        node, name = split_node(item, nodes, option=option, value="NAME", kind="agent")
        if not name:
            raise UsageError(f"{option} {item!r} gives no name", hint=f"write {option} [NODE=]NAME")
        found[node] = name
    return found


def split_node(
    item: str, nodes: Collection[str], *, option: str, value: str, kind: str
) -> tuple[str, str]:
    """The node before one of the `=` (ids may hold some), and what follows; '' = no node.

    Raises:
        UsageError: what stands before the `=` is no node of that kind.
    """
    if "=" not in item:
        return "", item
    at = item.find("=")
    while at >= 0:
        if item[:at] in nodes:
            return item[:at], item[at + 1 :]
        at = item.find("=", at + 1)
    name = item.partition("=")[0]
    near = difflib.get_close_matches(name, nodes, 1, 0.6)
    hint = f"did you mean {near[0]}?" if near else f"write {option} NODE={value}{_among(nodes)}"
    raise UsageError(f"{option}: there is no {kind} {name!r}", hint=hint)


def check_answers(
    found: JsonValue, place: Path, nodes: Collection[str]
) -> dict[str, str | Sequence[str]]:
    """The answers of an `--answers` file: node id to a text, or a list of texts in order.

    Raises:
        UsageError: it holds something else, or names no human node.
    """
    if not isinstance(found, Mapping):
        raise UsageError(
            f"{place} holds no answers", hint="write `NODE: text`, or `NODE: [first, second]`"
        )
    answers: dict[str, str | Sequence[str]] = {}
    for key, given in cast(Mapping[object, JsonValue], found).items():
        node = key if isinstance(key, str) else _as_text(key)
        if node not in nodes:
            split_node(f"{node}=", nodes, option=str(place), value="TEXT", kind="human node")
        texts = cast(list[JsonValue], given) if isinstance(given, list) else [given]
        if any(isinstance(text, list | Mapping) or text is None for text in texts):
            raise UsageError(f"{place}: the answer of {node} is neither a text nor a list of texts")
        said = [_as_text(text) for text in texts]
        answers[node] = said if isinstance(given, list) else said[0]
    return answers


def check_variables(found: JsonValue, place: Path) -> dict[str, JsonValue]:
    """The variables of a `--vars-file`.

    Raises:
        UsageError: it is no mapping with names as keys.
    """
    if not isinstance(found, Mapping):
        raise UsageError(f"{place} holds no variables", hint="write `NAME: value`, one a line")
    mapping = cast(Mapping[object, JsonValue], found)
    if wrong := [key for key in mapping if not isinstance(key, str)]:
        raise UsageError(f"{place}: {wrong[0]!r} is no variable's name")
    return {str(key): value for key, value in mapping.items()}


def parse_limits(max_usd: float | None, max_seconds: float | None) -> Limits:
    """The bounds of `--max-usd` and `--max-seconds`.

    Raises:
        UsageError: one is no number that bounds anything.
    """
    for option, value, least in (("--max-usd", max_usd, 0), ("--max-seconds", max_seconds, None)):
        if value is None or (math.isfinite(value) and (value > 0 or value == least)):
            continue
        right = "a number from 0" if least == 0 else "a number above 0"
        raise UsageError(f"{option} {value:g} bounds nothing", hint=f"give {right}")
    return Limits(max_usd=max_usd, max_seconds=max_seconds)


def read_text(place: Path, option: str) -> str:
    """The text of a file that an option names.

    Raises:
        UsageError: it cannot be read, is no UTF-8 text, or is huge.
    """
    try:
        with place.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"{option} {place}: {why}") from error
    return decode(data, f"{option} {place}")


def decode(data: bytes, where: str) -> str:
    """Text of UTF-8 bytes, a byte order mark left out.

    Raises:
        UsageError: it is no UTF-8 text, or huge.
    """
    if len(data) > _LARGEST:
        raise UsageError(f"{where} is larger than {_LARGEST // 1024 // 1024} MB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{where} is no UTF-8 text (byte {error.start})") from error


def read_values(place: Path, option: str, parse: Callable[[str, str], JsonValue]) -> JsonValue:
    """What a YAML or JSON file holds; JSON is read as JSON if its name says so.

    Args:
        place: The file.
        option: What named it, for error texts.
        parse: Reads YAML; takes the text and the file's name.

    Raises:
        UsageError: it cannot be read, or is neither.
    """
    text = read_text(place, option)
    if place.suffix.lower() != ".json":
        return parse(text, str(place))
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise UsageError(f"{option} {place} is no JSON: {error}") from error


def _among(nodes: Collection[str]) -> str:
    if not nodes:
        return "; this workflow has none"
    shown = sorted(nodes)[:8]
    more = f" and {len(nodes) - len(shown)} more" if len(nodes) > len(shown) else ""
    return f"; there are {', '.join(shown)}{more}"


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def only_one(given: Sequence[tuple[str, bool]]) -> None:
    """Check that not more than one of several options is used.

    Raises:
        UsageError: it names those that were.
    """
    used = [name for name, is_used in given if is_used]
    if len(used) > 1:
        raise UsageError(f"{' and '.join(used)} exclude each other", hint="give one of them")
