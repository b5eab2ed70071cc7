"""Pages in a real browser: what it loads, says, shows, and how it can be used."""

from __future__ import annotations

import pytest

from tests.unit.page.conftest import add_functions, agent
from tests.unit.page.test_document import EVIL, LOOP, TOOLS, units

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture
async def evil(run, page, tmp_path):
    """The page of a run with tools, a failure, a human and texts that want to be HTML."""
    await run(
        {
            "start": "A",
            "nodes": [
                agent("A", "Look it up.", config=TOOLS),
                {"id": "H", "type": "human", "config": {"description": "Is it so?"}},
                agent("B"),
            ],
            "edges": [{"from": "A", "to": "H"}, {"from": "H", "to": "B"}],
        },
        {
            "a": [
                {"tool_calls": [{"name": "lookup", "arguments": {"word": EVIL}}]},
                {"text": EVIL, "usage": {"prompt_tokens": 10, "completion_tokens": 3}},
            ],
            "b": [{"status": 400, "error": "x" * 300}],
        },
        task=EVIL + "w" * 500,
        functions_dir=add_functions(tmp_path),
        answers={"H": "yes"},
    )
    return page("the-run")


async def test_a_page_loads_nothing_complains_of_nothing_and_runs_nothing_of_a_text(browser, evil):
    browser.open(evil)
    assert browser.requests == [evil.as_uri()]
    assert not browser.complaints
    assert browser.run("document.scripts.length") == 1
    assert browser.run("document.images.length") == 0
    assert browser.run("document.querySelectorAll('[onmouseover]').length") == 0


async def test_the_policy_holds_for_what_a_text_would_bring(browser, evil):
    browser.open(evil)
    browser.run(
        "(()=>{const s=document.createElement('script');s.textContent='window.ran=1';"
        "document.body.append(s);const i=new Image();i.src='http://127.0.0.1:9/x.png';"
        "document.body.append(i)})()"
    )
    assert browser.run("window.ran === undefined")
    assert any("Content Security Policy" in each for each in browser.complaints)
    assert not [each for each in browser.requests if "127.0.0.1" in each]


async def test_nothing_is_wider_than_the_window(browser, evil):
    for width in (360, 768, 1280):
        browser.open(evil, width)
        assert browser.run(OVERFLOW) == 0
        browser.run("document.querySelectorAll('details').forEach((each) => (each.open = true))")
        assert browser.run(OVERFLOW) == 0


async def test_everything_is_reached_by_key_and_a_node_is_opened_by_its_link(browser, evil):
    browser.open(evil)
    browser.press("Tab", 9)
    assert browser.run("document.activeElement.className") == "skip"
    assert browser.run("document.activeElement.getBoundingClientRect().left") >= 0
    reached = []
    for _ in range(80):
        browser.press("Tab", 9)
        reached.append(browser.run("document.activeElement.tagName"))
        assert browser.run("getComputedStyle(document.activeElement).outlineStyle") != "none"
        if browser.run("document.activeElement.matches('article summary')"):
            break
    assert {"A", "SUMMARY", "DIV", "BUTTON"} <= {each.upper() for each in reached}
    was_open = browser.run("document.activeElement.parentElement.open")
    browser.press("Enter", 13, "\r")
    assert browser.run("document.activeElement.parentElement.open") is not was_open
    link = browser.run(
        "(()=>{const a=document.querySelector('.lane .name a');a.focus();return a.hash})()"
    )
    browser.run("document.querySelectorAll('details').forEach((each) => (each.open = false))")
    browser.press("Enter", 13, "\r")
    assert browser.run("location.hash") == link
    assert browser.run(f"document.querySelector('{link} > details').open")


