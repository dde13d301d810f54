"""Records of sessions for tests: short builders, and a strategy for whole valid sessions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from hypothesis import strategies as st

from tests.context.wild import Json, call, text, thinking
from tui.session.records import Record

MODEL = "claude-sonnet-5-5"

Told: TypeAlias = tuple[str, dict[str, Any]]


def records(*told: Told) -> list[Record]:
    """A branch of records, their ids r0, r1, …"""
    return extended([], told)


def extended(branch: Iterable[Record], told: Iterable[Told]) -> list[Record]:
    """A branch and what was told after it; the records of the branch are the same objects."""
    made = list(branch)
    for kind, data in told:
        parent = made[-1].id if made else None
        made.append(Record(kind, f"r{len(made)}", parent, "2026-11-21T09:00:00.000Z", data))
    return made


def prompt(words: str) -> Told:
    return "user", {"content": [text(words)], "text": words}


def answer(*blocks: Json, model: str = MODEL) -> Told:
    content = [text(block) if isinstance(block, str) else block for block in blocks]
    return "assistant", {"content": content, "model": model, "stop_reason": "end_turn"}


def output(id_: str, words: str, *, name: str = "run_command", **more: Json) -> Told:
    data = {"call_id": id_, "name": name, "content": [text(words)], "is_error": False}
    return "tool_result", data | more


def overlay(target: str, view: str, **more: Json) -> Told:
    return "overlay", {"target": target, "view": view, "by": "person", "reason": ""} | more


def pin(target: str, *, pinned: bool = True) -> Told:
    return "pin", {"target": target, "pinned": pinned}


def _image() -> dict[str, Any]:
    source = {
        "type": "base64",
        "media_type": "image/gif",
        "data": "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAA",
    }
    return {"type": "image", "source": source}


_words = st.sampled_from(["go", "and 😀 on", "x" * 3000, "line\n" * 40])
_outputs = st.sampled_from(["ok", "y" * 900, "z\n" * 2500, "ü" * 30_000])


@st.composite
def _round(draw: st.DrawFn, first: int) -> list[Told]:
    """An answer with calls, and a result for each."""
    ids = [f"t{first + step}" for step in range(draw(st.integers(1, 3)))]
    before = draw(st.sampled_from([[], [thinking()], ["look"], [thinking(), "look"]]))
    said: list[Told] = [answer(*before, *map(call, ids))]
    for id_ in draw(st.permutations(ids)):
        failed = draw(st.booleans())
        told = output(id_, draw(_outputs), is_error=failed)
        if draw(st.booleans()) and not failed:
            told[1]["content"].append(_image())
        said.append(told)
    return said + ([prompt("meanwhile")] if draw(st.booleans()) else [])


@st.composite
def valid_sessions(draw: st.DrawFn) -> list[Told]:
    """Sessions as the program writes them: nothing in them needs repair."""
    said: list[Told] = []
    for turn in range(draw(st.integers(1, 4))):
        said.append(prompt(f"{turn} {draw(_words)}"))
        for step in range(draw(st.integers(0, 2))):
            said += draw(_round(10 * turn + 3 * step))
        if draw(st.booleans()):
            said.append(("interrupt", {"reason": "cancelled", "text": draw(_words)}))
        else:
            said.append(answer(thinking(), draw(_words)))
    return said
