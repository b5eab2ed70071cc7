from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from devall.config.agents import AgentConfig, Params
from devall.config.edges import Always, Edge, FunctionCondition, JsonPathSplit, RegexSplit
from devall.config.memory import FileStore
from devall.config.nodes import AgentNode, PassthroughNode, SubgraphInline, SubgraphNode
from devall.config.tools import FunctionSource, McpLocalSource, McpRemoteSource
from devall.config.workflow import Graph, Workflow


def graph(**more: Any) -> Graph:
    return Graph.model_validate(
        {"start": "A", "nodes": [{"id": "A", "type": "passthrough"}]} | more
    )


def agent(**more: Any) -> AgentConfig:
    return AgentConfig.model_validate({"provider": "openai", "name": "m"} | more)


def edge(**more: Any) -> Edge:
    return Edge.model_validate({"from": "A", "to": "B"} | more)


def wrong(error: pytest.ExceptionInfo[ValidationError]) -> list[tuple[str, tuple[Any, ...]]]:
    return [(each["type"], each["loc"]) for each in error.value.errors()]


def test_one_start_and_a_list_of_starts_are_the_same():
    assert graph(start="A").start == graph(start=["A"]).start == ("A",)


def test_one_source_of_tools_may_stand_without_a_list():
    source = {"type": "mcp_remote", "config": {"server": "http://x/mcp"}}
    assert agent(tooling=source).tooling == agent(tooling=[source]).tooling


def test_null_means_not_given():
    config = agent(base_url=None, params=None, tooling=None, retry={"max_attempts": None})
    assert config == agent()
    assert edge(condition=None, process=None, dynamic=None, trigger=None) == edge()


def test_a_required_key_that_is_null_is_missing():
    with pytest.raises(ValidationError) as error:
        agent(name=None)
    assert wrong(error) == [("missing", ("name",))]


def test_empty_text_means_not_given_for_prefix_description_and_cwd():
    source = McpLocalSource.model_validate(
        {"type": "mcp_local", "prefix": "", "config": {"command": "x", "cwd": ""}}
    )
    assert (source.prefix, source.config.cwd) == ("", "")
    assert source == McpLocalSource.model_validate({"config": {"command": "x"}})


def test_a_history_keeps_the_newest_round_unless_more_is_said():
    assert agent().history == agent(history={}).history == agent(history=None).history
    history = agent(history={"max_tokens": 8000, "keep_first": 2}).history
    assert (history.max_tokens, history.keep_first, history.keep_last) == (8000, 2, 1)


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ({"max_tokens": 0}, "greater_than_equal"),
        ({"max_tokens": "8000"}, "int_type"),
        ({"keep_first": -1}, "greater_than_equal"),
        ({"keep_last": 0}, "greater_than_equal"),
        ({"keep": 1}, "extra_forbidden"),
    ],
)
def test_a_history_that_means_nothing_is_wrong(written: Any, kind: str):
    with pytest.raises(ValidationError) as error:
        agent(history=written)
    assert wrong(error) == [(kind, ("history", *written))]


def test_keys_that_begin_with_x_are_free_everywhere():
    node = {"id": "A", "type": "passthrough", "x-a": 1, "config": {"x-b": [1]}}
    assert graph(nodes=[node], **{"x-c": {}}).nodes == graph().nodes


def test_keys_of_old_files_are_accepted():
    old = graph(
        organization="x",
        nodes=[{"id": "A", "type": "passthrough", "dynamic": {"type": "map"}}],
        edges=[{"from": "A", "to": "A", "description": "x"}],
    )
    assert old.nodes == graph().nodes
    assert old.edges[0] == edge(to="A")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("context_window", "5"),
        ("context_window", True),
        ("context_window", 1.0),
        ("log_output", "no"),
        ("log_output", 1),
        ("timeout", "5"),
        ("timeout", True),
        ("timeout", float("inf")),
        ("description", 5),
    ],
)
def test_nothing_is_coerced(key: str, value: Any):
    with pytest.raises(ValidationError) as error:
        PassthroughNode.model_validate({"id": "A", "type": "passthrough", key: value})
    assert wrong(error)[0][1] == (key,)


def test_a_whole_number_is_fine_where_a_fraction_is():
    assert PassthroughNode.model_validate({"id": "A", "timeout": 5}).timeout == 5
    assert agent(params={"temperature": 1}).params.temperature == 1


def test_models_are_frozen():
    with pytest.raises(ValidationError):
        graph().id = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        (True, Always(value=True)),
        (False, Always(value=False)),
        ("true", Always(value=True)),
        ("false", Always(value=False)),
        ({"type": "function", "config": {"name": "true"}}, Always(value=True)),
    ],
)
def test_words_for_always_are_one_condition(written: Any, normal: Always):
    assert edge(condition=written).condition == normal


def test_a_name_is_a_function_condition():
    block = {"type": "function", "config": {"name": "code_pass"}}
    found = edge(condition="code_pass").condition
    assert isinstance(found, FunctionCondition)
    assert found == edge(condition=block).condition


