"""Decision 31: with `redact = "record"` no secret gets into the record, nor to the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.clock import FakeClock
from tui.core.paths import folders
from tui.core.redaction import MASK
from tui.session.drafts import UnsentWork
from tui.session.reader import read
from tui.session.records import redacted
from tui.session.session import Session

KEY = "sk-ant-api03-" + "a1B2c3D4e5" * 3


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


async def test_secrets_are_masked_in_memory_and_on_disk(tmp_path: Path, clock: FakeClock) -> None:
    home = folders({"HOLDFAST_HOME": str(tmp_path)})
    session = Session.create(tmp_path, folders=home, clock=clock)
    session.redact = True
    session.draft(UnsentWork(f"the key is {KEY}"))
    session.append("user", content=[text(f"use {KEY}")], text=f"use {KEY}")
    call = {"type": "tool_use", "id": "t1", "name": "run_command", "input": {"command": KEY}}
    answer = session.append("assistant", content=[text("so"), call], model="m")
    session.append("tool_result", call_id="t1", content=[text(f"out {KEY}")], is_error=False)
    await session.close()
    assert session.path
    assert KEY.encode() not in session.path.read_bytes()
    assert answer.data["content"][1]["input"] == {"command": MASK}
    assert [r.data for r in read(session.path).branch] == [r.data for r in session.records]
    assert str([r.data for r in session.records]).count(MASK) == 4
    assert MASK in session.title


async def test_without_it_the_record_is_exact(tmp_path: Path, clock: FakeClock) -> None:
    session = Session.in_memory(tmp_path, clock=clock)
    assert session.append("user", text=KEY).data == {"text": KEY}


def test_thinking_that_held_a_secret_is_left_out_for_its_signature_would_not_fit() -> None:
    told = {"type": "thinking", "thinking": f"the key {KEY}", "signature": "sig"}
    other = {"type": "thinking", "thinking": "nothing of the kind", "signature": "sig"}
    data = redacted({"content": [told, other, text(KEY)]})
    assert data["content"] == [other, text(MASK)]


def test_a_servers_own_call_is_left_out_where_it_would_not_come_back_as_it_was() -> None:
    call: dict[str, Any] = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {"query": f"what is {KEY}"},
    }
    found: dict[str, Any] = {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [],
    }
    other = call | {"id": "srvtoolu_2", "input": {"query": "weather"}}
    data = redacted({"content": [call, found, other, text("so")]})
    assert data["content"] == [other, text("so")]
