from __future__ import annotations

import asyncio
import itertools
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from devall.config.tools import FunctionTool
from devall.core.errors import SetupError, ToolArguments, ToolFailed, ToolTimeout
from devall.core.events import ToolProgress
from devall.plugins.functions import FunctionCatalog
from devall.tools.base import ToolResult
from devall.tools.functions import FunctionToolset
from devall.tools.own import Turn, own_tools

SHAPED = """
from pydantic import BaseModel, Field

class Numbers(BaseModel):
    x: int = Field(description="first")
    y: int = Field(2, ge=0)

class Add:
    name = "add"
    description = "Adds."
    args_schema = Numbers
    def _run(self, x, y):
        return x + y
"""
names = (f"own_tools_{n}" for n in itertools.count())


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Writes a module that can be imported; gives its name."""
    monkeypatch.syspath_prepend(tmp_path)
    written: list[str] = []

    def write(text: str) -> str:
        written.append(next(names))
        (tmp_path / f"{written[-1]}.py").write_text(textwrap.dedent(text), encoding="utf-8")
        return written[-1]

    yield write
    for name in written:
        sys.modules.pop(name, None)


class Opened:
    """Function tools that are called without a run."""

    def __init__(self, scope: Any, *written: str, timeout: float | None = None) -> None:
        tools = [FunctionTool(name=each) for each in written]
        self.toolset = FunctionToolset(
            tools, FunctionCatalog(None, Path("/nowhere")), None, timeout
        )
        self.scope = scope

    async def names(self) -> list[str]:
        await self.toolset.open()
        return [spec.name for spec in await self.toolset.specs()]

    async def call(self, name: str, **arguments: Any) -> ToolResult:
        return await self.toolset.call(name, arguments, self.scope, "c1")


async def test_a_class_of_a_tools_shape_is_a_tool(module: Callable[[str], str], scope: Any):
    tools = Opened(scope, f"{module(SHAPED)}:Add")
    assert await tools.names() == ["add"]
    (spec,) = await tools.toolset.specs()
    assert spec.description == "Adds."
    properties = spec.parameters["properties"]
    assert properties["x"] == {"type": "integer", "description": "first"}
    assert properties["y"] == {"type": "integer", "minimum": 0, "default": 2}
    assert spec.parameters["required"] == ["x"]
    assert (await tools.call("add", x=1)).text == "3"
    with pytest.raises(ToolArguments, match="y"):
        await tools.call("add", x=1, y=-1)


@pytest.mark.parametrize(
    ("text", "attribute"),
    [
        ("add = Add()", "add"),
        ("def make():\n    return Add()", "make"),
        ("def make():\n    tool = Add()\n    return tool", "make"),
        ("def make() -> Add:\n    return globals()['Add']()", "make"),
        ("def make() -> 'list[Add]':\n    return [Add()]", "make"),
        ("def make():\n    return [Add()]", "make"),
        ("import random\ndef make():\n    return random.choice([Add()])", "make()"),
        ("tools = [Add()]", "tools"),
        (
            "class Kit:\n    @classmethod\n    def tool(cls) -> Add:\n        return Add()",
            "Kit.tool",
        ),
        ("make = lambda: Add()", "make()"),
    ],
)
async def test_instances_factories_and_lists_give_the_same_tool(
    module: Callable[[str], str], scope: Any, text: str, attribute: str
):
    tools = Opened(scope, f"{module(SHAPED + text)}:{attribute}")
    assert await tools.names() == ["add"]
    assert (await tools.call("add", x=1, y=5)).text == "6"


async def test_a_factory_may_give_a_function(module: Callable[[str], str], scope: Any):
    name = module("""
        def make():
            def double(x: int) -> int:
                \"\"\"Twice as much.\"\"\"
                return 2 * x
            return double
    """)
    tools = Opened(scope, f"{name}:make")
    assert await tools.names() == ["double"]
    assert (await tools.call("double", x=4)).text == "8"


@pytest.mark.parametrize(
    "text",
    [
        "def look():\n    calls.append(1)\n    return 'seen'",
        "def look() -> str:\n    calls.append(1)\n    return 'seen'",
        "def look():\n    calls.append(1)\n    return str('seen')",
        "def look(text: str = 'seen'):\n    calls.append(1)\n    return text",
    ],
)
async def test_a_function_without_arguments_is_never_called_to_see_what_it_is(
    module: Callable[[str], str], scope: Any, text: str
):
    name = module(f"calls = []\n{text}")
    tools = Opened(scope, f"{name}:look")
    assert await tools.names() == ["look"]
    assert sys.modules[name].calls == []
    assert (await tools.call("look")).text == "seen"


async def test_the_form_that_the_class_itself_defines_is_called(
    module: Callable[[str], str], scope: Any
):
    name = module("""
        class Base:
            name = "base"
            description = "?"
            def _run(self, **more):
                raise NotImplementedError
            async def _arun(self, **more):
                return "by the base: " + self._run(**more)

        class Sync(Base):
            name = "sync"
            def _run(self, word: str):
                return "sync " + word

        class Async(Base):
            name = "async"
            async def _arun(self, word: str):
                return "async " + word
    """)
    tools = Opened(scope, f"{name}:Sync", f"{name}:Async")
    assert await tools.names() == ["sync", "async"]
    assert (await tools.call("sync", word="a")).text == "sync a"
    assert (await tools.call("async", word="b")).text == "async b"


async def test_a_pydantic_class_and_a_schema_as_a_mapping_do_as_well(
    module: Callable[[str], str], scope: Any
):
    name = module("""
        from pydantic import BaseModel

        class Echo(BaseModel):
            name: str = "echo"
            description: str = "Says it again."
            args_schema: dict = {
                "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
            def _run(self, *, config, run_manager=None, **given):
                return given["n"]
    """)
    tools = Opened(scope, f"{name}:Echo")
    assert await tools.names() == ["echo"]
    assert (await tools.call("echo", n=3)).text == "3"
    with pytest.raises(ToolArguments, match="integer"):
        await tools.call("echo", n="three")


@pytest.mark.parametrize(
    ("text", "attribute", "said"),
    [
        ("value = 3", "value", "it is no function but int"),
        ("class T:\n    name = ''\n    def _run(self): ...", "T", "has no `name`"),
        (
            "class T:\n    name = 't'\n    def __init__(self, x): ...\n    def _run(self): ...",
            "T",
            "making it raised TypeError",
        ),
        ("def make():\n    raise OSError('no disk')", "make()", "raised OSError: no disk"),
        ("async def make(): ...", "make()", "must not be async"),
        ("def f(): ...\nf.time_limit = 'long'", "f", "`time_limit` is 'long'"),
        ("def f(): ...\nf.max_calls = 0", "f", "`max_calls` is 0"),
        ("def make():\n    return 3", "make()", "no function but int"),
    ],
)
async def test_what_is_no_tool_is_said_before_the_first_call(
    module: Callable[[str], str], scope: Any, text: str, attribute: str, said: str
):
    with pytest.raises(SetupError, match=said):
        await Opened(scope, f"{module(text)}:{attribute}").names()


async def test_an_exclusive_instance_never_runs_twice_at_once(
    module: Callable[[str], str], scope: Any
):
    name = module("""
        import time
        class Printer:
            name = "print_page"
            description = "Prints."
            exclusive = True
            busy = most = 0
            order = []
            def _run(self, page: int):
                self.busy += 1
                self.most = max(self.most, self.busy)
                time.sleep(0.02)
                self.order.append(page)
                self.busy -= 1
        printer = Printer()
    """)
    first, second = Opened(scope, f"{name}:printer"), Opened(scope, f"{name}:printer")
    assert await first.names() == await second.names() == ["print_page"]
    await asyncio.gather(
        *((first, second)[page % 2].call("print_page", page=page) for page in range(8))
    )
    printer = sys.modules[name].printer
    assert printer.most == 1
    assert printer.order == list(range(8))


async def test_a_call_that_timed_out_keeps_its_turn_until_its_thread_is_done(
    module: Callable[[str], str], scope: Any
):
    name = module("""
        import threading
        go_on = threading.Event()
        def slow():
            go_on.wait(10)
        slow.exclusive = True
        slow.time_limit = 0.1
    """)
    tools = Opened(scope, f"{name}:slow")
    await tools.names()
    with pytest.raises(ToolTimeout, match=r"0\.1 s; its thread may still run"):
        await tools.call("slow")
    with pytest.raises(ToolFailed, match=r"busy.*was not begun"):
        await tools.call("slow")
    sys.modules[name].go_on.set()
    await tools.call("slow")


async def test_a_source_s_timeout_stands_over_the_tools_own(
    module: Callable[[str], str], scope: Any
):
    name = module("""
        import asyncio
        async def slow():
            await asyncio.sleep(60)
        slow.time_limit = 30
    """)
    tools = Opened(scope, f"{name}:slow", timeout=0.05)
    await tools.names()
    with pytest.raises(ToolTimeout, match=r"0\.05 s"):
        await tools.call("slow")


async def test_calls_are_counted_and_bounded_for_each_node(
    module: Callable[[str], str], scope: Any
):
    name = module("""
        def ring(_context):
            return _context.number
        ring.max_calls = 2
    """)
    first, second = Opened(scope, f"{name}:ring"), Opened(scope, f"{name}:ring")
    await first.names()
    await second.names()
    assert [(await first.call("ring")).text for _ in range(2)] == ["1", "2"]
    with pytest.raises(ToolFailed, match="may be called 2 times"):
        await first.call("ring")
    assert (await second.call("ring")).text == "1"


async def test_a_report_starts_the_time_limit_anew_and_is_an_event(
    module: Callable[[str], str], scope: Any
):
    name = module("""
        import time
        from devall.tools.context import ToolContext
        class Work:
            name = "work"
            description = "Works."
            time_limit = 0.5
            def _run(self, ctx: ToolContext):
                for step in range(5):
                    time.sleep(0.2)
                    ctx.report(step, 5, f"step {step}")
                return "done"
    """)
    tools = Opened(scope, f"{name}:Work")
    await tools.names()
    assert (await tools.toolset.specs())[0].parameters["properties"] == {}
    assert (await tools.call("work")).text == "done"
    await asyncio.sleep(0)
    reports = [event for event in scope.events if isinstance(event, ToolProgress)]
    assert [event.message for event in reports] == [f"step {n}" for n in range(5)]


async def test_turns_go_on_where_who_waited_was_cancelled():
    turn = Turn()
    await turn.take("t", None)
    waiting = [asyncio.create_task(turn.take("t", None)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    turn.leave()
    await waiting[1]
    waiting[2].cancel()
    turn.leave()  # in the same moment: it may be given to the one that is cancelled
    await asyncio.gather(*waiting, return_exceptions=True)
    await asyncio.wait_for(turn.take("t", None), 5)


def test_turns_hold_between_event_loops():
    turn, busy, most = Turn(), 0, 0

    async def work() -> None:
        nonlocal busy, most
        for _ in range(50):
            await turn.take("t", None)
            busy += 1
            most = max(most, busy)
            await asyncio.sleep(0)
            busy -= 1
            turn.leave()

    threads = [threading.Thread(target=lambda: asyncio.run(work())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert most == 1


def test_a_name_in_a_list_is_that_of_each_function():
    assert [t.name for t in own_tools("m:tools", "tools", [len, sorted])] == ["len", "sorted"]
