"""Upper bounds that know what they rest on: sums, products, and what takes a bound away."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple


class Missing(NamedTuple):
    """Why there is no bound, and what would give one."""

    node: str
    """The node that has none; empty: the run."""
    key: str
    """A key of the node or of `limits`, or an option of `devall plan`."""
    why: str
    """What is not bounded."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A number that is not gone over, or that there is none."""

    value: float | None
    """None: no bound."""
    missing: tuple[Missing, ...] = ()
    """Why there is none; empty where there is one."""
    held_by: tuple[str, ...] = ()
    """The limits that make it smaller than it would be, as a file names them."""

    @property
    def is_known(self) -> bool:
        """Whether there is a bound."""
        return self.value is not None

    def __add__(self, other: Bound) -> Bound:
        """Both together."""
        if self.value is None or other.value is None:
            return Bound(None, _union(self.missing, other.missing))
        return Bound(self.value + other.value, (), _joined(self.held_by, other.held_by))

    def __mul__(self, other: Bound | float) -> Bound:
        """So often; nothing is nothing, however often."""
        factor = other if isinstance(other, Bound) else Bound(other)
        if 0 in (self.value, factor.value):
            return NOTHING
        if self.value is None or factor.value is None:
            return Bound(None, _union(self.missing, factor.missing))
        return Bound(self.value * factor.value, (), _joined(self.held_by, factor.held_by))

    def least(self, *others: Bound) -> Bound:
        """The smallest of several bounds of the same thing; the first among equals.

        Where none of them is known, all that would give one is said.
        """
        known = [each for each in (self, *others) if each.value is not None]
        if not known:
            missing = self.missing
            for each in others:
                missing = _union(missing, each.missing)
            return Bound(None, missing)
        return min(known, key=lambda each: each.value or 0)

    def most(self, *others: Bound) -> Bound:
        """What none of them goes over."""
        found = self
        for other in others:
            if found.value is None or other.value is None:
                found = Bound(None, _union(found.missing, other.missing))
            elif other.value > found.value:
                found = other
        return found

    def capped(self, limit: float | None, name: str) -> Bound:
        """At most a limit of that name; None: there is no limit."""
        if limit is None or (self.value is not None and self.value <= limit):
            return self
        return Bound(limit, (), (name,))

    def or_missing(self, *missing: Missing) -> Bound:
        """The bound; where there is none, that this would give one as well."""
        return self if self.is_known else replace(self, missing=_union(self.missing, missing))


NOTHING = Bound(0)
ONE = Bound(1)


def unbounded(node: str, key: str, why: str) -> Bound:
    """That there is no bound."""
    return Bound(None, (Missing(node, key, why),))


def total(bounds: Iterable[Bound]) -> Bound:
    """The sum; 0 of none."""
    found = NOTHING
    for bound in bounds:
        found += bound
    return found


def _union(one: tuple[Missing, ...], other: tuple[Missing, ...]) -> tuple[Missing, ...]:
    return one if one == other else tuple(dict.fromkeys((*one, *other)))


def _joined(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return one if one == other else tuple(dict.fromkeys((*one, *other)))
