"""Videos: rendered by manim, put together by ffmpeg.

Both are programs of the machine: manim is looked for in the workspace's own environment (made by
init_python_env), then beside devall's Python and on the PATH.
"""

from __future__ import annotations

import ast
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from devall.core.errors import ToolArguments, ToolFailed
from devall.sandbox import network_allowed
from devall.tools.context import MORE_TIME, ToolContext
from devall.workspace import Workspace

from ._child import MAX_OUTPUT, code_limits, environment, run_limited, sandbox_for
from ._run import shortened, workspace_of

_SECONDS = 1800.0
_SHOWN = 3000
_FORMATS = "concat,mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,flv,ogg,asf,gif"


async def render_manim(
    script_path: Annotated[
        str, Field(description="A Python file with a scene of manim, relative to the workspace.")
    ],
    quality: Annotated[
        Literal["l", "m", "h", "p", "k"],
        Field(description="l: 480p, m: 720p, h: 1080p, p: 1440p, k: 2160p."),
    ] = "h",
    preview: Annotated[
        bool, Field(description="Accepted and without effect: nobody sits before a screen here.")
    ] = False,
    *,
    _context: ToolContext,
) -> str:
    """Render the first scene of a script; the video is put beside the script."""
    del preview
    workspace = workspace_of(_context)
    files = workspace.files.resolve()
    with workspace.at(script_path) as place, place.open() as file:
        scene = _first_scene(file.read(), script_path)
        script = files / place.path
    command = _manim(files)
    media = Path(tempfile.mkdtemp(prefix=".manim_", dir=files))
    try:
        arguments = ["render", f"-q{quality}", "--media_dir", str(media), "--format", "mp4"]
        await _run([*command, *arguments, str(script), scene], _context, "manim")
        target = f"{script_path.rpartition('/')[0]}/{scene}.mp4".lstrip("/")
        return _put(workspace, _video_of(media, scene), target)
    finally:
        shutil.rmtree(media, ignore_errors=True)


async def concat_videos(
    video_paths: Annotated[
        Sequence[str],
        Field(
            min_length=1,
            description="Videos of the same format, in their order, relative to the workspace.",
        ),
    ],
    *,
    _context: ToolContext,
) -> str:
    """Put videos together into combined_video.mp4, which lies beside the first of them."""
    workspace = workspace_of(_context)
    files = workspace.files.resolve()
    program = shutil.which("ffmpeg")
    if program is None:
        raise ToolFailed(
            "ffmpeg is not installed here, and videos are put together by it",
            hint="this is for the user: install ffmpeg (Debian: apt install ffmpeg)",
        )
    places = [workspace.confine(path) for path in video_paths]
    for path, place in zip(video_paths, places, strict=True):
        if not place.is_file():
            raise ToolFailed(f"there is no video {path!r} in the workspace")
    target = places[0].parent / "combined_video.mp4"
    if target in places:
        raise ToolArguments("combined_video.mp4 is what is made: it cannot be one of its parts")
    work = Path(tempfile.mkdtemp(prefix=".ffmpeg_", dir=files))
    try:
        listing = work / "list.txt"
        listing.write_text("".join(f"file {_quoted(place)}\n" for place in places), "utf-8")
        made = work / "made.mp4"
        # The kinds of input are named: a playlist could ask for files from anywhere.
        allowed = ["-protocol_whitelist", "file", "-format_whitelist", _FORMATS]
        inputs = [*allowed, "-f", "concat", "-safe", "0", "-i", str(listing)]
        command = [program, "-nostdin", "-hide_banner", "-loglevel", "error", "-y", *inputs]
        await _run([*command, "-c", "copy", str(made)], _context, "ffmpeg")
        return _put(workspace, made, target.relative_to(files).as_posix())
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _first_scene(source: bytes, path: str) -> str:
    """The name of the first class that is a scene, or of the first class at all."""
    try:
        tree = ast.parse(source, filename=path)
    except (SyntaxError, ValueError) as error:
        raise ToolFailed(f"{path!r} is no Python: {error}") from error
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    scenes = [c for c in classes if any(ast.unparse(b).endswith("Scene") for b in c.bases)]
    if not classes:
        raise ToolFailed(
            f"{path!r} holds no class",
            hint="write one that is a Scene: `class Intro(Scene)` with a method `construct`",
        )
    return (scenes or classes)[0].name


def _manim(files: Path) -> list[str]:
    """The command that is manim."""
    beside = [files / ".venv/bin/manim", Path(sys.executable).with_name("manim")]
    found = next((str(path) for path in beside if path.is_file()), None) or shutil.which("manim")
    if found is None:
        raise ToolFailed(
            "manim is not installed here, and scenes are rendered by it",
            hint="install it into the workspace: install_python_packages(['manim']); the machine"
            " needs ffmpeg, cairo and pango for it",
        )
    return [found]


async def _run(command: Sequence[str], context: ToolContext, title: str) -> None:
    """Run a program in the workspace, closed in; its error output tells why it failed."""
    files = workspace_of(context).files.resolve()
    seconds = context.take_time(_SECONDS)
    sandbox = await sandbox_for(
        files, network=network_allowed(), readable=[Path(command[0]).parent]
    )
    result = await run_limited(
        [*sandbox.prefix, *command],
        cwd=files,
        env=environment({"TMPDIR": "/tmp"} if sandbox.prefix else None),  # noqa: S108
        seconds=seconds,
        limits={name: bound for name, bound in code_limits().items() if name != "RLIMIT_FSIZE"},
    )
    said = (result.stderr or result.stdout)[-MAX_OUTPUT:].decode("utf-8", "replace").strip()
    if result.exit_code is None:
        raise ToolFailed(
            f"{title} did not end within {seconds:g} s: {shortened(said, _SHOWN)}".rstrip(": "),
            hint=MORE_TIME if seconds < _SECONDS else "",
        )
    if result.exit_code:
        raise ToolFailed(
            f"{title} failed (exit code {result.exit_code}): {shortened(said, _SHOWN)}"
        )


def _quoted(place: Path) -> str:
    """A path as ffmpeg's list of files has it."""
    return "'" + str(place).replace("'", "'\\''") + "'"


def _video_of(media: Path, scene: str) -> Path:
    """What manim has made; its parts lie in folders of their own."""
    videos = sorted(p for p in media.rglob(f"{scene}.mp4") if p.is_file())
    if not videos:
        raise ToolFailed(f"manim made no video of {scene}: does it play anything?")
    return videos[0]


def _put(workspace: Workspace, made: Path, target: str) -> str:
    """Move what was made to its place; the place and its size, for people."""
    with workspace.at(target, follow=False) as place:
        os.replace(made, place.name, dst_dir_fd=place.folder)
        found = place.stat()
        return f"{place.path} ({found.st_size if found else 0} bytes)"
