"""Names of runs, and the logical paths by which steps are known."""

from __future__ import annotations

import re
import secrets
from datetime import UTC, datetime
from urllib.parse import unquote

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def new_run_id() -> str:
    """A fresh id that sorts by time: `20261130-140312-5f3a9c`."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def is_run_id(text: str) -> bool:
    """Whether the text may name a run: a folder's name, never a path."""
    return RUN_ID.fullmatch(text) is not None


def node_path(prefix: str, node: str, visit: int) -> str:
    """The logical path of a node's run number `visit` (from 1): `/writer@2`, `/S@1/X@3`.

    `%`, `/` and `@` of a node's id are escaped, so that different runs never share a path.
    """
    if "/" in node or "@" in node or "%" in node:
        node = node.replace("%", "%25").replace("/", "%2F").replace("@", "%40")
    return f"{prefix}/{node}@{visit}"


def node_of(path: str) -> str:
    """The node of a logical path, as results and options name it: `/S@1/X@2` is `S/X`."""
    parts = [part.rpartition("@")[0] for part in path.split("/") if "@" in part]
    return "/".join(unquote(part) for part in parts)
