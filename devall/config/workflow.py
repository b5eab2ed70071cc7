"""The file as a whole."""

from __future__ import annotations

from pydantic import Field

from devall.config.base import ConfigModel, JsonObject
from devall.config.nodes import Graph

__all__ = ["Graph", "Workflow"]  # a graph is half of what a workflow is


class Workflow(ConfigModel):
    """A workflow file."""

    version: str = "0.4.0"
    """Version of the format."""
    vars: JsonObject = Field(default_factory=dict)
    """Values for `${NAME}` in the file; only at the root."""
    graph: Graph
    """What runs."""
