"""`devall tools serve` and `devall mcp serve`: tools and workflows for others, by MCP."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devall.cli import options as parsing
from devall.cli.bound import bound_agents, redactor_for
from devall.cli.failures import Reporter
from devall.cli.inputs import gather_variables, load, logs_folder, nodes_of
from devall.cli.interruption import Interruption
from devall.cli.streams import write_note
from devall.cli.tools import workspace_for
from devall.cli.words import count
from devall.core.errors import RunCancelled, SetupError, UsageError

if TYPE_CHECKING:
    import socket

    from devall.config.tools import ToolSource
    from devall.loading.loader import LoadedWorkflow
    from devall.telemetry.redaction import Redactor
    from devall.tools.serve.offer import Offer
    from devall.tools.serve.stdio import Pipes
    from devall.workspace import Workspace

HOST = "127.0.0.1"
PORT = 8000
FILE_TOOLS = "file:All"


@dataclass(frozen=True, slots=True)
class Door:
    """How clients come in, as the options have it."""

    stdio: bool = False
    http: bool = False
    host: str | None = None
    port: int | None = None
    token_env: str | None = None
    allowed_hosts: Sequence[str] = ()

    def check(self) -> None:
        """Make sure that the options go together.

        Raises:
            UsageError: they do not, or a host that others reach is to be open without a token.
            SetupError: the token's variable is not set.
        """
        parsing.only_one((("--stdio", self.stdio), ("--http", self.http)))
        of_http = (
            ("--host", self.host is not None),
            ("--port", self.port is not None),
            ("--token-env", self.token_env is not None),
            ("--allow-host", bool(self.allowed_hosts)),
        )
        if not self.http:
            for option, is_given in of_http:
                if is_given:
                    raise UsageError(f"{option} goes with --http", hint="add --http")
            return
        from devall.tools.serve.addresses import is_loopback

        if not is_loopback(self.host or HOST) and self.token_env is None:
            raise UsageError(
                f"--host {self.host}: others could reach it, and anybody could call the tools",
                hint="name the variable that holds a token: --token-env NAME",
            )
        self.token()

    def token(self) -> str | None:
        """The token that clients must send; None = they need none."""
        if self.token_env is None:
            return None
        token = os.environ.get(self.token_env, "").strip()
        if not token:
            raise SetupError(
                f"--token-env: the variable {self.token_env} is not set",
                hint=f"set {self.token_env} to a long random text",
            )
        return token


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServer:
    """The options of `devall tools serve`, as they were written."""

    file: Path | None = None
    node: str | None = None
    functions: Sequence[str] = ()
    ex_tools: Sequence[str] = ()
    file_tools: bool = True
    workspace: Path | None = None
    variables: Sequence[str] = ()
    vars_file: Path | None = None
    env_file: Path | None = None
    functions_dir: Path | None = None
    logs_dir: Path | None = None
    debug: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowServer:
    """The options of `devall mcp serve`, as they were written."""

    files: Sequence[Path]
    models: Sequence[str] = ()
    providers: Sequence[str] = ()
    ex_tools: Sequence[str] = ()
    variables: Sequence[str] = ()
    vars_file: Path | None = None
    env_file: Path | None = None
    functions_dir: Path | None = None
    logs_dir: Path | None = None
    debug: bool = False


def serve_tools(options: ToolServer, door: Door) -> int:
    """Serve tools until the client leaves or a signal comes; the exit code."""
    return Reporter(debug=options.debug).guard(lambda: _serve_tools(options, door))


def serve_workflows(options: WorkflowServer, door: Door) -> int:
    """Serve workflows until the client leaves or a signal comes; the exit code."""
    return Reporter(debug=options.debug).guard(lambda: _serve_workflows(options, door))


def _serve_tools(options: ToolServer, door: Door) -> int:
    door.check()
    if options.node is not None and options.file is None:
        raise UsageError("--node goes with a workflow", hint="name the FILE that the node is in")
    with _entrance(door) as pipes:
        loaded = None
        if options.file is not None:
            variables = gather_variables(options.vars_file, options.variables)
            loaded = load(options.file, variables, options.env_file, options.functions_dir)
        redactor = _redactor(loaded)
        sources = _sources(options, loaded)

        def work() -> int:
            return _until_interrupted(
                lambda: _run_tools(options, loaded, redactor, sources, door, pipes)
            )

        return Reporter(False, options.debug, str(options.file or ""), redactor).guard(work)


def _serve_workflows(options: WorkflowServer, door: Door) -> int:
    door.check()
    with _entrance(door) as pipes:
        from devall.cli.workflow_tool import WorkflowTool

        variables = gather_variables(options.vars_file, options.variables)
        logs_dir = logs_folder(options.logs_dir)
        tools: dict[str, WorkflowTool] = {}
        for file in options.files:
            loaded = load(file, variables, options.env_file, options.functions_dir)
            agents = nodes_of(loaded, "agent")
            tool = WorkflowTool(
                loaded,
                logs_dir.resolve(),
                variables,
                options.env_file,
                options.functions_dir,
                options.ex_tools,
                parsing.parse_choices(options.models, agents, "--model"),
                parsing.parse_choices(options.providers, agents, "--provider"),
            )
            if tool.name in tools:
                raise UsageError(
                    f"{tools[tool.name].loaded.path} and {file} are both called {tool.name}",
                    hint="give one of them another `id`",
                )
            tools[tool.name] = tool
        offers = [tool.offer() for tool in tools.values()]

        async def work() -> None:
            about = "Workflows of agents; each call is a run of its own and may take minutes."
            await _serve(offers, about, door, pipes)

        return _until_interrupted(work)


def _redactor(loaded: LoadedWorkflow | None) -> Redactor:
    if loaded is not None:
        return redactor_for(loaded)
    from devall.telemetry.redaction import Redactor, environment_secrets

    return Redactor(environment_secrets(os.environ))


def _entrance(door: Door) -> AbstractContextManager[Pipes | None]:
    """Takes stdin and stdout for the protocol before anybody's code could write to them."""
    if door.http:
        return nullcontext()
    from devall.tools.serve.stdio import protocol_pipes

    return protocol_pipes()


