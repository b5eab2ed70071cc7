"""Answers that must fit a JSON Schema."""

from __future__ import annotations

import pytest

from devall.agents.answers import AnswerSchema
from devall.core.errors import BadModelResponse, SetupError
from devall.core.messages import assistant

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}
GOOD = '{"name": "Ada", "age": 36}'


@pytest.mark.parametrize(
    "written", [GOOD, f"  {GOOD}\n", f"```json\n{GOOD}\n```", f"Here:\n```\n{GOOD}\n```\nDone."]
)
async def test_json_that_fits_is_the_answer_bare_or_fenced(played, scope, written):
    agent = played([written], schema=AnswerSchema(PERSON))
    assert (await agent.run(scope, "who?")).outputs == (assistant(GOOD, "A"),)


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("Ada is 36", "no valid JSON"),
        ('{"name": "Ada"}', "'age' is a required property"),
        ('{"name": "Ada", "age": "36"}', "at age: '36' is not of type 'integer'"),
        ("", "no valid JSON"),
    ],
)
async def test_what_does_not_fit_is_asked_for_again_with_the_reason(played, scope, bad, problem):
    agent = played([bad, GOOD], schema=AnswerSchema(PERSON))
    result = await agent.run(scope, "who?")
    assert result.outputs == (assistant(GOOD, "A"),)
    assert result.remembered == (assistant(GOOD, "A"),)
    [system, question, answer, complaint] = agent.requests[1].messages
    assert (system.role, system.text) == ("system", AnswerSchema(PERSON).prompt)
    assert (question.text, answer.text) == ("who?", bad)
    assert problem in complaint.text
    assert '"required": ["name", "age"]' in complaint.text


async def test_after_two_more_requests_it_fails_with_what_is_wrong(played, scope):
    agent = played(["one", "two", '{"name": 1}'], schema=AnswerSchema(PERSON))
    with pytest.raises(BadModelResponse, match="1 is not of type 'string'"):
        await agent.run(scope, "who?")
    assert len(agent.requests) == 3


async def test_repairs_are_asked_without_tools(played, scope):
    replies = [{"tool_calls": [{"name": "now", "arguments": {}}]}, "noon", GOOD]
    agent = played(replies, tools={"now": lambda: "12"}, schema=AnswerSchema(PERSON))
    await agent.run(scope, "who?")
    assert [len(r.tools) for r in agent.requests] == [1, 1, 0]
    assert "12" in [m.text for m in agent.requests[2].messages]


def test_what_is_no_schema_is_refused():
    with pytest.raises(SetupError, match="no JSON Schema"):
        AnswerSchema({"type": "strng"})


@pytest.mark.parametrize(
    "reference", ["http://127.0.0.1:9/schema.json", "other.json", "#/$defs/none", "#/$defs/b/x"]
)
def test_a_reference_to_elsewhere_is_refused_before_the_first_call(reference):
    with pytest.raises(SetupError, match="leads to nothing in the schema"):
        AnswerSchema({"$defs": {"b": {}}, "properties": {"a": {"$ref": reference}}})


async def test_a_reference_within_the_schema_is_followed(played, scope):
    tree = {
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
        "$ref": "#/$defs/node",
        "examples": [{"$ref": "no reference"}],
    }
    agent = played(['{"next": 5}', '{"next": {}}'], schema=AnswerSchema(tree))
    assert (await agent.run(scope, "x")).outputs[0].text == '{"next": {}}'
    assert "at next: 5 is not of type 'object'" in agent.requests[1].messages[-1].text


async def test_json_that_holds_a_fenced_block_is_taken_whole(played, scope):
    written = '{"name": "```\\nx```", "age": 1}'
    agent = played([written], schema=AnswerSchema(PERSON))
    assert (await agent.run(scope, "who?")).outputs[0].text == written


@pytest.mark.parametrize("written", ["NaN", "[" * 100_000])
async def test_what_only_python_takes_for_json_is_none(played, scope, written):
    agent = played([written, "5"], schema=AnswerSchema({"type": "number"}))
    assert (await agent.run(scope, "x")).outputs[0].text == "5"
