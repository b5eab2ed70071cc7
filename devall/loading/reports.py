"""Diagnostics as a person, a program or a code host reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from devall.core.diagnostics import Diagnostic
from devall.core.messages import JsonValue
from devall.loading.document import Document

_WIDTH = 100
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SECRET_VALUE = re.compile(
    r"""
    (?: \b api_key | (?i:\b authorization) | \b [A-Z0-9_]* (?:KEY|TOKEN|SECRET|PASSWORD) [A-Z0-9_]* )
    ["']? \s* [:=] \s*
    (?P<value> "(?:[^"\\]|\\.)*" | '[^']*' | [^\s,}\]#][^,}\]#]* )
    """,
    re.VERBOSE,
)


def render_text(diagnostics: Iterable[Diagnostic]) -> str:
    """Each finding with its line and a caret below the place, and how many there are."""
    found = list(diagnostics)
    parts = [_block(each) for each in found]
    errors = sum(each.severity == "error" for each in found)
    counts = [(errors, "error"), (len(found) - errors, "warning")]
    said = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count]
    return "\n".join([*parts, ", ".join(said)]) if found else ""


def render_json(diagnostics: Iterable[Diagnostic]) -> str:
    """A JSON list of objects."""
    return json.dumps([as_json(each) for each in diagnostics], ensure_ascii=False, indent=2)


def render_github(diagnostics: Iterable[Diagnostic]) -> str:
    """Workflow commands that GitHub shows beside the lines of a change."""
    return "\n".join(_annotation(each) for each in diagnostics)


FORMATS: Mapping[str, Callable[[Iterable[Diagnostic]], str]] = {
    "text": render_text,
    "json": render_json,
    "github": render_github,
}
"""The forms of a report, by name."""


def as_json(diagnostic: Diagnostic) -> dict[str, JsonValue]:
    """A finding as a JSON object; line and column are 0 where it is about the whole file."""
    position = diagnostic.position
    return {
        "file": position.file,
        "line": position.line,
        "column": position.column,
        "severity": diagnostic.severity,
        "code": diagnostic.code,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
    }


def finished(
    diagnostics: Iterable[Diagnostic], documents: Sequence[Document], secrets: Iterable[str]
) -> list[Diagnostic]:
    """Findings in order, each once, with their lines quoted and without any secret.

    Args:
        diagnostics: In any order.
        documents: The files they are about, in the order in which they were read.
        secrets: Texts that must not be shown.
    """
    by_name = {document.name: document for document in documents}
    order = {name: at for at, name in enumerate(by_name)}
    # Short ones would spoil every word; none of them is a secret worth the name.
    hidden = sorted((each for each in secrets if len(each) > 3), key=len, reverse=True)
    seen: dict[tuple[object, ...], Diagnostic] = {}
    for each in diagnostics:
        document = by_name.get(each.position.file)
        line = document.line(each.position.line) if document is not None else ""
        quoted = _without_secrets(line, hidden)
        message, hint = each.message, each.hint
        for secret in hidden:
            message, hint = message.replace(secret, "***"), hint.replace(secret, "***")
        key = (each.position, each.code, message if each.position.line == 0 else "")
        seen.setdefault(key, replace(each, message=message, hint=hint, quoted=quoted))
    return sorted(
        seen.values(),
        key=lambda d: (order.get(d.position.file, len(order)), d.position, d.severity, d.code),
    )


def _without_secrets(line: str, secrets: Sequence[str]) -> str:
    """A line of a file with its secrets blotted out; what follows keeps its column."""
    for secret in secrets:
        line = line.replace(secret, _blot(secret))

    def blotted(found: re.Match[str]) -> str:
        value = found["value"]
        if value.lstrip("\"'").startswith("$") or value.startswith(("***", "|", ">", "&", "*")):
            return found[0]
        return found[0][: -len(value)] + _blot(value)

    return _SECRET_VALUE.sub(blotted, line)


def _blot(text: str) -> str:
    return "***"[: len(text)].ljust(len(text))


def _block(diagnostic: Diagnostic) -> str:
    position = diagnostic.position
    lines = [f"{position}: {diagnostic.severity} [{diagnostic.code}] {diagnostic.message}"]
    quoted = diagnostic.quoted.rstrip()
    if quoted and position.line:
        column = position.column - 1
        # Tabs are one column to us, and up to eight to a terminal.
        shown = _CONTROL.sub(" ", quoted)
        if len(shown) > _WIDTH:
            start = max(0, min(column - _WIDTH // 3, len(shown) - _WIDTH))
            end = start + _WIDTH
            shown = shown[start:end]
            if start:
                shown = f"...{shown[3:]}"
            if end < len(quoted):
                shown = f"{shown[:-3]}..."
            column -= start
        number = str(position.line)
        lines += [f"{number:>5} | {shown}", f"{'':>5} | {' ' * column}^"]
    if diagnostic.hint:
        lines.append(f"{'':>5} = {diagnostic.hint}")
    return "\n".join(lines)


def _annotation(diagnostic: Diagnostic) -> str:
    position = diagnostic.position
    text = diagnostic.message + (f" ({diagnostic.hint})" if diagnostic.hint else "")
    fields = [f"file={_escaped(position.file, ',:')}"]
    if position.line:
        fields += [f"line={position.line}", f"col={position.column}"]
    fields.append(f"title={_escaped(diagnostic.code, ',:')}")
    return f"::{diagnostic.severity} {','.join(fields)}::{_escaped(text)}"


def _escaped(text: str, more: str = "") -> str:
    for char in f"%\r\n{more}":
        text = text.replace(char, f"%{ord(char):02X}")
    return text
