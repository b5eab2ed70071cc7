"""Colours and lines of a picture, in light and dark, as CSS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from devall.pictures.course import State

Theme = Literal["light", "dark", "auto"]

FONTS = (
    'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans",'
    ' "Liberation Sans", Arial, "DejaVu Sans", Lato, sans-serif'
)
"""Whatever the viewer's system has: nothing is fetched."""

LIGHT: Mapping[str, str] = {
    "ground": "#ffffff",
    "text": "#1b2430",
    "muted": "#55606e",
    "face": "#ffffff",
    "line": "#8a95a3",
    "loop": "#f5f2fc",
    "loop-line": "#8a78c4",
    "loop-text": "#5b4a9a",
    "sub": "#f2f5f8",
    "sub-line": "#98a3b0",
    "edge": "#5d6876",
    "back": "#7159c1",
    "silent": "#97a1ad",
    "completed": "#1a7f37",
    "completed-face": "#edf9f0",
    "failed": "#c62828",
    "failed-face": "#fff0ef",
    "waiting": "#8a5d00",
    "waiting-face": "#fff8e0",
    "cancelled": "#a8500b",
    "cancelled-face": "#fff3e8",
    "running": "#0a66c2",
    "running-face": "#eaf4fe",
    "skipped": "#6b7582",
    "skipped-face": "#f6f7f9",
    "mark": "#ffffff",
}
DARK: Mapping[str, str] = {
    "ground": "#0f141a",
    "text": "#e8edf3",
    "muted": "#a3aebb",
    "face": "#1b222b",
    "line": "#6d7987",
    "loop": "#1c1a2b",
    "loop-line": "#8574c4",
    "loop-text": "#c0b3f0",
    "sub": "#171d25",
    "sub-line": "#5d6876",
    "edge": "#98a3b0",
    "back": "#a897ee",
    "silent": "#5d6876",
    "completed": "#4cc06a",
    "completed-face": "#14271b",
    "failed": "#ff7b72",
    "failed-face": "#331a1a",
    "waiting": "#e3b341",
    "waiting-face": "#2d2411",
    "cancelled": "#f0924c",
    "cancelled-face": "#2f2014",
    "running": "#58a6ff",
    "running-face": "#14243a",
    "skipped": "#8d98a5",
    "skipped-face": "#161b22",
    "mark": "#0f141a",
}

_STATES: tuple[State, ...] = ("completed", "failed", "waiting", "cancelled", "running")
_RULES = """
{s} {{ font-family: {fonts} }}
{s} .ground {{ fill: {ground} }}
{s} text {{ fill: {text}; font-size: 11px; white-space: pre }}
{s} .name {{ font-size: 13px; font-weight: 700 }}
{s} .about {{ fill: {muted} }}
{s} .face {{ fill: {face}; stroke: {line}; stroke-width: 1.4 }}
{s} .icon {{ fill: none; stroke: {muted}; stroke-width: 1.4; stroke-linecap: round; stroke-linejoin: round }}
{s} .box {{ fill: {sub}; stroke: {sub-line}; stroke-width: 1.2 }}
{s} .loop > .box {{ fill: {loop}; stroke: {loop-line}; stroke-dasharray: 6 4 }}
{s} .title {{ font-weight: 700; fill: {muted}; paint-order: stroke; stroke: {sub}; stroke-width: 3px }}
{s} .loop > .title {{ fill: {loop-text}; stroke: {loop} }}
{s} .loop > .icon {{ stroke: {loop-text} }}
{s} .pill {{ fill: {text}; stroke: none }}
{s} .end text {{ fill: {ground}; font-weight: 700 }}
{s} .way {{ fill: none; stroke: {edge}; stroke-width: 1.4 }}
{s} .head {{ fill: {edge}; stroke: none }}
{s} .back .way {{ stroke: {back} }}
{s} .back .head {{ fill: {back} }}
{s} .thick .way {{ stroke-width: 3 }}
{s} .dashed .way {{ stroke-dasharray: 6 4 }}
{s} .silent .way {{ stroke: {silent}; stroke-width: 1.2; stroke-dasharray: 1.5 4; stroke-linecap: round }}
{s} .silent .head {{ fill: {silent} }}
{s} .label {{ fill: {text}; paint-order: stroke; stroke: {ground}; stroke-width: 3px; stroke-linejoin: round }}
{s} .silent .label {{ fill: {muted} }}
{s} .badge {{ stroke: none }}
{s} .mark {{ fill: none; stroke: {mark}; stroke-width: 1.6; stroke-linecap: round; stroke-linejoin: round }}
{s} .dim > .face {{ fill: {skipped-face}; stroke: {skipped}; stroke-width: 1.2; stroke-dasharray: 4 3 }}
{s} .dim > .name, {s} .dim > .about {{ fill: {muted}; font-weight: 400 }}
{s} .dim > .box {{ stroke-dasharray: 4 3 }}
{s} .dim > .badge {{ fill: {skipped} }}
{s} a {{ cursor: pointer }}
{s} a:hover .face, {s} a:focus .face {{ stroke-width: 3 }}
"""
_STATE_RULES = """
{s} .{state} > .face {{ fill: {face}; stroke: {line}; stroke-width: 1.8 }}
{s} .{state} > .box {{ stroke: {line} }}
{s} .{state} > .badge {{ fill: {line} }}
"""


def style(theme: Theme) -> str:
    """The style sheet of a picture; it touches nothing else on a page."""
    scope = f".devall-picture.{theme}"
    if theme == "auto":
        light = _named(LIGHT)
        dark = _named(DARK)
        colours = {name: f"var(--{name}, {colour})" for name, colour in LIGHT.items()}
        head = (
            f"{scope} {{ {light} }}\n"
            f"@media (prefers-color-scheme: dark) {{ {scope} {{ {dark} }} }}\n"
            f':root[data-theme="light"] {scope} {{ {light} }}\n'
            f':root[data-theme="dark"] {scope} {{ {dark} }}\n'
        )
    else:
        colours, head = dict(LIGHT if theme == "light" else DARK), ""
    rules = _RULES.format(s=scope, fonts=FONTS, **colours)
    states = [
        _STATE_RULES.format(s=scope, state=each, face=colours[f"{each}-face"], line=colours[each])
        for each in _STATES
    ]
    return "".join([head, rules, *states]).strip()


def _named(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())
