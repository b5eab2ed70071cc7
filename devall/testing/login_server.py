"""A real MCP server on a free loopback port that is logged in to, and its authorization server.

It plays both parts of the MCP specification's authorization: protected resource metadata,
authorization server metadata, dynamic registration of clients, the authorization code flow with
PKCE, tokens that expire and are refreshed (each refresh token once), and the device flow of
RFC 8628. Its one tool is `hello`.

```python
with LoginServer(lifetime=60) as server:
    run(...)  # a source with `server: <server.url>` and `auth: oauth`
    visit(page)  # what a person with a browser does: opens the page, clicks on its link
    server.type_code("ABCD-1234")  # what a person does with the code of the device flow
    server.grants  # the grants of the tokens that were given, in order
```

A test may change what stands in `LoginServer.__init__` at any time, and `refreshes` and
`refuses` (grants that are refused).
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

CODE = "authorization_code"
REFRESH = "refresh_token"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"


@dataclass(slots=True)
class _Device:
    """A device that waits for its code to be typed."""

    client: str
    user_code: str
    until: float
    said: str = "authorization_pending"
    """What a poll is told; empty = it gets its token."""


class LoginServer:
    """An MCP server that wants a login; `with`, in threads of its own."""

    def __init__(
        self,
        *,
        lifetime: float = 3600,
        device: bool = False,
        interval: float = 0.2,
        code_lifetime: float = 600,
        slow_downs: int = 0,
        registers: bool = True,
    ) -> None:
        """Make a server; nothing listens yet.

        Args:
            lifetime: Seconds that a token holds.
            device: Whether the device flow is offered.
            interval: Seconds between two polls of a device.
            code_lifetime: Seconds within which a device's code has to be typed.
            slow_downs: How many polls of devices are answered `slow_down` first.
            registers: Whether clients may register themselves.
        """
        self.lifetime = lifetime
        self.device = device
        self.interval = interval
        self.code_lifetime = code_lifetime
        self.slow_downs = slow_downs
        self.registers = registers
        self.issuer = self
        """Where clients log in; another server's tokens are taken then."""
        self.refreshes = True
        """Whether tokens come with a refresh token."""
        self.refresh_delay = 0.0
        """Seconds that a refresh takes."""
        self.refuses: set[str] = set()
        self.clients: dict[str, dict[str, Any]] = {}
        """What was registered, by client id."""
        self.grants: list[str] = []
        self.polls: list[float] = []
        """When devices asked for their token (`time.monotonic()`)."""
        self.tokens: dict[str, float] = {}
        """When each token ends (`time.time()`)."""
        self._refreshes: dict[str, str] = {}
        self._requests: dict[str, dict[str, str]] = {}
        self._codes: dict[str, dict[str, str]] = {}
        self._devices: dict[str, _Device] = {}

    @property
    def base(self) -> str:
        """The origin, which is also the issuer."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def url(self) -> str:
        """What goes into `server` of a source."""
        return f"{self.base}/mcp"

    def type_code(self, code: str, *, allow: bool = True) -> None:
        """Do what a person does who types a device's code, and allows or denies it."""
        (found,) = [each for each in self._devices.values() if each.user_code == code]
        found.said = "" if allow else "access_denied"

    def end_tokens(self) -> None:
        """Let all tokens that were given expire, whatever their clients were told."""
        self.tokens = dict.fromkeys(self.tokens, 0.0)

    def __enter__(self) -> Self:
        server = self

        class Handler(_Handler):
            here = server

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(0.02,), name="login-server", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Be away from now on."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def metadata(self) -> dict[str, Any]:
        """What the authorization server says of itself."""
        told: dict[str, Any] = {
            "issuer": self.base,
            "authorization_endpoint": f"{self.base}/authorize",
            "token_endpoint": f"{self.base}/token",
            "response_types_supported": ["code"],
            "grant_types_supported": [CODE, REFRESH],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        }
        if self.registers:
            told["registration_endpoint"] = f"{self.base}/register"
        if self.device:
            told["device_authorization_endpoint"] = f"{self.base}/device_authorization"
            told["grant_types_supported"].append(DEVICE)
        return told

    def register(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """A client's registration."""
        client = f"client-{secrets.token_hex(4)}"
        self.clients[client] = {**metadata, "client_id": client}
        return self.clients[client]

    def begin(self, query: dict[str, str]) -> str | None:
        """The page that asks for a person's consent; None = the request is a wrong one."""
        client = self.clients.get(query.get("client_id", ""))
        is_right = (
            client is not None
            and query.get("redirect_uri") in client["redirect_uris"]
            and query.get("code_challenge_method") == "S256"
            and query.get("response_type") == "code"
        )
        if not is_right:
            return None
        number = secrets.token_hex(4)
        self._requests[number] = query
        return f'<a href="/consent?request={number}">Allow</a>'

    def consent(self, query: dict[str, str]) -> str:
        """Where the browser goes once the person has clicked."""
        asked = self._requests.pop(query["request"])
        code = secrets.token_hex(8)
        self._codes[code] = asked
        back: dict[str, str] = {"state": asked["state"], "iss": self.base}
        back |= {"error": "access_denied"} if query.get("deny") else {"code": code}
        return f"{asked['redirect_uri']}?{urlencode(back)}"

    def begin_device(self, form: dict[str, str]) -> dict[str, Any]:
        """A code for a device."""
        client = self.clients.get(form.get("client_id", ""))
        if client is None or DEVICE not in client.get("grant_types", ()):
            return {"error": "unauthorized_client"}
        code, user_code = secrets.token_hex(8), f"{secrets.token_hex(2)}-{secrets.token_hex(2)}"
        until = time.monotonic() + self.code_lifetime
        self._devices[code] = _Device(client["client_id"], user_code.upper(), until)
        return {
            "device_code": code,
            "user_code": user_code.upper(),
            "verification_uri": f"{self.base}/device",
            "verification_uri_complete": f"{self.base}/device?user_code={user_code.upper()}",
            "expires_in": self.code_lifetime,
            "interval": self.interval,
        }

    def token(self, form: dict[str, str]) -> dict[str, Any]:
        """A token, or why there is none."""
        grant = form.get("grant_type", "")
        if grant in self.refuses:
            return {"error": "invalid_grant", "error_description": "not any more"}
        error = ""
        match grant:
            case "authorization_code":
                asked = self._codes.pop(form.get("code", ""), {})
                digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
                challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
                fits = challenge == asked.get("code_challenge")
                same = all(form.get(k) == asked.get(k) for k in ("client_id", "redirect_uri"))
                error = "" if fits and same else "invalid_grant"
            case "refresh_token":
                time.sleep(self.refresh_delay)
                owner = self._refreshes.pop(form.get("refresh_token", ""), None)
                error = "" if owner == form.get("client_id") else "invalid_grant"
            case _ if grant == DEVICE:
                error = self._polled(form)
            case _:
                error = "unsupported_grant_type"
        if error:
            return {"error": error}
        self.grants.append(grant)
        access, refresh = f"access-{secrets.token_hex(8)}", f"refresh-{secrets.token_hex(8)}"
        self.tokens[access] = time.time() + self.lifetime
        given = {"access_token": access, "token_type": "Bearer", "expires_in": int(self.lifetime)}
        if not self.refreshes:
            return given
        self._refreshes[refresh] = form["client_id"]
        return {**given, "refresh_token": refresh}

    def _polled(self, form: dict[str, str]) -> str:
        """Why a device gets no token yet; empty: it does."""
        self.polls.append(time.monotonic())
        device = self._devices.get(form.get("device_code", ""))
        if device is None or device.client != form.get("client_id"):
            return "invalid_grant"
        if self.slow_downs:
            self.slow_downs -= 1
            return "slow_down"
        if time.monotonic() > device.until:
            return "expired_token"
        return device.said

    def protocol(self, message: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request of the MCP protocol."""
        number = message["id"]
        tool = {"name": "hello", "description": "Say hi.", "inputSchema": {"type": "object"}}
        results: dict[str, dict[str, Any]] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "guarded", "version": "1"},
            },
            "tools/list": {"tools": [tool]},
            "tools/call": {"content": [{"type": "text", "text": "hi"}]},
        }
        found = results.get(message["method"])
        if found is None:
            error = {"code": -32601, "message": f"no {message['method']} here"}
            return {"jsonrpc": "2.0", "id": number, "error": error}
        return {"jsonrpc": "2.0", "id": number, "result": found}


def visit(page: str, *, allow: bool = True, seconds: float = 10) -> str:
    """What a person sees at last who opens the page, and allows (or denies) what it asks.

    The browser is sent back to a port of whoever asked, who may be about to open it.
    """
    until = time.monotonic() + seconds
    with urllib.request.urlopen(page, timeout=seconds) as response:  # noqa: S310 - loopback
        link = re.findall('href="([^"]+)"', response.read().decode())[0]
    back = urljoin(page, link if allow else f"{link}&deny=1")
    connection = HTTPConnection(urlsplit(back).netloc, timeout=seconds)
    connection.request("GET", back)
    target = connection.getresponse().headers["location"]
    connection.close()
    while True:
        try:
            with urllib.request.urlopen(target, timeout=seconds) as response:  # noqa: S310
                return response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.read().decode()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


class _Handler(BaseHTTPRequestHandler):
    here: LoginServer

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query))
        here = self.here
        match parts.path:
            case "/.well-known/oauth-protected-resource/mcp":
                servers = [here.issuer.base]
                self._json(200, {"resource": here.url, "authorization_servers": servers})
            case "/.well-known/oauth-authorization-server":
                self._json(200, here.metadata())
            case "/authorize":
                page = here.begin(query)
                self._send(400 if page is None else 200, page or "wrong", "text/html")
            case "/consent":
                self._send(302, "", "text/html", {"location": here.consent(query)})
            case "/mcp":
                self._send(405, "", "text/plain")
            case _:
                self._send(404, "nothing here", "text/plain")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        here = self.here
        match urlsplit(self.path).path:
            case "/register" if here.registers:
                self._json(201, here.register(json.loads(body)))
            case "/token":
                self._told(here.token(_form(body)))
            case "/device_authorization" if here.device:
                self._told(here.begin_device(_form(body)))
            case "/mcp":
                self._protocol(cast("dict[str, Any]", json.loads(body)))
            case _:
                self._send(404, "nothing here", "text/plain")

    def _protocol(self, message: dict[str, Any]) -> None:
        token = self.headers.get("authorization", "").removeprefix("Bearer ")
        if self.here.issuer.tokens.get(token, 0) < time.time():
            place = f"{self.here.base}/.well-known/oauth-protected-resource/mcp"
            asks = {"www-authenticate": f'Bearer resource_metadata="{place}"'}
            self._send(401, "log in first", "text/plain", asks)
        elif "id" in message:
            self._json(200, self.here.protocol(message))
        else:
            self._send(202, "", "text/plain")

    def _told(self, answer: dict[str, Any]) -> None:
        self._json(400 if "error" in answer else 200, answer)

    def _json(self, status: int, answer: dict[str, Any]) -> None:
        self._send(status, json.dumps(answer), "application/json")

    def _send(
        self, status: int, text: str, kind: str, headers: dict[str, str] | None = None
    ) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002 - the base's name


def _form(body: bytes) -> dict[str, str]:
    return dict(parse_qsl(body.decode()))
