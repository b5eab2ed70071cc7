from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from devall.config.tools import FunctionTool
from devall.core.errors import SetupError, ToolArguments, ToolFailed, ToolTimeout
from devall.core.events import ToolProgress
from devall.plugins.functions import FunctionCatalog
from devall.tools.functions import FunctionToolset

Catalog = Callable[..., FunctionCatalog]


async def opened(
    catalog: FunctionCatalog, *names: str, timeout: float | None = None, **more: Any
) -> FunctionToolset:
    toolset = FunctionToolset(
        [FunctionTool(name=name) for name in names], catalog, timeout=timeout, **more
    )
    await toolset.open()
    return toolset


async def test_sync_and_async_functions_give_their_values(catalog_of: Catalog, scope: Any):
    catalog = catalog_of(
        m="""
        import asyncio, threading
        def sync(x: int) -> dict:
            "Sync one."
            return {"x": x, "main": threading.current_thread() is threading.main_thread()}
        async def other(x: int):
            await asyncio.sleep(0)
            return x + 1
        def numbers():
            yield 1
            yield 2
        """
    )
    tools = await opened(catalog, "m:All")
    specs = await tools.specs()
    assert [s.name for s in specs] == ["sync", "other", "numbers"]
    assert specs[0].description == "Sync one."
    assert specs[0].metadata["source"] == "function"
    assert json.loads((await tools.call("sync", {"x": 1}, scope, "c")).text) == {
        "x": 1,
        "main": False,
    }
    assert (await tools.call("other", {"x": 1}, scope, "c")).text == "2"
    assert (await tools.call("numbers", {}, scope, "c")).text == "[1,2]"


async def test_a_blocking_function_does_not_hold_up_the_loop(catalog_of: Catalog, scope: Any):
    tools = await opened(catalog_of(m="import time\ndef f(): time.sleep(0.3)"), "f")
    beats = 0

    async def heart() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    heartbeat = asyncio.create_task(heart())
    await asyncio.gather(*(tools.call("f", {}, scope, "c") for _ in range(5)))
    heartbeat.cancel()
    assert 10 < beats < 100


async def test_a_timeout_says_that_the_thread_may_still_run(catalog_of: Catalog, scope: Any):
    tools = await opened(catalog_of(m="import time\ndef f(): time.sleep(2)"), "f", timeout=0.1)
    began = time.monotonic()
    with pytest.raises(ToolTimeout, match="thread may still run"):
        await tools.call("f", {}, scope, "c")
    assert time.monotonic() - began < 1


async def test_an_async_function_is_cancelled_at_its_timeout(catalog_of: Catalog, scope: Any):
    catalog = catalog_of(
        m="""
        import asyncio
        ended = []
        async def f():
            try:
                await asyncio.sleep(5)
            finally:
                ended.append(1)
        def g(): return ended
        """
    )
    tools = await opened(catalog, "m:All", timeout=0.1)
    with pytest.raises(ToolTimeout):
        await tools.call("f", {}, scope, "c")
    assert (await tools.call("g", {}, scope, "c")).text == "[1]"


async def test_an_exception_becomes_a_failure_with_type_and_text(catalog_of: Catalog, scope: Any):
    catalog = catalog_of(
        m="""
        import sys
        def f(): raise ValueError("no such city")
        def g(): sys.exit(3)
        def h(): raise TimeoutError("mine")
        """
    )
    tools = await opened(catalog, "m:All", timeout=5)
    with pytest.raises(ToolFailed, match="ValueError: no such city") as caught:
        await tools.call("f", {}, scope, "c")
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(ToolFailed, match="SystemExit: 3"):
        await tools.call("g", {}, scope, "c")
    with pytest.raises(ToolFailed, match="TimeoutError: mine"):
        await tools.call("h", {}, scope, "c")


async def test_arguments_are_checked_before_the_call(catalog_of: Catalog, scope: Any):
    tools = await opened(catalog_of(m="def f(n: int): raise AssertionError"), "f")
    with pytest.raises(ToolArguments, match="n: "):
        await tools.call("f", {"n": "many"}, scope, "c")


async def test_cancelling_a_call_does_not_wait_for_its_thread(catalog_of: Catalog, scope: Any):
    tools = await opened(catalog_of(m="import time\ndef f(): time.sleep(2)"), "f")
    task = asyncio.create_task(tools.call("f", {}, scope, "c"))
    await asyncio.sleep(0.05)
    began = time.monotonic()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert time.monotonic() - began < 1
    assert any(t.name == "devall-tool-f" and t.daemon for t in threading.enumerate())


async def test_the_workflow_overrides_description_and_schema(catalog_of: Catalog, scope: Any):
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "maximum": 3}},
        "required": ["n"],
    }
    tool = FunctionTool(name="f", description="Mine.", parameters=schema)
    tools = FunctionToolset([tool], catalog_of(m="def f(n: int): return n"))
    await tools.open()
    (spec,) = await tools.specs()
    assert (spec.description, spec.parameters) == ("Mine.", schema)
    with pytest.raises(ToolArguments, match="maximum of 3"):
        await tools.call("f", {"n": 4}, scope, "c")
    assert (await tools.call("f", {"n": 3}, scope, "c")).text == "3"


async def test_a_function_reaches_its_call_by_the_context(
    catalog_of: Catalog, scope: Any, workspace: Any
):
    catalog = catalog_of(
        m="""
        def f(_context):
            _context.report(1, 2, "half")
            (_context.files / "out.txt").write_text("x")
            return _context.attach(b"abc", "text/plain", "abc.txt")
        """
    )
    tools = await opened(catalog, "f", workspace=workspace)
    result = await tools.call("f", {}, scope, "c7")
    assert (workspace.files / "out.txt").read_text() == "x"
    assert result.parts[-1].name == "abc.txt"
    await asyncio.sleep(0)
    (event,) = scope.events
    assert isinstance(event, ToolProgress)
    assert (event.call_id, event.tool, event.progress, event.total) == ("c7", "f", 1, 2)


async def test_a_function_written_for_chatdev_finds_its_places_in_the_context(
    catalog_of: Catalog, scope: Any, workspace: Any
):
    catalog = catalog_of(
        m="""
        def f(_context):
            names = ("python_workspace_root", "graph_directory", "node_id", "other")
            return [str(_context.get(name, "none")) for name in names]
        """
    )
    tools = await opened(catalog, "f", workspace=workspace)
    result = await tools.call("f", {}, scope, "c")
    found = json.loads(result.text)
    assert found == [str(workspace.files), str(workspace.root), scope.node, "none"]


async def test_progress_starts_the_time_limit_anew(catalog_of: Catalog, scope: Any):
    catalog = catalog_of(
        m="""
        import time
        def f(_context):
            for n in range(6):
                time.sleep(0.1)
                _context.report(n)
            return "done"
        """
    )
    tools = await opened(catalog, "f", timeout=0.3)
    assert (await tools.call("f", {}, scope, "c")).text == "done"


async def test_the_same_function_twice_is_one_tool_and_two_of_a_name_are_an_error(
    catalog_of: Catalog,
):
    catalog = catalog_of(m="def f(): ...\ndef g(): ...", n="def g(): ...")
    tools = await opened(catalog, "m:All", "f")
    assert [s.name for s in await tools.specs()] == ["f", "g"]
    with pytest.raises(SetupError, match=r"two functions.*`g`.*m\.py:2.*n\.py:1"):
        await opened(catalog, "m:g", "n:g")
