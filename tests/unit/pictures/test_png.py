from __future__ import annotations

import io

import pytest
from PIL import Image
from resvg_py import svg_to_bytes

from devall.core.errors import SetupError, UsageError
from devall.pictures import png as module
from devall.pictures.fonts import font_files
from devall.pictures.looks import DARK, LIGHT
from devall.pictures.places import Layout
from devall.pictures.png import png
from devall.pictures.scene import Scene
from devall.pictures.svg import svg
from tests.unit.pictures.graphs import loaded

GRAPH = {
    "start": "é",
    "nodes": [{"id": "é", "type": "passthrough"}, {"id": "B", "type": "python"}],
    "edges": [{"from": "é", "to": "B"}],
}


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data)).convert("RGB")


@pytest.mark.parametrize(("theme", "colours"), [("light", LIGHT), ("dark", DARK)])
def test_a_picture_has_the_size_and_the_colours_that_were_asked_for(theme, colours):
    graph = loaded(GRAPH)
    width = int(svg(graph).split('viewBox="0 0 ')[1].split()[0])
    found = png(graph, theme=theme, scale=1.5)
    image = opened(found.data)
    assert abs(image.width - width * 1.5) <= 1
    assert image.getpixel((1, 1)) == tuple(bytes.fromhex(colours["ground"][1:]))
    assert found.notes == ()


def test_it_has_text():
    with_text = opened(png(loaded(GRAPH)).data)
    blank = opened(
        svg_to_bytes(svg_string=svg(loaded(GRAPH), theme="light"), zoom=2, skip_system_fonts=True)
    )
    assert with_text.size == blank.size
    assert with_text.tobytes() != blank.tobytes()


def without_fonts(text: str, scale: float) -> bytes:
    return svg_to_bytes(svg_string=text, zoom=scale, skip_system_fonts=True)


def with_lato(text: str, scale: float) -> bytes:
    return svg_to_bytes(
        svg_string=text, zoom=scale, skip_system_fonts=True, font_files=font_files()
    )


def test_a_machine_without_fonts_is_an_error_and_no_picture_without_text():
    with pytest.raises(SetupError, match="no font on this machine"):
        module._check_font(without_fonts)


def test_the_font_of_the_extra_is_enough():
    assert len(font_files()) == 2
    module._check_font(with_lato)


def test_characters_that_no_font_has_are_named():
    assert module._missing(with_lato, ["Größe €", "审查员 A", "审"]) == ["审", "查", "员"]


@pytest.mark.parametrize(
    ("width", "height", "scale"), [(100, 100, 2), (8000, 8000, 0.7), (100, 40_000, 0.8)]
)
def test_a_large_picture_is_drawn_smaller(width: int, height: int, scale: float):
    found = module._fitting(Layout(Scene("x"), width, height), 2)
    assert found == pytest.approx(scale, abs=0.011)
    assert found * max(width, height) <= module.LONGEST_SIDE


def test_a_picture_that_nobody_could_read_is_refused():
    with pytest.raises(UsageError, match="too large"):
        module._fitting(Layout(Scene("x"), 100_000, 100_000), 2)
