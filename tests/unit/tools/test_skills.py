from __future__ import annotations

from pathlib import Path

import pytest

from devall.core.errors import ToolArguments, ToolFailed
from devall.loading.skills import Skill
from devall.tools.skills import LONGEST, activate, read


@pytest.fixture
def skill(tmp_path: Path) -> Skill:
    (tmp_path / "refs").mkdir()
    (tmp_path / "refs" / "a.md").write_text("first\nsecond")
    (tmp_path / ".hidden").write_text("x")
    (tmp_path / "SKILL.md").write_text("x")
    (tmp_path / "link").symlink_to("/etc/passwd")
    return Skill("pdf", "Reads PDFs.", tmp_path, "Do it.", ("read_*",))


def test_an_activation_gives_instructions_files_and_the_tools_that_may_be_called(skill: Skill):
    text = activate({"pdf": skill}, {"name": "pdf"}, ["read_file"]).text
    assert "Skill pdf is active" in text
    assert "Do it." in text
    assert "(read_skill_file gives them): refs/a.md\n" in text
    assert text.endswith("these of your tools may be called: read_file")


def test_an_unknown_skill_is_told_with_the_nearest_name(skill: Skill):
    with pytest.raises(ToolFailed, match="did you mean pdf"):
        activate({"pdf": skill}, {"name": "pdff"}, [])
    with pytest.raises(ToolArguments):
        activate({"pdf": skill}, {"skill": "pdf"}, [])


def test_a_file_is_read_in_parts(skill: Skill):
    arguments = {"name": "pdf", "path": "refs/a.md"}
    assert read({"pdf": skill}, arguments).text == "first\nsecond"
    assert read({"pdf": skill}, {**arguments, "offset": 6}).text == (
        "[characters 6 to 12 of 12]\nsecond"
    )
    (skill.folder / "long.txt").write_text("x" * (LONGEST + 5))
    text = read({"pdf": skill}, {**arguments, "path": "long.txt"}).text
    assert text.startswith(f"[characters 0 to {LONGEST} of {LONGEST + 5}; the rest: offset")


@pytest.mark.parametrize("path", ["link", "../x", "/etc/passwd", "refs", "none"])
def test_what_is_not_in_the_skill_is_refused(skill: Skill, path: str):
    with pytest.raises(ToolFailed):
        read({"pdf": skill}, {"name": "pdf", "path": path})
