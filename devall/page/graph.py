"""The picture of the graph on the page, where one can be drawn."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from devall.core.errors import DevallError
from devall.history.course import course_of
from devall.history.story import Story
from devall.loading.loader import LoadedWorkflow
from devall.page.texts import clean

MOST_NODES = 400
"""Nodes that a picture can show: more of them nobody can read, and they take long to lay out."""


NARROW = 460
"""Pixels."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The graph as it ran."""

    svg: Markup | None = None
    note: str = ""
    """Why there is none."""

    @property
    def is_narrow(self) -> bool:
        """Whether it can be read on a phone when it is made as small as that."""
        found = re.search(r'^<svg [^>]*?\bwidth="([\d.]+)"', self.svg or "")
        return found is not None and float(found[1]) <= NARROW


def picture_of(
    workflow: LoadedWorkflow | None,
    story: Story,
    anchors: Mapping[str, str],
    redact: Callable[[str], str],
    *,
    is_over: bool,
) -> Picture:
    """The picture of a run's graph, whose nodes lead to where the page tells of them.

    Args:
        workflow: What ran; None: it cannot be read any more.
        story: The run's course.
        anchors: Where the page tells of a node, by its name.
        redact: Takes secrets out of a text.
        is_over: Whether nobody is at the run any more.
    """
    if workflow is None:
        return Picture(note="No picture: the workflow of the run cannot be read any more.")
    if len(story.nodes) > MOST_NODES:
        return Picture(note=f"No picture: nobody could read one of {len(story.nodes):,} nodes.")
    from devall.pictures.svg import svg

    def link(node: str) -> str:
        return f"#{anchors[node]}" if node in anchors else ""

    try:
        drawn = svg(workflow.root, course_of(story, is_over=is_over), ids="g-", link=link)
        return Picture(Markup(clean(redact(drawn))))  # noqa: S704 - escaped where it is drawn
    except DevallError as error:
        hint = f" ({error.hint})" if error.hint else ""
        return Picture(note=f"No picture: {error}{hint}")
