"""Program status (OSC 7501): asked for, then reported as the protocol wants it, and taken back."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.script import Hold
from tests.support.world import World
from tests.ui.screens.driving import answer, running, say, turn, until
from tui.app.frontend import TurnResult
from tui.core import facts
from tui.core.config import TerminalSettings
from tui.core.facts import Fact
from tui.ui.program_status import CLEAR, QUERY, Kind, ProgramStatus, State, TurnStatus, outcome_of
from tui.ui.terminal import TerminalCodes, TerminalStatus
from tui.ui.toolkit.key_parser import KeyParser, StatusAnswer

SPEC: Mapping[str, Any] = json.loads(
    (Path(__file__).parents[1] / "terminals" / "program_status.json").read_text()
)
LIMITS: Mapping[str, int] = SPEC["limits"]
REPORT = re.compile(r"\x1b\]7501;([^\x07\x1b]*)(?:\x07|\x1b\\)")
XTERM = {"TERM": "xterm-256color"}


def reported(codes: str) -> list[dict[str, str]]:
    """What a terminal takes from what is written: it voids all of a report that breaks a rule."""
    taken: list[dict[str, str]] = []
    for match in REPORT.finditer(codes):
        assert len(match[0].encode()) <= LIMITS["sequence"]
        pairs = dict(pair.split("=", 1) for pair in match[1].split(":"))
        assert all(re.fullmatch(r"[a-z]{1,16}", key) for key in pairs)
        assert all(re.fullmatch(r"[A-Za-z0-9_.,+/=-]*", value) for value in pairs.values())
        if pairs == {"state": "clear"}:
            taken.append(pairs)
            continue
        assert pairs["state"] in SPEC["states"]
        assert "kind" not in pairs or pairs["state"] in SPEC["with_kind"]
        assert pairs.get("kind", "auth") in SPEC["kinds"]
        assert "progress" not in pairs or pairs["state"] in SPEC["with_progress"]
        assert 0 <= int(pairs.get("progress", 0)) <= 100
        for key in ("title", "msg"):
            if key in pairs:
                assert len(pairs[key]) <= LIMITS[f"{key}_encoded"]
                text = b64decode(pairs[key], validate=True)
                assert len(text) <= LIMITS[f"{key}_decoded"]
                pairs[key] = text.decode("utf-8")
                assert not re.search(r"[\x00-\x1f\x7f-\x9f]", pairs[key])
        taken.append(pairs)
    return taken


def status(
    env: Mapping[str, str] = XTERM, how: str = "auto", *, known: bool | None = True
) -> tuple[TerminalStatus, list[str]]:
    """A terminal that was asked, and has answered unless `known` is None; what is written then."""
    written: list[str] = []
    settings = TerminalSettings(title="off", program_status=how)  # pyright: ignore[reportArgumentType]
    terminal = TerminalStatus(written.append, settings, TerminalCodes.of(env))
    terminal.ask()
    if known is not None:
        terminal.answered(known)
    return terminal, written


def test_a_terminal_is_told_only_after_it_has_answered() -> None:
    terminal, written = status(known=None)
    terminal.show(name="A title", state="working", message="Run make")
    assert written == [QUERY]
    terminal.answered(True)
    assert reported(written[-1]) == [
        {"state": "working", "app": "holdfast", "title": "A title", "msg": "Run make"}
    ]
    terminal.answered(False)  # what stands behind the question
    terminal.show(state="done")
    assert reported(written[-1]) == [{"state": "done", "app": "holdfast", "title": "A title"}]


def test_a_terminal_that_answers_only_the_second_part_is_told_nothing() -> None:
    terminal, written = status(known=False)
    terminal.answered(True)  # nobody asked
    terminal.show(state="blocked", kind="permission")
    assert written == [QUERY]
    assert terminal.leave() == ""


@pytest.mark.parametrize(
    ("env", "asked"),
    [
        (XTERM, True),
        ({"TERM": "tmux-256color", "TMUX": "/tmp/tmux"}, True),
        (XTERM | {"VTE_VERSION": "7006"}, True),
        (XTERM | {"VTE_VERSION": "5202"}, False),
        (XTERM | {"INSIDE_EMACS": "29.1"}, False),
        ({"TERM": "linux"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "vt100"}, False),
    ],
)
def test_who_may_draw_the_question_is_not_asked(env: Mapping[str, str], asked: bool) -> None:
    _, written = status(env, known=None)
    assert written == ([QUERY] if asked else [])


def test_what_did_not_change_is_not_said_again() -> None:
    terminal, written = status()
    for _ in range(2):
        terminal.show(state="blocked", message="Which branch?", kind="question")
    terminal.show()
    assert [one["state"] for one in reported("".join(written[1:]))] == ["idle", "blocked"]


def test_leaving_clears_it_and_coming_back_says_it_again() -> None:
    terminal, written = status()
    terminal.show(state="working", percent=40)
    assert terminal.leave() == CLEAR
    assert terminal.leave() == ""
    del written[:]
    terminal.show(state="blocked", kind="auth")
    terminal.ask()
    assert written == []
    terminal.resume()
    assert reported("".join(written)) == [{"state": "blocked", "app": "holdfast", "kind": "auth"}]


def test_the_setting_turns_it_off_and_on() -> None:
    terminal, written = status(how="off", known=None)
    terminal.show(state="working")
    assert written == []
    terminal.use(TerminalSettings(title="off", program_status="on"))
    assert reported(written[-1])[0]["state"] == "working"
    terminal.use(TerminalSettings(title="off", program_status="off"))
    assert written[-1] == CLEAR
    terminal.use(TerminalSettings(title="off"))
    assert written[-1] == QUERY


def test_inside_tmux_only_tmux_is_asked() -> None:
    terminal, written = status(known=True)
    terminal.terminal = TerminalCodes.behind_tmux("xterm-ghostty", "", passthrough="on")
    terminal.show(state="done")
    assert written[-1].startswith("\x1b]7501;")
    terminal.use(TerminalSettings(title="off", program_status="on"))
    other, written = status(how="on", known=None)
    other.terminal = terminal.terminal
    other.show(state="done")
    assert written[-1].startswith("\x1bPtmux;\x1b\x1b]7501;state=done")
    assert other.leave().startswith("\x1bPtmux;\x1b\x1b]7501;state=clear")


@given(
    st.sampled_from(("idle", "working", "waiting", "blocked", "done", "error")),
    st.text(max_size=3000),
    st.text(max_size=3000),
    st.none() | st.sampled_from(("permission", "question", "auth")),
    st.none() | st.integers(-5, 300),
)
def test_no_text_voids_or_breaks_out_of_a_report(
    state: State, name: str, message: str, kind: Kind | None, percent: int | None
) -> None:
    code = ProgramStatus(state, message, kind, percent).report(name)
    assert REPORT.fullmatch(code)
    reported(code)


def test_keys_and_disguises_do_not_get_out() -> None:
    key = "sk-ant-api03-" + "a" * 90
    code = ProgramStatus("blocked", f"$ curl -H {key} \u202eevil", "permission").report("x")
    (report,) = reported(code)
    assert key not in report["msg"]
    assert "\u202e" not in report["msg"]


def test_waiting_for_a_server_is_no_wait_for_a_person() -> None:
    assert reported(ProgramStatus("waiting", "Waiting for the server").report(""))[0] == {
        "state": "working",
        "app": "holdfast",
        "msg": "Waiting for the server",
    }


def heard(*reads: bytes) -> list[object]:
    keyboard = KeyParser(str)
    return [one for data in reads for one in keyboard.feed(data)]


@pytest.mark.parametrize("end", [b"\x1b\\", b"\x07"])
@pytest.mark.parametrize("body", [b"?", b"?:states=idle,working:kinds=auth"])
def test_the_answer_is_understood_and_types_nothing(body: bytes, end: bytes) -> None:
    sent = b"\x1b]7501;" + body + end + b"\x1b[?62;22c"
    for at in range(1, len(sent)):
        answers = heard(sent[:at], sent[at:])
        assert all(isinstance(one, StatusAnswer) for one in answers)
        assert [one.known for one in answers if isinstance(one, StatusAnswer)] == [True, False]
    assert heard(b"\x1b]7501;state=idle" + end) == []


def steps(*events: Fact) -> Iterator[ProgramStatus | None]:
    followed = TurnStatus()
    return map(followed.see, events)


def test_a_turn_says_what_it_does_and_asks() -> None:
    make = facts.ToolStarted("t1", "run_command", {}, "make")
    question = facts.QuestionAsked("q1", "ask_user", ({"question": "Which one?"},))
    assert list(
        steps(
            make,
            facts.PermissionAsked("t1", "run_command", ""),
            facts.SubAgentEvent("t2", "general", question),
            facts.PermissionAnswered("t1", "run_command", "once", "person"),
            facts.QuestionAnswered("q1", "ask_user", (), "person"),
            facts.PermissionAsked("t1", "run_command", ""),
            facts.PermissionAnswered("t1", "run_command", "once", "person"),
            facts.Parked("2026-11-30T12:00:00Z", "rate limit"),
        )
    ) == [
        ProgramStatus("working", "Run make"),
        ProgramStatus("blocked", "Run make", "permission"),
        ProgramStatus("blocked", "Run make", "permission"),
        ProgramStatus("blocked", "Which one?", "question"),
        ProgramStatus("working"),
        ProgramStatus("blocked", "Run make", "permission"),
        ProgramStatus("working", "Run make"),
        ProgramStatus("waiting", "Waiting for the server"),
    ]


def test_a_question_that_was_never_answered_ends_with_its_turn() -> None:
    asked = facts.PermissionAsked("t1", "run_command", "")
    *_, last = steps(asked, facts.TurnFinished("interrupted"))
    assert last == ProgramStatus("working")


def test_how_it_ended() -> None:
    failed = facts.ErrorRaised("auth", "The key was refused.", recoverable=True)
    assert outcome_of(TurnResult("done")).state == "done"
    assert outcome_of(TurnResult("interrupted")).state == outcome_of(None).state == "idle"
    assert outcome_of(TurnResult("failed", failed)) == ProgramStatus("error", failed.message)


async def test_a_turn_is_told_to_a_terminal_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TMUX", "STY", "WT_SESSION", "INSIDE_EMACS", "VTE_VERSION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    world, hold = World(), Hold()
    asked = facts.PermissionAsked("t1", "run_command", "It runs.")
    world.scripts.append(turn(asked, hold, *answer("Done.")))
    written: list[str] = []
    async with running(world) as (app, pilot):
        terminal = app.frontend.terminal
        terminal.write = written.append
        app.post_message(StatusAnswer(known=True))
        await until(pilot, lambda: bool(written))
        assert reported(written[-1])[0]["state"] == "idle"
        await say(pilot, "go")
        await until(pilot, lambda: "state=blocked" in written[-1])
        assert reported(written[-1])[0]["kind"] == "permission"
        hold.release()
        await until(pilot, lambda: "state=done" in written[-1])
        assert app.takeover.leaving().endswith(CLEAR)
