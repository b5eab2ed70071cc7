from __future__ import annotations

import asyncio
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pypdf import PdfReader

from devall.core.errors import ToolArguments, ToolFailed
from devall.core.messages import MediaPart
from devall.workspace import Workspace
from functions.function_calling._report import Report, escaped

if TYPE_CHECKING:
    from tests.unit.functions.conftest import Tools


@pytest.fixture
def tools(tools_of: Callable[..., Tools]) -> Tools:
    return tools_of("deep_research")


async def saved(tools: Tools, url: str = "http://a/1", **more: str) -> str:
    fields = {"title": "One", "abs": "in short", "detail": "at length"} | more
    return await tools.text("search_save_result", url=url, **fields)


async def written(tools: Tools, *chapters: tuple[str, int, str]) -> None:
    for title, level, content in chapters:
        await tools.result("report_create_chapter", title=title, level=level, content=content)


async def lines(tools: Tools) -> list[str]:
    return [line for line in (await tools.text("report_read")).splitlines() if line]


# Search results


async def test_results_are_kept_listed_and_read_with_their_highlights(tools: Tools):
    assert "no search results" in await tools.text("search_load_all")
    assert await saved(tools) == "kept: http://a/1 (1 results in all)"
    await saved(tools, "http://a/2", title="Two")
    await tools.text("search_high_light_key", url="http://a/1", keys=["width", "age"])
    await tools.text("search_high_light_key", url="http://a/1", keys=["age", "use"])
    assert await tools.text("search_load_all") == (
        "URL: http://a/1\nTitle: One\nHighlights: width, age, use\nAbstract: in short\n\n"
        "URL: http://a/2\nTitle: Two\nAbstract: in short"
    )
    await saved(tools, detail="better")
    read = await tools.text("search_load_by_url", url="http://a/1")
    assert read.endswith("Highlights: width, age, use\nAbstract: in short\nDetail: better")


@pytest.mark.parametrize(
    ("tool", "more"), [("search_load_by_url", {}), ("search_high_light_key", {"keys": ["x"]})]
)
async def test_a_result_that_was_not_kept_is_named_with_those_that_were(
    tools: Tools, tool: str, more: dict[str, list[str]]
):
    await saved(tools)
    with pytest.raises(ToolFailed, match="no result of 'http://b'") as failure:
        await tools.result(tool, url="http://b", **more)
    assert failure.value.hint == "kept: http://a/1"


async def test_calls_at_the_same_time_lose_nothing_of_each_other(tools: Tools):
    async with asyncio.TaskGroup() as group:
        for number in range(15):
            group.create_task(saved(tools, f"http://a/{number}"))
            group.create_task(written(tools, (f"Chapter {number}", 1, f"text {number}")))
    assert (await tools.text("search_load_all")).count("URL: ") == 15
    assert len((await tools.text("report_outline")).splitlines()) == 15
    assert [f"text {n}" in await tools.text("report_read") for n in range(15)] == [True] * 15


@pytest.mark.parametrize("text", ["{", "[]", '"x"'])
async def test_a_damaged_file_is_not_overwritten(tools: Tools, files: Path, text: str):
    place = files / "deep_research/search_results.json"
    place.parent.mkdir()
    place.write_text(text)
    with pytest.raises(ToolFailed, match=r"search_results.json"):
        await saved(tools)
    assert place.read_text() == text


async def test_the_files_can_be_read_by_others(tools: Tools, files: Path):
    await saved(tools, title="Größe")
    await written(tools, ("A", 1, "text"))
    kept = json.loads((files / "deep_research/search_results.json").read_text())
    assert kept["http://a/1"]["title"] == "Größe"
    assert (files / "deep_research/report.md").read_text() == "# A\n\ntext\n"
    names = {each.name for each in (files / "deep_research").iterdir()}
    assert names == {"report.md", "search_results.json"}


async def test_a_link_that_leads_out_is_not_followed(tools: Tools, files: Path, tmp_path: Path):
    (tmp_path / "outside").mkdir()
    (files / "deep_research").symlink_to(tmp_path / "outside")
    with pytest.raises(ToolFailed, match="leads out"):
        await saved(tools)
    assert not list((tmp_path / "outside").iterdir())


# Chapters


