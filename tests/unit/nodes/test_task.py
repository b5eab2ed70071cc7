from __future__ import annotations

from pathlib import Path

import pytest

from devall.core.errors import UsageError
from devall.core.messages import MediaPart, Message, TextPart, user
from devall.manifest import read_manifest
from devall.nodes.task import INLINE, INLINE_IN_ALL, Attachment, task_message
from devall.workspace import Workspace

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "run")


def media(message: Message) -> list[tuple[str, str, str]]:
    return [(p.type, p.mime_type, p.name) for p in message.parts if isinstance(p, MediaPart)]


def texts(message: Message) -> list[str]:
    return [part.text for part in message.parts if isinstance(part, TextPart)]


def test_a_task_alone_is_a_user_s_text(workspace: Workspace):
    assert task_message("go", (), workspace) == user("go")
    assert not workspace.root.exists()


def test_attachments_are_files_and_what_a_model_can_take_is_given_to_it(workspace: Workspace):
    given = [
        Attachment(PNG, "image/png", "cat.png"),
        Attachment("größe".encode(), "text/plain", "notes.txt"),
        Attachment(b"\0\1", "application/x-thing", "C:\\a\\..\\thing:1.bin"),
        Attachment(b"%PDF-1.7", "application/pdf", "paper.pdf"),
        Attachment(b"RIFF", "audio/wav", "said.wav"),
    ]
    message = task_message("look", given, workspace)
    assert message.role == "user"
    names = {path.name: path.read_bytes() for path in workspace.files.iterdir()}
    assert names.keys() == {"cat.png", "notes.txt", "thing_1.bin", "paper.pdf", "said.wav"}
    assert names["cat.png"] == PNG
    assert media(message) == [
        ("image", "image/png", "cat.png"),
        ("file", "application/pdf", "paper.pdf"),
        ("audio", "audio/wav", "said.wav"),
    ]
    found = texts(message)
    assert found[0] == "look"
    assert "größe" in found
    assert sum("a file in the workspace" in text for text in found) == 5
    [thing] = [text for text in found if "thing_1.bin" in text]
    assert thing.endswith("(its content is not shown)")


def test_a_long_text_is_cut_and_it_is_said(workspace: Workspace):
    text = "x" * INLINE + "end"
    message = task_message("", [Attachment(text.encode(), "text/plain", "long.txt")], workspace)
    about, shown = texts(message)
    assert about.endswith(f"(only its first {INLINE} of {INLINE + 3} characters are shown)")
    assert shown == "x" * INLINE
    assert (workspace.files / "long.txt").read_text() == text


def test_many_texts_share_the_room_that_there_is(workspace: Workspace):
    given = [Attachment(b"y" * INLINE, "text/plain", f"{n}.txt") for n in range(9)]
    found = texts(task_message("", given, workspace))
    assert sum(len(text) for text in found if text.startswith("yy")) == INLINE_IN_ALL
    assert found[-1].endswith(f"(only its first 0 of {INLINE} characters are shown)")


@pytest.mark.parametrize(
    ("name", "data", "mime_type", "shown"),
    [
        ("a.py", b"print(1)", "text/x-python", "print(1)"),
        ("Makefile", b"all:\n\ttrue\n", "application/octet-stream", "all:\n\ttrue\n"),
        ("a.json", b'{"a": 1}', "application/json", '{"a": 1}'),
        ("a.svg", b"<svg/>", "image/svg+xml", "<svg/>"),
        ("bom.txt", b"\xef\xbb\xbfhi", "text/plain", "hi"),
        ("wide.txt", "hé".encode("utf-16"), "text/plain", "hé"),
        ("old.txt", b"caf\xe9", "text/plain", "caf�"),
        ("a.bin", b"\x00\x01", "application/octet-stream", None),
        ("a.zip", b"PK\x03\x04\xff", "application/zip", None),
    ],
)
def test_texts_of_all_kinds_are_shown_as_texts(
    workspace: Workspace, tmp_path: Path, name: str, data: bytes, mime_type: str, shown: str | None
):
    place = tmp_path / name
    place.write_bytes(data)
    attachment = Attachment.of_file(place)
    assert (attachment.mime_type, attachment.name) == (mime_type, name)
    found = texts(task_message("", [place], workspace))
    assert found[1:] == ([] if shown is None else [shown])


def test_the_first_bytes_tell_more_than_the_name(tmp_path: Path):
    place = tmp_path / "photo.txt"
    place.write_bytes(PNG)
    assert Attachment.of_file(place).mime_type == "image/png"


@pytest.mark.parametrize("name", ["none.txt", ".", "a/b"])
def test_what_cannot_be_attached_is_wrong_usage(tmp_path: Path, name: str):
    with pytest.raises(UsageError, match="attach"):
        Attachment.of_file(tmp_path / name)


def test_every_attachment_is_kept_and_listed_as_the_users(workspace: Workspace):
    given = [Attachment(PNG, "image/png", "cat.png"), Attachment(b"\0", name="x.bin")]
    task_message("", given, workspace)
    listed = read_manifest(workspace.attachments)
    assert [(e["name"], e["mime_type"], e["size"], e["made_by"]) for e in listed] == [
        ("cat.png", "image/png", 8, "user"),
        ("x.bin", "application/octet-stream", 1, "user"),
    ]
    assert all((workspace.attachments / str(e["attachment"])).is_file() for e in listed)


@pytest.mark.parametrize("name", ["", "..", "/", "a/.."])
def test_a_name_that_is_none_is_made_up(workspace: Workspace, name: str):
    task_message("", [Attachment(b"x", name=name)], workspace)
    assert [path.name for path in workspace.files.iterdir()] == ["attachment-1"]


def test_two_attachments_of_one_name_are_refused(workspace: Workspace):
    given = [Attachment(b"x", name="a"), Attachment(b"y", name="b/a")]
    with pytest.raises(UsageError, match="two attachments"):
        task_message("", given, workspace)
