"""Headers that go with a request to a model's endpoint, so that its own trace joins the run's."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar

from devall.core.messages import NOTHING

HEADERS: ContextVar[Mapping[str, str]] = ContextVar("devall_outgoing_headers", default=NOTHING)
"""Those of the call that the running task makes: `traceparent`; none where nothing is traced."""
