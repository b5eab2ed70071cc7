"""Which `functions/` folders a workflow uses: its project's own first, then those that ship."""

from __future__ import annotations

import os
from pathlib import Path

from devall.core.errors import UsageError
from devall.plugins.functions import FunctionCatalog
from devall.plugins.shipped import shipped_functions


def functions_for(workflow: Path, functions_dir: Path | None = None) -> FunctionCatalog:
    """The functions that a workflow can use.

    Args:
        workflow: The workflow file; its project's `functions` folder is looked for upwards.
        functions_dir: The folder to use instead; `DEVALL_FUNCTIONS_DIR` comes next.

    Raises:
        UsageError: the folder that was named is none.
    """
    named = functions_dir or (
        Path(text) if (text := os.environ.get("DEVALL_FUNCTIONS_DIR")) else None
    )
    if named is not None and not named.is_dir():
        raise UsageError(
            f"there is no folder {named} with functions",
            hint="name a folder with `function_calling`, `edge` or `edge_processor` in it",
        )
    if named is None:
        folders = (place / "functions" for place in workflow.resolve().parents)
        named = next((folder for folder in folders if folder.is_dir()), None)
    return FunctionCatalog(named, shipped_functions())
