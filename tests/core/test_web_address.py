"""Web addresses: one spelling for each, and which of them are private."""

from __future__ import annotations

import pytest

from tui.core.errors import ToolError
from tui.core.web_address import WebAddress, is_private, server_address


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("HTTPS://Docs.Python.ORG:443/a/../b/./c?x=1 2#f", "https://docs.python.org/b/c?x=1%202"),
        (" https://example.org ", "https://example.org/"),
        ("http://example.org:8080/%7Euser/%2e%2e/p q", "http://example.org:8080/p%20q"),
        ("https://example.org/%70rivate", "https://example.org/private"),
        ("http://müller.de/ä?ö=ü", "http://xn--mller-kva.de/%C3%A4?%C3%B6=%C3%BC"),
        ("http://example.org./", "http://example.org/"),
        ("http://example.org/100%&a%2fb", "http://example.org/100%25&a%2Fb"),
        ("http://example.org/a/b/..", "http://example.org/a/"),
        ("http://example.org//a//b", "http://example.org//a//b"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://0x7f.1:80/x", "http://127.0.0.1/x"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://[0:0:0:0:0:0:0:1]:3000/", "http://[::1]:3000/"),
    ],
)
def test_an_address_has_one_spelling(text: str, spelling: str) -> None:
    assert str(WebAddress.parse(text)) == spelling
    assert str(WebAddress.parse(spelling)) == spelling


@pytest.mark.parametrize(
    "text",
    [
        *("", "//x.org/", "x.org", "javascript:alert(1)", "http:///a", "http://x.org:99999/"),
        *("http://x.org:0/", "http://a b.org/", "http://[::1", "http://[fe80::1%25eth0]/"),
        *("http://.../", "http://x.org/\u200b", "http://x.org/a\nb", "http://x.org/" + "a" * 9000),
        *(
            "https://u:p@x.org/",
            "https://docs.python.org\\@evil.com/",
            "http://\u2603\u200d.ß\u200d/",
        ),
    ],
)
def test_what_can_be_read_in_two_ways_is_no_address(text: str) -> None:
    with pytest.raises(ToolError):
        WebAddress.parse(text)


@pytest.mark.parametrize(
    ("ip", "private"),
    [
        *((ip, False) for ip in ("8.8.8.8", "::ffff:8.8.8.8", "64:ff9b::808:808", "2606:4700::1")),
        *((ip, True) for ip in ("127.0.0.1", "10.1.1.1", "172.16.0.1", "192.168.1.1", "0.0.0.0")),
        *((ip, True) for ip in ("169.254.169.254", "100.64.1.1", "224.0.1.1", "240.0.0.1")),
        *((ip, True) for ip in ("::1", "::", "fe80::1", "fd00::1", "ff02::1", "fec0::1")),
        *((ip, True) for ip in ("::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::7f00:1")),
    ],
)
def test_private_addresses(ip: str, private: bool) -> None:
    assert is_private(ip) is private
    host = f"[{ip}]" if ":" in ip else ip
    assert WebAddress.parse(f"http://{host}/").is_local is private


def test_names_of_the_own_machine() -> None:
    assert WebAddress.parse("http://localhost:3000/").is_local
    assert WebAddress.parse("http://app.localhost/").is_local
    assert not WebAddress.parse("http://localhost.example.org/").is_local


@pytest.mark.parametrize(
    ("typed", "taken"),
    [
        ("localhost:4000", "http://localhost:4000"),
        (" 127.0.0.1:11434/ ", "http://127.0.0.1:11434"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("gateway.example/api", "https://gateway.example/api"),
        ("http://gateway.example/", "http://gateway.example"),
        ("sk-gateway.example.org", "https://sk-gateway.example.org"),
    ],
)
def test_a_servers_address_needs_no_scheme(typed: str, taken: str) -> None:
    assert server_address(typed) == taken


@pytest.mark.parametrize(
    "typed",
    [
        *("", "two words", "ftp://host", "[::1", "sk-ant-key@host"),
        *("http://", "https://user:password@host", "http://host:port", "https://a b"),
        "sk-ant-api03-abcdefghijklmnop",
    ],
)
def test_what_cannot_be_a_servers_address(typed: str) -> None:
    with pytest.raises(ToolError):
        server_address(typed)
