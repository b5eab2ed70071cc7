"""Bounds and what is missing for them, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil, log10

from devall.estimates.bounds import Bound, Missing

_UNBOUNDED = "no bound"
UNKNOWN = "unknown"
"""What stands for dollars where a price is not known."""


def number(bound: Bound) -> str:
    """A bound on a count."""
    return _UNBOUNDED if bound.value is None else f"{ceil(bound.value):,}"


def tokens_at_most(bound: Bound) -> str:
    """A bound on tokens, rounded up to four digits: `3,274`, `19.2 M`."""
    if bound.value is None:
        return _UNBOUNDED
    value = _up(bound.value)
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= size:
            return f"{value / size:,.4g} {unit}"
    return f"{value:,.0f}"


def money_at_most(bound: Bound) -> str:
    """A bound on dollars, rounded up; `unknown` where a price is missing."""
    if bound.value is None:
        is_price = all(each.key == "name" for each in bound.missing)
        return UNKNOWN if is_price and bound.missing else _UNBOUNDED
    value = bound.value
    if value == 0:
        return "$0"
    digits = 0 if value >= 100 else 2 if value >= 1 else 4 if value >= 0.001 else 6
    return f"${ceil(round(value * 10**digits, 4)) / 10**digits:,.{digits}f}"


def time_at_most(bound: Bound) -> str:
    """A bound on seconds."""
    if bound.value is None:
        return _UNBOUNDED
    minutes = ceil(bound.value / 60)
    if bound.value < 100:
        return f"{ceil(bound.value)} s"
    return f"{minutes} min" if minutes < 100 else f"{ceil(minutes / 60):,} h"


def _up(value: float) -> float:
    """Rounded up to four digits."""
    if value < 10_000:
        return ceil(value)
    step = 10 ** (int(log10(value)) - 3)
    return ceil(value / step) * step


def remedies(bound: Bound) -> list[str]:
    """What would give one bound."""
    return list(grouped(bound.missing))


def grouped(missing: Iterable[Missing]) -> Iterator[str]:
    """One text for each key and reason, with the nodes that it concerns."""
    nodes: dict[tuple[str, str], list[str]] = {}
    for each in missing:
        nodes.setdefault((each.key, each.why), []).append(each.node)
    for (key, why), named in sorted(nodes.items(), key=lambda each: not each[0][0]):
        where = ", ".join(dict.fromkeys(name for name in named if name))
        at = f" ({where})" if where else ""
        yield f"{why}{at}{f': {_advice(key)}' if key else ''}"


def _advice(key: str) -> str:
    if key.startswith("--"):
        return f"give {key}"
    if key == "name":
        return "choose a model with a known price, or go by tokens (--max-tokens)"
    if key.startswith("limits."):
        return f"set `{key}` on the node or the graph"
    return f"set `{key}`"
