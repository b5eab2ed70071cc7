from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from devall.core.errors import AnswerNeeded, SetupError
from devall.core.events import Event, Warned
from devall.core.messages import ToolCall
from devall.tools.manager import ToolManager

Managers = Callable[..., ToolManager]


def call(name: str, arguments: str = "{}") -> ToolCall:
    return ToolCall("c1", name, arguments)


def functions(*names: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "config": {"tools": [{"name": n} for n in names]}, **more}


async def test_a_prefix_renames_and_dispatches(manager_of: Managers, catalog_of: Any, scope: Any):
    catalog = catalog_of(m="def f(x: int = 1): return x\ndef g(): ...")
    async with manager_of(
        functions("f", prefix="wx"), functions("m:All"), catalog=catalog
    ) as tools:
        assert [s.name for s in tools.specs()] == ["wx_f", "f", "g"]
        assert tools.specs()[0].metadata["original_name"] == "f"
        assert (await tools.call(call("wx_f", '{"x": 4}'), scope)).text == "4"
        assert (await tools.call(call("f", ""), scope)).text == "1"


async def test_names_are_made_legal_and_still_reach_their_tool(
    manager_of: Managers, catalog_of: Any, scope: Any
):
    catalog = catalog_of(m="def f(): return 'here'\ndef größe(): return 'g'")
    source = functions("m:All", prefix="p" * 70)
    async with manager_of(source, functions("größe"), catalog=catalog) as tools:
        names = [s.name for s in tools.specs()]
        assert all(len(n) <= 64 and n.isascii() for n in names)
        assert len(set(names)) == 3
        assert (await tools.call(call(names[0]), scope)).text == "here"
        assert (await tools.call(call(names[2]), scope)).text == "g"


async def test_include_and_exclude_look_at_a_tools_own_name(
    manager_of: Managers, catalog_of: Any, scope: Any
):
    catalog = catalog_of(m="def get_a(): ...\ndef get_b(): ...\ndef put(): ...")
    source = functions("m:All", prefix="p", include=["get_*"], exclude=["*_b"])
    async with manager_of(source, catalog=catalog) as tools:
        assert [s.name for s in tools.specs()] == ["p_get_a"]
        for hidden in ("p_put", "p_get_b"):
            result = await tools.call(call(hidden), scope)
            assert result.is_error
            assert f"`{hidden}` is not available to this node" in result.text
            assert "Available:" not in result.text
        assert "there is no tool `put`" in (await tools.call(call("put"), scope)).text


async def test_a_tool_that_one_source_hides_and_another_offers_is_called(
    manager_of: Managers, catalog_of: Any, scope: Any
):
    catalog = catalog_of(m="def f(): return 'm'\ndef g(): ...", n="def f(): return 'n'")
    sources = functions("m:All", exclude="f"), functions("n:f")
    async with manager_of(*sources, catalog=catalog) as tools:
        assert (await tools.call(call("f"), scope)).text == "n"


async def test_automatic_prefixes_keep_sources_apart(
    manager_of: Managers, catalog_of: Any, scope: Any
):
    catalog = catalog_of(m="def run(): return 'm'", n="def run(): return 'n'")
    sources = functions("m:All", prefix="auto"), functions("n:run", prefix="auto")
    async with manager_of(*sources, catalog=catalog) as tools:
        assert [s.name for s in tools.specs()] == ["m_run", "n_run"]
        assert (await tools.call(call("n_run"), scope)).text == "n"


async def test_sources_whose_own_names_are_the_same_need_a_prefix_written_out(
    manager_of: Managers, catalog_of: Any
):
    catalog = catalog_of(m="def run(): ...")
    sources = functions("m:All", prefix="auto"), functions("m:run", prefix="auto")
    with pytest.raises(SetupError, match="`m_run` is offered twice") as caught:
        async with manager_of(*sources, catalog=catalog):
            raise AssertionError
    assert "prefix: m2" in caught.value.hint


async def test_an_unknown_tool_gets_the_nearest_names(
    manager_of: Managers, catalog_of: Any, scope: Any
):
    catalog = catalog_of(m="def read_file(): ...\ndef other(): ...")
    async with manager_of(functions("m:All"), catalog=catalog) as tools:
        result = await tools.call(call("Read-File"), scope)
        assert result.is_error
        assert "did you mean `read_file`?" in result.text
        assert "other" in result.text
    async with manager_of() as tools:
        assert "it has no tools" in (await tools.call(call("x"), scope)).text


async def test_failures_are_results_and_never_exceptions(
    manager_of: Managers, catalog_of: Any, scope: Any
):
    catalog = catalog_of(
        m="""
        import time
        def boom(): raise RuntimeError("bad")
        def slow(): time.sleep(2)
        def need(city: str): ...
        """
    )
    async with manager_of(functions("m:All", timeout=0.1), catalog=catalog) as tools:
        for name, arguments, said in [
            ("boom", "{}", "RuntimeError: bad"),
            ("slow", "{}", "0.1 s"),
            ("need", "{", "no valid JSON object"),
            ("need", "", "required: city"),
            ("need", "{}", "city: Field required"),
        ]:
            result = await tools.call(call(name, arguments), scope)
            assert result.is_error
            assert said in result.text


