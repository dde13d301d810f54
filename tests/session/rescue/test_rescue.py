"""Other agents' sessions, damaged at random and mended in their own format."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tui.session.rescue import refusals, rescue

DAMAGED = 300
OPENED = 0.95


def _claude_code() -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for n in range(12):
        call = {"type": "tool_use", "id": f"toolu_{n}", "name": "Bash", "input": {"command": "ls"}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": "a\nb"}
        spoken: list[tuple[str, list[dict[str, Any]]]] = [
            ("user", [{"type": "text", "text": f"question {n} é"}]),
            ("assistant", [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}, call]),
            ("user", [result]),
            ("assistant", [{"type": "text", "text": f"answer {n}"}]),
        ]
        for role, content in spoken:
            out.append(
                {
                    "parentUuid": out[-1]["uuid"] if out else None, "isSidechain": False,
                    "sessionId": "s-1", "uuid": f"u-{len(out)}", "type": role, "extra": [1.50],
                    "message": {"role": role, "content": content},
                }
            )  # fmt: skip
    return out


def _pi() -> list[dict[str, Any]]:
    time = "2026-01-01T00:00:00.000Z"
    out: list[dict[str, Any]] = [
        {"type": "session", "version": 3, "id": "s-1", "timestamp": time, "cwd": "/w"}
    ]
    for n in range(30):
        role = ("user", "assistant")[n % 2]
        message = {"role": role, "content": [{"type": "text", "text": f"text {n} é"}]}
        parent = f"e{n - 1}" if n else None
        out.append(
            {"type": "message", "id": f"e{n}", "parentId": parent, "timestamp": time,
             "message": message}
        )  # fmt: skip
    return out


def _codex() -> list[dict[str, Any]]:
    time = "2026-01-01T00:00:00.000Z"
    meta = {"id": "0190a0a0-0000-7000-8000-000000000000", "timestamp": time, "cwd": "/w"}
    out: list[dict[str, Any]] = [{"timestamp": time, "type": "session_meta", "payload": meta}]
    for n in range(30):
        role, kind = (("user", "input_text"), ("assistant", "output_text"))[n % 2]
        content = [{"type": kind, "text": f"text {n} é"}]
        payload = {"type": "message", "role": role, "content": content}
        out.append({"timestamp": time, "type": "response_item", "payload": payload})
    return out


SAMPLES = {"claude_code": _claude_code, "pi": _pi, "codex": _codex}


def _text(values: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(v, ensure_ascii=False) + "\n" for v in values).encode()


def _damaged(  # noqa: C901 - a case for each damage
    values: list[dict[str, Any]], dice: random.Random
) -> bytes:
    """One to four damages of records, then one to four of bytes."""
    for _ in range(dice.randint(1, 4)):
        place = dice.randrange(len(values))
        value = values[place]
        match dice.randrange(6):
            case 0:
                del values[place]
            case 1:
                values.insert(place, {**value})
            case 2:
                values.insert(dice.randrange(len(values)), values.pop(place))
            case 3:
                key = "parentUuid" if "parentUuid" in value else "parentId"
                if key in value:
                    value[key] = dice.choice(["gone", value.get("uuid", value.get("id")), 7])
            case 4:
                value.pop("sessionId", None)
            case _:
                if isinstance(message := value.get("message"), dict):
                    message["content"] = [{"type": "text", "text": ""}]
    data = _text(values)
    for _ in range(dice.randint(1, 4)):
        place = dice.randrange(len(data))
        match dice.randrange(6):
            case 0:
                data = data[: max(place, len(data) // 2)]
            case 1:
                data = data[:place] + b"\0" * dice.randint(1, 600) + data[place:]
            case 2:
                data = b"\xef\xbb\xbf" + data
            case 3:
                data = data[:place] + b"\xff\xfe" + data[place:]
            case 4:
                data = data.replace(b"\n", b"\r\n")
            case _:
                data = data.replace(b"\n", b"", 1)
    return data


@pytest.mark.parametrize("name", SAMPLES)
def test_damaged_sessions_open_by_the_rules_again(name: str) -> None:
    opened = 0
    for seed in range(DAMAGED):
        data = _damaged(SAMPLES[name](), random.Random(seed))
        mended = rescue(data)
        if mended is None or mended.format != name:
            continue
        opened += not refusals(mended.format, mended.data)
        again = rescue(mended.data)
        assert again is not None
        assert (again.repairs, again.data) == ((), mended.data), seed
    assert opened >= OPENED * DAMAGED, opened


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sound_session_is_unchanged(name: str) -> None:
    data = _text(SAMPLES[name]())
    mended = rescue(data)
    assert mended is not None
    assert (mended.data, mended.repairs, mended.set_aside) == (data, (), b"")


def test_what_is_broken_is_set_aside_and_the_rest_stays_as_it_was() -> None:
    lines = _text(_pi()).splitlines(keepends=True)
    broken = b'{"type":"message","id":"x\n'
    mended = rescue(b"".join([*lines, broken]))
    assert mended is not None
    assert mended.data == b"".join(lines)
    assert mended.set_aside == broken
