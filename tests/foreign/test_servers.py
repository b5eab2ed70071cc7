"""Servers that others wrote, with an agent: their tools are listed, and called.

Those of npm speak the protocol of the handshake, those from PyPI the revision 2026-07-28 too.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devall.core.events import ToolProgress, Warned
from devall.tools.manager import ToolManager
from devall.tools.mcp.pool import McpServers

pytestmark = pytest.mark.timeout(300)  # the first one may have to install them

EVERYTHING = {
    "echo",
    "get-annotated-message",
    "get-env",
    "get-resource-links",
    "get-resource-reference",
    "get-structured-content",
    "get-sum",
    "get-tiny-image",
    "gzip-file-as-resource",
    "trigger-long-running-operation",
    "trigger-elicitation-request",
    "trigger-url-elicitation",
}


@pytest.fixture(params=["stdio", "streamableHttp", "sse"])
def everything(
    request: pytest.FixtureRequest, foreign: Any, started: Callable[..., str], free_port: int
) -> dict[str, Any]:
    """A source: server-everything by one of its transports."""
    if request.param == "stdio":
        return foreign.npm("everything", "stdio")
    started(foreign.everything(request.param), "on port", PORT=str(free_port))
    path = "mcp" if request.param == "streamableHttp" else "sse"
    config = {"server": f"http://127.0.0.1:{free_port}/{path}", "timeout": 20}
    return {"type": "mcp_remote", "config": config}


async def test_everything_is_heard_of_what_server_everything_says(
    everything: dict[str, Any], converse: Any
):
    form = {"name": "Ada", "integer": 7}
    found = await converse(
        [everything],
        [
            ("echo", {"message": "grüß dich"}),
            ("get-sum", {"a": 2, "b": 3}),
            ("get-sum", {"a": "two"}),
            ("get-structured-content", {"location": "New York"}),
            ("get-tiny-image", {}),
            ("get-resource-links", {"count": 2}),
            ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
            ("get-resource-reference", {"resourceType": "Blob", "resourceId": 2}),
        ],
        [
            ("trigger-long-running-operation", {"duration": 0.3, "steps": 3}),
            ("trigger-elicitation-request", {}),
            ("trigger-url-elicitation", {"url": "http://127.0.0.1:9/open"}),
        ],
        answers={"A": [json.dumps(form), "yes"]},
    )
    assert set(found.offered) >= EVERYTHING
    # Neither sampling nor roots is offered, so that nothing is there which asks for them.
    assert not {"trigger-sampling-request", "get-roots-list"} & set(found.offered)
    echo, total, wrong, weather, image, links, text, blob, slow, filled, opened = found.results
    assert echo == "Echo: grüß dich"
    assert total == "The sum of 2 and 3 is 5."
    assert "'two' is not of type 'number'" in wrong
    assert json.loads(weather)["conditions"] == "Cloudy"
    assert "iVBOR" not in image
    assert "demo://resource/dynamic/text/2" in links
    assert "This is a plaintext resource" in text
    assert "demo://resource/dynamic/blob/2" in blob
    assert slow == "Long running operation completed. Duration: 0.3 seconds, Steps: 3."
    # The fields with defaults that the words left out are filled in.
    assert '"integer": 7' in filled
    assert "It was a dark and stormy night." in filled
    assert "completed the URL elicitation flow" in opened
    kept = sorted(path.suffix for path in (found.result.logs_dir / "attachments").iterdir())
    assert kept == [".json", ".png", ".txt"]
    steps = [event.progress for event in found.events if isinstance(event, ToolProgress)]
    assert steps == [1, 2, 3]
    odd = [e.message for e in found.events if isinstance(e, Warned)]
    is_sse = everything["config"].get("server", "").endswith("/sse")
    assert len(odd) == is_sse, odd
    assert not is_sse or "`transport: sse`" in odd[0]


async def test_files_are_written_and_read_by_server_filesystem(
    foreign: Any, converse: Any, workspace: Path
):
    folder = workspace / "files"
    folder.mkdir()
    place = str(folder / "a.txt")
    found = await converse(
        [foreign.npm("filesystem", str(folder))],
        [
            ("write_file", {"path": place, "content": "one\ntwo\n"}),
            ("edit_file", {"path": place, "edits": [{"oldText": "two", "newText": "2"}]}),
            ("read_text_file", {"path": place}),
            ("list_directory", {"path": str(folder)}),
            ("read_text_file", {"path": str(workspace / "elsewhere.txt")}),
        ],
    )
    assert {"directory_tree", "search_files", "move_file"} <= set(found.offered)
    _, edited, read, listed, refused = found.results
    assert "+2" in edited
    assert read == (folder / "a.txt").read_text() == "one\n2\n"
    assert listed == "[FILE] a.txt"
    assert refused.startswith("Error")
    assert "outside allowed directories" in refused


async def test_a_later_run_finds_what_server_memory_was_told(
    foreign: Any, converse: Any, workspace: Path
):
    source = foreign.npm("memory", MEMORY_FILE_PATH=str(workspace / "memory.jsonl"))
    ada = {"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}
    engine = {"name": "Engine", "entityType": "machine", "observations": []}
    knows = {"from": "Ada", "to": "Engine", "relationType": "programs"}
    told = await converse(
        [source],
        [("create_entities", {"entities": [ada, engine]})],
        [("create_relations", {"relations": [knows]})],
    )
    assert len(told.offered) == 9
    found = await converse([source], [("search_nodes", {"query": "programs"}), ("read_graph", {})])
    search, graph = map(json.loads, found.results)
    assert [entity["name"] for entity in search["entities"]] == ["Ada"]
    assert graph["relations"] == [knows]


async def test_times_are_converted_by_mcp_server_time(foreign: Any, converse: Any):
    zones = {"source_timezone": "Europe/Berlin", "target_timezone": "Asia/Tokyo"}
    found = await converse(
        [foreign.python("time", "--local-timezone", "Europe/Berlin")],
        [
            ("get_current_time", {"timezone": "UTC"}),
            ("convert_time", {"time": "12:00", **zones}),
            ("convert_time", {"time": "25:00", **zones}),
        ],
    )
    assert set(found.offered) == {"get_current_time", "convert_time"}
    now, there, wrong = found.results
    assert json.loads(now)["timezone"] == "UTC"
    assert re.search(r"T(19|20):00:00\+09:00", json.loads(there)["target"]["datetime"])
    assert wrong.startswith("Error")
    assert "Invalid time format" in wrong


async def test_changes_are_committed_by_mcp_server_git(
    foreign: Any, converse: Any, workspace: Path
):
    tree = workspace / "tree"
    git = ["git", "-C", str(tree), "-c", "init.defaultBranch=main"]
    subprocess.run([*git[:1], *git[3:], "init", "-q", str(tree)], check=True)
    for key, value in (("user.name", "Ada"), ("user.email", "ada@localhost")):
        subprocess.run([*git, "config", key, value], check=True)
    (tree / "a.txt").write_text("one\n")
    repo = {"repo_path": str(tree)}
    found = await converse(
        [foreign.python("git", "--repository", str(tree))],
        [
            ("git_status", repo),
            ("git_add", repo | {"files": ["a.txt"]}),
            ("git_commit", repo | {"message": "One file"}),
            ("git_log", repo | {"max_count": 1}),
            ("git_status", {"repo_path": str(workspace)}),
        ],
    )
    assert {"git_diff", "git_show", "git_branch"} <= set(found.offered)
    before, _, _, log, refused = found.results
    assert "Untracked files" in before
    assert "One file" in log
    assert refused.startswith("Error")
    done = subprocess.run([*git, "log", "--format=%s %an"], capture_output=True, text=True)
    assert done.stdout == "One file Ada\n"


async def test_five_servers_in_one_node_each_by_the_newest_revision_that_it_speaks(
    foreign: Any, workspace: Path
):
    sources = [
        foreign.npm("everything", "stdio") | {"prefix": "everything"},
        foreign.npm("filesystem", str(workspace)) | {"prefix": "a prefix, long / of files"},
        foreign.npm("memory", MEMORY_FILE_PATH=str(workspace / "m.jsonl")) | {"prefix": "memory"},
        foreign.python("time") | {"prefix": "time"},
        foreign.python("git") | {"prefix": "git"},
    ]
    warned: list[Any] = []
    async with (
        McpServers(emit=warned.append) as servers,
        ToolManager(sources, servers=servers, workspace=workspace) as tools,
    ):
        names = [spec.name for spec in tools.specs()]
        own = {spec.metadata["original_name"]: spec.name for spec in tools.specs()}
        assert len(set(names)) == len(names) > 45
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)
        allowed = await tools.call(own["list_allowed_directories"])
        assert allowed.text.endswith(str(workspace))
        agreed = [server.protocol for server in servers._servers.values()]
    assert agreed == [*["2025-11-25"] * 3, *["2026-07-28"] * 2]
    assert warned == []
