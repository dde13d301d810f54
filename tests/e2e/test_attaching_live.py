"""`holdfast attach` on a real terminal: a session that runs in the background, watched live."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from tests.e2e.test_background import RUN, Start, env, gone, kept, records, start, until
from tests.support.machine import needs_proc
from tests.support.program import Program
from tests.support.terminal import HOLDFAST, Terminal
from tui.core.paths import Folders

__all__ = ["env", "kept", "start"]

Config: TypeAlias = Callable[[str], Path]

WRITES: dict[str, Any] = {"text": "I write.", "tools": [{"name": "write_file", "input": {
    "path": "new.txt", "content": "hello\n"}}]}  # fmt: skip


def attach(work: Path, env: dict[str, str], *words: str) -> Terminal:
    return Terminal([*HOLDFAST, "attach", *words], cwd=work, env=env)


def test_a_running_command_is_seen_a_prompt_joins_and_leaving_ends_nothing(
    holdfast: Program, start: Start, kept: Folders, env: dict[str, str]
) -> None:
    one = start(RUN, {"text": "It said hello."})
    until(kept, one.id, "working")
    with attach(holdfast.work, env, one.id) as screen:
        screen.wait_for("do it")
        screen.wait_for("Run cat go")
        screen.wait_for("runs in the background")
        screen.type("and then this\r")
        screen.wait_for("and then this")
        (holdfast.work / "go").write_text("hello\n")
        screen.wait_for("It said hello.")
        screen.type("\x1b")
        screen.wait_for("looks in again.")
        assert screen.exit_code() == 0
    until(kept, one.id, "done")
    gone(one)
    texts = [r.get("text") for r in records(one) if r["type"] == "user"]
    assert texts == ["do it", "and then this"]


def test_a_question_is_answered_from_the_live_view(
    holdfast: Program, start: Start, kept: Folders, env: dict[str, str]
) -> None:
    one = start(WRITES, {"text": "Written."})
    until(kept, one.id, "waiting")
    with attach(holdfast.work, env, one.id) as screen:
        screen.wait_for("new.txt")
        screen.wait_for("answer")
        screen.listen(0.6)
        screen.type("1")
        screen.wait_for("Written.")
        screen.type("\x1b")
        screen.wait_for("looks in again.")
    until(kept, one.id, "done")
    assert (holdfast.work / "new.txt").read_text() == "hello\n"


def test_a_finished_session_is_shown_and_goes_on_by_a_prompt(
    holdfast: Program, start: Start, kept: Folders, env: dict[str, str]
) -> None:
    one = start({"text": "All done."}, {"text": "Once more."})
    until(kept, one.id, "done")
    gone(one)
    with attach(holdfast.work, env, one.id) as screen:
        screen.wait_for("All done.")
        screen.wait_for("nobody has it open")
        screen.type("again\r")
        screen.wait_for("Once more.")
        screen.type("\x1b")
        screen.wait_for("looks in again.")
    until(kept, one.id, "done")


def test_a_question_is_left_unanswered(
    holdfast: Program, start: Start, kept: Folders, env: dict[str, str]
) -> None:
    one = start(WRITES, {"text": "Written."})
    until(kept, one.id, "waiting")
    with attach(holdfast.work, env, one.id) as screen:
        screen.wait_for("new.txt")
        screen.wait_for("answer")
        screen.listen(0.6)
        screen.type("\x1b[18~")  # F7: leave the question unanswered
        screen.wait_for("looks in again.")
    assert until(kept, one.id, "waiting").pid == one.pid


@needs_proc
def test_an_owner_that_is_stopped_or_killed_is_named_and_its_question_closes(
    holdfast: Program, start: Start, kept: Folders, env: dict[str, str]
) -> None:
    one = start(WRITES, {"text": "Written."})
    one = until(kept, one.id, "waiting")
    with attach(holdfast.work, env, one.id) as screen:
        screen.wait_for("esc no")
        os.kill(one.pid, signal.SIGSTOP)
        screen.wait_until(lambda: "Its process can't be asked" in screen.now)
        os.kill(one.pid, signal.SIGCONT)
        os.kill(one.pid, signal.SIGKILL)
        screen.wait_until(lambda: "its process was killed" in screen.now)
        assert "esc no" not in screen.now


def test_a_session_that_is_opened_may_be_watched_instead(
    holdfast: Program, start: Start, kept: Folders, env: dict[str, str]
) -> None:
    one = start(RUN, {"text": "It said hello."})
    one = until(kept, one.id, "working")
    with Terminal([*HOLDFAST, "-r", one.id], cwd=holdfast.work, env=env) as screen:
        screen.wait_for("This session runs in the background", "Look in; it keeps running")
        screen.press("l", lambda: "runs in the background · process" in screen.now)
        (holdfast.work / "go").write_text("hello\n")
        screen.wait_for("It said hello.")
        screen.type("\x1b")
        screen.wait_for("Ask for anything")
    done = until(kept, one.id, "done")
    assert done.pid == one.pid


def test_ctrl_t_continues_the_session_in_this_terminal(
    holdfast: Program, start: Start, kept: Folders, env: dict[str, str]
) -> None:
    one = start({"text": "All done."}, {"text": "Once more."})
    until(kept, one.id, "done")
    gone(one)
    with attach(holdfast.work, env, one.id) as screen:
        screen.wait_for("nobody has it open")
        screen.type("\x14")
        screen.wait_for("Ask for anything · / commands", "ask first")
        screen.type("again\r")
        screen.wait_for("Once more.")
        assert "process" not in screen.now


def test_broken_settings_keep_nobody_from_looking_and_loosen_nothing(
    holdfast: Program, start: Start, kept: Folders, env: dict[str, str], config: Config
) -> None:
    one = start({"text": "All done."})
    until(kept, one.id, "done")
    gone(one)
    config('[permissions]\ndeny = ["run_command(*)"]\n\n[broken\n')
    with attach(holdfast.work, env, one.id) as screen:
        screen.wait_for("All done.")
        screen.wait_for("not valid TOML")
        screen.type("again\r")
        screen.wait_for("holdfast --bare")  # what would work by these settings is refused
        screen.type("\x1b")
        screen.wait_for("again to leave")
        screen.type("\x1b")
        screen.wait_for("looks in again.")
    with Terminal([*HOLDFAST, "desk"], cwd=holdfast.work, env=env) as screen:
        screen.wait_for("do it")
        screen.wait_for("not valid TOML")
        screen.type("\x1b")
        assert screen.exit_code() == 0
    done = holdfast("desk", "--json")
    assert [row["id"] for row in json.loads(done.stdout)["sessions"]] == [one.id]
    assert "unreadable lines: not applied" in done.stderr
    assert [r.get("text") for r in records(one) if r["type"] == "user"] == ["do it"]
