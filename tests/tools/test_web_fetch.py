"""web_fetch: what of a page is read, what is not, and where no request may lead."""

from __future__ import annotations

import asyncio
import base64
import gzip
import re
import socket
import ssl
import subprocess
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.web import Handler, redirect, response, web_server
from tests.tools.folder import Folder, said
from tests.tools.pdf_files import pdf
from tui.core.errors import ToolError
from tui.tools.base import UrlAccess
from tui.tools.web.client import Resolve, WebLimits
from tui.tools.web_fetch import WebFetch

SHORT = WebLimits(connect_s=5, read_s=0.2, total_s=20, max_bytes=100_000)


@pytest.fixture(autouse=True)
def _own_machine(folder: Folder) -> None:
    """The server is on this machine: that is allowed, but where a test is about it."""
    allow(folder, lambda _url: UrlAccess("allow", private=True))


def allow(folder: Folder, access: Callable[[str], UrlAccess]) -> None:
    folder.changes["url_access"] = access


async def page(folder: Folder, answer: bytes | Handler) -> str:
    """What the model gets of a page."""
    async with web_server({"/": answer}) as web:
        return await folder.text(WebFetch(SHORT), url=web.url())


async def test_a_page_is_markdown_with_its_title_and_whole_links(folder: Folder) -> None:
    html = """<!doctype html><html><head><title> A &amp; B\n page</title><style>x{}</style></head>
    <body><nav><a href="/">home</a></nav><h1>Head<a class="headerlink" href="#h">¶</a></h1>
    <p>Some <b>text</b> with <a href="../x.html">a link</a>.</p>
    <pre><code class="language-python">a[1](b)\n  c</code></pre>
    <table><tr><th>k</th><th>v</th></tr><tr><td>1</td><td>2</td></tr></table>
    <script>alert(1)</script></body></html>"""
    async with web_server({"/docs/a?q=1": response(html, "text/html; charset=utf-8")}) as web:
        output = await folder.call(WebFetch(), url=web.url("/docs/a?q=1#part"))
        link = web.url("/x.html")
        url = web.url("/docs/a?q=1")
    text = said(output)
    assert text.startswith(f"URL: {url}\nTitle: A & B page\nType: text/html\n\n# Head\n\n")
    assert f"Some **text** with [a link]({link})." in text
    assert "```python\na[1](b)\n  c\n```" in text
    assert "| 1 | 2 |" in text
    assert "home" not in text
    assert "alert" not in text
    assert output.summary.endswith("B, A & B page")
    assert output.source == url
    assert output.details == {
        "url": url,
        "status": 200,
        "content_type": "text/html",
        "bytes": len(html.encode()),
    }
    head = web.requests[0].lower()
    assert "user-agent: holdfast/" in head
    assert "cookie" not in head
    assert f"host: 127.0.0.1:{web.port}" in head


RUSTDOC = """<pre class="rust item-decl"><code>pub fn first(all: &amp;[<a class="primitive"
 href="https://doc.rust-lang.org/std/primitive.u8.html">u8</a>]) -&gt; <a class="struct"
 href="v.html" title="struct alloc::vec::Vec">Vec</a>&lt;u8&gt; <a href="#" class="tooltip"
 data-notable-ty="V">ⓘ</a></code></pre>"""
RUSTDOC_SOURCE = """<pre class="rust"><code><a href=#1 id=1 data-nosnippet>1</a>//! Docs.
<a href=#2 id=2 data-nosnippet>2</a>fn f() {}</code></pre>"""
SPHINX = """<pre>
<strong id="grammar-token-expr">expr</strong> ::= <a class="reference internal" href="#t"><code
 class="xref docutils literal notranslate"><span class="pre">term</span></code></a> "+"
</pre>"""
SPHINX_NUMBERS = """<div class="highlight"><pre><span></span><span class="linenos">1</span><span
 class="k">def</span><span class="w"> </span><span class="nf">f</span><span class="p">():</span>
<span class="linenos">2</span>    <span class="k">pass</span>
</pre></div>"""
PYGMENTS_TABLE = """<table class="highlighttable">
<tr><td class="linenos"><div class="linenodiv">
<pre><span class="normal"><a href="#l-1">1</a></span></pre></div></td>
<td class="code"><div><pre><span></span><a id="l-1" name="l-1"></a><span
 class="nb">print</span><span class="p">()</span>
</pre></div></td></tr></table>"""


