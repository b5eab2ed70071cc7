"""`devall providers` and `devall doctor`: what a workflow would really use."""

from __future__ import annotations

import json
import os
import sqlite3

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from devall.cli.doctor_variables import unread
from devall.cli.output_schemas import OUTPUTS, output_schema
from devall.models.lookalikes import LOOK_ALIKES
from devall.models.routes import PROVIDERS
from devall.testing.chat_server import ChatServer, refused_url

SENTINEL = "sk-sentinel-value-77"
ONE = """
    graph:
      start: A
      nodes:
        - id: A
          type: agent
          config:
            provider: openai
            name: m
      edges: []
"""
NAMES = {
    *LOOK_ALIKES,
    *(n for p in PROVIDERS.values() for n in (*p.key_names, *p.url_names, *p.version_names)),
}


@pytest.fixture(autouse=True)
def without_variables(monkeypatch):
    for name in NAMES & os.environ.keys():
        monkeypatch.delenv(name)


def told(done, command: str = "doctor"):
    assert done.stdout.count("\n") == 1
    found = json.loads(done.stdout)
    Draft202012Validator(output_schema(command)).validate(found)
    TypeAdapter(OUTPUTS[command]).validate_json(done.stdout, strict=True)
    assert SENTINEL not in done.stdout + done.stderr
    return found


def workflow(**config) -> str:
    lines = "".join(f"\n            {key}: {value}" for key, value in config.items())
    return ONE.replace("\n            provider: openai\n            name: m", lines)


def checks(found) -> dict[str, dict]:
    return {each["name"]: each for each in found["checks"]}


def test_providers_are_listed_with_what_they_read_and_never_a_value(devall, workspace):
    env = {"ANTHROPIC_API_KEY": SENTINEL}
    found = told(devall("providers", "--json", env=env, code=0), "providers")["providers"]
    by_name = {each["name"]: each for each in found}
    assert list(by_name) == ["openai", "gemini", "anthropic", "azure", "ollama", "local"]
    assert by_name["ollama"]["endpoint"] == "http://localhost:11434/v1"
    assert by_name["anthropic"]["keys"][0] == {
        "name": "ANTHROPIC_API_KEY",
        "is_set": True,
        "where": "the environment",
    }
    text = devall("providers", env=env, code=0).stdout
    assert "ANTHROPIC_API_KEY (set in the environment)" in text
    assert SENTINEL not in text
    assert all(name in text for provider in PROVIDERS.values() for name in provider.url_names)


def test_providers_read_the_env_file(devall, write):
    write(".env", f"OLLAMA_API_KEY={SENTINEL}\n")
    found = told(devall("providers", "--json", code=0), "providers")["providers"]
    [ollama] = [each for each in found if each["name"] == "ollama"]
    assert ollama["keys"][0]["where"] == ".env"


def test_a_workflow_that_has_all_it_needs_is_fine(devall, write):
    file = write("w.yaml", ONE)
    found = told(devall("doctor", file, "--json", env={"API_KEY": SENTINEL}, code=0))
    [agent] = found["agents"]
    assert agent["provider"] == {"value": "openai", "source": "w.yaml:8"}
    assert agent["model"] == {"value": "m", "source": "w.yaml:9"}
    assert agent["endpoint"] == {
        "value": "https://api.openai.com/v1",
        "source": "the provider's own",
    }
    assert agent["key"] == {
        "is_set": True,
        "variable": "API_KEY",
        "source": "API_KEY of the environment",
    }
    assert agent["error"] is None
    assert (found["endpoints"], found["warnings"]) == (None, [])


def test_values_of_the_file_are_told_with_their_line_and_their_variables(devall, write):
    write(".env", f"MY_KEY={SENTINEL}\n")
    config = {"provider": "openai", "name": "${M}", "base_url": "${U:-https://x/v1}"}
    text = workflow(**config, api_key="${MY_KEY}").replace(
        "graph:", "vars: {M: big}\n    graph:", 1
    )
    found = told(devall("doctor", write("w.yaml", text), "--json", code=0))
    [agent] = found["agents"]
    assert agent["model"] == {"value": "big", "source": "w.yaml:10, ${M} of the file's `vars`"}
    assert agent["endpoint"] == {
        "value": "https://x/v1",
        "source": "w.yaml:11, ${U} is not set: its default",
    }
    assert agent["key"] == {
        "is_set": True,
        "variable": "MY_KEY",
        "source": "w.yaml:12, ${MY_KEY} of .env",
    }


