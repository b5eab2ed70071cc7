"""The commands `devall tools` and `devall mcp`: their options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from devall.cli.parameters import (
    AsJson,
    Debug,
    EnvFile,
    ExTools,
    File,
    Files,
    FunctionsDir,
    LogsDir,
    Models,
    Providers,
    Variables,
    VarsFile,
)

TOOLS_EXAMPLES = """Examples:

\b
  devall tools list poem.yaml
  devall tools call poem.yaml --node Poet rand_num --args '{"a": 1, "b": 6}'
  devall tools serve --stdio
"""
LIST_EXAMPLES = """Examples:

\b
  devall tools list poem.yaml
  devall tools list poem.yaml --node Poet --connect
  devall tools list poem.yaml --connect --json

\b
Exit codes: 0 all is well, 2 no such file or node, 3 the file is wrong,
4 a source that is needed cannot be used, or two tools have one name.
"""
CALL_EXAMPLES = """Examples:

\b
  devall tools call poem.yaml --node Poet rand_num --args '{"a": 1, "b": 6}'
  devall tools call review.yaml --node Editor load_file --args '{"path": "a.txt"}' --workspace .

\b
The result goes to standard output. Exit codes: 0 the tool has answered,
1 it failed, 2 no such file, node or tool, 4 a source cannot be used.
"""
SERVE_EXAMPLES = """Examples:

\b
  devall tools serve
  devall tools serve --functions weather:All --ex-tools my.tools:Search --http --port 8000
  devall tools serve review.yaml --node Editor --no-file-tools
  TOKEN=... devall tools serve --http --host 0.0.0.0 --token-env TOKEN

\b
Each session has a workspace of its own, a new folder in the folder of logs;
clients without a session (the newer protocol has none) share one. With
--workspace all work in that folder. Over HTTP the URL ends in /mcp.
"""
MCP_EXAMPLES = """Examples:

\b
  devall mcp serve poem.yaml review.yaml
  devall mcp serve poem.yaml --http --port 8000
  devall mcp login poem.yaml
"""
LOGIN_EXAMPLES = """Examples:

\b
  devall mcp login poem.yaml
  devall mcp login poem.yaml --node Poet
  devall mcp login poem.yaml --device

\b
The page to log in at is opened in a browser, where there is one, and shown on
standard error. With --device, and where there is no browser, it is a page for
any device, and a code to type there, if the server has that way. Tokens are
kept in your configuration folder, for you alone.
"""
WORKFLOWS_EXAMPLES = """Examples:

\b
  devall mcp serve poem.yaml review.yaml
  devall mcp serve poem.yaml --http --port 8000 --provider local --model smollm2
  TOKEN=... devall mcp serve poem.yaml --http --host 0.0.0.0 --token-env TOKEN

\b
A workflow is called by its `id`, or by the name of its file. Each call is a
run with a folder of its own. A client may set the `vars` of the file, but for
secrets, URLs and those that --var sets here.
"""

tools_app = typer.Typer(
    help="The tools of a workflow: list them, call one, offer them to others.",
    epilog=TOOLS_EXAMPLES,
    rich_markup_mode=None,
)
mcp_app = typer.Typer(
    help="Workflows as tools for others, by the MCP protocol; logins at servers.",
    epilog=MCP_EXAMPLES,
    rich_markup_mode=None,
)

Node = Annotated[
    str | None, typer.Option(metavar="ID", help="The node; in a subgraph S/X. Default: all.")
]
WorkspaceDir = Annotated[
    Path | None, typer.Option(metavar="DIR", help="The folder that tools work in.")
]
Stdio = Annotated[bool, typer.Option("--stdio", help="Over stdin and stdout (the default).")]
Http = Annotated[bool, typer.Option("--http", help="Over streamable HTTP.")]
Host = Annotated[
    str | None, typer.Option(metavar="HOST", help="Where to listen; default: 127.0.0.1.")
]
Port = Annotated[int | None, typer.Option(metavar="N", help="Default: 8000; 0 takes any free one.")]
TokenEnv = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Environment variable with the token that clients must send (Authorization:"
        " Bearer ...); needed for a host that is not loopback.",
    ),
]
Device = Annotated[
    bool, typer.Option("--device", help="Show a code that is typed on another device.")
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="A further name by which clients may call the server."),
]


@tools_app.command("list", epilog=LIST_EXAMPLES)
def tools_list(
    file: File,
    node: Node = None,
    connect: Annotated[
        bool, typer.Option("--connect", help="Start or reach the servers and ask them.")
    ] = False,
    ex_tools: ExTools = None,
    var: Variables = None,
    vars_file: VarsFile = None,
    env_file: EnvFile = None,
    functions_dir: FunctionsDir = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Show the tools of the agents: name, source and arguments."""
    from devall.cli import tools as command

    return command.show(
        command.ToolOptions(
            file=file,
            node=node,
            ex_tools=ex_tools or (),
            variables=var or (),
            vars_file=vars_file,
            env_file=env_file,
            functions_dir=functions_dir,
            as_json=as_json,
            debug=debug,
        ),
        connect=connect,
    )


