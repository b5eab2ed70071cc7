"""`devall mcp login`: the logins of a workflow's servers, done beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devall.cli.bound import bound_agents
from devall.cli.failures import to_line
from devall.cli.interruption import Interruption
from devall.cli.streams import write_answer, write_note
from devall.cli.tools import ToolOptions, reported
from devall.cli.words import count
from devall.core.errors import UsageError
from devall.core.messages import JsonValue

if TYPE_CHECKING:
    from devall.loading.loader import LoadedWorkflow
    from devall.telemetry.redaction import Redactor


def execute(options: ToolOptions, *, by_code: bool = False) -> int:
    """Log in to every server that asks for it; the exit code.

    Args:
        options: Which workflow.
        by_code: Whether codes are shown that are typed on another device.
    """
    return reported(options, lambda loaded, redactor: _execute(options, loaded, redactor, by_code))


def _execute(
    options: ToolOptions, loaded: LoadedWorkflow, redactor: Redactor, by_code: bool
) -> int:
    from devall.tools.mcp.login import login, wants_login

    agents = bound_agents(loaded, options.node)
    for bound in agents:
        if bound.missing is not None:
            raise bound.missing
    servers = wants_login([source for bound in agents for source in bound.sources])
    if not servers:
        raise UsageError(
            "no server of this workflow is logged in to",
            hint="a source of type mcp_remote with `auth: oauth` in its config is",
        )
    told: list[JsonValue] = []
    for config in servers:
        url = redactor.text(config.server)
        write_note(f"logging in to {url}")
        work = login(config, lambda page: write_note(str(page)), by_code=by_code)
        tools = Interruption(write_note).run(work)
        told.append({"url": url, "tools": tools})
        if not options.as_json:
            write_answer(f"{url}: logged in, {count(tools, 'tool')}\n")
    if options.as_json:
        write_answer(to_line({"servers": told}))
    return 0
