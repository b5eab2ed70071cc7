"""What of a case's expectations a run has not met."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from devall.core.diagnostics import Position
from devall.core.events import Event, NodeFinished, ToolCallStarted
from devall.core.ids import node_of
from devall.core.messages import JsonValue
from devall.engine.result import RunResult
from devall.loading.places import Path as Steps
from devall.testing.cases.expectations import (
    AtMost,
    ErrorExpectation,
    Expectations,
    TextMatch,
    ToolExpectation,
)

_FENCED = re.compile(r"```[A-Za-z0-9]*\s*\n(.*?)```", re.DOTALL)
_LONGEST = 1000
_MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Unmet:
    """Something that is not as it was expected."""

    path: Steps
    """The expectation, from the root of the case's file; what it would stand in, if it is the
    default."""
    message: str
    """What is wrong, in one sentence."""
    difference: Sequence[str] = ()
    """Lines that name what was wanted and what came."""
    got: JsonValue = None
    """What would be right, where the case could simply say so."""
    can_update: bool = False
    """Whether it could."""
    position: Position | None = None
    """What it is about, where that is in another file than the case's."""

    @property
    def what(self) -> str:
        """The expectation by its keys: `answer.equals`."""
        steps = self.path[1:] if self.path[:1] == ("expect",) else self.path
        return ".".join(map(str, steps))


@dataclass(slots=True)
class Seen:
    """What the events of a run have told; an instance is itself the sink."""

    outputs: dict[str, str] = field(default_factory=dict[str, str])
    """By node: what its last run said."""
    calls: list[tuple[str, str, JsonValue]] = field(
        default_factory=list[tuple[str, str, JsonValue]]
    )
    """Node, tool and arguments of each call of a tool."""

    def __call__(self, event: Event, /) -> None:
        """Take an event in."""
        match event:
            case NodeFinished():
                self.outputs[_node(event.path, event.node)] = "\n".join(
                    message.text for message in event.outputs
                )
            case ToolCallStarted():
                self.calls.append((event.node, event.tool, event.arguments))
            case _:
                pass


def unmet(expect: Expectations, result: RunResult, seen: Seen, folder: Path) -> Iterator[Unmet]:
    """What a run has not met.

    Args:
        expect: What the case expects.
        result: How the run went.
        seen: What its events told.
        folder: Of the case: paths of schemas begin there.
    """
    yield from _ending(expect, result)
    if expect.error is not None:
        yield from _error(expect.error, result)
    if expect.answer is not None:
        path = ("expect", "answer")
        if result.answer is None:
            text = f"there is no answer; the run is {_said(result.status)}"
            yield Unmet(path, text, _lines("an answer", "none"))
        else:
            yield from _texts(expect.answer, result.answer, path, folder)
    for node, wanted in expect.nodes.items():
        at: Steps = ("expect", "nodes", node)
        summary = result.nodes.get(node)
        runs = 0 if summary is None else summary.runs
        if summary is None and result.nodes:
            near = difflib.get_close_matches(node, result.nodes, 1)
            more = f"; did you mean {near[0]}?" if near else ""
            yield Unmet(at, f"there is no node {node}{more}", _lines(node, _joined(result.nodes)))
            continue
        if wanted.runs is not None and not wanted.runs.holds(runs):
            text = f"node {node} ran {_times(runs)}"
            lines = _lines(f"{wanted.runs} runs", f"{runs} runs")
            yield Unmet((*at, "runs"), text, lines, runs, can_update=True)
        if wanted.output is not None:
            if node not in seen.outputs:
                text = f"node {node} has said nothing"
                yield Unmet((*at, "output"), text, _lines("an output", "none"))
            else:
                output = seen.outputs[node]
                yield from _texts(wanted.output, output, (*at, "output"), folder)
    for number, tool in enumerate(expect.tools):
        yield from _tool(tool, seen.calls, ("expect", "tools", number))
    yield from _bounds(expect.at_most, result)


