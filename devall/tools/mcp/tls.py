"""The certificates that servers are checked against, read once for the process."""

from __future__ import annotations

import os
import ssl
import threading

import httpx2

_LOCK = threading.Lock()
_contexts: dict[tuple[str | None, ...], ssl.SSLContext] = {}


def tls() -> ssl.SSLContext:
    """What every HTTP client shares; the first call blocks for about 100 ms.

    Whoever sets `SSL_CERT_FILE` or `SSL_CERT_DIR` meanwhile gets another one.
    """
    key = (os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    with _LOCK:
        if key not in _contexts:
            _contexts[key] = httpx2.create_ssl_context()
        return _contexts[key]
