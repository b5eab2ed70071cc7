"""What `devall providers` and `devall doctor` print with `--json`."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from devall.cli.outputs import ErrorOutput, closed


@closed
class VariableOutput(TypedDict):
    """A variable that a provider reads."""

    name: str
    is_set: bool
    where: str | None
    """`the environment`, or the `.env` file that sets it; null: it is not set."""


@closed
class ProviderOutput(TypedDict):
    """A provider."""

    name: str
    about: str
    endpoint: str | None
    """Where its models are if nothing else is said; null: it must be said, or they are in process."""
    keys: list[VariableOutput]
    """Variables that may hold the key, the first that is set."""
    urls: list[VariableOutput]
    """Variables that may hold the URL, the first that is set."""
    versions: list[VariableOutput]
    """Variables that may hold the version of its API."""
    needs_key: bool
    protocols: list[str]
    extra: str | None
    """The extra of devall that it needs."""
    is_installed: bool
    """Whether what it needs is installed."""


@closed
class ProvidersOutput(TypedDict):
    """The providers that there are."""

    providers: list[ProviderOutput]


@closed
class ValueOutput(TypedDict):
    """A value, and where it came from."""

    value: str | None
    source: str


@closed
class KeyOutput(TypedDict):
    """Where a key came from; never the key."""

    is_set: bool
    variable: str | None
    """The variable that holds it; null: none does."""
    source: str


@closed
class AgentOutput(TypedDict):
    """What an agent would really use."""

    node: str
    """Its id, `S/X` in a subgraph."""
    provider: ValueOutput
    model: ValueOutput
    endpoint: ValueOutput
    """null: in this process."""
    key: KeyOutput
    api_version: ValueOutput | None
    """null: the provider has no versions."""
    protocol: str
    error: ErrorOutput | None
    """Why its model cannot be had."""


@closed
class CheckOutput(TypedDict):
    """Something that this machine has, or not."""

    name: str
    state: Literal["ok", "missing", "wrong"]
    needed: bool
    """Whether something does not work without it."""
    about: str


@closed
class EndpointOutput(TypedDict):
    """An endpoint that was tried."""

    endpoint: str
    provider: str
    nodes: list[str]
    seconds: float
    by: Literal["models", "token"] | None
    """`models`: it listed them; `token`: the model wrote one; null: it did not answer so."""
    notes: list[str]
    error: ErrorOutput | None


@closed
class DoctorOutput(TypedDict):
    """What a workflow would really use, and what is missing here."""

    exit_code: int
    workflow: str | None
    agents: list[AgentOutput]
    endpoints: list[EndpointOutput] | None
    """null: none was tried."""
    warnings: list[str]
    checks: list[CheckOutput]
