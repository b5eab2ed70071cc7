"""A workflow file, and all files that it names, to one loaded workflow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

from pydantic import ValidationError

from devall.config.nodes import AgentNode, Graph, SubgraphFile, SubgraphInline, SubgraphNode
from devall.config.workflow import Workflow
from devall.core.diagnostics import Diagnostic, Position
from devall.core.errors import ConfigError, UsageError
from devall.core.messages import JsonValue
from devall.loading.changes import with_changes
from devall.loading.diagnostics import (
    Finding,
    is_secret_key,
    of_schema,
    of_variable,
    value_at,
)
from devall.loading.document import Document, parse_document, read_document
from devall.loading.environment import Environment, read_environment
from devall.loading.places import Path as Steps
from devall.loading.places import Place
from devall.loading.references import NotFound, find_file, shown
from devall.loading.repair import NO_FLAWS, Flaws, repair
from devall.loading.reports import finished
from devall.loading.variables import Mistake, Outside, Scope, expand_all
from devall.loading.wording import in_words

Locate: TypeAlias = Callable[[Steps], Position]
"""Where a value of a graph stands in its file, by its path from the graph."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class LoadedGraph:
    """A graph, where it stands, and the graphs within its nodes; known by its identity."""

    config: Graph
    file: Path
    """The file that it stands in."""
    subgraphs: Mapping[str, LoadedGraph]
    """Id of a subgraph node to its graph."""
    locate: Locate = field(repr=False)
    missing_variables: tuple[tuple[Steps, str, Position], ...] = ()
    """Values that are None since a variable is not set: path, variable, where it stands."""
    flaws: Flaws = NO_FLAWS
    """What stands in for something broken; nothing, in a workflow that was loaded."""


@dataclass(frozen=True, slots=True)
class LoadedWorkflow:
    """A workflow that can be planned and run."""

    path: Path
    config: Workflow
    root: LoadedGraph
    secrets: frozenset[str] = field(repr=False)
    """Texts that must never be shown."""
    warnings: tuple[Diagnostic, ...] = ()
    environment: Environment = field(default_factory=lambda: Environment({}), repr=False)
    """The environment and `.env`, for what a file leaves to them: `API_KEY`, `BASE_URL`."""
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where the value of each variable that the files use came from, in words."""
    texts: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """The text of each file that was read, by its path with links followed."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Files and variables as they were at another time; they stand before those of today."""

    texts: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """By path, links followed."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    changes: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue], repr=False)
    """Values of the workflow's own file that are others, by path: `nodes.writer.config.role`."""

    @property
    def files(self) -> frozenset[Path]:
        """The files that are recorded."""
        return frozenset(map(Path, self.texts))

    def document(self, path: Path, name: str) -> Document:
        """The document in a file, recorded or read now.

        Raises:
            UsageError: there is no such file.
        """
        text = self.texts.get(str(path.resolve())) if self.texts else None
        return read_document(path, name) if text is None else parse_document(text, name)


Check: TypeAlias = Callable[[LoadedGraph], Iterable[Diagnostic]]
"""What the rules find in a graph and those within; its flaws are to be left alone."""


def load_workflow(
    path: Path | str,
    *,
    variables: Mapping[str, JsonValue] | None = None,
    env_file: Path | None = None,
    check: Check | None = None,
    recorded: Recorded | None = None,
) -> LoadedWorkflow:
    """The workflow in a file.

    Args:
        path: The file.
        variables: Values for `${NAME}`, before those of the file's `vars`.
        env_file: Read in place of `.env`.
        check: Rules over the graph, whose findings belong into the same report.
        recorded: What the files and the environment were at another time.

    Raises:
        ConfigError: something is wrong; it carries all that was found, warnings included.
        UsageError: there is no such file.
    """
    file = Path(path)
    recorded = recorded or Recorded()
    document = recorded.document(file, str(file))
    if recorded.changes and document.is_readable:
        document = with_changes(document, recorded.changes)
    return _load(document, file, variables, env_file, check, recorded)


def load_text(
    text: str,
    *,
    name: str = "<text>",
    folder: Path | None = None,
    variables: Mapping[str, JsonValue] | None = None,
    env_file: Path | None = None,
    check: Check | None = None,
) -> LoadedWorkflow:
    """The workflow in a text.

    Args:
        text: YAML.
        name: What messages call it.
        folder: Where files that it names, and `.env`, are looked for; None = here.
        variables: As for `load_workflow`.
        env_file: As for `load_workflow`.
        check: As for `load_workflow`.

    Raises:
        ConfigError: something is wrong.
    """
    file = (folder or Path()) / name
    return _load(parse_document(text, name), file, variables, env_file, check)


def load_mapping(
    data: Mapping[str, JsonValue],
    *,
    name: str = "<mapping>",
    folder: Path | None = None,
    variables: Mapping[str, JsonValue] | None = None,
    env_file: Path | None = None,
    check: Check | None = None,
) -> LoadedWorkflow:
    """The workflow in plain values, such as a program makes; messages name no lines.

    Raises:
        ConfigError: something is wrong.
    """
    file = (folder or Path()) / name
    document = Document(name, "", dict(data), Place(0, 0))
    return _load(document, file, variables, env_file, check)


