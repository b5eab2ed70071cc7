from __future__ import annotations

from devall.models.base import ModelChoice
from devall.nodes.crew import Overrides


def test_a_model_is_given_by_full_name_by_short_name_or_for_all():
    given = Overrides({"S/X": "full", "X": "short", "": "all"}, {"X": "ollama"})
    choice = ModelChoice("openai", "written")
    assert [given.apply(choice, node).name for node in ("S/X", "T/X", "X", "Y", "S/Y")] == [
        "full",
        "short",
        "short",
        "all",
        "all",
    ]
    assert given.apply(choice, "T/X").provider == "ollama"
    assert given.apply(choice, "Y").provider == "openai"
