from __future__ import annotations

import json

from devall.core.diagnostics import Diagnostic, Position
from devall.loading.document import parse_document
from devall.loading.reports import finished, render_github, render_json, render_text


def finding(
    line: int, column: int = 1, code: str = "c", message: str = "m", **more: str
) -> Diagnostic:
    return Diagnostic(code, message, Position("w.yaml", line, column), **more)  # type: ignore[arg-type]


def test_the_caret_stands_below_the_place():
    found = finding(3, 5, message="wrong", hint="do right", quoted="abcdefg  ")
    assert render_text([found]) == (
        "w.yaml:3:5: error [c] wrong\n    3 | abcdefg\n      |     ^\n      = do right\n1 error"
    )


def test_a_long_line_is_cut_around_the_place():
    line = "x" * 300 + "HERE" + "y" * 300
    shown, caret = render_text([finding(1, 301, quoted=line)]).split("\n")[1:3]
    assert len(shown) < 120
    assert shown[caret.index("^") :].startswith("HERE")
    assert shown.count("...") == 2


def test_tabs_and_control_characters_do_not_shift_the_caret():
    shown, caret = render_text([finding(1, 4, quoted="\ta\x07b")]).split("\n")[1:3]
    assert shown[caret.index("^")] == "b"


def test_errors_and_warnings_are_counted():
    text = render_text([finding(1), finding(2), finding(3, severity="warning")])
    assert text.endswith("\n2 errors, 1 warning")
    assert render_text([]) == ""


def test_json_has_every_field():
    found = json.loads(render_json([finding(1, 2, hint="h", severity="warning")]))
    assert found == [
        {
            "file": "w.yaml",
            "line": 1,
            "column": 2,
            "severity": "warning",
            "code": "c",
            "message": "m",
            "hint": "h",
        }
    ]


def test_annotations_are_escaped():
    found = finding(1, 2, message="50%\nmore", hint="a: b")
    assert render_github([found]) == (
        "::error file=w.yaml,line=1,col=2,title=c::50%25%0Amore (a: b)"
    )
    whole = Diagnostic("c", "m", Position("a,b:c.yaml"))
    assert render_github([whole]) == "::error file=a%2Cb%3Ac.yaml,title=c::m"


def test_findings_are_sorted_by_file_and_place_and_each_comes_once():
    first, second = parse_document("a\nb\n", "w.yaml"), parse_document("a\n", "a.yaml")
    other = Diagnostic("c", "m", Position("a.yaml", 1, 1))
    found = finished(
        [other, finding(2), finding(1, 3), finding(1, 2), finding(2, message="again")],
        [first, second],
        (),
    )
    assert [str(each.position) for each in found] == [
        "w.yaml:1:2",
        "w.yaml:1:3",
        "w.yaml:2:1",
        "a.yaml:1:1",
    ]


def test_findings_about_a_whole_file_are_told_apart_by_what_they_say():
    found = finished([finding(0), finding(0, message="other"), finding(0)], [], ())
    assert [each.message for each in found] == ["m", "other"]


def test_a_secret_is_blotted_out_and_the_columns_stay():
    text = "api_key: sk-123456, x: 1\nOPENAI_API_KEY: 'abc def'\nmax_tokens: 500\nk: ${MY_KEY}\n"
    document = parse_document(text, "w.yaml")
    found = finished([finding(line) for line in (1, 2, 3, 4)], [document], ())
    assert [each.quoted for each in found] == [
        "api_key: ***      , x: 1",
        "OPENAI_API_KEY: ***      ",
        "max_tokens: 500",
        "k: ${MY_KEY}",
    ]


def test_a_known_secret_is_blotted_out_everywhere():
    document = parse_document("role: hush-hush, you\n", "w.yaml")
    (found,) = finished(
        [finding(1, message="no hush-hush", hint="hush-hush")], [document], ["hush-hush", "h"]
    )
    assert (found.message, found.hint) == ("no ***", "***")
    assert found.quoted == "role: ***      , you"
