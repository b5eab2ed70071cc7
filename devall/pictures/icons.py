"""Small drawings that need no font: one for each kind of node, one for each state."""

from __future__ import annotations

from collections.abc import Mapping

from devall.pictures.course import State
from devall.pictures.scene import Kind

KINDS: Mapping[Kind | str, str] = {
    "agent": "M2 3.5h12v7.5H7.5L4.5 13.5V11H2zM5.5 6.2h5M5.5 8.4h3",
    "human": "M8 7.2a2.6 2.6 0 1 0 0-5.2a2.6 2.6 0 1 0 0 5.2M2.8 14c.3-3 2.4-4.6 5.2-4.6s4.9 1.6 5.2 4.6",
    "literal": "M3 2.5h7l3 3v8H3zM10 2.5v3h3M5.5 8.5h5M5.5 11h5",
    "passthrough": "M2 8h11M9 4l4 4l-4 4",
    "template": "M6 2.5C3.5 2.5 5 7.5 2.5 8C5 8.5 3.5 13.5 6 13.5M10 2.5C12.5 2.5 11 7.5 13.5 8C11 8.5 12.5 13.5 10 13.5",
    "python": "M5.5 4L1.8 8l3.7 4M10.5 4l3.7 4l-3.7 4M9.2 2.8L6.8 13.2",
    "subgraph": "M2 2.5h12v11H2zM4.5 5h4v3h-4zM7.5 9.5h4v2h-4z",
    "loop_counter": "M13 5.2A5.6 5.6 0 1 0 13.6 9M13.3 2v3.4H9.9M6.8 6.4L8.2 5.6V10.6",
    "loop_timer": "M8 13.8a5.6 5.6 0 1 0 0-11.2a5.6 5.6 0 1 0 0 11.2M8 5.2V8.4l2.2 1.4M6.5 1h3",
    "loop": "M13 5.2A5.6 5.6 0 1 0 13.6 9M13.3 2v3.4H9.9",
}
"""Lines in a square of 16."""

STATES: Mapping[State | None, str] = {
    "completed": "M-2.7 0.2L-0.8 2.2L2.8 -2",
    "failed": "M-2.2 -2.2L2.2 2.2M2.2 -2.2L-2.2 2.2",
    "skipped": "M-2.6 0H2.6",
    "waiting": "M-1.7 -1.4A1.8 1.8 0 1 1 0.4 0.2L0 0.9M0 2.9V2.95",
    "cancelled": "M-1.6 -1.6h3.2v3.2h-3.2z",
    "running": "M-1.3 -2.4L2.3 0L-1.3 2.4z",
    None: "M0 0V0.05",
}
"""Lines around the middle of a circle with a radius of 6."""
