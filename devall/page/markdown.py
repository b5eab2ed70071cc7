"""Markdown as HTML that a page can hold: no HTML of the text's own, no pictures from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

LONGEST = 60_000
"""Characters of a text that is read as Markdown."""


def render(text: str, level: int) -> Markup:
    """A text in Markdown as HTML; line breaks stay, as poems and lists of models need.

    Args:
        text: The text.
        level: The highest level of its headings: that of the page's heading above it, and one.
    """
    markdown = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": 30})
    markdown.enable(["table", "strikethrough"])
    tokens = markdown.parse(text[:LONGEST])
    _set_headings(tokens, level)
    for token in tokens:
        if token.type == "inline":
            token.children = [_harmless(child) for child in token.children or ()]
        elif token.type in {"th_open", "td_open"} and "style" in token.attrs:
            align = str(token.attrs.pop("style")).rpartition(":")[2]
            token.attrSet("class", f"to-{align}")
    html = markdown.renderer.render(tokens, markdown.options, {})
    # What the text itself holds is escaped, so that these are the tables' own tags.
    first, *tables = html.replace("</table>", "</table></div>").split("<table>")
    html = first + "".join(_SCROLLED.format(at) + each for at, each in enumerate(tables, 1))
    return Markup(html)  # noqa: S704 - the renderer has escaped it


_SCROLLED = (
    '<div class="scroll" role="region" aria-label="Table {} of the answer" tabindex="0"><table>'
)
_SCHEMES = ("https://", "http://", "mailto:")


def _set_headings(tokens: Sequence[Token], level: int) -> None:
    """Let headings go on from the page's own, without a gap: readers of screens go by them."""
    last = level - 1
    for token in tokens:
        if token.type == "heading_open":
            last = min(level - 1 + int(token.tag[1:]), last + 1, 6)
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{last}"


def _harmless(token: Token) -> Token:
    """The token; a picture becomes its description, since a page loads nothing."""
    if token.type == "image":
        return Token("text", "", 0, content=f"[picture: {token.content or token.attrGet('src')}]")
    if token.type == "link_open":
        if not str(token.attrGet("href")).lower().startswith(_SCHEMES):
            return Token("link_open", "a", 1)
        token.attrSet("rel", "noopener noreferrer nofollow")
        token.attrSet("target", "_blank")
    return token