def _load(
    document: Document,
    file: Path,
    variables: Mapping[str, JsonValue] | None,
    env_file: Path | None,
    check: Check | None,
    recorded: Recorded | None = None,
) -> LoadedWorkflow:
    recorded = recorded or Recorded()
    environment = read_environment(file.parent, env_file)
    if recorded.environment:
        environment = replace(environment, values={**environment.values, **recorded.environment})
    load = _Load(environment, variables or {}, recorded)
    loaded = load.workflow(document, file, None, ())
    if loaded is not None and check is not None:
        load.diagnostics += check(loaded[1])
    load.finish()
    found = finished(load.diagnostics, load.documents, load.secrets)
    if loaded is None or any(each.severity == "error" for each in found):
        raise ConfigError(found)
    config, root = loaded
    return LoadedWorkflow(
        file,
        config,
        root,
        frozenset(load.secrets),
        tuple(found),
        load.environment,
        load.outside.origins,
        load.texts,
    )


class _Load:
    """One load in progress: the files that were read, and what was found in them."""

    def __init__(
        self, environment: Environment, given: Mapping[str, JsonValue], recorded: Recorded
    ) -> None:
        self.environment = environment
        self.recorded = recorded
        self.texts: dict[str, str] = {}
        self.documents: list[Document] = []
        self.diagnostics: list[Diagnostic] = list(environment.warnings)
        self.outside = Outside(environment, given)
        self.secrets = self.outside.secrets
        # What an agent without a key of its own takes.
        self.secrets.update(
            value
            for name, value in environment.values.items()
            if value and (name == "API_KEY" or name.endswith("_API_KEY"))
        )
        self._scopes: list[tuple[Scope, Document]] = []
        self._read: dict[Path, Document] = {}
        self._included: dict[tuple[Path, int], LoadedGraph | None] = {}

    def workflow(
        self, document: Document, file: Path, parent: Scope | None, chain: tuple[Path, ...]
    ) -> tuple[Workflow, LoadedGraph] | None:
        """What a file says, as far as it can be told; None where nothing can.

        Args:
            document: The file's values.
            file: Where it is.
            parent: The variables of the file that includes it.
            chain: The files that are being included, the outermost first, links followed.
        """
        if not any(each is document for each in self.documents):
            self.documents.append(document)
            self.diagnostics += document.problems
            self.texts[str(file.resolve())] = document.text
        if not document.is_readable:
            return None
        root: JsonValue = document.root
        if not isinstance(root, dict) or not root:
            self._report(document, (), *_no_workflow(cast("JsonValue", root)))
            return None
        root = cast("dict[str, JsonValue]", root)
        self.diagnostics += _legacy(document, root)
        own = root.get("vars")
        known = cast("dict[str, JsonValue]", own) if isinstance(own, dict) else {}
        scope = Scope(self.outside, known, parent)
        self._scopes.append((scope, document))
        expansion = expand_all(root, scope, lambda path: _may_miss(path, root))
        values = cast("dict[str, JsonValue]", expansion.root)
        self.secrets.update(_secrets(values))
        variables = [of_variable(path, each, document) for path, each in expansion.mistakes]
        self.diagnostics += [each.diagnostic for each in variables]

        findings: list[Finding] = []
        flaws: dict[Steps, Flaws] = {}
        try:
            config = Workflow.model_validate(values)
        except ValidationError as error:
            findings = [
                each
                for each in of_schema(error, document, values)
                if not any(each.path[: len(path)] == path for path in expansion.unknown)
            ]
            self.diagnostics += [each.diagnostic for each in findings if not each.is_echo]
            config = None
        if config is None or expansion.unknown:
            values, flaws = repair(values, findings, expansion.unknown)
            try:
                config = Workflow.model_validate(values)
            except ValidationError:  # nothing can be told about the graph
                return None
        missing = [
            (path, name, _missing_at(path, name, document)) for path, name in expansion.missing
        ]
        inside = _Inside(document, file, scope, chain, flaws, missing)
        return config, self._graph(config.graph, ("graph",), inside)

    def finish(self) -> None:
        """Look at what can be told only when everything is read."""
        for scope, document in self._scopes:
            for path, mistake in scope.own_mistakes():
                self.diagnostics.append(of_variable(path, mistake, document).diagnostic)

    def _graph(self, config: Graph, path: Steps, inside: _Inside) -> LoadedGraph:
        """A graph at a path of a file, with the graphs of its nodes."""
        place = inside.document.place.find(path)
        name = inside.document.name
        flaws = inside.flaws.get(path, NO_FLAWS)
        subgraphs: dict[str, LoadedGraph] = {}
        inner: list[Steps] = []
        for index, node in enumerate(config.nodes):
            if isinstance(node, AgentNode):
                self._look_for_schema(node, (*path, "nodes", index), inside)
            if not isinstance(node, SubgraphNode):
                continue
            at = (*path, "nodes", index, "config", "config")
            match node.config:
                case SubgraphInline(config=graph):
                    inner.append(at)
                    subgraphs.setdefault(node.id, self._graph(graph, at, inside))
                case SubgraphFile(config=target):
                    found = self._include(target.path, (*at, "path"), inside)
                    if found is not None:
                        subgraphs.setdefault(node.id, found)
        missing = tuple(
            (where[len(path) :], variable, position)
            for where, variable, position in inside.missing
            if where[: len(path)] == path and not any(where[: len(each)] == each for each in inner)
        )
        return LoadedGraph(
            config,
            inside.file,
            subgraphs,
            lambda steps: place.find_written(steps).position(name),
            missing,
            flaws,
        )

    def _look_for_schema(self, node: AgentNode, path: Steps, inside: _Inside) -> None:
        written = node.config.output_schema
        if isinstance(written, str) and not (inside.file.parent / written).is_file():
            self._report(
                inside.document,
                (*path, "config", "output_schema"),
                "missing-file",
                f"there is no file `{written}` for `output_schema`",
                f"looked for {shown(inside.file.parent / written)}",
            )

    def _include(self, written: str, path: Steps, inside: _Inside) -> LoadedGraph | None:
        """The graph of a file that a node names; None where there is none, which is reported."""
        document = inside.document
        found = find_file(written, inside.file, self.recorded.files)
        if isinstance(found, NotFound):
            places = ", ".join(shown(each) for each in found.tried)
            self._report(
                document,
                path,
                "missing-file",
                f"there is no file `{written}`",
                f"looked for {places}",
            )
            return None
        chain = (*inside.chain, inside.file.resolve())
        if found.real in chain:
            circle = [*chain[chain.index(found.real) :], found.real]
            names = " -> ".join(each.name for each in circle)
            self._report(document, path, "include-cycle", f"the file includes itself: {names}")
            return None
        key = (found.real, id(inside.scope))
        if key not in self._included:
            name = shown(found.path)
            try:
                read = self._read.setdefault(found.real, self.recorded.document(found.path, name))
            except UsageError as error:
                self._report(document, path, "missing-file", str(error))
                return None
            loaded = self.workflow(read, found.path, inside.scope, chain)
            self._included[key] = loaded[1] if loaded is not None else None
        return self._included[key]

    def _report(
        self, document: Document, path: Steps, code: str, message: str, hint: str = ""
    ) -> None:
        found = of_variable(path, Mistake(code, message, hint), document)
        position = document.place.find(path).position(document.name)
        self.diagnostics.append(replace(found.diagnostic, position=position))