@pytest.mark.parametrize(
    ("html", "code"),
    [
        (RUSTDOC, "pub fn first(all: &[u8]) -> Vec<u8> "),
        (RUSTDOC_SOURCE, "//! Docs.\nfn f() {}"),
        (SPHINX, 'expr ::= term "+"'),
        (SPHINX_NUMBERS, "def f():\n    pass"),
        (PYGMENTS_TABLE, "print()"),
        ('<pre>a <a href="x" title="a > b">b</a> <A HREF=y>c</A></pre><pre>d</pre>', "a b c"),
    ],
    ids=["rustdoc 1.95", "its source", "Sphinx 8.2", "its numbers", "Pygments", "quotes"],
)
async def test_code_is_code(folder: Folder, html: str, code: str) -> None:
    """Without links, line numbers and tooltips, as it would be copied from the page."""
    text = await page(folder, response(f"<html><body>{html}", "text/html"))
    assert code in text
    assert "](" not in text
    assert "1" not in text.partition("\n\n")[2]


async def test_a_power_and_an_index_are_told_from_the_number_beside_them(folder: Folder) -> None:
    html = "<html><p>10<sup>6</sup>, log<sub>2</sub>8</p><table><tr><td>2<sup>-3</sup></td></tr>"
    html += "</table><pre>x<sup>2</sup></pre>"
    text = await page(folder, response(html, "text/html"))
    assert "10^6^, log~2~8" in text
    assert "| 2^-3^ |" in text
    assert "```\nx2\n```" in text


async def test_links_beside_code_stay(folder: Folder) -> None:
    html = '<html><p><a href="/x">a</a> <code><a href="/y">b</a></code></p><pre>c</pre>'
    text = await page(folder, response(f"{html}<p><a href='/z'>d</a></p>", "text/html"))
    assert re.search(r"\[a\]\(\S+/x\) .*/y\).*```\nc\n```.*\[d\]\(\S+/z\)", text, re.DOTALL)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\0\0\0\x20ftypavif\0\0\0\0avifmif1miafMA1B", "AVIF image"),
        (b"\0\0\0\x2cftypavis\0\0\0\0avifavismsf1iso8mif1miafMA1B", "AVIF image"),
        (b"\0\0\0\x1cftypheic\0\0\0\0mif1heicmiaf", "HEIC image"),
        (b"\0\0\0\x1cftypmif1\0\0\0\0mif1avifmiaf", "AVIF image"),
        (b"\0\0\0\x14ftypisom\0\0\0\0mp42", "MP4 or other ISO media"),
        (b"\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14ftypjp2 ", "JPEG 2000 image"),
        (b"\xff\nO\x06\x00\x13\x88\x02", "JPEG XL image"),
        (b"qoif\0\0\0\x08\0\0\0\x08\x03", "QOI image"),
    ],
)
async def test_an_image_of_another_kind_is_called_by_its_bytes(
    folder: Folder, head: bytes, kind: str
) -> None:
    """As Pillow 13, pillow-heif 1.8 and pillow-jxl-plugin 1.3 write them."""
    text = await page(folder, response(head + b"\0" * 99, "application/octet-stream"))
    assert f"Type: {kind}, " in text


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/json", "text/markdown", "application/xml", ""]
)
async def test_other_text_stays_as_it_is(folder: Folder, content_type: str) -> None:
    text = await page(folder, response('{"a": "<b>1</b>",\n  "c": 2}', content_type))
    assert text.endswith('\n\n{"a": "<b>1</b>",\n  "c": 2}')
    assert f"Type: {content_type or 'text'}\n" in text


PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


