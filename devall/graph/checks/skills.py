"""Rules about skills: those that agents are allowed and that are not there, or are broken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from devall.config.nodes import AgentNode
from devall.core.diagnostics import Diagnostic
from devall.graph.checks.names import FunctionNames, tool_names
from devall.graph.checks.shape import Shape
from devall.loading.keys import nearest
from devall.loading.references import shown
from devall.loading.skills import FOLDER, FoundSkills, Skill, find_skills


def check_skills(shape: Shape, functions: FunctionNames) -> Iterator[Diagnostic]:
    """What is wrong with the skills of agents, in the workflow and in their own files."""
    found: FoundSkills | None = None
    for number, node in enumerate(shape.nodes):
        if not isinstance(node, AgentNode):
            continue
        skills, path = node.config.skills, ("nodes", number, "config", "skills")
        if not skills.enabled:
            if skills.allow:
                text = f"node {node.id}: `skills.allow` without `enabled: true` gives it no skill"
                yield shape.diagnostic("skills-not-enabled", text, path)
            continue
        if found is None:
            found = find_skills(shape.loaded.file)
            yield from found.problems
        known = found.skills
        where = shown(found.folder) if found.folder else f"{FOLDER} upwards of the file"
        if not known and not skills.allow:
            text = f"node {node.id}: there are no skills in {where}"
            yield shape.diagnostic("no-skills", text, path)
        yield from _check_tools(shape, number, node, known, functions)
        for index, allowed in enumerate(skills.allow):
            if allowed.name in known:
                continue
            near = nearest(allowed.name, known)
            hint = f"known: {', '.join(known)}" if known else ""
            yield shape.diagnostic(
                "unknown-skill",
                f"node {node.id}: there is no skill `{allowed.name}` in {where}",
                (*path, "allow", index, "name"),
                f"did you mean `{near[0]}`?" if near else hint,
                "error",
            )


def _check_tools(
    shape: Shape,
    number: int,
    node: AgentNode,
    known: Mapping[str, Skill],
    functions: FunctionNames,
) -> Iterator[Diagnostic]:
    """Skills whose `allowed-tools` are names of another program's tools."""
    names = tool_names(node.config, functions)
    wanted = {each.name for each in node.config.skills.allow} or known.keys()
    for skill in known.values() if names else ():
        globs = [glob.partition("(")[0] for glob in skill.allowed or ()]
        if skill.name not in wanted or not globs:
            continue
        if not any(fnmatchcase(name, glob) for name in names or () for glob in globs):
            yield shape.diagnostic(
                "skill-tools",
                f"node {node.id}: while skill `{skill.name}` is active none of its tools may be"
                f" called: `allowed-tools` are {', '.join(skill.allowed or ())}",
                ("nodes", number, "config", "skills"),
                f"its tools are: {', '.join(sorted(names or ())[:12])}",
            )
