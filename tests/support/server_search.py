"""The search of the web that the server does by itself within an answer.

The facts are those of API.md, part 8: which fields the tool has, that its two lists of domains
exclude each other, that what it found is sent back as it came.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator
from typing import Any, Final, TypeAlias

from tests.support.server_errors import EXTRA, Rejection, invalid
from tui.core.messages import blocks_of

Json: TypeAlias = dict[str, Any]

_FIELDS: Final = {
    "web_search_20250305": {
        "type", "name", "max_uses", "allowed_domains", "blocked_domains", "user_location",
        "cache_control",
    },
}  # fmt: skip
_LATER: Final = ("web_search_20260209", "web_search_20260318")
_DOMAIN: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+(/\S*)?")
_RESULT: Final = "web_search_tool_result"


def call_block(id_: str, query: str) -> Json:
    """The server's own call."""
    return {"type": "server_tool_use", "id": id_, "name": "web_search", "input": {"query": query}}


def result_block(id_: str, found: list[Json] | str) -> Json:
    """Its result: pages of `url` and `title`, or the code of an error."""
    if isinstance(found, str):
        error = {"type": "web_search_tool_result_error", "error_code": found}
        return {"type": _RESULT, "tool_use_id": id_, "content": error}
    pages = [
        {
            "type": "web_search_result",
            "url": page["url"],
            "title": page["title"],
            "encrypted_content": sealed(page["url"]),
            "page_age": page.get("age"),
        }
        for page in found
    ]
    return {"type": _RESULT, "tool_use_id": id_, "content": pages}


def citation(page: Json) -> Json:
    """What a text cites of a page."""
    return {
        "type": "web_search_result_location",
        "url": page["url"],
        "title": page["title"],
        "encrypted_index": sealed(page["url"]),
        "cited_text": page.get("text", page["title"]),
    }


def sealed(url: str) -> str:
    """What stands for the content of a page, which only this server can read."""
    return "sealed_" + hashlib.sha256(url.encode()).hexdigest()


def search_refusals(body: Json, lacks: Collection[str]) -> Iterator[Rejection]:
    """What is wrong with the search that a request offers, and with what it sends back of one."""
    for number, tool in enumerate(body.get("tools", [])):
        kind, where = str(tool.get("type")), f"tools.{number}"
        if not kind.startswith("web_search"):
            continue
        if "web_search" in lacks:
            yield invalid("Web search is not enabled for this organization.")
        if kind not in {*_FIELDS, *_LATER}:
            yield invalid(f"{where}.type: Input tag '{kind}' is not expected")
            continue
        if tool.get("name") != "web_search":
            yield invalid(f"{where}.{kind}.name: Input should be 'web_search'")
        for name in sorted(tool.keys() - _FIELDS.get(kind, tool.keys())):
            yield invalid(f"{where}.{kind}.{name}: {EXTRA}")
        lists = [name for name in ("allowed_domains", "blocked_domains") if name in tool]
        if len(lists) > 1:
            yield invalid(f"{where}.{kind}: only one of {' and '.join(lists)} can be given")
        for name in lists:
            if wrong := [one for one in tool[name] if not _DOMAIN.fullmatch(str(one))]:
                yield invalid(f"{where}.{kind}.{name}: {wrong[0]!r} is not a domain")
    yield from _changed(body)


def _changed(body: Json) -> Iterator[Rejection]:
    for number, message in enumerate(body["messages"]):
        for index, block in enumerate(blocks_of(message["content"])):
            at = f"messages.{number}.content.{index}"
            if block.get("type") == _RESULT and isinstance(block.get("content"), list):
                pages: list[Json] = block["content"]
                if any(page.get("encrypted_content") != sealed(page["url"]) for page in pages):
                    yield invalid(f"{at}: Invalid `encrypted_content` in search result block")
            if block.get("type") == "text":
                cited: list[Json] = block.get("citations") or []
                if any(one.get("encrypted_index") != sealed(one["url"]) for one in cited):
                    yield invalid(f"{at}: Invalid `encrypted_index` in citation")
