"""`devall tools list`, `devall tools call`, `devall validate --connect`, and `--ex-tools`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from devall.testing.chat_server import ChatServer

Write = Callable[[str, str], Path]
Devall = Callable[..., "subprocess.CompletedProcess[str]"]

OWN = '''
    import time
    from devall.tools.context import ToolContext

    class Echo:
        name = "echo"
        description = "Says it again."
        def _run(self, text: str):
            return "echo " + text

    def double(x: int) -> int:
        """Twice as much."""
        return 2 * x

    def fail():
        raise OSError("no disk")

    def nap(ctx: ToolContext):
        ctx.report(1, 2, "half way")
        time.sleep(60)

    def setting(ctx: ToolContext):
        return ctx.environment.get("OWN_SETTING", "none")

    def picture(ctx: ToolContext):
        return ctx.attach(b"\\x89PNG\\r\\n\\x1a\\n", "image/png")
'''


@pytest.fixture
def file_of(write: Write, project: Path) -> Callable[..., Path]:
    """Writes a workflow whose agent A has these sources, and the example server, with these keys."""

    def make(*sources: str, servers: Sequence[str] = ()) -> Path:
        write("own.py", OWN)
        lines = [f"- {source}" for source in sources]
        for server in servers:
            config = {
                "command": sys.executable,
                "args": [str(project / "mcp_example" / "mcp_server.py")],
                "startup_timeout": 30,
            }
            lines.append(f"- {{type: mcp_local, {server} config: {json.dumps(config)}}}")
        body = "\n".join(f"                  {line}" for line in lines)
        text = f"""
        version: 0.4.0
        graph:
          start: A
          nodes:
            - id: A
              type: agent
              config:
                provider: openai
                name: a
                tooling:
{body or "                  []"}
        """
        return write("w.yaml", text)

    return make


def test_a_list_shows_functions_and_contacts_no_server(devall: Devall, file_of: Any):
    file = file_of(
        '{type: function, prefix: my, config: {tools: [{name: "own:double"}]}}',
        "{type: mcp_local, config: {command: no-such-program}}",
        '{type: mcp_remote, config: {server: "http://127.0.0.1:9/mcp"}}',
    )
    done = devall("tools", "list", file, code=0)
    assert "my_double(x: integer) (its own name: double)  Twice as much." in done.stdout
    assert done.stdout.count("not asked") == 2


def test_a_list_as_an_object(devall: Devall, file_of: Any):
    file = file_of(
        '{type: function, config: {tools: [{name: "own:double"}]}}', servers=["prefix: p,"]
    )
    done = devall("tools", "list", file, "--connect", "--json", code=0)
    told = json.loads(done.stdout)
    (node,) = told["nodes"]
    functions, server = node["sources"]
    assert [tool["name"] for tool in functions["tools"]] == ["double"]
    assert functions["tools"][0]["metadata"]["source"] == "function"
    assert functions["tools"][0]["parameters"]["properties"] == {"x": {"type": "integer"}}
    assert (server["state"], server["protocol"] or "") >= ("ready", "2025")
    assert server["seconds"] > 0
    (tool,) = server["tools"]
    assert tool["name"] == "p_rand_num"
    assert {k: tool["metadata"][k] for k in ("source", "mode", "original_name")} == {
        "source": "mcp",
        "mode": "local",
        "original_name": "rand_num",
    }


def test_a_list_shows_the_skills_of_an_agent_and_the_tools_that_open_them(
    devall: Devall, project: Path
):
    file = project / "yaml_instance" / "demo_skills.yaml"
    shown = devall("tools", "list", str(file)).stdout
    assert "  skills release-notes  ready\n    activate_skill(name: string)\n" in shown
    [node] = json.loads(devall("tools", "list", str(file), "--json").stdout)["nodes"]
    assert node["skills"] == ["release-notes"]


def test_every_source_that_fails_is_named_and_hides_no_other(devall: Devall, file_of: Any):
    file = file_of(
        "{type: mcp_local, config: {command: no-such-program}}",
        '{type: mcp_remote, required: false, config: {server: "http://127.0.0.1:9/", timeout: 2}}',
        '{type: function, config: {tools: [{name: "own:double"}]}}',
    )
    done = devall("tools", "list", file, "--connect", code=4)
    assert "`no-such-program` is not found" in done.stdout
    assert "and left out (`required: false`)" in done.stdout
    assert "double(x: integer)" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_collision_is_found_and_a_prefix_proposed(devall: Devall, file_of: Any):
    file = file_of(servers=["", ""])
    listed = devall("tools", "list", file, "--connect", code=4)
    assert "tool `rand_num` is offered twice" in listed.stdout
    assert "give one of them a prefix" in listed.stdout
    checked = devall("validate", file, "--connect", code=4)
    assert "[tool-collision]" in checked.stdout
    assert devall("validate", file).returncode == 0


def test_validation_that_connects_says_where_and_what(devall: Devall, file_of: Any):
    file = file_of(
        '{type: function, config: {tools: [{name: "own:double"}]}}',
        "{type: mcp_local, config: {command: no-such-program}}",
        "{type: mcp_local, required: false, config: {command: neither}}",
    )
    done = devall("validate", file, "--connect", "--format", "json", code=4)
    found = json.loads(done.stdout)["files"][0]["diagnostics"]
    assert [(d["severity"], d["code"], d["line"]) for d in found] == [
        ("error", "tool-source", 13),
        ("warning", "tool-source", 14),
    ]
    assert "A: 1 tool of 1 source" in done.stderr


def test_validation_that_connects_passes_with_all_servers(devall: Devall, file_of: Any):
    long = "p" * 62
    file = file_of(servers=[f"prefix: {long},"])
    done = devall("validate", file, "--connect", code=0)
    assert "rand_num of mcp_local" in done.stderr
    assert f"is called {'p' * 55}_" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "out", "said"),
    [
        (["double", "--args", '{"x": 4}'], 0, "8\n", ""),
        (["echo", "--args", '{"text": "ä"}'], 0, "echo ä\n", ""),
        (["double", "--args", '{"x": "no"}'], 1, "", "arguments do not fit"),
        (["double"], 1, "", "x"),
        (["fail"], 1, "", "fail raised OSError: no disk"),
        (["doubel"], 2, "", "did you mean double?"),
        (["double", "--args", "{x"], 2, "", "--args"),
        (["double", "--args", "[1]"], 2, "", "--args"),
        (["double", "--node", "B"], 2, "", "there is no agent B"),
        (["double", "--ex-tools", "own:nothing"], 4, "", "`own` has no `nothing`"),
    ],
)
def test_a_call_from_the_command_line(
    devall: Devall, file_of: Any, arguments: list[str], code: int, out: str, said: str
):
    names = ", ".join(f'{{name: "own:{n}"}}' for n in ("double", "Echo", "fail"))
    file = file_of(f"{{type: function, config: {{tools: [{names}]}}}}")
    done = devall("tools", "call", file, *arguments, code=code)
    assert done.stdout == out
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path("logs").exists()


def test_settings_and_extra_tools_may_stand_in_a_dotenv_file(
    devall: Devall, file_of: Any, write: Write
):
    file = file_of('{type: function, config: {tools: [{name: "own:double"}]}}')
    write(".env", "OWN_SETTING=blue\nEX_TOOLS=['own:setting']\n")
    done = devall("tools", "call", file, "--node", "A", "setting", "--args", "{}", code=0)
    assert done.stdout.strip() == "blue"


def test_a_call_of_a_server_s_tool(devall: Devall, file_of: Any):
    file = file_of(servers=[""])
    done = devall("tools", "call", file, "rand_num", "--args", '{"a": 3, "b": 3}', "--json", code=0)
    told = json.loads(done.stdout)
    assert (told["is_error"], told["content"]) == (False, [{"type": "text", "text": "3"}])


def test_what_a_call_makes_is_kept(devall: Devall, file_of: Any):
    file = file_of('{type: function, config: {tools: [{name: "own:picture"}, {name: save_file}]}}')
    done = devall("tools", "call", file, "picture", code=0)
    (kept,) = Path("logs").glob("*/attachments/*.png")
    assert str(kept.resolve()) in done.stderr
    arguments = '{"path": "a.txt", "content": "hi"}'
    devall("tools", "call", file, "save_file", "--args", arguments, "--workspace", ".", code=0)
    assert Path("a.txt").read_text() == "hi"


def test_a_secret_is_never_shown(devall: Devall, file_of: Any):
    file = file_of(
        '{type: function, config: {tools: [{name: "own:Echo"}]}}',
        '{type: mcp_local, config: {command: no-such, args: ["--key=${MY_TOKEN}"]}}',
    )
    env = {"MY_TOKEN": "t0psecret-value"}
    listed = devall("tools", "list", file, "--connect", env=env, code=4)
    checked = devall("validate", file, "--connect", env=env, code=4)
    both = listed.stdout + listed.stderr + checked.stdout + checked.stderr
    assert "t0psecret" not in both
    assert "***" in both


def test_a_variable_that_is_not_set_is_said_before_a_server_is_called(devall: Devall, file_of: Any):
    file = file_of(
        '{type: mcp_remote, config: {server: "http://127.0.0.1:9/", timeout: 1,'
        ' headers: {Authorization: "Bearer ${NO_SUCH_TOKEN}"}}}'
    )
    done = devall("tools", "call", file, "x")
    assert done.returncode in {3, 4}
    assert "NO_SUCH_TOKEN" in done.stderr


def test_a_call_is_interrupted_like_a_run(file_of: Any, workspace: Path):
    file = file_of('{type: function, config: {tools: [{name: "own:nap"}]}}')
    process = subprocess.Popen(
        [sys.executable, "-m", "devall", "tools", "call", str(file), "nap"],
        cwd=workspace,
        env=os.environ,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert process.stderr is not None
    assert "1 of 2 half way" in process.stderr.readline()
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(8) == 130
    assert time.monotonic() - began < 8
    process.stderr.close()


def test_extra_tools_are_those_of_the_option_and_of_the_environment(devall: Devall, file_of: Any):
    file = file_of('{type: function, config: {tools: [{name: "own:double"}]}}')
    calls = [
        {"name": "echo", "arguments": {"text": "a"}},
        {"name": "get_current_time", "arguments": {}},
    ]
    with ChatServer({"a": [{"tool_calls": calls}, "done"]}) as server:
        env = server.env | {"EX_TOOLS": "['own:Echo', get_current_time, 'own:double']"}
        devall("run", file, "--task", "go", "--ex-tools", "own:fail,own:Echo", env=env, code=0)
        first, second = server.calls["a"]
    offered = [tool["function"]["name"] for tool in first["tools"]]
    assert offered == ["double", "fail", "echo", "get_current_time"]
    results = [m["content"] for m in second["messages"] if m["role"] == "tool"]
    assert results[0] == "echo a"


@pytest.mark.parametrize(
    ("option", "environment", "said"),
    [
        ("own:nothing", "", "`own` has no `nothing`"),
        ("", "[1, 2]", "EX_TOOLS holds 1"),
        ("", "[a", "EX_TOOLS is no YAML"),
        ("", "nonsense", "nonsense"),
    ],
)
def test_extra_tools_that_are_not_there_end_the_run_before_it_begins(
    devall: Devall, file_of: Any, option: str, environment: str, said: str
):
    file = file_of()
    arguments = ["--ex-tools", option] if option else []
    with ChatServer({}) as server:
        env = server.env | {"EX_TOOLS": environment}
        done = devall("run", file, "--task", "go", *arguments, env=env, code=4)
        assert not server.requests
    assert said in done.stderr
