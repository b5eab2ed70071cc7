from __future__ import annotations

import asyncio
import os
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devall.core.errors import ToolArguments, ToolFailed, ToolTimeout
from devall.core.messages import MediaPart
from devall.workspace import Workspace
from functions.function_calling._text import TextEdit, edited, split_lines

if TYPE_CHECKING:
    from tests.unit.functions.conftest import Tools

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


@pytest.fixture
def tools(tools_of: Callable[..., Tools]) -> Tools:
    return tools_of("file")


def write(place: Path, text: str = "") -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text.encode())
    return place


# What is there


async def test_the_files_of_the_workspace_and_the_attachments_are_described(
    tools: Tools, files: Path, workspace: Workspace
):
    write(files / "a/b.txt", "12345")
    write(files / ".hidden/c.txt")
    part = workspace.save_attachment(PNG, "image/png")
    found = (await tools.json("describe_available_files"))["files"]
    assert [(f["id"], f["type"], f["size"]) for f in found] == [
        ("a", "directory", None),
        ("a/b.txt", "file", 5),
        (part.attachment, "file", len(PNG)),
    ]
    assert found[2]["mime"] == "image/png"
    shown = await tools.json("describe_available_files", include_hidden=True, recursive=False)
    assert [f["id"] for f in shown["files"]] == [".hidden", "a", part.attachment]
    cut = await tools.json("describe_available_files", limit=1)
    assert [f["id"] for f in cut["files"]] == ["a"]
    assert cut["truncated"]


async def test_a_folder_is_listed_in_the_order_of_names_and_not_beyond_its_depth(
    tools: Tools, files: Path
):
    for name in ("b.txt", "a/deep/deeper/x.txt", "a/y.txt"):
        write(files / name, "..")
    flat = await tools.json("list_directory")
    assert [e["relative_path"] for e in flat["entries"]] == ["a", "b.txt"]
    assert (flat["directory"], flat["truncated"], flat["recursive"]) == (".", False, False)
    deep = await tools.json("list_directory", recursive=True, max_depth=2)
    assert [(e["relative_path"], e["depth"]) for e in deep["entries"]] == [
        ("a", 0),
        ("a/deep", 1),
        ("a/y.txt", 1),
        ("b.txt", 0),
    ]
    inner = await tools.json("list_directory", path="a", limit=1)
    assert [e["relative_path"] for e in inner["entries"]] == ["deep"]
    assert inner["truncated"]


async def test_links_and_odd_names_are_listed_and_not_followed(tools: Tools, files: Path):
    (files / "out").symlink_to("/etc")
    (files / os.fsdecode(b"caf\xe9")).touch()
    os.mkfifo(files / "pipe")
    found = (await tools.json("list_directory", recursive=True))["entries"]
    assert [(e["name"], e["type"]) for e in found] == [
        ("caf\ufffd", "file"),
        ("out", "link"),
        ("pipe", "other"),
    ]


@pytest.mark.parametrize(
    ("path", "said"),
    [("nowhere", "there is no 'nowhere'"), ("a.txt", "no folder"), ("..", "`..`")],
)
async def test_what_is_no_folder_is_not_listed(tools: Tools, files: Path, path: str, said: str):
    write(files / "a.txt")
    with pytest.raises(ToolFailed, match=re.escape(said)):
        await tools.result("list_directory", path=path)


# Folders and deletion


async def test_a_folder_is_made_with_those_above_it(tools: Tools, files: Path):
    assert await tools.json("create_folder", path="a/b") == {"path": "a/b", "created": True}
    assert (files / "a/b").is_dir()
    assert (await tools.json("create_folder", path="a/b"))["created"] is False
    with pytest.raises(ToolFailed, match="already"):
        await tools.result("create_folder", path="a/b", exist_ok=False)
    with pytest.raises(ToolFailed, match="there is no 'x/y'"):
        await tools.result("create_folder", path="x/y", parents=False)
    write(files / "f")
    with pytest.raises(ToolFailed, match="there is a file 'f' already"):
        await tools.result("create_folder", path="f")


