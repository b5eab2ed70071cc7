"""Which providers there are, and where a choice of model leads."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qsl, urlsplit

from devall.core.errors import SetupError
from devall.models.base import ModelChoice
from devall.models.lookalikes import meant
from devall.models.urls import is_http, is_loopback, shown_url

WITHOUT_KEY = "or run with the model that needs no key: `--provider local --model smollm2`"
"""The end of every hint about a key that is missing."""

NO_KEY = "none"
"""What is sent where no key was given and none is needed: the client wants one."""

AZURE_VERSION = "2024-10-21"
"""The version of Azure's API where nothing else is said: the last one of the dated kind."""

API_KEY, BASE_URL = "API_KEY", "BASE_URL"
"""The variables that hold for every provider."""

Kind = Literal["openai", "azure", "anthropic", "local"]


@dataclass(frozen=True, slots=True)
class Provider:
    """Where a provider's models are, and how they are spoken to."""

    base_url: str
    """Where nothing else is said; empty: it must be said, or the model is in this process."""
    key_names: tuple[str, ...] = (API_KEY,)
    """Variables of the environment that may hold the key, the first that is set."""
    url_names: tuple[str, ...] = (BASE_URL,)
    """Variables of the environment that may hold the URL, the first that is set."""
    tool_mode: str = "native"
    protocols: tuple[str, ...] = ("chat", "responses")
    images: bool | None = None
    """Whether its models take images; None = it is found out."""
    kind: Kind = "openai"
    """How it is spoken to."""
    needs_key: bool = True
    """Whether an endpoint on another machine wants a key."""
    own_first: bool = False
    """Whether its own variables stand before API_KEY and BASE_URL: where one of them is set,
    those two, which may belong to another provider, are not looked at."""
    version_names: tuple[str, ...] = ()
    """Variables that may hold the version of the API."""
    extra: str = ""
    """The extra of devall that it needs."""
    package: str = ""
    """What that extra installs."""
    about: str = ""
    """What it is, in a few words."""


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(
        "https://api.openai.com/v1",
        (API_KEY, "OPENAI_API_KEY"),
        (BASE_URL, "OPENAI_BASE_URL"),
        about="OpenAI, and every server that speaks its API (vLLM, OpenRouter, DeepSeek, ...)",
    ),
    "gemini": Provider(
        "https://generativelanguage.googleapis.com/v1beta/openai/",
        (API_KEY, "GEMINI_API_KEY", "GOOGLE_API_KEY"),
        (BASE_URL, "GEMINI_BASE_URL"),
        protocols=("chat",),
        about="Google's Gemini, by its OpenAI-compatible endpoint",
    ),
    "anthropic": Provider(
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY", API_KEY),
        ("ANTHROPIC_BASE_URL", BASE_URL),
        kind="anthropic",  # the protocol is of no account: its own is spoken
        own_first=True,
        extra="anthropic",
        package="anthropic",
        about="Anthropic's Claude, by its own Messages API",
    ),
    "azure": Provider(
        "",
        ("AZURE_OPENAI_API_KEY", API_KEY),
        ("AZURE_OPENAI_ENDPOINT", BASE_URL),
        kind="azure",
        own_first=True,
        version_names=("AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION"),
        about="Azure OpenAI: `name` is the deployment's",
    ),
    "ollama": Provider(
        "http://localhost:11434/v1",
        ("OLLAMA_API_KEY", API_KEY),
        ("OLLAMA_BASE_URL", "OLLAMA_HOST", BASE_URL),
        needs_key=False,
        own_first=True,
        about="models of Ollama, as a rule on this machine; needs no key",
    ),
    # The protocol is of no account in this process: a file that asks for one still runs.
    "local": Provider(
        "",
        (),
        (),
        tool_mode="json_schema",
        images=False,
        kind="local",
        needs_key=False,
        extra="local",
        package="xllamacpp",
        about="a GGUF file in this process; needs no key",
    ),
}
"""The providers that ship with the package, by the name a workflow gives."""


