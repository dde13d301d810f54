"""`holdfast sessions timeline`: any session in time, in words and as data."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from tests.context.worked_session import WorkedSession
from tests.support.agents import events_of, make_agent
from tests.support.foreign import claude_code, lines
from tests.support.provider import ScriptedProvider, call, say
from tui.cli.main import main
from tui.context.usage import bills_of
from tui.core.clock import SystemClock
from tui.core.paths import Folders, folders
from tui.session.reader import read
from tui.session.records import Header
from tui.session.session import Session, children_of
from tui.settings import agent_definitions


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A session of ours, elsewhere."""
    header = Header("0123456789ab", "2026-11-21T09:00:00Z", "/w", "holdfast 1.0.0")
    records = WorkedSession().made(4, 10)
    made = tmp_path / "session.jsonl"
    made.write_bytes(b"".join([header.to_line(), *(one.to_line() for one in records)]))
    return made


def test_it_prints_the_session_in_short_and_every_step(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = path.read_bytes()
    assert main(["sessions", "timeline", str(path)]) == 0
    out, _ = capsys.readouterr()
    printed = out.splitlines()
    assert printed[0] == "# Fix the parser: nested brackets are lost"
    assert printed[1].startswith("4 prompts, ")
    assert "  prompt: 1 · Fix the parser" in out
    assert "turned red" in out
    assert "\x1b" not in out
    assert path.read_bytes() == before


def test_data_has_the_steps(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "timeline", str(path), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["id"] == "0123456789ab"
    assert data["cost_usd"] > 0
    assert {"prompt", "request", "call", "compaction"} <= {one["kind"] for one in data["steps"]}


@pytest.mark.parametrize("profile", ["", "dear", "gone"])
def test_a_session_costs_what_its_profile_pays(
    path: Path, profile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def figures() -> tuple[float, float]:
        assert main(["sessions", "timeline", str(path), "--json"]) == 0
        timed = json.loads(capsys.readouterr().out)["cost_usd"]
        assert main(["sessions", "export", str(path), "--format", "otlp"]) == 0
        sent = capsys.readouterr().out
        costs = re.findall(r'"holdfast.cost_usd","value":\{"doubleValue":([^}]+)\}', sent)
        return timed, sum(map(float, costs))

    usual = figures()
    _, _, rest = path.read_bytes().partition(b"\n")
    header = Header("0123456789ab", "2026-11-21T09:00:00Z", "/w", "holdfast", profile=profile)
    path.write_bytes(header.to_line() + rest)
    file = folders().config_file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[profile.dear]\n[profile.dear.prices."*"]\ntimes = 2.0\n')
    times = 2 if profile == "dear" else 1
    assert [round(one, 9) for one in figures()] == [round(times * one, 9) for one in usual]


def test_another_agents_session_is_read_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = tmp_path / "claude.jsonl"
    foreign.write_bytes(lines(claude_code(3).records))
    assert main(["sessions", "timeline", str(foreign)]) == 0
    out, _ = capsys.readouterr()
    assert "3 prompts, " in out
    assert "request: 1 · " in out


def test_damage_and_emptiness_are_said(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.write_bytes(path.read_bytes()[:9_000] + b"\xff\xfe{{{\n" + path.read_bytes()[9_000:])
    assert main(["sessions", "timeline", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "prompt: 1" in out
    assert "The file is damaged" in err
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    assert main(["sessions", "timeline", str(path)]) == 0
    assert "Nothing happened" in capsys.readouterr().err


def test_two_sessions_are_drawn_below_each_other_from_their_first_prompts_on(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_bytes(lines(claude_code(3).records))
    assert main(["sessions", "timeline", str(path), str(other)]) == 0
    out, _ = capsys.readouterr()
    assert [line[:2] for line in out.splitlines()].count("# ") == 2
    assert "4 prompts, " in out
    assert "3 prompts, " in out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["sessions", "timeline", str(path), str(other)]) == 0
    out, _ = capsys.readouterr()
    assert out.count("▚ thinking ░ results █ messages") == 2
    assert out.count("! cache restart  ▼ compaction") == 2
    one, two = (line for line in out.splitlines() if line.strip().startswith("prompts "))
    assert one.index("┬") == two.index("┬")
    assert len(one) > len(two)  # on one scale
    assert main(["sessions", "timeline", str(path), str(other), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2


@pytest.fixture
def with_sub_agents(tmp_path: Path) -> Path:
    """A session with a sub-agent that called a tool, and one that was called for again."""
    (root := tmp_path / "workspace").mkdir()
    home = Folders(*(tmp_path / name for name in ("config", "data", "cache", "log")))

    async def worked() -> Path:
        session = Session.create(root, folders=home, clock=SystemClock())
        first, second = (call("task", f"t{n}", description="look", prompt=f"{n}") for n in (1, 2))
        provider = ScriptedProvider(
            [first], [call("list_dir", path=".")], say("found"), [second], say("more"), say("done")
        )
        kinds = agent_definitions.load([])
        agent = make_agent(root, provider, session=session, find_agents=lambda: kinds)
        await events_of(agent, "go")
        await agent.close()
        assert session.path
        return session.path

    return asyncio.run(worked())


def test_a_sub_agents_own_requests_are_in_its_step_and_add_up_to_its_bill(
    with_sub_agents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sessions", "timeline", str(with_sub_agents), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    agents = [one for one in data["steps"] if one["kind"] == "agent"]
    inner = [[step["kind"] for step in one["steps"]] for one in agents]
    assert inner == [["prompt", "request", "call", "request"], ["prompt", "request"]]
    bills = [bill for one in read(with_sub_agents).branch for bill in bills_of(one) if bill.agent]
    seen = [step for one in agents for step in one["steps"] if step["kind"] == "request"]
    assert sum(bill.requests for bill in bills) == len(seen) == 3
    assert sum(bill.usage.output_tokens for bill in bills) == sum(
        step["output_tokens"] for step in seen
    )
    assert main(["sessions", "timeline", str(with_sub_agents)]) == 0
    out, _ = capsys.readouterr()
    assert re.search(r"sub-agent: .*look.*\n {4}.* prompt: .*\n {4}.* request: 1 · ", out)


def test_the_page_has_the_sub_agents_requests_too(
    with_sub_agents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sessions", "report", str(with_sub_agents), "--format", "html"]) == 0
    out, _ = capsys.readouterr()
    assert "<summary>Inside: 2 requests, 1 call" in out
    assert "<summary>Inside: 1 request" in out
    assert "and 3 of sub-agents" in out
    assert "below a sub-agent: its requests" in out


def test_sub_agents_whose_sessions_are_gone_or_elsewhere_are_left_closed(
    with_sub_agents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for one in children_of(with_sub_agents).iterdir():
        one.unlink()
    assert main(["sessions", "report", str(with_sub_agents), "--format", "html"]) == 0
    out, _ = capsys.readouterr()
    assert "Inside:" not in out
    assert "and 3 of sub-agents" in out
