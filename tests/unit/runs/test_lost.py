"""What earlier processes of a run asked of models and never heard the end of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from devall.core.events import (
    EmbeddingFinished,
    Event,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallStarted,
)
from devall.core.usage import NOTHING_USED, TokenUsage
from devall.engine.ledger import Ledger
from devall.runs.lost import lost_attempts
from devall.telemetry.redaction import Redactor
from devall.telemetry.run_log import FILE_NAME, RunLog


def call(node: str = "A", turn: int = 1) -> dict[str, Any]:
    return {"path": f"/{node}@1", "node": node, "provider": "openai", "model": "m", "turn": turn}


def started(attempt: int = 1, **more: Any) -> ModelCallStarted:
    return ModelCallStarted(**call(**more), attempt=attempt)


def failed(usage: TokenUsage | None, usd: float | None, attempt: int = 1, **more: Any) -> Event:
    names = {"message": "no", "wait": 1.0, "usage": usage, "usd": usd}
    return ModelCallFailed(**call(**more), attempt=attempt, **names)


def finished(*, replayed: bool = False, **more: Any) -> ModelCallFinished:
    return ModelCallFinished(**call(**more), seconds=1, usage=TokenUsage(5, 5), replayed=replayed)


def written(folder: Path, *events: Event) -> Path:
    log = RunLog(folder, Redactor())
    for event in events:
        log(event)
    log.close()
    return folder


def test_a_call_that_is_whole_is_not_lost(tmp_path: Path):
    written(tmp_path, started(), failed(None, None), started(2), finished())
    assert lost_attempts(tmp_path) == ()


def test_vectors_that_were_made_are_counted_whatever_became_of_them(tmp_path: Path):
    def made(usage: TokenUsage | None, usd: float | None) -> Event:
        return EmbeddingFinished(
            store="s", provider="openai", model="e", texts=2, seconds=0.1, usage=usage, usd=usd
        )

    written(tmp_path, made(TokenUsage(7), 0.25), made(None, None))
    ledger = Ledger()
    ledger.lose(lost_attempts(tmp_path))
    assert (ledger.usage.input_tokens, ledger.usage.usd) == (7, 0.25)
    assert ledger.usage.model_calls == 0


def test_calls_under_way_are_lost_and_so_are_the_attempts_before(tmp_path: Path):
    paid = failed(TokenUsage(7, 1), 0.5)
    written(tmp_path, started(), paid, started(2), started(node="B"), finished(node="B", turn=2))
    ledger = Ledger()
    ledger.lose(lost_attempts(tmp_path))
    assert (ledger.usage.model_calls, ledger.usage.unknown_calls) == (3, 2)
    assert (ledger.usage.tokens, ledger.usage.usd) == (8, 0.5)
    assert ledger.by_node["B"].unknown_calls == 1
    assert ledger.by_model["m"].model_calls == 3


def test_a_call_that_was_made_again_is_lost_once_for_each_time_it_was_not_finished(tmp_path: Path):
    for _ in range(3):
        written(tmp_path, started())
    written(tmp_path, started(), finished())
    assert len(lost_attempts(tmp_path)) == 3


def test_refused_attempts_cost_nothing(tmp_path: Path):
    written(tmp_path, started(), failed(NOTHING_USED, 0.0))
    ledger = Ledger()
    ledger.lose(lost_attempts(tmp_path))
    assert (ledger.usage.model_calls, ledger.usage.unknown_calls, ledger.usage.usd) == (1, 0, 0)


@pytest.mark.parametrize("torn", ['{"v":1,"event":"model_call_finished","pa', "\x00\xff"])
def test_a_torn_line_is_no_obstacle(tmp_path: Path, torn: str):
    written(tmp_path, started())
    with (tmp_path / FILE_NAME).open("a", encoding="utf-8") as file:
        file.write(torn)
    assert len(lost_attempts(tmp_path)) == 1


def test_without_a_log_nothing_is_known_to_be_lost(tmp_path: Path):
    assert lost_attempts(tmp_path) == ()
