"""A workflow as the client that the conformance suite looks at: `conformance_client.py URL`.

The suite names the scenario in MCP_CONFORMANCE_SCENARIO. The model is scripted; the exit code is
that of the run.
"""

from __future__ import annotations

import asyncio
import os
import sys

import devall
from devall.loading.loader import load_mapping
from devall.testing.scripted_model import ScriptedModels

CALLS = {
    "initialize": [],
    "tools_call": [{"name": "add_numbers", "arguments": {"a": 5, "b": 7}}],
    "elicitation-sep1034-client-defaults": [{"name": "test_client_elicitation_defaults"}],
    "sse-retry": [{"name": "test_reconnection"}],
}


async def main() -> int:
    """The exit code of a run whose agent calls what the scenario is about."""
    calls = CALLS[os.environ["MCP_CONFORMANCE_SCENARIO"]]
    source = {"type": "mcp_remote", "config": {"server": sys.argv[1]}}
    agent = {
        "id": "A",
        "type": "agent",
        "config": {"provider": "openai", "name": "m", "tooling": [source]},
    }
    models = ScriptedModels({"m": [{"tool_calls": calls}, "done"] if calls else ["done"]})
    result = await devall.run(
        load_mapping({"graph": {"start": "A", "nodes": [agent], "edges": []}}),
        model_source=models,
        answers={"A": "{}"},  # a form without a word: its defaults
    )
    for request in models.requests["m"]:
        print(request.messages[-1])
    for warning in result.warnings:
        print(warning, file=sys.stderr)
    models.check_all_used()
    return result.exit_code


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
