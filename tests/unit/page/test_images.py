from __future__ import annotations

import base64
import os

import pytest

from devall.core.messages import MediaPart
from devall.page.images import LARGEST, Images
from tests.unit.page.conftest import agent
from tests.unit.page.test_document import Reader

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def part(name, mime_type="image/png"):
    return MediaPart("image", mime_type, attachment=name, name="a picture")


def test_a_small_picture_is_put_into_the_page_once(tmp_path):
    (tmp_path / "a.png").write_bytes(PNG)
    images = Images(tmp_path)
    assert images.source(part("a.png")).startswith("data:image/png;base64,iVBOR")
    assert not images.source(part("a.png"))


@pytest.mark.parametrize(
    ("name", "mime_type"),
    [
        ("a.svg", "image/svg+xml"),
        ("a.html", "text/html"),
        ("large.png", "image/png"),
        ("missing.png", "image/png"),
        ("../outside.png", "image/png"),
        ("link.png", "image/png"),
        ("", "image/png"),
    ],
)
def test_what_is_no_small_picture_of_the_run_is_left_out(tmp_path, name, mime_type):
    folder = tmp_path / "attachments"
    folder.mkdir()
    for file in ("a.svg", "a.html"):
        (folder / file).write_text("<script>alert(1)</script>")
    (folder / "large.png").write_bytes(PNG + os.urandom(LARGEST))
    (tmp_path / "outside.png").write_bytes(PNG)
    (folder / "link.png").symlink_to(tmp_path / "outside.png")
    assert not Images(folder).source(part(name, mime_type))


async def test_a_picture_that_goes_with_the_task_is_seen(browser, run, page, tmp_path):
    (tmp_path / "sea.png").write_bytes(PNG)
    graph = {"start": "A", "nodes": [agent("A")]}
    await run(graph, {"a": ["I see it"]}, task="Look", attachments=[tmp_path / "sea.png"])
    file = page("the-run")
    [shown] = Reader(file.read_text(encoding="utf-8")).all("img")
    assert shown["alt"] == "sea.png"
    browser.open(file)
    browser.run("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    assert (
        browser.run("document.images[0].decode().then(() => document.images[0].naturalWidth)") == 1
    )
    assert not [each for each in browser.requests if not each.startswith(("file:", "data:image/"))]
    assert not browser.complaints
