from __future__ import annotations

import os
import shutil
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from devall.core.errors import ToolFailed
from devall.workspace import Workspace, private_folder, write_private


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "run")


def read(workspace: Workspace, path: str) -> bytes:
    with workspace.at(path) as place, place.open() as file:
        return file.read()


# Paths

NAMES = ["a", "b", "..", ".", "", "/", "~", "link", "up", "abs", "loop", "pipe", "\0", "\ud800"]


@given(st.lists(st.sampled_from(NAMES), max_size=6).map("/".join) | st.text(max_size=20))
@example("../outside/secret")
@example("link/secret")
@example("a/up/secret")
@example("abs")
@example("loop/x")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_path_whatever_leads_out_of_the_workspace(tmp_path: Path, path: str):
    workspace = Workspace(tmp_path / "run")
    _with_traps(tmp_path, workspace.files)
    base = workspace.files.resolve()
    outside = _seen(tmp_path / "outside")
    try:
        place = workspace.confine(path)
    except ToolFailed:
        pass
    else:
        assert place.is_relative_to(base)
        assert place.resolve().is_relative_to(base)
    try:
        with workspace.at(path, make_parents=True) as found:
            found.write(b"written")
    except ToolFailed:
        pass
    else:
        assert (base / found.path).read_bytes() == b"written"
        assert os.path.realpath(base / found.path) == str(base / found.path)
    assert _seen(tmp_path / "outside") == outside
    assert {each.name for each in tmp_path.iterdir()} == {"run", "outside"}


def _with_traps(tmp_path: Path, files: Path) -> None:
    """The workspace as it was before the example, and a folder outside that links lead to."""
    shutil.rmtree(files)
    (files / "a").mkdir(parents=True)
    (tmp_path / "outside").mkdir(exist_ok=True)
    (tmp_path / "outside/secret").write_text("secret")
    (files / "link").symlink_to("../../outside")
    (files / "a/up").symlink_to("../../../outside")
    (files / "abs").symlink_to(tmp_path / "outside/secret")
    (files / "loop").symlink_to("loop")
    (files / "inner").symlink_to("a")
    os.mkfifo(files / "pipe")


def _seen(folder: Path) -> list[tuple[str, bytes]]:
    return sorted((each.name, each.read_bytes()) for each in folder.iterdir())


@pytest.mark.parametrize(
    ("path", "said", "hint"),
    [
        ("/etc/passwd", "is absolute", "relative to the workspace"),
        ("../x", "holds `..`", "relative to the workspace"),
        ("a/../b.txt", "holds `..`", "write 'b.txt'"),
        ("~/b.txt", "home folder", "write 'b.txt'"),
        ("out/x", "leads out of the workspace: there is a link", "workspace itself"),
        ("x\0y", "zero byte", ""),
        ("\udfff\ud800", "no name that a file can have", ""),
        ("x" * 300, "longer than a file's name may be", ""),
        ("file/x", "no folder", ""),
        ("circle", "circle of links", ""),
        ("missing/x", "there is no 'missing/x' in the workspace", ""),
    ],
)
def test_a_path_that_is_refused_is_told_what_would_be_right(
    workspace: Workspace, path: str, said: str, hint: str
):
    (workspace.files / "out").symlink_to("/etc")
    (workspace.files / "file").touch()
    (workspace.files / "circle").symlink_to("circle")
    with pytest.raises(ToolFailed) as failure, workspace.at(path):
        pass
    assert said in str(failure.value)
    assert hint in failure.value.hint


def test_an_absolute_path_into_the_workspace_is_told_its_short_form(workspace: Workspace):
    with pytest.raises(ToolFailed) as failure:
        workspace.confine(str(workspace.files / "a/b.txt"))
    assert failure.value.hint == "write 'a/b.txt'"


@pytest.mark.parametrize("path", ["", ".", "./", "././"])
def test_the_workspace_itself_is_a_place(workspace: Workspace, path: str):
    assert workspace.confine(path) == workspace.files.resolve()
    with workspace.at(path) as place:
        assert place.path == "."
        assert place.is_folder()


def test_links_within_the_workspace_are_followed(workspace: Workspace):
    files = workspace.files
    (files / "a/b").mkdir(parents=True)
    (files / "a/b/x").write_text("found")
    (files / "relative").symlink_to("a/b/../b")
    (files / "absolute").symlink_to(files.resolve() / "a")
    (files / "a/b/back").symlink_to("../..")
    (files / "to_file").symlink_to("relative/x")
    for path in (
        "relative/x",
        "absolute/b/x",
        "a/b/back/a/b/x",
        "to_file",
        "absolute/b/back/to_file",
    ):
        assert read(workspace, path) == b"found"
        assert workspace.confine(path) == files.resolve() / "a/b/x"
    assert workspace.confine("a/b/back") == files.resolve()
    with workspace.at("to_file", follow=False) as place:
        assert place.path == "to_file"


def test_a_workspace_behind_a_link_is_used_like_any_other(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "seen").symlink_to("real")
    workspace = Workspace(tmp_path / "seen/run")
    with workspace.at("a/x", make_parents=True) as place:
        place.write(b"x")
    (workspace.files / "link").symlink_to(workspace.files.resolve() / "a")
    assert read(workspace, "link/x") == b"x"


