"""`devall mcp login`: the logins of a workflow's servers, done beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devall.cli.bound import bound_agents
from devall.cli.interruption import Interruption
from devall.cli.streams import write_answer, write_note
from devall.cli.tools import ToolOptions, reported
from devall.cli.words import count
from devall.core.errors import UsageError

if TYPE_CHECKING:
    from devall.loading.loader import LoadedWorkflow
    from devall.telemetry.redaction import Redactor


def execute(options: ToolOptions) -> int:
    """Log in to every server that asks for it; the exit code."""
    return reported(options, lambda loaded, redactor: _execute(options, loaded, redactor))


def _execute(options: ToolOptions, loaded: LoadedWorkflow, redactor: Redactor) -> int:
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
    for config in servers:
        url = redactor.text(config.server)
        write_note(f"logging in to {url}")
        tools = Interruption(write_note).run(login(config, write_note))
        write_answer(f"{url}: logged in, {count(tools, 'tool')}\n")
    return 0
