"""What a page tells of real runs, read as a program would read it."""

from __future__ import annotations

import asyncio
import html
import itertools
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import devall
from devall.history.past import find_past
from devall.testing.scripted_model import ScriptedModels
from tests.unit.page.conftest import add_functions, agent

EVIL = (
    '<script>alert(1)</script></style></title></pre>"><img src=x onerror=alert(1)>'
    "' onmouseover='alert(1) <a href=\"javascript:alert(1)\">x</a> \x00\x1b[31m\u202e &lt; ]]>--!>"
)
TOOLS = {"tooling": [{"type": "function", "config": {"tools": [{"name": "mine:lookup"}]}}]}


class Reader(HTMLParser):
    """The elements of a page, their attributes and text, and the headings in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[int] = []
        self.scripts: list[str] = []
        self._said: list[str] = []
        self._open = ""
        self.feed(text)
        self.text = "".join(self._said)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open = tag
        if re.fullmatch(r"h\d", tag):
            self.headings.append(int(tag[1]))

    def handle_data(self, data):
        if self._open == "script":
            self.scripts.append(data)
            self._open = ""
        elif self._open != "style":
            self._said.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of that name."""
        return [attributes for name, attributes in self.tags if name == tag]


def check(text: str) -> Reader:
    """A page that loads nothing, runs its own script only, and whose links lead somewhere."""
    read = Reader(text)
    ids = [a["id"] for _, a in read.tags if "id" in a]
    assert len(ids) == len(set(ids))
    assert len(read.all("script")) == 1
    assert not any(name.startswith("on") or name == "style" for _, a in read.tags for name in a)
    assert not [a for _, a in read.tags if {"src", "srcset", "action", "data"} & a.keys()]
    for link in read.all("a"):
        target = link.get("href") or ""
        assert target.startswith(("#", "https://", "http://", "mailto:")) or not target
        assert not target.startswith("#") or target[1:] in ids
    for name in ("aria-labelledby", "aria-describedby"):
        assert all(a[name] in ids for _, a in read.tags if name in a)
    levels = read.headings
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    return read


async def test_the_head_says_how_it_ended_and_the_answer_stands_before_the_rest(run, document):
    await run(
        {
            "start": "A",
            "nodes": [agent("A"), {"id": "B", "type": "passthrough"}],
            "edges": [{"from": "A", "to": "B"}],
        },
        {
            "a": [
                {
                    "text": "# Done\n\nIt *is*.",
                    "usage": {"prompt_tokens": 7, "completion_tokens": 3},
                }
            ]
        },
        task="What is it?",
    )
    page = document("the-run")
    read = check(page.html)
    order = [
        "Completed",
        "exit code 0",
        "What is it?",
        "It is.",
        "Graph as it ran",
        "run of a node",
        "By node",
        "By model",
        "7 tokens in, 3 out",
    ]
    places = [read.text.index(each) for each in order]
    assert places == sorted(places)
    assert "<h3>Done</h3>" in page.html
    assert page.has_picture
    assert not page.cut


async def test_a_failure_is_told_with_its_node_and_hint_before_anything_else(
    run, document, tmp_path
):
    await run(
        {
            "start": "A",
            "nodes": [
                agent("A"),
                agent("B", config={"base_url": "http://127.0.0.1:9/v1"}),
                {"id": "C", "type": "passthrough"},
            ],
            "edges": [{"from": "A", "to": "B"}, {"from": "B", "to": "C"}],
        },
        {"a": ["draft"], "b": [{"status": 401, "error": "invalid_api_key"}]},
        task="Draft it",
    )
    read = check(document("the-run", go_on="devall resume the-run").html)
    order = [
        "Failed",
        "exit code 1",
        "Incorrect API key provided",
        "devall resume the-run",
        "Draft it",
    ]
    places = [read.text.index(each) for each in order]
    assert places == sorted(places)
    assert "C has not run" in read.text
    past = find_past(tmp_path / "logs", "the-run")
    hint = past.story().finished.outcome.error.hint
    assert hint in read.text


async def test_nothing_that_was_said_becomes_html(run, document, tmp_path):
    functions = add_functions(tmp_path)
    name = 'x"><script>alert(1)</script>'
    await run(
        {
            "id": EVIL.replace("\x00", ""),
            "start": "A",
            "nodes": [
                agent("A", EVIL.replace("\x00", ""), config=TOOLS),
                {"id": name, "type": "passthrough"},
                {"id": "H", "type": "human", "config": {"description": "<i>sure</i>"}},
            ],
            "edges": [{"from": "A", "to": name}, {"from": name, "to": "H"}],
        },
        {
            "a": [
                {"tool_calls": [{"name": "lookup", "arguments": {"word": EVIL}}], "text": EVIL},
                EVIL,
            ]
        },
        task=EVIL,
        functions_dir=functions,
        answers={"H": EVIL},
    )
    page = document("the-run", notes=[EVIL], go_on=EVIL)
    read = check(page.html)
    for tag in ("img", "title", "i", "b"):
        assert len(read.all(tag)) == (page.html.count("<title") if tag == "title" else 0)
    assert page.html.count("<script>") == 1
    assert "alert(1)" not in read.scripts[0]
    assert "<script>alert(1)</script></style></title></pre>" in read.text
    assert "␛[31m" in read.text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", page.html)


