"""Markdown as a PDF of A4 pages."""

from __future__ import annotations

import io
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import fpdf
from fpdf.enums import TableBordersLayout, WrapMode
from fpdf.errors import FPDFException
from fpdf.fonts import FontFace
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from PIL import Image

from devall.core.errors import ToolFailed
from devall.workspace import Workspace

from ._fonts import Fonts, fonts_for

_MARGIN = 20.0
_INDENT = 6.0
_SIZE = 10.5
_LINE = 5.2
"""Height of a line of text, in mm."""
_HEADINGS = {"h1": 20.0, "h2": 15.0, "h3": 12.5, "h4": 11.0, "h5": 10.5, "h6": 10.5}
_INK, _FAINT, _LINK, _SHADE = (33, 37, 41), (108, 117, 125), (13, 84, 163), (243, 244, 246)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\ud800-\udfff]")
# A line may end behind any of these, which stand without spaces.
_IDEOGRAPH = re.compile(r"([\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef])")


@dataclass(frozen=True, slots=True)
class Document:
    """A finished PDF."""

    data: bytes
    pages: int
    notes: tuple[str, ...]
    """What is not as it should be."""


@dataclass(frozen=True, slots=True)
class _Style:
    bold: bool = False
    italic: bool = False
    struck: bool = False
    monospaced: bool = False
    link: str = ""

    @property
    def emphasis(self) -> str:
        return ("B" if self.bold else "") + ("I" if self.italic else "")


def pdf_of(text: str, workspace: Workspace) -> Document:
    """The text as a PDF; images are taken from the workspace and from nowhere else.

    Raises:
        ToolFailed: the text cannot be set.
    """
    text = _CONTROL.sub("", text.expandtabs(4))
    notes: list[str] = []
    fonts: Fonts | None = None
    if not _is_plain(text):
        fonts = fonts_for(text)
        missing = sorted(fonts.missing if fonts else {c for c in text if not _is_plain(c)})
        if missing:
            more = f" and {len(missing) - 20} more" if len(missing) > 20 else ""
            notes.append(
                f"no font of this machine has {' '.join(missing[:20])}{more}, shown as question"
                " marks; the user can install one (fonts-noto-cjk has Chinese, Japanese and"
                " Korean), or name one in DEVALL_REPORT_FONTS"
            )
            text = text.translate({ord(c): "?" for c in missing})
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    try:
        writer = _Writer(workspace, fonts, notes)
        writer.blocks(SyntaxTreeNode(parser.parse(text)).children)
        data = bytes(writer.pdf.output())
    except FPDFException as error:
        raise ToolFailed(f"the report cannot be made into a PDF: {error}") from error
    return Document(data, writer.pdf.page_no(), tuple(notes))


class _Pages(fpdf.FPDF):
    """Pages with a number at the foot."""

    face = "helvetica"

    def footer(self) -> None:
        self.set_y(-14)
        self.set_font(self.face, "", 8)
        self.set_text_color(*_FAINT)
        self.cell(0, 5, f"{self.page_no()} / {{nb}}", align="C")