async def test_a_folder_is_deleted_only_if_that_is_asked_for(tools: Tools, files: Path):
    write(files / "a/b.txt")
    with pytest.raises(ToolFailed, match="is a folder") as failure:
        await tools.result("delete_path", path="a")
    assert "recursive" in failure.value.hint
    assert (files / "a/b.txt").exists()
    deleted = await tools.json("delete_path", path="a", recursive=True)
    assert deleted == {"path": "a", "deleted": True, "type": "directory"}
    assert not (files / "a").exists()


@pytest.mark.parametrize("path", ["gone", "gone/deeper"])
async def test_what_is_missing_can_be_deleted_without_an_error(tools: Tools, path: str):
    with pytest.raises(ToolFailed, match="there is no"):
        await tools.result("delete_path", path=path)
    assert (await tools.json("delete_path", path=path, missing_ok=True))["deleted"] is False


async def test_a_link_is_deleted_and_not_what_it_leads_to(
    tools: Tools, files: Path, tmp_path: Path
):
    outside = write(tmp_path / "outside/precious.txt", "precious")
    (files / "file").symlink_to(outside)
    (files / "folder").symlink_to(outside.parent)
    (files / "tree").mkdir()
    (files / "tree/inner").symlink_to(outside.parent)
    await tools.result("delete_path", path="file")
    await tools.result("delete_path", path="folder", recursive=True)
    await tools.result("delete_path", path="tree", recursive=True)
    assert not any(files.iterdir())
    assert outside.read_text() == "precious"


@pytest.mark.parametrize("path", ["", ".", "./"])
@pytest.mark.parametrize(
    ("tool", "more"),
    [
        ("delete_path", {"recursive": True}),
        ("move_path", {"dst": "x"}),
        ("copy_path", {"dst": "x"}),
    ],
)
async def test_the_workspace_itself_stays(
    tools: Tools, files: Path, path: str, tool: str, more: dict[str, object]
):
    name = "path" if tool == "delete_path" else "src"
    with pytest.raises(ToolFailed, match="workspace itself"):
        await tools.result(tool, **{name: path}, **more)
    assert files.is_dir()


# Reading and writing


async def test_what_is_saved_is_read_again(tools: Tools, files: Path):
    saved = await tools.json("save_file", path="notes/plan.md", content="größer\n")
    assert saved == {"path": "notes/plan.md", "size": 9}
    await tools.result("save_file", path="notes/plan.md", content="more\n", mode="append")
    read = await tools.json("read_text_file_snippet", path="notes/plan.md")
    assert read["snippet"] == "größer\nmore\n"
    assert (read["length"], read["truncated"], read["encoding"]) == (12, False, "utf-8")
    assert [each.name for each in (files / "notes").iterdir()] == ["plan.md"]


async def test_a_file_that_is_replaced_keeps_its_rights(tools: Tools, files: Path):
    place = write(files / "run.sh", "old")
    place.chmod(0o755)
    await tools.result("save_file", path="run.sh", content="new")
    assert place.read_text() == "new"
    assert place.stat().st_mode & 0o777 == 0o755


async def test_a_character_that_the_encoding_lacks_leaves_the_file_as_it_was(
    tools: Tools, files: Path
):
    write(files / "a.txt", "old")
    with pytest.raises(ToolFailed, match="iso8859-1 cannot write"):
        await tools.result("save_file", path="a.txt", content="你好", encoding="latin-1")
    with pytest.raises(ToolFailed, match="no text encoding 'klingon'"):
        await tools.result("save_file", path="a.txt", content="x", encoding="klingon")
    with pytest.raises(ToolFailed, match="no text encoding 'hex'"):
        await tools.result("save_file", path="a.txt", content="x", encoding="hex")
    assert (files / "a.txt").read_text() == "old"


async def test_additions_at_the_same_time_are_all_kept(tools: Tools, files: Path):
    async with asyncio.TaskGroup() as group:
        for number in range(30):
            line = f"{number}\n"
            group.create_task(tools.result("save_file", path="log", content=line, mode="append"))
    assert sorted(map(int, (files / "log").read_text().split())) == list(range(30))


