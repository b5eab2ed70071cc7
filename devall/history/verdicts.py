"""What decided whether an edge fired, in words: its condition held against the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from devall.config.edges import (
    Always,
    ExpressionCondition,
    ExpressionConfig,
    FunctionCondition,
    FunctionProcess,
    KeywordCondition,
    KeywordConfig,
    RegexExtract,
)
from devall.core.errors import ExpressionError
from devall.core.messages import Message
from devall.edges.conditions import expression_test, keyword_test
from devall.edges.transforms import regex_extract
from devall.graph.model import PlanEdge
from devall.journal.base import StepRecord
from devall.telemetry.hidden import HIDDEN

AROUND = 30
"""Characters shown on each side of what was found."""
LONGEST = 80
"""Characters shown of a text in which nothing was found."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Why edges fired or did not."""

    decisions: Mapping[str, StepRecord] = field(default_factory=dict[str, StepRecord])
    """What functions of edges decided, by the key of the step; empty: it is not kept."""

    def condition(self, edge: PlanEdge) -> str:
        """The condition of an edge, and its processing where that can stop it; empty: always."""
        parts: list[str] = []
        match edge.config.condition:
            case Always(value=value):
                parts += [] if value else ["never (`condition: false`)"]
            case FunctionCondition(config=config):
                parts.append(f"function {config.name}")
            case KeywordCondition(config=config):
                parts.append(_keywords(config))
            case ExpressionCondition(config=config):
                parts.append(f"expression `{config.when}`")
        match edge.config.process:
            case RegexExtract(config=config) if config.on_no_match == "drop":
                parts.append(f"regex_extract /{config.pattern}/ must match")
            case FunctionProcess(config=config):
                parts.append(f"processed by function {config.name}")
            case _:
                pass
        return "; ".join(parts)

    def reason(
        self, edge: PlanEdge, path: str, output: int, message: Message, fired: int, outputs: int
    ) -> str:
        """What decided whether the edge fired for an output of its source.

        Args:
            edge: The edge.
            path: Of the run of its source.
            output: Which of its outputs, from 0.
            message: That output.
            fired: How often the edge fired at that run.
            outputs: How many outputs there were.
        """
        decision = self.decisions.get(f"{path}/edge:{edge.index}.{output}")
        text = message.text
        is_hidden = text.startswith(HIDDEN)
        words = ""
        match edge.config.condition:
            case Always(value=False):
                return "its condition is false, always"
            case Always():
                pass
            case FunctionCondition(config=config):
                return self._of_function(config.name, decision, fired, outputs, edge)
            case KeywordCondition(config=config):
                if is_hidden:
                    return "decided by a text that is kept out of logs"
                words = "; ".join(_found(config, text))
                if not keyword_test(config)(text):
                    return words
            case ExpressionCondition(config=config):
                if is_hidden:
                    return "decided by a text that is kept out of logs"
                words, is_true = _of_expression(config, edge, text)
                if not is_true:
                    return words
        return self._of_process(edge, decision, text, words, fired, outputs, is_hidden=is_hidden)

    def _of_function(
        self, name: str, decision: StepRecord | None, fired: int, outputs: int, edge: PlanEdge
    ) -> str:
        if decision is not None:
            did_fire = decision.value is not None
        elif fired in {0, outputs}:
            did_fire = fired > 0
        else:
            return f"function {name} said yes for {fired} of {outputs} outputs"
        if did_fire:
            return f"function {name} said yes"
        if edge.config.process is not None:
            return f"function {name} said no, or the processing gave nothing"
        return f"function {name} said no"

    def _of_process(
        self,
        edge: PlanEdge,
        decision: StepRecord | None,
        text: str,
        words: str,
        fired: int,
        outputs: int,
        *,
        is_hidden: bool,
    ) -> str:
        """What the processing did to a message whose condition holds."""
        before = f"{words}; " if words else ""
        match edge.config.process:
            case RegexExtract(config=config) if config.on_no_match == "drop" and not is_hidden:
                if regex_extract(config)(text) is None:
                    return f"{before}/{config.pattern}/ matches nothing in {quoted(text)}"
                return f"{before}/{config.pattern}/ matches"
            case FunctionProcess(config=config):
                is_dropped = decision.value is None if decision is not None else not fired
                if is_dropped and (decision is not None or fired != outputs):
                    return f"{before}function {config.name} gave nothing"
                return words or f"function {config.name} processed it"
            case _:
                return words or "it has no condition"


def quoted(text: str) -> str:
    """A text on one line, cut."""
    joined = " ".join(text.split())
    shown = joined if len(joined) <= LONGEST else f"{joined[:LONGEST]}…"
    return f'"{shown}"'


def _keywords(config: KeywordConfig) -> str:
    parts: list[str] = []
    if config.none:
        parts.append(f"none of {_list(config.none)}")
    if config.any:
        parts.append(f"any of {_list(config.any)}")
    if config.regex:
        parts.append(f"regex {', '.join(f'/{each}/' for each in config.regex)}")
    return "keywords: " + ", ".join(parts) + ("" if config.case_sensitive else ", any case")


def _found(config: KeywordConfig, text: str) -> Iterator[str]:
    """What of a keyword condition was found in a text, or was not."""
    flags = 0 if config.case_sensitive else re.IGNORECASE
    fold = str if config.case_sensitive else str.casefold
    folded = fold(text)
    refused = [word for word in config.none if fold(word) in folded]
    if refused:
        yield f"{_list(refused)} of `none` stands in {_around(text, folded, fold(refused[0]))}"
        return
    wanted = [word for word in config.any if fold(word) in folded]
    patterns = [
        (each, match)
        for each in config.regex
        if (match := re.compile(each, flags).search(text)) is not None
    ]
    if wanted:
        yield f"{_list(wanted)} stands in {_around(text, folded, fold(wanted[0]))}"
    for pattern, match in patterns:
        yield f"/{pattern}/ matches {quoted(match[0])} in {_window(text, *match.span())}"
    if wanted or patterns:
        return
    if config.any or config.regex:
        sought = [*map(repr, config.any), *(f"/{each}/" for each in config.regex)]
        yield f"{' or '.join(sought)} is not in {quoted(text)}"
    else:
        yield f"none of {_list(config.none)} stands in {quoted(text)}"


def _of_expression(config: ExpressionConfig, edge: PlanEdge, text: str) -> tuple[str, bool]:
    """What an expression says of a text, in words, and whether it lets the edge fire."""
    try:
        is_true = expression_test(config, f"edge {edge.name}")(text)
    except ExpressionError as error:
        return str(error), False
    return f"`{config.when}` is {'true' if is_true else 'false'} of {quoted(text)}", is_true


def _around(text: str, folded: str, word: str) -> str:
    """The text around a word, which stands in its folded form."""
    at = folded.find(word)
    if len(folded) != len(text):  # folding has changed the length: the place is not known
        return quoted(text)
    return _window(text, at, at + len(word))


def _window(text: str, start: int, end: int) -> str:
    """What stands around a place of a text."""
    before = "…" if start > AROUND else ""
    after = "…" if end + AROUND < len(text) else ""
    shown = " ".join(text[max(0, start - AROUND) : end + AROUND].split())
    return f'"{before}{shown}{after}"'


def _list(words: Iterable[str]) -> str:
    return ", ".join(map(repr, words))