def test_options_stand_before_the_file(devall, write):
    file = write("w.yaml", workflow(provider="openai", name="m", base_url="https://x/v1"))
    options = ("--provider", "anthropic", "--model", "claude", "--json")
    found = told(devall("doctor", file, *options, env={"ANTHROPIC_API_KEY": SENTINEL}, code=0))
    [agent] = found["agents"]
    assert agent["provider"] == {"value": "anthropic", "source": "--provider"}
    assert agent["model"] == {"value": "claude", "source": "--model"}
    assert agent["endpoint"]["value"] == "https://api.anthropic.com"
    assert agent["key"]["variable"] == "ANTHROPIC_API_KEY"


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"provider": "openai", "name": "m"}, "API_KEY is not set"),
        ({"provider": "opanai", "name": "m"}, "unknown provider opanai"),
        ({"provider": "azure", "name": "m"}, "AZURE_OPENAI_ENDPOINT is not set"),
        ({"provider": "openai", "name": "m", "base_url": "nowhere"}, "no http(s) URL"),
        ({"provider": "openai", "name": "m", "api_key": "${NOT_SET}"}, "NOT_SET is not set"),
        ({"provider": "local", "name": "no-such.gguf"}, "no local model no-such.gguf"),
    ],
)
def test_an_agent_whose_model_cannot_be_had_ends_it_with_4(devall, write, config, says):
    file = write("w.yaml", workflow(**config))
    done = devall("doctor", file, "--json", code=4)
    found = told(done)
    assert found["exit_code"] == 4
    assert says in found["agents"][0]["error"]["message"]
    assert says in devall("doctor", file, code=4).stdout


def test_agents_of_subgraphs_are_looked_at(devall, write):
    write("sub.yaml", ONE)
    text = (
        "graph: {start: S, nodes: [{id: S, type: subgraph, config: {type: file,"
        " config: {path: sub.yaml}}}], edges: []}"
    )
    found = told(devall("doctor", write("w.yaml", text), "--json", env={"API_KEY": "k"}, code=0))
    assert [each["node"] for each in found["agents"]] == ["S/A"]
    assert found["agents"][0]["model"]["source"] == "sub.yaml:9"


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"OPENAI_API_BASE": SENTINEL}, "OPENAI_API_BASE is set, and nothing reads it: "
                                        "OPENAI_BASE_URL is what is read"),
        ({"ANTHROPIC_BASE_URL": SENTINEL}, "ANTHROPIC_BASE_URL is set, and no agent uses provider "
                                           "anthropic"),
        ({"OPENAI_API_KEY": SENTINEL}, "OPENAI_API_KEY is set, and no agent uses it: "
                                       "API_KEY comes first"),
        ({"BASE_URL": "https://a/v1", "OPENAI_BASE_URL": "https://b/v1"},
         "OPENAI_BASE_URL is set, and no agent uses it: BASE_URL comes first"),
    ],
)  # fmt: skip
def test_variables_that_change_nothing_are_warned_of(devall, write, environ, says):
    file = write("w.yaml", ONE)
    found = told(devall("doctor", file, "--json", env={"API_KEY": "k", **environ}, code=0))
    assert found["warnings"] == [says]
    assert f"warning: {says}" in devall("doctor", file, env={"API_KEY": "k", **environ}).stdout


def test_a_variable_that_the_file_names_is_used(devall, write):
    file = write("w.yaml", workflow(provider="openai", name="m", base_url="${OPENAI_API_BASE}"))
    env = {"API_KEY": "k", "OPENAI_API_BASE": "https://x/v1"}
    assert told(devall("doctor", file, "--json", env=env, code=0))["warnings"] == []


@pytest.mark.parametrize(
    ("more", "environ", "version", "source"),
    [
        ({}, {}, "2024-10-21", "where nothing else is said"),
        ({}, {"OPENAI_API_VERSION": "v1"}, "v1", "OPENAI_API_VERSION of the environment"),
        ({"params": '{api_version: "v2"}'}, {}, "v2", "w.yaml:11"),
    ],
)
def test_the_version_of_azure_is_told_and_its_variable_is_used(
    devall, write, more, environ, version, source
):
    config = {"provider": "azure", "name": "d", "base_url": "https://x", **more}
    env = {"AZURE_OPENAI_API_KEY": "k", **environ}
    found = told(devall("doctor", write("w.yaml", workflow(**config)), "--json", env=env, code=0))
    assert found["agents"][0]["api_version"] == {"value": version, "source": source}
    assert found["warnings"] == []


def test_without_a_file_only_names_that_nothing_reads_are_warned_of(devall, workspace):
    env = {"ANTHROPIC_BASE_URL": "https://x", "CLAUDE_API_KEY": SENTINEL}
    [warning] = told(devall("doctor", "--json", env=env, code=0))["warnings"]
    assert warning.startswith("CLAUDE_API_KEY is set")


def test_keys_of_other_providers_are_nobody_s_mistake():
    environ = {"API_KEY": "a", "ANTHROPIC_API_KEY": "b", "GEMINI_API_KEY": "c"}
    assert list(unread(environ, {"API_KEY"}, {"openai"})) == []


def test_every_look_alike_leads_to_a_name_that_is_read():
    read = NAMES - LOOK_ALIKES.keys()
    assert set(LOOK_ALIKES.values()) <= read
    assert not any(
        name in (*p.key_names, *p.url_names, *p.version_names)
        for p in PROVIDERS.values()
        for name in LOOK_ALIKES
    )


