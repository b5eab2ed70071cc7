"""What is done to a text on its way along an edge."""

from __future__ import annotations

import re
from collections.abc import Callable

from devall.config.edges import RegexExtractConfig

Transform = Callable[[str], str | None]
"""The new text; None: the edge does not fire."""


def regex_extract(config: RegexExtractConfig) -> Transform:
    """The transform that puts what a regular expression finds in the text's place."""
    pattern = re.compile(
        config.pattern,
        (0 if config.case_sensitive else re.IGNORECASE)
        | (re.MULTILINE if config.multiline else 0)
        | (re.DOTALL if config.dotall else 0),
    )
    group = 0 if config.group is None else config.group

    def extract(text: str) -> str | None:
        found = [match.group(group) or "" for match in pattern.finditer(text)]
        if not found:
            match config.on_no_match:
                case "pass":
                    return text
                case "default":
                    return config.default_value
                case "drop":
                    return None
        if config.template is not None:
            found = [config.template.replace("{match}", each) for each in found]
        return "\n".join(found) if config.multiple else found[0]

    return extract
