"""Searching the web and reading its pages.

Without any key, searches go through the engines that `ddgs` knows, and pages are fetched from
here and reduced to their text by `trafilatura` (extra `web`: `pip install devall[web]`).
Settings, by environment variables of devall or of the workflow's `.env`:

- `SERPER_API_KEY` (or `SERPER_DEV_API_KEY`): searches go to Serper; `SERPER_BASE_URL` is another
  address that answers like it.
- `JINA_API_KEY`: pages are read through Jina's reader; `JINA_BASE_URL` is another address of one.
- `WEB_SEARCH_BACKEND`: which engines ddgs asks, such as `duckduckgo,brave`; default `auto`.
- `DDGS_PROXY`: the proxy that ddgs goes through; `SSL_CERT_FILE`: the certificates it trusts.

Any http or https address can be read, those of the own machine and network included: where an
agent must not reach them, do not give it these tools, or run devall where they are not reached.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

from pydantic import Field

from devall.core.errors import ToolFailed
from devall.core.messages import JsonValue, MediaPart
from devall.tools.context import ToolContext
from devall.tools.results import sniff
from devall.tools.threads import in_thread

from ._http import Answer, fetch, require_web, text_of

_SERPER = "https://google.serper.dev"
_JINA = "https://r.jina.ai"
_ENGINE_SECONDS = 15
_ACCEPT = (
    "text/html,application/xhtml+xml,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.8"
)
_AGENT = "Mozilla/5.0 (compatible; devall)"
_HTML = {"text/html", "application/xhtml+xml"}
_TEXTS = {"application/json", "application/xml", "application/javascript", "application/yaml"}

PageUrl = Annotated[str, Field(description="The page's address, with http:// or https://.")]


async def web_search(
    query: Annotated[str, Field(min_length=1, description="What to search for.")],
    page: Annotated[int, Field(ge=1, le=50, description="Which page of results.")] = 1,
    language: Annotated[
        str, Field(description="Language of the results, such as en, zh-cn, ja.")
    ] = "en",
    country: Annotated[
        str, Field(description="Country to search from, such as us, cn, de.")
    ] = "us",
    *,
    _context: ToolContext,
) -> str:
    """Search the web; each result has a title, an address and a few words of the page.

    read_webpage_content gives a whole page.
    """
    settings = _context.environment
    key = settings.get("SERPER_API_KEY") or settings.get("SERPER_DEV_API_KEY")
    if key:
        base = (settings.get("SERPER_BASE_URL") or _SERPER).rstrip("/")
        asked = {"q": query, "page": page, "hl": language, "gl": country}
        return await _search_serper(base, key, asked)
    region = f"{country}-{language.partition('-')[0]}".lower()
    found = await in_thread(lambda: _search_engines(query, page, region, settings), "devall-search")
    results = [(each.get("title"), each.get("href"), each.get("body")) for each in found]
    return _listed(results) or f"nothing was found for {query!r}"


async def read_webpage_content(url: PageUrl, *, _context: ToolContext) -> str | MediaPart:
    """Read a web page: its text as Markdown; a PDF or an image is shown to you."""
    settings = _context.environment
    key = settings.get("JINA_API_KEY")
    if key:
        require_web(url)
        base = (settings.get("JINA_BASE_URL") or _JINA).rstrip("/")
        answer = await fetch(f"{base}/{url}", headers={"Authorization": f"Bearer {key}"})
        return text_of(answer)
    answer = await fetch(url, headers={"User-Agent": _AGENT, "Accept": _ACCEPT})
    kind = answer.content_type
    if not kind or kind == "application/octet-stream":
        kind = _guessed(answer.body)
    if kind in _HTML:
        return await in_thread(lambda: _readable(answer), "devall-page")
    if kind.startswith("text/") or kind in _TEXTS or kind.endswith(("+json", "+xml")):
        return text_of(answer)
    if kind == "application/pdf" or kind.startswith("image/"):
        return _context.attach(answer.body, kind, answer.url.rstrip("/").rpartition("/")[2])
    raise ToolFailed(
        f"{answer.url} is {kind} ({len(answer.body)} bytes), which cannot be read as a page",
        hint="look for a page that describes it",
    )


async def get_webpage_content(url: PageUrl, *, _context: ToolContext) -> str | MediaPart:
    """Read a web page: its text as Markdown; a PDF or an image is shown to you."""
    return await read_webpage_content(url, _context=_context)


async def _search_serper(base: str, key: str, asked: Mapping[str, JsonValue]) -> str:
    answer = await fetch(f"{base}/search", headers={"X-API-KEY": key}, json=dict(asked))
    try:
        found: JsonValue = json.loads(answer.body)
    except ValueError as error:
        raise ToolFailed(f"{base} answers with something that is no JSON") from error
    if not isinstance(found, dict):
        raise ToolFailed(f"{base} answers with JSON that is no object")
    return _serper_text(cast("dict[str, Any]", found)) or f"nothing was found for {asked['q']!r}"


def _serper_text(found: Mapping[str, Any]) -> str:
    parts: list[str] = []
    if answer := _object(found.get("answerBox")):
        said = answer.get("answer") or answer.get("snippet")
        if said:
            parts.append(f"Answer: {said} {_at(answer.get('link'))}".rstrip())
    if graph := _object(found.get("knowledgeGraph")):
        head = ", ".join(str(graph[name]) for name in ("title", "type") if graph.get(name))
        lines = [f"{head}: {graph.get('description', '')} {_at(graph.get('descriptionLink'))}"]
        lines += [f"- {name}: {value}" for name, value in _object(graph.get("attributes")).items()]
        parts.append("\n".join(line.rstrip(" :") for line in lines))
    pages = [_object(each) for each in _list(found.get("organic"))]
    parts.append(_listed([(p.get("title"), p.get("link"), p.get("snippet")) for p in pages]))
    asked = [_object(each) for each in _list(found.get("peopleAlsoAsk"))]
    if asked:
        lines = [f"- {a.get('question')} {a.get('snippet')} {_at(a.get('link'))}" for a in asked]
        parts.append("People also ask:\n" + "\n".join(line.rstrip() for line in lines))
    related = [_object(each).get("query") for each in _list(found.get("relatedSearches"))]
    if any(related):
        parts.append("Related searches: " + ", ".join(str(each) for each in related if each))
    return "\n\n".join(part for part in parts if part)


def _search_engines(
    query: str, page: int, region: str, settings: Mapping[str, str]
) -> list[dict[str, Any]]:
    try:
        from ddgs.ddgs import DDGS
        from ddgs.exceptions import DDGSException
    except ImportError as error:
        raise _missing("a search without a key of Serper's", "ddgs") from error
    engines = DDGS(
        proxy=settings.get("DDGS_PROXY") or None,
        timeout=_ENGINE_SECONDS,
        verify=settings.get("SSL_CERT_FILE") or True,
    )
    try:
        backend = settings.get("WEB_SEARCH_BACKEND") or "auto"
        return engines.text(query, region=region, page=page, backend=backend)
    except DDGSException as error:
        if "No results" in str(error):
            return []
        raise ToolFailed(
            f"no search engine could be asked: {error}",
            hint="try again later; the user can set SERPER_API_KEY for another engine",
        ) from error


def _readable(answer: Answer) -> str:
    """The text of a page as Markdown, its title and address before it."""
    try:
        import trafilatura
    except ImportError as error:
        raise _missing("reading a page without a key of Jina's", "trafilatura") from error
    # Bytes tell their encoding in a meta element, where the server has not told it.
    tree = trafilatura.load_html(text_of(answer) if answer.charset else answer.body)
    if tree is None:
        raise ToolFailed(f"{answer.url} is no HTML that can be read")
    about = trafilatura.extract_metadata(tree)
    text = trafilatura.extract(
        tree,
        url=answer.url,
        output_format="markdown",
        include_links=True,
        include_tables=True,
        include_comments=False,
        favor_recall=True,
    )
    text = (text or trafilatura.html2txt(tree) or "").strip()
    if not text:
        raise ToolFailed(
            f"{answer.url} holds no text: it may be made by scripts in a browser",
            hint="look for another page",
        )
    head = [f"Title: {about.title}"] if about.title else []
    head.append(f"URL: {answer.url}")
    if about.date:
        head.append(f"Date: {about.date}")
    return "\n".join(head) + "\n\n" + text


def _guessed(body: bytes) -> str:
    """The kind of a body that its server does not tell."""
    if b"<html" in body[:2000].lower() or b"<!doctype html" in body[:200].lower():
        return "text/html"
    kind = sniff(body)
    if kind == "application/octet-stream" and b"\0" not in body[:8192]:
        return "text/plain"
    return kind


def _listed(results: Sequence[tuple[Any, Any, Any]]) -> str:
    return "\n\n".join(
        "\n".join([f"{number}. {title or link}", f"   {link}", *([f"   {words}"] if words else [])])
        for number, (title, link, words) in enumerate(results, 1)
    )


def _at(link: object) -> str:
    return f"({link})" if link else ""


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _missing(what: str, package: str) -> ToolFailed:
    return ToolFailed(
        f"{what} needs the package {package}, which is not installed",
        hint="this is for the user: `pip install devall[web]`",
    )
