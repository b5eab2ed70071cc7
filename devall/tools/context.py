"""What a function tool may ask of the run that calls it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from devall.core.errors import ToolFailed
from devall.core.events import ToolProgress
from devall.core.messages import MediaPart
from devall.core.ports import HumanChannel, Scope
from devall.manifest import Maker
from devall.tools.questions import ask_human
from devall.workspace import Workspace

MORE_TIME = "`timeout` of the tool's source in the workflow allows more seconds"
"""Said where a call took too long."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """One call of a function tool, seen from inside.

    A function takes it as the parameter `_context`, or as one annotated `ToolContext`; the
    model is not offered that parameter. Its methods may be called from any thread.
    """

    tool: str
    """The tool's own name."""
    call_id: str
    scope: Scope
    """The node's run."""
    workspace: Workspace | None = None
    """The run's files and attachments; None outside of a run."""
    post: Callable[[Callable[[], None]], None] = field(default=lambda work: work(), repr=False)
    """Does a piece of work on the thread of the run."""
    alive: Callable[[], None] = field(default=lambda: None, repr=False)
    """Starts the call's time limit anew."""
    number: int = 1
    """Which of the node's calls of this tool it is."""
    human: HumanChannel | None = None
    """Where `ask` asks; None = nobody can be asked."""
    hold: Callable[[], None] = field(default=lambda: None, repr=False)
    """Has the call's time limit stand still until `alive`."""
    limit: float | None = None
    """Seconds that the workflow or the tool's own `time_limit` sets; None = neither says any."""
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    """The environment, and below it what the workflow's `.env` adds: settings and keys of the
    tool. It holds secrets, and must not be passed on."""

    _asked: Iterator[int] = field(default_factory=lambda: count(1), init=False, repr=False)

    @property
    def node(self) -> str:
        """Id of the node that calls."""
        return self.scope.node

    @property
    def files(self) -> Path:
        """The run's working folder.

        Raises:
            ToolFailed: there is no run, hence no folder.
        """
        return self._workspace().files

    def get(self, name: str, default: object = None) -> object:
        """What functions written for ChatDev look up in their context, which is a dictionary.

        Args:
            name: `python_workspace_root` and `graph_directory` (paths), `node_id`.
            default: What is given for any other name, or where there is no run.
        """
        if name == "node_id":
            return self.node
        if self.workspace is not None and name == "python_workspace_root":
            return self.workspace.files
        if self.workspace is not None and name == "graph_directory":
            return self.workspace.root
        return default

    def attach(self, data: bytes, mime_type: str, name: str = "") -> MediaPart:
        """Keep binary data with the run; the part to return from the function.

        Raises:
            ToolFailed: there is no run to keep it with.
        """
        maker = Maker("tool", self.scope.node, self.tool)
        return self._workspace().save_attachment(data, mime_type, name, maker)

    def report(self, progress: float, total: float | None = None, message: str = "") -> None:
        """Say how far the work is; the call's time limit starts anew."""
        event = ToolProgress(
            path=self.scope.path,
            node=self.scope.node,
            call_id=self.call_id,
            tool=self.tool,
            progress=progress,
            total=total,
            message=message,
        )

        def tell() -> None:
            self.scope.emit(event)
            self.alive()

        self.post(tell)

    def take_time(self, wanted: float) -> float:
        """The seconds that a tool has which ends its work itself, and tells how far it came.

        The call's time limit stands still from then on. For async functions: it has to be called
        on the thread of the run.

        Args:
            wanted: Seconds that the tool would take at most; it gets as many, or as many as the
                workflow allows where that is less.
        """
        self.hold()
        return wanted if self.limit is None else min(wanted, self.limit)

    async def ask(self, text: str) -> str:
        """A human's words; neither the call's time limit nor the run's clocks go on meanwhile.

        For async functions: it has to be called on the thread of the run.

        Raises:
            AnswerNeeded: nobody can be asked.
        """
        self.hold()
        name = f"{self.call_id}.{next(self._asked)}"
        try:
            return await ask_human(self.human, self.scope, text, name)
        finally:
            self.alive()

    def _workspace(self) -> Workspace:
        if self.workspace is None:
            raise ToolFailed(f"tool {self.tool} needs a run's workspace, and there is none here")
        return self.workspace
