from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

# In pieces, so that this file does not find itself.
FORBIDDEN = {
    "a package registry's host": re.compile(
        "|".join(
            re.escape(".".join(host))
            for host in (
                ("pypi", "org"),
                ("pythonhosted", "org"),
                ("npmjs", "org"),
                ("npmjs", "com"),
                ("deb", "debian", "org"),
                ("crates", "io"),
                ("proxy", "golang", "org"),
            )
        )
    ),
    "a path of one machine": re.compile(
        "|".join(f"/{a}/{b}" for a, b in (("work", "main"), ("work", "shared"), ("tmp", "team")))
        + "|"
        + "|".join(f"/{top}/" for top in ("opt/pypi", "root", "Users"))
    ),
}


def tracked_files(project: Path) -> list[Path]:
    """What is in the repository; in a copy without one, everything that is not made."""
    if shutil.which("git") and (project / ".git").exists():
        command = ["git", "ls-files", "-z"]
        done = subprocess.run(command, cwd=project, check=True, capture_output=True, text=True)
        found = [project / name for name in done.stdout.split("\0") if name]
    else:
        made = {".venv", ".git", "logs", "build", "dist", "__pycache__"}
        found = [p for p in project.rglob("*") if not made & {*p.relative_to(project).parts}]
    return [path for path in found if path.is_file()]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_names(what: str, project: Path):
    found = [
        f"{path.relative_to(project)}:{number}: {line.strip()[:80]}"
        for path in tracked_files(project)
        for number, line in enumerate(path.read_bytes().decode(errors="replace").splitlines(), 1)
        if FORBIDDEN[what].search(line)
    ]
    assert found == []


def test_the_notes_for_agents_stay_short(project: Path):
    assert len((project / "AGENTS.md").read_text(encoding="utf-8").splitlines()) <= 60


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "AGENTS.md", "CHANGELOG.md"])
def test_every_file_that_a_document_links_to_is_there(document: str, project: Path):
    text = (project / document).read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#]+)\)", text)
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (project / target).exists()] == []


def test_every_command_that_the_readme_names_is_a_target_of_make(project: Path):
    makefile = (project / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)\b", (project / "README.md").read_text("utf-8")))
    assert {"demo", "test"} <= named <= targets


def test_the_constraints_are_names_and_exact_versions_only(project: Path):
    lines = (project / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[\w.]+", line)] == []


def _normal(name: str) -> str:
    """The name of a package, however it is written."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_dependency_is_constrained_and_installed_so(project: Path):
    lines = (project / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = (line.split("==") for line in lines if "==" in line)
    pins = {_normal(name): number for name, number in pinned}
    table = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = table["optional-dependencies"]
    wanted = [*table["dependencies"], *extras["local"], *extras["dev"]]
    names = [_normal(re.split(r"[<>=~! \[]", requirement)[0]) for requirement in wanted]
    assert [name for name in names if name not in pins] == []
    assert {n: version(n) for n in names} == {n: pins[n] for n in names}
