"""Makes docs/graph.svg and docs/graph-run.svg: pictures by `devall graph`, for docs/pictures.md."""

from __future__ import annotations

from pathlib import Path

from devall.loading.loader import load_workflow
from devall.pictures.course import Course, NodeCourse
from devall.pictures.svg import svg

PROJECT = Path(__file__).resolve().parents[1]
WORKFLOW = PROJECT / "yaml_instance" / "software_team.yaml"

RUN = Course(
    nodes={
        "Architect": NodeCourse(state="completed", runs=1, seconds=3.1),
        "Tester": NodeCourse(state="completed", runs=1, seconds=4.0),
        "Programmer": NodeCourse(state="completed", runs=3, seconds=14.2),
        "Command": NodeCourse(state="completed", runs=3),
        "Tests": NodeCourse(state="failed", runs=3, seconds=1.6),
    },
    edges={("", 0): 1, ("", 1): 1, ("", 2): 1, ("", 3): 3, ("", 4): 3, ("", 5): 2},
    rounds={frozenset({"Programmer", "Command", "Tests"}): 3},
)
"""A run in which the tests fail for good; durations of a real one would differ each time."""


def pictures() -> dict[Path, str]:
    """The files and what belongs into them."""
    graph = load_workflow(WORKFLOW).root
    return {
        PROJECT / "docs" / "graph.svg": svg(graph),
        PROJECT / "docs" / "graph-run.svg": svg(graph, RUN),
    }


def main() -> None:
    """Write the files anew."""
    for file, text in pictures().items():
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
