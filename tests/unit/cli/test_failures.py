from __future__ import annotations

import json

import pytest

from devall.cli.failures import Reporter, Terminated, error_text
from devall.core.diagnostics import Diagnostic, Position
from devall.core.errors import ConfigError, NodeError, SetupError, ToolFailed, UsageError
from devall.core.outcome import ErrorReport
from devall.telemetry.redaction import Redactor

SECRET = "sk-0123456789abcdef"


def failing(error: BaseException):
    def work() -> int:
        raise error

    return work


def test_a_command_that_works_gives_its_exit_code():
    assert Reporter().guard(lambda: 3) == 3


@pytest.mark.parametrize(
    ("error", "code", "status", "name"),
    [
        (UsageError("wrong"), 2, "failed", "usage"),
        (ConfigError([]), 3, "failed", "config"),
        (SetupError("no key"), 4, "failed", "setup"),
        (ToolFailed("broken"), 1, "failed", "tool_failed"),
        (ZeroDivisionError("by zero"), 1, "failed", "internal"),
        (KeyboardInterrupt(), 130, "cancelled", "cancelled"),
        (Terminated(), 143, "cancelled", "cancelled"),
    ],
)
def test_every_failure_is_an_exit_code_and_an_object(capsys, error, code, status, name):
    assert Reporter(as_json=True, file="w.yaml").guard(failing(error)) == code
    found = json.loads(capsys.readouterr().out)
    assert (found["status"], found["exit_code"], found["error"]["code"]) == (status, code, name)
    assert (found["run_id"], found["workflow"], found["answer"]) == (None, "w.yaml", None)


def test_without_json_standard_output_stays_empty(capsys):
    Reporter().guard(failing(UsageError("wrong", hint="do it right")))
    assert capsys.readouterr() == ("", "error [usage]: wrong\n  hint: do it right\n")


def test_an_internal_error_says_so_and_asks_for_debug(capsys):
    Reporter().guard(failing(ZeroDivisionError("by zero")))
    shown = capsys.readouterr().err
    assert shown.startswith("error [internal]: ZeroDivisionError: by zero\n")
    assert "--debug shows where" in shown
    assert "Traceback" not in shown


def test_debug_shows_the_traceback_and_its_cause(capsys):
    error = SetupError("effect")
    error.__cause__ = ValueError("cause")
    Reporter(debug=True).guard(failing(error))
    shown = capsys.readouterr().err
    assert "ValueError: cause" in shown
    assert "test_failures.py" in shown
    assert "--debug" not in shown


def test_findings_are_shown_with_their_lines_and_given_to_programs(capsys):
    found = Diagnostic("bad-key", "wrong", Position("w.yaml", 2, 3), "right", quoted="  colour: x")
    Reporter(as_json=True).guard(failing(ConfigError([found])))
    out, err = capsys.readouterr()
    assert "    2 |   colour: x\n      |   ^\n" in err
    (shown,) = json.loads(out)["error"]["diagnostics"]
    assert (shown["code"], shown["line"], shown["column"]) == ("bad-key", 2, 3)


def test_the_environments_secrets_are_shown_by_no_failure(capsys, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    error = NodeError("A", "/A@1", ToolFailed(f"GET ?key={SECRET} said Authorization: Bearer abc"))
    Reporter(as_json=True, debug=True).guard(failing(error))
    shown = "".join(capsys.readouterr())
    assert SECRET not in shown
    assert "Authorization: ***" in shown


def test_a_workflows_secrets_are_shown_by_no_failure(capsys):
    reporter = Reporter(as_json=True, redactor=Redactor([SECRET]))
    reporter.guard(failing(SetupError("no", hint=f"not {SECRET}")))
    assert SECRET not in "".join(capsys.readouterr())


def test_an_error_names_its_node_unless_it_does_so_already():
    assert "  node: S/A" in error_text(ErrorReport("model", "refused", "S/A"))
    assert "  node:" not in error_text(ErrorReport("model", "node S/A: refused", "S/A"))
