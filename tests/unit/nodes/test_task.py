from __future__ import annotations

from pathlib import Path

import pytest

from devall.core.errors import UsageError
from devall.core.messages import MediaPart, TextPart, user
from devall.nodes.task import INLINE, Attachment, task_message
from devall.workspace import Workspace

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_a_task_alone_is_a_user_s_text(workspace: Workspace):
    assert task_message("go", (), workspace) == user("go")
    assert not workspace.root.joinpath("workspace").exists()


def test_attachments_are_files_and_what_a_model_can_take_is_given_to_it(workspace: Workspace):
    given = [
        Attachment(PNG, "image/png", "cat.png"),
        Attachment("größe".encode(), "text/plain", "notes.txt"),
        Attachment(b"\0\1", "application/x-thing", "C:\\a\\..\\thing:1.bin"),
        Attachment(b"x" * (INLINE + 1), "text/plain", "long.txt"),
    ]
    message = task_message("look", given, workspace)
    assert message.role == "user"
    names = {path.name: path.read_bytes() for path in workspace.files.iterdir()}
    assert names.keys() == {"cat.png", "notes.txt", "thing_1.bin", "long.txt"}
    assert names["cat.png"] == PNG
    media = [part for part in message.parts if isinstance(part, MediaPart)]
    assert [part.mime_type for part in media] == ["image/png"]
    texts = [part.text for part in message.parts if isinstance(part, TextPart)]
    assert texts[0] == "look"
    assert "größe" in texts
    assert not any("xxx" in text for text in texts)
    assert sum("a file in the workspace" in text for text in texts) == 4


@pytest.mark.parametrize("name", ["", "..", "/", "a/.."])
def test_a_name_that_is_none_is_made_up(workspace: Workspace, name: str):
    task_message("", [Attachment(b"x", name=name)], workspace)
    assert [path.name for path in workspace.files.iterdir()] == ["attachment-1"]


def test_two_attachments_of_one_name_are_refused(workspace: Workspace):
    given = [Attachment(b"x", name="a"), Attachment(b"y", name="b/a")]
    with pytest.raises(UsageError, match="two attachments"):
        task_message("", given, workspace)
