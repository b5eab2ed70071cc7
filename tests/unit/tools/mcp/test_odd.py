"""What holds with servers that answer in odd ways."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devall.core.errors import AnswerNeeded, SetupError
from devall.core.events import HumanAnswered, HumanAsked, ToolProgress
from devall.core.messages import MediaPart, Message, ToolCall
from devall.core.ports import Question
from devall.telemetry.redaction import Redactor
from devall.testing.scope import PlainScope
from devall.tools import slices
from devall.tools.manager import ToolManager
from devall.tools.mcp.pool import McpServers

Managers = Callable[..., ToolManager]
Sources = Callable[..., dict[str, Any]]


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall("c1", name, json.dumps(arguments))


# --- results -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "said", "is_error"),
    [
        ("null", "(the tool returned nothing)", False),
        ("missing", "(the tool returned nothing)", False),
        ("text", "bare text", False),
        ("block", "b", False),
        ("no_type", "typeless", False),
        ("error_word", "bad", True),
        ("structured_list", "[1, 2]", False),
        ("other_keys", '{"answer": 42}', False),
        ("no_object", "not as the protocol has it", True),
        ("number", "not as the protocol has it", True),
    ],
)
async def test_an_odd_result_is_a_result(
    manager_of: Managers,
    odd_source: Sources,
    servers: McpServers,
    scope: Any,
    kind: str,
    said: str,
    is_error: bool,
):
    async with manager_of(odd_source() | {"timeout": 5}, servers=servers) as tools:
        result = await tools.call(call("weird", kind=kind), scope)
        assert said in result.text
        assert result.is_error is is_error
        assert "QUJDQUJD" not in result.text  # what may be base64 is cut
        assert not (await tools.call(call("sleepless"), scope)).is_error


async def test_an_image_without_a_type_is_told_by_its_first_bytes(
    manager_of: Managers, odd_source: Sources, servers: McpServers, scope: Any
):
    async with manager_of(odd_source(), servers=servers) as tools:
        result = await tools.call(call("weird", kind="image_without_type"), scope)
    media = [part for part in result.parts if isinstance(part, MediaPart)]
    assert [part.mime_type for part in media] == ["image/png"]


# E8
async def test_a_broken_promise_about_the_output_is_a_note_and_never_a_lost_result(
    manager_of: Managers, odd_source: Sources, servers: McpServers, scope: Any, warned: Any
):
    async with manager_of(odd_source(), servers=servers, emit=warned.take) as tools:
        right = await tools.call(call("promised", kind="right"), scope)
        none = await tools.call(call("promised", kind="none"), scope)
        wrong = await tools.call(call("promised", kind="wrong"), scope)
        await tools.call(call("promised", kind="wrong"), scope)
    assert (right.text, none.text) == ("said", "said")
    assert wrong.text.startswith("said\n[note: this is not as the tool's own outputSchema has it")
    assert "'many' is not of type 'integer'" in wrong.text
    assert not any(result.is_error for result in (right, none, wrong))
    assert len(warned) == 2  # each oddity once


# E7
@pytest.mark.parametrize(
    ("kind", "end", "length"), [("lines", "line 499999", 5_888_889), ("line", "z", 2_000_000)]
)
async def test_a_huge_result_is_cut_kept_whole_and_readable_in_slices(
    manager_of: Managers,
    odd_source: Sources,
    servers: McpServers,
    scope: Any,
    kind: str,
    end: str,
    length: int,
):
    async with manager_of(odd_source() | {"max_result_chars": 2000}, servers=servers) as tools:
        assert tools.beside([Message("user", "go")]) == ()
        result = await tools.call(call("big", kind=kind), scope)
        assert len(result.text) <= 2000
        assert result.text.endswith(end)
        assert f"{length} characters" in result.text
        (spec,) = tools.beside([Message("tool", result.text, "A", tool_call_id="c1")])
        assert spec.name == slices.NAME
        name = result.text.partition("attachment ")[2].split()[0]
        slice_ = await tools.call(
            call(slices.NAME, attachment=name, start=length - 4, length=100), scope
        )
        assert slice_.text == f"[characters {length - 4} to {length} of {length}]\n{(end * 4)[-4:]}"
        for arguments, said in [
            ({"attachment": name, "start": length}, f"the text has {length} characters"),
            ({"attachment": "../../etc/passwd"}, "no attachment"),
            ({"attachment": name, "length": 0}, "length: 0 is less than"),
            ({}, "attachment"),
        ]:
            refused = await tools.call(call(slices.NAME, **arguments), scope)
            assert refused.is_error
            assert said in refused.text


async def test_structured_records_are_cut_like_text(
    manager_of: Managers, odd_source: Sources, servers: McpServers, scope: Any
):
    async with manager_of(odd_source() | {"max_result_chars": 500}, servers=servers) as tools:
        result = await tools.call(call("big", kind="records"), scope)
    assert len(result.text) <= 500
    assert "record 999" in result.text


# E16
async def test_secrets_are_taken_out_of_a_tools_error(
    manager_of: Managers, odd_source: Sources, scope: Any
):
    async with McpServers(redact=Redactor(["sk-very-secret"]).text) as servers:
        source = odd_source("secret=sk-very-secret")
        async with manager_of(source, servers=servers) as tools:
            result = await tools.call(call("secret"), scope)
    assert result.text == "cannot log in with ***"


async def test_an_error_code_that_the_library_uses_itself_takes_no_server_away(
    manager_of: Managers, odd_source: Sources, servers: McpServers, scope: Any
):
    async with manager_of(odd_source(), servers=servers) as tools:
        failed = await tools.call(call("generic_error"), scope)
        assert failed.is_error
        assert "the database is away" in failed.text
        counts = json.loads((await tools.call(call("count"), scope)).text)
        assert counts["call"] == 2  # the same process


# --- repeats and time limits ---------------------------------------------------------------------


# E12
@pytest.mark.parametrize("mark", ["none", "by the server", "by the workflow"])
@pytest.mark.parametrize("tool", ["slow", "die_once"])
async def test_a_call_of_unknown_outcome_is_repeated_only_where_it_is_idempotent(
    manager_of: Managers,
    odd_source: Sources,
    servers: McpServers,
    scope: Any,
    tmp_path: Path,
    tool: str,
    mark: str,
):
    done = tmp_path / "done"
    faults = ["idempotent"] if mark == "by the server" else []
    source = odd_source(f"done={done}", *faults) | {"timeout": 1, "prefix": "p"}
    if mark == "by the workflow":
        source["idempotent"] = ["slo*", "die_*"]
    async with manager_of(source, servers=servers) as tools:
        result = await tools.call(call(f"p_{tool}"), scope)
    if mark == "none":
        assert result.is_error
        assert "outcome unknown" in result.text
        assert done.read_text() == "x"
    else:
        assert result.text == "time 2"


# C4, N8
async def test_progress_starts_the_time_limit_anew(
    manager_of: Managers, odd_source: Sources, servers: McpServers, scope: Any
):
    async with manager_of(odd_source() | {"timeout": 0.6}, servers=servers) as tools:
        assert (await tools.call(call("beat"), scope)).text == "done"
    assert [event.progress for event in scope.events if isinstance(event, ToolProgress)][-1] == 8


# --- questions -----------------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name"},
        "age": {"type": "integer", "minimum": 0},
        "vip": {"type": "boolean", "default": False},
        "color": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
    },
    "required": ["name", "age"],
}


class Person:
    """Gives answers one after the other, and takes its time."""

    def __init__(self, *answers: str, wait: float = 0) -> None:
        self.answers = list(answers)
        self.asked: list[Question] = []
        self._wait = wait

    async def ask(self, question: Question) -> str:
        self.asked.append(question)
        await asyncio.sleep(self._wait)
        if not self.answers:
            raise AnswerNeeded([(question.path, question.text)])
        return self.answers.pop(0)


async def ask(
    manager_of: Managers, odd_source: Sources, servers: McpServers, scope: Any, **more: Any
) -> dict[str, Any]:
    source = odd_source() | {"timeout": more.pop("timeout", 10)}
    async with manager_of(source, servers=servers, **more) as tools:
        result = await tools.call(call("ask", schema=SCHEMA), scope)
    assert not result.is_error, result.text
    return json.loads(result.text)["result"]


async def test_a_servers_question_goes_to_a_human_field_by_field(
    manager_of: Managers, odd_source: Sources, servers: McpServers, scope: Any
):
    person = Person("Ada", "many", "36", "", "green")
    found = await ask(manager_of, odd_source, servers, scope, human=person)
    assert found == {
        "action": "accept",
        "content": {"name": "Ada", "age": 36, "vip": False, "color": "g"},
    }
    texts = [question.text for question in person.asked]
    assert "odd_server.py asks: Who are you?\nname (text, required) Your name" in texts[0]
    assert "'many' is not of type 'integer'" in texts[2]
    assert "default false" in texts[3]
    assert "one of r (Red), g (Green)" in texts[4]
    assert {question.node for question in person.asked} == {"A"}
    assert len({question.path for question in person.asked}) == len(person.asked)
    kinds = {type(event) for event in scope.events}
    assert kinds == {HumanAsked, HumanAnswered}


async def test_a_form_may_be_given_whole_or_declined(
    manager_of: Managers, odd_source: Sources, servers: McpServers, scope: Any
):
    whole = await ask(
        manager_of, odd_source, servers, scope, human=Person('{"name": "B", "age": 1}')
    )
    assert whole["content"] == {"name": "B", "age": 1, "vip": False}
    declined = await ask(manager_of, odd_source, servers, scope, human=Person("!decline"))
    assert declined == {"action": "decline"}
    gave_up = await ask(manager_of, odd_source, servers, scope, human=Person("B", "x", "y", "z"))
    assert gave_up == {"action": "cancel"}


async def test_where_nobody_can_be_asked_it_is_declined_and_said(
    manager_of: Managers, odd_source: Sources, servers: McpServers, scope: Any, warned: Any
):
    for human in (None, Person()):
        found = await ask(manager_of, odd_source, servers, scope, human=human, emit=warned.take)
        assert found == {"action": "decline"}
    assert len(warned) == 2
    assert "asked for a human's input during `ask` (Who are you?)" in warned[0]


async def test_a_calls_clock_stands_still_while_a_human_thinks(
    manager_of: Managers, odd_source: Sources, servers: McpServers, scope: Any
):
    person = Person('{"name": "B", "age": 1}', wait=1)
    found = await ask(manager_of, odd_source, servers, scope, human=person, timeout=0.5)
    assert found["action"] == "accept"


async def asked_during_a_nap(
    manager_of: Managers, source: dict[str, Any], servers: McpServers, napping: PlainScope
) -> Question:
    """The first question of a call of node A, while a call of another scope sleeps."""
    person = Person('{"name": "B", "age": 1}', wait=1.2)
    options = {"servers": servers, "human": person}
    async with (
        manager_of(source | {"timeout": 0.8}, **options) as napper,
        manager_of(source, **options) as asker,
    ):
        nap = asyncio.create_task(napper.call(call("sleepless", kind="1.2"), napping))
        await asyncio.sleep(0.1)
        result = await asker.call(call("ask", schema=SCHEMA), PlainScope())
        assert json.loads(result.text)["result"]["content"]["name"] == "B"
        assert (await nap).text == "slept"  # its clock stood still
    return person.asked[0]


async def test_a_question_that_may_belong_to_several_nodes_is_asked_in_the_servers_name(
    manager_of: Managers, odd_source: Sources, servers: McpServers
):
    other = PlainScope("B", "/B@1")
    asked = await asked_during_a_nap(manager_of, odd_source(), servers, other)
    assert asked.node.endswith("odd_server.py")
    assert "(for `sleepless` of B or `ask` of A: it does not say) asks: Who are you?" in asked.text


async def test_a_question_of_one_of_a_nodes_calls_is_the_nodes(
    manager_of: Managers, odd_source: Sources, servers: McpServers, scope: Any
):
    asked = await asked_during_a_nap(manager_of, odd_source(), servers, scope)
    assert asked.node == "A"
    assert "for `sleepless` of A or `ask` of A" in asked.text


async def test_a_page_to_be_opened_first_is_shown_and_the_call_made_then(
    manager_of: Managers, odd_source: Sources, servers: McpServers, scope: Any
):
    person = Person("yes")
    async with manager_of(odd_source(), servers=servers, human=person) as tools:
        assert (await tools.call(call("visit"), scope)).text == "welcome"
    assert "Open https://x.test/login" in person.asked[0].text
    async with manager_of(odd_source(cwd="."), servers=servers, human=Person("no")) as tools:
        refused = await tools.call(call("visit"), scope)
        assert refused.is_error
        assert "open the page" in refused.text


async def test_sampling_and_roots_are_not_offered(
    manager_of: Managers, odd_source: Sources, servers: McpServers, scope: Any
):
    async with manager_of(odd_source(), servers=servers) as tools:
        found = json.loads((await tools.call(call("client"), scope)).text)
    assert set(found["capabilities"]) == {"elicitation"}
    assert "not supported" in found["sampling"]["error"]["message"]
    assert "not supported" in found["roots"]["error"]["message"]


async def test_what_a_server_logs_by_the_protocol_is_in_its_log(
    manager_of: Managers, odd_source: Sources, servers: McpServers, scope: Any, tmp_path: Path
):
    async with manager_of(odd_source(), servers=servers) as tools:
        await tools.call(call("log"), scope)
    (log,) = (tmp_path / "servers").iterdir()
    assert log.read_text() == '[warning db] {"rows": 3}\n'


# --- lists ---------------------------------------------------------------------------------------


# D4, D5
async def test_any_name_reaches_its_tool_under_a_legal_one(
    manager_of: Managers, odd_source: Sources, servers: McpServers, scope: Any
):
    source = odd_source("names") | {"prefix": "chrome_devtools_mcp"}
    async with manager_of(source, servers=servers) as tools:
        specs = tools.specs()[16:]
        names = [spec.name for spec in specs]
        assert all(len(name) <= 64 and name.isascii() for name in names)
        assert len(set(names)) == len(names) == 7
        assert names[0].startswith("chrome_devtools_mcp_a_b_c_")
        for spec in specs:
            result = await tools.call(call(spec.name), scope)
            assert result.text == f"{spec.metadata['original_name']} called"


# D8
async def test_a_repeated_cursor_ends_the_list_and_repeats_no_tool(
    manager_of: Managers, odd_source: Sources, servers: McpServers, warned: Any
):
    async with manager_of(odd_source("same_cursor"), servers=servers, emit=warned.take) as tools:
        assert len(tools.specs()) == 16
    assert len(warned) == 1
    assert "same cursor twice" in warned[0]


async def test_a_list_without_end_is_cut_and_a_cursor_that_is_no_text_is_used(
    manager_of: Managers, odd_source: Sources, servers: McpServers, warned: Any
):
    async with manager_of(odd_source("endless"), servers=servers) as tools:
        assert len(tools.specs()) == 250
    assert "without end" in warned[0]
    async with manager_of(odd_source("number_cursor"), servers=servers) as tools:
        assert len(tools.specs()) == 16


async def test_a_list_that_fails_is_asked_for_again_unless_the_answer_is_final(
    manager_of: Managers, odd_source: Sources, servers: McpServers, scope: Any
):
    began = time.monotonic()
    async with manager_of(odd_source("flaky_list=2"), servers=servers) as tools:
        assert json.loads((await tools.call(call("count"), scope)).text)["list"] == 3
    assert time.monotonic() - began >= 1.5  # 0.5 and 1
    with pytest.raises(SetupError, match="warming up"):
        async with manager_of(odd_source("flaky_list=9", "list_code=-32601"), servers=servers):
            raise AssertionError


# D9
async def test_changed_tools_are_taken_over_once_asked_for(
    manager_of: Managers, odd_source: Sources, servers: McpServers, scope: Any
):
    async with manager_of(odd_source(), servers=servers) as tools:
        before = json.loads((await tools.call(call("count"), scope)).text)["list"]
        await tools.call(call("change", kind="a"), scope)  # a burst of ten notifications
        assert "new_a" not in [spec.name for spec in tools.specs()]
        await tools.refresh()
        assert "new_a" in [spec.name for spec in tools.specs()]
        assert (await tools.call(call("new_a"), scope)).text == "new_a called"
        after = json.loads((await tools.call(call("count"), scope)).text)["list"]
        assert after - before <= 2
        await tools.call(call("change", kind="remove"), scope)
        await tools.refresh()
        for gone in ("weird", "new_a"):
            result = await tools.call(call(gone), scope)
            assert result.is_error
            assert "no longer available" in result.text


async def test_a_server_that_changes_at_every_look_holds_up_nobody(
    manager_of: Managers, odd_source: Sources, servers: McpServers, scope: Any
):
    async with manager_of(odd_source("restless"), servers=servers) as tools:
        for _ in range(3):
            await tools.refresh()
        newest = tools.specs()[-1].name
        assert (await tools.call(call(newest), scope)).text == f"{newest} called"
        assert json.loads((await tools.call(call("count"), scope)).text)["list"] < 10


async def test_each_manager_of_a_shared_server_sees_a_change(
    manager_of: Managers, odd_source: Sources, servers: McpServers, scope: Any
):
    async with (
        manager_of(odd_source(), servers=servers) as one,
        manager_of(odd_source(), servers=servers) as other,
    ):
        await one.call(call("change", kind="a"), scope)
        await one.refresh()
        await other.refresh()
        assert one.specs() == other.specs()
        assert "new_a" in [spec.name for spec in other.specs()]


async def test_a_list_is_used_again_as_long_as_cache_ttl_says_across_runs(
    manager_of: Managers, odd_source: Sources, scope: Any
):
    async def lists(**config: Any) -> int:
        source = odd_source("kept", **config)
        async with McpServers() as servers, manager_of(source, servers=servers) as tools:
            assert len(tools.specs()) == 16
            return json.loads((await tools.call(call("count"), scope)).text)["list"]

    assert [await lists() for _ in range(2)] == [1, 1]
    assert [await lists(cache_ttl=60) for _ in range(2)] == [1, 0]
    assert await lists(cache_ttl=60, env={"OTHER": "1"}) == 1
    assert await lists(cache_ttl=0.001) == 1


async def test_the_shortest_cache_ttl_of_those_who_share_a_server_counts(
    manager_of: Managers, odd_source: Sources, scope: Any
):
    for expected in (1, 1):
        async with McpServers() as servers:
            one = manager_of(odd_source("shared", cache_ttl=60), servers=servers)
            other = manager_of(odd_source("shared"), servers=servers)
            async with one, other as tools:
                counts = json.loads((await tools.call(call("count"), scope)).text)
                assert counts["list"] == expected
