from __future__ import annotations

from devall.tools.docstrings import read_docstring


def test_rest_docstrings_are_read():
    prose, arguments = read_docstring(
        "Do it.\n\n:param str name: the name,\n    in full\n:param n: how many\n:returns: no"
    )
    assert prose == "Do it."
    assert arguments == {"name": "the name, in full", "n": "how many"}


def test_examples_stay_in_the_description():
    prose, arguments = read_docstring("Do.\n\nArgs:\n  x: it: the x\n\nExamples:\n  do(1)\n")
    assert prose == "Do.\n\nExamples:\n  do(1)"
    assert arguments == {"x": "it: the x"}