async def test_edits_at_the_same_time_are_all_kept(tools: Tools, files: Path):
    write(files / "a.txt", "top\n")
    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(
                tools.result(
                    "apply_text_edits",
                    path="a.txt",
                    start_line=1,
                    end_line=0,
                    replacement=str(number),
                )
            )
    assert len((files / "a.txt").read_text().splitlines()) == 21


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ("größer".encode("utf-8-sig"), "utf-8 with BOM"),
        ("größer".encode("utf-16"), "utf-16-le with BOM"),
        (b"\xfe\xff" + "größer".encode("utf-16-be"), "utf-16-be with BOM"),
        ("größer".encode("utf-32"), "utf-32-le with BOM"),
        ("größer".encode("cp1252"), "cp1252"),
        ("größer".encode("latin-1") + b" \x81", "latin-1"),
    ],
)
async def test_the_encoding_is_found_out_and_kept_by_an_edit(
    tools: Tools, files: Path, data: bytes, encoding: str
):
    (files / "a.txt").write_bytes(data)
    read = await tools.json("read_file_segment", path="a.txt")
    assert (read["encoding"], read["snippet"][:6]) == (encoding, "größer")
    snippet = await tools.json("read_text_file_snippet", path="a.txt")
    assert snippet["snippet"] == read["snippet"]
    edit = {"start_line": 1, "replacement": read["snippet"]}
    await tools.result("apply_text_edits", path="a.txt", **edit)
    assert (files / "a.txt").read_bytes() == data


async def test_a_chinese_file_is_read_in_its_encoding(tools: Tools, files: Path):
    text = "第一章开始\n第二章结束\n"
    (files / "a.txt").write_bytes(text.encode("gbk"))
    read = await tools.json("read_file_segment", path="a.txt", start_line=2)
    assert (read["encoding"], read["snippet"]) == ("gb18030", "第二章结束\n")


async def test_an_encoding_that_is_named_is_taken(tools: Tools, files: Path):
    (files / "a.txt").write_bytes("привет".encode("koi8-r"))
    read = await tools.json("read_file_segment", path="a.txt", encoding="koi8-r")
    assert read["snippet"] == "привет"
    with pytest.raises(ToolFailed, match="no text in utf-8"):
        await tools.result("read_file_segment", path="a.txt", encoding="utf-8")


async def test_a_binary_file_is_no_text(tools: Tools, files: Path):
    (files / "a.bin").write_bytes(b"\x7fELF\0\0\1")
    for tool in ("read_text_file_snippet", "read_file_segment", "load_file"):
        with pytest.raises(ToolFailed, match="binary file"):
            await tools.result(tool, **{"path_or_id" if tool == "load_file" else "path": "a.bin"})


async def test_a_part_of_a_large_file_is_read_by_characters(tools: Tools, files: Path):
    (files / "big.txt").write_text("é" * 3_000_000 + "end")
    read = await tools.json("read_text_file_snippet", path="big.txt", offset=2_999_998, limit=4)
    assert read["snippet"] == "ééen"
    assert (read["length"], read["truncated"]) == (3_000_003, True)


async def test_a_file_of_several_gigabytes_is_refused_where_lines_are_counted(
    tools: Tools, files: Path
):
    with (files / "huge").open("wb") as file:
        file.truncate(5 << 30)
    with pytest.raises(ToolFailed, match="lines are counted up to"):
        await tools.result("read_file_segment", path="huge")
    with pytest.raises(ToolFailed, match="can be shown"):
        await tools.result("load_file", path_or_id="huge")