class _Writer:
    """Puts a Markdown tree on pages."""

    def __init__(self, workspace: Workspace, fonts: Fonts | None, notes: list[str]) -> None:
        self._workspace = workspace
        self._notes = notes
        self._color = _INK
        self._size = _SIZE
        self._line = _LINE
        self._face, self._monospaced = "helvetica", "courier"
        self.pdf = pdf = _Pages(format="A4")
        pdf.core_fonts_encoding = "windows-1252"
        if fonts is not None:
            self._face, self._monospaced = "text", "code"
            for style, path in zip(("", "B", "I", "BI"), fonts.styles, strict=True):
                pdf.add_font("text", style, path)
            pdf.add_font("code", "", fonts.monospaced)
            for number, path in enumerate((*fonts.fallbacks, fonts.styles[0])):
                pdf.add_font(f"fallback{number}", "", path)
            names = [f"fallback{number}" for number in range(len(fonts.fallbacks) + 1)]
            pdf.set_fallback_fonts(names, exact_match=False)
        pdf.face = self._face
        pdf.set_margins(_MARGIN, _MARGIN, _MARGIN)
        pdf.set_auto_page_break(auto=True, margin=_MARGIN)
        pdf.add_page()

    def blocks(self, nodes: Sequence[SyntaxTreeNode]) -> None:
        for node in nodes:
            self._block(node)

    def _block(self, node: SyntaxTreeNode) -> None:
        match node.type:
            case "heading":
                self._heading(node)
            case "paragraph":
                self._inline(node.children)
                self.pdf.ln(self._line if node.hidden else self._line * 1.5)
            case "bullet_list" | "ordered_list":
                self._list(node)
            case "blockquote":
                self._quote(node)
            case "fence" | "code_block":
                self._code(node.content)
            case "table":
                self._table(node)
            case "hr":
                self._rule()
            case _:
                self.blocks(node.children)

    def _heading(self, node: SyntaxTreeNode) -> None:
        pdf = self.pdf
        size = _HEADINGS[node.tag]
        if pdf.y > _MARGIN:
            pdf.ln(size * 0.22)
        # A heading does not stand at the foot of a page, without its text.
        if pdf.will_page_break(size * 0.5 + 3 * _LINE):
            pdf.add_page()
        pdf.start_section(_text_of(node), int(node.tag[1]) - 1, strict=False)
        self._size, self._line = size, size * 0.5
        self._inline(node.children, _Style(bold=True))
        pdf.ln(self._line)
        self._size, self._line = _SIZE, _LINE
        if node.tag == "h1":
            self._rule()
        else:
            pdf.ln(1.2)

    def _rule(self) -> None:
        pdf = self.pdf
        pdf.set_draw_color(*_FAINT)
        pdf.set_line_width(0.2)
        pdf.line(pdf.l_margin, pdf.y + 0.6, pdf.w - pdf.r_margin, pdf.y + 0.6)
        pdf.ln(3)

    def _list(self, node: SyntaxTreeNode) -> None:
        pdf = self.pdf
        number = int(node.attrs.get("start", 1))
        for item in node.children:
            mark = f"{number}." if node.type == "ordered_list" else "\u2022"
            number += 1
            if pdf.will_page_break(self._line):
                pdf.add_page()
            self._set(_Style())
            pdf.set_x(pdf.l_margin)
            pdf.cell(_INDENT, self._line, mark)
            with self._indented():
                pdf.set_x(pdf.l_margin)
                self.blocks(item.children)
                if not item.children:
                    pdf.ln(self._line)
        if node.parent is not None and node.parent.type != "list_item":
            pdf.ln(self._line * 0.5)

    def _quote(self, node: SyntaxTreeNode) -> None:
        pdf = self.pdf
        page, top, left = pdf.page_no(), pdf.y, pdf.l_margin + 1.5
        color, self._color = self._color, _FAINT
        with self._indented():
            self.blocks(node.children)
        self._color = color
        if pdf.page_no() == page:
            pdf.set_draw_color(*_FAINT)
            pdf.set_line_width(0.8)
            pdf.line(left, top, left, pdf.y - self._line * 0.5)
        pdf.ln(self._line * 0.3)

    def _code(self, content: str) -> None:
        pdf = self.pdf
        pdf.set_font(self._monospaced, "", 8.5)
        pdf.set_text_color(*_INK)
        pdf.set_fill_color(*_SHADE)
        pdf.set_x(pdf.l_margin)
        pdf.multi_cell(
            0,
            4.3,
            content.rstrip("\n"),
            align="L",
            fill=True,
            new_x="LMARGIN",
            new_y="NEXT",
            wrapmode=WrapMode.CHAR,
            padding=2,
        )
        pdf.ln(3)

    def _table(self, node: SyntaxTreeNode) -> None:
        rows = [
            [_breakable(_text_of(cell)) for cell in row.children]
            for part in node.children
            for row in part.children
        ]
        longest = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        self._set(_Style())
        pdf = self.pdf
        pdf.set_draw_color(*_FAINT)
        pdf.set_line_width(0.15)
        try:
            with pdf.table(
                rows,
                col_widths=[min(max(length, 6), 45) for length in longest],
                borders_layout=TableBordersLayout.ALL,
                headings_style=FontFace(emphasis="BOLD", fill_color=_SHADE, color=_INK),
                line_height=self._line,
                text_align="LEFT",
                padding=1.2,
                width=pdf.w - pdf.l_margin - pdf.r_margin,
                align="RIGHT",
                wrapmode=WrapMode.WORD,
            ):
                pass
        except (FPDFException, ValueError):  # a cell that is higher than a page, or no room for one
            self._code("\n".join(" | ".join(row) for row in rows))
            return
        pdf.ln(self._line * 0.8)

    def _inline(self, nodes: Sequence[SyntaxTreeNode], style: _Style | None = None) -> None:
        style = style or _Style()
        for node in nodes:
            match node.type:
                case "text":
                    self._write(node.content, style)
                case "softbreak":
                    self._write(" ", style)
                case "hardbreak":
                    self.pdf.ln(self._line)
                case "code_inline":
                    self._write(node.content, replace(style, monospaced=True))
                case "strong":
                    self._inline(node.children, replace(style, bold=True))
                case "em":
                    self._inline(node.children, replace(style, italic=True))
                case "s":
                    self._inline(node.children, replace(style, struck=True))
                case "link":
                    target = str(node.attrs.get("href", ""))
                    is_web = target.startswith(("http://", "https://", "mailto:"))
                    self._inline(node.children, replace(style, link=target if is_web else ""))
                case "image":
                    self._image(str(node.attrs.get("src", "")), _text_of(node) or node.content)
                case _:
                    self._inline(node.children, style)

    def _write(self, text: str, style: _Style) -> None:
        self._set(style)
        self.pdf.write(self._line, _breakable(text), link=style.link)

    def _set(self, style: _Style) -> None:
        emphasis = style.emphasis + ("S" if style.struck else "")
        if style.monospaced:
            # There is one style of it.
            self.pdf.set_font(self._monospaced, "", self._size * 0.9)
        else:
            self.pdf.set_font(self._face, emphasis, self._size)
        self.pdf.set_text_color(*(_LINK if style.link else self._color))

    def _image(self, source: str, words: str) -> None:
        pdf = self.pdf
        try:
            with self._workspace.at(source) as place, place.open() as file:
                data = file.read()
            if pdf.x > pdf.l_margin:
                pdf.ln(self._line)
            width, height = pdf.w - pdf.l_margin - pdf.r_margin, pdf.eph * 0.8
            with Image.open(io.BytesIO(data)) as image:
                wide, high = image.size
            scale = min(25.4 / 96, width / wide, height / high)
            pdf.image(io.BytesIO(data), w=wide * scale, h=high * scale)
        # Whatever Pillow makes of the bytes of a file.
        except (
            ToolFailed,
            FPDFException,
            OSError,
            ValueError,
            SyntaxError,
            ArithmeticError,
        ) as error:
            self._notes.append(f"image {source!r} is left out: {error}")
            self._write(f"[{words or source}]", _Style(italic=True))

    @contextmanager
    def _indented(self) -> Generator[None]:
        left = self.pdf.l_margin
        self.pdf.set_left_margin(left + _INDENT)
        try:
            yield
        finally:
            self.pdf.set_left_margin(left)
            self.pdf.set_x(left)


def _is_plain(text: str) -> bool:
    """Whether the fonts that every reader of PDF has are enough."""
    try:
        text.encode("cp1252")
    except UnicodeEncodeError:
        return False
    return True


def _text_of(node: SyntaxTreeNode) -> str:
    """The words of a node without their forms."""
    if node.type in {"text", "code_inline"}:
        return node.content
    if node.type in {"softbreak", "hardbreak"}:
        return " "
    return "".join(_text_of(child) for child in node.children)


def _breakable(text: str) -> str:
    return _IDEOGRAPH.sub("\\1\u200b", text)
