from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from devall.core.diagnostics import Diagnostic, Position
from devall.core.outcome import ErrorReport, Outcome
from devall.reports.junit import Case, Suite
from devall.reports.markdown import escaped, fenced, run_markdown, suites_markdown
from devall.reports.runs import RunReport


def rendered(text: str) -> str:
    return MarkdownIt("gfm-like", {"linkify": False}).render(text)


def test_it_shows_status_answer_nodes_and_totals(completed: RunReport):
    text = run_markdown(completed)
    assert text.startswith("## flows/poem.yaml: completed\n")
    assert "3 model calls · 1 tool calls · 10 / 5 tokens in / out · ≥ $1.50" in text
    assert "### Answer (by B)" in text
    assert "```text\na poem\n```" in text
    assert "| A | completed | 2 | 1.50 s | 2 | 1 | 10 / 5 | $0.00 |" in text
    assert "cost unknown" in text
    assert "mind the gap" in text


def test_a_failure_is_told_with_its_place_and_hint(failed: RunReport):
    html = rendered(run_markdown(failed))
    assert "B: the endpoint refused | `401` [model_refused] — sub/flow.yaml:7:9" in html
    assert "hint: check the key" in html
    assert html.count("<td") == 4 * 8


def test_a_file_that_is_wrong_is_told_line_by_line():
    found = Diagnostic("unknown-key", "no key `x`", Position("w.yaml", 3, 5), "take it away")
    outcome = Outcome("failed", 3, ErrorReport("config", str(found)))
    text = run_markdown(RunReport(workflow="w.yaml", outcome=outcome, diagnostics=(found,)))
    assert "\\[unknown-key\\] — w.yaml:3:5" in text
    assert text.count("no key") == 1


@given(st.text())
def test_no_text_means_anything_to_markdown(text: str):
    tags = re.findall(r"<[^>]*>", rendered(f"- {escaped(text)}\n\nend"))
    assert tags == ["<ul>", "<li>", "</li>", "</ul>", "<p>", "</p>"]
    cells = rendered(f"| a | b |\n| --- | --- |\n| {escaped(text)} | z |\n")
    assert cells.count("<td>") == 2


@given(st.text(st.sampled_from("`~\n \r<a#")))
@example("``\r`")
def test_a_block_ends_only_where_its_text_does(text: str):
    html = rendered("\n".join([*fenced(text), "", "*end*"]))
    assert html.count("<code") == 1
    assert html.endswith("<p><em>end</em></p>\n")


@pytest.mark.parametrize("answer", ["x" * 5000, "é" * 5000, "`" * 3000, "a\n" * 5000])
@pytest.mark.parametrize("longest", [0, 10, 300, 1000, 4000])
def test_it_is_never_longer_than_it_may_be(completed: RunReport, answer: str, longest: int):
    text = run_markdown(replace(completed, answer=answer), longest=longest)
    assert len(text.encode()) <= longest


def test_what_is_cut_first_is_the_answer(completed: RunReport):
    text = run_markdown(replace(completed, answer="é" * 5000), longest=2000)
    assert "5,000 characters in all" in text
    assert "| C | skipped |" in text
    assert len(text.encode()) > 1900


def test_suites_are_told_with_what_did_not_pass():
    cases = [
        Case(name="a|b", seconds=0.25),
        Case(name="c", outcome="failed", message="<b>no", kind="answer", details="- x\n+ ```"),
        Case(name="d", outcome="skipped", message="later"),
    ]
    text = suites_markdown([Suite(name="one", cases=cases), Suite(name="two", cases=[])])
    html = rendered(text)
    assert "one: 1 of 3 passed" in html
    assert "two: 0 of 0 passed" in html
    assert html.count("<tr>") == 4
    assert "<h3>c</h3>\n<p>&lt;b&gt;no [answer]</p>" in html
    assert "- x\n+ ```" in html
    assert "later" not in html
    for longest in (0, 50, 100, 200, 300):
        cut = suites_markdown([Suite(name="one", cases=cases)], longest=longest)
        assert len(cut.encode()) <= longest