async def test_lines_count_from_one_and_only_line_ends_end_them(tools: Tools, files: Path):
    write(files / "a.txt", "one\x0c\u2028still one\r\ntwo\rthree\n")
    read = await tools.json("read_file_segment", path="a.txt", start_line=2, line_count=1)
    assert (read["snippet"], read["end_line"], read["total_lines"]) == ("two\r", 2, 3)
    assert (read["truncated"], read["newline"]) == (True, "mixed")
    numbered = await tools.json(
        "read_file_segment", path="a.txt", start_line=2, inline_line_numbers=True
    )
    assert numbered["snippet"] == "2:two\r3:three\n"
    offsets = await tools.json(
        "read_file_segment", path="a.txt", start_line=2, include_line_offsets=True
    )
    assert offsets["line_offsets"] == [{"line": 2, "offset": 16}, {"line": 3, "offset": 20}]
    with pytest.raises(ToolFailed, match="has 3 lines: there is no line 4"):
        await tools.result("read_file_segment", path="a.txt", start_line=4)


async def test_an_empty_file_has_no_lines(tools: Tools, files: Path):
    write(files / "a.txt")
    read = await tools.json("read_file_segment", path="a.txt")
    assert (read["snippet"], read["total_lines"], read["truncated"]) == ("", 0, False)
    await tools.result("apply_text_edits", path="a.txt", start_line=1, replacement="first\n")
    assert (files / "a.txt").read_text() == "first\n"


# Edits


@pytest.mark.parametrize(
    ("edit", "after"),
    [
        ({"start_line": 2, "replacement": "B"}, "a\nB\nc\n"),
        ({"start_line": 2, "replacement": "B\n"}, "a\nB\nc\n"),
        ({"start_line": 2, "replacement": ""}, "a\nc\n"),
        ({"start_line": 2, "replacement": "\n"}, "a\n\nc\n"),
        ({"start_line": 1, "end_line": 3, "replacement": "x\ny"}, "x\ny\n"),
        ({"start_line": 1, "end_line": 0, "replacement": "x"}, "x\na\nb\nc\n"),
        ({"start_line": 4, "end_line": 3, "replacement": "d"}, "a\nb\nc\nd\n"),
        ({"start_line": 4, "replacement": "d"}, "a\nb\nc\nd\n"),
        ({"start_line": 1, "end_line": 3}, ""),
        ({"start_line": 3, "replacement": "C", "ensure_trailing_newline": False}, "a\nb\nC"),
        ({"start_line": 2, "replacement": "B", "newline": "crlf"}, "a\r\nB\r\nc\r\n"),
        ({"start_line": 2, "replacement": "B", "expected": "b"}, "a\nB\nc\n"),
        (
            {"edits": [{"start_line": 3, "replacement": "C"}, {"start_line": 1}]},
            "b\nC\n",
        ),
        (
            {"start_line": 1, "replacement": "A", "edits": [{"start_line": 2, "replacement": "B"}]},
            "A\nB\nc\n",
        ),
        (
            {
                "edits": [
                    {"start_line": 2, "end_line": 1, "replacement": "1"},
                    {"start_line": 2, "end_line": 1, "replacement": "2"},
                    {"start_line": 2, "replacement": "B"},
                ]
            },
            "a\n1\n2\nB\nc\n",
        ),
    ],
)
async def test_an_edit_changes_its_lines_and_no_other(
    tools: Tools, files: Path, edit: dict[str, object], after: str
):
    write(files / "a.txt", "a\nb\nc\n")
    done = await tools.json("apply_text_edits", path="a.txt", **edit)
    assert (files / "a.txt").read_bytes().decode() == after
    assert done["line_count"] == len(split_lines(after))
    assert done["file_size"] == len(after)


