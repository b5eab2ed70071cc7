from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devall.core.errors import ToolArguments, ToolFailed

if TYPE_CHECKING:
    from tests.unit.functions.conftest import Tools

FFMPEG = shutil.which("ffmpeg")
FFPROBE = shutil.which("ffprobe")

needs_ffmpeg = pytest.mark.skipif(not (FFMPEG and FFPROBE), reason="ffmpeg is not installed")

SCRIPT = """
from manim import Scene, Circle
class Helper: pass
class Intro(Scene):
    def construct(self): self.add(Circle())
class Other(Scene): pass
"""

# A program that stands in for manim: it makes the files that manim would make.
MANIM = """
import os, pathlib, sys, time
if os.environ.get("FAILS"):
    print("LaTeX is missing", file=sys.stderr)
    sys.exit(1)
if os.environ.get("HANGS"):
    time.sleep(60)
*_, script, scene = sys.argv
media = pathlib.Path(sys.argv[sys.argv.index("--media_dir") + 1])
place = media / "videos" / pathlib.Path(script).stem / "1080p60"
(place / "partial_movie_files").mkdir(parents=True)
(place / "partial_movie_files/x.mp4").write_text("part")
if not os.environ.get("EMPTY"):
    (place / f"{scene}.mp4").write_text(repr(sys.argv[1:]))
"""

# One that stands in for ffmpeg: it tells what it was to read.
STAND_IN = """
import pathlib, sys
listing = sys.argv[sys.argv.index("-i") + 1]
if "bad" in pathlib.Path(listing).read_text():
    print("moov atom not found", file=sys.stderr)
    sys.exit(183)
pathlib.Path(sys.argv[-1]).write_text(pathlib.Path(listing).read_text())
"""


@pytest.fixture
def tools(tools_of: Callable[..., Tools]) -> Tools:
    return tools_of("video")


def program(place: Path, code: str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"#!{sys.executable} -IS\n{textwrap.dedent(code)}")
    place.chmod(0o755)
    return place


@pytest.fixture
def manim(files: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A manim in the workspace's own environment."""
    monkeypatch.setenv("DEVALL_CODE_SANDBOX", "off")
    return program(files / ".venv/bin/manim", MANIM)


@pytest.fixture
def ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DEVALL_CODE_SANDBOX", "off")
    place = program(tmp_path / "bin/ffmpeg", STAND_IN)
    monkeypatch.setenv("PATH", f"{place.parent}{os.pathsep}{os.environ['PATH']}")
    return place


def names(files: Path) -> set[str]:
    return {each.name for each in files.iterdir()}


async def test_the_first_scene_of_a_script_is_rendered_beside_it(
    tools: Tools, files: Path, manim: Path
):
    (files / "scenes").mkdir()
    (files / "scenes/a.py").write_text(SCRIPT)
    text = await tools.text("render_manim", script_path="scenes/a.py", quality="l", preview=True)
    assert text.startswith("scenes/Intro.mp4 (")
    arguments = (files / "scenes/Intro.mp4").read_text()
    assert "'-ql'" in arguments
    assert f"'{files.resolve() / 'scenes/a.py'}', 'Intro'" in arguments
    assert names(files) == {"scenes", ".venv"}


@pytest.mark.parametrize(
    ("script", "said"),
    [("x = 1", "holds no class"), ("class A(", "is no Python"), (None, "there is no 'a.py'")],
)
async def test_a_script_without_a_scene_is_refused(
    tools: Tools, files: Path, manim: Path, script: str | None, said: str
):
    if script is not None:
        (files / "a.py").write_text(script)
    with pytest.raises(ToolFailed, match=said):
        await tools.result("render_manim", script_path="a.py")


@pytest.mark.parametrize(
    ("variable", "said"),
    [("FAILS", r"manim failed \(exit code 1\): LaTeX is missing"), ("EMPTY", "no video of Intro")],
)
async def test_a_rendering_that_fails_tells_why_and_leaves_nothing(
    tools: Tools,
    files: Path,
    manim: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    said: str,
):
    (files / "a.py").write_text(SCRIPT)
    monkeypatch.setenv(variable, "1")
    with pytest.raises(ToolFailed, match=said):
        await tools.result("render_manim", script_path="a.py")
    assert names(files) == {"a.py", ".venv"}


async def test_a_rendering_ends_with_the_time_limit_of_the_source(
    tools_of: Callable[..., Tools], files: Path, manim: Path, monkeypatch: pytest.MonkeyPatch
):
    (files / "a.py").write_text(SCRIPT)
    monkeypatch.setenv("HANGS", "1")
    with pytest.raises(ToolFailed, match=r"did not end within 0\.7 s"):
        await tools_of("video", timeout=0.7).result("render_manim", script_path="a.py")
    assert names(files) == {"a.py", ".venv"}


async def test_without_manim_the_way_to_it_is_told(
    tools: Tools, files: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    if Path(sys.executable).with_name("manim").exists():
        pytest.skip("manim is installed beside this Python")
    (files / "a.py").write_text(SCRIPT)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolFailed, match="manim is not installed") as failure:
        await tools.result("render_manim", script_path="a.py")
    assert "install_python_packages" in failure.value.hint


async def test_videos_are_listed_for_ffmpeg_whatever_their_names(
    tools: Tools, files: Path, ffmpeg: Path
):
    (files / "v").mkdir()
    for name in ("v/a.mp4", "it's; rm -rf.mp4"):
        (files / name).touch()
    paths = ["v/a.mp4", "it's; rm -rf.mp4", "v/a.mp4"]
    text = await tools.text("concat_videos", video_paths=paths)
    assert text.startswith("v/combined_video.mp4 (")
    base = files.resolve()
    assert (files / "v/combined_video.mp4").read_text().splitlines() == [
        f"file '{base}/v/a.mp4'",
        f"file '{base}/it'\\''s; rm -rf.mp4'",
        f"file '{base}/v/a.mp4'",
    ]
    assert names(files) == {"v", "it's; rm -rf.mp4"}


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (["gone.mp4"], "there is no video 'gone.mp4'"),
        (["../x.mp4"], "workspace"),
        (["/etc/passwd"], "workspace"),
        (["combined_video.mp4"], "cannot be one of its parts"),
        (["bad.mp4"], r"ffmpeg failed \(exit code 183\): moov atom not found"),
        ([], "video_paths"),
    ],
)
async def test_videos_that_cannot_be_put_together_are_named(
    tools: Tools, files: Path, ffmpeg: Path, paths: list[str], said: str
):
    (files / "combined_video.mp4").write_text("old")
    (files / "bad.mp4").touch()
    with pytest.raises((ToolFailed, ToolArguments), match=said):
        await tools.result("concat_videos", video_paths=paths)
    assert names(files) == {"combined_video.mp4", "bad.mp4"}
    assert (files / "combined_video.mp4").read_text() == "old"