def test_what_is_not_there_yet_can_be_confined(workspace: Workspace):
    assert workspace.confine("new/folder/x.txt") == workspace.files.resolve() / "new/folder/x.txt"
    assert not (workspace.files / "new").exists()
    (workspace.files / "dangling").symlink_to("new/../../../x")
    with pytest.raises(ToolFailed, match="leads out"):
        workspace.confine("dangling")


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_pipe_is_neither_confined_nor_opened_nor_written(workspace: Workspace, kind: str):
    os.mkfifo(workspace.files / "pipe")
    (workspace.files / "link").symlink_to("pipe")
    with pytest.raises(ToolFailed, match="FIFO"):
        workspace.confine(kind)
    with pytest.raises(ToolFailed, match="FIFO"):
        read(workspace, kind)
    for change in ("write", "append"):
        with pytest.raises(ToolFailed, match="FIFO"), workspace.at(kind) as place:
            getattr(place, change)(b"x")


def test_a_link_that_takes_a_folders_place_in_between_leads_nowhere(
    workspace: Workspace, tmp_path: Path
):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_text("precious")
    with workspace.at("a/x", make_parents=True) as place:
        (workspace.files / "a").rename(workspace.files / "b")
        (workspace.files / "a").symlink_to(outside)
        place.write(b"new")
    assert (outside / "x").read_text() == "precious"
    assert (workspace.files / "b/x").read_bytes() == b"new"


def test_a_link_that_takes_a_files_place_in_between_is_not_followed(
    workspace: Workspace, tmp_path: Path
):
    outside = tmp_path / "precious"
    outside.write_text("precious")
    (workspace.files / "x").write_text("x")
    for use in ("open", "append", "write"):
        with pytest.raises(ToolFailed), workspace.at("x") as place:  # noqa: PT012 -- see its name
            (workspace.files / "x").unlink()
            (workspace.files / "x").symlink_to(outside)
            getattr(place, use)(*([] if use == "open" else [b"new"]))
    assert outside.read_text() == "precious"


def test_nothing_leads_out_while_links_come_and_go(workspace: Workspace, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_text("precious")
    files = workspace.files
    (files / "real").mkdir()
    (files / "real/x").write_text("inner")
    (files / "trap").symlink_to(outside)
    (files / "door").symlink_to("real")
    stopped = threading.Event()

    def swap() -> None:
        for number in range(1_000_000):
            if stopped.is_set():
                return
            temporary = files / "next"
            temporary.symlink_to(outside if number % 2 else "real")
            temporary.replace(files / "door")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        seen: set[bytes] = set()
        for number in range(500):
            try:
                seen.add(read(workspace, "door/x"))
                with workspace.at("door/y") as place:
                    place.write(str(number).encode())
            except ToolFailed:
                seen.add(b"refused")
    finally:
        stopped.set()
        thread.join()
    assert seen <= {b"inner", b"refused"}
    assert [each.name for each in outside.iterdir()] == ["x"]


# Writing


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(workspace: Workspace):
    (workspace.files / "x").write_text("old")
    with pytest.raises(TypeError), workspace.at("x") as place:
        place.write("no bytes")  # pyright: ignore[reportArgumentType]
    assert [each.name for each in workspace.files.iterdir()] == ["x"]
    assert (workspace.files / "x").read_text() == "old"


def test_a_file_that_is_replaced_keeps_its_rights_but_no_set_user_id(workspace: Workspace):
    place = workspace.files / "x"
    place.touch()
    place.chmod(0o4751)
    with workspace.at("x") as found:
        found.write(b"new")
    assert stat.S_IMODE(place.stat().st_mode) == 0o751


def test_no_descriptor_stays_open(workspace: Workspace):
    (workspace.files / "a/b").mkdir(parents=True)
    (workspace.files / "link").symlink_to("a/b/../..")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in ("a/b/x", "link/a/b", "../x", "a/missing/x", "link"):
        try:
            with workspace.at(path) as place:
                place.write(b"x")
        except ToolFailed:
            pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_two_do_not_hold_a_folders_lock_at_once(workspace: Workspace):
    order: list[str] = []
    entered = threading.Event()

    def second() -> None:
        with workspace.at("b") as place:
            entered.set()
            with place.locked():
                order.append("second")

    with workspace.at("a") as place, place.locked():
        thread = threading.Thread(target=second)
        thread.start()
        assert entered.wait(5)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


# Attachments and folders


def test_the_same_bytes_are_kept_once(workspace: Workspace):
    one = workspace.save_attachment(b"data", "image/png", "a.png")
    two = workspace.save_attachment(b"data", "image/png", "b.png")
    assert one.attachment == two.attachment
    assert (one.type, one.name, two.name) == ("image", "a.png", "b.png")
    assert workspace.read_attachment(one.attachment) == b"data"
    assert len(list(workspace.attachments.glob("*.png"))) == 1


@pytest.mark.parametrize("name", ["../workspace/x", "/etc/passwd", "gone", ""])
def test_an_attachments_name_is_no_path(workspace: Workspace, name: str):
    (workspace.files / "x").touch()
    with pytest.raises(OSError):  # noqa: PT011 -- an empty name is the folder itself
        workspace.read_attachment(name)


def test_folders_and_files_are_the_users_alone(workspace: Workspace, tmp_path: Path):
    assert stat.S_IMODE(workspace.files.stat().st_mode) == 0o700
    assert stat.S_IMODE(private_folder(tmp_path / "a/b").stat().st_mode) == 0o700
    write_private(tmp_path / "a/x", b"x")
    assert stat.S_IMODE((tmp_path / "a/x").stat().st_mode) == 0o600