async def test_an_image_is_shown_and_a_file_is_named(folder: Folder) -> None:
    pages = {
        "/a.png": response(PNG, "image/png"),
        "/big.zip": response(b"PK\x03\x04\0" + b"\0" * 50_000, "x/y", Content_Length="50005"),
        "/big.png": response(PNG + b"\0" * 200_000, "image/png"),
    }
    async with web_server(pages) as web:
        output = await folder.call(WebFetch(SHORT), url=web.url("/a.png"))
        assert output.content[1]["source"]["data"] == base64.b64encode(PNG).decode()
        assert said(output).endswith(f"Type: PNG image, {len(PNG)} B")
        text = await folder.text(WebFetch(SHORT), url=web.url("/big.zip"))
        assert "Type: ZIP archive (or an office document, a wheel, a JAR), 48.8 KB\n" in text
        output = await folder.call(WebFetch(SHORT), url=web.url("/big.png"))
        assert len(output.content) == 1
        assert "too large to show" in said(output)


async def test_a_pdf_is_read_page_by_page(folder: Folder) -> None:
    scanned, broken = pdf(""), b"%PDF-1.7\n\0\0" + b"x" * 3000
    pages = {
        "/a.pdf": response(pdf("first", "second", "third"), "application/pdf"),
        "/scan.pdf": response(scanned, "application/octet-stream"),
        "/broken.pdf": response(broken, "application/pdf"),
        "/big.pdf": response(pdf("x") + b"\0" * 200_000, "application/pdf"),
        "/secret.pdf": response(pdf("x", change=lambda made: made.encrypt("word")), "x/y"),
    }
    async with web_server(pages) as web:
        fetch = WebFetch(SHORT)
        output = await folder.call(fetch, url=web.url("/a.pdf"))
        assert "Type: PDF document, " in said(output)
        assert "pages 1-3 of 3\n\n--- page 1 of 3 ---\nfirst\n" in said(output)
        assert output.source == web.url("/a.pdf")
        text = await folder.text(fetch, url=web.url("/a.pdf"), pages="2")
        assert "--- page 2 of 3 ---\nsecond\n" in text
        assert "first" not in text
        with pytest.raises(ToolError, match="past the end"):
            await folder.call(fetch, url=web.url("/a.pdf"), pages="9")
        assert "probably scanned" in await folder.text(fetch, url=web.url("/scan.pdf"))
        assert "it seems damaged" in await folder.text(fetch, url=web.url("/broken.pdf"))
        assert "protected with a password" in await folder.text(fetch, url=web.url("/secret.pdf"))
        assert "too large to read" in await folder.text(fetch, url=web.url("/big.pdf"))


async def test_a_huge_page_is_read_up_to_the_limit(folder: Folder) -> None:
    sent = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(response(b"", "text/plain", Content_Length="200000000"))
        while sent < 200_000_000:
            writer.write(b"a line of text\n" * 1000)
            await writer.drain()
            sent += 15_000

    text = await page(folder, endless)
    assert "Note: Only the first 97.7 KB of the page were read." in text
    assert len(text) < 101_000
    assert sent < 20_000_000


async def test_a_small_file_that_unpacks_to_a_huge_one(folder: Folder) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(b"a" * 1_000_000) for _ in range(100)) + packer.flush()
    text = await page(folder, response(bomb, "text/plain", Content_Encoding="gzip"))
    assert len(bomb) < 200_000
    assert "Only the first 97.7 KB" in text
    fine = response(gzip.compress("grün".encode()), "text/plain", Content_Encoding="gzip")
    assert (await page(folder, fine)).endswith("grün")
    broken = response(b"no gzip", "text/plain", Content_Encoding="gzip")
    with pytest.raises(ToolError, match="broke off or sent no valid HTTP"):
        await page(folder, broken)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("grün".encode(), "text/plain"),
        ("grün".encode("latin-1"), "text/plain"),
        ("grün".encode("latin-1"), "text/html; charset=utf-8"),
        ("grün".encode("latin-1"), "text/html; charset=rot13"),
        ("grün".encode("utf-16"), "text/plain"),
        ("<meta charset=latin-1>grün".encode("latin-1"), "text/html"),
        ("<meta charset=utf-16>grün".encode(), "text/html"),
        ("<meta http-equiv=x content='text/html; charset=cp1252'>grün".encode("cp1252"), ""),
        ('<?xml version="1.0" encoding="koi8-r"?><a>грn</a>'.encode("koi8-r"), "text/xml"),
    ],
)
async def test_charsets(folder: Folder, body: bytes, content_type: str) -> None:
    text = await page(folder, response(body, content_type))
    assert "grün" in text or "грn" in text


