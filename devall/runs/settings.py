"""What a run was started with, as its journal keeps it for those who go on with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self, cast

from devall.config.limits import Limits
from devall.core.errors import UsageError
from devall.core.ids import node_of
from devall.core.messages import JsonValue
from devall.loading.loader import LoadedWorkflow, Recorded
from devall.nodes.crew import Overrides
from devall.telemetry.redaction import MASK

Answers = Mapping[str, str | Sequence[str]]
"""By node id: one text for every time it asks, or a list of texts in order."""
Durability = Literal["normal", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of a run."""

    variables: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    answers: Answers = field(default_factory=dict[str, str | Sequence[str]])
    overrides: Overrides = field(default_factory=Overrides)
    env_file: Path | None = None
    functions_dir: Path | None = None
    ex_tools: Sequence[str] = ()
    durability: Durability = "normal"
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """The variables of the environment and of `.env` that the files use."""
    limits: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """Bounds beside those of the file."""
    changes: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """Values of the file that are others for this run, by path."""
    replay_of: str | None = None
    """The run that this one replayed, some of its calls made anew."""

    def to_json(self) -> dict[str, JsonValue]:
        """What `from_json` reads; paths are absolute."""
        return {
            "variables": dict(self.variables),
            "answers": {k: v if isinstance(v, str) else list(v) for k, v in self.answers.items()},
            "models": dict(self.overrides.models),
            "providers": dict(self.overrides.providers),
            "env_file": _text(self.env_file),
            "functions_dir": _text(self.functions_dir),
            "ex_tools": list(self.ex_tools),
            "durability": self.durability,
            "environment": dict(self.environment),
            "limits": dict(self.limits),
            "changes": dict(self.changes),
            "replay_of": self.replay_of,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, JsonValue]) -> Self:
        """The options of a run that was kept."""
        return cls(
            variables=value["variables"],
            answers=value["answers"],
            overrides=Overrides(value["models"], value["providers"]),
            env_file=_path(value["env_file"]),
            functions_dir=_path(value["functions_dir"]),
            ex_tools=value["ex_tools"],
            durability=value["durability"],
            environment=value["environment"],
            limits=value.get("limits", {}),
            changes=value.get("changes", {}),
            replay_of=value.get("replay_of"),
        )

    def limits_with(self, given: Limits | None) -> Limits:
        """The bounds beside those of the file: those given now stand before those of the start."""
        return Limits.model_validate({**self.limits, **given_limits(given)})

    def variables_with(self, given: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """The variables, those given now before those of the start.

        Raises:
            UsageError: one was a secret, which no journal keeps, and is not given now.
        """
        found = {**self.variables, **given}
        for name, value in found.items():
            if name not in given and isinstance(value, str) and MASK in value:
                raise UsageError(
                    f"variable {name} held a secret, which is not kept",
                    hint=f"give it again: --var {name}=...",
                )
        return found

    def answers_left(self, answered: Iterable[str]) -> dict[str, str | Sequence[str]]:
        """The answers that were given beforehand, without those that were used up.

        Args:
            answered: Keys of the steps in which humans have answered.
        """
        used = [node_of(key) for key in answered]
        left: dict[str, str | Sequence[str]] = {}
        for name, words in self.answers.items():
            times = sum(name in {node, node.rpartition("/")[2]} for node in used)
            left[name] = words if isinstance(words, str) else words[times:]
        return left


def recorded_environment(loaded: LoadedWorkflow) -> dict[str, str]:
    """The variables of the environment and of `.env` that the files of a workflow use."""
    values = loaded.environment.values
    return {
        name: values[name]
        for name, origin in loaded.origins.items()
        if name in values and origin == loaded.environment.origin(name)
    }


def recorded(sources: Mapping[str, str], settings: Settings) -> Recorded:
    """The files and variables of a run as they were when it began."""
    return Recorded(sources, settings.environment, settings.changes)


def given_limits(limits: Limits | None) -> dict[str, JsonValue]:
    """The bounds that are set, as JSON."""
    return limits.model_dump(exclude_unset=True, exclude_none=True) if limits else {}


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path.resolve())


def _path(text: JsonValue) -> Path | None:
    return None if text is None else Path(cast("str", text))