def test_a_keyword_condition_needs_a_word():
    with pytest.raises(ValidationError, match="at least one of"):
        edge(condition={"type": "keyword", "config": {"any": []}})
    found = edge(condition={"type": "keyword", "config": {"none": "NO", "default": False}})
    assert found.condition.type == "keyword"


def test_settings_of_a_split_stand_in_config_or_beside_type():
    short = {"type": "regex", "pattern": "x", "on_no_match": "empty"}
    long = {"type": "regex", "config": {"pattern": "x", "on_no_match": "empty"}}
    one, other = (edge(dynamic={"type": "map", "split": each}).dynamic for each in (short, long))
    assert one == other
    assert one is not None
    assert isinstance(one.split, RegexSplit)
    path = edge(dynamic={"type": "map", "split": {"type": "json_path", "json_path": "a.b"}})
    assert path.dynamic is not None
    assert isinstance(path.dynamic.split, JsonPathSplit)


def test_a_fan_out_splits_by_message_if_nothing_else_is_said():
    dynamic = edge(dynamic={"type": "tree"}).dynamic
    assert dynamic is not None
    assert (dynamic.split.type, dynamic.config.group_size) == ("message", 3)


def test_a_group_that_the_pattern_does_not_have_is_an_error():
    for group in (2, "b", "2", "²"):
        with pytest.raises(ValidationError, match="has no group"):
            edge(
                process={"type": "regex_extract", "config": {"pattern": "(?P<a>x)", "group": group}}
            )
    for group in (0, 1, "a", "1", ""):
        edge(process={"type": "regex_extract", "config": {"pattern": "(?P<a>x)", "group": group}})


def test_a_group_may_be_a_number_in_quotes_or_an_empty_text():
    for written, meant in (("1", 1), ("", 0), ("a", "a"), (None, None)):
        split = {"type": "regex", "pattern": "(?P<a>x)", "group": written}
        dynamic = edge(dynamic={"type": "map", "split": split}).dynamic
        assert dynamic is not None
        assert isinstance(dynamic.split, RegexSplit)
        assert dynamic.split.group == meant


def test_a_split_without_a_type_is_by_message():
    for split in (None, {}, {"config": {}}, {"type": None}, {"type": ""}):
        dynamic = edge(dynamic={"type": "map", "split": split}).dynamic
        assert dynamic is not None
        assert dynamic.split.type == "message"


def test_a_source_of_tools_may_do_without_config():
    short = McpRemoteSource.model_validate(
        {"type": "mcp_remote", "server": "http://x", "headers": {"A": "b"}, "prefix": "p"}
    )
    long = McpRemoteSource.model_validate(
        {
            "type": "mcp_remote",
            "prefix": "p",
            "config": {"server": "http://x", "headers": {"A": "b"}},
        }
    )
    assert short == long
    assert FunctionSource.model_validate({"type": "function", "tools": {"name": "f"}}).config.tools


def test_a_key_beside_config_is_not_taken_into_it():
    with pytest.raises(ValidationError) as error:
        McpRemoteSource.model_validate(
            {"type": "mcp_remote", "config": {"server": "http://x"}, "cache_ttl": 1}
        )
    assert wrong(error) == [("extra_forbidden", ("cache_ttl",))]


def test_only_the_member_that_type_names_is_reported():
    nodes = [{"id": "A", "type": "agent", "config": {"provider": "openai"}}]
    with pytest.raises(ValidationError) as error:
        graph(nodes=nodes)
    assert wrong(error) == [("missing", ("nodes", 0, "agent", "config", "name"))]


def test_what_is_sent_is_what_the_file_sets_and_is_not_ours():
    params = Params.model_validate(
        {"temperature": 0.1, "seed": 7, "protocol": "responses", "tool_mode": "text", "stop": None}
    )
    assert params.sent == {"temperature": 0.1, "seed": 7}
    assert Params().sent == {}
    assert Params().tool_mode is None


def test_a_graph_may_hold_a_graph():
    inner = {"start": "X", "nodes": [{"id": "X", "type": "literal", "config": {"content": "x"}}]}
    node = {"id": "A", "type": "subgraph", "config": {"type": "config", "config": inner}}
    found = graph(nodes=[node]).nodes[0]
    assert isinstance(found, SubgraphNode)
    assert isinstance(found.config, SubgraphInline)
    assert found.config.config.nodes[0].id == "X"


def test_an_old_name_of_the_index_is_understood():
    store = {
        "name": "f",
        "type": "file",
        "config": {"memory_path": "i", "file_sources": {"path": "d"}},
    }
    assert FileStore.model_validate(store).config.index_path == "i"


def test_a_key_is_not_shown_where_a_model_is_printed():
    node = AgentNode.model_validate(
        {"id": "A", "config": {"provider": "openai", "name": "m", "api_key": "sk-secret"}}
    )
    assert "sk-secret" not in repr(node)


def test_nothing_that_a_file_leaves_out_is_shared_and_changed():
    one = Workflow.model_validate({"graph": {"start": "A", "nodes": []}})
    two = Workflow.model_validate({"graph": {"start": "A", "nodes": []}})
    one.vars["x"] = 1
    assert two.vars == {}
