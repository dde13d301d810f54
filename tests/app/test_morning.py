"""The report over sessions of a night: red comes first, nothing is left out, nothing flatters."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.app.test_session_page import HOSTILE, KEY, Page
from tests.support.clock import FakeClock
from tests.support.spent_session import OPUS, OTHER, Told, call, said, usage
from tui.cli import main
from tui.core.clock import timestamp
from tui.core.paths import folders
from tui.core.standard_output import cells
from tui.session.chain import all_linked
from tui.session.lock import SessionLock
from tui.session.records import Header, Record

NOW = datetime.now(UTC).replace(microsecond=0)
BEGUN = NOW - timedelta(hours=2)
SINCE = ("--since", "3h")
FORMS = ("text", "md", "html", "json")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield tmp_path
    monkeypatch.undo()
    time.tzset()


class Night(Told):
    """A session of last night, as its records tell it."""

    def __init__(self, prompt: str = "Fix the parser", now: datetime = BEGUN) -> None:
        super().__init__(now=now)
        if prompt:
            self.prompt(prompt)

    def run(self, command: str, code: int, output: str = "", id_: str = "") -> Record:
        """A command that the model runs, with how it ended."""
        name = id_ or f"c{len(self.records)}"
        self.answer(usage(100, 10), call(name, "run_command", command=command))
        return self.came(name, "run_command", output, exit_code=code)

    def came(self, id_: str, name: str, output: str = "", **details: Any) -> Record:
        """A result as the record has it."""
        bad = details.get("exit_code", 0) != 0
        return self.tell(
            "tool_result", call_id=id_, name=name, content=said(output), is_error=bad, seconds=1.0,
            details=details,
        )  # fmt: skip

    def edit(self, path: str) -> None:
        self.answer(usage(100, 10), call(f"e{len(self.records)}", "write_file", path=path))
        id_ = f"e{len(self.records) - 1}"
        self.came(id_, "write_file", path=f"/w/{path}", before_sha256=None, after_sha256="b")

    def ends(self, words: str = "Done: everything works.") -> None:
        self.answer(usage(100, 10), *said(words))


def written(
    told: Told, id_: str = "0123456789ab", *, cwd: str = "/w", changed: datetime | None = None,
    **more: Any,
) -> Path:  # fmt: skip
    """Write a session's file as it was when its last record was written."""
    folder = folders().sessions / "w-1"
    folder.mkdir(parents=True, exist_ok=True)
    created = told.records[0].time if told.records else timestamp(BEGUN)
    stamp = datetime.fromisoformat(created)
    path = folder / f"{stamp:%Y%m%dT%H%M%SZ}-{id_}.jsonl"
    header = Header(id_, created, cwd, "holdfast 1", **more)
    lines = [header.to_line(), *(record.to_line() for record in told.records)]
    path.write_bytes(b"".join(all_linked(lines)))
    at(path, changed or told.now)
    return path


def written_below(parent: Path, told: Told, id_: str) -> Path:
    """Write the session of a sub-agent."""
    path = written(told, id_)
    folder = parent.with_suffix("")
    folder.mkdir(exist_ok=True)
    return path.rename(folder / path.name)


def at(path: Path, then: datetime) -> None:
    os.utime(path, (then.timestamp(), then.timestamp()))


