"""Branches in a real program: left by a rewind, listed, searched, shown, and stood on again."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.e2e.test_editing import turn
from tests.support.preloaded import PLAIN
from tests.support.program import Program
from tests.support.terminal import HOLDFAST, Terminal


def git(work: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=work, check=True)


def test_what_a_rewind_left_is_reached_by_every_way(
    work: Path, home: Path, env: dict[str, str], script: Callable[[str], str], holdfast: Program
) -> None:
    git(work, "init", "-qb", "main")
    git(work, "add", "-A")
    git(work, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")
    git(work, "branch", "other")
    command = "git checkout -q other && echo walrus > notes.txt"
    path = script(turn("run_command", command=command) + '[[turn]]\ntext = "A walrus is in it."\n')
    words = [*HOLDFAST, "--plain", "--practice-script", path, "--no-sandbox"]
    rule = ["--allow", f"run_command({command})"]
    with Terminal([*words, *rule], cwd=work, env=env, preload=PLAIN) as screen:
        screen.wait_for("Ctrl+D quits.", "> ")
        screen.type("write a note\r")
        screen.wait_for("A walrus is in it. > ")
        screen.forget()
        screen.type("/rewind 1\r")
        screen.wait_for(
            "Git was on main at that prompt; now it is on other.",
            "`git switch main` first.",
            "1 to 2, or just Enter for none:",
        )
        screen.type("1\r")
        screen.wait_for(
            "Rewound 1 prompt, with the files.", "Git is still on other; these are the", "> "
        )
        assert not (work / "notes.txt").exists()
        screen.forget()
        screen.type("\x15/tree\r")  # in the place of the prompt that is back
        screen.wait_for("2 branches. Continue on which?", "write a note, 1 prompt", "you are here")
        screen.wait_for("1 to 3, or just Enter for none:")
        screen.type("1\r")
        screen.wait_for("1 to 2, or just Enter for none:")
        screen.type("1\r")
        screen.wait_for("Switched to another branch, with the files.", "Restored 1 of 1", "> ")
        assert (work / "notes.txt").read_text() == "walrus\n"
        screen.forget()
        screen.type("/rewind undo\r")
        screen.wait_for("Switched to another branch, with the files.", "Restored 1 of 1", "> ")
        assert not (work / "notes.txt").exists()
        screen.forget()
        screen.type("ask for something else\r")  # the script begins again with each opening
        screen.wait_for("A walrus is in it. > ")
        screen.type("\x04\x04")
    (record,) = (home / "data" / "sessions").rglob("*.jsonl")

    def sessions(*argv: str, code: int = 0) -> str:
        run = holdfast("sessions", *argv, code=code)
        return run.stdout if code == 0 else run.stderr

    listed = json.loads(sessions("tree", str(record), "--json"))["branches"]
    assert [(one["first"], one["current"]) for one in listed] == [
        ("write a note", False), ("ask for something else", True),
    ]  # fmt: skip
    leaf = listed[0]["leaf"]
    assert "write a note" not in sessions("show", str(record))
    for action in ("show", "export", "report", "view"):
        assert "write a note" in sessions(action, str(record), "--branch", leaf), action
    hits = json.loads(sessions("search", "write a note", "--json"))
    assert [hit["branch"] for hit in hits] == [leaf]
    assert f"[branch {leaf}]" in sessions("search", "write a note")
    assert "sessions tree ID" in sessions("show", str(record), "--branch", "f00", code=4)
    assert "Which branch?" in sessions("show", str(record), "--branch", "", code=2)
    assert "any branch" in sessions("view", str(record), "--branch", leaf, "--at", "1", code=2)
