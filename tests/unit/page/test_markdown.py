from __future__ import annotations

import re

import pytest

from devall.page.markdown import render


@pytest.mark.parametrize(
    "text",
    [
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "[x](vbscript:x)",
        "[x](file:///etc/passwd)",
        "[x](/etc/passwd)",
        "[x]: javascript:alert(1)\n\n[x]",
        "<javascript:alert(1)>",
        "<script>alert(1)</script>",
        '<img src=x onerror="alert(1)">',
        "![x](https://example.org/a.png)",
        '[x](https://example.org "a\\" onclick=\\"alert(1)")',
        "<!-- a -->\n<style>body{}</style>",
        '```"><script>\nx\n```',
    ],
)
def test_nothing_of_a_text_runs_or_loads(text):
    html = render(text, 3)
    tags = re.findall(r"<(/?)([a-z0-9]+)([^>]*)>", html)
    assert {tag for _, tag, _ in tags} <= {"p", "a", "pre", "code", "br"}
    attributes = " ".join(each for _, _, each in tags)
    assert not re.search(r"\bon\w+=|\bstyle=|\bsrc=", re.sub(r'"[^"]*"', '""', attributes))
    assert all(each.startswith("https://") for each in re.findall(r'href="([^"]*)"', html))


def test_a_link_leads_out_and_tells_nothing_of_the_page():
    html = render("[x](https://example.org/?a=1&b=2)", 3)
    assert 'href="https://example.org/?a=1&amp;b=2"' in html
    assert 'rel="noopener noreferrer nofollow"' in html


def test_headings_go_on_from_those_of_the_page_without_a_gap():
    html = render("# A\n\n#### B\n\n## C\n\n###### D\n\n###### E", 3)
    assert re.findall(r"<h(\d)>", html) == ["3", "4", "4", "5", "6"]
    assert re.findall(r"<h(\d)>", render("### A", 3)) == ["3"]


def test_line_breaks_stay():
    assert "grey<br />\nthe gulls" in render("the sea is grey\nthe gulls are loud", 3)


def test_a_wide_table_can_be_scrolled_by_key_and_has_no_style():
    html = render("| a | b |\n| - | -: |\n| 1 | 2 |\n\n| c |\n| - |\n", 3)
    assert html.count('tabindex="0"') == 2
    assert len(set(re.findall(r'aria-label="([^"]*)"', html))) == 2
    assert "style=" not in html
    assert '<td class="to-right">2</td>' in html
