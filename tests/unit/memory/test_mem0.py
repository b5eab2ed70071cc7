"""Memories at mem0: the library's own client against a server that plays the service.

The library brings much along and is in no extra of the tests: without it, these are left out.
tests/foreign/test_mem0.py runs them in an environment that has it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from devall.config.memory import Mem0StoreConfig
from devall.core.errors import SetupError
from devall.memory.mem0 import mem0_memory

has_library = importlib.util.find_spec("mem0") is not None
needs_library = pytest.mark.skipif(not has_library, reason="the extra mem0 is not installed")


@pytest.mark.skipif(has_library, reason="the extra mem0 is installed")
def test_the_extra_that_is_missing_is_named():
    with pytest.raises(SetupError, match="memory m: stores of type mem0 need") as caught:
        mem0_memory("m", Mem0StoreConfig(), {"MEM0_API_KEY": "k"})
    assert "pip install devall[mem0]" in caught.value.hint


@needs_library
def test_the_key_that_is_missing_is_named():
    with pytest.raises(SetupError, match="MEM0_API_KEY"):
        mem0_memory("m", Mem0StoreConfig(), {})


class Service:
    """What was asked, and what is answered to a search."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.facts: list[dict[str, Any]] = [{"id": "1", "memory": "Likes tea.", "score": 0.9}]
        self.status = 200
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                is_known = self.headers["authorization"] == "Token good-key"
                self.answer(200 if is_known else 401, {"org_id": "o1", "project_id": "p1"})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                service.asked.append((self.path, body))
                found = {"results": service.facts if "search" in self.path else []}
                self.answer(service.status, found if service.status == 200 else {"detail": "no"})

            def answer(self, status: int, value: Any) -> None:
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service()
    thread = threading.Thread(target=found.server.serve_forever)
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


CALLER = """
import asyncio, json, sys
from devall.config.memory import Mem0StoreConfig
from devall.core.errors import DevallError
from devall.memory.base import Memory
from devall.memory.mem0 import mem0_memory

async def main(config):
    store = mem0_memory("m", Mem0StoreConfig(**config), {"MEM0_API_KEY": "good-key"}).of_agent("A")
    try:
        await store.open()
        await store.write(Memory("You like tea.", "A", "I like tea.", id="x"))
        found = await store.retrieve("what do I like?", 3, 0.5)
        assert await store.retrieve(" ", 3, -1) == []
        print(json.dumps([(m.text, m.id) for m in found]))
    except DevallError as error:
        print(json.dumps([type(error).__name__, str(error), error.hint]))
    finally:
        await store.aclose()

asyncio.run(main(json.loads(sys.argv[1])))
"""


def called(service: Service, home: Path, project: Path, **config: Any) -> Any:
    """What a process says that uses the store; the library writes to the home folder."""
    env = os.environ | {"HOME": str(home), "PYTHONPATH": os.pathsep.join([str(project), *sys.path])}
    command = [sys.executable, "-c", CALLER, json.dumps({"base_url": service.url} | config)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


USER = {"role": "user", "content": "I like tea."}
AGENT = {"role": "assistant", "content": "You like tea."}


@needs_library
@pytest.mark.parametrize(
    ("ids", "added", "filters"),
    [
        ({}, [({"agent_id": "A"}, [USER, AGENT])], {"agent_id": "A"}),
        ({"user_id": "u"}, [({"user_id": "u"}, [USER])], {"user_id": "u"}),
        ({"agent_id": "a"}, [({"agent_id": "a"}, [USER, AGENT])], {"agent_id": "a"}),
        (
            {"user_id": "u", "agent_id": "a"},
            [({"user_id": "u"}, [USER]), ({"agent_id": "a"}, [USER, AGENT])],
            {"OR": [{"user_id": "u"}, {"agent_id": "a"}]},
        ),
    ],
)
def test_what_is_said_belongs_to_the_user_and_what_is_answered_to_the_agent(
    service: Service, tmp_path: Path, project: Path, ids: Any, added: Any, filters: Any
):
    assert called(service, tmp_path, project, **ids) == [["Likes tea.", "1"]]
    *writes, (path, search) = service.asked
    assert [place for place, _ in writes] == ["/v3/memories/add/"] * len(added)
    names = ("user_id", "agent_id")
    scopes = [({k: v for k, v in b.items() if k in names}, b["messages"]) for _, b in writes]
    assert scopes == added
    assert all(b["metadata"] == {"source": "A", "devall_id": "x"} for _, b in writes)
    assert path == "/v3/memories/search/"
    assert search == {"query": "what do I like?", "filters": filters, "top_k": 3, "threshold": 0.5}


@needs_library
@pytest.mark.parametrize(
    ("status", "config", "kind", "text"),
    [
        (200, {"api_key": "bad-key"}, "SetupError", "does not take the key"),
        (200, {"project_id": "p2"}, "SetupError", "belongs to project_id p1, not to p2"),
        (401, {}, "ModelRefused", "mem0 refused"),
        (503, {}, "ModelUnavailable", "mem0 failed"),
        (200, {"base_url": "http://127.0.0.1:9"}, "ModelUnavailable", "cannot be reached"),
    ],
)
def test_what_goes_wrong_is_told_in_our_words(
    service: Service, tmp_path: Path, project: Path, status: int, config: Any, kind: str, text: str
):
    service.status = status
    found = called(service, tmp_path, project, **config)
    assert found[0] == kind
    assert text in found[1]
    assert "bad-key" not in json.dumps(found)