async def test_both_colour_schemes_are_there_and_differ(browser, evil):
    grounds = []
    for scheme in ("light", "dark"):
        browser.open(evil, scheme=scheme)
        grounds.append(browser.run("getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(245, 246, 248)", "rgb(15, 18, 22)"]


async def test_the_page_is_whole_without_its_script(browser, evil):
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(evil)
    tree = browser.ask("Accessibility.getFullAXTree")["nodes"]
    names = {each["name"]["value"] for each in tree if each.get("name") and not each["ignored"]}
    assert {"Graph as it ran", "Timeline", "Nodes", "Sections", "Legend"} <= names
    assert "Open all" not in names  # it would do nothing


async def test_a_reader_of_screens_finds_landmarks_headings_and_tables(browser, evil):
    browser.open(evil)
    tree = [
        each for each in browser.ask("Accessibility.getFullAXTree")["nodes"] if not each["ignored"]
    ]
    roles = [each["role"]["value"] for each in tree]
    for role in ("banner", "navigation", "main", "contentinfo"):
        assert roles.count(role) == 1, role
    assert roles.count("heading") >= 8
    assert roles.count("DisclosureTriangle") >= 5
    browser.run("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    tree = [
        each for each in browser.ask("Accessibility.getFullAXTree")["nodes"] if not each["ignored"]
    ]
    roles = [each["role"]["value"] for each in tree]
    assert roles.count("table") >= 4
    assert {"rowheader", "columnheader"} <= set(roles)


async def test_nodes_are_found_by_name_and_opened_and_closed_together(browser, run, page):
    nodes = [{"id": f"Node {i}", "type": "passthrough"} for i in range(20)]
    edges = [{"from": f"Node {i}", "to": f"Node {i + 1}"} for i in range(19)]
    await run({"start": "Node 0", "nodes": nodes, "edges": edges}, task="go")
    browser.open(page("the-run"))
    browser.run("document.getElementById('find').focus()")
    for key in "node 19":
        browser.press(key, ord(key.upper()), key)
    shown = "[...document.querySelectorAll('article')].filter((each) => !each.hidden).length"
    assert browser.run(shown) == 1
    assert browser.run("document.getElementById('found').textContent") == "1 of 20"
    browser.run("document.querySelector('[data-open=\"1\"]').click()")
    assert browser.run("document.querySelectorAll('article details.visit[open]').length") == 1


async def test_on_paper_there_is_no_navigation_and_no_dark_ground(browser, evil):
    browser.open(evil)
    browser.ask("Emulation.setEmulatedMedia", media="print")
    assert browser.run("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.slow
async def test_a_page_of_five_thousand_events_opens_with_all_its_units(browser, run, page):
    await run(units(1000), {"w": [f"piece {number}" for number in range(1000)]})
    browser.open(page("the-run"), 360)
    assert browser.run("document.querySelectorAll('details.unit').length") == 1000
    assert browser.run(OVERFLOW) == 0
    assert not browser.complaints


async def test_the_bars_of_branches_at_once_lie_above_each_other(browser, run, page):
    graph = {
        "start": ["A", "B"],
        "nodes": [agent("A"), agent("B"), agent("C")],
        "edges": [{"from": "A", "to": "C"}, {"from": "B", "to": "C"}],
    }
    slow = {"text": "x", "delay": 0.3}
    await run(graph, {"a": [slow], "b": [slow], "c": [slow]})
    browser.open(page("the-run"))
    [a, b, c] = browser.run(
        "[...document.querySelectorAll('.lane rect.visit')].map((each) => {"
        "const r = each.getBoundingClientRect(); return [r.left, r.right, r.top]})"
    )
    assert a[0] < b[1]
    assert b[0] < a[1]
    assert c[0] >= max(a[1], b[1]) - 2
    assert a[2] < b[2] < c[2]


async def test_a_loop_is_drawn_round_by_round(browser, run, page):
    await run(LOOP, {"w": ["1", "2", "3"], "c": ["AGAIN", "AGAIN", "GOOD"]})
    browser.open(page("the-run"))
    titles = browser.run(
        "[...document.querySelectorAll('rect.round title')].map((each) => each.textContent)"
    )
    assert [each.split(":")[0] for each in titles] == ["round 1", "round 2", "round 3"]
