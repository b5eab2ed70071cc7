from __future__ import annotations

import subprocess
import sys

import pytest

from devall.cli.streams import clean, one_line, spelled, write_note


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\tc", "a\nb\tc"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x\x1b]8;;http://a\x1b\\link", "xlink"),
        ("\x1b[2J\x1b[1;1Hgone", "gone"),
        ("a\x00b\x07c\x9bd\x7f", "abcd"),
        ("\x1b]52;c;unfinished", "]52;c;unfinished"),
        ("ünïcödé 日本", "ünïcödé 日本"),
    ],
)
def test_no_control_character_is_left(text: str, shown: str):
    assert clean(text) == shown


def test_a_long_text_is_one_line_that_ends_in_dots():
    assert one_line("a\n  b\tc") == "a b c"
    assert one_line("x" * 50, 10) == "x" * 9 + "…"
    assert one_line("x" * 10, 10) == "x" * 10
    assert one_line("word " * 1_000_000, 20) == "word word word word…"


def in_a_process(code: str, **options) -> subprocess.CompletedProcess[bytes]:
    prelude = "from devall.cli.streams import *\nimport sys\n"
    return subprocess.run(
        [sys.executable, "-c", prelude + code], capture_output=True, check=False, **options
    )


def test_an_answer_is_written_as_it_is_when_no_terminal_reads_it():
    done = in_a_process("write_answer('\\x1b[1mb\\udc80 \\u65e5\\n')")
    assert done.stdout == b"\x1b[1mb? \xe6\x97\xa5\n"


@pytest.mark.parametrize("unbuffered", ["", "-u"])
def test_a_reader_that_has_gone_is_no_error(unbuffered: str):
    code = "print(write_answer('x' * 1_000_000), file=sys.stderr); print('more'); write_answer('y')"
    done = subprocess.run(
        f'{sys.executable} -c "from devall.cli.streams import *; import sys; {code}" | head -c 1',
        shell=True,
        capture_output=True,
        check=False,
    )
    assert done.stderr == b"False\n"


def test_a_full_disk_is_an_error():
    done = in_a_process(
        "try:\n    sys.stdout = open('/dev/full', 'w'); write_answer('x')\n"
        "except OSError as error:\n    print(error.strerror, file=sys.stderr); discard(sys.stdout)"
    )
    assert done.stderr == b"No space left on device\n"


@pytest.mark.parametrize("closed", ["1>&-", "2>&-", "1>&- 2>&-"])
def test_closed_streams_are_no_error(closed: str):
    code = "write_note('a'); write_answer('b')"
    done = subprocess.run(
        f'{sys.executable} -c "from devall.cli.streams import *; {code}" {closed}',
        shell=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout == (b"" if "1>" in closed else b"b")
    assert done.stderr == (b"" if "2>" in closed else b"a\n")


def test_on_github_no_line_of_a_note_is_a_command(capsys, monkeypatch):
    said = "::a::b\n \t::c::d\r\x1b[1m::e::f\nx ::g::h ##[i]j"
    write_note(said)
    assert capsys.readouterr().err == "::a::b\n \t::c::d\n::e::f\nx ::g::h ##[i]j\n"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    write_note(said)
    assert capsys.readouterr().err == "\\::a::b\n \t\\::c::d\n\\::e::f\nx ::g::h ##\\[i]j\n"


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", "a → b · c…"),
        (None, "a → b · c…"),
        ("ascii", "a -> b - c..."),
        ("latin-1", "a -> b - c..."),
        ("no such encoding", "a -> b - c..."),
    ],
)
def test_our_own_signs_are_spelled_where_the_encoding_has_none(encoding: str | None, shown: str):
    assert spelled("a → b · c…", encoding) == shown
