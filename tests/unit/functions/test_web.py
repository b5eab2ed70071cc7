from __future__ import annotations

import asyncio
import datetime as dt
import gzip
import json
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import primp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import devall
from devall.core.errors import ToolArguments, ToolFailed, ToolTimeout
from devall.core.messages import MediaPart
from devall.testing.chat_server import ChatServer

if TYPE_CHECKING:
    from tests.unit.functions.conftest import Tools

ARTICLE = """<!DOCTYPE html><html><head><title>On Sluices</title>
<meta name="date" content="2024-05-06"></head><body>
<nav><a href="/">Home</a> <a href="/more">More pages of this site</a></nav>
<article><h1>On Sluices</h1>
<p>A sluice is a channel with a gate at its head that holds the water back until it is wanted.</p>
<p>Millers have built them since the middle ages, as <a href="/history">their history</a> tells in
many words, and some of them are still in use in the valleys of the north.</p>
<table><tr><th>Kind</th><th>Width</th></tr><tr><td>Vertical rising</td><td>3 m</td></tr></table>
</article><footer>Imprint and cookies</footer></body></html>"""


@dataclass
class Site:
    """A web site on the loopback interface; what it was asked stands in `asked`."""

    url: str = ""
    pages: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    def page(
        self,
        path: str,
        body: str | bytes,
        kind: str = "text/html; charset=utf-8",
        status: str = "200 OK",
        **headers: str,
    ) -> str:
        """Put up a page; its URL."""
        data = body.encode() if isinstance(body, str) else body
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}", "Connection: close"]
        lines += [f"Content-Type: {kind}"] if kind else []
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.pages[path] = "\r\n".join(lines).encode() + b"\r\n\r\n" + data
        return self.url + path


