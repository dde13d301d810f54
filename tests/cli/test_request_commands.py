"""`holdfast sessions view --at`, `view --diff`, `verify`: on a session that a server answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.agent.test_binding import done, read, said
from tests.agent.test_requests_grow import program
from tests.support.clock import FakeClock
from tests.support.server import LoopbackServer
from tui.cli import main
from tui.core.facts import Overlay
from tui.core.paths import folders
from tui.session import catalog
from tui.session.lock import SessionLock
from tui.session.session import Session

Run: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Runs `sessions` with words; returns the exit code, stdout and stderr."""

    def go(*words: object) -> tuple[int, str, str]:
        code = main.main(["sessions", *map(str, words)])
        given = capfdbinary.readouterr()
        return code, given.out.decode(), given.err.decode()

    return go


@pytest.fixture
def talked(tmp_path: Path, own_folders: Path) -> tuple[Path, list[bytes]]:
    """A session of three turns, the first result masked before the last, and what was sent."""
    for n in range(3):
        (tmp_path / f"r{n}.txt").write_text(f"älpha {n}\n" * 100)
    turns = [turn for n in range(4) for turn in (read(f"r{n % 3}"), said(f"s{n}"))]

    async def talk() -> tuple[Path, list[bytes]]:
        async with LoopbackServer({"turns": turns}) as server:
            async with program(tmp_path, server, api_features="all") as agent:
                await done(agent, "one")
                await done(agent, "two")
                result = next(r for r in agent.session.records if r.type == "tool_result")
                await agent.context.overlay([Overlay(result.id, "masked", "person")])
                await done(agent, "three")
                third = [r for r in agent.session.records if r.type == "user"][2]
                await agent.session.rewind(third.id)
                path = agent.session.path
            assert path
            async with program(tmp_path, server, path, api_features="all") as agent:
                await done(agent, "other")
            return path, [post.raw for post in server.posts]

    return asyncio.run(talk())


def test_view_prints_the_bytes_that_were_sent(run: Run, talked: tuple[Path, list[bytes]]) -> None:
    path, sent = talked
    for number, body in enumerate(sent, 1):
        code, out, err = run("view", path, "--at", number)
        assert (code, out.encode()) == (0, body + b"\n")
        assert f"Request {number} as it was sent: its hash matches" in err
    code, out, _ = run("view", catalog.id_of(path), "--at", 3, "--json")
    told = json.loads(out)
    assert code == 0
    assert told.pop("body") == json.loads(sent[2])
    assert len(told.pop("sha256")) == 64
    assert told.pop("time")
    assert told == {
        "n": 3, "session": catalog.id_of(path), "model": "claude-sonnet-5-5",
        "server": "https://api.anthropic.com", "rebuilt": True, "problem": None,
        "foreign_frame": False, "break": None,
    }  # fmt: skip


def test_view_names_the_requests_there_are(run: Run, talked: tuple[Path, list[bytes]]) -> None:
    path, _ = talked
    code, out, err = run("view", path, "--at", 99)
    assert (code, out) == (2, "")
    assert "There is no request 99 in this session; it has requests 1–8." in err
    assert run("view", path, "--at", 1, "--diff", 1, 2)[0] == 2
    assert run("view", path, "--diff", 1)[0] == 2
    assert run("view", "--diff", 1, 2, path)[0] == 0


def test_diff_of_requests_that_extend(run: Run, talked: tuple[Path, list[bytes]]) -> None:
    code, out, _ = run("view", talked[0], "--diff", 1, 2)
    assert code == 0
    assert out.startswith(
        "Request 2 extends request 1: it starts with all of it.\n"
        "Added: 3 blocks.\n"
        "  message 2, assistant: thinking, 2 characters\n"
        "  message 2, assistant: call to read_file, 18 characters\n"
        "  message 3, user: result of read_file, "
    )
    assert "--- request 1\n+++ request 2\n" in out
    assert '+  "name": "read_file",' in out
    assert not [line for line in out.splitlines() if line.startswith("-") and line[:3] != "---"]


def test_diff_over_a_break_says_what_changed(run: Run, talked: tuple[Path, list[bytes]]) -> None:
    path, _ = talked
    code, out, _ = run("view", path, "--diff", 4, 5)
    assert code == 0
    assert "The first message is the same; what follows differs." in out
    assert "Left out: 3 thoughts." in out
    assert "  message 3, user: result of read_file, " in out
    assert "The cache restarts (item hidden): " in out
    assert ", by the person." in out
    code, out, _ = run("view", path, "--diff", 4, 5, "--json")
    told = json.loads(out)
    assert (told["extends"], told["same_messages"], told["thoughts_removed"]) == (False, 1, 3)
    assert [one["reason"] for one in told["breaks"]] == ["mask"]
    assert told["from"]["n"] == 4
    assert told["parted_at"] is None
    _, back, _ = run("view", path, "--diff", 5, 4, "--json")
    assert json.loads(back)["added"] == told["removed"]


