from __future__ import annotations

import os
from pathlib import Path

import pytest

from devall.core.diagnostics import Diagnostic
from devall.core.errors import ConfigError, ToolFailed
from devall.graph.checked import load_workflow
from devall.loading.skills import FoundSkills, SkillFiles, find_skills, globs_of

WHOLE = "---\nname: pdf\ndescription: Reads PDFs.\n---\nDo it.\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".agents" / "skills").mkdir(parents=True)
    return tmp_path


def skill(project: Path, text: str, folder: str = "pdf") -> FoundSkills:
    place = project / ".agents" / "skills" / folder
    place.mkdir(exist_ok=True)
    (place / "SKILL.md").write_text(text)
    return find_skills(project / "flows" / "deep" / "w.yaml")


def told(found: FoundSkills) -> list[str]:
    return [f"{each.position}: {each.message}" for each in found.problems]


def test_a_skill_is_found_upwards_of_the_workflow(project: Path):
    found = skill(project, WHOLE)
    assert found.folder == (project / ".agents" / "skills").resolve()
    assert found.problems == ()
    [pdf] = found.skills.values()
    assert (pdf.name, pdf.description, pdf.body, pdf.allowed) == (
        "pdf",
        "Reads PDFs.",
        "Do it.",
        None,
    )


def test_the_nearest_folder_of_skills_is_the_one(project: Path):
    skill(project, WHOLE)
    nearer = project / "flows" / ".agents" / "skills" / "other"
    nearer.mkdir(parents=True)
    (nearer / "SKILL.md").write_text("---\nname: other\ndescription: d\n---\n")
    assert list(find_skills(project / "flows" / "w.yaml").skills) == ["other"]


def test_without_a_folder_there_are_none(tmp_path: Path):
    assert find_skills(tmp_path / "w.yaml") == FoundSkills(None, {})


def test_a_folder_without_a_skill_md_is_no_skill(project: Path):
    (project / ".agents" / "skills" / "shared").mkdir()
    assert list(skill(project, WHOLE).skills) == ["pdf"]


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("Do it.", "1:1", "there is no front matter"),
        ("---\nname: pdf\n", "1:1", "there is no front matter"),
        ("---\n- pdf\n---\n", "2:1", "the front matter is no mapping"),
        ("---\nname: pdf\ndescription: ''\n---\n", "3:1", "`description` is missing"),
        ("---\ndescription: d\n---\n", "1:1", "`name` is missing"),
        ("---\nname: 5\ndescription: d\n---\n", "2:1", "`name` is missing, or is no text"),
        (
            "---\nname: pdf\ndescription: d\nallowed-tools: {a: b}\n---\n",
            "4:1",
            "`allowed-tools`: a text, or a list of texts, is wanted",
        ),
        ("---\nname: pdf\nname: b\ndescription: d\n---\n", "3:1", "name"),
        ("---\nname: [pdf\n---\n", "2:7", "bracket"),
    ],
)
def test_what_is_wrong_with_a_skill_is_told_with_file_and_line(
    project: Path, text: str, place: str, words: str
):
    found = skill(project, text)
    assert told(found)[0].startswith(f".agents/skills/pdf/SKILL.md:{place}: ")
    assert words in told(found)[0]
    assert all(each.severity == "warning" for each in found.problems)
    assert not found.skills or "name: b" in text


@pytest.mark.parametrize(
    ("front", "words"),
    [
        ("name: Pdf Reader\ndescription: d", "2:1: `Pdf Reader` should be letters a-z"),
        ("name: pdf-reader\ndescription: d", "2:1: skill pdf-reader is in a folder with another"),
        ("name: pdf\ndescription: d\nallowed_tools: x", "4:1: unknown key `allowed_tools`"),
        (f"name: pdf\ndescription: {'d' * 1100}", "3:1: `description` has 1,100 characters"),
    ],
)
def test_what_is_doubtful_is_told_and_the_skill_is_there(project: Path, front: str, words: str):
    found = skill(project, f"---\n{front}\n---\nbody\n")
    assert words in told(found)[0]
    assert len(found.skills) == 1


def test_other_keys_are_the_users_own(project: Path):
    front = "name: pdf\ndescription: d\nlicense: MIT\nmetadata: {a: b}\nversion: 2\n"
    assert skill(project, f"---\n{front}---\n").problems == ()


def test_two_skills_of_one_name_are_told(project: Path):
    skill(project, WHOLE, "pdf2")
    found = skill(project, WHOLE)
    assert any("skill pdf is there already" in each for each in told(found))