def test_each_endpoint_is_tried_once_by_its_list_of_models(devall, write):
    second = "{id: B, type: agent, config: {provider: openai, name: other}}"
    text = ONE.replace("      edges: []", f"        - {second}\n      edges: []")
    file = write("w.yaml", text)
    with ChatServer({"m": ["x"]}) as server:
        found = told(devall("doctor", file, "--connect", "--json", env=server.env, code=0))
        assert [(r.method, r.path) for r in server.requests] == [("GET", "/v1/models")]
        text = devall("doctor", file, "--connect", env=server.env, code=0).stdout
    [endpoint] = found["endpoints"]
    assert (endpoint["nodes"], endpoint["by"]) == (["A", "B"], "models")
    assert endpoint["notes"] == ["it does not list the model other"]
    assert "it lists its models" in text
    assert "scripted-key" not in text


@pytest.mark.parametrize("provider", ["openai", "anthropic", "ollama"])
def test_an_endpoint_without_a_list_is_asked_for_one_token(devall, write, provider):
    with ChatServer({"m": ["x"]}, lists_models=False) as server:
        file = write("w.yaml", workflow(provider=provider, name="m", base_url=server.url))
        env = {"API_KEY": SENTINEL}
        found = told(devall("doctor", file, "--connect", "--json", env=env, code=0))
        [asked] = server.calls["m"]
    assert found["endpoints"][0]["by"] == "token"
    assert asked["max_tokens"] == 1


def test_an_endpoint_of_azure_is_tried(devall, write):
    with ChatServer() as server:
        root = server.url.removesuffix("/v1")
        file = write("w.yaml", workflow(provider="azure", name="d", base_url=root, api_key="k1234"))
        found = told(devall("doctor", file, "--connect", "--json", code=0))
        assert server.requests[0].path == "/openai/models"
    assert found["endpoints"][0]["notes"] == []


def test_an_endpoint_that_cannot_be_reached_ends_it_with_4(devall, write):
    with refused_url() as url:
        env = {"BASE_URL": url, "API_KEY": SENTINEL}
        found = told(devall("doctor", write("w.yaml", ONE), "--connect", "--json", env=env, code=4))
    assert "Connection refused" in found["endpoints"][0]["error"]["message"]


def test_a_key_that_is_refused_is_told_with_its_variable(devall, write):
    with ChatServer({"m": [{"status": 401}]}, lists_models=False) as server:
        env = {"BASE_URL": server.url, "OPENAI_API_KEY": SENTINEL}
        done = devall("doctor", write("w.yaml", ONE), "--connect", "--json", env=env, code=4)
    assert "OPENAI_API_KEY" in told(done)["endpoints"][0]["error"]["hint"]


def test_without_a_file_the_machine_is_looked_at(devall, workspace):
    found = told(devall("doctor", "--json", code=0))
    assert (found["workflow"], found["agents"]) == (None, [])
    names = checks(found)
    assert {"python", "logs", "journal", "extra anthropic", "extra local"} <= names.keys()
    assert {"node", "uv", "bwrap", "ffmpeg"} <= names.keys()
    assert names["python"]["state"] == "ok"
    assert not (workspace / "logs").exists()


def test_commands_that_are_not_here_are_told_and_not_missed(devall, workspace, monkeypatch):
    found = checks(told(devall("doctor", "--json", env={"PATH": str(workspace)}, code=0)))
    assert {found[name]["state"] for name in ("node", "uv", "bwrap", "ffmpeg")} == {"missing"}


@pytest.mark.parametrize(("required", "code"), [("true", 4), ("false", 0)])
def test_the_program_of_a_server_is_missed_where_the_server_is_required(
    devall, write, required, code
):
    source = f"[{{type: mcp_local, required: {required}, config: {{command: no-such-program}}}}]"
    file = write("w.yaml", workflow(provider="openai", name="m", tooling=source))
    found = told(devall("doctor", file, "--json", env={"API_KEY": "k"}, code=code))
    check = checks(found)["command no-such-program"]
    assert (check["state"], check["needed"]) == ("missing", required == "true")
    assert "MCP server of A" in check["about"]


def test_a_logs_folder_that_is_none_is_wrong(devall, write):
    write("logs", "a file")
    found = told(devall("doctor", "--json", code=4))
    assert checks(found)["logs"]["state"] == "wrong"


def test_a_journal_of_a_newer_devall_is_wrong_and_stays_as_it_is(devall, workspace):
    (workspace / "logs").mkdir()
    file = workspace / "logs" / "devall.db"
    with sqlite3.connect(file) as database:
        database.execute("PRAGMA user_version = 99")
    before = file.read_bytes()
    found = checks(told(devall("doctor", "--json", code=4)))
    assert found["journal"]["state"] == "wrong"
    assert "99" in found["journal"]["about"]
    assert file.read_bytes() == before


def test_a_file_that_is_wrong_or_missing_is_told_as_ever(devall, write):
    told(devall("doctor", write("w.yaml", "graph: {start: B}"), "--json", code=3))
    told(devall("doctor", "none.yaml", "--json", code=2))