async def test_an_empty_report_says_so(tools: Tools):
    assert await tools.text("report_read") == "the report is empty"
    assert await tools.text("report_outline") == "the report has no chapters yet"
    with pytest.raises(ToolFailed, match="there is no chapter 'A'") as failure:
        await tools.result("report_read_chapter", title="A")
    assert failure.value.hint == "the report is empty"
    with pytest.raises(ToolFailed, match="the report is empty"):
        await tools.result("report_export_pdf")


async def test_chapters_go_where_their_titles_say(tools: Tools):
    await written(
        tools,
        ("Body", 1, "b"),
        ("End", 1, "e"),
        ("|Start", 1, "s"),
        ("Body|After", 1, "a"),
        ("Body/Two", 2, "b2"),
        ("Body/|One", 2, "b1"),
        ("Body/One|Half", 2, "b15"),
        ("Body/Two/Deep", 3, "d"),
    )
    assert (await tools.text("report_outline")).splitlines() == [
        "# Start",
        "# Body",
        "## One",
        "## Half",
        "## Two",
        "### Deep",
        "# After",
        "# End",
    ]
    assert (await tools.text("report_read")).startswith("# Start\n\ns\n\n# Body\n\nb\n\n## One\n")


async def test_a_chapter_is_read_with_those_in_it_and_without_its_heading(tools: Tools):
    await written(tools, ("A", 1, "a"), ("A/B", 2, "b"), ("C", 1, ""))
    assert await tools.text("report_read_chapter", title="A") == "a\n\n## B\n\nb"
    assert await tools.text("report_read_chapter", title="A/B") == "b"
    assert await tools.text("report_read_chapter", title="B") == "b"
    assert "no text yet" in await tools.text("report_read_chapter", title="C")


async def test_a_chapter_is_rewritten_continued_and_deleted(tools: Tools):
    await written(tools, ("A", 1, "a"), ("A/B", 2, "b"), ("C", 1, "c"))
    await tools.text("report_continue_chapter", title="A/B", content="more")
    assert await lines(tools) == ["# A", "a", "## B", "b", "more", "# C", "c"]
    await tools.text("report_rewrite_chapter", title="A", content="# A\n\nnew\n\n## D\n\nd")
    assert await lines(tools) == ["# A", "new", "## D", "d", "# C", "c"]
    await tools.text("report_del_chapter", title="A")
    assert await lines(tools) == ["# C", "c"]


async def test_chapters_change_places_and_all_else_stays(tools: Tools):
    await written(tools, *[(name, 1, name.lower()) for name in "ABCD"], ("C/X", 2, "x"))
    await tools.text("report_reorder_chapters", new_order=["C", "A", "B"])
    assert await lines(tools) == ["# C", "c", "## X", "x", "# A", "a", "# B", "b", "# D", "d"]
    await tools.text("report_reorder_chapters", new_order=["D", "C"])
    assert await lines(tools) == ["# D", "d", "# A", "a", "# B", "b", "# C", "c", "## X", "x"]


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (["A", "A"], "named twice"),
        (["A", "A/B"], "'A/B' is a part of 'A'"),
        (["A", "Z"], "there is no chapter 'Z'"),
    ],
)
async def test_an_order_that_is_none_changes_nothing(tools: Tools, order: list[str], said: str):
    await written(tools, ("A", 1, "a"), ("A/B", 2, "b"), ("C", 1, "c"))
    before = await tools.text("report_read")
    with pytest.raises(ToolFailed, match=said):
        await tools.result("report_reorder_chapters", new_order=order)
    assert await tools.text("report_read") == before


async def test_a_title_that_occurs_twice_has_to_be_told_apart(tools: Tools):
    await written(tools, ("A", 1, ""), ("A/Sum", 2, "1"), ("B", 1, ""), ("B/Sum", 2, "2"))
    with pytest.raises(ToolFailed, match="2 chapters are called 'Sum'") as failure:
        await tools.result("report_read_chapter", title="Sum")
    assert failure.value.hint == "name one: 'A/Sum', 'B/Sum'"
    assert await tools.text("report_read_chapter", title="B/Sum") == "2"


async def test_a_slash_and_a_bar_can_stand_in_a_title(tools: Tools):
    await written(tools, (r"TCP\/IP", 1, "t"), (r"TCP\/IP/A\|B", 2, "ab"), (r"TCP\/IP|C", 1, "c"))
    assert await lines(tools) == ["# TCP/IP", "t", "## A|B", "ab", "# C", "c"]
    assert await tools.text("report_read_chapter", title="TCP/IP") == "t\n\n## A|B\n\nab"
    assert await tools.text("report_read_chapter", title=r"TCP\/IP/A\|B") == "ab"


