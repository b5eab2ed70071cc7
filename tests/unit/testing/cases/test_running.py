from __future__ import annotations

import asyncio

import pytest

import devall
from devall.testing.cases.reading import find_cases, read_cases
from devall.testing.cases.running import run_cases

WORKFLOW = """
    graph:
      start: A
      end: B
      nodes:
        - id: A
          type: agent
          config:
            provider: openai
            name: ${MODEL:-small}
            retry: {min_wait_seconds: 0, max_wait_seconds: 0}
            tooling:
              - {type: function, config: {tools: [{name: add}, {name: shout}]}}
        - {id: B, type: agent, config: {provider: openai, name: large, role: "${ROLE:-a critic}"}}
      edges: [{from: A, to: B}]
"""
FUNCTIONS = '''
    def add(a: int, b: int) -> int:
        """The sum."""
        return a + b

    def shout(text: str) -> str:
        """Loudly."""
        return text.upper()
'''
HEAD = "workflow: ../w.yaml\ntask: go\n"
REPLIES = "replies: {A: [a poem], B: [fine]}\n"


@pytest.fixture
def run(write):
    write("w.yaml", WORKFLOW)
    write("functions/function_calling/mine.py", FUNCTIONS)

    async def played(text: str, workflow: str = ""):
        if workflow:
            write("w.yaml", workflow)
        file = write("one/case.yaml", HEAD + text)
        return await devall.run_case(file)

    return played


async def test_a_case_passes_without_a_key(run):
    result = await run(REPLIES)
    assert result.is_passed
    assert result.run.answer == "fine"
    result.check()


@pytest.mark.parametrize(
    ("expect", "what", "words"),
    [
        ("{answer: good}", "answer.equals", ['wanted: "good"', 'got:    "fine"']),
        ("{answer: {contains: [fi, xx]}}", "answer.contains", ["wanted: ... xx ..."]),
        ("{answer: {not_contains: in}}", "answer.not_contains", ["wanted: no in"]),
        ("{answer: {matches: '^x'}}", "answer.matches", ["wanted: /^x/"]),
        (
            "{answer: {json_schema: {type: object}}}",
            "answer.json_schema",
            ["no valid JSON: Expecting value: line 1 column 1 (char 0)"],
        ),
        ("{status: failed}", "status", ["wanted: failed", "got:    completed"]),
        ("{exit_code: 1}", "exit_code", ["wanted: 1", "got:    0"]),
        ("{error: {code: x}}", "error", []),
        ("{nodes: {A: 2}}", "nodes.A.runs", ["wanted: 2 runs", "got:    1 runs"]),
        ("{nodes: {B: 0}}", "nodes.B.runs", ["wanted: 0 runs"]),
        ("{nodes: {A: {runs: {min: 2}}}}", "nodes.A.runs", ["wanted: at least 2 runs"]),
        ("{nodes: {AA: 1}}", "nodes.AA", ["got:    A, B"]),
        ("{nodes: {A: {output: x}}}", "nodes.A.output.equals", ['got:    "a poem"']),
        ("{tools: [{name: add}]}", "tools.0", ["got:    no calls of tools"]),
        ("{at_most: {model_calls: 1}}", "at_most.model_calls", ["wanted: at most 1"]),
        ("{at_most: {tokens: 1}}", "at_most.tokens", ["wanted: at most 1"]),
        ("{at_most: {seconds: 0}}", "at_most.seconds", ["wanted: at most 0"]),
        ("{at_most: {usd: 1}}", "at_most.usd", ["got:    unknown"]),
    ],
)
async def test_an_unmet_expectation_names_what_was_wanted_and_what_came(run, expect, what, words):
    result = await run(REPLIES + f"expect: {expect}\n")
    [failure] = result.failures
    assert failure.what == what
    assert failure.position.file == "one/case.yaml"
    assert failure.position.line == 4
    for word in words:
        assert word in failure.difference.split("\n"), failure.difference
    with pytest.raises(AssertionError, match=r"case one:\n" + what.replace(".", r"\.")):
        result.check()


@pytest.mark.parametrize(
    "expect",
    [
        "{answer: fine}",
        '{answer: "fine\\n"}',
        "{answer: {contains: in, not_contains: out, matches: [f, e$]}}",
        "{status: completed, exit_code: 0}",
        "{nodes: {A: 1, B: {runs: {min: 1, max: 3}, output: {contains: fine}}}}",
        "{tools: [{name: add, times: 0}]}",
        "{at_most: {model_calls: 2, tool_calls: 0, tokens: 100, seconds: 60}}",
    ],
)
async def test_expectations_that_are_met(run, expect):
    (await run(REPLIES + f"expect: {expect}\n")).check()


