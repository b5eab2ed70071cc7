"""Where tokens of logins are kept: files that are the user's alone."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from key_value.aio.stores.base import BaseStore, ManagedEntry

from devall.workspace import private_folder, write_private

LOOK = 0.05
"""Seconds between two looks at a lock that somebody else has."""
LONGEST = 60.0
"""Seconds after which a lock is not waited for any more."""


class TokenFiles(BaseStore):
    """Tokens in a folder that is the user's alone (0700), a file for each (0600)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        super().__init__(stable_api=True)

    async def _get_managed_entry(self, *, collection: str, key: str) -> ManagedEntry | None:
        try:
            text = self._file(collection, key).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        return self._serialization_adapter.load_json(text)

    async def _put_managed_entry(
        self, *, collection: str, key: str, managed_entry: ManagedEntry
    ) -> None:
        text = self._serialization_adapter.dump_json(managed_entry, key=key, collection=collection)
        private_folder(self._folder)
        write_private(self._file(collection, key), text.encode())

    async def _delete_managed_entry(self, *, key: str, collection: str) -> bool:
        file = self._file(collection, key)
        is_there = file.exists()
        file.unlink(missing_ok=True)
        return is_there

    @asynccontextmanager
    async def alone(self, key: str) -> AsyncGenerator[None]:
        """A block in which no other process of the user is, for the same key."""
        private_folder(self._folder)
        handle = os.open(
            self._file("lock", key).with_suffix(""), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            now = asyncio.get_running_loop().time
            until = now() + LONGEST
            while not _is_taken(handle) and now() < until:  # noqa: ASYNC110 - another process's
                await asyncio.sleep(LOOK)
            yield
        finally:
            os.close(handle)  # and with it the lock

    def _file(self, collection: str, key: str) -> Path:
        digest = hashlib.sha256(key.encode()).hexdigest()[:16]
        return self._folder / f"{collection}-{digest}.json"


def config_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the user's tokens are kept: `devall/mcp` in the folder for configuration."""
    base = environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "devall" / "mcp"


if sys.platform == "win32":

    def _is_taken(handle: int) -> bool:  # noqa: ARG001 - as below
        return True  # two processes that refresh one login at once may lose it

else:
    import fcntl

    def _is_taken(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
