"""Amounts as people say them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Seconds as people say them: `0.04 s`, `3.2 s`, `48 s`, `2 min 05 s`."""
    if seconds < 0.095:
        return f"{seconds:.2f} s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def count(number: int, noun: str) -> str:
    """A number with its noun: `1 node`, `2 nodes`, `1,200 tokens`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def dollars(usd: float) -> str:
    """An amount with as many digits as say something: `$1.50`, `$0.0120`, `$0.000012`."""
    digits = 2 if usd >= 1 or not usd else 4 if usd >= 0.001 else 6
    return f"${usd:,.{digits}f}"
