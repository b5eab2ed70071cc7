"""The units of one run of a node: each is told of, and may be left out where it fails."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from devall.config.edges import DynamicConfig
from devall.core.errors import (
    AnswerNeeded,
    DevallError,
    JournalError,
    LimitReached,
    NodeError,
    NotRecorded,
    RunError,
    SetupError,
    ToolInDoubt,
)
from devall.core.events import UnitFailed, UnitFinished, UnitStarted, Warned
from devall.core.messages import JsonValue, Message, to_json
from devall.core.ports import NodeResult
from devall.engine.context import Executor, NodeScope, NodeSummary
from devall.engine.fanout import Unit, first_leaf
from devall.journal.failures import failure_from_json

_NEVER_LEFT_OUT = AnswerNeeded, JournalError, NotRecorded, SetupError, ToolInDoubt
"""What is wrong with the run, or needs somebody, and not with the one unit."""
_NAMED = 10
"""Units that a warning names."""


@dataclass(slots=True)
class Units:
    """Runs the units of one run of a node."""

    executor: Executor
    scope: NodeScope
    """Of the node's run."""
    summary: NodeSummary
    config: DynamicConfig
    log_output: bool
    _count: int = field(default=0, init=False)
    _left_out: list[tuple[Unit, RunError]] = field(
        default_factory=list[tuple[Unit, RunError]], init=False
    )

    async def run(self, unit: Unit, seen: Sequence[Message]) -> NodeResult | RunError:
        """What a unit gives; the error of one that failed and is left out."""
        self.summary.runs += 1
        self._count += 1
        scope = self.scope.unit(unit.name)
        began = time.perf_counter()
        self._tell_start(unit, scope)
        try:
            result = await self._outcome(scope, seen)
        except AnswerNeeded:
            raise
        except Exception as error:
            self._tell_failure(unit, scope, began, first_leaf(error), continued=False)
            raise
        self.scope.since = max(self.scope.since, scope.since)
        if isinstance(result, RunError):
            self._left_out.append((unit, result))
            self._tell_failure(unit, scope, began, result, continued=True)
            return result
        if self.scope.run.sinks:
            scope.emit(
                UnitFinished(
                    path=scope.path,
                    node=scope.node,
                    unit=unit.number,
                    units=unit.of,
                    layer=unit.layer,
                    seconds=time.perf_counter() - began,
                    outputs=result.outputs,
                    log_output=self.log_output,
                )
            )
        return result

    def tell(self) -> None:
        """Warn of the units that were left out."""
        if not self._left_out:
            return
        found = sorted(self._left_out, key=lambda each: (each[0].layer, each[0].number))
        names = ", ".join(unit.name.removeprefix("unit:") for unit, _ in found[:_NAMED])
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        text = (
            f"{len(found)} of {self._count} units failed and were left out ({names}{more});"
            f" the first: {found[0][1]}"
        )
        scope = self.scope
        scope.emit(Warned(path=scope.path, code="units_left_out", message=text, node=scope.node))

    async def _outcome(self, scope: NodeScope, seen: Sequence[Message]) -> NodeResult | RunError:
        if self.config.on_unit_error == "fail":
            return await self.executor.run(scope, seen)
        result: NodeResult | None = None

        async def attempt() -> JsonValue:
            nonlocal result
            try:
                result = await self.executor.run(scope, seen)
            except Exception as error:
                leaf = first_leaf(error)
                if not _may_be_left_out(leaf):
                    raise
                return _failure(leaf)
            return None

        # That it was left out is kept: what follows was made without it, also for a resumed run.
        request = {"inputs": [to_json(message) for message in seen]}
        failure = await scope.step("edge", "outcome", request, attempt)
        if failure is not None:
            return failure_from_json(failure)
        return result if result is not None else await self.executor.run(scope, seen)

    def _tell_start(self, unit: Unit, scope: NodeScope) -> None:
        if self.scope.run.sinks:
            scope.emit(
                UnitStarted(
                    path=scope.path,
                    node=scope.node,
                    unit=unit.number,
                    units=unit.of,
                    layer=unit.layer,
                )
            )

    def _tell_failure(
        self, unit: Unit, scope: NodeScope, began: float, error: BaseException, *, continued: bool
    ) -> None:
        told = _failure(error)
        scope.emit(
            UnitFailed(
                path=scope.path,
                node=scope.node,
                unit=unit.number,
                units=unit.of,
                layer=unit.layer,
                seconds=time.perf_counter() - began,
                code=told["code"],
                message=told["message"],
                hint=told["hint"],
                continued=continued,
            )
        )


def _may_be_left_out(error: BaseException) -> bool:
    """Whether a failure is the unit's own: bounds that others share with it are not."""
    cause = _cause(error)
    if isinstance(cause, LimitReached):
        return cause.limit == "tool_loop_limit"
    return isinstance(cause, Exception) and not isinstance(cause, _NEVER_LEFT_OUT)


def _cause(error: BaseException) -> BaseException:
    """What went wrong inside of the nodes of a subgraph."""
    while isinstance(error, NodeError):
        error = error.cause
    return error


def _failure(error: BaseException) -> dict[str, JsonValue]:
    """An error as the journal keeps it."""
    cause = _cause(error)
    known = isinstance(cause, DevallError)
    return {
        "code": cause.code if known else "exception",
        "exit_code": getattr(cause, "exit_code", 1),
        "message": str(error) if known else f"{type(cause).__name__}: {error}",
        "hint": cause.hint if known else "",
    }
