"""A workflow engine for teams of language model agents: one YAML file, from graph to answer."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from devall.app import (
        Attachment,
        RunResult,
        answer_questions,
        load_workflow,
        replay,
        resume,
        run,
        run_sync,
    )
    from devall.core.errors import (
        ConfigError,
        DevallError,
        LimitReached,
        ModelError,
        NodeError,
        RunCancelled,
        RunError,
        SetupError,
        ToolError,
        UsageError,
    )
    from devall.testing.cases.running import CaseResult, run_case
    from devall.tools.manager import ToolManager

__all__ = [
    "Attachment",
    "CaseResult",
    "ConfigError",
    "DevallError",
    "LimitReached",
    "ModelError",
    "NodeError",
    "RunCancelled",
    "RunError",
    "RunResult",
    "SetupError",
    "ToolError",
    "ToolManager",
    "UsageError",
    "answer_questions",
    "load_workflow",
    "replay",
    "resume",
    "run",
    "run_case",
    "run_sync",
]

__version__ = "0.1.0"

_OF_APP = (
    "Attachment",
    "RunResult",
    "answer_questions",
    "load_workflow",
    "replay",
    "resume",
    "run",
    "run_sync",
)
_HOMES: dict[str, str] = {
    **dict.fromkeys(_OF_APP, "devall.app"),
    **dict.fromkeys(("CaseResult", "run_case"), "devall.testing.cases.running"),
    "ToolManager": "devall.tools.manager",
}


def __getattr__(name: str) -> object:
    """A public name, imported on first use: `import devall` alone stays cheap."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(_HOMES.get(name, "devall.core.errors"))
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