def _until_interrupted(work: Callable[[], Coroutine[Any, Any, None]]) -> int:
    gc.enable()  # see devall.__main__
    try:
        Interruption(lambda _: None).run(work())
    except RunCancelled as signal:
        return signal.exit_code
    return 0


def _sources(options: ToolServer, loaded: LoadedWorkflow | None) -> list[ToolSource]:
    """All sources: one of functions, then those of the agents, each once."""
    from devall.loading.environment import read_environment
    from devall.tools.extra import extra_names, functions_source

    environment = read_environment(None, options.env_file) if loaded is None else loaded.environment
    names = [FILE_TOOLS] if options.file_tools else []
    names += [name.strip() for each in options.functions for name in each.split(",")]
    names += extra_names(options.ex_tools, environment.values)
    names = list(dict.fromkeys(name for name in names if name))
    found: list[ToolSource] = [functions_source(names)] if names else []
    for bound in () if loaded is None else bound_agents(loaded, options.node):
        if bound.missing is not None:
            raise bound.missing
        for source in bound.sources:
            found += _what_is_new(_anchored(source, bound.base), found)
    if not found:
        raise UsageError(
            "there are no tools to serve", hint="name a FILE, --functions or --ex-tools"
        )
    return found


def _anchored(source: ToolSource, base: Path) -> ToolSource:
    """The source with a working directory that means the same from everywhere."""
    if source.type != "mcp_local" or not source.config.cwd:
        return source
    config = source.config.model_copy(update={"cwd": str((base / source.config.cwd).resolve())})
    return source.model_copy(update={"config": config})


def _what_is_new(source: ToolSource, known: Sequence[ToolSource]) -> list[ToolSource]:
    """The source, without what is known; nothing where all of it is."""
    from devall.config.prefixes import prefix_of

    if source in known:
        return []
    if source.type != "function":
        return [source]
    there = [
        tool.name
        for each in known
        if each.type == "function" and each.prefix == source.prefix
        for tool in each.config.tools
    ]
    tools = tuple(tool for tool in source.config.tools if tool.name not in there)
    config = source.config.model_copy(update={"tools": tools})
    # A prefix `auto` is that of the whole source.
    update = {"config": config, "prefix": prefix_of(source)}
    return [source.model_copy(update=update)] if tools else []


async def _run_tools(
    options: ToolServer,
    loaded: LoadedWorkflow | None,
    redactor: Redactor,
    sources: Sequence[ToolSource],
    door: Door,
    pipes: Pipes | None,
) -> None:
    """Open the sources, and serve their tools."""
    from devall.core.events import Event, Warned
    from devall.plugins.project import functions_for
    from devall.tools.manager import ToolManager
    from devall.tools.mcp.pool import McpServers
    from devall.tools.serve.sessions import Sessions

    here = Path.cwd() / "workflow.yaml" if loaded is None else loaded.path
    functions = functions_for(here, options.functions_dir)

    def take(event: Event) -> None:
        if isinstance(event, Warned):
            write_note(redactor.text(f"warning: {event.message}"))

    async with McpServers(emit=take, redact=redactor.text) as servers:

        def make(workspace: Workspace) -> ToolManager:
            return ToolManager(
                sources,
                functions=functions,
                servers=servers,
                workspace=workspace,
                base=here.resolve().parent,
                emit=take,
                environment=None if loaded is None else loaded.environment.values,
            )

        sessions = Sessions(make, lambda _: workspace_for(options.workspace, options.logs_dir))
        try:
            await _serve(await sessions.offers(), "", door, pipes)
        finally:
            await sessions.aclose()


async def _serve(offers: Sequence[Offer], about: str, door: Door, pipes: Pipes | None) -> None:
    """Serve until the client leaves; over HTTP until the task is cancelled."""
    from devall import __version__
    from devall.tools.serve.server import OneToken, Server, quieten_libraries

    quieten_libraries()
    token = door.token() if door.http else None
    server = Server(
        "devall",
        offers,
        version=__version__,
        instructions=about,
        verifier=None if token is None else OneToken(token),
    )
    if pipes is not None:
        from devall.tools.serve.stdio import serve_stdio

        write_note(f"serving {count(len(offers), 'tool')} over stdin and stdout")
        await serve_stdio(server, pipes)
        return
    from devall.tools.serve.http import listen, serve_http, url_of

    host = door.host or HOST
    opened: socket.socket = listen(host, PORT if door.port is None else door.port)
    write_note(f"serving {count(len(offers), 'tool')} at {url_of(opened, host)}")
    await serve_http(server, opened, host, door.allowed_hosts)
