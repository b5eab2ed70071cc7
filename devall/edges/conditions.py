"""When an edge fires."""

from __future__ import annotations

import re
from collections.abc import Callable

from devall.config.edges import ExpressionConfig, KeywordConfig
from devall.core.errors import ExpressionError
from devall.edges.expressions import Expression, ExpressionFailed

Test = Callable[[str], bool]


def keyword_test(config: KeywordConfig) -> Test:
    """The test of a keyword condition: `none` decides first, then any word or regex found."""
    fold = str if config.case_sensitive else str.casefold
    refused = [fold(word) for word in config.none]
    wanted = [fold(word) for word in config.any]
    flags = 0 if config.case_sensitive else re.IGNORECASE
    patterns = [re.compile(pattern, flags) for pattern in config.regex]
    only_refusals = not (wanted or patterns)

    def test(text: str) -> bool:
        folded = fold(text)
        if any(word in folded for word in refused):
            return False
        return (
            only_refusals
            or any(word in folded for word in wanted)
            or any(pattern.search(text) for pattern in patterns)
        )

    return test


def expression_test(config: ExpressionConfig, where: str) -> Test:
    """The test of an expression.

    Args:
        config: The expression.
        where: The edge and its place in the file, for errors.
    """
    expression = Expression(config.when)

    def test(text: str) -> bool:
        try:
            return expression.holds(text)
        except ExpressionFailed as error:
            raise ExpressionError(config.when, where, str(error)) from error

    return test
