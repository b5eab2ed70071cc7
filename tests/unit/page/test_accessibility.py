"""Pages before axe-core, where `make foreign` has brought it."""

from __future__ import annotations

import pytest

from tests.unit.page.conftest import add_functions, agent
from tests.unit.page.test_document import TOOLS

ANSWER = (
    "# A\n\n### B\n\n| a | b |\n| - | - |\n| 1 | [x](https://example.org) |\n\n> said\n\n`code`"
)

OPTIONS = """{
    resultTypes: ["violations"],
    // Nodes of the picture are told in sentences that begin with their names.
    rules: {"label-content-name-mismatch": {enabled: false}},
}"""


@pytest.fixture
def axe(project):
    """The program that looks."""
    file = project / ".venv/foreign/node_modules/axe-core/axe.min.js"
    if not file.is_file():
        pytest.skip("there is no axe-core: make foreign")
    return file.read_text(encoding="utf-8")


async def test_axe_finds_nothing_wrong(browser, run, page, axe, tmp_path):
    await run(
        {
            "start": ["A", "F"],
            "end": ["E"],
            "nodes": [
                agent("A", config=TOOLS),
                agent("F", on_error="continue"),
                {"id": "H", "type": "human", "config": {"description": "Is it so?"}},
                agent("E"),
                {"id": "N", "type": "passthrough"},
            ],
            "edges": [
                {"from": "A", "to": "H"},
                {"from": "H", "to": "E"},
                {"from": "F", "to": "E"},
                {
                    "from": "A",
                    "to": "N",
                    "condition": {"type": "keyword", "config": {"any": ["never"]}},
                },
            ],
        },
        {
            "a": [
                {"tool_calls": [{"name": "lookup", "arguments": {"word": "nothing"}}]},
                "it is not there",
            ],
            "f": [{"status": 400, "error": "no"}],
            "e": [ANSWER],
        },
        task="Look it up. " * 100,
        functions_dir=add_functions(tmp_path),
        answers={"H": "yes"},
    )
    file = page("the-run")
    for width, scheme in ((1280, "light"), (360, "dark")):
        browser.open(file, width, scheme=scheme)
        browser.run("document.querySelectorAll('details').forEach((each) => (each.open = true))")
        browser.run(f"{axe};0")
        found = browser.run(f"axe.run(document, {OPTIONS})")
        assert [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]] == []
        assert len(found["passes"]) > 20
