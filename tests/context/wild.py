"""Messages for tests: short builders, and hypothesis strategies for anything a file may hold."""

from __future__ import annotations

from typing import Any, TypeAlias

from hypothesis import strategies as st

Json: TypeAlias = Any
Wild: TypeAlias = st.SearchStrategy[Any]


def user(*blocks: Json) -> dict[str, Any]:
    return {"role": "user", "content": [text(b) if isinstance(b, str) else b for b in blocks]}


def assistant(*blocks: Json) -> dict[str, Any]:
    return {"role": "assistant", "content": [text(b) if isinstance(b, str) else b for b in blocks]}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(id_: Json, name: Json = "read_file", input_: Json = None) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": {} if input_ is None else input_}


def result(id_: Json, said: Json = "ok", **more: Json) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": said, **more}


def thinking(signature: str = "sig") -> dict[str, Any]:
    return {"type": "thinking", "thinking": "hm", "signature": signature}


_words: Wild = st.text(max_size=8) | st.sampled_from(
    ["", " ", "\n\t", "a ", "\ud800", "x\udfff", "Session was interrupted", "ü", "\0", "{}", "null"]
)
_scalars: Wild = st.none() | st.booleans() | st.integers() | st.floats() | _words
_json: Wild = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3),
    max_leaves=6,
)
_ids: Wild = (
    st.sampled_from(["a", "b", "c", "bad id!", "", "a_2", "srvtoolu_1", "srvtoolu_2"]) | st.none()
)
_types: Wild = st.sampled_from(
    [
        "text", "image", "document", "search_result", "container_upload", "tool_use",
        "tool_result", "thinking", "redacted_thinking", "server_tool_use",
        "web_search_tool_result", "advisor_tool_result", "video", "", None, 3, ["text"],
    ]
)  # fmt: skip


def _image(media_type: str, data: str) -> dict[str, str]:
    return {"type": "base64", "media_type": media_type, "data": data}


_media: Wild = st.sampled_from(
    [
        _image("image/png", "iVBORw0KGgo="),  # cut off in its header
        _image("image/png", "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAA"),  # a GIF of 1 x 1
        _image("image/gif", "R0lGODlh//8BAIAAAAAAAP///yH5BAEAAAAA"),  # 65535 pixels wide
        {"type": "url", "url": "https://example.com/a.png", "detail": "high"},
        {"type": "file", "file_id": ""},
        {"type": "text", "media_type": "text/plain", "data": "page"},
        None,
    ]
)


def _some_blocks() -> Wild:
    return st.lists(_blocks, max_size=3)


_fields: Wild = st.fixed_dictionaries(
    {"type": _types},
    optional={
        "text": _words | _json,
        "id": _ids | _json,
        "tool_use_id": _ids | _json,
        "name": st.sampled_from(["read_file", "bad name", "", "n" * 201]) | _json,
        "input": st.dictionaries(_words, _json, max_size=2) | _json,
        "content": st.deferred(_some_blocks) | _json,
        "is_error": st.booleans() | _json,
        "thinking": _words | _json,
        "signature": _words | _json,
        "data": _words,
        "source": _media | _json,
        "title": _words,
        "cache_control": st.just({"type": "ephemeral"}) | _json,
        "citations": _json,
        "caller": _json,
        "partialJson": _words,
    },
)
_good: Wild = st.one_of(
    st.builds(text, _words),
    st.builds(call, _ids),
    st.builds(result, _ids, _words),
    st.just(thinking()),
    st.just({"type": "redacted_thinking", "data": "x"}),
    st.fixed_dictionaries({"type": st.just("image"), "source": _media}),
)
_blocks: Wild = _good | _fields | _json
messages: Wild = st.lists(
    st.one_of(
        st.builds(user, _blocks, _blocks),
        st.builds(assistant, _blocks, _blocks),
        st.builds(assistant, _good, _good, _good),
        st.fixed_dictionaries(
            {
                "role": st.sampled_from(["user", "assistant", "system", "tool"]) | _json,
                "content": st.lists(_blocks, max_size=4) | _words | _json,
            },
            optional={"model": st.just("<synthetic>"), "id": _words, "isApiErrorMessage": _json},
        ),
        _json,
    ),
    max_size=7,
)
"""Lists of anything, most of it nearly messages."""
