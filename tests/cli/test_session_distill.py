"""`holdfast sessions distill`: a session as a script, a task file, a skill."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.session.checkpoints.test_scratch import tree_of
from tests.support.recorded import edit, run, session, write
from tui.batch.taskfile import parse
from tui.cli.main import main
from tui.core.paths import folders


def work(root: Path) -> str:
    """Two prompts with detours: an edit that is undone, a command that fails, reading, a check."""
    return session(
        root,
        [
            ("read_file", {"path": "a"}),
            write("b", "b1\n"),
            edit("a", "one", "wrong"),
            edit("a", "wrong", "one"),
            run("cat a"),
            run("test -e nothing"),
            run("printf '\\0x' > bin; chmod 755 bin; ln -s a link"),
        ],
        [edit("b", "b1", "b2"), run("bash -c 'grep -q b2 b'")],
        prompts=("make b", "b2, please"),
    )


def distilled(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    main(["sessions", "distill", *words, "--json"])
    return json.loads(capsys.readouterr().out)


def test_the_script_gives_the_same_files_in_a_fresh_clone(
    root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    id_ = work(root)
    out = tmp_path / "steps.sh"
    assert main(["sessions", "distill", id_, "--check", "--out", str(out)]) == 0
    err = capsys.readouterr().err
    assert "Checked: it gives the same files." in err
    text = out.read_text()
    assert "wrong" not in text
    assert "cat a" not in text
    assert "nothing" not in text
    assert "# request 2, call toolu_write_file: write_file b  [make b]\n" in text
    assert """check . 'bash -c '"'"'grep -q b2 b'"'"''\n""" in text
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "a").write_text("one\n")
    subprocess.run(["bash", str(out)], cwd=clone, check=True)
    wanted = {n: e for n, e in tree_of(root).items() if not n.startswith(".holdfast")}
    assert tree_of(clone) == wanted


def test_what_the_script_cannot_do_is_found_by_its_check(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = session(root, [run("date +%N > time"), run("echo 1 > b")])
    assert main(["sessions", "distill", id_, "--check"]) == 1
    err = capsys.readouterr().err
    assert "Checked: 1 path not as in the session:\n  time\n" in err
    found = distilled(capsys, id_, "--check")
    assert found["check"]["different"] == ["time"]
    assert [one["command"] for one in found["steps"]] == ["date +%N > time", "echo 1 > b"]


def test_a_task_file_has_the_prompts_with_their_checks(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = work(root)
    assert main(["sessions", "distill", id_, "--as", "tasks"]) == 0
    tasks = parse(capsys.readouterr().out.encode()).tasks
    assert [task.text for task in tasks] == [
        "make b",
        "b2, please. It is done when this succeeds: `bash -c 'grep -q b2 b'`",
    ]


def test_a_skill_quotes_what_the_person_corrected(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = work(root)
    assert main(["sessions", "distill", id_, "--as", "skill"]) == 0
    out = capsys.readouterr().out
    assert "name: make-b\n" in out
    assert "1. Change `b`: make b\n" in out
    assert "> b2, please\n" in out
    assert "- `bash -c 'grep -q b2 b'` succeeds.\n" in out


def test_what_only_prepares_the_folder_is_run_again_and_named(
    root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".gitignore").write_text("deps\n__pycache__\n")
    id_ = session(
        root,
        [
            run("mkdir deps && echo lib > deps/lib"),
            run("cat deps/lib > b"),
            run("mkdir __pycache__ && echo x > __pycache__/c"),
        ],
    )
    out = tmp_path / "steps.sh"
    assert main(["sessions", "distill", id_, "--check", "--out", str(out)]) == 0
    err = capsys.readouterr().err
    assert "step 1 changed only what git ignores, which isn't checked: mkdir deps && " in err
    assert "Checked: it gives the same files." in err
    found = distilled(capsys, id_)
    assert [one["paths"] for one in found["steps"]] == [[], ["b"]]
    assert "check . 'mkdir __pycache__" in found["text"]
    clone = tmp_path / "clone"
    clone.mkdir()
    subprocess.run(["bash", str(out)], cwd=clone, check=True)
    assert (clone / "b").read_text() == "lib\n"


def test_secrets_of_a_session_are_removed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = "sk-ant-api03-" + "B" * 80
    (root / "there").write_text(f"{key}\n")
    id_ = session(
        root, [write("env", f"KEY={key}\n"), run("tee out < there")], prompts=(f"use {key}",)
    )
    told = distilled(capsys, id_, "--check")
    assert "[secret removed]" in told["check"]["output"]
    assert key not in json.dumps(told)
    for shape in ("script", "tasks", "skill"):
        assert main(["sessions", "distill", id_, "--as", shape]) == 0
        out, err = capsys.readouterr()
        assert key not in out
    assert main(["sessions", "distill", id_]) == 0
    err = capsys.readouterr().err
    assert "a secret was removed from ./env" in err


def test_a_session_without_checkpoints_is_said(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    id_ = session(root, [])
    assert main(["sessions", "distill", id_]) == 1
    assert "no checkpoints" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        "rm -f .distilled*; mkdir -p .distilled-x; echo 1 > b",
        "for f in .distilled*; do rm -f $f; mkdir $f; done; echo 1 > b",
        "mkdir -p d && echo 1 > d/b && chmod 0 d/b d",
        "mkfifo p; ln -s p q; echo 1 > b; truncate -s 30G huge",
    ],
)
def test_a_script_that_leaves_odd_things_is_checked(
    root: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    id_ = session(root, [run("echo 1 > b")])
    (path,) = folders().data.rglob(f"*{id_}*.jsonl")
    path.write_text(path.read_text().replace("echo 1 > b", command))
    found = distilled(capsys, id_, "--check")
    assert found["steps"][0]["command"] == command
    assert found["check"]["exit_code"] == 0
    assert "b" not in found["check"]["different"] or "chmod" in command
