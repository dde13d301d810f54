"""The parts of the walls that are data or text: environment, plan, git, explanations, profile."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.permissions.sandbox.conftest import Scene
from tui.permissions.sandbox.bubblewrap import arguments
from tui.permissions.sandbox.environment import clean_environment
from tui.permissions.sandbox.git_quarantine import GitBefore, quarantine, snapshot
from tui.permissions.sandbox.git_walls import CloneAccess, GitAnswers, git_places
from tui.permissions.sandbox.kernel_filters import call_filter, refusal
from tui.permissions.sandbox.run_later import changed, file_states, folder_lists
from tui.permissions.sandbox.seatbelt import profile
from tui.permissions.sandbox.walls import Level, WallError, plan, prepare


@pytest.mark.parametrize(
    "name",
    [
        "MY_KEY", "AWS_REGION", "my_token", "SecretThing", "DB_PASSWORD", "PGPASSWORD", "X_PAT",
        "CREDENTIALS_FILE", "SENTRY_DSN", "GH_HOST", "GITLAB_URL", "ANTHROPIC_BASE_URL",
        "NPM_CONFIG__AUTH", "DATABASE_URL", "BASH_ENV", "ENV", "LD_PRELOAD", "GIT_DIR",
        "GIT_CONFIG_COUNT", "XDG_CONFIG_HOME", "ZDOTDIR", "SSH_AUTH_SOCK", "DISPLAY", "TMUX",
        "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "BASH_FUNC_ls%%", "HOLDFAST_HOME",
    ],
)  # fmt: skip
def test_what_leaves_the_environment(name: str) -> None:
    assert clean_environment({name: "x", "PATH": "/bin"}) == {"PATH": "/bin"}
    assert clean_environment({name: "x"}, keep=[name]) == {name: "x"}


def test_values_with_a_password_leave_the_environment() -> None:
    given = {"A": "http://u:p@host/x", "B": "http://host:80/a@b", "LANG": "C", "C": "x" * 500_000}
    assert clean_environment(given).keys() == {"B", "LANG", "C"}


def test_tmp_comes_before_the_workspace_and_masks_come_last(scene: Scene) -> None:
    prepare(scene.walls)
    secret = scene.workspace / "secret"
    secret.write_text("x")
    made = plan(replace(scene.walls, hidden=(secret,)), Level.WORKSPACE)
    targets = [target for _, _, target in made.mounts]
    assert targets.index("/") < targets.index("/tmp") < targets.index(str(scene.workspace))
    assert made.mounts.index(("ro-bind", "/dev/null", str(secret))) > targets.index(
        str(scene.workspace)
    )
    assert not [target for target in targets if ".ssh" in target]
    words = arguments(made, "/x")
    assert words[words.index("--chdir") + 1] == "/x"
    assert "--setenv" not in words


def test_what_is_opened_in_a_hidden_folder_is_all_that_shows_of_it(scene: Scene) -> None:
    hidden, opened = Path("/usr/share"), Path("/usr/share/doc")  # not in what is hidden as a whole
    walls = replace(scene.walls, hidden=(hidden,), opened=(opened, scene.walls.home / "gone"))
    mounts = plan(walls, Level.WORKSPACE).mounts
    at = mounts.index(("tmpfs", "0755", str(hidden)))
    assert mounts[at + 1 : at + 3] == (
        ("ro-bind", str(opened), str(opened)),
        ("remount-ro", "", str(hidden)),
    )
    skill = scene.walls.home / ".claude" / "skills" / "one"
    skill.mkdir(parents=True)
    mounts = plan(replace(scene.walls, opened=(skill,)), Level.WORKSPACE).mounts
    assert [mount for mount in mounts if ".claude" in mount[2]] == [
        ("ro-bind", str(skill), str(skill))
    ]


def test_nothing_is_planned_for_outside(scene: Scene) -> None:
    with pytest.raises(WallError):
        plan(scene.walls, Level.OUTSIDE)


def test_protected_folders_cannot_be_moved_with_their_parents(scene: Scene) -> None:
    hooks = scene.workspace / "tools/git/hooks"
    hooks.mkdir(parents=True)
    made = plan(replace(scene.walls, protected=(hooks,)), Level.WORKSPACE)
    assert ("ro-bind", str(hooks), str(hooks)) in made.mounts
    for parent in (hooks.parent, hooks.parents[1]):
        assert ("bind", str(parent), str(parent)) in made.mounts


def test_the_folder_of_hooks_and_included_files_are_protected(scene: Scene) -> None:
    (scene.workspace / "hooks").mkdir()
    (scene.workspace / "shared.config").write_text("[alias]\n")
    for name, value in (("core.hooksPath", "hooks"), ("include.path", "../shared.config")):
        git = ["git", "-C", str(scene.workspace), "config", name, value]
        subprocess.run(git, env=scene.environment, check=True)
    places = git_places(scene.workspace, scene.environment)
    assert {"hooks", "shared.config", ".git/config", ".git/hooks"} <= {
        str(path.relative_to(scene.workspace)) for path in places.protected
    }


def test_git_is_asked_again_when_its_settings_change(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def counted(words: list[str], *, run: Callable[..., Any] = subprocess.run, **given: Any) -> Any:
        asked.extend([words] if "--show-origin" in words else [])
        return run(words, **given)

    monkeypatch.setattr(subprocess, "run", counted)
    later = time.time_ns() + 60_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: later)
    (scene.workspace / "hooks").mkdir()
    known = GitAnswers()
    places = git_places(scene.workspace, scene.environment, known=known)
    assert git_places(scene.workspace, scene.environment, known=known) == places
    assert len(asked) == 1
    git = ["git", "-C", str(scene.workspace), "config", "core.hooksPath", "hooks"]
    subprocess.run(git, env=scene.environment, check=True)
    changed_places = git_places(scene.workspace, scene.environment, known=known)
    assert set(changed_places.protected) - set(places.protected) == {scene.workspace / "hooks"}
    person = Path(scene.environment["HOME"], ".gitconfig")
    person.write_text(f"[include]\npath = {scene.workspace}/file.txt\n")
    named = git_places(scene.workspace, scene.environment, known=known)
    assert scene.workspace / "file.txt" in named.protected
    assert len(asked) == 3


def test_a_planted_link_to_another_repository_opens_nothing(scene: Scene) -> None:
    inner = scene.base / "inner"
    inner.mkdir()
    (inner / ".git").write_text(f"gitdir: {scene.workspace}/.git\n")
    assert git_places(inner, scene.environment).folders == ()


def test_what_appears_in_git_is_moved_and_links_come_back(scene: Scene) -> None:
    folder = scene.workspace / ".git"
    (scene.workspace / "real").mkdir()
    (folder / "config.worktree").symlink_to("../real")
    places = git_places(scene.workspace, scene.environment)
    before = snapshot(places)
    assert quarantine(before, scene.base / "q") == []
    (folder / "commondir").write_text("evil")
    (folder / "config.worktree").unlink()
    (folder / "config.worktree").write_text("evil")
    moved = quarantine(before, scene.base / "q")
    assert {one.path.name for one in moved} == {"commondir", "config.worktree"}
    assert all(one.to.read_text() == "evil" for one in moved)
    assert (folder / "config.worktree").readlink() == Path("../real")


@pytest.mark.parametrize(
    "end", [b"\0junk", b"\n" * 1_100_000, b"\0" * 5000, b"\r\n"], ids=lambda data: repr(data[:8])
)
def test_a_new_link_that_only_git_follows_is_moved_away(scene: Scene, end: bytes) -> None:
    """Git 2.39 reads up to the first NUL, and a file of any size in a worktree's folder."""
    other = scene.base / "other"
    subprocess.run(["git", "init", "-q", other], check=True)
    trees = scene.workspace / ".git/worktrees/a"
    trees.mkdir(parents=True)
    (trees / "HEAD").write_text("ref: refs/heads/main\n")
    before = GitBefore.of(git_places(scene.workspace, scene.environment), folder_lists())
    (scene.workspace / ".git/config.worktree").write_bytes(b"evil")
    (trees / "commondir").write_bytes(os.fsencode(other / ".git") + end)
    moved = before.settle(scene.base / "q", folder_lists())
    assert {one.path.name for one in moved} == {"commondir", "config.worktree"}
    link = snapshot(
        replace(
            git_places(scene.workspace, scene.environment), watched=(scene.workspace / "sub/.git",)
        )
    )
    (scene.workspace / "sub").mkdir()
    (scene.workspace / "sub/.git").write_bytes(b"gitdir: " + os.fsencode(other / ".git") + end)
    (gone,) = quarantine(link, scene.base / "q")
    assert gone.path == scene.workspace / "sub/.git"