async def test_other_line_ends_and_a_missing_last_one_are_kept(tools: Tools, files: Path):
    write(files / "a.txt", "a\r\nb\r\nc\nd")
    await tools.result("apply_text_edits", path="a.txt", start_line=2, replacement="B\nBB")
    assert (files / "a.txt").read_bytes() == b"a\r\nB\r\nBB\r\nc\nd"
    await tools.result("apply_text_edits", path="a.txt", start_line=6, replacement="e")
    assert (files / "a.txt").read_bytes() == b"a\r\nB\r\nBB\r\nc\nd\r\ne"


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([{"start_line": 1, "end_line": 2}, {"start_line": 2}], "line 2 overlaps lines 1-2"),
        (
            [{"start_line": 1, "end_line": 3}, {"start_line": 3, "end_line": 2}],
            "before line 3 over",
        ),
        ([{"start_line": 5, "replacement": "x"}], "the file has 3 lines"),
        ([{"start_line": 2, "end_line": 9}], "lines 2-9: the file has 3 lines"),
        ([{"start_line": 3, "end_line": 1}], "end_line 1 lies before start_line 3"),
        ([{"start_line": 2, "expected": "B"}], "line 2: not what was expected; now there: 'b'"),
    ],
)
async def test_edits_that_do_not_fit_change_nothing_at_all(
    tools: Tools, files: Path, edits: list[dict[str, object]], said: str
):
    write(files / "a.txt", "a\nb\nc\n")
    good = {"start_line": 4, "replacement": "good"}
    with pytest.raises(ToolFailed, match="nothing was changed") as failure:
        await tools.result("apply_text_edits", path="a.txt", edits=[*edits, good])
    assert said in str(failure.value)
    assert (files / "a.txt").read_text() == "a\nb\nc\n"


async def test_every_conflict_of_a_call_is_named(tools: Tools, files: Path):
    write(files / "a.txt", "a\nb\n")
    edits = [{"start_line": 1, "expected": "x"}, {"start_line": 2, "expected": "y"}]
    with pytest.raises(ToolFailed) as failure:
        await tools.result("apply_text_edits", path="a.txt", edits=edits)
    assert "line 1: not" in str(failure.value)
    assert "line 2: not" in str(failure.value)


async def test_a_call_without_an_edit_is_told_what_is_missing(tools: Tools, files: Path):
    write(files / "a.txt")
    with pytest.raises(ToolArguments, match="start_line"):
        await tools.result("apply_text_edits", path="a.txt")


lines_strategy = st.lists(
    st.tuples(st.text("ab\x0c\u2028 ", max_size=3), st.sampled_from(["\n", "\r\n", "\r"])),
    max_size=8,
)


@given(lines_strategy, st.text("xy", max_size=3), st.data())
def test_a_replaced_range_leaves_all_else_byte_for_byte(
    lines: list[tuple[str, str]], replacement: str, data: st.DataObject
):
    text = "".join(body + end for body, end in lines)
    lines = split_lines(text)  # "\r" before "\n" became one line end
    start = data.draw(st.integers(1, len(lines) + 1))
    end = data.draw(st.integers(start - 1, len(lines)))
    new, _ = edited(
        text, [TextEdit(start_line=start, end_line=end, replacement=replacement)], "preserve", None
    )
    before = "".join(body + end for body, end in lines[: start - 1])
    after = "".join(body + end for body, end in lines[end:])
    assert new.startswith(before)
    assert new.endswith(after)
    middle = new[len(before) : len(new) - len(after)]
    assert [body for body, _ in split_lines(middle)] == ([replacement] if replacement else [])


# Other names


async def test_files_and_folders_get_other_names(tools: Tools, files: Path):
    write(files / "a/b.txt", "b")
    moved = await tools.json("move_path", src="a/b.txt", dst="new/place/c.txt")
    assert moved["path"] == "new/place/c.txt"
    assert moved["previous_path"] == "a/b.txt"
    await tools.result("rename_path", src="new", dst="old")
    await tools.result("copy_path", src="old", dst="copy")
    assert (files / "old/place/c.txt").read_text() == "b"
    assert (files / "copy/place/c.txt").read_text() == "b"
    assert not (files / "new").exists()
    same = await tools.json("move_path", src="old", dst="./old/")
    assert same["skipped"]