async def test_texts_of_several_lines_are_told_apart_by_a_diff(run):
    result = await run(
        'replies: {A: x, B: "one\\ntwo\\nthree"}\nexpect: {answer: "one\\n2\\nthree"}\n'
    )
    lines = result.failures[0].difference.split("\n")
    assert lines[:2] == ["--- wanted", "+++ got"]
    assert lines[3:] == [" one", "-2", "+two", " three"]


async def test_json_in_a_fence_is_held_against_a_schema_with_every_misfit_named(run):
    result = await run(
        'replies: {A: x, B: "```json\\n{\\"a\\": 1}\\n```"}\n'
        "expect: {answer: {json_schema: {required: [b], properties: {a: {type: string}}}}}\n"
    )
    [failure] = result.failures
    assert "at a: 1 is not of type 'string'" in failure.difference
    assert "'b' is a required property" in failure.difference


CALL = "replies: {A: [{tool_calls: [{name: add, arguments: {a: 1, b: 2}}]}, done], B: [fine]}\n"


async def test_functions_are_really_called_unless_the_case_gives_their_results(run):
    met = "expect: {tools: [{name: add, node: A, arguments: {b: 2}, times: 1}], answer: fine}\n"
    (await run(CALL + met)).check()
    result = await run(CALL + met)
    assert result.run.usage.tool_calls == 1
    (await run(CALL + "tools: {add: 99}\n" + met)).check()


@pytest.mark.parametrize(
    ("arguments", "holds"),
    [
        ("{}", True),
        ("{a: 1}", True),
        ("{a: 1, b: 2}", True),
        ("{a: 2}", False),
        ("{c: 1}", False),
        ("{a: true}", False),
        ("{a: {equals: 1}}", True),
        ("{a: {matches: '^1$'}}", True),
        ("{a: {contains: x}}", False),
        ("{a: {x: 1}}", False),
    ],
)
async def test_arguments_of_calls(run, arguments, holds):
    result = await run(CALL + f"expect: {{tools: [{{name: add, arguments: {arguments}}}]}}\n")
    assert result.is_passed == holds
    if not holds:
        assert "add(a=1, b=2) by A" in result.failures[0].difference


async def test_results_of_tools_come_in_order_and_none_may_be_left_or_missing(run):
    calls = "{tool_calls: [{name: add, arguments: {a: 1, b: 2}}]}"
    replies = f"replies: {{A: [{calls}, {calls}, done], B: [fine]}}\n"
    (await run(replies + "tools: {add: [7, {error: no}]}\n")).check()
    result = await run(replies + "tools: {add: [7]}\n")
    [failure] = result.failures
    assert (failure.what, failure.position.line) == ("tools", 4)
    assert "no result number 2 for tool add" in failure.message
    result = await run(replies + "tools: {add: [7, 8, 9]}\n")
    assert "1 of the results of tool add was not asked for" in result.failures[0].message


async def test_a_result_that_the_case_gives_is_what_the_model_sees(run):
    tools = 'tools: {add: {result: {sum: 3}}, shout: {error: "disk full"}}\n'
    calls = "{tool_calls: [{name: add, arguments: {}}, {name: shout, arguments: {text: x}}]}"
    result = await run(f"replies: {{A: [{calls}, done], B: fine}}\n{tools}")
    result.check()
    assert result.run.nodes["A"].runs == 1


async def test_a_tool_that_the_node_does_not_have_is_not_there_for_the_case_either(run, write):
    replies = "replies: {A: [{tool_calls: [{name: fly, arguments: {}}]}, done], B: [fine]}\n"
    result = await run(replies + "tools: {fly: [up]}\n")
    [failure] = result.failures
    assert "results of tool fly was not asked for" in failure.message


async def test_an_unexpected_call_and_an_unused_reply_are_failures(run):
    result = await run("replies: {A: [a poem]}\n")
    [failure] = result.failures
    assert (failure.what, failure.position.line) == ("replies", 3)
    assert "no replies for node B (nor for model large); it was asked: 'a poem'" in failure.message
    result = await run(CALL.replace(", done]", "]"))
    assert "the case has no reply number 2 for A" in result.failures[0].message
    result = await run("replies: {A: [a, b, c], B: [d]}\n")
    [failure] = result.failures
    assert failure.what == "replies.A"
    assert "2 of the replies of A were not asked for" in failure.message