@pytest.mark.parametrize(
    ("written", "globs"),
    [
        (None, None),
        ("", ()),
        ("Read Grep", ("Read", "Grep")),
        ("Read, Grep,Glob", ("Read", "Grep", "Glob")),
        (["Read", "mcp_*"], ("Read", "mcp_*")),
        ("Bash(git add:*), Bash(jq:*) Read", ("Bash(git add:*)", "Bash(jq:*)", "Read")),
    ],
)
def test_allowed_tools_are_a_list_or_a_text(written, globs):
    assert globs_of(written) == globs


@pytest.mark.parametrize("written", [5, ["a", 5], {"a": 1}, "Bash(git", "a)"])
def test_other_allowed_tools_are_an_error(written):
    with pytest.raises(ValueError, match="wanted"):
        globs_of(written)


@pytest.mark.parametrize(
    "path",
    ["../secret.txt", "/etc/passwd", "a/../../secret.txt", "link.txt", "up/secret.txt", "~/x"],
)
def test_no_path_leads_out_of_a_skill(project: Path, path: str):
    (project / "secret.txt").write_text("secret")
    skill(project, WHOLE)
    folder = project / ".agents" / "skills" / "pdf"
    (folder / "link.txt").symlink_to(project / "secret.txt")
    (folder / "up").symlink_to(project)
    with pytest.raises(ToolFailed) as caught:
        SkillFiles(folder).read(path)
    assert "workspace" not in str(caught.value) + caught.value.hint


def test_a_skill_md_that_is_a_link_to_elsewhere_is_refused(project: Path):
    (project / "elsewhere.md").write_text(WHOLE)
    folder = project / ".agents" / "skills" / "pdf"
    folder.mkdir()
    (folder / "SKILL.md").symlink_to(project / "elsewhere.md")
    found = find_skills(project / "w.yaml")
    assert found.skills == {}
    assert "cannot be read" in told(found)[0]


def test_what_is_no_text_or_too_large_is_refused(project: Path):
    folder = project / ".agents" / "skills" / "pdf"
    skill(project, WHOLE)
    (folder / "a.bin").write_bytes(b"\xff\xfe\x00")
    (folder / "b.txt").write_bytes(b"x" * 1_000_001)
    os.mkfifo(folder / "pipe")
    for name in ("a.bin", "b.txt", "pipe", "missing", "."):
        with pytest.raises(ToolFailed):
            SkillFiles(folder).read(name)


def workflow(project: Path, skills: str) -> Path:
    file = project / "w.yaml"
    file.write_text(
        "graph:\n  start: A\n  nodes:\n    - id: A\n      type: agent\n"
        f"      config: {{provider: openai, name: m, skills: {skills}}}\n"
    )
    return file


def checked(project: Path, skills: str) -> list[Diagnostic]:
    try:
        return list(load_workflow(workflow(project, skills)).warnings)
    except ConfigError as error:
        return list(error.diagnostics)


def test_a_skill_that_is_not_there_is_an_error_with_the_nearest_name(project: Path):
    skill(project, WHOLE)
    [found] = checked(project, "{enabled: true, allow: [{name: pdff}]}")
    assert (found.code, found.severity, found.hint) == (
        "unknown-skill",
        "error",
        "did you mean `pdf`?",
    )
    assert str(found.position).endswith("w.yaml:6:82")


def test_a_broken_skill_is_a_warning_and_missing_for_who_wants_it(project: Path):
    skill(project, "no front matter")
    assert [each.code for each in checked(project, "{enabled: true}")] == ["no-skills", "skill"]
    codes = {each.code for each in checked(project, "{enabled: true, allow: [{name: pdf}]}")}
    assert codes == {"skill", "unknown-skill"}


def test_skills_without_enabled_are_doubtful(project: Path):
    skill(project, WHOLE)
    assert [each.code for each in checked(project, "{allow: [{name: pdf}]}")] == [
        "skills-not-enabled"
    ]
    assert checked(project, "{enabled: false}") == []
    assert checked(project, "{enabled: true, allow: [{name: pdf}]}") == []


def test_allowed_tools_that_are_none_of_the_agents_are_doubtful(project: Path):
    skill(project, WHOLE.replace("---\nDo", "allowed-tools: Read, Bash(git:*)\n---\nDo"))
    tooling = "tooling: {type: function, config: {tools: [{name: save_file}]}}"
    [found] = checked(project, f"{{enabled: true}}, {tooling}")
    assert (found.code, found.severity) == ("skill-tools", "warning")
    assert "`allowed-tools` are Read, Bash(git:*)" in found.message
    assert found.hint == "its tools are: save_file"
    assert checked(project, "{enabled: true}") == []
    skill(project, WHOLE.replace("---\nDo", "allowed-tools: save_*\n---\nDo"))
    assert checked(project, f"{{enabled: true}}, {tooling}") == []