async def test_without_ffmpeg_the_user_is_told_how_to_install_it(
    tools: Tools, files: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (files / "a.mp4").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolFailed, match="ffmpeg is not installed") as failure:
        await tools.result("concat_videos", video_paths=["a.mp4"])
    assert "install ffmpeg" in failure.value.hint


@needs_ffmpeg
async def test_the_real_ffmpeg_puts_videos_together(tools: Tools, files: Path):
    source = ["-f", "lavfi", "-i", "testsrc=duration=1:size=64x48:rate=10"]
    for name in ("a.mp4", "b c.mp4"):
        quiet = ["-loglevel", "error", "-pix_fmt", "yuv420p"]
        subprocess.run([FFMPEG, *source, *quiet, str(files / name)], check=True)
    text = await tools.text("concat_videos", video_paths=["a.mp4", "b c.mp4"])
    assert text.startswith("combined_video.mp4 (")
    asked = ["-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0"]
    told = subprocess.run(
        [FFPROBE, *asked, str(files / "combined_video.mp4")], check=True, capture_output=True
    )
    assert 1.8 < float(told.stdout) < 2.2


@needs_ffmpeg
@pytest.mark.parametrize(
    "playlist",
    [
        "ffconcat version 1.0\nfile '{}'\n",
        "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile://{}\n#EXT-X-ENDLIST\n",
    ],
    ids=["concat", "hls"],
)
async def test_a_playlist_is_no_way_to_other_files(
    tools: Tools, files: Path, tmp_path: Path, playlist: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DEVALL_CODE_SANDBOX", "off")
    source = ["-f", "lavfi", "-i", "testsrc=duration=1:size=64x48:rate=10", "-loglevel", "error"]
    subprocess.run([FFMPEG, *source, str(tmp_path / "outside.mp4")], check=True)
    (files / "a.mp4").write_text(playlist.format(tmp_path / "outside.mp4"))
    with pytest.raises(ToolFailed, match="ffmpeg failed"):
        await tools.result("concat_videos", video_paths=["a.mp4"])
