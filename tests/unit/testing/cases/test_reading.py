from __future__ import annotations

import json

import jsonschema
import pytest

from devall.core.errors import ConfigError, UsageError
from devall.loading.document import parse_document
from devall.testing.cases.case import CaseFile, case_schema
from devall.testing.cases.reading import find_cases, read_case, read_cases

WORKFLOW = "graph: {start: A, nodes: [{id: A, type: passthrough}], edges: []}\n"


@pytest.fixture
def case(write):
    def written(text: str, name: str = "one"):
        write("w.yaml", WORKFLOW)
        return write(f"cases/{name}/case.yaml", text)

    return written


def found(file) -> list[tuple[int, int, str, str, str]]:
    with pytest.raises(ConfigError) as caught:
        read_case(file)
    return [
        (d.position.line, d.position.column, d.code, d.message, d.hint)
        for d in caught.value.diagnostics
    ]


def test_a_case_says_where_it_is_wrong_and_what_would_be_right(case):
    file = case(
        """\
        workflow: ../../w.yaml
        tsak: go
        replies:
          A:
            - tool_call: []
        expect:
          status: done
          answer: {matches: "("}
          nodes: {A: {runs: -1}}
          tools: [{arguments: {}}]
          at_most: {tokens: "3"}
        """
    )
    assert [(line, column, code) for line, column, code, _, _ in found(file)] == [
        (2, 1, "unknown-key"),
        (5, 7, "unknown-key"),
        (7, 11, "unknown-value"),
        (8, 21, "bad-regex"),
        (9, 21, "greater-than-equal"),
        (10, 11, "missing-key"),
        (11, 21, "wrong-type"),
    ]
    hints = [hint for *_, hint in found(file)]
    assert hints[:2] == ["did you mean `task`?", "did you mean `tool_calls`?"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("workflow: no.yaml", "there is no file `no.yaml`"),
        ("workflow: ../../w.yaml\nrecording: r.jsonl", "there is no file `r.jsonl`"),
        ("workflow: ../../w.yaml\ntask_file: t.txt", "there is no file `t.txt`"),
        ("workflow: ../../w.yaml\nexpect: {answer: {json_schema: s.json}}", "`s.json`"),
        ("workflow: ../../w.yaml\nexpect: {answer: {json_schema: {type: 5}}}", "no JSON Schema"),
        ("workflow: ../../w.yaml\ntask: a\ntask_file: b", "exclude each other"),
        ("workflow: ../../w.yaml\nrecording: a\nreplies: {A: [b]}", "exclude each other"),
        ("workflow: ../../w.yaml\nanswers: {A: 5}", "a list of texts in order"),
        ("workflow: ../../w.yaml\ntools: {t: {error: a, result: b}}", "not both"),
        ("workflow: ../../w.yaml\nexpect: {nodes: {A: {min: 2}}}", "unknown key `min`"),
        ("workflow: ../../w.yaml\nexpect: {nodes: {A: {runs: {min: 2, max: 1}}}}", "less than"),
        ("workflow: 5", "must be text, not a number"),
        ("[1]", "a case is a mapping, not a list"),
        ("a: [", "brackets that are not closed"),
        ("", "a case is a mapping, not nothing"),
    ],
)
def test_a_case_that_cannot_be_run_is_refused(case, text, word):
    messages = [message for *_, message, _ in found(case(text))]
    assert any(word in message for message in messages), messages


def test_all_broken_cases_are_told_of_at_once(case):
    case("workflow: no.yaml", "a")
    case("workflow: no.yaml", "b")
    case("workflow: ../../w.yaml", "c")
    with pytest.raises(ConfigError) as caught:
        read_cases(find_cases([case("workflow: no.yaml", "d").parents[1]]))
    assert len(caught.value.diagnostics) == 3
    assert {d.quoted for d in caught.value.diagnostics} == {"workflow: no.yaml"}


def test_cases_are_named_by_their_folders(case, workspace, monkeypatch):
    first = case("workflow: ../../w.yaml", "group/b")
    case("workflow: ../../w.yaml", ".hidden")
    file = case("workflow: ../../w.yaml", "a")
    root = file.parents[1]
    assert [name for name, _ in find_cases([root])] == ["a", "group/b"]
    assert find_cases([file.parent]) == find_cases([file]) == [("a", file)]
    assert find_cases([root, file, first.parent]) == find_cases([root])
    monkeypatch.chdir(file.parent)
    assert [name for name, _ in find_cases([type(file)()])] == ["a"]
    with pytest.raises(UsageError, match="there is no nowhere"):
        find_cases([type(file)("nowhere")])


@pytest.mark.parametrize(
    ("lines", "line", "word"),
    [
        ([], 1, "no JSON"),
        ([{}], 1, "version 1 is wanted, not no version"),
        ([{"recording": 2}], 1, "not version 2"),
        ([{"recording": 1}, "x"], 2, "no JSON"),
        ([{"recording": 1}, []], 2, "no JSON object"),
        ([{"recording": 1}, {"step": "/A@1/turn:1", "kind": "magic"}], 2, "no recorded step"),
    ],
)
def test_a_broken_recording_is_told_by_its_line(case, write, lines, line, word):
    file = case("workflow: ../../w.yaml\nrecording: r.jsonl")
    texts = [each if isinstance(each, str) else json.dumps(each) for each in lines]
    write("cases/one/r.jsonl", "\n".join(texts) + "\n")
    [(at, _, code, message, hint)] = found(file)
    assert (at, code) == (line, "recording")
    assert word in message
    assert "--force" in hint


def test_the_schema_takes_what_the_model_takes():
    validator = jsonschema.Draft202012Validator(case_schema())
    text = """
    workflow: w.yaml
    task: go
    vars: {N: 5}
    answers: {H: yes, G: [a, b]}
    replies:
      A: [text, {tool_calls: [{name: t, arguments: {a: 1}}]}, {error: rate_limit_exceeded}]
      B: text
    tools: {t: 7, u: [a, {error: no}, {result: {a: 1}}]}
    x-note: mine
    expect:
      status: completed
      answer: {contains: a, not_contains: [b, c], matches: d, json_schema: {type: object}}
      nodes: {A: 1, B: {runs: {min: 1}, output: text}}
      tools: [{name: t, arguments: {a: {contains: x}}, times: 2}]
      at_most: {usd: 0.5, seconds: 3, tokens: 9}
      error: {code: x, message: y}
    """
    value = parse_document(text, "case").root
    validator.validate(value)
    case = CaseFile.model_validate(value)
    assert case.expect.nodes["A"].runs is not None
    assert case.expect.nodes["A"].runs.holds(1)
    assert case.replies["B"][0].text == "text"
    for wrong in ({"tsak": 1}, {"workflow": 5}, {"workflow": "w", "expect": {"status": "done"}}):
        assert not validator.is_valid(wrong)
    described = [case_schema(), *case_schema()["$defs"].values()]
    silent = [
        f"{each.get('title')}.{name}"
        for each in described
        for name, value in each["properties"].items()
        if "description" not in value and "$ref" not in value and each["title"] != "Limits"
    ]
    assert silent == []
