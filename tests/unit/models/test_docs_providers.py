"""docs/providers.md and .env.example, against what is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from devall.loading.loader import load_text
from devall.models.base import ModelChoice
from devall.models.lookalikes import LOOK_ALIKES
from devall.models.routes import AZURE_VERSION, PROVIDERS, find_route


@pytest.fixture
def page(project: Path) -> str:
    return (project / "docs" / "providers.md").read_text("utf-8")


@pytest.mark.parametrize("name", PROVIDERS)
def test_the_table_has_each_provider_with_all_its_variables_in_their_order(page, name):
    provider = PROVIDERS[name]
    [row] = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
    _, _, endpoint, keys, urls, _ = row.split("|")
    assert re.findall(r"`([A-Z_]+)`", keys) == list(provider.key_names)
    assert re.findall(r"`([A-Z_]+)`", urls) == list(provider.url_names)
    assert provider.base_url in endpoint
    assert all(variable in page for variable in provider.version_names)


def test_every_workflow_of_the_page_is_valid_and_leads_somewhere(page):
    blocks = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        [node] = load_text(block).root.config.nodes
        choice = ModelChoice(node.config.provider, node.config.name, node.config.base_url)
        assert find_route(choice, PROVIDERS[choice.provider], {}).url


def test_what_the_page_says_in_passing_is_so(page):
    assert AZURE_VERSION in page
    assert LOOK_ALIKES["OPENAI_API_BASE"] == "OPENAI_BASE_URL"


def test_the_example_of_an_environment_names_variables_that_are_read(project):
    text = (project / ".env.example").read_text("utf-8")
    names = set(re.findall(r"^#? ?([A-Z_]+)=", text, re.MULTILINE))
    assert not names & LOOK_ALIKES.keys()
    own = {n for p in PROVIDERS.values() for n in (*p.key_names[:1], *p.url_names[:1])}
    assert own - {"GEMINI_BASE_URL"} <= names
