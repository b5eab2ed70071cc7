from __future__ import annotations

import os
from pathlib import Path

import pytest

from devall.core.errors import UsageError
from devall.loading.environment import is_secret_name, read_environment


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work, flow = tmp_path / "work", tmp_path / "flow"
    work.mkdir()
    flow.mkdir()
    monkeypatch.chdir(work)
    for name in ("A", "B", "C", "K", "V"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_the_file_beside_the_workflow_comes_before_that_of_the_working_directory(here: Path):
    (here / "flow" / ".env").write_text("A=flow\nB=flow\n")
    (here / "work" / ".env").write_text("B=work\nC=work\n")
    found = read_environment(here / "flow")
    assert {name: found.values[name] for name in "ABC"} == {"A": "flow", "B": "flow", "C": "work"}
    assert found.origin("C") == ".env"
    assert found.origin("A") == str(here / "flow" / ".env")


def test_the_environment_is_never_replaced(here: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("A", "outside")
    (here / "flow" / ".env").write_text("A=file\n")
    found = read_environment(here / "flow")
    assert found.values["A"] == "outside"
    assert found.origin("A") == "the environment"
    assert os.environ["A"] == "outside"


def test_reading_changes_nothing_outside(here: Path):
    (here / "flow" / ".env").write_text("V=1\n")
    read_environment(here / "flow")
    assert "V" not in os.environ


def test_a_file_that_is_named_takes_the_place_of_both(here: Path):
    (here / "flow" / ".env").write_text("A=flow\n")
    (here / "other").write_text("B=other\n")
    found = read_environment(here / "flow", here / "other")
    assert found.values["B"] == "other"
    assert "A" not in found.values
    with pytest.raises(UsageError, match="cannot be read"):
        read_environment(here / "flow", here / "nowhere")


def test_the_rules_are_those_of_dotenv(here: Path):
    (here / "flow" / ".env").write_text(
        '\ufeffA=abc # a note\nexport B=v\nC=\'a"b\'\nK="two\nlines"\nV=${A}/x\n',
        encoding="utf-8",
    )
    values = read_environment(here / "flow").values
    assert values["A"] == "abc"
    assert values["B"] == "v"
    assert values["C"] == 'a"b'
    assert values["K"] == "two\nlines"
    assert values["V"] == "abc/x"


def test_a_line_that_says_nothing_is_a_warning_without_its_text(here: Path):
    (here / "flow" / ".env").write_text("A=1\n\nsk-secret what\nB=2\n")
    found = read_environment(here / "flow")
    assert (found.values["A"], found.values["B"]) == ("1", "2")
    assert [(w.code, w.severity, w.position.line) for w in found.warnings] == [
        ("bad-env-line", "warning", 3)
    ]
    assert "sk-secret" not in str(found.warnings)


def test_a_file_that_is_no_text_is_refused(here: Path):
    (here / "flow" / ".env").write_bytes(b"A=\xff\n")
    with pytest.raises(UsageError, match="no UTF-8"):
        read_environment(here / "flow")


def test_values_are_not_shown_where_it_is_printed(here: Path):
    (here / "flow" / ".env").write_text("A=sk-secret\n")
    assert "sk-secret" not in repr(read_environment(here / "flow"))


@pytest.mark.parametrize("name", ["API_KEY", "my_token", "DbPassword", "SECRETS"])
def test_names_of_secrets(name: str):
    assert is_secret_name(name)
    assert not is_secret_name("HOST")