def report(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main.main(["report", *(words if "--since" in words else (*SINCE, *words))]) == 0
    return capsys.readouterr().out


def data(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    return json.loads(report(capsys, "--format", "json", *words))


def found(capsys: pytest.CaptureFixture[str], kind: str, *words: str) -> list[str]:
    """The findings of a kind, in words."""
    value = data(capsys, *words)
    every = [*value["findings"], *(one for s in value["sessions"] for one in s["findings"])]
    return [one["text"] for one in every if one["kind"] == kind]


def verdict(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    return report(capsys, *words).splitlines()[2]


def test_red_comes_first_and_the_models_claim_is_told_beside_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = Night()
    told.run("pytest -q", 1, "E   assert 1 == 2\n1 failed\n[exit code 1 · 0.2 s]")
    told.ends("All tests pass now.")
    written(told)
    text = report(capsys)
    assert text.splitlines()[2].startswith("1 red, 1 ended while red")
    assert "pytest was red when last run: pytest -q" in text
    said_so = 'The model ended its turn while pytest was red. It wrote: "All tests pass now."'
    assert said_so in text
    assert "holdfast -r 0123456789ab" in text
    page = Page(report(capsys, "--format", "html"))
    assert page.text.index("1 red, 1 ended while red") < page.text.index("Asked")
    assert "E assert 1 == 2" in page.text, "the record's own words are the evidence"


def test_a_commit_that_git_does_not_know_is_only_said(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = home / "project"
    place.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=place, check=True)
    words = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--allow-empty"]
    when = os.environ | {"GIT_COMMITTER_DATE": timestamp(NOW)}
    printed = subprocess.check_output([*words, "-m", "One"], cwd=place, env=when, text=True)
    told = Night()
    told.run("git commit --allow-empty -m One", 0, printed)
    told.run("git commit -m Two", 0, "[main 1234567] Two")
    told.run("git commit -qm Three", 0)
    told.now = NOW
    told.step = 0
    told.run("git commit -qm One", 0)
    told.ends()
    written(told, cwd=str(place))
    text = report(capsys)
    assert "4 commits (2 only said by commands)" in text
    assert f"Committed: {printed.split(']')[0][1:]}: One\n" in text
    assert "Committed: main 1234567: Two (said by the command)" in text
    assert "Committed: git commit -qm Three (said by the command)" in text
    assert "Committed: git commit -qm One\n" in text
    (place / ".git").rename(place / "away")
    assert "4 commits (4 only said by commands)" in report(capsys)


def test_what_turned_green_again_is_not_red(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night()
    told.run("pytest -q", 1, "1 failed")
    told.edit("a.py")
    told.run("pytest -q", 0, "1 passed")
    told.run("./deploy.sh", 1)
    told.run("./deploy.sh", 0)
    told.ends()
    written(told)
    assert verdict(capsys) == "Nothing is red: 2 checks ran, in 1 of 1 session."


@pytest.mark.parametrize(
    ("before", "after", "red"),
    [
        ("pytest -q", "pytest -q tests/test_a.py", True),
        ("pytest -q", "pytest -q -k parse", True),
        ("pytest -q", "pytest -q --lf", True),
        ("pytest tests/test_a.py", "pytest tests/test_b.py", True),
        ("go test ./...", "go test ./lexer", True),
        ("pytest -q", "pytest -x --tb short -n 4 2>&1", False),
        ("pytest -q tests/test_a.py::test_x", "pytest tests/test_a.py", False),
        ("pytest tests/test_a.py", "pytest ./tests/", False),
        ("pytest tests/test_a.py", "pytest -q", False),
        ("pytest -k parse", "pytest -q -k parse", False),
        ("go test ./lexer", "go test ./...", False),
        ("npx tsc --noEmit", "npm run check", False),
    ],
)
def test_a_run_of_a_part_makes_the_rest_not_green(
    before: str, after: str, red: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    told = Night()
    told.run(before, 1, "1 failed")
    told.run(after, 0, "1 passed")
    told.ends()
    path = written(told)
    name = "go test" if before.startswith("go") else "pytest"
    words = f"{name} was red when last run: {before} (no later green run covered it)"
    assert found(capsys, "red") == [words] * red
    assert main.main(["sessions", "report", str(path), "--format", "html"]) == 0
    page = Page(capsys.readouterr().out)
    assert (f"Red when last run: {name}." in page.text) is red


def test_a_check_is_red_in_each_folder_for_itself(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night()
    told.run("cd a && pytest", 1, "1 failed")
    told.answer(usage(1, 1), call("b", "run_command", command="pytest", cwd="b"))
    told.came("b", "run_command", "2 failed", exit_code=1)
    told.run("pytest", 0, "5 passed")
    told.run("cd a && pytest", 1, "1 failed")
    told.ends()
    written(told)
    assert found(capsys, "red") == [
        "pytest was red when last run: cd b && pytest (no later green run covered it)",
        "pytest was red when last run: cd a && pytest",
    ]
    assert found(capsys, "claimed")[0].startswith("The model ended its turn while pytest was red.")


def test_a_run_whose_end_nothing_tells_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night()
    told.run('pytest -q > log; echo "$N passed"', 0, "5 passed")
    told.ends()
    path = written(told)
    said_so = 'pytest gave no verdict when last run: pytest -q > log; echo "$N passed"'
    assert found(capsys, "unknown") == [said_so]
    assert verdict(capsys).endswith("so nothing was checked. But 1 not known.")
    path.unlink()
    told = Night()
    told.run("pytest -q", 1, "1 failed")
    told.run('pytest -q > log; echo "$N passed"', 0, "5 passed")
    told.ends()
    written(told)
    assert found(capsys, "red") == [
        "pytest was red when last run: pytest -q (a later run gave no verdict)"
    ]
    assert found(capsys, "unknown") == []


@pytest.mark.parametrize(
    ("command", "failed"),
    [
        ("grep -r x . | grep y", False),
        ("grep x notes && ./deploy.sh", True),
        ("diff a b; ./deploy.sh", True),
        ("which make\n./deploy.sh", True),
        ("pytest | node judge.js", True),
        ("pytest | grep passed", False),
        ("grep -E 'a|b;c' notes 2>&1", False),
    ],
)
def test_a_look_before_a_command_hides_no_failure(
    command: str, failed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    told = Night()
    told.run(command, 1)
    told.ends()
    written(told)
    assert bool([*found(capsys, "failed"), *found(capsys, "red")]) is failed


def test_a_check_that_was_stopped_has_failed_until_it_ran(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = Night()
    told.answer(usage(1, 1), call("a", "run_command", command="pytest -q"))
    stopped = said("Command timed out")
    told.tell("tool_result", call_id="a", name="run_command", content=stopped, is_error=True)
    written(told)
    words = "Run pytest -q: failed, and no later try succeeded."
    assert found(capsys, "failed") == [words]
    told.run("pytest", 0, "1 passed")
    told.ends()
    written(told)
    assert found(capsys, "failed") == []


def test_that_nothing_was_checked_is_no_praise(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night()
    told.edit("a.py")
    told.ends("Finished, all good.")
    written(told)
    assert verdict(capsys) == (
        "Nothing is red: no test, linter or build gave a result, so nothing was checked."
        " But 1 unchecked."
    )
    (words,) = found(capsys, "unchecked")
    assert words == "1 file changed (a.py) and no test, linter or build gave a result."


def test_files_changed_after_the_last_green_check_are_unchecked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = Night()
    told.edit("a.py")
    told.run("pytest", 0, "3 passed")
    told.edit("b.py")
    told.ends()
    written(told)
    assert found(capsys, "unchecked") == ["1 file changed (b.py) after the last green check."]


def test_a_test_run_without_tests_is_not_green(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night()
    told.edit("a.py")
    told.run("python -m unittest", 0, "\nRan 0 tests in 0.000s\n\nOK\n[exit code 0 · 0.1 s]")
    told.ends()
    written(told)
    (words,) = found(capsys, "unchecked")
    assert words == "1 file changed (a.py) and no test, linter or build gave a result."
    assert data(capsys)["summary"]["checks"] == 0


def test_commands_and_writes_that_failed_last_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night()
    told.run("./deploy.sh", 3, "no route")
    told.run("grep -r nothing .", 1)
    told.answer(usage(1, 1), call("w", "write_file", path="x.py"))
    told.tell(
        "tool_result", call_id="w", name="write_file", content=said("not read"), is_error=True
    )
    told.ends()
    written(told)
    assert found(capsys, "failed") == [
        "Run ./deploy.sh: exit code 3, and no later try succeeded.",
        "Write x.py: failed, and no later try succeeded.",
    ]


def test_refusals_say_who_and_why_and_are_no_failures(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night()
    for id_ in ("a", "b"):
        told.answer(usage(1, 1), call(id_, "run_command", command="rm -rf build"))
        told.tell(
            "permission", call_id=id_, tool="run_command", subject="rm -rf build", answer="no",
            by="default", reason="It deletes folders.",
        )  # fmt: skip
        told.tell(
            "tool_result", call_id=id_, name="run_command", content=said("no"), is_error=True,
            summary="denied", details={},
        )  # fmt: skip
    told.ends()
    written(told)
    (words,) = found(capsys, "refused")
    assert words == "Run rm -rf build: Refused by the default rules (It deletes folders.)."
    assert data(capsys)["summary"]["refused"] == 2
    assert found(capsys, "failed") == []


def test_a_session_that_died_is_told_with_what_it_was_doing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = Night()
    told.answer(usage(1, 1), call("a", "run_command", command="make all"))
    told.tell("intent", call_id="a", tool="run_command", effect="run", label="make all")
    written(told)
    (died,) = found(capsys, "died")
    assert died == "The program ended during: Run make all. No record says why."
    (open_,) = found(capsys, "unfinished")
    assert open_.startswith("Run make all: no result; ")
    assert data(capsys)["sessions"][0]["state"] == "died"


def test_a_session_that_died_while_the_model_worked_names_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = Night()
    told.tell("request", n=1, model="claude-sonnet-5-5", messages=1)
    written(told)
    (died,) = found(capsys, "died")
    assert died == ("The program ended during: a request to claude-sonnet-5-5. No record says why.")


def test_a_question_that_nobody_answered_waits(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night()
    questions = [{"header": "DB", "question": "Which database?"}]
    told.answer(usage(1, 1), call("q", "ask_user", questions=questions))
    written(told)
    assert found(capsys, "waiting") == ["Asked, and nobody has answered: Which database?"]
    assert found(capsys, "died") == []
    assert found(capsys, "unfinished") == []


def test_errors_and_parked_requests_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night()
    told.tell("request", n=1, model=OPUS, messages=1)
    told.tell("error", error_class="overloaded", message="Overloaded.", hint="Wait.")
    written(told)
    other = Night("Go on")
    other.tell("request", n=1, model=OPUS, messages=1)
    other.tell("parked", until="2026-12-01T00:00:00Z", reason="limit", error_class="rate_limit")
    written(other, "fedcba987654")
    (error,) = found(capsys, "error")
    assert error.endswith(": Overloaded.")
    (parked,) = found(capsys, "parked")
    assert parked.startswith("Parked until ")
    assert found(capsys, "died") == []


def test_rewinds_and_what_they_left_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night("Keep this")
    told.ends("Kept.")
    last = told.records[-1].id
    left = told.prompt("Throw this away")
    told.ends("Thrown.")
    told.tell("rewind", after=last, target=left.id, left=told.records[-1].id, prompts=1)
    written(told)
    undone = found(capsys, "undone")
    assert undone[0].startswith("Rewound 1 prompt")
    assert undone[1] == "1 prompt on branches that were left: Throw this away"
    assert "1 of 1 prompt answered to the end; 1 prompt undone" in report(capsys)


def test_an_unknown_price_is_said_and_never_zero(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night()
    told.answer(usage(1_000, 10), *said("Done."), model=OTHER)
    written(told)
    text = report(capsys)
    assert "Cost: price unknown, 1,010 tokens." in text
    assert "$0" not in text
    assert "No price is known for llama3" in text
    assert data(capsys)["summary"]["money"] == {
        "cost_usd": None, "tokens": 1_010, "tokens_without_price": 1_010,
    }  # fmt: skip


def test_only_what_is_in_the_span_counts(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night("Long ago", NOW - timedelta(days=3))
    told.ends()
    told.now = BEGUN
    told.prompt("Last night")
    told.ends()
    written(told)
    value = data(capsys)
    assert [one["words"] for one in value["sessions"][0]["asked"]] == ["Last night"]
    assert value["summary"]["money"]["tokens"] == 110
    value = data(capsys, "--since", "4d", "--until", "2d")
    assert [one["words"] for one in value["sessions"][0]["asked"]] == ["Long ago"]
    assert value["sessions"][0]["state"] == "went on after that"


def test_a_fork_counts_once(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night()
    told.ends()
    written(told)
    told.now += timedelta(minutes=5)
    told.prompt("In the copy")
    told.ends()
    written(told, "fedcba987654", origin="0123456789ab")
    value = data(capsys)
    assert value["summary"]["prompts"] == 2
    assert value["summary"]["money"]["tokens"] == 220


def test_a_note_after_a_copied_turn_makes_it_no_work_of_the_fork(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = Night()
    told.ends()
    written(told)
    told.tell("note", text="This session's folder /gone no longer exists.")
    told.prompt("In the copy")
    told.ends()
    written(told, "fedcba987654", origin="0123456789ab")
    assert "2 of 2 prompts answered" in report(capsys)
    assert [one["done"]["prompts"] for one in data(capsys)["sessions"]] == [1, 1]


def test_questions_and_their_answers_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night()
    for answer, reason in (("once", ""), ("once", ""), ("no", "keep that file")):
        told.tell(
            "permission", call_id="c", tool="run_command", subject="rm x", answer=answer,
            by="person", reason=reason,
        )  # fmt: skip
    told.tell(
        "permission", call_id="c", tool="run_command", subject="ls", answer="allow", by="safe"
    )
    asked = {"question": "Keep it?"}
    told.answer(usage(100, 10), call("q", "ask_user", questions=[asked]))
    told.tell(
        "tool_result", call_id="q", name="ask_user", content=said("Yes"), is_error=False,
        summary="Yes", details={"answers": [{"chosen": ["Yes"]}], "by": "person"},
    )  # fmt: skip
    secrets = [{"prompt": "Password:", "answer": "answered"}, {"prompt": "", "answer": "x"}]
    told.came("t", "terminal", job="job-1", secrets=secrets)
    told.ends()
    written(told)
    words = report(capsys)
    assert "; 6 questions; " in words
    lines = [line.strip() for line in words.splitlines() if "Question: " in line]
    assert lines == [
        "Question: Run rm x (2 times) · allowed once",
        "Question: Run rm x · refused (keep that file)",
        "Question: Keep it? · Yes",
        "Question: A secret for job-1: Password: · answered",
        "Question: A secret for job-1 · x",
    ]
    assert all(line.partition(" · ")[2] in report(capsys, "--format", "html") for line in lines)
    value = data(capsys)
    assert value["summary"]["questions"] == 6
    assert value["sessions"][0]["exchanges"][0]["times"] == 2


def test_what_an_mcp_server_asked_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night()
    told.answer(usage(100, 10), call("m", "mcp__shop__order", item="tea"))
    told.came(
        "m", "mcp__shop__order",
        asked=[
            {
                "server": "shop", "message": "Sort?", "action": "accept",
                "answers": {"sort": "Darjeeling", "gift": True, "to": ["a", "b"], "api_key": KEY},
            },
            {"server": "shop", "message": "Pay", "url": "https://pay.test/", "action": "accept"},
            {"server": "shop", "message": "Buy more?", "action": "decline"},
            {"server": "shop", "message": "Are you there?", "action": "cancel"},
            {"server": "shop", "message": "A form of forms", "action": "error"},
            {"server": "shop", "message": "The call was over first"},
        ],
    )  # fmt: skip
    told.ends()
    written(told)
    words = report(capsys)
    assert "; 6 questions; " in words
    lines = [line.strip() for line in words.splitlines() if "Question: " in line]
    assert lines == [
        "Question: shop asks: Sort? · sort: Darjeeling, gift: yes, to: a, b, api_key: not shown",
        "Question: shop asks: Pay: https://pay.test/ · agreed",
        "Question: shop asks: Buy more? · declined",
        "Question: shop asks: Are you there? · not answered",
        "Question: shop asks: A form of forms · couldn't be shown",
        "Question: shop asks: The call was over first · not answered",
    ]
    assert all(line.partition(": ")[2] in report(capsys, "--format", "md") for line in lines[1:])
    assert data(capsys)["summary"]["questions"] == 6


def test_goals_side_questions_and_notes_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night()
    goal: dict[str, Any] = {"goal": "Pass the tests.", "rounds": 20, "usd": 5.0, "seconds": 7200.0}
    for state, number in (("set", 1), ("checked", 1), ("checked", 2), ("met", 3)):
        told.tell("goal", state=state, round=number, spent_usd=0.04, spent_s=52.0, **goal)
    told.tell("goal", state="set", round=1, **goal)
    told.tell(
        "side_question", question="Which file?", answer="That one.", outcome="answered",
        model=OPUS, usage=usage(100, 10), n=1, seconds=1.0,
    )  # fmt: skip
    told.ends()
    told.tell("note", text="You typed in job-1.")
    told.tell("note", text="You typed in job-1.")
    written(told)
    lines = [line.strip() for line in report(capsys).splitlines()]
    assert "Goal: Pass the tests. · met, round 3 of 20 · $0.04 of $5.00 · 52 s of 2 h" in lines
    assert any(line.startswith("Goal: Pass the tests. · not met yet, round 1 ") for line in lines)
    assert any(line.startswith("On the side: Which file? · answered, 100 tokens") for line in lines)
    assert "Noted: You typed in job-1. (2 times)" in lines
    summary = data(capsys)["summary"]
    assert (summary["goals"], summary["side_questions"]) == (2, 1)


def test_an_answer_that_a_kill_cut_off_is_no_silent_cost(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = Night()
    told.tell("request", n=1, model=OPUS, messages=1)
    told.tell("goal", state="continued", goal="Go on", round=1, rounds=4)
    told.tell("request", n=2, model=OPUS, messages=1)
    told.ends()
    written(told)
    assert "1 answer cut off or lost: what that cost is in no record" in report(capsys)
    assert data(capsys)["sessions"][0]["done"]["lost_answers"] == 1


def test_a_repeated_prompt_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night("Look at the build")
    told.ends()
    told.prompt("Look at the build")
    told.ends()
    written(told)
    assert report(capsys).count("Asked: Look at the build (2 times)") == 1
    assert data(capsys)["summary"]["prompts"] == 2


class TestSubAgents:
    def test_what_is_red_in_one_is_red(self, capsys: pytest.CaptureFixture[str]) -> None:
        told = Night()
        told.ends("The sub-agent did it.")
        child = Night("Write the lexer")
        child.run("pytest -q", 1, "1 failed")
        child.ends()
        written_below(written(told), child, "fedcba987654")
        assert found(capsys, "red") == [
            "Sub-agent fedcba987654: pytest was red when last run: pytest -q"
        ]
        assert data(capsys)["summary"]["sessions"] == 1

    def test_what_was_green_later_above_it_is_not(self, capsys: pytest.CaptureFixture[str]) -> None:
        child = Night("Write the lexer")
        child.run("pytest -q", 1, "1 failed")
        told = Night(now=child.now + timedelta(minutes=1))
        told.run("pytest -q", 0, "1 passed")
        told.ends()
        written_below(written(told), child, "fedcba987654")
        assert found(capsys, "red") == []

    def test_only_a_green_run_of_the_same_part_answers_it(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        child = Night("Write the lexer")
        child.run("cd app && pytest", 1, "1 failed")
        told = Night(now=child.now + timedelta(minutes=1))
        told.run("pytest", 0, "1 passed")
        told.run("cd app && pytest -k lexer", 0, "1 passed")
        path = written(told)
        below = written_below(path, child, "fedcba987654")
        below.write_bytes(below.read_bytes().replace(b'"/w"', b'"/worktrees/1"'))
        at(below, child.now)
        assert len(found(capsys, "red")) == 1
        told.run("cd app && pytest", 0, "1 passed")
        written(told)
        assert found(capsys, "red") == []

    def test_what_one_changed_is_unchecked_unless_it_checked(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        told = Night()
        told.tell(
            "file_change", call_id="t", session="fedcba987654", path="/w/lexer.py",
            before_sha256=None, after_sha256="b",
        )  # fmt: skip
        told.ends()
        path = written(told)
        child = Night("Write the lexer")
        written_below(path, child, "fedcba987654")
        (words,) = found(capsys, "unchecked")
        assert words.startswith("1 file changed (lexer.py)")
        child.run("pytest -q", 0, "1 passed")
        written_below(path, child, "fedcba987654")
        assert found(capsys, "unchecked") == []


class TestNotKnown:
    def test_damage_is_a_row(self, capsys: pytest.CaptureFixture[str]) -> None:
        told = Night()
        told.ends()
        path = written(told)
        path.write_bytes(path.read_bytes() + b'{"type":"tool_res')
        at(path, told.now)
        (words,) = found(capsys, "unknown")
        assert words.startswith("Damage in the file, line 4 ")
        assert "damaged" in data(capsys)["sessions"][0]["state"]

    def test_a_file_that_is_no_session_is_a_row(self, capsys: pytest.CaptureFixture[str]) -> None:
        path = written(Night())
        path.write_bytes(b"\0" * 4_000)
        at(path, NOW)
        assert "It changed in this time; what was done in it can't be read." in found(
            capsys, "unknown"
        )

    def test_a_file_that_cannot_be_opened_is_a_row(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = written(Night())
        path.unlink()
        path.symlink_to("/nowhere")
        (words,) = found(capsys, "unknown")
        assert words.startswith("Can't read ")

    @pytest.mark.parametrize("whole", [True, False])
    def test_a_folder_that_cannot_be_read_is_a_row(
        self, whole: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        told = Night()
        told.run("pytest", 1, "1 failed")
        closed = written(told).parent
        closed = closed.parent if whole else closed
        listed = os.scandir

        def refused(path: Any = ".") -> Any:
            if str(path) == str(closed):
                raise PermissionError(13, "Permission denied", str(path))
            return listed(path)

        monkeypatch.setattr(os, "scandir", refused)
        (words,) = found(capsys, "unknown")
        assert words.startswith("Can't read ~/")
        assert words.endswith(f"/{closed.name}: what ran there isn't in this report.")
        assert "Nothing ran" not in report(capsys)

    def test_a_clock_that_jumped_is_a_row(self, capsys: pytest.CaptureFixture[str]) -> None:
        told = Night()
        told.now -= timedelta(minutes=30)
        told.ends()
        told.now = NOW + timedelta(days=2)
        told.prompt("From the future")
        told.ends()
        written(told, changed=NOW)
        words = found(capsys, "unknown")
        assert any(one.startswith("The clock jumped back by 30 min") for one in words)
        assert any("from the future" in one for one in words)

    @pytest.mark.parametrize("time_", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
    @pytest.mark.parametrize("form", FORMS)
    def test_a_time_at_the_end_of_all_times_stops_no_report(
        self, time_: str, form: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        told = Night()
        told.run("pytest", 1, "1 failed")
        told.records[-1] = replace(told.records[-1], time=time_)
        told.ends()
        path = written(told)
        report(capsys, "--format", form)
        assert main.main(["sessions", "timeline", str(path)]) == 0
        assert "pytest" in capsys.readouterr().out
        assert any("1 record without a readable time" in one for one in found(capsys, "unknown"))
        assert found(capsys, "red") == ["pytest was red when last run: pytest"]

    def test_counts_of_tokens_that_are_no_numbers_stop_no_report(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        told = Night()
        told.answer({"input_tokens": True, "output_tokens": 7}, *said("Done."))
        told.tell("sub_agent", spent=[{"model": OPUS, "requests": True, "usage": usage(1, 2)}])
        told.ends()
        written(told)
        assert data(capsys)["summary"]["money"]["tokens"] == 120
        assert data(capsys)["summary"]["money"]["tokens"] == 120, "from the index"

    def test_a_file_that_changed_without_a_record_is_a_row(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        told = Night(now=NOW - timedelta(days=3))
        told.ends()
        written(told, changed=NOW)
        (words,) = found(capsys, "unknown")
        assert words.startswith("The file changed, but no record in it is of this time")

    def test_other_agents_sessions_are_named(
        self, home: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = home / ".claude" / "projects" / "x"
        folder.mkdir(parents=True)
        (folder / "a.jsonl").write_text("{}\n")
        assert found(capsys, "unknown") == ["1 session of Claude Code: not looked into."]


def test_a_session_that_runs_is_shown_as_running(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night()
    told.answer(usage(1, 1), call("a", "run_command", command="pytest -q"))
    lock = SessionLock(written(told), clock=FakeClock())
    lock.take()
    try:
        assert data(capsys)["sessions"][0]["state"] == "running"
        assert found(capsys, "died") == []
        assert verdict(capsys).startswith("Nothing is red so far: ")
        assert "1 session, 1 still open;" in report(capsys)
    finally:
        lock.release()


def test_nothing_ran_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert verdict(capsys) == "Nothing ran."
    Page(report(capsys, "--format", "html"))


def test_the_usual_time_is_since_yesterday_evening(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["report", "--format", "json"]) == 0
    since = datetime.fromisoformat(json.loads(capsys.readouterr().out)["since"])
    yesterday = (datetime.now(UTC) - timedelta(days=1)).date()
    assert (since.date(), since.hour, since.minute) == (yesterday, 18, 0)


def test_yesterday_is_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    value = data(capsys, "--since", "yesterday", "--until", "today")
    assert value["since"][11:19] == value["until"][11:19] == "00:00:00"
    assert main.main(["report", "--since", "today", "--until", "yesterday"]) == 2


def test_only_the_sessions_of_a_folder(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Night()
    told.ends()
    path = written(told)
    place = home / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    assert data(capsys, "--here")["sessions"] == []
    own = folders().sessions_of(place)
    own.mkdir(parents=True)
    shutil.copy2(path, own)
    assert len(data(capsys, "--here")["sessions"]) == 1


def test_tasks_of_a_run_that_are_not_done(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = Night("")
    told.tell("task", index=0, group="g", text="one")
    told.prompt("one")
    told.ends()
    target = home / "project"
    written(told, cwd=str(target))
    tasks = [
        {"index": 0, "group": "g", "task": "one", "status": "completed", "unchanged": True},
        {"index": 1, "group": "g", "task": "two", "status": "failed", "message": "tests red"},
        {"index": 2, "group": "g", "task": "three"},
    ]
    tasks[0]["session_id"] = "0123456789ab"
    state = {"task_file": f"{target}/tasks.md", "sha256": "", "tasks": tasks}
    folder = target / ".holdfast" / "run"
    folder.mkdir(parents=True)
    (folder / "state.json").write_text(json.dumps(state | {"started_at": timestamp(BEGUN)}))
    value = data(capsys)
    assert value["tasks"] == {"completed without a change": 1, "failed": 1, "pending": 1}
    assert value["sessions"][0]["started_by"] == "task file"
    unfinished = found(capsys, "unfinished")
    assert unfinished[0].startswith("Task 2 of tasks.md, two: failed: tests red.")
    assert unfinished[1] == "1 task of tasks.md not begun; no run works on them."
    (folder / "state.json").write_text("{")
    assert any("Can't read the run's state" in one for one in found(capsys, "unknown"))


def test_how_a_session_began_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night()
    told.ends()
    for id_, started in (("aaaaaaaaaaaa", "print"), ("bbbbbbbbbbbb", "background")):
        written(told, id_, started=started)
    written(told, "cccccccccccc")
    assert [one["started_by"] for one in data(capsys)["sessions"]] == [
        "-p", "background", "not recorded",
    ]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_what_sessions_contain_is_only_text(capsys: pytest.CaptureFixture[str], form: str) -> None:
    told = Night(f"key {KEY} " + " ".join(HOSTILE))
    told.prompt(HOSTILE[4] + " and more")
    told.prompt("y" * 58 + " " + KEY)
    told.run("./sign.sh " + "y" * 285 + " " + KEY, 1)
    for nasty in HOSTILE:
        told.run(f"pytest {nasty}", 1, nasty * 3)
        told.run(f"x {nasty}", 1, nasty * 3)
    told.run("./sign.sh", 1, f"{'x' * 1_150}\n{KEY}\nline")
    told.tell("error", error_class=HOSTILE[0], message=HOSTILE[2], hint=HOSTILE[3])
    written(told, "$(touch x);", cwd="/w/" + HOSTILE[1])
    text = report(capsys, "--format", form)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert KEY[:18] not in text
    assert "holdfast -r $(touch" not in text
    if form == "html":
        page = Page(text)
        assert not {"script", "img", "iframe", "object"} & {*page.tags}
        assert all(link.startswith("#") for link in page.links)
        assert {link[1:] for link in page.links} <= {*page.ids}
        assert len(page.ids) == len({*page.ids})
        assert not [name for name, _ in page.attributes if name.startswith("on")]
        assert "default-src 'none'" in text
    if form == "md":
        assert "<script" not in text.replace("\\<", "")


def test_each_claim_leads_to_its_session(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night()
    record = told.run("pytest", 1, "1 failed")
    told.ends()
    written(told)
    page = Page(report(capsys, "--format", "html"))
    assert "#n1-0" in page.links
    assert "n1-0" in page.ids
    assert record.id in page.text


@pytest.mark.parametrize("width", [40, 80, 200])
def test_lines_fit_the_terminal(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Night("直してください " * 20)
    told.run("pytest " + "x" * 300, 1, "failed")
    told.edit("a/" * 60 + "b.py")
    told.ends("漢字 " * 60)
    written(told)

    def columns(_stream: object) -> int:
        return width

    monkeypatch.setattr("tui.cli.report.terminal_width", columns)
    lines = report(capsys).splitlines()
    assert max(map(cells, lines)) <= width
    assert all(ord(char) < 0x2500 or ord(char) > 0x2E80 for line in lines for char in line)


def test_a_report_is_written_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "night.html"
    report(capsys, "--format", "html", "-o", str(file))
    Page(file.read_text())
    assert main.main(["report", "-o", str(file)]) == 1


def test_a_dash_is_standard_output(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    assert report(capsys, "--format", "markdown", "-o", "-").startswith("# What ran\n")
    assert not (home / "-").exists()


def test_sessions_outside_of_the_span_are_not_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    actual = os.open

    def watched(path: Any, *given: Any, **more: Any) -> int:
        opened.append(str(path))
        return actual(path, *given, **more)

    old = Night("Old", NOW - timedelta(days=30))
    for _ in range(30):
        old.run("pytest", 1, "failed " * 50)
    old.ends()
    for number in range(960):
        written(old, f"{number:012x}")
    new = Night()
    for _ in range(30):
        new.run("pytest", 0, "passed " * 50)
        new.edit("a.py")
    new.ends()
    for number in range(40):
        written(new, f"f{number:011x}")
    data(capsys)  # what is loaded once, is
    shutil.rmtree(folders().cache)
    monkeypatch.setattr(os, "open", watched)
    before = resource.getrusage(resource.RUSAGE_SELF)
    value = data(capsys)
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert value["summary"]["sessions"] == 40
    read = {one for one in opened if one.endswith(".jsonl")}
    assert len(read) == 40
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < 3


def test_a_page_of_a_thousand_sessions_stays_small(capsys: pytest.CaptureFixture[str]) -> None:
    told = Night("Fix " + "the parser " * 20)
    for number in range(12):
        told.run(f"./deploy{number}.sh", 1, "no route to that host " * 50)
    told.ends()
    for number in range(1_000):
        written(told, f"{number:012x}")
    text = report(capsys, "--format", "html")
    assert len(text.encode()) < 3_000_000
    page = Page(text)
    assert {link[1:] for link in page.links} <= {*page.ids}
    assert "12,000 failed" in page.text
    assert "more sessions in the table only" in page.text
