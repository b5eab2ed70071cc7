"""`devall providers`: who there is, where, and which variables they read."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli.failures import Reporter, to_line
from devall.cli.streams import write_answer
from devall.core.errors import UsageError
from devall.core.messages import JsonValue

if TYPE_CHECKING:
    from devall.loading.environment import Environment
    from devall.models.routes import Provider


def execute(env_file: Path | None, *, as_json: bool = False, debug: bool = False) -> int:
    """Print the providers; the exit code."""

    def work() -> int:
        from devall.models.routes import PROVIDERS

        environment = environment_here(env_file)
        if as_json:
            told = [_object(name, each, environment) for name, each in PROVIDERS.items()]
            write_answer(to_line({"providers": told}))
        else:
            lines = [
                line for name, each in PROVIDERS.items() for line in _lines(name, each, environment)
            ]
            write_answer("\n".join(lines) + "\n")
        return 0

    return Reporter(as_json, debug).guard(work)


def environment_here(env_file: Path | None) -> Environment:
    """The environment, and the `.env` of the working directory or the file that is named.

    Raises:
        UsageError: the file is not there.
    """
    from devall.loading.environment import read_environment

    if env_file is not None and not env_file.is_file():
        raise UsageError(f"--env-file {env_file}: there is no such file")
    return read_environment(None, env_file)


def is_installed(provider: Provider) -> bool:
    """Whether the package is there that a provider needs."""
    return not provider.package or importlib.util.find_spec(provider.package) is not None


def _object(name: str, provider: Provider, environment: Environment) -> dict[str, JsonValue]:
    return {
        "name": name,
        "about": provider.about,
        "endpoint": provider.base_url or None,
        "keys": _variables(provider.key_names, environment),
        "urls": _variables(provider.url_names, environment),
        "versions": _variables(provider.version_names, environment),
        "needs_key": provider.needs_key,
        "protocols": list(provider.protocols) if provider.kind in {"openai", "azure"} else [],
        "extra": provider.extra or None,
        "is_installed": is_installed(provider),
    }


def _variables(names: tuple[str, ...], environment: Environment) -> list[JsonValue]:
    return [
        {
            "name": name,
            "is_set": bool(environment.values.get(name)),
            "where": environment.origin(name) if environment.values.get(name) else None,
        }
        for name in names
    ]


def _lines(name: str, provider: Provider, environment: Environment) -> Iterator[str]:
    yield f"{name:10} {provider.about}"
    if provider.kind != "local":
        yield f"  endpoint {provider.base_url or 'must be given'}"
    groups = (
        ("key", provider.key_names),
        ("url", provider.url_names),
        ("version", provider.version_names),
    )
    for what, names in groups:
        if names:
            yield f"  {what:8} {', '.join(_shown(each, environment) for each in names)}"
    if not is_installed(provider):
        yield f"  needs    pip install devall[{provider.extra}]"


def _shown(name: str, environment: Environment) -> str:
    return f"{name} (set in {environment.origin(name)})" if environment.values.get(name) else name