@pytest.mark.parametrize("tool", ["move_path", "rename_path", "copy_path"])
@pytest.mark.parametrize("kind", ["file", "folder"])
async def test_what_is_there_is_replaced_only_if_that_is_asked_for(
    tools: Tools, files: Path, tool: str, kind: str
):
    write(files / "src/x", "new") if kind == "folder" else write(files / "src", "new")
    write(files / "dst/y", "old")
    with pytest.raises(ToolFailed, match="there is a 'dst' already") as failure:
        await tools.result(tool, src="src", dst="dst")
    assert "overwrite" in failure.value.hint
    await tools.result(tool, src="src", dst="dst", overwrite=True)
    assert (files / ("dst/x" if kind == "folder" else "dst")).read_text() == "new"
    assert not (files / "dst/y").exists()
    assert (files / "src").exists() == (tool == "copy_path")
    assert {each.name for each in files.iterdir()} <= {"src", "dst"}


@pytest.mark.parametrize("tool", ["move_path", "copy_path"])
async def test_a_folder_does_not_go_into_itself_nor_replace_what_holds_it(
    tools: Tools, files: Path, tool: str
):
    write(files / "a/b/c.txt", "c")
    with pytest.raises(ToolFailed, match="lies in 'a' itself"):
        await tools.result(tool, src="a", dst="a/b/d")
    with pytest.raises(ToolFailed, match="would lose both"):
        await tools.result(tool, src="a/b", dst="a", overwrite=True)
    assert (files / "a/b/c.txt").read_text() == "c"


async def test_a_copy_keeps_links_as_links_and_leaves_pipes_out(tools: Tools, files: Path):
    write(files / "a/x.sh", "x").chmod(0o750)
    (files / "a/link").symlink_to("x.sh")
    os.mkfifo(files / "a/pipe")
    done = await tools.json("copy_path", src="a", dst="b")
    assert done["left_out"] == ["a/pipe"]
    assert (files / "b/link").readlink() == Path("x.sh")
    assert (files / "b/x.sh").stat().st_mode & 0o777 == 0o750
    assert not (files / "b/pipe").exists()


async def test_a_link_moves_itself_and_is_copied_as_what_it_leads_to(tools: Tools, files: Path):
    write(files / "a.txt", "a")
    (files / "link").symlink_to("a.txt")
    await tools.result("copy_path", src="link", dst="copy")
    await tools.result("move_path", src="link", dst="moved")
    assert (files / "moved").is_symlink()
    assert (files / "copy").read_text() == "a"
    assert not (files / "copy").is_symlink()


@pytest.mark.parametrize("tool", ["move_path", "copy_path", "rename_path"])
async def test_what_is_missing_has_no_other_name(tools: Tools, tool: str):
    with pytest.raises(ToolFailed, match="there is no 'gone'"):
        await tools.result(tool, src="gone", dst="x")


# Search


async def test_a_search_tells_file_line_column_and_what_stands_around(tools: Tools, files: Path):
    write(files / "src/a.py", "one\ntwo needle\nthree\nfour\n")
    write(files / "b.md", "Needle needle\n")
    found = await tools.json("search_in_files", pattern="needle", after_context=1)
    assert [(m["file"], m["line"], m["column"]) for m in found["matches"]] == [
        ("b.md", 1, 1),
        ("b.md", 1, 8),
        ("src/a.py", 2, 5),
    ]
    assert found["matches"][2] | {} == {
        "file": "src/a.py",
        "line": 2,
        "column": 5,
        "line_text": "two needle",
        "before": ["one"],
        "after": ["three"],
    }
    assert (found["limited"], found["searched_files"]) == (False, 2)
    exact = await tools.json("search_in_files", pattern="Needle", case_sensitive=True)
    assert len(exact["matches"]) == 1
    few = await tools.json("search_in_files", pattern="needle", max_results=1)
    assert (len(few["matches"]), few["limited"]) == (1, True)