async def test_pages_with_nothing_to_read(folder: Folder) -> None:
    assert (await page(folder, response(""))).endswith("Note: The page is empty.")
    assert "is empty" in await page(folder, response("", "", "204 No Content"))
    script = "<body><div id=root></div><script>x</script>"
    assert "no text without JavaScript" in await page(folder, response(script))
    garbage = bytes(range(256)) * 100
    assert "binary data of an unknown kind, more than" in await page(folder, response(garbage))
    deep = response("<div>" * 5000 + "x")
    assert "Note: Parts of the page couldn't be converted" in await page(folder, deep)
    assert "\x1b" not in await page(folder, response("a\x1b[31mb", "text/plain"))


async def test_a_page_that_breaks_the_converter_is_shown_as_it_is(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class PanicError(BaseException):
        """What its native code raises is no Exception."""

    def panic(*_: object) -> None:
        raise PanicError

    monkeypatch.setattr("html_to_markdown.convert", panic)
    text = await page(folder, response("<p>hello"))
    assert text.endswith("Note: It couldn't be converted, so this is its HTML.\n\n<p>hello")
    assert "couldn't convert http://127.0.0.1" in caplog.text


@pytest.mark.parametrize("status", ["404 Not Found", "500 Internal Server Error", "429 "])
async def test_an_error_of_the_server_is_an_error_with_its_page(
    folder: Folder, status: str
) -> None:
    answer = response("<h1>Moved to /new</h1>", status=status)
    async with web_server({"/": answer}) as web:
        output = await folder.call(WebFetch(), url=web.url())
    assert output.is_error
    assert f"Status: {status.strip()}\n" in said(output)
    assert "# Moved to /new" in said(output)
    assert output.summary.startswith(status.strip())


async def test_redirects_within_a_site_are_followed(folder: Folder) -> None:
    allow(folder, lambda _url: UrlAccess("site", private=True))
    pages = {"/": redirect("/a/../b"), "/b": redirect("c?d=1"), "/c?d=1": response("here")}
    async with web_server(pages) as web:
        text = await folder.text(WebFetch(), url=web.url())
        assert text.startswith(f"URL: {web.url('/c?d=1')}\n")
    assert len(web.requests) == 3


async def test_a_redirect_loop_ends(folder: Folder) -> None:
    async with web_server({"/": redirect("/")}) as web:
        error = await folder.error(WebFetch(), url=web.url())
    assert "redirects more than 10 times" in error
    assert len(web.requests) == 11


async def test_redirects_that_are_not_followed(folder: Folder) -> None:
    def access(url: str) -> UrlAccess:
        answers = {"secret": "deny", "allowed": "allow", "question": "ask"}
        answer = next((answers[word] for word in answers if word in url), "site")
        return UrlAccess(cast("Any", answer), private="127.0.0.1" in url)

    allow(folder, access)
    locations = {
        "/other": ("https://example.org/x", "to https://example.org/x, which needs its own"),
        "/port": ("http://127.0.0.1:1/", "needs its own permission"),
        "/rule": ("/question", "needs its own permission. Fetch that address"),
        "/file": ("file:///etc/passwd", "isn't an http"),
        "/user": ("http://a:b@example.org/", "name or password"),
        "/denied": ("/secret", "which your permissions don't allow"),
        "/private": ("http://10.0.0.1/allowed", "leads to 10.0.0.1"),
        "/metadata": ("http://169.254.169.254/allowed", "leads to 169.254.169.254"),
        "/bad": ("http://[::1", "redirects to 'http://[::1'"),
    }
    async with web_server({path: redirect(to) for path, (to, _) in locations.items()}) as web:
        for path, (_, words) in locations.items():
            assert words in await folder.error(WebFetch(), url=web.url(path)), path
    assert len(web.requests) == len(locations)


async def test_an_encrypted_page_never_leads_to_one_that_is_not(
    folder: Folder, certificate: ssl.SSLContext
) -> None:
    async with web_server({"/": redirect("http://localhost/")}, certificate) as web:
        error = await folder.error(WebFetch(), url=web.url(host="localhost", scheme="https"))
    assert "isn't encrypted" in error


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's certificate for localhost, which the client trusts."""
    context = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    return context


def self_signed(folder: Path) -> ssl.SSLContext:
    key, cert = folder / "key.pem", folder / "cert.pem"
    names = "subjectAltName=DNS:localhost"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"]
    command += ["ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", names, "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context


async def test_certificates_are_checked_by_name(
    folder: Folder, certificate: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with web_server({"/": response("hello")}, certificate) as web:
        url = web.url(host="localhost", scheme="https")
        assert (await folder.text(WebFetch(), url=url)).endswith("hello")
        error = await folder.error(WebFetch(), url=web.url(scheme="https"))
        assert "no certificate that this machine trusts" in error
        assert "IP address mismatch" in error
        monkeypatch.delenv("SSL_CERT_FILE")
        error = await folder.error(WebFetch(), url=url)
        assert "no certificate that this machine trusts: self-signed certificate." in error
        assert "never skips this check" in error
        plain = await folder.error(WebFetch(), url=web.url())
        assert "broke off or sent no valid HTTP" in plain
    assert len(web.requests) == 1


async def test_a_server_without_TLS_at_an_https_address(folder: Folder) -> None:
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        error = await folder.error(WebFetch(), url=f"https://127.0.0.1:{port}/")
    assert error.startswith(f"No encrypted connection to 127.0.0.1:{port}: ")


def names(*answers: Sequence[str]) -> Resolve:
    """A resolver that gives these addresses, one list after the other."""
    left = list(answers)

    async def resolve(host: str, port: int) -> Sequence[str]:
        return left.pop(0)

    return resolve


async def test_a_name_that_leads_to_a_private_address_is_refused(folder: Folder) -> None:
    allow(folder, lambda _url: UrlAccess("allow"))
    async with web_server({"/": response("secret")}) as web:
        for ips in (
            ["127.0.0.1"],
            ["::ffff:127.0.0.1"],
            ["93.184.216.34", "10.1.2.3"],
            ["fe80::1%1"],
        ):
            tool = WebFetch(resolve=names(ips))
            error = await folder.error(tool, url=web.url(host="rebind.test"))
            assert "in the user's own network" in error
            assert f"web_fetch(http://rebind.test:{web.port}/*) private" in error
        error = await folder.error(WebFetch(), url=web.url())
        assert error.endswith(f"web_fetch({web.url()}*)")
    assert web.requests == []


async def test_the_connection_goes_to_the_address_that_was_checked(folder: Folder) -> None:
    tool = WebFetch(resolve=names(["127.0.0.1"]))
    async with web_server({"/": response("hello")}) as web:
        text = await folder.text(tool, url=web.url(host="Wiki.test"))
    assert text.endswith("hello")
    assert f"Host: wiki.test:{web.port}\r\n" in web.requests[0]


async def test_an_answer_that_changes_between_two_requests(folder: Folder) -> None:
    allow(folder, lambda url: UrlAccess("allow", private=url.endswith("/")))
    tool = WebFetch(resolve=names(["127.0.0.1"], ["127.0.0.1"]))
    async with web_server({"/": redirect("/secret")}) as web:
        error = await folder.error(tool, url=web.url(host="rebind.test"))
    assert "leads to 127.0.0.1" in error
    assert len(web.requests) == 1


async def test_hosts_that_do_not_answer(folder: Folder) -> None:
    async def unknown(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    error = await folder.error(WebFetch(resolve=unknown), url="https://no.such.host.invalid/")
    assert error.startswith("There is no host named no.such.host.invalid: Name or service")
    async with web_server({}) as web:
        pass
    error = await folder.error(WebFetch(SHORT), url=web.url())
    assert error == (
        f"127.0.0.1:{web.port} couldn't be reached: it refused the connection (port {web.port})."
    )


async def test_a_name_that_is_never_resolved(folder: Folder) -> None:
    async def hang(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        raise AssertionError

    limits = WebLimits(connect_s=0.1)
    error = await folder.error(WebFetch(limits, hang), url="https://example.org/")
    assert error == "example.org couldn't be reached within 0.1 s."


async def test_a_server_that_hangs_before_and_within_the_page(folder: Folder) -> None:
    forever = asyncio.Event()

    async def silent(writer: asyncio.StreamWriter) -> None:
        await forever.wait()

    async def stuck(writer: asyncio.StreamWriter) -> None:
        writer.write(response("half a", Content_Length="1000"))
        await writer.drain()
        await forever.wait()

    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(response(""))
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0)

    async def torn(writer: asyncio.StreamWriter) -> None:
        writer.write(response("half a", Content_Length="1000"))

    pages: dict[str, bytes | Handler] = {
        "/silent": silent,
        "/stuck": stuck,
        "/drip": drip,
        "/torn": torn,
        "/bad": b"220 smtp\r\n\r\n",
    }
    async with web_server(pages) as web:
        for path in ("/silent", "/stuck"):
            error = await folder.error(WebFetch(SHORT), url=web.url(path))
            assert error == f"127.0.0.1:{web.port} sent nothing for 0.2 s."
        slow = WebFetch(WebLimits(read_s=5, total_s=0.3))
        assert "took longer than 0.3 s" in await folder.error(slow, url=web.url("/drip"))
        for path in ("/torn", "/bad"):
            error = await folder.error(WebFetch(SHORT), url=web.url(path))
            assert "broke off or sent no valid HTTP" in error
        forever.set()


async def test_a_cancelled_fetch_closes_its_connection(folder: Folder) -> None:
    async def hang(writer: asyncio.StreamWriter) -> None:
        writer.write(response("half a page"))
        await writer.drain()
        began.set()
        while not writer.is_closing():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0)

    began = asyncio.Event()
    async with web_server({"/": hang}) as web:
        fetching = asyncio.create_task(folder.call(WebFetch(), url=web.url()))
        await began.wait()
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching
        await web.gone.wait()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("file:///etc/passwd", "isn't an http:// or https:// address. For files use read_file."),
        ("data:text/html,x", "isn't an http:// or https:// address"),
        ("example.org/a", "isn't an http:// or https:// address"),
        ("https://user:password@example.org/", "contains a name or password"),
        ("https://example.org/\n", ""),
        ("https://exa mple.org/", "has no valid host name"),
    ],
)
async def test_what_is_no_web_address_is_refused_before_anyone_is_asked(
    folder: Folder, url: str, words: str
) -> None:
    tool = WebFetch()
    params = tool.parse({"url": url})
    assert tool.label(params)
    if words:
        with pytest.raises(ToolError) as failed:
            tool.subject(params)
        assert words in str(failed.value)


async def test_a_proxy_of_the_environment_is_used(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(folder, lambda _url: UrlAccess("site"))
    async with web_server({"http://example.test/": response("by proxy")}) as web:
        monkeypatch.setenv("http_proxy", web.url())
        monkeypatch.delenv("no_proxy", raising=False)
        public = WebFetch(resolve=names(["93.184.216.34"]))
        assert (await folder.text(public, url="http://example.test/")).endswith("by proxy")
        private = WebFetch(resolve=names(["10.0.0.1"]))
        assert "leads to 10.0.0.1" in await folder.error(private, url="http://example.test/")
    assert len(web.requests) == 1
