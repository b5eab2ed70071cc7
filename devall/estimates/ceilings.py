"""The limits of a file as an estimate meets them: of a node, of the graphs around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from devall.config.limits import Limits
from devall.estimates.bounds import Bound


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Limits, and how often they begin anew: those of a subgraph hold for each of its runs."""

    limits: Limits
    name: str
    """Whose they are: `` for the run, `node X`, `S` for a subgraph."""
    times: Bound
    above: Ceiling | None = None

    def chain(self) -> Iterator[Ceiling]:
        """These limits, and all that stand around them."""
        here: Ceiling | None = self
        while here is not None:
            yield here
            here = here.above

    def under(self, limits: Limits, name: str, times: Bound) -> Ceiling:
        """Limits inside of these."""
        return Ceiling(limits, name, times, self)

    def label(self, key: str) -> str:
        """A limit as texts name it: `limits.max_usd`, `limits.max_usd of node X`."""
        return f"limits.{key} of {self.name}" if self.name else f"limits.{key}"

    def holds(self, bound: Bound, key: str) -> Bound:
        """A bound on all that these limits count, by them and those around them."""
        for each in self.chain():
            bound = each.own(bound, key)
        return bound

    def own(self, bound: Bound, key: str) -> Bound:
        """A bound by these limits alone."""
        limit: float | None = getattr(self.limits, key)
        if limit is None:
            return bound
        whole = self.times * limit
        return bound if whole.value is None else bound.capped(whole.value, self.label(key))

    def once(self, bound: Bound, key: str) -> Bound:
        """A bound on one run of a node: within one time of each of the limits."""
        for each in self.chain():
            limit: float | None = getattr(each.limits, key)
            bound = bound.capped(limit, each.label(key))
        return bound
