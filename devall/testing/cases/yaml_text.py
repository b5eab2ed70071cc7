"""Plain values as YAML that people like to read and that changes line by line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import cast

from devall.core.messages import JsonValue

_PLAIN = re.compile(r"(?!(?:null|true|false)\b)[A-Za-z_][\w./+-]*(?: [\w./+-]+)*", re.IGNORECASE)
_ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_TO_ESCAPE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def yaml_lines(value: Mapping[str, JsonValue], indent: int = 0) -> Iterator[str]:
    """The lines of a mapping in block style."""
    for key, each in value.items():
        yield from member_lines(scalar(key), each, indent)


def member_lines(key: str, value: JsonValue, indent: int) -> Iterator[str]:
    """The lines of one member of a mapping.

    Args:
        key: The key, as YAML has it.
        value: A text, number, true, false, null, mapping or list.
        indent: Of the key.
    """
    head = f"{' ' * indent}{key}:"
    if isinstance(value, Mapping) and value:
        yield head
        yield from yaml_lines(cast("Mapping[str, JsonValue]", value), indent + 2)
    elif isinstance(value, list | tuple) and value:
        yield head
        for item in cast("list[JsonValue]", value):
            yield f"{' ' * indent}  - {flow(item)}"
    elif isinstance(value, str) and _is_block(value):
        yield f"{head} {'|' if value.endswith(chr(10)) else '|-'}"
        for line in value.removesuffix("\n").split("\n"):
            yield f"{' ' * indent}  {line}" if line else ""
    else:
        yield f"{head} {flow(value)}"


def flow(value: JsonValue) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        members = cast("Mapping[str, JsonValue]", value).items()
        return f"{{{', '.join(f'{scalar(key)}: {flow(each)}' for key, each in members)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(flow(each) for each in cast('list[JsonValue]', value))}]"
    return scalar(value)


def scalar(value: JsonValue) -> str:
    """A text, number, true, false or null on one line."""
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value):
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return _TO_ESCAPE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _is_block(text: str) -> bool:
    """Whether a text can stand as a literal block: nothing in it needs escaping."""
    if "\n" not in text.removesuffix("\n") or text.endswith("\n\n") or _ODD.search(text):
        return False
    return not text.startswith((" ", "\t", "\n"))
