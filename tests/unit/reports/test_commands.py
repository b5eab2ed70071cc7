from __future__ import annotations

from pathlib import Path

from devall.core.diagnostics import Diagnostic, Position
from devall.reports.commands import in_repository, workflow_commands


def test_nothing_in_a_text_ends_the_command_or_begins_another():
    found = Diagnostic("odd", "100%\r\n::error::x", Position("a,b:c.yaml", 2, 3), "so: do")
    assert workflow_commands([found], {}) == (
        "::error file=a%2Cb%3Ac.yaml,line=2,col=3,title=odd::100%25%0D%0A::error::x (so: do)"
    )


def test_files_are_named_from_the_root_of_the_repository(workspace: Path, tmp_path_factory):
    (workspace / "sub").mkdir()
    outside = tmp_path_factory.mktemp("elsewhere") / "w.yaml"
    assert in_repository("sub/w.yaml", str(workspace)) == "sub/w.yaml"
    assert in_repository("w.yaml", str(workspace.parent)) == f"{workspace.name}/w.yaml"
    assert in_repository(str(outside), str(workspace)) == str(outside)
    assert in_repository("w.yaml", "") == "w.yaml"
