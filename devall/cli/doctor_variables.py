"""Variables that are set and that no agent takes anything from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from devall.models.lookalikes import LOOK_ALIKES
from devall.models.routes import BASE_URL, PROVIDERS, Provider


def unread(
    environ: Mapping[str, str],
    used: Collection[str],
    names: Collection[str],
    providers: Mapping[str, Provider] = PROVIDERS,
) -> Iterator[str]:
    """What to say of variables that are set and change nothing; never their values.

    Args:
        environ: The environment, `.env` included.
        used: Variables that agents or the file take something from.
        names: Providers of the agents.
        providers: All providers.
    """
    yield from misnamed({n: value for n, value in environ.items() if n not in used})
    values = {environ[name] for name in used if name in environ}
    wanted = [known for provider, known in providers.items() if provider in names]
    told = set(used)
    for known in wanted:
        for group in (known.key_names, known.url_names, known.version_names):
            for name in group:
                if environ.get(name) and environ[name] not in values and name not in told:
                    told.add(name)
                    yield f"{name} is set, and no agent uses it{_since(group, used)}"
    read = {name for known in wanted for name in known.url_names} | {BASE_URL}
    for provider, known in providers.items():
        for name in known.url_names:
            if environ.get(name) and name not in told | read:
                told.add(name)
                yield f"{name} is set, and no agent uses provider {provider}"


def misnamed(environ: Mapping[str, str]) -> list[str]:
    """What to say of variables that are set under a name that nothing reads."""
    return [
        f"{name} is set, and nothing reads it: {right} is what is read"
        for name, right in LOOK_ALIKES.items()
        if environ.get(name)
    ]


def _since(group: Collection[str], used: Collection[str]) -> str:
    first = next((name for name in group if name in used), "")
    return f": {first} comes first" if first else ""
