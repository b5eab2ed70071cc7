from __future__ import annotations

import json
import stat

import pytest
from jsonschema import Draft202012Validator

from devall.cli.output_schemas import output_schema

RAW = "graph:\n    start: A   \n    # the poet\n    nodes:\n    - id: A\n      type: passthrough\n"
DONE = "graph:\n  start: A\n  # the poet\n  nodes:\n    - id: A\n      type: passthrough\n"


@pytest.fixture
def raw(workspace):
    file = workspace / "w.yaml"
    file.write_text(RAW)
    return file


def test_a_file_is_formatted_in_place_and_keeps_its_permissions(devall, raw):
    raw.chmod(0o640)
    done = devall("fmt", raw, code=0)
    assert raw.read_text() == DONE
    assert stat.S_IMODE(raw.stat().st_mode) == 0o640
    assert done.stdout == ""
    assert done.stderr == f"{raw}: formatted\n"
    assert [each.name for each in raw.parent.iterdir()] == ["w.yaml"]
    assert devall("fmt", raw, code=0).stderr == ""


def test_a_link_stays_one(devall, raw):
    link = raw.with_name("link.yaml")
    link.symlink_to(raw)
    devall("fmt", link, code=0)
    assert link.is_symlink()
    assert raw.read_text() == DONE


def test_check_ends_with_1_and_writes_nothing(devall, raw):
    done = devall("fmt", raw, "--check", code=1)
    assert done.stderr == f"{raw}: would change\n"
    assert raw.read_text() == RAW
    raw.write_text(DONE)
    assert devall("fmt", raw, "--check", code=0).stderr == ""


def test_diff_shows_what_would_change_and_writes_nothing(devall, raw):
    done = devall("fmt", raw, "--diff", code=0)
    assert "-    start: A   \n" in done.stdout
    assert "+  start: A\n" in done.stdout
    assert raw.read_text() == RAW
    assert devall("fmt", raw, "--diff", "--check", code=1).stdout == done.stdout


def test_standard_input_goes_to_standard_output(devall):
    assert devall("fmt", "-", stdin=RAW, code=0).stdout == DONE
    assert devall("fmt", "-", "--check", stdin=RAW, code=1).stdout == ""
    assert "goes with no other file" in devall("fmt", "-", "w.yaml", code=2).stderr


def test_what_is_no_yaml_is_refused_with_its_place_and_the_others_are_formatted(devall, raw):
    bad = raw.with_name("bad.yaml")
    bad.write_text("graph:\n\tstart: A\n")
    done = devall("fmt", bad, raw, code=3)
    assert f"{bad}:2:1: error [syntax]" in done.stderr
    assert bad.read_text() == "graph:\n\tstart: A\n"
    assert raw.read_text() == DONE
    assert "<stdin>:1:5: error" in devall("fmt", "-", stdin="a: [", code=3).stderr


def test_a_missing_file_ends_with_2(devall, raw):
    done = devall("fmt", "none.yaml", raw.parent, code=2)
    assert "there is no file none.yaml" in done.stderr
    assert "is a directory" in done.stderr


def test_line_breaks_of_another_system_are_a_change(devall, raw):
    raw.write_bytes(DONE.replace("\n", "\r\n").encode())
    devall("fmt", raw, "--check", code=1)
    devall("fmt", raw, code=0)
    assert raw.read_bytes() == DONE.encode()


def test_as_json_it_is_as_its_schema_says(devall, raw):
    bad = raw.with_name("bad.yaml")
    bad.write_text("a: [")
    done = devall("fmt", raw, bad, "none.yaml", "--check", "--diff", "--json", code=3)
    told = json.loads(done.stdout)
    Draft202012Validator(output_schema("fmt")).validate(told)
    first, second, third = told["files"]
    assert first["changed"]
    assert first["diff"].startswith("--- ")
    assert second["diagnostics"][0]["line"] == 1
    assert third["error"]["code"] == "usage"
    told = json.loads(devall("fmt", "-", "--json", stdin=RAW, code=0).stdout)
    assert told["files"][0]["text"] == DONE


def test_help_fits_into_80_columns_and_has_examples(devall):
    done = devall("fmt", "-h", env={"COLUMNS": "80"}, code=0)
    assert "  devall fmt" in done.stdout.partition("Example")[2]
    assert max(map(len, done.stdout.splitlines())) <= 80