@dataclass(frozen=True, slots=True)
class _Inside:
    """The file that a graph stands in."""

    document: Document
    file: Path
    scope: Scope
    chain: tuple[Path, ...]
    flaws: Mapping[Steps, Flaws]
    missing: Sequence[tuple[Steps, str, Position]]


def _no_workflow(root: JsonValue) -> tuple[str, str, str]:
    """Code, message and hint for a file that holds something else."""
    hint = "a workflow has `version`, `vars` and `graph`"
    if not root:
        return "empty", "the file is empty", hint
    return "wrong-type", f"a workflow is a mapping, not {in_words(root)}", hint


def _may_miss(path: Steps, root: JsonValue) -> bool:
    """Whether a value may be None until the run: where a model is, and the key for it.

    The run may choose another provider, which needs neither.
    """
    if path[-1] not in {"api_key", "base_url"}:
        return False
    if path[-2:-1] == ("embedding",):
        return True
    if len(path) < 4 or path[-2] != "config" or path[-4] != "nodes":
        return False
    node = value_at(root, path[:-2])
    return isinstance(node, dict) and cast("dict[str, JsonValue]", node).get("type") == "agent"


def _missing_at(path: Steps, name: str, document: Document) -> Position:
    """Where the text stands that a missing variable was wanted for."""
    return of_variable(path, Mistake("", "", name=name), document).diagnostic.position


def _secrets(value: Any) -> Iterator[str]:
    """What stands where secrets stand: `api_key`, and an `Authorization` header."""
    if isinstance(value, dict):
        for key, each in cast("dict[str, JsonValue]", value).items():
            if isinstance(each, str) and each and is_secret_key(key):
                yield each
                if " " in each:  # a scheme, such as Bearer, is none
                    yield each.split(" ", 1)[1].strip()
            elif isinstance(each, dict | list):
                yield from _secrets(each)
    elif isinstance(value, list):
        for each in cast("list[JsonValue]", value):
            if isinstance(each, dict | list):
                yield from _secrets(each)


def _legacy(document: Document, root: Mapping[str, JsonValue]) -> Iterator[Diagnostic]:
    """Warnings about keys of old files that would have meant something."""
    nodes = value_at(root, ("graph", "nodes"))
    for index, node in enumerate(cast("list[JsonValue]", nodes) if isinstance(nodes, list) else ()):
        if isinstance(node, dict) and cast("dict[str, JsonValue]", node).get("dynamic") is not None:
            path = ("graph", "nodes", index, "dynamic")
            yield Diagnostic(
                "misplaced-dynamic",
                "`dynamic` on a node means nothing",
                document.place.find(path).key_position(document.name),
                "put it on the edge that leads to the node",
                "warning",
            )
