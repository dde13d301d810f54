"""The project's own git hooks and the person's signature, on the commits of tasks, if wanted."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.batch.test_git import files, git, log, make_repo
from tests.batch.test_runner import World, statuses
from tests.support.provider import ScriptedProvider, call, say
from tui.batch.commit_hooks import CommitHooks, HookRefusedError
from tui.batch.git import GitIsolation
from tui.batch.isolation import IsolationError
from tui.batch.task_worktrees import TaskWorktrees
from tui.cli.main import main
from tui.core.config import Batch, SandboxSettings
from tui.core.errors import UsageError
from tui.core.paths import folders
from tui.core.workspace import Workspace
from tui.permissions.sandbox.confinement import Confinement
from tui.settings import trust


def hooks_of(tmp_path: Path, engine: str = "auto") -> CommitHooks:
    settings = SandboxSettings(engine=engine)  # pyright: ignore[reportArgumentType] - one of its words
    workspace = Workspace.at(tmp_path, ceiling="/")
    return CommitHooks(Confinement.of_session(settings, workspace, folders(), "commit"))


@pytest.fixture
def hooks(own_folders: Path, tmp_path: Path) -> CommitHooks:
    made = hooks_of(tmp_path)
    try:
        made.check(tmp_path)
    except UsageError as error:
        pytest.skip(error.message)
    return made


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


def hook(repo: Path, name: str, *lines: str) -> None:
    path = repo / ".git" / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)


def isolation(repo: Path, hooks: CommitHooks | None = None, **more: Any) -> GitIsolation:
    found = GitIsolation.find(repo, repo / "TASKS.md", hooks, **more)
    assert found is not None
    found.begin()
    return found


def test_no_hook_runs_unless_it_is_wanted(repo: Path) -> None:
    hook(repo, "pre-commit", "exit 1")
    task = isolation(repo)
    (repo / "new").write_text("x")
    assert task.keep("make it\n")


def test_the_hooks_see_the_commit_and_may_change_it(repo: Path, hooks: CommitHooks) -> None:
    hook(
        repo,
        "pre-commit",
        "git diff --cached --name-only > .git/seen",
        "echo more >> new",
        "git add new",
    )
    hook(repo, "commit-msg", 'echo "Checked-by: hook" >> "$1"')
    hook(repo, "post-commit", "echo after > .git/after")
    task = isolation(repo, hooks)
    (repo / "new").write_text("x\n")
    commit = task.keep("make it\n")
    assert commit == git(repo, "rev-parse", "HEAD").strip()
    assert (repo / ".git" / "seen").read_text() == "new\n"
    assert (repo / ".git" / "after").exists()
    assert git(repo, "show", "HEAD:new") == "x\nmore\n"
    assert "Checked-by: hook" in git(repo, "log", "-1", "--format=%B")
    assert git(repo, "rev-list", "--count", "HEAD").strip() == "2"
    assert git(repo, "status", "--porcelain", "--", "new") == ""


def test_a_hook_that_refuses_is_asked_again_only_about_other_files(
    repo: Path, hooks: CommitHooks
) -> None:
    hook(
        repo,
        "pre-commit",
        "echo asked >> .git/asked",
        "grep -q bad new || exit 0",
        "sed -i s/bad/good/ new",
        "exit 1",
    )
    task = isolation(repo, hooks)
    (repo / "new").write_text("bad\n")
    assert task.keep("format it\n")
    assert git(repo, "show", "HEAD:new") == "good\n"
    hook(repo, "pre-commit", "echo asked >> .git/asked", "echo no tests >&2", "exit 1")
    task.finish()
    task.begin()
    (repo / "new").write_text("worse\n")
    with pytest.raises(HookRefusedError, match="no tests"):
        task.keep("break it\n")
    assert (repo / ".git" / "asked").read_text() == "asked\n" * 3
    assert task.undo("attempt")
    assert (repo / "new").read_text() == "good\n"


def test_hooks_run_in_the_sandbox(repo: Path, hooks: CommitHooks, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    hook(repo, "pre-commit", f"echo x > {outside}", "true")
    hook(repo, "post-commit", "echo x > .git/hooks/pre-push", "true")
    task = isolation(repo, hooks)
    (repo / "new").write_text("x\n")
    assert task.keep("make it\n")
    assert not outside.exists()
    assert not (repo / ".git" / "hooks" / "pre-push").exists()


def test_hooks_run_in_a_worktree_too(repo: Path, hooks: CommitHooks) -> None:
    hook(repo, "commit-msg", 'echo "Checked-by: hook" >> "$1"')
    place = TaskWorktrees(repo, repo / "TASKS.md", hooks).enter("task-1")
    place.isolation.begin()
    (place.folder / "new").write_text("x\n")
    assert place.isolation.keep("make it\n")
    assert "Checked-by: hook" in git(place.folder, "log", "-1", "--format=%B")
    assert git(repo, "rev-list", "--count", "HEAD").strip() == "1"
    place.leave()


def test_a_hook_that_hangs_ends_with_the_run(repo: Path, hooks: CommitHooks) -> None:
    hook(repo, "pre-commit", "touch began", "sleep 1000 & wait")
    found = isolation(repo, hooks)
    (repo / "one").write_text("1")

    def stop() -> None:
        while not (repo / "began").exists():
            time.sleep(0.01)
        found.stop()

    stopping = Thread(target=stop)
    stopping.start()
    with pytest.raises(HookRefusedError, match="stopped"):
        found.keep("one\n")
    stopping.join()
    assert log(repo) == ["first"]
    assert not (repo / ".git/index.lock").exists()
    with pytest.raises(HookRefusedError, match="stopped"):  # nor does another begin
        found.keep("one\n")
    assert found.undo("one")
    assert not (repo / "one").exists()


async def test_the_model_hears_why_a_hook_refuses(repo: Path, hooks: CommitHooks) -> None:
    hook(repo, "pre-commit", "grep -q sound one || { echo not sound; exit 1; }")
    found = GitIsolation.find(repo, repo / "TASKS.md", hooks)
    assert found
    bad = [call("write_file", path="one", content="bad", id_="toolu_1")]
    sound = [call("write_file", path="one", content="sound", id_="toolu_2")]
    provider = ScriptedProvider(bad, say("ok"), sound, say("now it is"))
    w = World(repo, "- [ ] make one\n", [provider], isolation=found)
    state = await w.run()
    assert [(task.status, task.attempts) for task in state.tasks] == [("completed", 2)]
    assert "not sound" in str(provider.requests[2].messages[-1])
    assert log(repo) == ["make one", "first"]
    assert git(repo, "show", "HEAD:one") == "sound"


async def test_a_task_that_a_hook_refuses_fails_and_the_next_one_runs(
    repo: Path, hooks: CommitHooks
) -> None:
    hook(repo, "pre-commit", "test ! -e one || { echo no one; exit 1; }")
    found = GitIsolation.find(repo, repo / "TASKS.md", hooks)
    assert found

    def writes(name: str) -> list[dict[str, Any]]:
        return [call("write_file", path=name, content=name, id_=f"toolu_{name}")]

    sessions = [
        ScriptedProvider(writes("one"), say("ok")), ScriptedProvider(writes("two"), say("ok")),
    ]  # fmt: skip
    once = Batch(attempts=1)
    w = World(repo, "- [ ] make one\n- [ ] make two\n", sessions, isolation=found, batch=once)
    state = await w.run()
    assert statuses(state) == ["failed", "completed"]
    assert "no one" in str(state.tasks[0].message)
    assert log(repo) == ["make two", "first"]
    assert "one" not in files(repo)


def test_the_hooks_of_a_folder_that_is_not_trusted_do_not_run(
    own_folders: Path, repo: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    del own_folders
    home = folders()
    home.config_file.parent.mkdir(parents=True, exist_ok=True)
    home.config_file.write_text("[batch]\nhooks = true\n")
    (repo / "TASKS.md").write_text("- [ ] one\n")
    (repo / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "a"}}}')
    run = ["run", str(repo / "TASKS.md"), "-C", str(repo), "--practice", "--dry-run"]
    assert main(run) == 2  # nobody has decided
    trust.decide(home, repo, trust.items(repo), granted=())
    assert main(run) == 2  # and it was not trusted
    assert capfd.readouterr().err.count("run only once you trust the folder") == 2
    trust.decide(home, repo, trust.items(repo), [one.name for one in trust.items(repo)])
    main(run)
    assert "run only once" not in capfd.readouterr().err


def test_without_a_sandbox_no_hook_runs(own_folders: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="only in the sandbox"):
        hooks_of(tmp_path, "off").check(tmp_path)


@pytest.mark.parametrize("own", [False, True])
def test_a_commit_is_signed_if_that_is_wanted(repo: Path, tmp_path: Path, own: bool) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    git(repo, "config", "gpg.format", "ssh")
    git(repo, "config", "user.signingkey", str(key))
    task = isolation(repo, sign=True)
    (repo / "new").write_text("x")
    if own:  # the task committed all of it by itself
        git(repo, "add", "new")
        git(repo, "commit", "-qm", "by itself")
    commit = task.keep("make it\n")
    assert commit == git(repo, "rev-parse", "HEAD").strip()
    assert "BEGIN SSH SIGNATURE" in git(repo, "cat-file", "commit", commit)
    assert git(repo, "log", "-1", "--format=%s").strip() == ("by itself" if own else "make it")
    assert git(repo, "status", "--porcelain") == ""


def test_a_repository_cannot_name_the_program_that_signs(repo: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    git(repo, "config", "gpg.program", str(program))
    task = isolation(repo, sign=True)
    (repo / "new").write_text("x")
    with pytest.raises(IsolationError, match="couldn't be signed"):
        task.keep("make it\n")
    assert not ran.exists()
