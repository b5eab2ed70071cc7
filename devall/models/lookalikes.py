"""Variables that are set in the hope that something reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

LOOK_ALIKES: Mapping[str, str] = {
    "OPENAI_API_BASE": "OPENAI_BASE_URL",
    "OPENAI_API_BASE_URL": "OPENAI_BASE_URL",
    "OPENAI_API_HOST": "OPENAI_BASE_URL",
    "OPENAI_API_URL": "OPENAI_BASE_URL",
    "OPENAI_BASE": "OPENAI_BASE_URL",
    "OPENAI_BASEURL": "OPENAI_BASE_URL",
    "OPENAI_ENDPOINT": "OPENAI_BASE_URL",
    "OPENAI_HOST": "OPENAI_BASE_URL",
    "OPENAI_PROXY_URL": "OPENAI_BASE_URL",
    "OPENAI_URL": "OPENAI_BASE_URL",
    "OPENAI_APIKEY": "OPENAI_API_KEY",
    "OPENAI_KEY": "OPENAI_API_KEY",
    "OPENAI_TOKEN": "OPENAI_API_KEY",
    "API_BASE": "BASE_URL",
    "API_BASE_URL": "BASE_URL",
    "API_URL": "BASE_URL",
    "BASEURL": "BASE_URL",
    "LLM_BASE_URL": "BASE_URL",
    "MODEL_BASE_URL": "BASE_URL",
    "APIKEY": "API_KEY",
    "API_TOKEN": "API_KEY",
    "LLM_API_KEY": "API_KEY",
    "ANTHROPIC_API_BASE": "ANTHROPIC_BASE_URL",
    "ANTHROPIC_API_URL": "ANTHROPIC_BASE_URL",
    "ANTHROPIC_AUTH_TOKEN": "ANTHROPIC_API_KEY",
    "ANTHROPIC_KEY": "ANTHROPIC_API_KEY",
    "CLAUDE_API_KEY": "ANTHROPIC_API_KEY",
    "AZURE_API_BASE": "AZURE_OPENAI_ENDPOINT",
    "AZURE_ENDPOINT": "AZURE_OPENAI_ENDPOINT",
    "AZURE_OPENAI_BASE_URL": "AZURE_OPENAI_ENDPOINT",
    "AZURE_API_KEY": "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_KEY": "AZURE_OPENAI_API_KEY",
    "AZURE_API_VERSION": "AZURE_OPENAI_API_VERSION",
    "GEMINI_API_BASE": "GEMINI_BASE_URL",
    "GEMINI_KEY": "GEMINI_API_KEY",
    "GOOGLE_GENAI_API_KEY": "GOOGLE_API_KEY",
    "OLLAMA_API_BASE": "OLLAMA_BASE_URL",
    "OLLAMA_ENDPOINT": "OLLAMA_BASE_URL",
    "OLLAMA_URL": "OLLAMA_BASE_URL",
}
"""Names that other programs read, or that one would guess; and the one that is read here."""


def meant(environ: Mapping[str, str], *names: str) -> Iterator[str]:
    """Variables that are set, where one of these was meant."""
    for name, right in LOOK_ALIKES.items():
        if right in names and environ.get(name):
            yield name