@pytest.mark.parametrize(
    ("title", "level", "said"),
    [
        ("A", 1, "there is a chapter 'A' already"),
        ("Z/New", 2, "there is no chapter 'Z'"),
        ("Z|New", 1, "there is no chapter 'Z'"),
        ("A/New", 1, "at least level 2"),
        ("", 1, "names no new chapter"),
        ("A|", 1, "names no new chapter"),
        ("New", 7, "level"),
    ],
)
async def test_a_chapter_that_cannot_be_created_changes_nothing(
    tools: Tools, title: str, level: int, said: str
):
    await written(tools, ("A", 1, "a"))
    with pytest.raises((ToolFailed, ToolArguments), match=said):
        await tools.result("report_create_chapter", title=title, level=level, content="x")
    assert await lines(tools) == ["# A", "a"]


async def test_a_comment_in_a_block_of_code_is_no_heading(tools: Tools):
    code = "```python\n# no heading\n```\n\n~~~~\n```\n# none\n~~~~"
    await written(tools, ("A", 1, code), ("B", 1, "b"))
    assert (await tools.text("report_outline")).splitlines() == ["# A", "# B"]
    assert await tools.text("report_read_chapter", title="A") == code


titles = st.text("ab/|\\ ", min_size=1, max_size=4).map(str.strip).filter(bool)


@given(st.lists(st.tuples(titles, st.text("xy\n", max_size=6)), min_size=1, max_size=5))
def test_every_chapter_is_found_by_its_escaped_title(chapters: list[tuple[str, str]]):
    report = Report("")
    made: dict[str, str] = {}
    for title, content in chapters:
        if title not in made:
            report.create(escaped(title), 1, content)
            made[title] = content.strip("\n")
    again = Report(report.text)
    assert [each.title for each in again.chapters()] == list(made)
    for title, content in made.items():
        found = again.find(escaped(title))
        assert found.title == title
        text = "\n".join(again.lines[found.start + 1 : found.end]).strip("\n")
        assert re.sub(r"\s+", "", text) == re.sub(r"\s+", "", content)


# The PDF

MARKDOWN = """# On Sluices

A **channel** with a *gate*, as [their history](https://example.org/history) tells; `x = 1`.

- wood
  1. oak
- iron

> A quote

| Kind | Width |
| --- | --- |
| Vertical | 3 m |

```python
print("code")
```

## Kinds

![a picture](pic.png)

---

### A deep one

The end.
"""


async def exported(tools: Tools, files: Path, markdown: str) -> tuple[PdfReader, str]:
    (files / "deep_research").mkdir(exist_ok=True)
    (files / "deep_research/report.md").write_text(markdown)
    said = await tools.text("report_export_pdf")
    return PdfReader(io.BytesIO((files / "deep_research/report.pdf").read_bytes())), said


def text_of(reader: PdfReader) -> str:
    return "\n".join(page.extract_text() for page in reader.pages)


async def test_the_pdf_holds_the_report(tools: Tools, files: Path, workspace: Workspace):
    Image.new("RGB", (40, 20), (200, 80, 60)).save(files / "pic.png")
    reader, said = await exported(tools, files, MARKDOWN)
    assert said.startswith("deep_research/report.pdf: 1 pages, ")
    assert "[image" not in said
    text = text_of(reader)
    for words in (
        "A channel with a gate, as their history tells; x = 1.",
        "1.",
        "oak",
        "A quote",
        "Vertical",
        'print("code")',
        "The end.",
        "1 / 1",
    ):
        assert words in text
    assert "**" not in text
    assert [image.name for image in reader.pages[0].images]
    links = [note.get_object()["/A"]["/URI"] for note in reader.pages[0]["/Annots"]]
    assert "https://example.org/history" in links
    assert reader.outline[0].title == "On Sluices"
    result = await tools.result("report_export_pdf")
    [media] = [part for part in result.parts if isinstance(part, MediaPart)]
    assert (media.mime_type, media.name) == ("application/pdf", "report.pdf")
    assert workspace.read_attachment(media.attachment).startswith(b"%PDF-")