def text_lines(wanted: str, got: str) -> list[str]:
    """Two texts beside each other: as they are, or as a diff where they have several lines."""
    before, after = wanted.rstrip("\n").split("\n"), got.rstrip("\n").split("\n")
    if len(before) == len(after) == 1:
        return _lines(json.dumps(wanted, ensure_ascii=False), json.dumps(got, ensure_ascii=False))
    return list(difflib.unified_diff(before, after, "wanted", "got", lineterm="", n=3))


def _ending(expect: Expectations, result: RunResult) -> Iterator[Unmet]:
    status = expect.wanted_status
    if status is not None and result.status != status:
        error = result.error
        why = f": {error.message}" if error is not None else ""
        why += "".join(f"; {path} asks: {text}" for path, text in result.waiting)
        text = f"the run is {_said(result.status)}{why}"
        yield Unmet(
            ("expect", "status"),
            text,
            _lines(status, result.status),
            result.status,
            can_update=True,
        )
    if expect.exit_code is not None and result.exit_code != expect.exit_code:
        yield Unmet(
            ("expect", "exit_code"),
            f"the exit code is {result.exit_code}",
            _lines(str(expect.exit_code), str(result.exit_code)),
            result.exit_code,
            can_update=True,
        )


def _error(wanted: ErrorExpectation, result: RunResult) -> Iterator[Unmet]:
    error = result.error
    path = ("expect", "error")
    if error is None:
        yield Unmet(path, f"there is no error; the run is {_said(result.status)}")
        return
    if wanted.code is not None and error.code != wanted.code:
        text = f"the error is {error.code}: {error.message}"
        yield Unmet(
            (*path, "code"), text, _lines(wanted.code, error.code), error.code, can_update=True
        )
    if wanted.node is not None and error.node != wanted.node:
        lines = _lines(wanted.node, error.node or "no node")
        yield Unmet((*path, "node"), f"node {error.node} failed", lines)
    for text in wanted.message:
        if text not in error.message:
            lines = _lines(f"... {text} ...", error.message)
            yield Unmet((*path, "message"), "the error's message does not say it", lines)


def _texts(match: TextMatch, text: str, path: Steps, folder: Path) -> Iterator[Unmet]:
    what = "the answer" if path[-1] == "answer" else f"what node {path[2]} said"
    if match.equals is not None and match.equals.rstrip("\r\n") != text.rstrip("\r\n"):
        lines = text_lines(match.equals, text)
        yield Unmet((*path, "equals"), f"{what} is another one", lines, text, can_update=True)
    shown = _short(text)
    for part in match.contains:
        if part not in text:
            lines = _lines(f"... {part} ...", shown)
            yield Unmet((*path, "contains"), f"{what} does not contain it", lines)
    for part in match.not_contains:
        if part in text:
            lines = _lines(f"no {part}", shown)
            yield Unmet((*path, "not_contains"), f"{what} contains it", lines)
    for pattern in match.matches:
        if re.search(pattern, text) is None:
            lines = _lines(f"/{pattern}/", shown)
            yield Unmet((*path, "matches"), f"{what} does not match", lines)
    if match.json_schema is not None:
        problems = list(_misfits(match.json_schema, text, folder))
        if problems:
            lines = [*problems[:_MOST_SHOWN], f"got:    {shown}"]
            yield Unmet((*path, "json_schema"), f"{what} does not fit the schema", lines)


def _misfits(schema: JsonValue, text: str, folder: Path) -> Iterator[str]:
    if isinstance(schema, str):
        try:
            schema = json.loads((folder / schema).read_bytes())
        except (OSError, ValueError) as error:
            yield f"the schema {schema} cannot be read: {error}"
            return
    fenced = _FENCED.search(text)
    try:
        value: JsonValue = json.loads((fenced[1] if fenced else text).strip())
    except (ValueError, RecursionError) as error:
        yield f"no valid JSON: {error}"
        return
    from jsonschema.validators import validator_for
    from referencing import Registry

    kind = cast(Any, validator_for(schema))
    # An empty registry: a `$ref` to the network is never followed.
    for error in kind(schema, registry=cast(Any, Registry)()).iter_errors(value):
        yield f"at {'/'.join(map(str, error.absolute_path)) or 'the top'}: {error.message}"


