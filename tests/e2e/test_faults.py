"""The faults over real HTTP, with the real SDK, against a server that checks every request."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Serve
from tests.support.agents import Yes, make_agent
from tests.support.faults import (
    COMMAND,
    END,
    PROMPT,
    TEXT,
    Cell,
    Place,
    WithSummaries,
    check_cell,
)
from tests.support.program import Program, of_type
from tests.support.server import LoopbackServer
from tests.support.server_script import Json
from tui.agent.prompts import parse
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.config import Retry
from tui.core.messages import text_block
from tui.core.paths import folders
from tui.provider.anthropic import AnthropicProvider
from tui.provider.base import ModelInfo
from tui.provider.retry import RetryControl, RetryProvider
from tui.session.session import Session

MODEL = "claude-sonnet-5-5"
KEY = "sk-ant-test-0123456789"
OVERLOADED = {"type": "overloaded_error", "message": "Overloaded"}

ROWS: tuple[tuple[str, Place, Json, str], ...] = (
    ("429", "before the first byte", {"status": 429, "retry_after": 0}, "done"),
    ("529", "before the first byte", {"status": 529}, "done"),
    ("html", "before the first byte", {"status": 502, "html": "Bad gateway"}, "done"),
    ("overflow", "before the first byte", {"overflow": "until_smaller"}, "done"),
    ("413", "before the first byte", {"status": 413}, "done"),
    ("400", "before the first byte", {"rejected": "B07"}, "invalid_request"),
    ("auth", "before the first byte", {"status": 401}, "auth"),
    ("529", "mid text", {"error_event": OVERLOADED, "after": 5}, "done"),
    ("cut", "mid text", {"cut_after": 5}, "done"),
    ("eof", "mid text", {"eof_after": 5}, "done"),
    ("stall", "mid text", {"stall_s": 60, "after": 5}, "done"),
    ("badjson", "mid text", {"bad_json": True, "after": 5}, "done"),
    ("529", "mid tool input", {"error_event": OVERLOADED, "after": 5}, "done"),
    ("cut", "mid tool input", {"cut_after": 5}, "done"),
    ("eof", "mid tool input", {"eof_after": 5}, "done"),
    ("stall", "mid tool input", {"stall_s": 60, "after": 5}, "done"),
    ("529", "after a tool", {"status": 529}, "done"),
    ("cut", "after a tool", {"cut_after": 4}, "done"),
    ("overflow", "after a tool", {"overflow": "until_smaller"}, "done"),
    ("400", "after a tool", {"rejected": "B07"}, "invalid_request"),
    ("auth", "after a tool", {"status": 401}, "auth"),
)

LONG = "We talked about the garden, and about what is to be planted where. " * 40


def turns_of(place: Place, fault: Json) -> list[Json]:
    call = {"name": "run_command", "input": {"command": COMMAND}}
    first: Json = {"text": TEXT, "tools": [call], "piece": 6}
    if place == "mid tool input":
        del first["text"]
    last: Json = {"text": END}
    (last if place == "after a tool" else first)["faults"] = [fault]
    return [first, last]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
async def test_R18_a_fault_over_http_ends_well_or_with_its_class(
    row: tuple[str, Place, Json, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, place, fault, ends = row
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    root = tmp_path / "work"
    root.mkdir()
    clock, control = SystemClock(), RetryControl()
    session = Session.create(root, folders=folders(), clock=clock)
    for number in range(6):
        said = f"{number}: {LONG}"
        session.append("user", content=[text_block(said)], text=said)
        session.append("assistant", content=[text_block(LONG)], model=MODEL)
    async with LoopbackServer({"turns": turns_of(place, fault)}) as server:
        adapter = AnthropicProvider(
            api_key=KEY, clock=clock, base_url=server.url, stall_timeout_s=0.2
        )
        retry = Retry(initial_delay_ms=1, max_delay_ms=100)
        provider = RetryProvider(WithSummaries(adapter), retry=retry, clock=clock, control=control)
        agent = make_agent(
            root,
            provider,
            session=session,
            approver=Yes(),
            control=control,
            model=ModelInfo(MODEL, 200_000, 8192, "catalogue"),
        )
        seen = [event async for event in agent.send(parse(PROMPT))]
        await agent.close()
    assert session.path is not None
    check_cell(Cell(name, place, ends), session.path, root, seen)
    if name in {"overflow", "413"}:
        assert any(isinstance(event, facts.RecoveryStep) for event in seen)


Ask = Callable[..., Program]


@pytest.fixture
def asking(work: Path, env: dict[str, str], config: Callable[[str], Path]) -> Ask:
    def at(server: LoopbackServer, settings: str) -> Program:
        config(settings)
        url = server.url
        return Program(work, {**env, "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": url})

    return at


def overloaded(times: int) -> list[dict[str, Any]]:
    return [{"status": 529}] * times


def test_A25_the_program_goes_on_with_the_fallback_model(serve: Serve, asking: Ask) -> None:
    server = serve({"text": "Here I am.", "faults": overloaded(2)})
    holdfast = asking(server, "[retry]\ninitial_delay_ms = 1\nmax_attempts = 1\n")
    fallback = "claude-haiku-5-5"
    done = holdfast("-p", "hello", "--fallback-model", fallback, "--output-format", "stream-json")
    (switch,) = of_type(done.events, "model_switched")
    assert (switch["from"], switch["to"]) == (MODEL, fallback)
    assert f"Switched to {fallback}. Back to {MODEL} " in done.stderr
    assert [post.body["model"] for post in server.posts] == [MODEL, MODEL, fallback]
    assert of_type(done.events, "turn_finished")[0]["outcome"] == "done"
    assert [e["attempt"] for e in of_type(done.events, "retry_scheduled")] == [1]


def test_R15_the_program_waits_for_a_limit_and_goes_on(serve: Serve, asking: Ask) -> None:
    server = serve({"text": "Here I am.", "faults": [{"status": 429, "retry_after": 1}]})
    holdfast = asking(server, "[retry]\ninitial_delay_ms = 1\nmax_delay_ms = 500\n")
    done = holdfast("-p", "hello", "--output-format", "stream-json")
    (parked,) = of_type(done.events, "parked")
    assert {"until", "reason"} <= set(parked)
    assert "It continues by itself." in done.stderr
    assert "Waiting for the server: 1 s left." in done.stderr
    assert of_type(done.events, "turn_finished")[0]["outcome"] == "done"


def test_R15_past_max_wait_the_program_gives_up(serve: Serve, asking: Ask) -> None:
    server = serve({"text": "never", "faults": [{"status": 429, "retry_after": 3600}]})
    holdfast = asking(server, "[retry]\ninitial_delay_ms = 1\n")
    done = holdfast("-p", "hello", "--max-wait", "5", "--output-format", "json", code=1)
    assert done.object["error_class"] == "rate_limit"
    assert "--max-wait" in done.stderr
    assert len(server.posts) == 1