async def test_the_policy_allows_the_page_s_own_style_and_script_and_nothing_else(run, document):
    await run({"start": "A", "nodes": [{"id": "A", "type": "literal", "config": {"content": "x"}}]})
    read = check(document("the-run").html)
    [policy] = [
        a["content"] for a in read.all("meta") if a.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(each.strip().split(" ", 1) for each in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"
    assert "unsafe" not in policy
    assert all(each.startswith("'sha256-") for each in rules["style-src"].split())
    assert len(rules["script-src"].split()) == 1


async def test_prompts_calls_results_and_replies_stand_with_their_node(run, document, tmp_path):
    await run(
        {"start": "A", "nodes": [agent("A", "You look words up.", config=TOOLS)]},
        {
            "a": [
                {"tool_calls": [{"name": "lookup", "arguments": {"word": "tide"}}]},
                {"tool_calls": [{"name": "lookup", "arguments": {"word": "nothing"}}]},
                "the tide is high",
            ]
        },
        task="look it up",
        functions_dir=add_functions(tmp_path),
    )
    page = document("the-run")
    read = check(page.html)
    for text in (
        "You look words up.",
        'lookup(word="tide")',
        "tide: found <b>here</b>",
        "lookup raised LookupError: no such word",
        "the tide is high",
        "Turn 3",
        "1 failed",
    ):
        assert text in read.text, text
    assert 'class="model good"' in page.html
    assert 'class="tool bad"' in page.html


async def test_a_run_whose_events_tell_no_prompts_is_told_from_its_journal(run, document, logs):
    await run(
        {"start": "A", "nodes": [agent("A", "You are old.")]}, {"a": ["so be it"]}, task="hello"
    )
    file = logs / "the-run" / "events.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        for field in ("messages", "tools", "reply", "graph"):
            line.pop(field, None)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    read = check(document("the-run").html)
    assert "You are old." in read.text
    assert "What went to the model was not kept" not in read.text


async def test_without_journal_and_workflow_the_events_tell(run, document, logs):
    await run(
        {"start": "A", "nodes": [agent("A", "You are quick.")]},
        {"a": ["gone"]},
        task="hi",
        journal="memory",
    )
    page = document("the-run", workflow=None)
    read = check(page.html)
    assert "You are quick." in read.text
    assert "in no journal" in read.text
    assert not page.has_picture
    assert "No picture" in read.text


async def test_what_log_output_hides_and_what_is_secret_stands_nowhere(run, document):
    await run(
        {
            "start": "A",
            "nodes": [agent("A", log_output=False), agent("B")],
            "edges": [{"from": "A", "to": "B"}],
        },
        {"a": ["the launch code is 4711-0815"], "b": ["all is well with sk-secret-key"]},
        task="go",
    )
    page = document("the-run", redact=lambda text: text.replace("sk-secret-key", "***"))
    check(page.html)
    assert "4711-0815" not in page.html
    assert "sk-secret-key" not in page.html
    assert "all is well with ***" in page.html


async def test_a_question_and_its_answer_across_two_processes(run, document, logs):
    await run(
        {
            "start": "H",
            "nodes": [
                {"id": "H", "type": "human", "config": {"description": "Is it fit?"}},
                agent("A"),
            ],
            "edges": [{"from": "H", "to": "A"}],
        },
    )
    waiting = check(document("the-run").html)
    assert "Waiting for a human" in waiting.text
    assert waiting.text.index("Is it fit?") < waiting.text.index("Graph as it ran")
    models = ScriptedModels({"a": ["sent"]})
    await devall.resume("the-run", logs_dir=logs, answers={"H": "yes, do"}, model_source=models)
    read = check(document("the-run").html)
    assert "2 processes worked at it" in read.text
    assert "Questions to humans" in read.text
    assert "yes, do" in read.text
    assert "not answered" not in read.text


LOOP = {
    "start": "W",
    "end": ["E"],
    "nodes": [agent("W"), agent("C"), {"id": "E", "type": "passthrough"}],
    "edges": [
        {"from": "W", "to": "C"},
        {"from": "C", "to": "W", "condition": {"type": "keyword", "config": {"any": ["AGAIN"]}}},
        {"from": "C", "to": "E", "condition": {"type": "keyword", "config": {"any": ["GOOD"]}}},
    ],
}


async def test_the_rounds_of_a_loop_and_why_it_was_left(run, document):
    await run(LOOP, {"w": ["one", "two", "three"], "c": ["AGAIN", "AGAIN", "GOOD"]})
    page = document("the-run")
    read = check(page.html)
    assert "loop W, C" in read.text
    assert "3 rounds" in read.text
    assert len(re.findall(r'class="round', page.html)) == 3
    assert "round 3 of the loop W, C" in read.text
    assert "was left in round 3, as C -> E fired" in read.text


def units(number: int) -> dict:
    return {
        "start": "L",
        "end": ["J"],
        "nodes": [
            {
                "id": "L",
                "type": "literal",
                "config": {"content": "\n".join(f"item {i}" for i in range(number))},
            },
            agent("W", on_error="continue"),
            {"id": "J", "type": "passthrough"},
        ],
        "edges": [
            {
                "from": "L",
                "to": "W",
                "dynamic": {
                    "type": "map",
                    "split": {"type": "regex", "pattern": r"[^\n]+"},
                    "config": {"max_parallel": 50},
                },
            },
            {"from": "W", "to": "J"},
        ],
    }


async def test_each_unit_is_told_with_what_it_said(run, document):
    await run(units(3), {"w": ["first", "second", "third"]})
    read = check(document("the-run").html)
    assert all(f"Unit {number}" in read.text for number in (1, 2, 3))
    assert all(text in read.text for text in ("first", "second", "third"))


@pytest.mark.slow
async def test_five_thousand_events_make_a_page_of_a_few_megabytes(run, document):
    await run(units(1000), {"w": [f"piece {number} " + "long " * 400 for number in range(1000)]})
    page = document("the-run")
    read = check(page.html)
    assert page.events >= 5000
    assert len(page.html.encode()) < 12_000_000
    assert "1,000 units" in read.text
    assert "Unit 1000" in read.text


async def test_texts_that_are_too_long_are_cut_and_say_where_the_whole_is(run, document):
    await run(
        {"start": "A", "nodes": [agent("A")]}, {"a": ["word " * 400_000]}, task="x" * 1_000_000
    )
    page = document("the-run")
    read = check(page.html)
    assert len(page.html) < 1_000_000
    assert page.cut
    assert "devall show the-run NODE --full" in read.text
    assert re.search(r"Cut here: [\d,]+ more characters", read.text)


async def test_a_page_of_half_the_size_has_the_same_nodes(run, document):
    await run(LOOP, {"w": ["draft " * 5000] * 9, "c": ["AGAIN " * 5000] * 8 + ["GOOD"]})
    whole, small = document("the-run"), document("the-run", most=100_000)
    assert len(small.html) < len(whole.html) / 2
    assert Reader(small.html).headings == Reader(whole.html).headings


async def test_a_run_that_goes_on_is_told_as_it_stands(run, document, logs):
    await run(LOOP, {"w": ["one", "two"], "c": ["AGAIN", "GOOD"]}, journal="memory")
    file = logs / "the-run" / "events.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    asked = [at for at, line in enumerate(lines) if '"model_call_started"' in line]
    file.write_text("".join(lines[: asked[-1] + 1]) + '{"v": 1, "event": "node_fin')
    read = check(document("the-run").html)
    assert "Unfinished" in read.text
    assert "not finished" in read.text


async def test_a_run_that_is_alive_is_running_and_so_are_its_nodes(run, document, logs):
    graph = {"start": "A", "nodes": [agent("A")]}
    work = asyncio.create_task(run(graph, {"a": [{"text": "done", "delay": 30}]}))
    file = logs / "the-run" / "events.jsonl"
    while not file.is_file() or "model_call_started" not in file.read_text():
        await asyncio.sleep(0.02)
    page = document("the-run").html
    read = check(page)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    assert "The run still goes on" in read.text
    assert '<article class="node running"' in page
    assert "Cancelled" in check(document("the-run").html).text


async def test_a_graph_of_a_thousand_nodes_is_shown_as_lanes_and_a_table(run, document, logs):
    nodes = [{"id": f"N{i}", "type": "passthrough"} for i in range(1000)]
    edges = [{"from": f"N{(i - 1) // 8}", "to": f"N{i}"} for i in range(1, 1000)]
    await run({"start": "N0", "nodes": nodes, "edges": edges})
    page = document("the-run")
    read = check(page.html)
    assert not page.has_picture
    assert "940 more lanes" in read.text
    assert "all nodes" in read.text
    assert page.html.count("<article") == 1000


def test_templates_put_nothing_into_the_page_unescaped(project: Path):
    for file in (project / "devall/page/templates").glob("*.html"):
        text = file.read_text()
        assert "safe" not in re.findall(r"\|\s*(\w+)", text)
        assert "autoescape" not in text
        assert html.unescape(text) == text or "&" in text
