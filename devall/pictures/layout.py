"""A scene laid out."""

from __future__ import annotations

from devall.pictures.boxes import widened
from devall.pictures.labels import cleared
from devall.pictures.places import Layout
from devall.pictures.plot import plotted
from devall.pictures.scene import Scene


def layout_of(scene: Scene) -> Layout:
    """Where everything of the scene is.

    Raises:
        SetupError: nothing is installed that lays out.
        DevallError: it could not be laid out.
    """
    return widened(cleared(plotted(scene)))