async def _read_request(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {
        name.lower(): value
        for name, _, value in (line.partition(": ") for line in head[1:] if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return head[0].rpartition(" ")[0], headers, body


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    found = Site()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _read_request(reader)
            found.asked.append(request)
            path = request[0].partition(" ")[2]
            answer = found.pages.get(path)
            if answer is None:
                await asyncio.sleep(60)
            else:
                writer.write(answer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield found
    server.close()


@pytest.fixture(autouse=True, scope="module")
def _the_engines_loop_runs() -> None:
    """The client that ddgs uses keeps one loop for the whole process, from its first call on."""
    with socket.create_server(("127.0.0.1", 0)) as opened:
        port = opened.getsockname()[1]
    with pytest.raises(Exception, match=str(port)):
        primp.Client().get(f"http://127.0.0.1:{port}/")


@pytest.fixture(autouse=True)
def _no_keys_and_no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SERPER_API_KEY", "SERPER_DEV_API_KEY", "JINA_API_KEY", "WEB_SEARCH_BACKEND"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "DDGS_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def tools(tools_of: Callable[..., Tools]) -> Tools:
    return tools_of("web")


# Pages


@pytest.mark.parametrize("tool", ["read_webpage_content", "get_webpage_content"])
async def test_a_page_is_read_as_its_text_without_what_stands_around(
    tools: Tools, site: Site, tool: str
):
    url = site.page("/sluices", ARTICLE)
    text = await tools.text(tool, url=url)
    assert text.startswith(f"Title: On Sluices\nURL: {url}\nDate: 2024-05-06\n\n")
    assert "holds the water back until it is wanted" in text
    assert f"[their history]({site.url}/history)" in text
    assert "| Vertical rising | 3 m |" in text
    assert "cookies" not in text


async def test_the_encoding_comes_from_the_server_or_from_the_page(tools: Tools, site: Site):
    words = "Größere Bäche fließen über mehrere Wehre, ehe sie die Mühle erreichen. " * 3
    page = f"<html><head><meta charset=latin-1></head><body><p>{words}</p></body></html>"
    for kind in ("text/html; charset=ISO-8859-1", "text/html", ""):
        url = site.page("/de", page.encode("latin-1"), kind)
        assert "Größere Bäche fließen" in await tools.text("read_webpage_content", url=url)


async def test_a_packed_page_is_unpacked(tools: Tools, site: Site):
    url = site.page("/z", gzip.compress(ARTICLE.encode()), Content_Encoding="gzip")
    assert "holds the water back" in await tools.text("read_webpage_content", url=url)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/plain", "plain words"),
        ("application/json", '{"a": [1, 2]}'),
        ("application/ld+json", '{"a": 1}'),
        ("text/markdown", "# Title"),
        ("", "plain words"),
    ],
)
async def test_a_text_is_given_as_it_is(tools: Tools, site: Site, kind: str, body: str):
    assert await tools.text("read_webpage_content", url=site.page("/x", body, kind)) == body


async def test_a_pdf_and_an_image_are_shown(tools: Tools, site: Site):
    for kind, body in (("application/pdf", b"%PDF-1.7 x"), ("image/png", b"\x89PNG\r\n\x1a\n")):
        result = await tools.result(
            "read_webpage_content", url=site.page("/files/report", body, kind)
        )
        [media] = [part for part in result.parts if isinstance(part, MediaPart)]
        assert (media.mime_type, media.name) == (kind, "report")
    guessed = await tools.result("read_webpage_content", url=site.page("/y", b"%PDF-1.7", ""))
    assert [p.mime_type for p in guessed.parts if isinstance(p, MediaPart)] == ["application/pdf"]


@pytest.mark.parametrize(
    ("status", "said", "hint"),
    [
        ("404 Not Found", "answers 404 Not Found: gone away", "no such page"),
        ("403 Forbidden", "answers 403 Forbidden", "login"),
        ("429 Too Many Requests", "answers 429", "wait"),
        ("500 Internal Server Error", "answers 500", ""),
    ],
)
async def test_a_page_that_is_refused_says_so(
    tools: Tools, site: Site, status: str, said: str, hint: str
):
    url = site.page("/x", "gone  away", "text/plain", status)
    with pytest.raises(ToolFailed) as failure:
        await tools.result("read_webpage_content", url=url)
    assert said in str(failure.value)
    assert hint in failure.value.hint


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://x/y", "example.com", "", "http://", "http://[::1", "data:x"],
)
async def test_only_pages_of_the_web_are_read(
    tools: Tools, url: str, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(ToolArguments, match="http"):
        await tools.result("read_webpage_content", url=url)
    monkeypatch.setenv("JINA_API_KEY", "k")
    with pytest.raises(ToolArguments, match="http"):
        await tools.result("read_webpage_content", url=url)


async def test_a_redirect_is_followed_but_not_out_of_the_web_nor_for_ever(tools: Tools, site: Site):
    site.page("/end", "arrived", "text/plain")
    site.page("/b", "", status="302 Found", Location="end")
    url = site.page("/a", "", status="301 Moved Permanently", Location=f"{site.url}/b")
    assert await tools.text("read_webpage_content", url=url) == "arrived"
    url = site.page("/out", "", status="302 Found", Location="file:///etc/passwd")
    with pytest.raises(ToolFailed, match="redirects to 'file:///etc/passwd'"):
        await tools.result("read_webpage_content", url=url)
    url = site.page("/circle", "", status="302 Found", Location="/circle")
    with pytest.raises(ToolFailed, match="redirects more than 10 times"):
        await tools.result("read_webpage_content", url=url)


async def test_a_page_without_end_is_not_read_to_its_end(tools: Tools, site: Site):
    url = site.page("/big", gzip.compress(bytes(64 << 20)), Content_Encoding="gzip")
    with pytest.raises(ToolFailed, match="more than 16 MiB"):
        await tools.result("read_webpage_content", url=url)


async def test_what_cannot_be_read_is_named(tools: Tools, site: Site):
    url = site.page("/x.zip", b"PK\x03\x04", "application/zip")
    with pytest.raises(ToolFailed, match="application/zip"):
        await tools.result("read_webpage_content", url=url)
    url = site.page("/empty", "<html><body><script>go()</script></body></html>")
    with pytest.raises(ToolFailed, match="holds no text"):
        await tools.result("read_webpage_content", url=url)


async def test_a_server_that_is_not_there_or_never_answers_ends_in_time(
    tools: Tools, tools_of: Callable[..., Tools], site: Site, free_port: int
):
    with pytest.raises(ToolFailed, match="cannot be reached"):
        await tools.result("read_webpage_content", url=f"http://127.0.0.1:{free_port}/")
    with pytest.raises(ToolTimeout):
        await tools_of("web", timeout=0.5).result("read_webpage_content", url=f"{site.url}/silent")


async def test_a_key_of_jinas_sends_pages_through_its_reader(
    tools: Tools, site: Site, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("JINA_API_KEY", "k3y")
    monkeypatch.setenv("JINA_BASE_URL", site.url + "/")
    site.page("/https://example.org/a?b=c", "# Read\n", "text/plain; charset=utf-8")
    text = await tools.text("read_webpage_content", url="https://example.org/a?b=c")
    assert text == "# Read\n"
    [(request, headers, _)] = site.asked
    assert request == "GET /https://example.org/a?b=c"
    assert headers["authorization"] == "Bearer k3y"


async def test_a_key_goes_to_no_other_origin(
    tools: Tools, site: Site, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("JINA_API_KEY", "k3y")
    monkeypatch.setenv("JINA_BASE_URL", site.url)
    other = site.url.replace("127.0.0.1", "localhost")
    site.page("/http://x/", "", status="302 Found", Location=f"{other}/elsewhere")
    site.page("/elsewhere", "arrived", "text/plain")
    assert await tools.text("read_webpage_content", url="http://x/") == "arrived"
    assert ["authorization" in headers for _, headers, _ in site.asked] == [True, False]


# Searches


@pytest.mark.parametrize("name", ["SERPER_API_KEY", "SERPER_DEV_API_KEY"])
async def test_a_key_of_serpers_searches_by_it(
    tools: Tools, site: Site, monkeypatch: pytest.MonkeyPatch, name: str
):
    monkeypatch.setenv(name, "k3y")
    monkeypatch.setenv("SERPER_BASE_URL", site.url)
    found = {
        "answerBox": {"answer": "42", "link": "http://a/box"},
        "knowledgeGraph": {"title": "Sluice", "type": "Gate", "attributes": {"Width": "3 m"}},
        "organic": [
            {"title": "One", "link": "http://a/1", "snippet": "first"},
            {"title": "Two", "link": "http://a/2"},
        ],
        "peopleAlsoAsk": [{"question": "Why?", "snippet": "So.", "link": "http://a/3"}],
        "relatedSearches": [{"query": "weir"}],
    }
    site.page("/search", json.dumps(found), "application/json")
    text = await tools.text("web_search", query="sluice", page=2, language="de", country="at")
    assert text == (
        "Answer: 42 (http://a/box)\n\n"
        "Sluice, Gate\n- Width: 3 m\n\n"
        "1. One\n   http://a/1\n   first\n\n2. Two\n   http://a/2\n\n"
        "People also ask:\n- Why? So. (http://a/3)\n\n"
        "Related searches: weir"
    )
    [(request, headers, body)] = site.asked
    assert request == "POST /search"
    assert headers["x-api-key"] == "k3y"
    assert json.loads(body) == {"q": "sluice", "page": 2, "hl": "de", "gl": "at"}


@pytest.mark.parametrize(
    ("body", "said"),
    [("{}", "nothing was found"), ('{"organic": null, "answerBox": "x"}', "nothing was found")],
)
async def test_a_search_without_results_says_so(
    tools: Tools, site: Site, monkeypatch: pytest.MonkeyPatch, body: str, said: str
):
    monkeypatch.setenv("SERPER_API_KEY", "k")
    monkeypatch.setenv("SERPER_BASE_URL", site.url)
    site.page("/search", body, "application/json")
    assert said in await tools.text("web_search", query="x")


@pytest.mark.parametrize("body", ["<html>", "[1]", ""])
async def test_a_search_that_answers_with_something_else_fails(
    tools: Tools, site: Site, monkeypatch: pytest.MonkeyPatch, body: str
):
    monkeypatch.setenv("SERPER_API_KEY", "k")
    monkeypatch.setenv("SERPER_BASE_URL", site.url)
    site.page("/search", body, "application/json")
    with pytest.raises(ToolFailed, match="answers with"):
        await tools.result("web_search", query="x")


async def test_the_key_of_a_search_stands_in_no_error(
    tools: Tools, site: Site, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SERPER_API_KEY", "s3ntinel")
    monkeypatch.setenv("SERPER_BASE_URL", site.url)
    site.page("/search", "wrong key", "text/plain", "403 Forbidden")
    with pytest.raises(ToolFailed) as failure:
        await tools.result("web_search", query="x")
    assert "s3ntinel" not in str(failure.value) + failure.value.hint


WITH_KEYS = """
version: 0.4.0
graph:
  start: A
  nodes:
    - id: A
      type: agent
      config:
        provider: openai
        name: a
        tooling:
          - type: function
            config:
              tools: [{name: web_search}, {name: read_webpage_content}, {name: execute_code}]
"""


async def test_keys_that_stand_only_in_a_dotenv_file_reach_the_tools_and_nothing_else(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("SERPER_API_KEY", "SERPER_DEV_API_KEY", "JINA_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "flow.yaml").write_text(WITH_KEYS)
    keys = {"SERPER_API_KEY": "serper-s3ntinel", "JINA_API_KEY": "jina-s3ntinel"}
    urls = {"SERPER_BASE_URL": site.url, "JINA_BASE_URL": site.url}
    lines = [f"{name}={value}" for name, value in (keys | urls).items()]
    (tmp_path / ".env").write_text("\n".join(lines))
    site.page(
        "/search", '{"organic": [{"title": "One", "link": "http://a/1"}]}', "application/json"
    )
    site.page("/http://a/1", "your key was jina-s3ntinel", "text/plain")
    code = "import os; print(sorted(n for n in os.environ if 'SERPER' in n or 'JINA' in n))"
    calls = [
        {"name": "web_search", "arguments": {"query": "sluice"}},
        {"name": "read_webpage_content", "arguments": {"url": "http://a/1"}},
        {"name": "execute_code", "arguments": {"code": code}},
    ]
    async with ChatServer({"a": [{"tool_calls": calls}, "done"]}) as server:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        result = await devall.run(tmp_path / "flow.yaml", task="go", logs_dir=tmp_path / "logs")
    assert (result.status, result.answer) == ("completed", "done")
    asked = {request: headers for request, headers, _ in site.asked}
    assert asked["POST /search"]["x-api-key"] == "serper-s3ntinel"
    assert asked["GET /http://a/1"]["authorization"] == "Bearer jina-s3ntinel"
    told = [m["content"] for m in server.requests[1].body["messages"] if m["role"] == "tool"]
    assert "1. One" in told[0]
    assert "--- stdout ---\n[]" in told[2]
    logged = [path for path in (tmp_path / "logs").rglob("*") if path.is_file()]
    assert logged
    assert not [path for path in logged if b"s3ntinel" in path.read_bytes()]


@dataclass
class Engines:
    """Every search engine there is, behind a proxy on the loopback interface."""

    page: str
    asked: list[str] = field(default_factory=list)


@pytest.fixture
async def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Engines]:
    """A proxy that answers itself for the host that it is asked to connect to."""
    _make_certificates(tmp_path, "html.duckduckgo.com")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "server.pem")
    found = Engines(page="")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            found.asked.append((await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[0])
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await writer.drain()
            await writer.start_tls(context)
            _, _, body = await _read_request(reader)
            found.asked.append(body.decode())
            data = found.page.encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode() + data)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    monkeypatch.setenv("DDGS_PROXY", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("WEB_SEARCH_BACKEND", "duckduckgo")
    yield found
    server.close()


def _make_certificates(folder: Path, host: str) -> None:
    now = dt.datetime.now(dt.UTC)
    day = dt.timedelta(days=1)

    def certificate(name: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - day)
            .not_valid_after(now + day)
        )

    authority, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    is_authority = x509.BasicConstraints(ca=True, path_length=None)
    root = certificate("test", authority).add_extension(is_authority, critical=True)
    names = x509.SubjectAlternativeName([x509.DNSName(host)])
    server = certificate(host, key).add_extension(names, critical=False)
    pem = serialization.Encoding.PEM
    signed = root.sign(authority, hashes.SHA256()).public_bytes(pem)
    (folder / "ca.pem").write_bytes(signed)
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "server.pem").write_bytes(
        private + server.sign(authority, hashes.SHA256()).public_bytes(pem)
    )


async def test_without_a_key_the_engines_are_asked(tools: Tools, engines: Engines):
    engines.page = (
        "<html><body><div class='result body'><h2>On <b>Sluices</b></h2>"
        "<a href='http://a/1'>A gate</a></div></body></html>"
    )
    text = await tools.text("web_search", query="sluice gate", language="de", country="at")
    assert text == "1. On Sluices\n   http://a/1\n   A gate"
    assert engines.asked[0].startswith("CONNECT html.duckduckgo.com:443 ")
    assert "q=sluice+gate" in engines.asked[1]
    assert "l=at-de" in engines.asked[1]


async def test_engines_that_find_nothing_are_no_error(tools: Tools, engines: Engines):
    engines.page = "<html><body></body></html>"
    assert await tools.text("web_search", query="x") == "nothing was found for 'x'"


async def test_engines_that_cannot_be_reached_are_one(
    tools: Tools, monkeypatch: pytest.MonkeyPatch, free_port: int
):
    monkeypatch.setenv("DDGS_PROXY", f"http://127.0.0.1:{free_port}")
    monkeypatch.setenv("WEB_SEARCH_BACKEND", "duckduckgo")
    with pytest.raises(ToolFailed, match="no search engine could be asked") as failure:
        await tools.result("web_search", query="x")
    assert "SERPER_API_KEY" in failure.value.hint


async def test_without_the_extra_the_user_is_told_how_to_install_it(
    tools: Tools, site: Site, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "ddgs", None)
    monkeypatch.setitem(sys.modules, "ddgs.ddgs", None)
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    with pytest.raises(ToolFailed, match="ddgs") as failure:
        await tools.result("web_search", query="x")
    assert "pip install devall[web]" in failure.value.hint
    with pytest.raises(ToolFailed, match="trafilatura") as failure:
        await tools.result("read_webpage_content", url=site.page("/x", ARTICLE))
    assert "pip install devall[web]" in failure.value.hint