@pytest.mark.parametrize(
    ("globs", "exclude", "files_found"),
    [
        ([], [], ["a.py", "build/c.py", "src/b.py", "src/deep/d.md"]),
        (["*.py"], [], ["a.py", "build/c.py", "src/b.py"]),
        (["src/*"], [], ["src/b.py"]),
        (["src/**"], [], ["src/b.py", "src/deep/d.md"]),
        (["**/*.md"], [], ["src/deep/d.md"]),
        (["**/*"], ["build/"], ["a.py", "src/b.py", "src/deep/d.md"]),
        (["**/*"], ["build", "deep"], ["a.py", "src/b.py"]),
        (["[ab].py"], ["src/*"], ["a.py"]),
        (["./a.??"], [], ["a.py"]),
    ],
)
async def test_globs_choose_the_files(
    tools: Tools, files: Path, globs: list[str], exclude: list[str], files_found: list[str]
):
    for name in ("a.py", "src/b.py", "build/c.py", "src/deep/d.md", ".git/e.py"):
        write(files / name, "x")
    found = await tools.json("search_in_files", pattern="x", globs=globs, exclude_globs=exclude)
    assert [m["file"] for m in found["matches"]] == files_found


async def test_special_characters_are_plain_ones_without_use_regex(tools: Tools, files: Path):
    write(files / "a.txt", "f(x)[0]\nfx0\n")
    found = await tools.json("search_in_files", pattern="f(x)[0]", use_regex=False)
    assert [m["line"] for m in found["matches"]] == [1]
    with pytest.raises(ToolArguments, match="is no regular expression"):
        await tools.result("search_in_files", pattern="f(x")


async def test_a_search_leaves_out_what_is_no_text_and_what_leads_out(
    tools: Tools, files: Path, tmp_path: Path
):
    write(tmp_path / "outside/secret.txt", "needle")
    (files / "link").symlink_to(tmp_path / "outside")
    (files / "file_link").symlink_to(tmp_path / "outside/secret.txt")
    os.mkfifo(files / "pipe")
    (files / "a.bin").write_bytes(b"\0needle")
    (files / "b.txt").write_bytes("größe needle".encode("cp1252"))
    found = await tools.json("search_in_files", pattern="needle")
    assert [(m["file"], m["line_text"]) for m in found["matches"]] == [("b.txt", "größe needle")]
    assert found["skipped_files"] == 1


async def test_only_the_part_around_a_match_is_shown_of_a_long_line(tools: Tools, files: Path):
    write(files / "a.txt", "x" * 100_000 + "needle" + "y" * 100_000)
    [match] = (await tools.json("search_in_files", pattern="needle"))["matches"]
    assert match["column"] == 100_001
    assert "needle" in match["line_text"]
    assert len(match["line_text"]) < 500


async def test_a_pattern_that_takes_for_ever_does_not_stop_the_event_loop(
    tools_of: Callable[..., Tools], files: Path
):
    write(files / "a.txt", "a" * 60 + "!\n")
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.02)
            ticks += 1

    beside = asyncio.create_task(tick())
    began = time.monotonic()
    with pytest.raises(ToolTimeout):
        await tools_of("file", timeout=0.6).result("search_in_files", pattern="(a+)+$")
    assert time.monotonic() - began < 8
    assert ticks > 5
    beside.cancel()


# Showing


async def test_an_image_is_put_before_the_models_eyes(
    tools: Tools, files: Path, workspace: Workspace
):
    (files / "a.jpg").write_bytes(PNG)  # the bytes tell what it is, not the name
    result = await tools.result("load_file", path_or_id="a.jpg")
    [media] = [part for part in result.parts if isinstance(part, MediaPart)]
    assert (media.type, media.mime_type, media.name) == ("image", "image/png", "a.jpg")
    assert workspace.read_attachment(media.attachment) == PNG
    again = await tools.result("load_file", path_or_id=media.attachment)
    assert [p.attachment for p in again.parts if isinstance(p, MediaPart)] == [media.attachment]
    prefixed = await tools.result("load_file", path_or_id=f"attachments/{media.attachment}")
    assert prefixed.parts[1:] == again.parts[1:]


