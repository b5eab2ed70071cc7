"""`devall doctor`: which endpoint and model a workflow would really use, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli import options as parsing
from devall.cli.doctor_agents import Agent, Tried, agents_of, tried, warnings_of
from devall.cli.doctor_checks import Check, checks
from devall.cli.doctor_variables import misnamed
from devall.cli.failures import Reporter, to_line
from devall.cli.inputs import gather_variables, load, logs_folder, nodes_of
from devall.cli.interruption import Interruption
from devall.cli.providers import environment_here
from devall.cli.streams import one_line, write_answer, write_note
from devall.cli.words import duration
from devall.core.errors import DevallError

if TYPE_CHECKING:
    from devall.loading.loader import LoadedWorkflow
    from devall.telemetry.redaction import Redactor

_MISSING = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorOptions:
    """The options of `devall doctor`, as they were written."""

    file: Path | None = None
    connect: bool = False
    variables: Sequence[str] = ()
    vars_file: Path | None = None
    env_file: Path | None = None
    functions_dir: Path | None = None
    models: Sequence[str] = ()
    providers: Sequence[str] = ()
    logs_dir: Path | None = None
    as_json: bool = False
    debug: bool = False


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found."""

    workflow: Path | None
    agents: Sequence[Agent]
    endpoints: Sequence[Tried] | None
    warnings: Sequence[str]
    checks: Sequence[Check]

    @property
    def exit_code(self) -> int:
        """0; 4 if something is missing that is needed."""
        is_bad = (
            any(agent.error for agent in self.agents)
            or any(each.reached.error for each in self.endpoints or ())
            or any(check.is_bad for check in self.checks)
        )
        return _MISSING if is_bad else 0


def execute(options: DoctorOptions) -> int:
    """Look at everything and print what was found; the exit code."""
    file = str(options.file or "")

    def begin() -> int:
        if options.file is None:
            from devall.telemetry.redaction import Redactor, environment_secrets

            environment = environment_here(options.env_file)
            redactor = Redactor(environment_secrets(environment.values))
            return _conclude(options, None, redactor)
        variables = gather_variables(options.vars_file, options.variables)
        loaded = load(options.file, variables, options.env_file, options.functions_dir)
        from devall.cli.bound import redactor_for

        redactor = redactor_for(loaded)
        reporter = Reporter(options.as_json, options.debug, file, redactor)
        return reporter.guard(lambda: _conclude(options, loaded, redactor))

    return Reporter(options.as_json, options.debug, file).guard(begin)


def _conclude(options: DoctorOptions, loaded: LoadedWorkflow | None, redactor: Redactor) -> int:
    found = _examined(options, loaded)
    if options.as_json:
        told = {
            "exit_code": found.exit_code,
            "workflow": str(found.workflow) if found.workflow else None,
            "agents": [agent.to_json() for agent in found.agents],
            "endpoints": None
            if found.endpoints is None
            else [each.to_json() for each in found.endpoints],
            "warnings": list(found.warnings),
            "checks": [check.to_json() for check in found.checks],
        }
        write_answer(to_line(redactor.value(told)))
    else:
        write_answer(redactor.text("\n".join(_lines(found))) + "\n")
    return found.exit_code


def _examined(options: DoctorOptions, loaded: LoadedWorkflow | None) -> Examination:
    logs = logs_folder(options.logs_dir)
    if loaded is None:
        warnings = misnamed(environment_here(options.env_file).values)
        return Examination(None, (), None, warnings, list(checks(logs, None)))
    from devall.nodes.crew import Overrides

    nodes = nodes_of(loaded, "agent")
    overrides = Overrides(
        parsing.parse_choices(options.models, nodes, "--model"),
        parsing.parse_choices(options.providers, nodes, "--provider"),
    )
    environ = loaded.environment.values
    agents = agents_of(loaded, overrides)
    endpoints = Interruption(write_note).run(tried(agents, environ)) if options.connect else None
    warnings = [str(each) for each in loaded.environment.warnings]
    return Examination(
        options.file,
        agents,
        endpoints,
        [*warnings, *warnings_of(agents, environ)],
        list(checks(logs, loaded.root)),
    )


def _lines(found: Examination) -> Iterator[str]:
    for agent in found.agents:
        yield from _agent_lines(agent)
    for each in found.endpoints or ():
        yield from _endpoint_lines(each)
    for warning in found.warnings:
        yield f"warning: {warning}"
    for check in found.checks:
        mark = "needed, " if check.is_bad else ""
        yield f"{check.name:18} {mark}{check.state:8} {one_line(check.about, 300)}"


def _agent_lines(agent: Agent) -> Iterator[str]:
    sources, route = agent.sources, agent.route
    yield agent.node
    yield f"  provider  {agent.choice.provider}  ({sources['provider']})"
    yield f"  model     {agent.choice.name}  ({sources['name']})"
    if route.url:
        yield f"  endpoint  {route.shown}  ({sources['base_url']})"
        yield f"  key       {agent.key_variable or ('given' if route.key else 'none')}  ({sources['api_key']})"
    if route.version:
        yield f"  version   {route.version}  ({sources['api_version']})"
    yield from _error_lines(agent.error)


def _endpoint_lines(each: Tried) -> Iterator[str]:
    reached, first = each.reached, each.agents[0]
    nodes = ", ".join(agent.node for agent in each.agents)
    how = {"models": "it lists its models", "token": "the model has written a token"}
    state = f"FAILED after {duration(reached.seconds)}"
    if reached.error is None:
        state = f"answers in {duration(reached.seconds)}: {how[reached.by]}"
    yield f"{first.route.shown} ({nodes})"
    yield f"  {state}"
    yield from (f"  note: {note}" for note in each.notes)
    yield from _error_lines(reached.error)


def _error_lines(error: DevallError | None) -> Iterator[str]:
    if error is not None:
        yield f"  error: {one_line(str(error), 500)}"
        if error.hint:
            yield f"  hint: {one_line(error.hint, 500)}"