async def test_a_question_to_a_human_is_no_failure_of_the_tool(
    manager_of: Managers, catalog_of: Any, scope: Any
):
    catalog = catalog_of(
        m="""
        from devall.core.errors import AnswerNeeded
        def ask(): raise AnswerNeeded([("/A@1", "well?")])
        """
    )
    async with manager_of(functions("ask"), catalog=catalog) as tools:
        with pytest.raises(AnswerNeeded):
            await tools.call(call("ask"), scope)


async def test_two_tools_of_a_name_are_found_before_the_first_call(
    manager_of: Managers, catalog_of: Any
):
    catalog = catalog_of(m="def run(): ...", n="def run(): ...")
    with pytest.raises(SetupError) as caught:
        async with manager_of(functions("m:run"), functions("n:run"), catalog=catalog):
            raise AssertionError
    assert "`run`" in str(caught.value)
    assert "m:run" in str(caught.value)
    assert "n:run" in str(caught.value)
    assert "prefix: n`" in caught.value.hint
    assert "prefix: auto" in caught.value.hint


async def test_all_required_sources_that_fail_are_named_at_once(
    manager_of: Managers, catalog_of: Any
):
    events: list[Event] = []
    catalog = catalog_of(m="def f(): ...")
    with pytest.raises(SetupError) as caught:
        async with manager_of(
            functions("nope"), functions("f"), functions("neither"), catalog=catalog
        ):
            raise AssertionError
    assert "2 tool sources" in str(caught.value)
    assert "nope" in str(caught.value)
    assert "neither" in str(caught.value)
    assert not events


async def test_a_source_that_is_not_required_is_left_out_with_a_warning(
    manager_of: Managers, catalog_of: Any
):
    events: list[Event] = []
    catalog = catalog_of(m="def f(): ...")
    async with manager_of(
        functions("nope", required=False), functions("f"), catalog=catalog, emit=events.append
    ) as tools:
        assert [s.name for s in tools.specs()] == ["f"]
    (event,) = events
    assert isinstance(event, Warned)
    assert event.code == "tool_source_left_out"
    assert "nope" in event.message


async def test_a_long_result_is_cut_in_the_middle_and_kept_whole(
    manager_of: Managers, catalog_of: Any, scope: Any, workspace: Any
):
    catalog = catalog_of(m="def f(): return 'a' * 5000 + 'b' * 5000")
    async with manager_of(functions("f", max_result_chars=1000), catalog=catalog) as tools:
        text = (await tools.call(call("f"), scope)).text
    assert len(text) <= 1000
    assert text.startswith("aaa")
    assert text.endswith("bbb")
    assert "10000 characters" in text
    name = text.partition("attachment ")[2].split()[0]
    assert len(workspace.read_attachment(name)) == 10_000


async def test_data_and_what_a_function_raises_are_cut_as_well(
    manager_of: Managers, catalog_of: Any, scope: Any
):
    catalog = catalog_of(
        m="""
        from devall.core.messages import DataPart
        def give(): return DataPart({"rows": list(range(5000))})
        def fail(): raise ValueError("x" * 100_000 + "end")
        """
    )
    async with manager_of(functions("m:All", max_result_chars=500), catalog=catalog) as tools:
        given = await tools.call(call("give"), scope)
        assert len(given.text) <= 500
        assert given.text.startswith('{"rows":[0,1,2')
        assert [part.type for part in given.parts] == ["text"]
        failed = await tools.call(call("fail"), scope)
        assert failed.is_error
        assert len(failed.text) <= 500
        assert failed.text.startswith("fail raised ValueError: xxx")
        assert failed.text.endswith("xend")


async def test_a_key_in_what_a_function_raises_is_taken_out(
    manager_of: Managers, catalog_of: Any, scope: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SERVICE_API_KEY", "s3ntinel-value")
    catalog = catalog_of(
        m="""
        import os
        from devall.tools.base import ToolResult
        from devall.core.messages import TextPart
        def fail(): raise ValueError("refused: key=" + os.environ["SERVICE_API_KEY"])
        def bad(): return ToolResult((TextPart(os.environ["SERVICE_API_KEY"]),), is_error=True)
        """
    )
    async with manager_of(functions("m:All"), catalog=catalog) as tools:
        assert (await tools.call(call("fail"), scope)).text.endswith("refused: key=***")
        assert (await tools.call(call("bad"), scope)).text == "***"


def test_neither_fastmcp_nor_jsonschema_is_imported_before_it_is_needed():
    code = (
        "import sys, devall.tools.manager\n"
        "print([m for m in ('fastmcp', 'mcp', 'jsonschema', 'httpx2') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert found.stdout.strip() == "[]"
