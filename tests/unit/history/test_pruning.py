from __future__ import annotations

import sqlite3
import time

import pytest

import devall
from devall.core.errors import UsageError
from devall.history.past import all_past
from devall.history.pruning import Choice, give_back, parse_age, prune
from devall.journal.owner import this_process


@pytest.mark.parametrize(
    ("text", "seconds"), [("90m", 5400), ("12h", 43200), ("30d", 2592000), ("2w", 1209600)]
)
def test_ages_are_lengths_of_time(text, seconds):
    assert parse_age(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "d", "-3d", "3 moons", "1d12h"])
def test_what_is_no_length_of_time_is_refused(text):
    with pytest.raises(UsageError, match="no length of time"):
        parse_age(text)


async def test_a_run_that_came_to_life_meanwhile_is_left(tmp_path):
    (tmp_path / "w.yaml").write_text(
        "graph: {start: A, nodes: [{id: A, type: passthrough}], edges: []}"
    )
    logs = tmp_path / "logs"
    for name in ("one", "two"):
        await devall.run(tmp_path / "w.yaml", task="x" * 50_000, run_id=name, logs_dir=logs)
    chosen = Choice().of(all_past(logs))
    with sqlite3.connect(logs / "devall.db") as database:
        database.execute(
            "UPDATE runs SET status = 'running', owner = ?, lease = ? WHERE id = 'one'",
            (this_process().to_text(), time.time() + 60),
        )
    database.close()
    done = {each.past.id: each.problem for each in prune(logs, chosen)}
    assert done == {"one": "it is alive", "two": ""}
    assert (logs / "one/events.jsonl").exists()
    assert not (logs / "two").exists()
    # The whole file is not rewritten under a live run: its writing would wait for that.
    assert give_back(logs) == (0, False)