@pytest.mark.parametrize(
    "content",
    [b"a\0b", b"\xff\xfe", b"\0", b"", b"\n", b"x" * 2_000_000],
    ids=lambda data: repr(data[:8]),
)
def test_no_content_of_gits_files_stops_the_walls(scene: Scene, content: bytes) -> None:
    """Any command can write them, and all that follow would be stopped."""
    git_dir, inner = scene.workspace / ".git", scene.workspace / "inner"
    inner.mkdir()
    for name in ("gitdir", "commondir", "objects/info/alternates", "HEAD", "config.worktree"):
        for place in (git_dir, git_dir / "worktrees/a"):
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content)
    for link in (b"gitdir: " + content, content):
        (inner / ".git").write_bytes(link)
        access = CloneAccess(without=frozenset({inner}))
        for place in (scene.workspace, inner):
            git_places(place, scene.environment, [inner], access=access)
        states = file_states([scene.workspace], [inner])
        assert inner / ".git" in states
    before = GitBefore.of(git_places(scene.workspace, scene.environment), folder_lists())
    before.settle(scene.base / "q", folder_lists())


def test_what_tools_run_later_is_named(scene: Scene) -> None:
    root = scene.workspace
    (root / "Makefile").write_text("all:\n")
    before = file_states([root])
    assert sorted(before) == [root / ".git", root / "Makefile"]
    (root / "Makefile").write_text("all:\n\techo x\n")
    (root / "sub" / ".vscode").mkdir(parents=True)
    (root / "sub" / ".git").mkdir()
    (root / "sub" / ".vscode" / "tasks.json").touch()
    (root / "node_modules").mkdir()
    (root / "node_modules" / "package.json").touch()
    subprocess.run(["git", "-C", root, "add", "."], check=True)
    found = changed(before, file_states([root]))
    named = [str(path.relative_to(root)) for path in found]
    assert named == ["Makefile", "sub/.git", "sub/.vscode/tasks.json"]
    (root / "Makefile").unlink()
    assert changed(file_states([root]), file_states([root])) == []


