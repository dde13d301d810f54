"""What a person is asked because of everyday commands, from what these really printed.

`record_stopped_commands` made the records; `stopped_commands.json` names the versions.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.permissions.sandbox.conftest import runnable
from tests.permissions.sandbox.record_stopped_commands import (
    Expected,
    is_missing,
    known,
    run,
    table,
)
from tui.core.workspace import Workspace
from tui.permissions.named_needs import named_needs
from tui.permissions.policy import Policy, decide
from tui.permissions.sandbox.engine import Engine, Sandbox
from tui.permissions.sandbox.explain import Explanation, Met, explain_failure, languages_of
from tui.permissions.sandbox.walls import Level, Walls
from tui.permissions.types import Call, Decision

HOLDS = (Level.READ_ONLY, Level.WORKSPACE, Level.NETWORK)
TABLE = table()


SAID = known().commands
FIRST_TRIES = [one for one in TABLE if not one.before]


class Place:
    """A workspace and a home, without a sandbox."""

    def __init__(self, base: Path) -> None:
        self.root, self.home = base / "work", base / "home"
        for folder in (self.root, self.home):
            folder.mkdir()
        self.workspace = Workspace(self.root)
        self.walls = Walls(
            workspace=self.root, session=base / "state", cache=base / "cache", home=self.home
        )

    def decide(self, command: str) -> Decision:
        call = Call("c0", "run_command", "run", command, command)
        return decide(
            call, Policy(home=self.home), mode="ask", elevated=False, grants=(),
            workspace=self.workspace, holds=HOLDS,
        )  # fmt: skip

    def explain(
        self, command: str, code: int, output: str, level: Level = Level.READ_ONLY,
        engine: str = "bubblewrap", language: str = "C.UTF-8", *, signs: bool = False,
    ) -> Explanation:  # fmt: skip
        text = output.replace("@WS@", str(self.root)).replace("@HOME@", str(self.home))
        met = Met.in_output(
            text, languages_of({"LANG": language}), denies=engine == Engine.LANDLOCK
        )
        named = named_needs(command, self.root, self.workspace, self.home)
        said = explain_failure(met, level, self.walls, named, failed=code != 0, signs=signs)
        assert said is not None
        return said


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    return made


@pytest.mark.parametrize("one", TABLE, ids=lambda one: one.command)
def test_what_everyday_commands_ask_for(place: Place, one: Expected) -> None:
    decision = place.decide(one.command)
    if one.before:
        assert (decision.answer, decision.level) == ("ask", one.level)
        return
    assert (decision.answer, decision.level) == ("allow", Level.READ_ONLY)
    for engine, (code, output) in SAID[one.command].items():
        said = place.explain(one.command, code, output, engine=engine)
        assert said.level is one.level, (engine, code, output, said)


def test_the_table_is_large_and_its_records_are_there() -> None:
    assert len([one for one in TABLE if one.level is Level.WORKSPACE]) >= 120
    missing = [one.command for one in FIRST_TRIES if not SAID.get(one.command)]
    assert missing == []


BASH = "/usr/bin/bash: line 1: notes.txt: Read-only file system"


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("echo hi > notes.txt", BASH),
        ("make", "make: /etc/shadow: Read-only file system"),
        ("python3 app.py", "OSError: [Errno 30] Read-only file system: '/home/x/.bashrc'"),
        ("python3 app.py", "~/.ssh/authorized_keys: Read-only file system"),
        ("python3 app.py", "touch: cannot touch '../../x': Read-only file system"),
        ("node app.js", "{ errno: -30, code: 'EROFS', path: '/usr/lib/x' }"),
        ("node app.js", "Error: errno: -30"),
        ("python3 app.py", "cp: cannot create '/etc/x': Device or resource busy"),
        ("cat /etc/hosts > hosts", "/etc/hosts: hosts: Read-only file system"),
        ("npm run x", ".git/config: could not lock config file: Read-only file system"),
        ("make", "error: gpg failed to sign the data\nx: Read-only file system"),
        ("git stash", ""),
        ("vim -es -c wq README.md", ""),
    ],
)
def test_no_text_says_where(place: Place, command: str, output: str) -> None:
    """FINDINGS A5: what a program prints says that a wall was met, never which place it needs."""
    said = place.explain(command, 1, output)
    assert said.level in {Level.WORKSPACE, Level.OUTSIDE}
    expected = Level.OUTSIDE if command.startswith("cat /etc/hosts") else Level.WORKSPACE
    assert said.level is expected, said


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("./x.sh", "error: gpg failed to sign the data"),
        ("git commit -m x", "error: gpg failed to sign the data"),
        ("make", "unshare: unshare failed: Operation not permitted"),
        ("make", "cat: /etc/shadow: Permission denied"),
        ("make", "All 3 tests failed"),
        ("grep -q x README.md", ""),
        ("cd src; git stash list; grep -q x README.md", ""),
        ("echo; git branch --show-current; grep -q x README.md", ""),
        ("echo; git tag -l 'v*'; false", ""),
        ("git worktree list; ls missing", "ls: cannot access 'missing'"),
        ("echo; git submodule status; false", ""),
        ("ls -d build", "ls: cannot access 'build': No such file or directory"),
        ("grep -o pattern README.md", ""),
        ("test -d build", ""),
    ],
)
def test_an_answer_that_cannot_help_is_not_offered(place: Place, command: str, output: str) -> None:
    said = place.explain(command, 1, output)
    assert said.level is (Level.WORKSPACE if command.startswith("git commit") else None)


def test_a_commit_that_git_signs_needs_the_key(place: Place) -> None:
    output = "error: gpg failed to sign the data"
    assert place.explain("git commit -m x", 1, output, signs=True).level is Level.OUTSIDE
    assert place.explain("git commit -S -m x", 1, output).level is Level.OUTSIDE
    assert place.explain("make commit", 1, output, signs=True).level is None


def test_a_network_that_a_program_only_names_is_asked_for_and_no_more(place: Place) -> None:
    """A statement about a class of walls: the network, visible and narrow; never outside."""
    output = "Could not resolve host: example.org"
    assert place.explain("make", 1, output).level is Level.NETWORK
    assert place.explain("make", 1, output, Level.WORKSPACE).level is Level.NETWORK
    assert place.explain("make", 1, output, Level.NETWORK).level is None
    assert place.explain("make", 0, output).level is None
    assert place.explain("curl http://localhost:1/", 7, "").level is None


def test_outside_is_next_only_where_the_workspace_was_tried(place: Place) -> None:
    said = place.explain("make", 2, "out.txt: Read-only file system", Level.WORKSPACE)
    assert (said.level, said.tried) == (Level.OUTSIDE, True)
    assert said.needs == "needs to write a file that the sandbox keeps read-only"


def test_the_files_that_a_command_names_are_named(place: Place) -> None:
    said = place.explain("echo hi > notes.txt", 1, BASH)
    assert said.needs == "needs to write notes.txt"
    said = place.explain("git config --global user.name x", 255, "Read-only file system")
    assert said.needs == "needs to write ~/.gitconfig"
    said = place.explain("git branch -d topic", 1, "Read-only file system")
    assert said.needs == "needs to write a file that the sandbox keeps read-only"
    said = place.explain("git diff --output=x.diff", 1, "Read-only file system")
    assert said.needs == "needs to write x.diff"
    said = place.explain("touch a b c d e", 1, "Read-only file system")
    assert said.needs == "needs to write a, b, c, 2 more"


@pytest.mark.parametrize(
    ("language", "output", "level"),
    [
        ("de_DE.UTF-8", "bash: Zeile 1: x: Das Dateisystem ist nur lesbar", Level.WORKSPACE),
        ("fr_FR.UTF-8", "bash: ligne 1: x: Système de fichiers accessible en lecture seulement",
         Level.WORKSPACE),
        ("ja_JP.UTF-8", "bash: 1 行: x: 読み込み専用ファイルシステムです", Level.WORKSPACE),
        ("de_DE.UTF-8", "bash: connect: Das Netzwerk ist nicht erreichbar", Level.NETWORK),
        ("de_DE.UTF-8", "x: Der Name oder der Dienst ist nicht bekannt", Level.NETWORK),
    ],
)  # fmt: skip
def test_errors_in_other_languages_ask_for_the_same(
    place: Place, language: str, output: str, level: Level
) -> None:
    """As glibc 2.36 words them."""
    if not Path("/usr/share/locale", language[:2], "LC_MESSAGES/libc.mo").exists():
        pytest.skip("the messages of that language are not installed")
    assert place.explain("make", 2, output, language=language).level is level


@pytest.mark.slow
@pytest.mark.parametrize("engine", [Engine.BUBBLEWRAP, Engine.LAUNCHER])
async def test_the_same_for_real(place: Place, engine: Engine, probe_folder: Path) -> None:
    await asyncio.to_thread(runnable, engine, probe_folder)
    sandbox = Sandbox(engine)
    wrong: list[str] = []
    for one in FIRST_TRIES[:: 4 if engine is Engine.BUBBLEWRAP else 9]:
        if "../" in one.command:
            continue  # beside a scene in /tmp lies the sandbox's own /tmp, which takes the write
        code, output = await run(sandbox, one.command)
        said = place.explain(one.command, code, output, engine=engine)
        if not is_missing(code, output) and said.level is not one.level:
            wrong.append(f"{one.command}: {said} {code} {output}")
    await asyncio.to_thread(sandbox.close)
    assert wrong == []


def test_after_a_cd_that_may_fail_files_in_both_folders_are_named(place: Place) -> None:
    def files(command: str) -> set[Path]:
        return {*named_needs(command, place.root, place.workspace, place.home).files}

    root = place.root
    assert files("cd src; touch a > b") == {
        root / "src" / "a", root / "a", root / "src" / "b", root / "b",
    }  # fmt: skip
    assert files("cd src && touch a > b") == {root / "src" / "a", root / "src" / "b"}
