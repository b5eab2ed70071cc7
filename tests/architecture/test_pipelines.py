from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

GOOD = "graph: {start: A, nodes: [{id: A, type: literal, config: {content: TEXT}}], edges: []}\n"
WRONG = "graph: {start: A, nodes: [{id: A, type: literal, colour: red}], edges: []}\n"


def document(project: Path) -> str:
    return (project / "docs" / "ci.md").read_text("utf-8")


def yaml_of(text: str):
    return YAML(typ="safe", pure=True).load(text)


def test_every_exit_code_is_explained(project: Path):
    rows = re.findall(r"^\| (\d[\d, ]*) \|", document(project), re.MULTILINE)
    known = {int(code) for row in rows for code in row.split(",")}
    assert known == {0, 1, 2, 3, 4, 5, 6, 7, 75, 130, 143}


def test_every_block_of_yaml_parses_and_the_jobs_are_those_of_the_file(project: Path):
    blocks = re.findall(r"```yaml\n(.*?)```", document(project), re.DOTALL)
    github, gitlab = map(yaml_of, blocks)
    assert set(github["jobs"]) == {"check", "test", "run"}
    assert blocks[1] == (project / "docs" / "gitlab-ci.yml").read_text("utf-8")
    for name, job in gitlab.items():
        assert name.startswith(".") or job["extends"] == ".devall"
        assert name.startswith(".") or all(isinstance(line, str) for line in job["script"])


def test_the_action_uses_what_it_declares_and_uploads_nothing(project: Path):
    text = (project / "action.yml").read_text("utf-8")
    action = yaml_of(text)
    assert action["runs"]["using"] == "composite"
    used = set(re.findall(r"inputs\.([a-z-]+)", text))
    assert used == set(action["inputs"])
    assert all(each["description"] for each in action["inputs"].values())
    for step in action["runs"]["steps"]:
        assert ("uses" in step) != ("run" in step)
        assert "uses" in step or step["shell"] == "bash"
        assert "upload" not in step.get("uses", "")
        # An expression within a script would be run as code: they come by the environment.
        assert "${{" not in step.get("run", "")
    script = project / "scripts" / "action.sh"
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", script], check=True)


@pytest.fixture
def step(project: Path, workspace: Path, tmp_path_factory):
    """Runs the last step of the action, as GitHub would."""
    place = tmp_path_factory.mktemp("runner")
    shim = place / "bin" / "devall"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m devall "$@"\n')
    shim.chmod(0o755)
    action = yaml_of((project / "action.yml").read_text("utf-8"))
    script = action["runs"]["steps"][-1]["run"]

    def run(command: str) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
        (place / "out").write_text("")
        env = {
            "PATH": f"{shim.parent}:{os.environ['PATH']}",
            "DEVALL_COMMAND": command,
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(project),
            "GITHUB_OUTPUT": str(place / "out"),
            "GITHUB_WORKSPACE": str(workspace),
            "RUNNER_TEMP": str(place),
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            env=os.environ | env,
            cwd=workspace,
            capture_output=True,
            text=True,
            timeout=30,
        )
        outputs = dict(line.split("=", 1) for line in (place / "out").read_text().splitlines())
        return done, outputs

    return run


def test_the_action_runs_a_command_and_keeps_its_answer_from_being_a_command(step, workspace: Path):
    (workspace / "w.yaml").write_text(GOOD.replace("TEXT", '"::set-output name=x::y\\nhello"'))
    done, outputs = step("run w.yaml --task 'two  words $HOME `id`' --run-id r")
    assert (done.returncode, outputs["exit-code"]) == (0, "0"), done.stderr
    assert Path(outputs["result"]).read_text() == "::set-output name=x::y\nhello\n"
    lines = done.stdout.splitlines()
    stop = re.fullmatch(r"::stop-commands::([0-9a-f]{32})", lines[0])
    assert stop is not None
    assert lines[-1] == f"::{stop[1]}::"
    assert lines[1:3] == ["::set-output name=x::y", "hello"]
    events = (workspace / "logs" / "r" / "events.jsonl").read_text()
    assert "two  words $HOME `id`" in events


def test_the_action_fails_as_the_command_does_and_annotates(step, workspace: Path):
    for name in ("a.yaml", "b c.yaml"):
        (workspace / name).write_text(WRONG)
    done, outputs = step("validate *.yaml")
    assert (done.returncode, outputs["exit-code"]) == (3, "3")
    assert "::error file=a.yaml,line=1" in done.stderr
    assert "::error file=b c.yaml,line=1" in done.stderr
    cut, outputs = step("run w.yaml --task 'open")
    assert (cut.returncode, outputs) == (1, {})