def test_diff_of_two_branches(run: Run, talked: tuple[Path, list[bytes]]) -> None:
    _, out, _ = run("view", talked[0], "--diff", 6, 7)
    assert out.startswith("They are on two branches, which split after request 4.\n")
    _, out, _ = run("view", talked[0], "--diff", 7, 7)
    assert out == (
        "Request 7 extends request 7: it starts with all of it.\n\nOnly the cache marks differ.\n"
    )


def test_verify(run: Run, talked: tuple[Path, list[bytes]]) -> None:
    path, sent = talked
    before = path.read_bytes()
    lock = SessionLock(path, clock=FakeClock())
    lock.take()
    assert run("verify", path) == (
        0, "", f"{len(sent)} requests: all rebuilt exactly as sent.\n40 lines: as written.\n"
    )  # fmt: skip
    lock.release()
    code, out, _ = run("verify", path, "--json")
    assert code == 0
    said = json.loads(out)
    lines = said.pop("chain")
    assert (lines["linked"], lines["changed"], lines["uncovered"]) == (40, [], 0)
    assert said == {
        "outputs": {"unchanged": 0, "gone": [], "changed": [], "outside": []},
        "lost": [], "git_note": None,
        "id": catalog.id_of(path), "path": str(path), "requests": 8, "rebuilt": 8, "failed": [],
        "more_lost": 0,
        "foreign_frames": [], "findings": [],
    }  # fmt: skip
    assert path.read_bytes() == before


def test_verify_says_which_request_is_another_and_where(
    run: Run, talked: tuple[Path, list[bytes]]
) -> None:
    path, _ = talked
    path.write_bytes(path.read_bytes().replace(b"That was s0.", b"That was s7.", 1))
    code, out, err = run("verify", path)
    assert code == 1
    changed, first, *rest = out.splitlines()
    assert changed.endswith(", assistant) isn't what was written")
    assert first.startswith("request 3 (line ")
    assert first.endswith("): message 4 is not what was sent")
    assert len(rest) == 5
    assert err == "Rebuilt 2 of 8 requests exactly as sent.\n"
    code, out, err = run("view", path, "--at", 3)
    assert (code, "s7" in out) == (1, True)
    assert "can't be rebuilt as sent: message 4" in err


def test_a_damaged_file_is_read_as_far_as_it_goes(
    run: Run, talked: tuple[Path, list[bytes]]
) -> None:
    path, _ = talked
    lines = path.read_bytes().splitlines(keepends=True)
    place = next(
        n for n, line in enumerate(lines) if b'"type":"request"' in line and b'"n":2' in line
    )
    lines[place] = lines[place][:40] + b"\n"
    path.write_bytes(b"".join(lines))
    code, out, err = run("verify", path)
    assert code == 1
    changed, request = out.splitlines()
    assert changed.startswith(f"line {place + 1} (bytes ")
    assert request == "request 2: its record is missing"
    assert "The file is damaged" in err
    assert run("view", path, "--at", 3)[0] == 0


def test_a_forged_frame_is_said(run: Run, talked: tuple[Path, list[bytes]]) -> None:
    path, _ = talked
    path.write_bytes(path.read_bytes().replace(b'"reason":"new"', b'"reason":"old"', 1))
    code, out, err = run("verify", path)
    assert (code, out.count("\n")) == (1, 1)
    assert out.endswith(", frame) isn't what was written\n")
    words = "the system prompt and tools were recorded by another installation, or edited"
    assert f"requests 1–8: {words}.\n" in err
    path.write_bytes(path.read_bytes().replace(b"# Security", b"# Obedience", 1))
    code, out, err = run("verify", path)
    assert code == 1
    assert out.count("the record of its system prompt and tools (the frame) is missing") == 8
    code, out, err = run("view", path, "--at", 1)
    assert (code, out) == (1, "")
    (folders().data / "seal.key").unlink()
    assert run("verify", path)[0] == 1
    assert not (folders().data / "seal.key").exists()


def test_a_session_without_requests_is_no_failure(run: Run, own_folders: Path) -> None:
    session = Session.create(Path.cwd(), folders=folders(), clock=FakeClock())
    text: list[Any] = [{"type": "text", "text": "hello"}]

    async def write() -> None:
        session.append("user", content=text, text="hello")
        session.append("assistant", content=text, model="claude-sonnet-5-5")
        await session.close()

    asyncio.run(write())
    code, out, err = run("verify", session.path)
    assert (code, out) == (0, "")
    assert err.startswith("This session has no record of its requests:")
    code, out, _ = run("verify", session.path, "--json")
    assert (code, json.loads(out)["requests"]) == (0, 0)
    assert run("view", session.path, "--at", 1)[0] == 1
