"""Small pictures that a run has kept, as a page can hold them."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path

from devall.core.messages import MediaPart

KINDS = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Kinds that hold pixels and nothing else."""
LARGEST = 300_000
"""Bytes of one of them."""
MOST = 2_000_000
"""Bytes of all of them."""


@dataclass(slots=True)
class Images:
    """The pictures of a run's folder; each is put into the page once."""

    folder: Path
    _left: int = MOST
    _shown: set[str] = field(default_factory=set[str])

    def source(self, part: MediaPart) -> str:
        """What an `<img>` shows; empty where it is no picture, too large, or shown already."""
        name = part.attachment
        if part.mime_type not in KINDS or not name or name in self._shown:
            return ""
        file = self.folder / Path(name).name
        try:
            size = file.stat().st_size
            if size > min(LARGEST, self._left) or not file.resolve().is_relative_to(
                self.folder.resolve()
            ):
                return ""
            data = file.read_bytes()
        except OSError:
            return ""
        self._shown.add(name)
        self._left -= size
        return f"data:{part.mime_type};base64,{base64.b64encode(data).decode()}"