async def test_replies_go_by_node_before_they_go_by_model(run, monkeypatch):
    (await run("replies: {small: [a], large: [b]}\nexpect: {answer: b}\n")).check()
    (await run("replies: {B: [a], large: [], A: [b]}\nexpect: {answer: a}\n")).check()
    (await run("models: {'*': one}\nreplies: {one: [a, b]}\nexpect: {answer: b}\n")).check()
    result = await run("replies: {smal: [a], large: [b]}\n")
    [failure] = result.failures
    assert "no node and no model smal (did you mean small?)" in failure.message
    assert (failure.what, failure.position.line) == ("replies.smal", 3)


async def test_errors_are_retried_or_end_the_run_as_they_would(run):
    (await run("replies: {A: [{error: rate_limit_exceeded}, x], B: fine}\n")).check()
    (
        await run(
            "replies: {A: [{error: insufficient_quota}], B: []}\nexpect:\n  status: failed\n"
            "  exit_code: 1\n  error: {code: model_refused, node: A, message: [quota]}\n"
            "  nodes: {A: 1, B: 0}\n"
        )
    ).check()
    result = await run("replies: {A: [{error: insufficient_quota}], B: fine}\n")
    [failure] = result.failures
    assert failure.what == "status"
    assert "exceeded your current quota" in failure.message


async def test_a_workflow_that_is_wrong_fails_the_case_unless_that_is_expected(run):
    wrong = "graph: {start: X, nodes: [{id: A, type: passthrough}], edges: []}\n"
    result = await run("", wrong)
    [failure] = result.failures
    assert failure.position.file == "w.yaml"
    assert "w.yaml:1:" in failure.difference
    result = await run("expect: {answer: x, nodes: {A: 1}, status: completed}\n", wrong)
    assert [each.what for each in result.failures] == ["status"]
    (await run("expect: {exit_code: 3, error: {code: config}}\n")).check()


async def test_variables_answers_and_the_environment_are_the_cases_own(run, monkeypatch):
    monkeypatch.setenv("ROLE", "from outside")
    human = """
        graph:
          start: H
          nodes:
            - {id: H, type: human}
            - {id: L, type: literal, config: {content: "${ROLE:-none} ${WORD}"}}
          edges: [{from: H, to: L}]
    """
    case = "env: {ROLE: mine}\nvars: {WORD: word}\nanswers: {H: [yes]}\n"
    (await run(case + "expect: {answer: mine word, nodes: {H: {output: 'yes'}}}\n", human)).check()
    result = await run("vars: {WORD: word}\n")
    assert "the run is waiting; /H@1 asks" in result.failures[0].message
    result = await run("vars: {WORD: x}\nanswers: {HH: a}\n")
    assert "there is no node HH" in result.failures[0].message


async def test_each_case_has_a_workspace_of_its_own_and_leaves_nothing(run, write, workspace):
    code = "```python\\nimport os\\nprint(os.listdir())\\nopen('x', 'w').close()\\n```"
    write(
        "p.yaml",
        f"""
        graph:
          start: L
          nodes:
            - {{id: L, type: literal, config: {{content: "{code}"}}}}
            - {{id: P, type: python}}
          edges: [{{from: L, to: P}}]
        """,
    )
    for name in ("a", "b", "c"):
        write(f"cases/{name}/case.yaml", "workflow: ../../p.yaml\nexpect: {answer: '[]'}\n")
    before = sorted(workspace.rglob("*"))
    cases = read_cases(find_cases([workspace / "cases"]))
    done: list[str] = []
    results = await run_cases(cases, at_once=3, on_done=lambda each: done.append(each.name))
    for each in results:
        each.check()
    assert sorted(done) == [each.name for each in results] == ["a", "b", "c"]
    assert sorted(workspace.rglob("*")) == before


async def test_so_many_cases_run_at_one_time_and_no_more(run, write, workspace):
    for number in range(4):
        text = HEAD + "replies: {A: [{text: x, delay: 0.1}], B: fine}\n"
        write(f"c{number}/case.yaml", text.replace("../w", "../w"))
    cases = read_cases(find_cases([workspace]))
    active, most = 0, 0

    async def counted(case):
        nonlocal active, most
        active += 1
        most = max(most, active)
        result = await devall.run_case(case)
        active -= 1
        return result

    await run_cases(cases, at_once=2, run=counted)
    assert most == 2


async def test_a_case_that_is_cancelled_ends_its_run(run, write):
    task = asyncio.create_task(run("replies: {A: [{fault: silence}], B: []}\n"))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
