"""What a research finds, and a report on it that is written chapter by chapter.

Both are files of the workspace (`deep_research/search_results.json` and `deep_research/report.md`),
changed under a lock, so that calls at the same time lose nothing of each other. The PDF takes the
extra `report` (`pip install devall[report]`); `DEVALL_REPORT_FONTS` names font files, or folders
with some, that are looked at before those of the machine (separated like PATH).
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, cast

from pydantic import Field

from devall.core.errors import ToolFailed
from devall.core.messages import Part, TextPart
from devall.tools.context import ToolContext
from devall.workspace import Place

from ._report import Report
from ._run import workspace_of

_RESULTS = "deep_research/search_results.json"
_REPORT = "deep_research/report.md"
_PDF = "deep_research/report.pdf"

Url = Annotated[str, Field(description="The result's address.")]
ChapterTitle = Annotated[
    str,
    Field(
        description="The chapter's title, or titles from the outside in, such as"
        " `Intro/Background`; write \\/ for a slash within a title."
    ),
]
ChapterContent = Annotated[str, Field(description="Markdown, without the chapter's own heading.")]


def search_save_result(
    url: Url,
    title: Annotated[str, Field(description="The page's title.")],
    abs: Annotated[str, Field(description="What it says, in a few sentences.")],  # noqa: A002
    detail: Annotated[str, Field(description="All of it that is of use.")],
    *,
    _context: ToolContext,
) -> str:
    """Keep a search result, or replace the one of the same address; its highlights stay."""
    with _results(_context) as results:
        keys = results.get(url, {}).get("highlight_keys", [])
        results[url] = {"title": title, "abs": abs, "detail": detail, "highlight_keys": keys}
        return f"kept: {url} ({len(results)} results in all)"


def search_load_all(*, _context: ToolContext) -> str:
    """List all search results that were kept, without their details."""
    with _results(_context) as results:
        shown = [_shown(url, result, detail=False) for url, result in results.items()]
    return "\n\n".join(shown) or "no search results were kept so far"


def search_load_by_url(url: Url, *, _context: ToolContext) -> str:
    """Read a search result that was kept, with its details."""
    with _results(_context) as results:
        return _shown(url, _known(results, url), detail=True)


def search_high_light_key(
    url: Url,
    keys: Annotated[
        Sequence[str], Field(min_length=1, description="Words or facts of it that matter most.")
    ],
    *,
    _context: ToolContext,
) -> str:
    """Mark what matters most in a search result that was kept."""
    with _results(_context) as results:
        known = _known(results, url)
        known["highlight_keys"] = list(dict.fromkeys([*known.get("highlight_keys", []), *keys]))
        return f"highlights of {url}: {', '.join(known['highlight_keys'])}"


def report_read(*, _context: ToolContext) -> str:
    """Read the whole report."""
    with _report(_context) as report:
        return report.text or "the report is empty"


def report_read_chapter(title: ChapterTitle, *, _context: ToolContext) -> str:
    """Read a chapter of the report, with the chapters in it."""
    with _report(_context) as report:
        chapter = report.find(title)
        text = "\n".join(report.lines[chapter.start + 1 : chapter.end]).strip("\n")
    return text or f"chapter {title!r} has no text yet"


def report_outline(*, _context: ToolContext) -> str:
    """List the headings of the report."""
    with _report(_context) as report:
        lines = [f"{'#' * chapter.level} {chapter.title}" for chapter in report.chapters()]
    return "\n".join(lines) or "the report has no chapters yet"


def report_create_chapter(
    title: Annotated[
        str,
        Field(
            description="Title of the new chapter. `Parent/New` puts it into another,"
            " `Previous|New` right behind another, `|New` before all others; write \\/ or \\|"
            " for such a character within a title."
        ),
    ],
    level: Annotated[int, Field(ge=1, le=6, description="Level of its heading.")],
    content: ChapterContent,
    *,
    _context: ToolContext,
) -> str:
    """Add a chapter to the report, at its end unless the title says where."""
    with _report(_context) as report:
        path = report.create(title, level, content)
    return f"chapter {path!r} was created at level {level}"


def report_rewrite_chapter(
    title: ChapterTitle, content: ChapterContent, *, _context: ToolContext
) -> str:
    """Replace the text of a chapter, and the chapters in it; its heading stays."""
    with _report(_context) as report:
        report.rewrite(title, content)
    return f"chapter {title!r} was rewritten"


def report_continue_chapter(
    title: ChapterTitle, content: ChapterContent, *, _context: ToolContext
) -> str:
    """Add to the end of a chapter."""
    with _report(_context) as report:
        report.extend(title, content)
    return f"chapter {title!r} was continued"


def report_reorder_chapters(
    new_order: Annotated[
        Sequence[str],
        Field(min_length=2, description="Titles of the chapters in their new order."),
    ],
    *,
    _context: ToolContext,
) -> str:
    """Change the order of chapters; those that are not named stay where they are."""
    with _report(_context) as report:
        report.reorder(new_order)
    return "the chapters were reordered"


def report_del_chapter(title: ChapterTitle, *, _context: ToolContext) -> str:
    """Delete a chapter, and the chapters in it."""
    with _report(_context) as report:
        report.delete(title)
    return f"chapter {title!r} was deleted"


def report_export_pdf(*, _context: ToolContext) -> list[Part]:
    """Make a PDF of the report."""
    workspace = workspace_of(_context)
    with _report(_context) as report:
        text = report.text
    if not text:
        raise ToolFailed("the report is empty", hint="write it with report_create_chapter first")
    try:
        from ._pdf import pdf_of
    except ImportError as error:
        raise ToolFailed(
            "a PDF takes the package fpdf2, which is not installed",
            hint="this is for the user: `pip install devall[report]`",
        ) from error
    document = pdf_of(text, workspace)
    with workspace.at(_PDF, make_parents=True) as place, place.locked():
        place.write(document.data)
    notes = "".join(f"\n[{note}]" for note in document.notes)
    said = TextPart(f"{_PDF}: {document.pages} pages, {len(document.data)} bytes{notes}")
    return [said, _context.attach(document.data, "application/pdf", "report.pdf")]


@contextmanager
def _results(context: ToolContext) -> Generator[dict[str, dict[str, Any]]]:
    """The kept results; what the block changes is written."""
    with _file(context, _RESULTS) as (place, text):
        try:
            results: Any = json.loads(text or "{}")
        except ValueError as error:
            raise ToolFailed(f"{_RESULTS} is no JSON: {error}", hint=_DAMAGED) from error
        if not isinstance(results, dict):
            raise ToolFailed(f"{_RESULTS} holds no object", hint=_DAMAGED)
        yield cast("dict[str, dict[str, Any]]", results)
        new = json.dumps(results, ensure_ascii=False, indent=2) + "\n"
        if results and new != text:
            place.write(new.encode("utf-8", "replace"))


_DAMAGED = "something else has written to it: mend it with the file tools, or delete it"


@contextmanager
def _report(context: ToolContext) -> Generator[Report]:
    """The report; what the block changes is written."""
    with _file(context, _REPORT) as (place, text):
        report = Report(text)
        before = report.text
        yield report
        if report.text != before:
            place.write(report.text.encode("utf-8", "replace"))


@contextmanager
def _file(context: ToolContext, path: str) -> Generator[tuple[Place, str]]:
    """A file of the workspace and its text, for one caller at a time."""
    with workspace_of(context).at(path, make_parents=True) as place, place.locked():
        text = ""
        if place.stat() is not None:
            with place.open() as file:
                text = file.read().decode("utf-8", "replace")
        yield place, text


def _known(results: dict[str, dict[str, Any]], url: str) -> dict[str, Any]:
    if url not in results:
        known = ", ".join(list(results)[:20]) or "none"
        raise ToolFailed(f"no result of {url!r} was kept", hint=f"kept: {known}")
    return results[url]


def _shown(url: str, result: dict[str, Any], *, detail: bool) -> str:
    lines = [f"URL: {url}", f"Title: {result.get('title', '')}"]
    if keys := result.get("highlight_keys"):
        lines.append(f"Highlights: {', '.join(keys)}")
    lines.append(f"Abstract: {result.get('abs', '')}")
    if detail:
        lines.append(f"Detail: {result.get('detail', '')}")
    return "\n".join(lines)
