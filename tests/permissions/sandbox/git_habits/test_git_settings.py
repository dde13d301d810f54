"""Settings of git that a command makes: which count at once, and how they get to their place."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tui.permissions.sandbox.git_copies import GitCopies, put_all
from tui.permissions.sandbox.git_settings import Setting, needing_consent
from tui.permissions.sandbox.git_walls import git_places

BASE: tuple[Setting, ...] = (
    ("core.bare", "false"),
    ("remote.origin.url", "https://example.org/x.git"),
    ("branch.main.remote", "origin"),
    ("commit.gpgsign", "true"),
)


@pytest.mark.parametrize(
    "setting",
    [
        ("branch.z.remote", "origin"),
        ("branch.z.remote", "."),
        ("branch.z.merge", "refs/heads/feature/x"),
        ("branch.a.b c.rebase", "true"),
        ("branch.z.description", "two\nlines"),
        ("remote.up.fetch", "+refs/heads/*:refs/remotes/up/*"),
        ("submodule.lib.active", "true"),
        ("core.sparsecheckout", "true"),
        ("core.autocrlf", "input"),
        ("user.name", "Somebody"),
        ("pull.rebase", "merges"),
    ],
)
def test_what_runs_nothing_and_reaches_nobody_counts_at_once(setting: Setting) -> None:
    assert needing_consent([*BASE, setting], BASE) == []


@pytest.mark.parametrize(
    "setting",
    [
        ("core.fsmonitor", "./run"),
        ("core.hookspath", ".husky"),
        ("core.sshcommand", "./run"),
        ("core.pager", "./run"),
        ("core.editor", "./run"),
        ("core.worktree", ".."),
        ("core.attributesfile", "x"),
        ("core.gitproxy", "./run"),
        ("core.bare", "true"),
        ("include.path", "../evil"),
        ("includeif.gitdir:/.path", "evil"),
        ("alias.st", "!./run"),
        ("filter.x.clean", "./run"),
        ("diff.x.textconv", "./run"),
        ("merge.x.driver", "./run"),
        ("merge.tool", "x"),
        ("credential.helper", "!./run"),
        ("gpg.program", "./run"),
        ("commit.gpgsign", "false"),
        ("url.https://evil/.insteadof", "https://example.org/"),
        ("remote.up.url", "https://example.org/up.git"),
        ("remote.origin.url", "https://evil.example/x.git"),
        ("remote.o.url", "ext::./run"),
        ("remote.o.url", "./planted.git"),
        ("remote.o.vcs", "./run"),
        ("remote.origin.pushurl", "https://evil.example/x"),
        ("remote.origin.uploadpack", "./run"),
        ("remote.origin.push", "+refs/*:refs/*"),
        ("remote.origin.fetch", "+refs/*:refs/*"),
        ("branch.main.remote", "./planted.git"),
        ("branch.main.remote", "https://evil.example/x"),
        ("branch.z.pushremote", "origin"),
        ("branch.z.merge", "refs/heads/x\nrefs/heads/y"),
        ("branch.z\n[core].remote", "origin"),
        ("submodule.lib.update", "!./run"),
        ("submodule.lib.url", "./planted.git"),
        ("push.default", "matching"),
        ("color.pager", "./run"),
        ("user.name", "a\nb"),
        ("extensions.worktreeconfig", "true"),
        ("protocol.ext.allow", "always"),
        ("safe.directory", "*"),
        ("maintenance.repo", "/x"),
        ("unknown.key", "1"),
    ],
)
def test_what_may_run_or_reach_something_needs_a_yes(setting: Setting) -> None:
    assert needing_consent([*BASE, setting], BASE) == [setting]


def test_the_end_of_a_guard_needs_a_yes_and_that_of_a_remote_none() -> None:
    assert needing_consent(BASE[:3], BASE) == [("commit.gpgsign", "")]
    assert needing_consent([BASE[0], BASE[3]], BASE) == []


@pytest.mark.parametrize(
    ("gone", "stays", "asked"),
    [
        ("remote.o.pushurl", ("remote.o.url", "x"), True),
        ("remote.o.pushurl", ("remote.other.url", "x"), False),
        ("branch.main.pushremote", ("branch.main.remote", "o"), True),
        ("branch.main.pushremote", ("branch.mai.remote", "o"), False),
        ("submodule.lib.update", ("submodule.lib.url", "x"), True),
        ("core.hookspath", ("core.hookspath", "other"), True),
        ("remote.o.url", ("remote.o.url", "other"), True),
        ("remote.o.fetch", ("remote.o.fetch", "other"), False),
    ],
)
def test_what_would_go_elsewhere_without_a_setting_needs_a_yes(
    gone: str, stays: Setting, asked: bool
) -> None:
    assert needing_consent([stays], [stays, (gone, "y")]) == ([(gone, "")] if asked else [])


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    subprocess.run(["git", "init", "-q", tmp_path / "work"], check=True)
    return tmp_path / "work"


def copies(root: Path, line: str = "git x", *, alone: bool = True) -> GitCopies:
    return GitCopies.of(git_places(root), root.parent / "session", root, line, alone=alone)


def copy_of(made: GitCopies, name: str) -> Path:
    return next(one.place for one in made.copies if one.path.name == name)


def config(file: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "config", "--file", file, *words], check=True, capture_output=True, text=True
    )
    return done.stdout


def test_the_real_file_gets_the_changed_keys_and_stays_the_same_file(root: Path) -> None:
    real, made = root / ".git/config", copies(root)
    copy = copy_of(made, "config")
    config(copy, "branch.z.merge", "refs/heads/z")
    config(copy, "--add", "branch.z.merge", "refs/heads/y")
    copy.write_bytes(copy.read_bytes() + b"# [core] fsmonitor = x\n")
    config(real, "user.name", "The person, meanwhile")
    inode = real.stat().st_ino
    lines, pending = made.settle()
    assert (len(lines), pending) == (1, [])
    assert config(real, "--get-all", "branch.z.merge") == "refs/heads/z\nrefs/heads/y\n"
    assert config(real, "user.name") == "The person, meanwhile\n"
    assert "fsmonitor" not in real.read_text()
    assert real.stat().st_ino == inode
    assert made.settle() == ([], [])


def test_what_needs_a_yes_waits_for_it_with_all_that_belongs_to_it(root: Path) -> None:
    real, made = root / ".git/config", copies(root)
    before, inode = real.read_bytes(), real.stat().st_ino
    copy = copy_of(made, "config")
    config(copy, "core.hooksPath", "x")
    config(copy, "branch.z.merge", "refs/heads/z")
    lines, pending = made.settle()
    assert (lines, real.read_bytes()) == ([], before)
    assert str(pending[0]) == f"core.hookspath = x in {real}"
    copy.write_text("[core]\n\tfsmonitor = touch canary\n")  # after the question
    (line,) = put_all(pending)
    assert line == f"{real}: set core.hookspath = x, branch.z.merge = refs/heads/z"
    assert config(real, "core.hooksPath") == "x\n"
    assert "fsmonitor" not in real.read_text()
    assert real.stat().st_ino == inode


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "gone", "no settings", "large"])
def test_a_copy_that_is_none_any_more_changes_nothing(root: Path, kind: str) -> None:
    real, made = root / ".git/config", copies(root)
    before, copy = real.read_bytes(), copy_of(made, "config")
    copy.unlink()
    match kind:
        case "link":
            secret = root.parent / "secret"
            secret.write_text("[user]\n\tname = secret\n")
            copy.symlink_to(secret)
        case "folder":
            copy.mkdir()
        case "pipe":
            os.mkfifo(copy)
        case "no settings":
            copy.write_bytes(b"[core\n\0")
        case "large":
            copy.write_bytes(b"#" * 1_100_000)
        case _:
            pass
    lines, pending = made.settle()
    assert f"{real} was left as it was" in lines[0]
    assert pending == []
    assert real.read_bytes() == before


def test_a_folder_of_the_copies_that_became_a_link_is_not_followed(root: Path) -> None:
    made = copies(root)
    copy, elsewhere = copy_of(made, "info"), root.parent / "elsewhere"
    copy.rename(elsewhere)
    (elsewhere / "exclude").write_text("secret")
    copy.symlink_to(elsewhere)
    lines, _ = made.settle()
    assert "info was left as it was" in lines[0]
    assert "secret" not in (root / ".git/info/exclude").read_text()


def test_a_lock_of_another_git_is_respected(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.permissions.sandbox.git_copies._LOCK_WAIT_S", 0)
    real, made = root / ".git/config", copies(root)
    (root / ".git/config.lock").touch()
    config(copy_of(made, "config"), "branch.z.merge", "refs/heads/z")
    (line,), _ = made.settle()
    assert line.startswith(f"{real} was left as it was")
    assert (root / ".git/config.lock").exists()


def test_of_the_folder_info_only_data_gets_to_its_place(root: Path) -> None:
    made, info = copies(root), root / ".git/info"
    copy = copy_of(made, "info")
    (copy / "sparse-checkout").write_text("/docs/\n")
    (copy / "grafts").write_text("0 1\n")
    (copy / "exclude").unlink()
    (copy / "attributes").symlink_to("/etc/passwd")
    lines, _ = made.settle()
    assert [line.rpartition("info/")[2].partition(":")[0] for line in lines] == [
        "exclude", "grafts was left as it was", "sparse-checkout",
    ]  # fmt: skip
    assert sorted(os.listdir(info)) == ["sparse-checkout"]


def test_settings_of_worktrees_count_only_with_a_harmless_file(root: Path) -> None:
    named = root / ".git/config.worktree"
    for content, alone, free in (
        (None, True, False),
        ("[core]\n\tfsmonitor = x\n", True, False),
        ("[core]\n\tsparseCheckout = true\n", False, False),
        ("[core]\n\tsparseCheckout = true\n", True, True),
    ):
        made = copies(root, alone=alone)
        config(copy_of(made, "config"), "extensions.worktreeConfig", "true")
        if content is not None:
            named.write_text(content)
        assert bool(made.settle()[1]) != free


@pytest.mark.parametrize(
    "hidden",
    [
        "\n".join(f"[alias]\n\ta{number} = log" for number in range(30)),
        f"[alias]\n\ta = log {'-' * 500}",
    ],
)
def test_nobody_is_asked_about_more_than_the_question_shows(root: Path, hidden: str) -> None:
    real, made = root / ".git/config", copies(root)
    before = real.read_bytes()
    with copy_of(made, "config").open("a") as file:
        file.write(f"{hidden}\n[core]\n\tfsmonitor = ./run\n")
    (line,), pending = made.settle()
    assert "more than a question can show" in line
    assert (pending, real.read_bytes()) == ([], before)


def test_a_folder_behind_a_link_is_not_a_submodules_own(root: Path) -> None:
    """The link can lead to another folder later, and git would write there."""
    (root / "sub").mkdir()
    (root / "sub/.git").write_text("gitdir: ../.git\n")
    (root / "link").symlink_to("sub")
    for value, asks in (("../link", True), ("../sub", False)):
        made = copies(root)
        config(copy_of(made, "config"), "core.worktree", value)
        assert bool(made.settle()[1]) == asks, value
