"""The SDK with its names resolved late: fewer modules, and what a request uses is all there."""

from __future__ import annotations

import subprocess
import sys

from tui.provider.anthropic.client_factory import reexports

_LOAD = """
import sys
from tui.provider.anthropic.client_factory import load_client
import asyncio
client = asyncio.run(load_client("k", "http://127.0.0.1:9"))[True]
print(sum(name.startswith("anthropic.") for name in sys.modules))
import anthropic
import httpx2
from anthropic.types import Message
from anthropic._client import AsyncAnthropic
assert type(client) is anthropic.AsyncAnthropic is AsyncAnthropic
assert issubclass(anthropic.RateLimitError, anthropic.APIStatusError)
assert anthropic.types.Message is Message
try:
    anthropic.nothing_of_the_kind
except AttributeError as error:
    assert "nothing_of_the_kind" in str(error)
else:
    raise AssertionError
body = {"error": {"details": {"error_code": "file_expired"}}}
answer = httpx2.Response(404, json=body, request=httpx2.Request("GET", "http://127.0.0.1:9"))
assert "anthropic.types.file_expired_error" not in sys.modules
error = client._make_status_error_from_response(answer)
assert type(error).__name__ == "FileExpiredError" and isinstance(error, anthropic.NotFoundError)
assert anthropic._error_classes.make_status_error.__module__ == "anthropic._error_classes"
"""


def test_a_client_needs_a_part_of_the_sdk_and_works_like_the_whole() -> None:
    done = subprocess.run([sys.executable, "-c", _LOAD], capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) < 100


def test_names_of_a_package_that_only_reexports() -> None:
    source = b'"""Doc."""\nfrom __future__ import annotations\nfrom .a.b import C as C, d\n'
    source += b"from . import e\n__all__ = ['C']\n"
    assert reexports(source) == {"C": (".a.b", "C"), "d": (".a.b", "d"), "e": (".e", "")}


def test_a_package_that_does_more_is_left_as_it_is() -> None:
    assert reexports(b"from .a import B\nB.ready = True\n") is None
    assert reexports(b"from .a import *\n") is None
    assert reexports(b"import os\n") is None
    assert reexports(b"from .model import model\n") is None, "the submodule has the same name"


def test_the_root_package_may_do_more() -> None:
    assert reexports(b"from .a import B\nsetup()\n", root=True) == {"B": (".a", "B")}
