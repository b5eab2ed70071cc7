from __future__ import annotations

import devall
from devall.core.events import Event
from devall.history.difference import difference

TEXT = """
graph:
  start: A
  nodes:
    - {id: A, type: literal, config: {content: "WORD"}}
    - id: S
      type: subgraph
      config:
        type: config
        config: {start: X, nodes: [{id: X, type: passthrough}], edges: []}
  edges: [{from: A, to: S}]
"""


async def ran(folder, word: str, run_id: str) -> list[Event]:
    """The events of a run."""
    file = folder / f"{run_id}.yaml"
    file.write_text(TEXT.replace("WORD", word))
    events: list[Event] = []
    await devall.run(file, run_id=run_id, logs_dir=folder / "logs", on_event=events.append)
    return events


async def test_runs_are_compared_by_their_events_or_their_folders(tmp_path):
    first = await ran(tmp_path, "one", "first-run")
    again = await ran(tmp_path, "one", "again-run")
    other = await ran(tmp_path, "two", "other-run")
    assert difference(first=first, second=again).is_same
    assert difference(first=tmp_path / "logs/first-run", second=again).is_same
    for second in (other, tmp_path / "logs/other-run"):
        found = difference(first=first, second=second).found
        assert [(each.place, each.aspect) for each in found] == [
            ("A", "output"),
            ("S", "inputs"),
            ("S/X", "inputs"),
            ("S/X", "output"),
            ("S", "output"),
            ("run", "answer"),
        ]
        assert found[0].lines(("a", "b"))[-2:] == ["-one", "+two"]


async def test_the_name_of_a_run_in_a_text_is_no_difference(tmp_path):
    first = await ran(tmp_path, "in logs/first-run/files", "first-run")
    second = await ran(tmp_path, "in logs/other-run/files", "other-run")
    assert difference(first=first, second=second).is_same


async def test_a_run_that_broke_off_differs_where_it_did(tmp_path):
    whole = await ran(tmp_path, "one", "first-run")
    found = difference(first=whole, second=whole[:4]).found
    assert found[0].place == "S"
    assert found[0].aspect in {"ran in the first run only", "output"}
    assert (found[-1].place, found[-1].aspect) == ("run", "answer")


async def test_a_failure_comes_before_the_output_that_is_missing_for_it(tmp_path):
    file = tmp_path / "w.yaml"
    sides: list[list[Event]] = []
    for url in ("/bin/echo", "/bin/no-such-program"):
        file.write_text(
            "graph: {start: A, nodes: [{id: A, type: python,"
            f" config: {{interpreter: {url}}}}}], edges: []}}"
        )
        events: list[Event] = []
        await devall.run(file, task="x", on_event=events.append)
        sides.append(events)
    aspects = [each.aspect for each in difference(first=sides[0], second=sides[1]).found]
    assert aspects == ["failure", "output", "status", "status", "answer"]