async def test_a_pdf_is_shown_and_an_archive_is_not(tools: Tools, files: Path):
    (files / "a.pdf").write_bytes(b"%PDF-1.7\n...")
    result = await tools.result("load_file", path_or_id="a.pdf")
    assert [p.mime_type for p in result.parts if isinstance(p, MediaPart)] == ["application/pdf"]
    (files / "a.zip").write_bytes(b"PK\x03\x04...")
    with pytest.raises(ToolFailed, match="application/zip"):
        await tools.result("load_file", path_or_id="a.zip")


async def test_a_text_is_given_as_text_and_a_long_one_cut(tools: Tools, files: Path):
    write(files / "a.svg", "<svg/>")
    assert await tools.text("load_file", path_or_id="a.svg") == "<svg/>"
    write(files / "long.txt", "x" * 300_000)
    assert "100000 characters left out" in await tools.text("load_file", path_or_id="long.txt")


async def test_a_text_that_was_kept_as_an_attachment_is_read_in_slices(
    tools: Tools, workspace: Workspace
):
    part = workspace.save_attachment(b"one\ntwo\nthree\n", "text/plain")
    read = await tools.json("read_file_segment", path=part.attachment, start_line=2, line_count=1)
    assert read["snippet"] == "two\n"
    snippet = await tools.json(
        "read_text_file_snippet", path=f"attachments/{part.attachment}", offset=4, limit=3
    )
    assert snippet["snippet"] == "two"


# Confinement


OUTSIDE = ["../x", "/etc/passwd", "a/../../x", "out/passwd", "deep/up/x", "zero\0byte", "~/x"]


@pytest.mark.parametrize(
    ("tool", "argument", "more"),
    [
        ("list_directory", "path", {}),
        ("create_folder", "path", {}),
        ("delete_path", "path", {"recursive": True, "missing_ok": False}),
        ("load_file", "path_or_id", {}),
        ("save_file", "path", {"content": "x"}),
        ("save_file", "path", {"content": "x", "mode": "append"}),
        ("read_text_file_snippet", "path", {}),
        ("read_file_segment", "path", {}),
        ("apply_text_edits", "path", {"start_line": 1, "replacement": "x"}),
        ("rename_path", "src", {"dst": "y"}),
        ("rename_path", "dst", {"src": "here"}),
        ("copy_path", "src", {"dst": "y"}),
        ("copy_path", "dst", {"src": "here"}),
        ("move_path", "src", {"dst": "y"}),
        ("move_path", "dst", {"src": "here"}),
    ],
)
async def test_no_tool_leaves_the_workspace(
    tools: Tools,
    files: Path,
    tmp_path: Path,
    tool: str,
    argument: str,
    more: dict[str, object],
):
    outside = write(tmp_path / "outside/passwd", "precious")
    write(files / "here", "here")
    (files / "out").symlink_to(outside.parent)
    (files / "deep").mkdir()
    (files / "deep/up").symlink_to("../../../outside")
    for path in OUTSIDE:
        with pytest.raises(ToolFailed, match=r"workspace|no name|home folder"):
            await tools.result(tool, **{argument: path}, **more)
    assert [each.name for each in outside.parent.iterdir()] == ["passwd"]
    assert outside.read_text() == "precious"


@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
async def test_what_is_no_regular_file_is_not_opened(tools: Tools, files: Path, kind: str):
    place = files / "odd"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(os.path.relpath(place))
    elif os.geteuid() == 0:
        os.mknod(place, 0o20600, os.makedev(1, 3))
    else:
        pytest.skip("only root makes devices")
    for tool, more in (
        ("load_file", {"path_or_id": "odd"}),
        ("read_file_segment", {"path": "odd"}),
        ("save_file", {"path": "odd", "content": "x"}),
        ("save_file", {"path": "odd", "content": "x", "mode": "append"}),
        ("apply_text_edits", {"path": "odd", "start_line": 1}),
    ):
        with pytest.raises(ToolFailed, match="only regular files"):
            await tools.result(tool, **more)


async def test_outside_of_a_run_there_are_no_files(tools_of: Callable[..., Tools]):
    with pytest.raises(ToolFailed, match="workspace"):
        await tools_of("file", outside=True).result("list_directory")