@tools_app.command("call", epilog=CALL_EXAMPLES)
def tools_call(
    file: File,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tool, as the model knows it.")],
    args: Annotated[str, typer.Option(metavar="JSON", help="The arguments, a JSON object.")] = "{}",
    node: Node = None,
    workspace: WorkspaceDir = None,
    ex_tools: ExTools = None,
    var: Variables = None,
    vars_file: VarsFile = None,
    env_file: EnvFile = None,
    functions_dir: FunctionsDir = None,
    logs_dir: LogsDir = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Call one tool as a node would, and print its result."""
    from devall.cli import tools as command

    return command.call(
        command.ToolOptions(
            file=file,
            node=node,
            ex_tools=ex_tools or (),
            variables=var or (),
            vars_file=vars_file,
            env_file=env_file,
            functions_dir=functions_dir,
            logs_dir=logs_dir,
            as_json=as_json,
            debug=debug,
        ),
        name,
        args,
        workspace,
    )


@tools_app.command("serve", epilog=SERVE_EXAMPLES)
def tools_serve(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A workflow whose tools are offered.")
    ] = None,
    node: Node = None,
    functions: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B:All", help="Functions, as a workflow names them."),
    ] = None,
    ex_tools: ExTools = None,
    file_tools: Annotated[
        bool, typer.Option("--file-tools/--no-file-tools", help="Tools for files.")
    ] = True,
    workspace: WorkspaceDir = None,
    stdio: Stdio = False,
    http: Http = False,
    host: Host = None,
    port: Port = None,
    token_env: TokenEnv = None,
    allow_host: AllowHost = None,
    var: Variables = None,
    vars_file: VarsFile = None,
    env_file: EnvFile = None,
    functions_dir: FunctionsDir = None,
    logs_dir: LogsDir = None,
    debug: Debug = False,
) -> int:
    """Offer tools to others, by the MCP protocol."""
    from devall.cli import mcp as command

    return command.serve_tools(
        command.ToolServer(
            file=file,
            node=node,
            functions=functions or (),
            ex_tools=ex_tools or (),
            file_tools=file_tools,
            workspace=workspace,
            variables=var or (),
            vars_file=vars_file,
            env_file=env_file,
            functions_dir=functions_dir,
            logs_dir=logs_dir,
            debug=debug,
        ),
        command.Door(stdio, http, host, port, token_env, allow_host or ()),
    )


@mcp_app.command("serve", epilog=WORKFLOWS_EXAMPLES)
def mcp_serve(
    files: Files,
    stdio: Stdio = False,
    http: Http = False,
    host: Host = None,
    port: Port = None,
    token_env: TokenEnv = None,
    allow_host: AllowHost = None,
    model: Models = None,
    provider: Providers = None,
    ex_tools: ExTools = None,
    var: Variables = None,
    vars_file: VarsFile = None,
    env_file: EnvFile = None,
    functions_dir: FunctionsDir = None,
    logs_dir: LogsDir = None,
    debug: Debug = False,
) -> int:
    """Offer workflows to others, each as one tool, by the MCP protocol."""
    from devall.cli import mcp as command

    return command.serve_workflows(
        command.WorkflowServer(
            files=files,
            models=model or (),
            providers=provider or (),
            ex_tools=ex_tools or (),
            variables=var or (),
            vars_file=vars_file,
            env_file=env_file,
            functions_dir=functions_dir,
            logs_dir=logs_dir,
            debug=debug,
        ),
        command.Door(stdio, http, host, port, token_env, allow_host or ()),
    )


@mcp_app.command("login", epilog=LOGIN_EXAMPLES)
def mcp_login(
    file: File,
    node: Node = None,
    device: Device = False,
    var: Variables = None,
    vars_file: VarsFile = None,
    env_file: EnvFile = None,
    functions_dir: FunctionsDir = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Log in to the servers of a workflow that ask for it (`auth: oauth`).

    A browser opens the page to log in at. Where there is none, or with `--device`, a code is
    shown that is typed on another device, if the server knows that way.
    """
    from devall.cli import login as command
    from devall.cli.tools import ToolOptions

    return command.execute(
        ToolOptions(
            file=file,
            node=node,
            variables=var or (),
            vars_file=vars_file,
            env_file=env_file,
            functions_dir=functions_dir,
            as_json=as_json,
            debug=debug,
        ),
        by_code=device,
    )
