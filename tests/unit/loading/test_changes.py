"""Values that stand in for those of the file."""

from __future__ import annotations

import pytest

from devall.core.errors import UsageError
from devall.loading.changes import with_changes
from devall.loading.document import parse_document

TEXT = """
vars: {A: 1}
graph:
  start: a.b
  nodes:
    - {id: a.b, type: agent, config: {name: m, tooling: [{type: function}]}}
    - {id: c, type: literal, config: {content: x}}
"""


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("nodes.a.b.config.name", lambda r: r["graph"]["nodes"][0]["config"]["name"]),
        ("graph.nodes.c.config.content", lambda r: r["graph"]["nodes"][1]["config"]["content"]),
        ("nodes.1.config.content", lambda r: r["graph"]["nodes"][1]["config"]["content"]),
        (
            "nodes.a.b.config.params.temperature",
            lambda r: r["graph"]["nodes"][0]["config"]["params"]["temperature"],
        ),
        (
            "nodes.a.b.config.tooling.0.type",
            lambda r: r["graph"]["nodes"][0]["config"]["tooling"][0]["type"],
        ),
        ("vars.A", lambda r: r["vars"]["A"]),
        ("start", lambda r: r["graph"]["start"]),
    ],
)
def test_a_path_leads_by_keys_ids_and_numbers(path, where):
    document = parse_document(TEXT, "w.yaml")
    changed = with_changes(document, {path: "new"})
    assert where(changed.root) == "new"
    assert document.root == parse_document(TEXT, "w.yaml").root


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nodes.d.config", "has no entry d"),
        ("nodes.9.config", "has no entry 9"),
        ("start.x", "holds no values below it"),
    ],
)
def test_a_path_that_leads_nowhere_is_named(path, words):
    with pytest.raises(UsageError, match=words):
        with_changes(parse_document(TEXT, "w.yaml"), {path: 1})
