"""Git that only looks, in repositories that were made to run something or to show other files.

What is allowed is really run, in the environment of a plain command: nothing may leave a mark.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.permissions.test_policy import command
from tui.core.workspace import Workspace
from tui.permissions.gate import Gate
from tui.permissions.plain_environment import plain_environment
from tui.permissions.policy import Policy
from tui.permissions.types import Decision

LOOKS = (
    "git status",
    "git status --short --ignored",
    "git diff",
    "git diff HEAD",
    "git log -p",
    "git show",
    "git show HEAD:f",
    "git blame f",
    "git ls-files -m",
    "git branch -a",
)
LATER = 2_000_000_000
SECRET = "s3cret"


class Repository:
    """A repository in a workspace, with a change that git has to read; a program that marks."""

    def __init__(self, folder: Path) -> None:
        self.home = folder
        self.mark = folder / "mark"
        self.root = folder / "work"
        self.root.mkdir()
        self.evil = self.root / "evil"
        self.evil.write_text(f"#!/bin/sh\ntouch {self.mark}\ncat\n")
        self.evil.chmod(0o755)
        self.init(self.root)

    def init(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", cwd=folder)
        (folder / "f").write_text("one\n")
        self.git("add", "f", cwd=folder)
        self.commit(folder)
        (folder / "f").write_text("two\n")
        os.utime(folder / "f", (LATER, LATER))

    def commit(self, folder: Path) -> None:
        who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        self.git(*who, "commit", "-qm", "x", cwd=folder)

    def git(self, *words: str, cwd: Path | None = None) -> str:
        env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.root, env=env, capture_output=True, check=True
        )
        return done.stdout.decode()

    def set(self, key: str, value: str) -> None:
        self.git("config", key, value)

    @property
    def workspace(self) -> Workspace:
        return Workspace.at(self.root, ceiling=self.home)

    def decide(self, text: str, cwd: str = "") -> Decision:
        return Gate(Policy()).decide(
            command(text, cwd), mode="ask", elevated=False, workspace=self.workspace
        )

    def run(self, text: str) -> str:
        done = subprocess.run(
            ["bash", "-c", text],
            cwd=self.root,
            env=plain_environment(self.workspace),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return done.stdout.decode()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return Repository(tmp_path)


def fsmonitor(made: Repository) -> None:
    made.set("core.fsmonitor", "./evil")


def external(made: Repository) -> None:
    made.set("diff.external", "./evil")


def textconv(made: Repository) -> None:
    made.set("diff.e.textconv", "./evil")
    (made.root / ".gitattributes").write_text("* diff=e\n")


def driver(made: Repository) -> None:
    made.set("diff.e.command", "./evil")
    (made.root / ".gitattributes").write_text("* diff=e\n")


def clean(made: Repository) -> None:
    made.set("filter.e.clean", "./evil")
    (made.root / ".git" / "info" / "attributes").write_text("* filter=e\n")


def process(made: Repository) -> None:
    made.set("filter.e.process", "./evil")
    (made.root / ".gitattributes").write_text("* filter=e\n")


def included(made: Repository) -> None:
    (made.root / "more").write_text("[core]\n\tfsmonitor = ./evil\n")
    made.set("include.path", "../more")


def included_if(made: Repository) -> None:
    (made.root / "more").write_text("[core]\n\tfsmonitor = ./evil\n")
    made.set("includeIf.onbranch:main.path", "../more")


def per_worktree(made: Repository) -> None:
    made.set("extensions.worktreeConfig", "true")
    made.git("config", "--worktree", "core.fsmonitor", "./evil")


def signatures(made: Repository) -> None:
    made.set("log.showSignature", "true")
    made.set("gpg.program", "./evil")


def format_of_log(made: Repository) -> None:
    made.set("format.pretty", "%G?")
    made.set("gpg.program", "./evil")


def lazy(made: Repository) -> None:
    made.set("extensions.partialClone", "origin")
    made.set("remote.origin.url", f"ext::{made.evil}")
    made.set("remote.origin.promisor", "true")
    made.set("protocol.ext.allow", "always")
    (found,) = made.git("rev-parse", "HEAD:f").split()
    (made.root / ".git" / "objects" / found[:2] / found[2:]).unlink()


def submodule(made: Repository) -> None:
    made.init(made.root / "sub")
    made.git("add", "sub")
    made.git("config", "filter.e.clean", f"{made.evil}", cwd=made.root / "sub")
    (made.root / "sub" / ".gitattributes").write_text("* filter=e\n")


def nested_submodule(made: Repository) -> None:
    inner = made.root / "sub" / "inner"
    made.init(made.root / "sub")
    made.init(inner)
    made.git("add", "inner", cwd=made.root / "sub")
    made.commit(made.root / "sub")
    made.git("add", "sub")
    made.git("config", "core.fsmonitor", f"{made.evil}", cwd=inner)


def elsewhere(made: Repository) -> None:
    outside = made.home / "outside"
    outside.mkdir()
    (outside / "f").write_text(SECRET)
    made.set("core.worktree", str(outside))


def pointing_file(made: Repository) -> None:
    secret_repository(made)
    (made.root / ".git").rename(made.root / "old")
    (made.root / ".git").write_text(f"gitdir: {made.home / 'private' / '.git'}\n")


def pointing_link(made: Repository) -> None:
    secret_repository(made)
    (made.root / ".git").rename(made.root / "old")
    (made.root / ".git").symlink_to(made.home / "private" / ".git")


def common_folder(made: Repository) -> None:
    secret_repository(made)
    (made.root / ".git" / "commondir").write_text(f"{made.home / 'private' / '.git'}\n")


def borrowed(made: Repository) -> None:
    objects = secret_repository(made)
    (made.root / ".git" / "objects" / "info" / "alternates").write_text(f"{objects}\n")


def linked_objects(made: Repository) -> None:
    objects = secret_repository(made)
    (made.root / ".git" / "objects").rename(made.root / "old")
    (made.root / ".git" / "objects").symlink_to(objects)


def secret_repository(made: Repository) -> Path:
    private = made.home / "private"
    made.init(private)
    (private / "f").write_text(SECRET)
    made.git("add", "f", cwd=private)
    made.commit(private)
    return private / ".git" / "objects"


def bare(made: Repository) -> None:
    (made.root / ".git").rename(made.root / "away")
    made.git("init", "-q", "--bare", ".")
    made.git("config", "core.fsmonitor", str(made.evil))
    made.git("config", "core.bare", "false")
    made.git("config", "core.worktree", str(made.root))


RUNS = [
    *(fsmonitor, external, textconv, driver, clean, process, included, included_if, per_worktree),
    *(signatures, format_of_log, lazy, submodule, nested_submodule, elsewhere, pointing_file),
    *(pointing_link, common_folder, borrowed, linked_objects, bare),
]


@pytest.mark.parametrize("prepare", RUNS)
def test_a_repository_that_could_run_or_show_something_else_asks(
    repository: Repository, prepare: Callable[[Repository], None]
) -> None:
    prepare(repository)
    repository.mark.unlink(missing_ok=True)
    for text in LOOKS:
        allowed = repository.decide(text).answer == "allow"
        if allowed:  # then git itself refuses, or nothing happens
            assert prepare is bare
            assert re.search("fatal: |Not a git repository", repository.run(text))
    assert not repository.mark.exists()


def test_an_ordinary_repository_needs_no_question(repository: Repository) -> None:
    repository.set("branch.main.remote", "origin")
    repository.set("remote.origin.url", "https://example.org/x")
    repository.set("core.hooksPath", ".husky")
    repository.set("user.name", "x")
    for text in LOOKS:
        assert repository.decide(text).by == "safe", text
        assert "fatal" not in repository.run(text)


def test_hooks_and_the_persons_own_monitor_do_not_run(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = repository.root / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_bytes(repository.evil.read_bytes())
    hook.chmod(0o755)
    mine = repository.home / "gitconfig"
    mine.write_text(f"[core]\n\tfsmonitor = {repository.evil}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(mine))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(repository.evil))
    for text in LOOKS:
        assert repository.decide(text).by == "safe", text
        repository.run(text)
    assert not repository.mark.exists()


def test_a_bare_repository_in_a_clone(repository: Repository) -> None:
    """`git status` in a folder that is itself a bare repository would run its monitor."""
    nested = repository.root / "nested"
    repository.git("init", "-q", "--bare", str(nested))
    repository.git("config", "core.fsmonitor", str(repository.evil), cwd=nested)
    repository.git("config", "core.bare", "false", cwd=nested)
    repository.git("config", "core.worktree", str(repository.root), cwd=nested)
    assert repository.decide("git -C nested status").answer == "ask"
    for text in ("cd nested && git status", "cd nested && git log -p"):
        repository.decide(text)
        assert "safe.bareRepository" in repository.run(text)
    assert not repository.mark.exists()


def test_the_folder_that_the_line_leads_to_counts(repository: Repository) -> None:
    inner = repository.root / "inner"
    repository.init(inner)
    repository.git("config", "diff.external", "../evil", cwd=inner)
    assert repository.decide("git diff").by == "safe"
    assert repository.decide("cd inner && git diff").answer == "ask"
    assert repository.decide("git diff", cwd="inner").answer == "ask"
    assert repository.decide("ls && git diff").by == "safe"


def test_linked_work_trees_and_submodules_that_belong_here(repository: Repository) -> None:
    repository.git("worktree", "add", "-q", "../linked", "-b", "other")
    source = repository.home / "source"
    repository.init(source)
    allow = ("-c", "protocol.file.allow=always")
    repository.git(*allow, "submodule", "add", "-q", str(source), "sub")
    assert repository.decide("git status").by == "safe"
    assert repository.decide("cd sub && git status").by == "safe"
    for folder in (repository.home / "linked", repository.root / "sub"):
        workspace = Workspace.at(folder, ceiling=repository.home)
        decision = Gate(Policy()).decide(
            command("git status"), mode="ask", elevated=False, workspace=workspace
        )
        assert decision.by == "safe", folder


def test_a_repository_around_the_workspace_asks_until_it_is_added(repository: Repository) -> None:
    folder = repository.root / "part"
    folder.mkdir()
    for extra, answer in (((), "ask"), ((repository.root,), "allow")):
        workspace = Workspace.at(folder, extra=extra, ceiling=repository.home)
        decision = Gate(Policy()).decide(
            command("git log -p"), mode="ask", elevated=False, workspace=workspace
        )
        assert decision.answer == answer
    assert (
        "--add-dir"
        in Gate(Policy())
        .decide(
            command("git log -p"),
            mode="ask",
            elevated=False,
            workspace=Workspace.at(folder, ceiling=repository.home),
        )
        .reason
    )


def test_without_a_repository_or_without_git_there_is_nothing_to_fear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace.at(tmp_path, ceiling=tmp_path)
    gate = Gate(Policy())
    call = command("git status")
    assert gate.decide(call, mode="ask", elevated=False, workspace=workspace).by == "safe"
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert gate.decide(call, mode="ask", elevated=False, workspace=workspace).by == "safe"


def test_the_persons_settings_for_git_stay(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "safe.directory")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "*")
    env = plain_environment(repository.workspace)
    assert (env["GIT_CONFIG_KEY_0"], env["GIT_CONFIG_VALUE_0"]) == ("safe.directory", "*")
    assert env["GIT_CONFIG_KEY_1"] == "core.hooksPath"
    assert int(env["GIT_CONFIG_COUNT"]) > 1
    assert repository.decide("git status").by == "safe"


def test_programs_of_the_workspace_and_files_of_shells_take_no_part(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository.root / "bin").mkdir()
    own = repository.root / "bin" / "ls"
    own.write_bytes(repository.evil.read_bytes())
    own.chmod(0o755)
    path = os.environ["PATH"]
    monkeypatch.chdir(repository.root)  # an environment that was activated may be where we are
    monkeypatch.setenv("PATH", f"bin:{own.parent}:./node_modules/.bin::{path}")
    monkeypatch.setenv("BASH_ENV", str(repository.evil))
    monkeypatch.setenv("BASH_FUNC_ls%%", f"() {{ touch {repository.mark}; }}")
    monkeypatch.setenv("CDPATH", "/")
    monkeypatch.setenv("LD_LIBRARY_PATH", "lib:")
    assert "evil" in repository.run("ls")
    assert not repository.mark.exists()
    env = plain_environment(repository.workspace)
    assert env["PATH"] == path
    assert not {"BASH_ENV", "CDPATH", "LD_LIBRARY_PATH", "BASH_FUNC_ls%%"} & env.keys()