def _tool(
    wanted: ToolExpectation, calls: Sequence[tuple[str, str, JsonValue]], path: Steps
) -> Iterator[Unmet]:
    named = [
        (node, arguments)
        for node, tool, arguments in calls
        if tool == wanted.name and wanted.node in {None, node}
    ]
    fitting = [a for _, a in named if _has_arguments(wanted.arguments, a)]
    if wanted.times.holds(len(fitting)):
        return
    by = f" by {wanted.node}" if wanted.node else ""
    such = " with such arguments" if wanted.arguments else ""
    how = f"was called {_times(len(fitting))}" if fitting else "was not called"
    text = f"tool {wanted.name} {how}{by}{such}"
    call = f"{wanted.name}({_arguments(wanted.arguments)})"
    lines = [f"wanted: {call}, {wanted.times} calls"]
    if named:
        shown = [f"got:    {wanted.name}({_arguments(a)}) by {node}" for node, a in named]
        more = [f"        and {len(shown) - _MOST_SHOWN} more"] if len(shown) > _MOST_SHOWN else []
        lines += [*shown[:_MOST_SHOWN], *more]
    else:
        others = dict.fromkeys(tool for _, tool, _ in calls)
        lines.append(
            f"got:    {'calls of ' + ', '.join(others) if others else 'no calls of tools'}"
        )
    yield Unmet(path, text, lines)


def _has_arguments(wanted: Mapping[str, JsonValue], given: JsonValue) -> bool:
    if not isinstance(given, dict):
        return not wanted
    arguments = cast("dict[str, JsonValue]", given)
    return all(k in arguments and _is_within(v, arguments[k]) for k, v in wanted.items())


def _is_within(wanted: JsonValue, given: JsonValue) -> bool:
    """Whether a value is the wanted one; of objects the wanted keys are looked at."""
    if isinstance(wanted, TextMatch):
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        return not any(_texts(wanted, text, ("", "", ""), Path()))
    if isinstance(wanted, dict):
        return _has_arguments(cast("dict[str, JsonValue]", wanted), given)
    # 1 and true are no equals here.
    return isinstance(wanted, bool) == isinstance(given, bool) and bool(wanted == given)


def _bounds(most: AtMost, result: RunResult) -> Iterator[Unmet]:
    usage = result.usage
    used: dict[str, float | None] = {
        "model_calls": usage.model_calls,
        "tool_calls": usage.tool_calls,
        "tokens": usage.tokens,
        "seconds": result.seconds,
        "usd": usage.usd,
    }
    for name, value in used.items():
        bound: float | None = getattr(most, name)
        if bound is None or (value is not None and value <= bound):
            continue
        path = ("expect", "at_most", name)
        if value is None:
            text = "what it cost is not known: there is no price for its models"
            yield Unmet(path, text, _lines(f"at most {bound:g}", "unknown"))
        else:
            noun = name.replace("_", " ")
            yield Unmet(
                path, f"it used {value:g} {noun}", _lines(f"at most {bound:g}", f"{value:g}")
            )


def _node(path: str, node: str) -> str:
    return node_of(path) or node


def _lines(wanted: str, got: str) -> list[str]:
    return [f"wanted: {wanted}", f"got:    {got}"]


def _said(status: str) -> str:
    return status.replace("_", " ")


def _times(number: int) -> str:
    return {0: "not at all", 1: "once", 2: "twice"}.get(number, f"{number} times")


def _joined(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _arguments(value: JsonValue) -> str:
    if not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    mapping = cast("dict[str, JsonValue]", value)
    return ", ".join(f"{name}={_argument(each)}" for name, each in mapping.items())


def _argument(value: JsonValue) -> str:
    if isinstance(value, TextMatch):
        return str(value.model_dump(exclude_defaults=True))
    return _short(json.dumps(value, ensure_ascii=False), 200)


def _short(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text):,} characters)"