def test_a_link_of_git_that_names_no_path_is_passed_over(tmp_path: Path) -> None:
    """Any command can write one, and it would stop all that follow."""
    link = tmp_path / "inner" / ".git"
    link.parent.mkdir()
    link.write_bytes(b"gitdir: a\0b\n")
    assert link in file_states([tmp_path], [link.parent])


def test_the_commands_of_a_rebase_in_progress_are_run_later(scene: Scene) -> None:
    """Git 2.39.5: `git rebase --continue` runs them. Steps without commands are everyday work."""
    root = scene.workspace
    env = {**scene.environment, "GIT_SEQUENCE_EDITOR": "sed -i s/^pick/edit/"}

    def git(*words: str, where: Path = root) -> None:
        subprocess.run(["git", "-C", where, *words], check=True, env=env, capture_output=True)

    git("commit", "--allow-empty", "-qm", "second")
    git("worktree", "add", "-q", "-b", "other", "sub")
    for place, git_dir in ((root, root / ".git"), (root / "sub", root / ".git/worktrees/sub")):
        before = file_states([root])
        git("rebase", "-i", "HEAD~1", where=place)
        todo = git_dir / "rebase-merge/git-rebase-todo"
        assert changed(before, file_states([root])) == []
        with todo.open("a") as file:
            file.write(f"exec touch {scene.canary}\n")
        assert changed(before, file_states([root])) == [todo]
        git("rebase", "--continue", where=place)
        assert scene.canary.exists()
        scene.canary.unlink()


def test_why_landlock_does_not_do() -> None:
    assert "filtered on riscv" in refusal("riscv", 6)
    assert "no Landlock" in refusal("x86_64", 0)
    assert "too old" in refusal("aarch64", 2)
    assert not refusal("aarch64", 3)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_filters_are_whole_instructions(machine: str) -> None:
    for alone in (True, False):
        program = call_filter(machine, alone=alone)
        assert len(program) % 8 == 0
        assert len(program) // 8 < 200
    assert call_filter("riscv", alone=False) == b""


def test_the_profile_of_macos(scene: Scene) -> None:
    text = profile(replace(scene.walls, home=Path('/Users/a "b"')), Level.READ_ONLY)
    assert text.startswith("(version 1)\n(deny default)\n")
    assert text.count("(") == text.count(")")
    writable = next(line for line in text.splitlines() if line.startswith("(allow file-write*"))
    assert str(scene.workspace) not in writable
    assert str(scene.workspace) in profile(scene.walls, Level.WORKSPACE).split("file-write* ")[1]
    assert "(allow network*)" not in text
    assert "/[.]ssh(/|$)" in text
    skill = Path("/Users/a/.claude/skills/one")
    last = profile(replace(scene.walls, opened=(skill,)), Level.WORKSPACE).splitlines()[-1]
    assert last == f'(allow file-read* (subpath "{skill}"))'


def test_37_the_sandbox_s_folders_are_private(scene: Scene) -> None:
    place = scene.base / "new" / "cache" / "sandbox"
    prepare(replace(scene.walls, session=place / "session", cache=place / "caches"))
    folders = [path for path in (scene.base / "new").rglob("*") if path.is_dir()]
    assert len(folders) > 4
    assert {path.stat().st_mode & 0o777 for path in (scene.base / "new", *folders)} == {0o700}
