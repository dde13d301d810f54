"""A session whose last call lacks a field, or has something odd in it, goes on with a prompt: the
server refuses nothing, whoever wrote the session. `-m slow` tries every pair of odd fields."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import combinations, product
from pathlib import Path
from typing import Any, Final

import pytest

from tests.agent.test_binding import SONNET, done
from tests.support.agents import make_agent
from tests.support.foreign import ClaudeCode, Codex, Pi, pi_call, tool_use
from tests.support.provider import call
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.app.session_repository import SessionRepository
from tui.core.clock import SystemClock
from tui.core.paths import folders
from tui.provider.anthropic import AnthropicProvider
from tui.session.copies import write_session
from tui.session.records import Header, Record
from tui.session.session import Session

ID: Final = "0123456789ab"
TIME: Final = "2026-11-21T09:00:00.000Z"
MISSING: Final = object()
_VALUES: Final[tuple[Any, ...]] = (
    MISSING, None, True, 0, 1.5, "", " ", "not an id!", "x" * 300, "\ud800",
    [], ["a"], {}, {"a": 1},
)  # fmt: skip


def _odd(block: Json, fields: dict[str, Any]) -> Json:
    made = {**block, **fields}
    return {name: value for name, value in made.items() if value is not MISSING}


def _ours(root: Path, fields: dict[str, Any], beside: bool) -> Path:
    odd = _odd(call("run_command", "toolu_odd", command="ls"), fields)
    calls = [call("read_file", "toolu_good", path="a.txt"), odd] if beside else [odd]
    prompt = {"content": [{"type": "text", "text": "go"}], "text": "go"}
    records = [
        Record("user", f"{1:020x}", None, TIME, prompt),
        Record("assistant", f"{2:020x}", f"{1:020x}", TIME, {"content": calls, "model": SONNET.id}),
    ]
    path = root / f"x-{ID}.jsonl"
    write_session(path, Header(ID, TIME, str(root), "holdfast 1"), records)
    return path


def _claude_code(root: Path, fields: dict[str, Any], beside: bool) -> Path:
    made = ClaudeCode()
    made.user("go")
    if beside:
        made.piece("m", tool_use("toolu_good", "Read", file_path="a.txt"))
    made.piece("m", _odd(tool_use("toolu_odd", command="ls"), fields))
    return _foreign(root, made.records)


def _pi(root: Path, fields: dict[str, Any], beside: bool) -> Path:
    made = Pi()
    made.user("go")
    names = {"input": "arguments"}
    odd = _odd(pi_call("toolu_odd", command="ls"), {names.get(n, n): v for n, v in fields.items()})
    made.answer(*([pi_call("toolu_good", command="ls")] if beside else []), odd, stop="toolUse")
    return _foreign(root, made.records)


def _codex(root: Path, fields: dict[str, Any], beside: bool) -> Path:
    made = Codex()
    made.add("session_meta", id="x", timestamp="2026-02-10T22:00:00.000Z", cwd="/x")
    made.said("user", "go")
    if beside:
        made.call("call_good")
    made.call("call_odd")
    names = {"input": "arguments", "id": "call_id"}
    renamed = {names.get(name, name): value for name, value in fields.items()}
    made.records[-1]["payload"] = _odd(made.records[-1]["payload"], renamed)
    return _foreign(root, made.records)


def _foreign(root: Path, records: list[Json]) -> Path:
    path = root / "foreign.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return SessionRepository(folders(), root, SystemClock(), root).take_over(path)


MAKERS: Final[dict[str, Callable[[Path, dict[str, Any], bool], Path]]] = {
    "ours": _ours,
    "claude_code": _claude_code,
    "pi": _pi,
    "codex": _codex,
}


async def _goes_on(root: Path, path: Path) -> None:
    """The person opens the session and sends a prompt; then another, as nothing may stay stuck."""
    async with LoopbackServer({"turns": [{"text": "one"}, {"text": "two"}]}) as server:
        provider = AnthropicProvider(api_key="k", clock=SystemClock(), base_url=server.url)
        session = Session.open(path, clock=SystemClock())
        agent = make_agent(root, provider, model=SONNET, session=session)
        try:
            await agent.start()
            await done(agent, "and on")
            await done(agent, "and on")
            assert len(server.posts) == 2
        finally:
            await agent.close()


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("name", MAKERS)
async def test_one_odd_field_of_the_last_call(
    own_folders: Path, tmp_path: Path, name: str, beside: bool
) -> None:
    wrong: list[str] = []
    for number, (field, value) in enumerate(product(("id", "name", "input", "type"), _VALUES)):
        wrong += await _tried(tmp_path / str(number), name, {field: value}, beside)
    assert wrong == []


def _pairs() -> Iterator[dict[str, Any]]:
    for one, other in combinations(("id", "name", "input"), 2):
        yield from ({one: a, other: b} for a, b in product(_VALUES, _VALUES))


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
async def test_two_odd_fields_of_the_last_call(
    own_folders: Path, tmp_path: Path, name: str
) -> None:
    wrong: list[str] = []
    for number, fields in enumerate(_pairs()):
        wrong += await _tried(tmp_path / str(number), name, fields, beside=True)
    assert wrong == []


async def _tried(root: Path, name: str, fields: dict[str, Any], beside: bool) -> list[str]:
    root.mkdir()
    try:
        await _goes_on(root, MAKERS[name](root, fields, beside))
    except Exception as error:  # noqa: BLE001 - any mistake is what is looked for
        return [f"{fields}: {error!r:.300}"]
    return []
