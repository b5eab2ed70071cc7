from __future__ import annotations

from pathlib import Path

import pytest

from devall.loading.references import Found, NotFound, find_file, shown


def put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(str(path))
    return path


def where(written: str, including: Path) -> Path:
    found = find_file(written, including)
    assert isinstance(found, Found)
    return found.real


def test_the_file_beside_the_one_that_names_it_comes_first(tmp_path: Path):
    beside = put(tmp_path / "flows" / "sub.yaml")
    put(tmp_path / "flows" / "yaml_instance" / "sub.yaml")
    assert where("sub.yaml", tmp_path / "flows" / "main.yaml") == beside


def test_then_a_library_is_looked_for_upwards(tmp_path: Path):
    far = put(tmp_path / "yaml_instance" / "sub.yaml")
    assert where("sub.yaml", tmp_path / "a" / "b" / "main.yaml") == far
    near = put(tmp_path / "a" / "yaml_instance" / "sub.yaml")
    assert where("sub.yaml", tmp_path / "a" / "b" / "main.yaml") == near


def test_then_the_library_of_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    library = put(tmp_path / "work" / "yaml_instance" / "parts" / "sub.yaml")
    monkeypatch.chdir(tmp_path / "work")
    assert where("parts/sub.yaml", tmp_path / "elsewhere" / "main.yaml") == library


def test_folders_and_absolute_paths_are_understood(tmp_path: Path):
    target = put(tmp_path / "other" / "sub.yaml")
    main = tmp_path / "flows" / "main.yaml"
    main.parent.mkdir()
    assert where("../other/sub.yaml", main) == target
    assert where(str(target), main) == target


def test_what_is_nowhere_tells_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "yaml_instance").mkdir()
    found = find_file("sub.yaml", tmp_path / "main.yaml")
    assert found == NotFound((tmp_path / "sub.yaml", tmp_path / "yaml_instance" / "sub.yaml"))


def test_a_folder_is_no_file(tmp_path: Path):
    (tmp_path / "sub.yaml").mkdir()
    assert isinstance(find_file("sub.yaml", tmp_path / "main.yaml"), NotFound)


def test_a_link_and_its_target_are_one_file(tmp_path: Path):
    target = put(tmp_path / "sub.yaml")
    (tmp_path / "link.yaml").symlink_to(target)
    assert where("link.yaml", tmp_path / "main.yaml") == target


def test_paths_are_shown_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    assert shown(tmp_path / "a" / ".." / "b.yaml") == "b.yaml"
    assert shown(Path("x/./y.yaml")) == "x/y.yaml"
    assert shown(Path("/etc/x")) == "/etc/x"