def provider_of(name: str, providers: Mapping[str, Provider] = PROVIDERS) -> Provider:
    """The provider of that name.

    Raises:
        SetupError: there is none; the nearest names are in the hint.
    """
    if name in providers:
        return providers[name]
    near = difflib.get_close_matches(name, providers, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise SetupError(
        f"unknown provider {name}", hint=f"{hint}known providers: {', '.join(providers)}"
    )


@dataclass(frozen=True, slots=True)
class Route:
    """Where a choice of model leads, and what decided it."""

    url: str = ""
    """The endpoint; empty: in this process."""
    url_source: str = ""
    """What the URL came from: `base_url` (of the node), a variable's name, or empty: the
    provider's own."""
    key: str = field(default="", repr=False)
    """Empty: there is none."""
    key_source: str = ""
    """What the key came from: `api_key` (of the node), a variable's name, or empty."""
    version: str = ""
    """Of the API, for providers that have versions."""
    version_source: str = ""
    """What it came from: `api-version` (of the URL), `api_version` (of the node), a variable's
    name, or empty: it is ours."""

    @property
    def shown(self) -> str:
        """The URL without what may be secret in it."""
        return shown_url(self.url)

    @property
    def key_words(self) -> str:
        """Where the key came from, in words; empty: there is none."""
        return _in_words(self.key_source)


def _in_words(source: str) -> str:
    if source == "api_key":
        return "`api_key` of the node"
    return f"the variable {source}" if source else ""


def route_of(choice: ModelChoice, provider: Provider, environ: Mapping[str, str]) -> Route:
    """The endpoint and key that a choice leads to.

    Raises:
        SetupError: the URL or the key is missing, or the URL is none.
    """
    route = find_route(choice, provider, environ)
    if provider.kind == "local":
        return route
    check_url(choice, provider, route)
    if not route.key and provider.needs_key and not is_loopback(route.url):
        raise _missing_key(choice, provider, route.shown, environ)
    return route


def find_route(choice: ModelChoice, provider: Provider, environ: Mapping[str, str]) -> Route:
    """The endpoint and key that a choice leads to, be they of use or not."""
    if provider.kind == "local":
        return Route()
    known = {name: value for name, value in environ.items() if value}
    if provider.own_first:
        # A key goes to the endpoint that it was set for, and to no other provider's.
        own = {*provider.key_names, *provider.url_names} - {API_KEY, BASE_URL}
        wants_none = choice.base_url and not provider.needs_key
        if wants_none or own & known.keys():
            known = {n: value for n, value in known.items() if n not in {API_KEY, BASE_URL}}
    url, url_source = _first("base_url", choice.base_url, provider.url_names, known)
    key, key_source = _first("api_key", choice.api_key, provider.key_names, known)
    version, version_source = _version(choice, provider, url, environ)
    if url_source == "OLLAMA_HOST":
        url = _of_ollama_host(url)
    return Route(url or provider.base_url, url_source, key, key_source, version, version_source)


def check_url(choice: ModelChoice, provider: Provider, route: Route) -> None:
    """Make sure that there is a URL, and that it is one.

    Raises:
        SetupError: there is none, or it is none.
    """
    if not route.url:
        raise SetupError(
            f"no endpoint for provider {choice.provider} (model {choice.name}): "
            f"the variable {provider.url_names[0]} is not set",
            hint=f"set {provider.url_names[0]}, or `base_url` of the node, to the resource's URL",
        )
    if not is_http(route.url):
        where = (
            f"the variable {route.url_source}" if route.url_source != "base_url" else "`base_url`"
        )
        raise SetupError(
            f"{where} of model {choice.name} is no http(s) URL: {route.url}",
            hint="a URL begins with http:// or https://, and as a rule ends in /v1",
        )


def _first(
    own: str, given: str | None, names: tuple[str, ...], environ: Mapping[str, str]
) -> tuple[str, str]:
    """The node's own value, else that of the first variable that is set; and which it was."""
    if given:
        return given, own
    for name in names:
        if value := environ.get(name):
            return value, name
    return "", ""


def _version(
    choice: ModelChoice, provider: Provider, url: str, environ: Mapping[str, str]
) -> tuple[str, str]:
    """The version of the API, and what it came from: the URL's query stands before all else."""
    if not provider.version_names:
        return "", ""
    if in_url := dict(parse_qsl(urlsplit(url).query)).get("api-version"):
        return in_url, "api-version"
    found = _first("api_version", choice.api_version, provider.version_names, environ)
    return found if found[0] else (AZURE_VERSION, "")


def _of_ollama_host(host: str) -> str:
    """The URL of a server as Ollama's own variable names it: `0.0.0.0`, `host:port`, a URL."""
    has_scheme = "://" in host
    parts = urlsplit(host if has_scheme else f"http://{host}")
    name = parts.hostname or ""
    if name in {"", "0.0.0.0", "::"}:  # noqa: S104 - where it listens, not where we do
        name = "127.0.0.1"
    name = f"[{name}]" if ":" in name else name
    port = parts.port or (11434 if not has_scheme else None)
    return f"{parts.scheme}://{name}{f':{port}' if port else ''}{parts.path.rstrip('/') or '/v1'}"


def _missing_key(
    choice: ModelChoice, provider: Provider, url: str, environ: Mapping[str, str]
) -> SetupError:
    first, *others = provider.key_names
    also = f" (or {', '.join(others)})" if others else ""
    alike = next(meant(environ, *provider.key_names), "")
    told = f"{alike} is set, and is not what is read; " if alike else ""
    return SetupError(
        f"no key for provider {choice.provider} (model {choice.name} at {url}): "
        f"the variable {first} is not set",
        hint=f"{told}set {first}{also} in the environment or in a .env file beside the workflow, "
        + WITHOUT_KEY,
    )
