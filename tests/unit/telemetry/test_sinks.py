from __future__ import annotations

from pathlib import Path

from devall.core.events import EdgeFired, Event, Warned
from devall.telemetry.redaction import Redactor
from devall.telemetry.run_log import RunLog
from devall.telemetry.sinks import FanOut
from devall.testing.recorder import Recorder

EVENT = EdgeFired(source="A", target="B", edge=0)


def broken(event: Event) -> None:
    raise OSError("no space left on device")


def test_every_sink_gets_every_event_in_order():
    first, second = Recorder(), Recorder()
    sinks = FanOut([first])
    sinks.add(second)
    sinks(EVENT)
    assert first.events == second.events == [EVENT]


def test_a_failing_sink_is_warned_about_once_and_harms_no_other():
    recorder = Recorder()
    sinks = FanOut([broken, recorder])
    sinks(EVENT)
    sinks(EVENT)
    assert recorder.events.count(EVENT) == 2
    (warned,) = recorder.of(Warned)
    assert "broken failed: no space left on device" in warned.message
    assert sinks.failures == [warned.message]


def test_a_sink_that_recovers_gets_the_later_events(tmp_path: Path):
    log = RunLog(tmp_path, Redactor())
    failing = [True]

    def at_first_broken(event: Event) -> None:
        if failing:
            raise OSError
        log(event)

    sinks = FanOut([at_first_broken])
    sinks(EVENT)
    failing.clear()
    sinks(EVENT)
    log.close()
    assert (tmp_path / "events.jsonl").read_text().count("\n") == 1


def test_two_broken_sinks_are_named_both():
    def also_broken(event: Event) -> None:
        raise ValueError

    sinks = FanOut([broken, also_broken])
    sinks(EVENT)
    assert len(sinks.failures) == 2
    assert sum("also_broken failed: ValueError" in text for text in sinks.failures) == 1


def test_closing_closes_those_that_can_be_and_goes_on_behind_a_failure(tmp_path: Path):
    class Unclosable:
        def __call__(self, event: Event) -> None: ...

        def close(self) -> None:
            raise OSError("gone")

    log = RunLog(tmp_path, Redactor())
    sinks = FanOut([Unclosable(), print, log])
    sinks.close()
    assert "Unclosable failed: gone" in sinks.failures[0]
    sinks.close()
    assert len(sinks.failures) == 1
