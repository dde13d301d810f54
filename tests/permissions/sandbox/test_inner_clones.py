"""Clones inside a workspace: a stopped deletion leaves a clone, and git never takes the repository
around for one that is gone."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from tests.permissions.sandbox.conftest import Scene
from tests.permissions.sandbox.test_attacks_in_steps import BASH, Played, without_walls
from tui.core.git.repository import Repository
from tui.permissions.sandbox import git_walls
from tui.permissions.sandbox.engine import Engine
from tui.permissions.sandbox.inner_clones import stopped_at, worked_in
from tui.permissions.sandbox.walls import Level

MAKE = """
mkdir build; git init -q build/dep; cd build/dep
for i in 1 2 3; do echo $i > f$i; git add .; git commit -qm $i; done
"""
DELETIONS = (
    "rm -rf build",
    "git clean -ffdxq",
    "find build -delete",
    "python3 -c \"import shutil; shutil.rmtree('build')\"",
    "mv build elsewhere",
    "cd build/dep && rm -rf .git",
    "mkdir e; mv build/dep e",
)


def git(scene: Scene, *words: str, at: str = "build/dep") -> str:
    done = subprocess.run(
        ["git", "-C", str(scene.workspace / at), *words],
        env=scene.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return (done.stdout + done.stderr).strip()


def is_whole(scene: Scene) -> bool:
    top = git(scene, "rev-parse", "--show-toplevel")
    return top == str(scene.workspace / "build/dep") and not git(scene, "fsck", "--full")


@pytest.mark.parametrize("command", DELETIONS)
async def test_a_stopped_deletion_leaves_a_clone(
    engine: Engine, scene: Scene, command: str
) -> None:
    without_walls(scene, MAKE)
    played = Played.begin(scene, engine)
    try:
        said = await played.step(command, Level.WORKSPACE)
        assert is_whole(scene)
        assert git(scene, "rev-list", "--count", "HEAD") == "3"
        found = played.confinement.traces.stopped_clones(command, scene.workspace, said)
        assert found is not None
        assert found.words(scene.workspace) == "deletes or moves the clone build/dep whole"
    finally:
        await played.confinement.close()


@pytest.mark.parametrize(
    "command",
    [
        "git -C build/dep commit -q --allow-empty -m y",
        "cd build/dep && git switch -qc b && git commit -q --allow-empty -m \"$(printf '%s' y)\"",
        "cd build && git --git-dir=dep/.git --work-tree=dep commit -q --allow-empty -m y",
    ],
)
async def test_git_works_in_a_clone(engine: Engine, scene: Scene, command: str) -> None:
    without_walls(scene, MAKE)
    played = Played.begin(scene, engine)
    try:
        assert await played.step(command, Level.WORKSPACE) == ""
        assert git(scene, "rev-list", "--count", "HEAD") == "4"
        settings = (scene.workspace / "build/dep/.git/config").read_bytes()
        await played.step("git -C build/dep config core.fsmonitor evil", Level.WORKSPACE)
        assert (scene.workspace / "build/dep/.git/config").read_bytes() == settings
    finally:
        await played.confinement.close()


@pytest.mark.parametrize(
    "command",
    [
        "git -C build/dep -c alias.x='!rm -rf ../../build' x",
        "git -C build/dep -c alias.x='!echo nonsense > .git/HEAD' x",
        "git -C build/dep -c alias.x='!mv .git/objects .git/o' x",
    ],
)
async def test_what_is_left_of_a_clone_stops_git(
    engine: Engine, scene: Scene, command: str
) -> None:
    without_walls(scene, MAKE)
    played = Played.begin(scene, engine)
    try:
        start = await played.start([BASH, "-c", command], Level.WORKSPACE)
        await start.wait()
        (line,) = await played.confinement.traces.tidy()
        start.discard()
    finally:
        await played.confinement.close()
    link = scene.workspace / "build/dep/.git"
    assert line.startswith(f"moved {link} to ")
    assert "it is no repository any more" in line
    (scene.workspace / "file.txt").write_text("mine\n")
    assert "not a git repository" in git(scene, "reset", "--hard")
    assert (scene.workspace / "file.txt").read_text() == "mine\n"
    undo = line.rpartition("If you made it: ")[2]
    without_walls(scene, undo)
    assert (link / "config").exists()


async def test_what_is_left_of_a_clone_from_before_is_moved_before_a_command(
    engine: Engine, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_walls(scene, f"{MAKE}rm -rf .git/HEAD .git/objects; mkdir ../marker ../marker/.git")
    monkeypatch.setattr("tui.permissions.sandbox.git_quarantine._SETTLED_NS", 0)
    played = Played.begin(scene, engine)
    (scene.workspace / "file.txt").write_text("mine\n")
    try:
        said = await played.step("git -C build/dep reset --hard", Level.WORKSPACE)
        assert "not a git repository" in said
        assert (scene.workspace / "file.txt").read_text() == "mine\n"
        assert (scene.workspace / "build/marker/.git").is_dir()
    finally:
        await played.confinement.close()


async def test_a_clone_is_deleted_once_where_that_is_allowed(engine: Engine, scene: Scene) -> None:
    without_walls(scene, f"({MAKE}); git init -q build/other")
    played = Played.begin(scene, engine)
    confinement = played.confinement
    command = "rm -rf build"
    try:
        said = await played.step(command, Level.WORKSPACE)
        found = confinement.traces.stopped_clones(command, scene.workspace, said)
        assert found is not None
        assert found.words(scene.workspace).endswith("the clones build/dep, build/other whole")
        starter = confinement.starter(Level.WORKSPACE, clones=found)
        again = await played.start([BASH, "-c", command], Level.WORKSPACE, starter)
        await again.wait()
        assert again.end is not None
        assert again.end.returncode == 0
        again.discard()
        assert await confinement.traces.tidy() == []
        assert not (scene.workspace / "build").exists()
    finally:
        await confinement.close()


async def test_settings_planted_while_a_clone_may_be_deleted_are_moved(
    engine: Engine, scene: Scene
) -> None:
    without_walls(scene, MAKE)
    played = Played.begin(scene, engine)
    confinement = played.confinement
    clone = scene.workspace / "build/dep"
    try:
        said = await played.step("rm -rf build", Level.WORKSPACE)
        found = confinement.traces.stopped_clones("rm -rf build", scene.workspace, said)
        command = "cd build/dep; git config core.fsmonitor evil; echo x > .git/hooks/post-commit"
        starter = confinement.starter(Level.WORKSPACE, clones=found)
        again = await played.start([BASH, "-c", command], Level.WORKSPACE, starter)
        await again.wait()
        again.discard()
        moved = await confinement.traces.tidy()
        assert len(moved) == 2
        assert not (clone / ".git/config").exists()
        assert not (clone / ".git/hooks").exists()
    finally:
        await confinement.close()


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git -C build/dep pull", ["build/dep"]),
        ("cd build/dep && git add . && git commit -m 'a b'", ["build/dep"]),
        ("cd build\ncd dep/src\ngit status", ["build/dep"]),
        ("git status", []),
        ("git -C build/dep pull; rm -rf build", []),
        ("for d in build/*; do git -C $d pull; done", []),
        ("make -C build/dep", []),
        ("git -C 'build/dep", []),
    ],
)
def test_the_clone_that_a_line_works_in(tmp_path: Path, command: str, expected: list[str]) -> None:
    clones = [tmp_path / "build/dep", tmp_path / "other"]
    assert worked_in(command, tmp_path, clones) == {tmp_path / name for name in expected}


@pytest.mark.parametrize(
    ("command", "output", "expected"),
    [
        ("make clean", "rm: cannot remove 'build/dep/.git/HEAD': Read-only file system", "deletes"),
        ("mv build x", "mv: cannot move 'build' to 'x': Device or resource busy", "deletes"),
        ("make clean", "rm: cannot remove 'build/dep/.git/FETCH_HEAD': Read-only file system",
         "deletes"),
        ("make clean", "rm: cannot remove 'build/dep/.git/index.lock': Read-only file system",
         "deletes"),
        ("sh x", "EROFS: read-only file system, unlink 'build/dep/.git/FETCH_HEAD'", "deletes"),
        ("sh x", "error: cannot open 'build/dep/.git/FETCH_HEAD': Read-only file system",
         "writes"),
        ("make", "fatal: Unable to create 'build/dep/.git/index.lock': Read-only file system",
         "writes"),
        ("cd build && touch /usr/x", "touch: cannot touch '/usr/x': Read-only file system", ""),
        ("git config a.b c", "could not lock config file .git/config: Read-only file system", ""),
        ("rm -rf build", "rm: cannot remove 'build/dep/.git': Permission denied", ""),
    ],
)  # fmt: skip
def test_the_clone_that_stopped_a_command(
    tmp_path: Path, command: str, output: str, expected: str
) -> None:
    found = stopped_at(command, tmp_path, output, [tmp_path / "build/dep"])
    assert (found.words(tmp_path).partition(" ")[0] if found else "") == expected


@pytest.mark.parametrize(
    ("command", "output", "expected"),
    [
        ("git worktree remove build/dep; git worktree list",
         "error: failed to delete '/x/build/dep': Device or resource busy", "deletes"),
        ("rm -rf build; ls", "rm: cannot remove 'build/dep/.git/HEAD': Read-only file system",
         "deletes"),
        ("make clean; ls", "rm: cannot remove 'build/dep/.git/HEAD': Read-only file system", ""),
        ("cat log", "rm: cannot remove 'build/dep/.git/HEAD': Read-only file system", ""),
        ("grep -r EROFS build", "build/log:EROFS, open 'dep/.git/HEAD'", ""),
    ],
)  # fmt: skip
def test_a_line_that_goes_on_after_a_clone_stopped_it_asks_for_what_it_names(
    tmp_path: Path, command: str, output: str, expected: str
) -> None:
    found = stopped_at(command, tmp_path, output, [tmp_path / "build/dep"], failed=False)
    assert (found.words(tmp_path).partition(" ")[0] if found else "") == expected


async def test_git_gc_has_nothing_to_warn_of(engine: Engine, scene: Scene) -> None:
    played = Played.begin(scene, engine)
    try:
        assert await played.step("git gc --quiet && git fsck --full", Level.WORKSPACE) == ""
    finally:
        await played.confinement.close()


async def test_worktrees_that_the_program_makes_are_not_named(engine: Engine, scene: Scene) -> None:
    played = Played.begin(scene, engine)
    try:
        await played.step("true", Level.WORKSPACE)
        await asyncio.to_thread(Repository.of(scene.workspace).enter, "one", scene.workspace)
        assert await played.confinement.traces.changed_files() == []
    finally:
        await played.confinement.close()


def test_a_clone_that_comes_into_the_index_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_walls, "_SETTLED_NS", 0)
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@b", "-c", "advice.addEmbeddedRepo=false"]
    known = git_walls.IndexAnswer()
    (tmp_path / "file").touch()
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run([*git, "-C", str(tmp_path), *words], check=True)
    assert git_walls.inner_repositories(tmp_path, os.environ, known) == []
    assert known.state is not None
    inner = tmp_path / "inner"
    subprocess.run([*git, "init", "-q", str(inner)], check=True)
    subprocess.run([*git, "-C", str(inner), "commit", "-qm", "x", "--allow-empty"], check=True)
    assert git_walls.inner_repositories(tmp_path, os.environ, known) == []
    subprocess.run([*git, "-C", str(tmp_path), "add", "inner"], check=True)
    assert git_walls.inner_repositories(tmp_path, os.environ, known) == [inner]
