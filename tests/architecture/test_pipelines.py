from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from ruamel.yaml import YAML

from devall.cli.main import app

GOOD = "graph: {start: A, nodes: [{id: A, type: literal, config: {content: TEXT}}], edges: []}\n"
WRONG = "graph: {start: A, nodes: [{id: A, type: literal, colour: red}], edges: []}\n"


def commands() -> dict[str, set[str]]:
    """Every command by its full name, and its options."""
    found: dict[str, set[str]] = {}
    stack = [("", typer.main.get_command(app))]
    while stack:
        name, each = stack.pop()
        inner = getattr(each, "commands", None)
        if inner is None:
            found[name] = {option for parameter in each.params for option in parameter.opts}
        else:
            stack += [(f"{name} {key}".strip(), value) for key, value in inner.items()]
    return found


COMMANDS = commands()


def document(project: Path) -> str:
    return (project / "docs" / "ci.md").read_text("utf-8")


def yaml_of(text: str):
    return YAML(typ="safe", pure=True).load(text)


def calls(project: Path) -> list[str]:
    """Every call of devall in the page, in the action's examples and in the jobs for GitLab."""
    text = document(project)
    spans = re.findall(r"`(devall [^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    lines = re.findall(r"^ *(?:- )?(devall [a-z].*)$", text, re.MULTILINE)
    action = [f"devall {each}" for each in re.findall(r"command: (.*)$", text, re.MULTILINE)]
    return [each.partition(" # ")[0] for each in (*spans, *lines, *action)]


def test_every_command_and_option_that_the_page_names_is_there(project: Path):
    found = calls(project)
    assert len(found) > 15
    unknown = []
    for call in found:
        words = call.replace("devall ", "", 1).split()
        name = next((n for n in (" ".join(words[:2]), words[0]) if n in COMMANDS), "")
        options = {word.partition("=")[0] for word in words if word.startswith("--")} - {"--help"}
        if not name or not options <= COMMANDS[name]:
            unknown.append(call)
    assert unknown == []


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


def test_every_link_of_the_page_leads_somewhere(project: Path):
    targets = re.findall(r"\]\(([^)#]+)\)", document(project))
    assert targets
    assert [t for t in targets if not (project / "docs" / t).exists()] == []


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