async def test_a_long_report_has_pages_with_numbers(tools: Tools, files: Path):
    paragraphs = "\n\n".join(f"Paragraph {n}. " + "word " * 60 for n in range(40))
    table = "| A | B |\n|---|---|\n" + "".join(f"| {n} | {'x ' * 30} |\n" for n in range(80))
    code = "```\n" + "\n".join(f"line {n}" for n in range(150)) + "\n```"
    reader, _ = await exported(tools, files, f"# T\n\n{paragraphs}\n\n{table}\n\n{code}\n")
    count = len(reader.pages)
    assert count > 4
    text = text_of(reader)
    assert f"{count} / {count}" in text
    for words in ("Paragraph 39.", "line 149"):
        assert words in text


async def test_images_come_from_the_workspace_and_from_nowhere_else(
    tools: Tools, files: Path, tmp_path: Path
):
    Image.new("RGB", (40, 20)).save(tmp_path / "outside.png")
    (files / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    sources = ["../../outside.png", str(tmp_path / "outside.png"), "http://127.0.0.1:1/x.png"]
    sources += ["gone.png", "broken.png"]
    markdown = "\n\n".join(f"![picture {n}]({source})" for n, source in enumerate(sources))
    reader, said = await exported(tools, files, f"# T\n\n{markdown}\n")
    assert not reader.pages[0].images
    for n, source in enumerate(sources):
        assert f"[picture {n}]" in text_of(reader)
        assert f"image '{source}' is left out" in said


async def test_raw_html_and_odd_characters_do_no_harm(tools: Tools, files: Path):
    markdown = "# T\n\n<img src='/etc/passwd'> a\x00b\x1b[0m \ufeff<script>x</script>\n\n\tcode\n"
    reader, _ = await exported(tools, files, markdown)
    assert "<script>" in text_of(reader)


def make_font(place: Path, characters: str) -> None:
    """A font whose glyphs are all the same box."""
    names = [".notdef", *(f"uni{ord(c):04X}" for c in characters)]
    pen = TTGlyphPen(None)
    for at, corner in enumerate([(100, 0), (100, 700), (700, 700), (700, 0)]):
        (pen.lineTo if at else pen.moveTo)(corner)
    pen.closePath()
    box = pen.glyph()
    font = FontBuilder(1000, isTTF=True)
    font.setupGlyphOrder(names)
    font.setupCharacterMap({ord(c): n for c, n in zip(characters, names[1:], strict=True)})
    font.setupGlyf(dict.fromkeys(names, box))
    font.setupHorizontalMetrics(dict.fromkeys(names, (800, 100)))
    font.setupHorizontalHeader(ascent=800, descent=-200)
    font.setupNameTable({"familyName": place.stem, "styleName": "Regular"})
    font.setupOS2(sTypoAscender=800, usWinAscent=800, usWinDescent=200)
    font.setupPost()
    font.save(place)


async def test_characters_beyond_latin_are_taken_from_fonts_that_have_them(
    tools: Tools, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    make_font(tmp_path / "Latin.ttf", "".join(map(chr, range(33, 127))) + " \u2022")
    make_font(tmp_path / "Own-Fallback.ttf", "\u6c34\u95f8\U0001f000")
    monkeypatch.setenv("DEVALL_REPORT_FONTS", str(tmp_path))
    reader, said = await exported(tools, files, "# Sluice 水闸\n\n- 水闸水闸 \U0001f000 text\n")
    assert "no font of this machine" not in said
    text = text_of(reader).replace("\u200b", "")
    assert "Sluice 水闸" in text
    assert "水闸水闸" in text
    assert "\U0001f000 text" in text


async def test_characters_that_no_font_has_are_told(
    tools: Tools, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    make_font(tmp_path / "Latin.ttf", "".join(map(chr, range(32, 127))))
    (tmp_path / "broken.ttf").write_bytes(b"no font at all")
    monkeypatch.setenv("DEVALL_REPORT_FONTS", str(tmp_path))
    reader, said = await exported(tools, files, "# Sign \U00010600 here\n")
    assert "no font of this machine has \U00010600, shown as question marks" in said
    assert "DEVALL_REPORT_FONTS" in said
    assert "Sign ? here" in text_of(reader)


async def test_without_the_extra_the_user_is_told_how_to_install_it(
    tools: Tools, files: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "fpdf", None)
    with pytest.raises(ToolFailed, match="fpdf2") as failure:
        await exported(tools, files, "# T\n")
    assert "pip install devall[report]" in failure.value.hint
