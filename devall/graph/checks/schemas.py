"""Rules about what nodes hold in a language of its own: JSON Schemas, templates."""

from __future__ import annotations

from collections.abc import Iterator

from devall.config.nodes import AgentNode, TemplateNode
from devall.core.diagnostics import Diagnostic
from devall.core.errors import SetupError
from devall.graph.checks.shape import Shape
from devall.loading.answer_schemas import read_schema, validator_of
from devall.loading.templates import template_of


def check_schemas(shape: Shape) -> Iterator[Diagnostic]:
    """Schemas that are none, or that refer to something outside of them."""
    for number, node in enumerate(shape.nodes):
        if not isinstance(node, AgentNode) or node.config.output_schema is None:
            continue
        written, base = node.config.output_schema, shape.loaded.file.parent
        if isinstance(written, str) and not (base / written).is_file():
            continue  # the loader has said so
        try:
            validator_of(read_schema(written, base))
        except SetupError as error:
            yield shape.diagnostic(
                "bad-schema",
                f"node {node.id}: {error}",
                ("nodes", number, "config", "output_schema"),
                error.hint,
                "error",
            )


def check_templates(shape: Shape) -> Iterator[Diagnostic]:
    """Templates that are none."""
    for number, node in enumerate(shape.nodes):
        if not isinstance(node, TemplateNode):
            continue
        try:
            template_of(node.config.template)
        except SetupError as error:
            path = ("nodes", number, "config", "template")
            yield shape.diagnostic("bad-template", f"node {node.id}: {error}", path, "", "error")
