"""Conditions of edges: each takes the text of a message and says whether the edge fires."""

from __future__ import annotations

import re

FAILED_CODE = "==CODE EXECUTION FAILED=="
"""How the output of a python node begins when its code failed."""

_VERDICT = re.compile(r"^\W*verdict\W*:\W*(\w+)", re.IGNORECASE | re.MULTILINE)


def contains_keyword(text: str) -> bool:
    """Whether the word "trigger" is in the text, in any case."""
    return "trigger" in text.lower()


def not_contains_keyword(text: str) -> bool:
    """Whether the word "trigger" is not in the text."""
    return not contains_keyword(text)


def length_greater_than_5(text: str) -> bool:
    """Whether the text has more than five characters."""
    return len(text) > 5


def always_false(text: str) -> bool:
    """Never: an edge that is switched off."""
    return False


def code_pass(text: str) -> bool:
    """Whether the code of a python node ran without a failure."""
    return FAILED_CODE not in text


def code_fail(text: str) -> bool:
    """Whether the code of a python node failed."""
    return not code_pass(text)


def should_stop_loop(text: str) -> bool:
    """Whether a line `Verdict: STOP` or `Verdict: DONE` says that the loop is over.

    Any case; marks around the words (`**Verdict:** done`) do not matter. Of several
    verdicts the first counts; no verdict, or any other word, is no reason to stop.
    """
    verdict = _VERDICT.search(text)
    return verdict is not None and verdict[1].upper() in {"STOP", "DONE"}


def need_reflection_loop(text: str) -> bool:
    """Whether the loop goes on: no line `Verdict: STOP` or `Verdict: DONE` ends it."""
    return not should_stop_loop(text)
