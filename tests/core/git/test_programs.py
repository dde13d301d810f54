"""No program that a repository's own settings name runs, whatever git does (2.39.5)."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.git.test_worktrees import commit, git
from tui.core.git import door
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError
from tui.core.git.merge import merge
from tui.core.git.programs import switched_off
from tui.core.git.removal import remove
from tui.core.git.repository import Repository
from tui.core.git.worktree_state import diffstat, state_of

PROGRAMS = (
    "browser.x.cmd", "browser.x.path", "core.alternateRefsCommand", "core.askPass", "core.editor",
    "core.fsmonitor", "core.gitProxy", "core.pager", "core.sshCommand", "credential.helper",
    "credential.https://x.helper", "diff.external", "diff.x.command", "diff.x.textconv",
    "difftool.x.cmd", "difftool.x.path", "filter.x.clean", "filter.x.process", "filter.x.smudge",
    "gc.recentObjectsHook", "gpg.openpgp.program", "gpg.program", "gpg.ssh.defaultKeyCommand",
    "gpg.ssh.program", "gpg.x509.program", "guitool.x.cmd", "help.browser", "hook.x.command",
    "instaweb.httpd", "interactive.diffFilter", "lfs.customtransfer.x.path",
    "lfs.extension.x.clean", "lfs.extension.x.smudge", "man.x.cmd", "merge.x.driver",
    "mergetool.x.cmd", "mergetool.x.path", "pager.diff", "pager.log", "pager.status",
    "remote.x.receivepack", "remote.x.uploadpack", "sendemail.ccCmd", "sendemail.toCmd",
    "sequence.editor", "tar.x.command", "trailer.x.cmd", "trailer.x.command",
    "uploadpack.packObjectsHook", "web.browser",
)  # fmt: skip
"""Settings that name a program: from `git help -c`, from newer git's manuals, and git-lfs."""
SWITCHES = (
    ("alias.status", "!touch RAN"), ("alias.merge", "!touch RAN"), ("commit.gpgSign", "true"),
    ("diff.tool", "x"), ("extensions.partialClone", "x"), ("filter.x.required", "true"),
    ("gpg.format", "openpgp"), ("hook.x.event", "post-checkout"),
    ("lfs.standalonetransferagent", "x"), ("remote.x.url", "ext::touch RAN"),
    ("log.showSignature", "true"), ("merge.tool", "x"), ("merge.verifySignatures", "true"),
    ("protocol.ext.allow", "always"), ("remote.x.promisor", "true"),
    ("remote.x.vcs", "ext"), ("status.submoduleSummary", "true"), ("submodule.recurse", "true"),
    ("tag.gpgSign", "true"), ("url.ext::touch RAN #.insteadOf", "https://"),
)  # fmt: skip
HOOKS = (
    "applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-checkout", "post-commit",
    "post-index-change", "post-merge", "post-rewrite", "pre-auto-gc", "pre-commit",
    "pre-merge-commit", "prepare-commit-msg", "reference-transaction",
)  # fmt: skip


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    top = tmp_path / "repo"
    top.mkdir()
    git(top, "init", "-q", "-b", "main")
    git(top, "config", "user.email", "test@example.org")
    git(top, "config", "user.name", "Test")
    (top / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
    (top / ".gitignore").write_text("*.ignored\n")
    (top / ".worktreeinclude").write_text("*.ignored\n")
    (top / "one.ignored").write_text("ignored\n")
    commit(top, "a.txt", "a\nb\nc\n")
    return top


def plant(repo: Path, ran: Path, *, worktree: bool = False) -> None:
    """Every program that settings can name, and every hook, each leaving its name in a file."""
    for name in HOOKS:
        hook = repo / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\necho {name} >> {ran}\n")
        hook.chmod(0o755)
    if worktree:
        git(repo, "config", "extensions.worktreeConfig", "true")
    traps = [(key, f"echo {key} >> {ran}; cat") for key in PROGRAMS]
    traps += [
        (key.replace("RAN", str(ran)), value.replace("RAN", str(ran))) for key, value in SWITCHES
    ]
    with (repo / ".git" / ("config.worktree" if worktree else "config")).open("a") as config:
        for key, value in traps:
            section, _, rest = key.partition(".")
            inner, _, name = rest.rpartition(".")
            config.write(f'[{section} "{inner}"]\n' if inner else f"[{section}]\n")
            config.write(f'\t{name} = "{value}"\n')


def everything(repo: Path) -> Iterator[Path]:
    """Do all that is done with a worktree, and with each command of git's that the program uses."""
    repository = Repository.of(repo)
    made = repository.enter("fix", repo)
    yield made.folder
    (made.folder / "a.txt").write_text("a\nB\nc\n")
    (made.folder / "new.txt").write_text("new\n")
    state_of(made.tree)
    here = made.tree.checkout
    here.git("add", "-A")
    here.git("commit", "-q", "-m", "change", env=here.identity())
    for words in (
        ("diff", "HEAD^"), ("diff", "--shortstat", "HEAD^"), ("log", "-p", "-1"), ("show",),
        ("status", "--porcelain"), ("update-index", "--refresh"), ("gc", "--auto"),
        ("checkout-index", "-f", "-a"), ("notes", "append", "-m", "x", "HEAD"), ("tag", "t"),
        ("check-attr", "-a", "a.txt"), ("check-ignore", "one.ignored"), ("ls-files", "-m"),
        ("ls-files", "-o", "-i", "--exclude-standard", "--directory"), ("ls-tree", "-r", "HEAD"),
        ("merge-base", "HEAD", "HEAD^"), ("rev-list", "HEAD"), ("rev-parse", "--show-toplevel"),
        ("symbolic-ref", "HEAD"), ("var", "GIT_AUTHOR_IDENT"), ("update-ref", "refs/x/y", "HEAD"),
        ("read-tree", "HEAD"), ("read-tree", "-m", "-u", "HEAD"), ("write-tree",),
        ("commit-tree", "HEAD^{tree}", "-m", "x"), ("commit-tree", "-S", "HEAD^{tree}", "-m", "x"),
        ("for-each-ref",), ("cat-file", "--textconv", "HEAD:a.txt"), ("pack-objects", "--all", "p"),
        ("fast-import", "--quiet"), ("update-ref", "-d", "refs/x/y"),
        ("diff-tree", "-p", "HEAD"), ("diff-files", "-p"),
        ("hash-object", "--path", "a.txt", "a.txt"), ("cat-file", "--filters", "HEAD:a.txt"),
    ):  # fmt: skip
        here.answer(*words)
    diffstat(made.tree)
    with pytest.raises(GitError, match="name a program that merges"):
        merge(made.tree)
    repository.main.answer("merge", "--no-edit", "-m", "merged", "worktree-fix")
    (made.folder / "a.txt").write_text("a\nB\nC\n")
    remove(repository, made.tree, state_of(made.tree))


@pytest.mark.parametrize("worktree", [False, True])
def test_no_program_of_the_repositorys_settings_runs(
    repo: Path, tmp_path: Path, worktree: bool
) -> None:
    ran = tmp_path / "ran"
    plant(repo, ran, worktree=worktree)
    for folder in everything(repo):
        assert (folder / "one.ignored").exists()
    assert not (ran.exists() and ran.read_text())
    assert not (repo / ".holdfast").exists()


def test_the_traps_are_traps(repo: Path, tmp_path: Path) -> None:
    """What git runs without the door: else the test above could not fail."""
    ran = tmp_path / "ran"
    plant(repo, ran)
    (repo / "a.txt").write_text("other\n")
    for words in (("status",), ("add", "-A")):
        subprocess.run(["git", *words], cwd=repo, capture_output=True, check=False)
    names = set(ran.read_text().split("\n"))
    assert names >= {"core.fsmonitor", "filter.x.process"}


def test_included_settings_are_the_repositorys_own(repo: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    (repo / "team.config").write_text(
        f'[filter "x"]\n\tclean = "touch {ran}; cat"\n\tsmudge = "touch {ran}; cat"\n'
    )
    git(repo, "config", "include.path", "../team.config")
    for _ in everything_but_merges(repo):
        pass
    assert not ran.exists()


def everything_but_merges(repo: Path) -> Iterator[Path]:
    made = Repository.of(repo).enter("fix", repo)
    yield made.folder
    (made.folder / "a.txt").write_text("changed\n")
    assert state_of(made.tree).changed == ("a.txt",)
    remove(Repository.of(repo), made.tree, state_of(made.tree))


def test_a_filter_of_the_persons_own_settings_runs(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "gitconfig"
    mine.write_text('[filter "x"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n\trequired\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(mine))
    made = Repository.of(repo).enter("fix", repo)
    (made.folder / "new.txt").write_text("loud\n")
    here = made.tree.checkout
    here.git("add", "new.txt")
    assert git(made.folder, "cat-file", "blob", ":new.txt") == "LOUD"
    assert here.own_filters() == ()
    assert not [note for note in made.notes if "filters" in note]


def test_hooks_that_settings_name_are_off_whoever_names_them() -> None:
    """`hook.NAME.command` runs from git 2.54 on: 2.39 is only told."""
    listed = "global\0hook.mine.command\0local\0hook.theirs.event\0"
    off = switched_off(listed)
    count = int(off["GIT_CONFIG_COUNT"])
    pairs = {off[f"GIT_CONFIG_KEY_{n}"]: off[f"GIT_CONFIG_VALUE_{n}"] for n in range(count)}
    for name in ("mine", "theirs"):
        assert (pairs[f"hook.{name}.enabled"], pairs[f"hook.{name}.event"]) == ("false", "")
    assert "hook.mine.command" not in pairs


@pytest.mark.parametrize(("version", "is_off"), [("2.53.1", False), ("2.54.rc1", True)])
def test_plumbing_runs_no_hook_that_settings_name(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, is_off: bool
) -> None:
    """A git that says it is a newer one, and notes the keys that it is given."""
    real, programs, given = shutil.which("git"), tmp_path / "programs", tmp_path / "given"
    programs.mkdir()
    (programs / "git").write_text(
        f'#!/bin/sh\n[ "$1" = version ] && echo "git version {version}" && exit\n'
        f'[ "$1" = update-ref ] && env > "{given}"\nexec "{real}" "$@"\n'
    )
    (programs / "git").chmod(0o755)
    git(repo, "config", "hook.theirs.event", "reference-transaction")
    git(repo, "config", "hook.theirs.command", "false")
    here = Checkout.of(repo)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    door.git_version.cache_clear()
    here.git("update-ref", "refs/heads/one", here.commit())
    door.git_version.cache_clear()
    assert ("=hook.theirs.enabled\n" in given.read_text()) is is_off


def test_every_setting_that_names_a_program_is_switched_off() -> None:
    """But those by which only commands that show pages and start tools find theirs."""
    off = switched_off("".join(f"local\0{lowered(key)}\0" for key in PROGRAMS))
    count = int(off["GIT_CONFIG_COUNT"])
    neutral = {off[f"GIT_CONFIG_KEY_{n}"] for n in range(count)}
    missing = {key for key in map(lowered, PROGRAMS) if key not in neutral}
    assert missing == {"browser.x.path", "difftool.x.path", "instaweb.httpd", "mergetool.x.path"}


def lowered(key: str) -> str:
    """A key as git lists it."""
    first, *middle, last = key.split(".")
    return ".".join((first.lower(), *middle, last.lower()))


def test_the_persons_settings_stay(tmp_path: Path) -> None:
    listed = itertools.chain.from_iterable(("global", key) for key in map(lowered, PROGRAMS))
    off = switched_off("\0".join(listed))
    keys = {value for name, value in off.items() if name.startswith("GIT_CONFIG_KEY_")}
    assert not keys & {"filter.x.clean", "filter.x.process", "credential.helper", "gpg.program"}


def test_a_worktree_is_told_by_git_alone(repo: Path) -> None:
    here = Checkout.of(repo)
    assert (here.top, here.git_dir, here.common) == (repo, repo / ".git", repo / ".git")
