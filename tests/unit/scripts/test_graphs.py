from __future__ import annotations

from scripts.graphs import pictures


def test_the_pictures_of_the_documentation_are_those_of_today():
    for file, text in pictures().items():
        assert file.read_text(encoding="utf-8") == text, "make them anew: scripts/graphs.py"
