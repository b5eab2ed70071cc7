"""A browser without a window, spoken to over a pipe."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE = 30
"""Seconds that the browser may take for one answer."""
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *(
        "--disable-dev-shm-usage",
        "--disable-extensions",
        "--disable-breakpad",
    ),
    *("--remote-debugging-pipe", "--no-zygote", "--hide-scrollbars"),
)
"""The renderer is started without helpers that would outlive it."""


EXEC = """
import fcntl, os, sys
held = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 64) for each in sys.argv[1:3]]
os.dup2(held[0], 3)
os.dup2(held[1], 4)
os.closerange(5, 128)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Chromium is spoken to by its descriptors 3 and 4."""


class Browser:
    """One page in Chromium, driven by its own protocol; every request that it makes is known."""

    def __init__(self, folder: Path) -> None:
        ours, theirs = os.pipe(), os.pipe()
        command = [CHROMIUM, *OPTIONS, f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", EXEC, str(ours[0]), str(theirs[1]), *command],
            pass_fds=(ours[0], theirs[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(ours[0])
        os.close(theirs[1])
        self._in = os.fdopen(ours[1], "wb", buffering=0)
        self._out = os.fdopen(theirs[0], "rb")
        self._number = 0
        self._session = ""
        self._rest = b""
        self._loaded = False
        self.requests: list[str] = []
        """What was asked for over the network, but for what the page's policy forbade."""
        self._urls: dict[str, str] = {}
        self.complaints: list[str] = []
        """What stands in the console, what was thrown, what the policy forbade."""
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self) -> None:
        """Find the one page, and hear of all that happens in it."""
        found = self.ask("Target.getTargets")["targetInfos"]
        [target] = [each["targetId"] for each in found if each["type"] == "page"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """What the browser answers to a command."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._in.write(json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._number:
                assert "error" not in told, told["error"]
                return told["result"]
            self._note(told)

    def open(self, file: Path, width: int = 1280, height: int = 900, scheme: str = "light") -> None:
        """Load a page; it is there when this returns."""
        self._resize(width, height)
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.ask("Emulation.setEmulatedMedia", features=features)
        self._loaded = False
        self.ask("Page.navigate", url=file.resolve().as_uri())
        while not self._loaded:
            self._note(self._next())

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press a key, as a hand would."""
        for kind in ("keyDown", "keyUp"):
            typed = {"text": text} if text and kind == "keyDown" else {}
            self.ask(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                **typed,
            )

    def picture(self, file: Path) -> None:
        """Take a picture of the whole page."""
        size = [
            self.run(f"document.documentElement.{each}") for each in ("clientWidth", "scrollHeight")
        ]
        self._resize(size[0], min(size[1], 12000))
        found = self.ask("Page.captureScreenshot")
        file.write_bytes(base64.b64decode(found["data"]))

    def close(self) -> None:
        """End the browser and all of its processes."""
        self._session = ""
        with contextlib.suppress(OSError):
            self._in.write(json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._in.close()
        self._out.close()

    def _resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", **size)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self._out.fileno(), 1 << 16)
            assert piece, "the browser has gone"
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def _note(self, told: dict[str, Any]) -> None:
        values = told.get("params", {})
        match told.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Network.requestWillBeSent":
                self.requests.append(values["request"]["url"])
                self._urls[values["requestId"]] = values["request"]["url"]
            case "Network.loadingFailed" if values.get("blockedReason") == "csp":
                self.requests.remove(self._urls[values["requestId"]])
            case "Log.entryAdded":
                self.complaints.append(values["entry"]["text"])
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(values))
            case _:
                pass
