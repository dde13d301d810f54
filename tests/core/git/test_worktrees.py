"""Git worktrees, against real repositories."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError
from tui.core.git.merge import finish_merge, merge
from tui.core.git.removal import agree, remove
from tui.core.git.repository import Repository
from tui.core.git.worktree import EnteredWorktree, Worktree, check_name, in_use
from tui.core.git.worktree_state import state_of
from tui.core.private_files import private_file, private_folder
from tui.core.workspace import checkout_of, worktree_of


def git(repo: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=repo, check=True, capture_output=True, text=True)
    return done.stdout.rstrip("\n")


def commit(repo: Path, name: str, text: str) -> None:
    (repo / name).write_text(text)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", f"write {name}")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    top = tmp_path / "repo"
    (top / "dir").mkdir(parents=True)
    git(top, "init", "-q", "-b", "main")
    git(top, "config", "user.email", "test@example.org")
    git(top, "config", "user.name", "Test")
    (top / ".gitignore").write_text(".env\nsecrets/\n__pycache__/\nbuild/\n")
    (top / "dir" / "b.txt").write_text("b\n")
    commit(top, "a.txt", "a\n")
    return top


def enter(folder: Path, name: str = "fix") -> EnteredWorktree:
    return Repository.of(folder).enter(name, folder)


def status(repo: Path) -> str:
    return git(repo, "status", "--porcelain", "--untracked-files=all")


def test_a_new_one_has_a_branch_of_its_own_and_leaves_the_checkout_clean(repo: Path) -> None:
    made = enter(repo)
    assert made.new
    assert made.folder == made.tree.path == repo / ".holdfast" / "worktrees" / "fix"
    assert git(made.folder, "symbolic-ref", "--short", "HEAD") == "worktree-fix"
    assert (made.tree.base, made.tree.origin) == ("main", repo)
    assert (made.folder / "a.txt").read_text() == "a\n"
    assert not made.notes
    assert status(repo) == ""
    assert git(repo, "branch", "--show-current") == "main"
    enter(repo, "other")
    assert status(repo) == ""


@pytest.mark.parametrize(
    "written", [b"*.log\n", b"", b"/tool-results/\n/plans/\n/run/\n/*.log\n/*.lock\n/MEMORY.md\n"]
)
@pytest.mark.parametrize("committed", [False, True])
def test_a_gitignore_that_is_there_hides_worktrees_too_without_a_change_in_git_or_of_it(
    repo: Path, written: bytes, committed: bool
) -> None:
    (repo / ".holdfast").mkdir()
    kept = repo / ".holdfast" / ".gitignore"
    kept.write_bytes(written)
    if committed:
        git(repo, "add", ".holdfast")
        git(repo, "commit", "-qm", "ignored")
    exclude = repo / ".git" / "info" / "exclude"
    before = exclude.read_bytes() if exclude.exists() else None
    tree = enter(repo).tree
    ours_and_loose = b"run" in written and not committed
    assert status(repo) == ("" if committed or ours_and_loose else "?? .holdfast/.gitignore")
    assert (exclude.read_bytes() if exclude.exists() else None) == before
    assert (kept.read_bytes() == written) is not ours_and_loose
    assert git(tree.path, "status", "--porcelain") == ""
    remove(Repository.of(repo), tree, state_of(tree))
    assert not (repo / ".holdfast" / "worktrees").exists()


def test_what_a_session_left_in_a_worktree_is_not_lost_with_it(repo: Path) -> None:
    made = enter(repo)
    private_folder(made.folder / ".holdfast")
    assert state_of(made.tree).is_empty
    with private_file(made.folder / ".holdfast" / "tool-results" / "a.txt") as file:
        file.write(b"whole")
    (made.folder / ".holdfast" / "MEMORY.md").write_text("- tabs")
    assert state_of(made.tree).ignored == (".holdfast/MEMORY.md", ".holdfast/tool-results/")
    (made.folder / ".gitignore").write_text(".holdfast\n")
    assert state_of(made.tree).ignored == (".holdfast/",)


def test_without_a_name_it_gets_a_short_one(repo: Path) -> None:
    names = {enter(repo, "").tree.name for _ in range(3)}
    assert len(names) == 3
    for name in names:
        check_name(name)
        assert "-" in name


def exchanging_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str) -> Path:
    """Where the link leads that git's own filter puts in the place of `dir`, once it checks out the
    first file: git 2.39 goes on writing by path."""
    there = f"test ! -L {link} && test -d {link}"
    swap = f"{there} && mv {link} {link}.aside && ln -s {tmp_path}/mine {link}; cat"
    config, mine = tmp_path / "gitconfig", tmp_path / "mine"
    config.write_text(f'[filter "mine"]\n\tclean = cat\n\tsmudge = "sh -c \'{swap}\'"\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    mine.mkdir()
    return mine


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_new_one_is_not_written_through_a_folder_exchanged_meanwhile(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    (repo / ".gitattributes").write_text("dir/a filter=mine\n")
    (repo / "dir/a").write_text("a\n")
    (repo / "link").symlink_to("dir")
    commit(repo, "run.sh", "#!/bin/sh\n")
    mine = exchanging_git(tmp_path, monkeypatch, f"{repo}/.holdfast/worktrees/fix/dir")
    if elsewhere:  # on another disk

        def refused(*_: object, **__: object) -> None:
            raise OSError(errno.EXDEV, "another disk")

        monkeypatch.setattr(os, "rename", refused)
    made = enter(repo)
    assert not list(mine.iterdir())
    assert (made.folder / "dir/b.txt").read_text() == "b\n"
    assert (made.folder / "link").readlink() == Path("dir")
    assert status(made.folder) == ""


def test_what_comes_along_is_not_read_through_a_folder_exchanged_meanwhile(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / ".worktreeinclude").write_text("secrets/key\n")
    (repo / "secrets").mkdir()
    (repo / "secrets/key").write_text("mine\n")
    commit(repo, "more", "")
    (tmp_path / "home").mkdir()
    (tmp_path / "home/key").write_text("do not tell\n")
    looked = Repository._ignored_of  # pyright: ignore[reportPrivateUsage]

    def exchanged(self: Repository, names: Iterable[str]) -> list[str]:
        found = looked(self, names)
        (repo / "secrets").rename(tmp_path / "aside")
        (repo / "secrets").symlink_to(tmp_path / "home")
        return found

    monkeypatch.setattr(Repository, "_ignored_of", exchanged)
    made = enter(repo)
    assert not (made.folder / "secrets").exists()
    assert made.tree.copies == {}


def test_an_existing_one_is_entered_again_as_it_is(repo: Path) -> None:
    made = enter(repo)
    (made.folder / "a.txt").write_text("changed\n")
    again = enter(repo)
    assert not again.new
    assert again.tree == made.tree
    assert (again.folder / "a.txt").read_text() == "changed\n"


def test_a_subfolder_is_worked_in_at_its_place(repo: Path) -> None:
    assert enter(repo / "dir").folder == repo / ".holdfast/worktrees/fix/dir"
    (repo / "untracked").mkdir()
    assert enter(repo / "untracked").folder.is_dir()


def test_one_made_inside_another_lies_beside_it(repo: Path) -> None:
    first = enter(repo, "one").folder
    commit(first, "a.txt", "one\n")
    second = enter(first, "two")
    assert second.folder == repo / ".holdfast/worktrees/two"
    assert (second.tree.base, second.tree.origin) == ("worktree-one", first)
    assert (second.folder / "a.txt").read_text() == "one\n"


def test_it_says_what_is_not_in_it(repo: Path) -> None:
    (repo / "a.txt").write_text("mine\n")
    (repo / "new.txt").write_text("new\n")
    (repo / ".holdfast").mkdir()
    (repo / ".holdfast" / ".gitignore").write_text("*.log\n")
    notes = enter(repo).notes
    assert len(notes) == 1
    assert notes[0].startswith("2 uncommitted files in ")
    assert notes[0].endswith(" are not in the worktree: a.txt, new.txt.")


def test_ignored_files_that_are_named_come_along(repo: Path, tmp_path: Path) -> None:
    (repo / ".env").write_text("KEY=1\n")
    (repo / "dir" / ".env").write_text("KEY=2\n")
    (repo / "secrets").mkdir()
    (repo / "secrets" / "key.json").write_text("{}")
    (repo / "secrets" / "other.txt").write_text("x")
    (repo / "secrets" / "link.json").symlink_to("/etc/hostname")
    (repo / "loose.json").write_text("not ignored")
    commit(repo, ".worktreeinclude", ".env\n*.json\n")
    (repo / ".holdfast").mkdir()
    (repo / ".holdfast" / ".gitignore").write_text("/MEMORY.md\n.gitignore\n")
    (repo / ".holdfast" / "MEMORY.md").write_text("- uses tabs\n")
    made = enter(repo)
    copied = {".env", "dir/.env", "secrets/key.json", ".holdfast/MEMORY.md"}
    assert set(made.tree.copies) == copied
    assert (made.folder / "dir" / ".env").read_text() == "KEY=2\n"
    assert any(note.startswith("Copied, as git ignores them: ") for note in made.notes)
    assert state_of(made.tree).is_empty
    (made.folder / ".env").write_text("KEY=3\n")
    assert state_of(made.tree).ignored == (".env",)
    assert state_of(made.tree).words("main") == "1 ignored file (.env)"


def test_a_copy_never_follows_a_link_out_of_the_worktree(repo: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (repo / "conf").symlink_to(outside)
    commit(repo, ".worktreeinclude", ".env\n")
    (repo / "conf").unlink()
    (repo / "conf").mkdir()
    (repo / "conf" / ".env").write_text("KEY=1\n")
    assert not enter(repo).tree.copies
    assert not list(outside.iterdir())


def test_no_hook_and_no_filter_of_the_repository_runs(repo: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    hook = repo / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    (repo / ".gitattributes").write_text("*.bin filter=mine\n")
    commit(repo, "x.bin", "stored\n")
    git(repo, "config", "filter.mine.smudge", f"touch {ran}; cat")
    git(repo, "config", "filter.mine.clean", f"touch {ran}; cat")
    git(repo, "config", "filter.mine.required", "true")
    made = enter(repo)
    assert (made.folder / "x.bin").read_text() == "stored\n"
    (made.folder / "x.bin").write_text("other\n")
    repository = Repository.of(made.folder)
    state = state_of(made.tree)
    assert state.changed == ("x.bin",)
    remove(repository, made.tree, state)
    assert not ran.exists()
    assert any("filters (mine)" in note for note in made.notes)


def test_a_merge_that_would_run_a_program_is_refused(repo: Path, tmp_path: Path) -> None:
    git(repo, "config", "merge.mine.driver", f"touch {tmp_path / 'ran'}")
    made = enter(repo)
    commit(made.folder, "a.txt", "changed\n")
    with pytest.raises(GitError, match="name a program that merges"):
        merge(made.tree)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("fix login", "fix-login"),
        ("a/b", "a-b"),
        ("..", ""),
        ("-rf", "rf"),
        ("a..b", "ab"),
        ("x.lock", "x"),
        (".hidden", "hidden"),
        ("é", ""),
        ("n" * 65, "n" * 64),
        ("a\nb", "a-b"),
    ],
)
def test_a_name_that_cannot_be_is_refused_with_one_that_can(
    repo: Path, name: str, near: str
) -> None:
    with pytest.raises(GitError, match="can't name a worktree") as raised:
        enter(repo, name)
    assert f"--worktree {near}. " in f"{raised.value.hint} " if near else True
    assert not (repo / ".holdfast").exists()


def test_without_a_repository_a_checkout_or_a_commit_it_says_what_to_do(tmp_path: Path) -> None:
    plain, bare, empty, jj = (tmp_path / name for name in ("plain", "bare", "empty", "jj"))
    for folder in (plain, bare, empty, jj):
        folder.mkdir()
    git(bare, "init", "-q", "--bare")
    git(empty, "init", "-q")
    (jj / ".jj").mkdir()
    for folder, words in (
        (plain, "isn't in a git repository"),
        (bare, "bare repository"),
        (empty, "has no commit yet"),
        (empty / ".git", "no checked-out files"),
        (jj, "is a jj repository"),
    ):
        with pytest.raises(GitError, match=words) as raised:
            enter(folder)
        assert raised.value.hint


def test_one_of_a_bare_repository_lies_in_the_checkout(repo: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "-q", "--bare", str(repo), str(bare))
    git(bare, "worktree", "add", "-q", str(tmp_path / "main"), "main")
    made = enter(tmp_path / "main")
    assert made.folder == tmp_path / "main/.holdfast/worktrees/fix"
    assert status(tmp_path / "main") == ""
    assert made.tree.base == "main"


def test_a_folder_or_a_link_in_the_way_is_never_touched(repo: Path, tmp_path: Path) -> None:
    taken = repo / ".holdfast" / "worktrees" / "fix"
    taken.mkdir(parents=True)
    with pytest.raises(GitError, match="isn't a worktree of this repository"):
        enter(repo)
    shutil.rmtree(repo / ".holdfast")
    (repo / ".holdfast").symlink_to(tmp_path)
    with pytest.raises(GitError, match="symbolic link"):
        enter(repo)


def test_one_deleted_by_hand_is_made_again_from_its_branch(repo: Path) -> None:
    made = enter(repo)
    commit(made.folder, "a.txt", "work\n")
    shutil.rmtree(made.folder)
    assert Repository.of(repo).names() == []
    again = enter(repo)
    assert (again.folder / "a.txt").read_text() == "work\n"
    assert again.notes[0] == "The folder of the worktree fix was gone, so it was made again."
    assert "continues it" in again.notes[1]


def test_a_branch_that_is_checked_out_elsewhere_is_named(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", "-b", "worktree-fix", str(tmp_path / "elsewhere"))
    with pytest.raises(GitError, match="elsewhere"):
        enter(repo)
    assert not (repo / ".holdfast" / "worktrees" / "fix").exists()


def test_merging_brings_the_commits_into_the_branch_it_came_from(repo: Path) -> None:
    made, repository = enter(repo), Repository.of(repo)
    with pytest.raises(GitError, match="Nothing to merge"):
        merge(made.tree)
    commit(made.folder, "a.txt", "work\n")
    state = state_of(made.tree)
    assert (state.ahead, state.behind, state.is_empty) == (1, 0, False)
    assert state.words("main") == "1 commit that main lacks"
    commit(repo, "c.txt", "meanwhile\n")
    said = merge(made.tree)
    assert said.startswith("Merged 1 commit of fix into main in ")
    assert (repo / "a.txt").read_text() == "work\n"
    assert (repo / "c.txt").read_text() == "meanwhile\n"
    assert state_of(made.tree).is_empty
    removed = remove(repository, made.tree, state_of(made.tree))
    assert (removed.branch, removed.ref, removed.words) == ("", "", "")
    assert git(repo, "branch", "--list", "worktree-*") == ""
    assert not (repo / ".holdfast").exists()


def test_a_merge_without_files_is_not_written_through_a_folder_exchanged_meanwhile(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / ".gitattributes").write_text("dir/a filter=mine\n")
    commit(repo, "dir/a", "a\n")
    made = enter(repo)
    (made.folder / "dir/new").write_text("new\n")
    commit(made.folder, "dir/a", "changed\n")
    mine = exchanging_git(tmp_path, monkeypatch, f"{repo}/dir")
    merge(made.tree)
    assert (repo / "dir.aside").is_dir()
    assert not list(mine.iterdir())
    assert not (repo / "dir").is_symlink()
    assert (repo / "dir/new").read_text() == "new\n"


def test_a_merge_apart_is_not_written_through_a_folder_exchanged_meanwhile(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repo, "config", "merge.ff", "false")  # needs git's own merge
    (repo / ".gitattributes").write_text("dir/a filter=mine\n")
    (repo / "gone").write_text("")
    commit(repo, "dir/a", "a\n")
    made = enter(repo)
    (made.folder / "dir/new").write_text("new\n")
    (made.folder / "gone").unlink()
    commit(made.folder, "dir/a", "changed\n")
    mine = exchanging_git(tmp_path, monkeypatch, f"{repo}/dir")
    tip = git(repo, "rev-parse", "HEAD")
    with pytest.raises(GitError, match="would replace dir in"):
        merge(made.tree)
    assert not list(mine.iterdir())
    assert git(repo, "rev-parse", "HEAD") == tip
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    (repo / "dir").unlink()
    (repo / "dir.aside").rename(repo / "dir")
    assert status(repo) == ""
    merge(made.tree)
    assert (repo / "dir/a").read_text() == "changed\n"
    assert (repo / "dir/new").read_text() == "new\n"
    assert not (repo / "gone").exists()


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("theirs", ["new/file", "new", "a.txt", ".env", "link"])
def test_a_merge_replaces_nothing_that_git_has_no_copy_of(
    repo: Path, tmp_path: Path, theirs: str, ahead: bool
) -> None:
    made = enter(repo)
    (made.folder / "new").mkdir()
    (made.folder / "new/file").write_text("merged\n")
    (made.folder / ".env").write_text("merged\n")
    git(made.folder, "add", "-f", ".env")
    commit(made.folder, "a.txt", "merged\n")
    if ahead:
        commit(repo, "other", "")
    before, tip = status(repo), git(repo, "rev-parse", "HEAD")
    if theirs == "link":
        (repo / "new").symlink_to(tmp_path)
    else:
        (repo / theirs).parent.mkdir(exist_ok=True)
        (repo / theirs).write_text("mine\n")
    with pytest.raises(GitError, match=r"would replace|overwritten by merge"):
        merge(made.tree, beside=["a.txt"])
    assert git(repo, "rev-parse", "HEAD") == tip
    if theirs == "link":
        (repo / "new").unlink()
    else:
        assert (repo / theirs).read_text() == "mine\n"
        (repo / theirs).unlink()
        if theirs == "a.txt":
            (repo / theirs).write_text("a\n")
    assert status(repo) == before
    merge(made.tree)
    assert (repo / "new/file").read_text() == (repo / ".env").read_text() == "merged\n"


def killed_at(moment: int, tree: Worktree) -> bool:
    """Merge in a process that dies when it has asked git or placed a file that many times. False
    once it came to its end."""
    child = os.fork()
    if not child:
        left = moment

        def counted(real: Callable[..., object]) -> Callable[..., object]:
            def step(*args: object, **named: object) -> object:
                nonlocal left
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1
                return real(*args, **named)

            return step

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Checkout, "git", counted(Checkout.git))
            patch.setattr(os, "replace", counted(os.replace))
            patch.setattr(os, "unlink", counted(os.unlink))
            try:
                merge(tree)
                os._exit(0)
            finally:
                os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in {0, -signal.SIGKILL}
    return code != 0


def test_a_merge_that_was_killed_at_any_moment_is_finished_by_the_next(repo: Path) -> None:
    (repo / "gone").write_text("")
    commit(repo, "edited", "a\n")
    made = enter(repo)
    (made.folder / "gone").unlink()
    (made.folder / "new").write_text("new\n")
    (made.folder / "dir/b.txt").unlink()
    (made.folder / "dir/b.txt").symlink_to("../new")
    (made.folder / "edited").write_text("b\n")
    commit(made.folder, "a.txt", "b\n")
    before, moment, finished = git(repo, "rev-parse", "HEAD"), 0, 0
    while killed_at(moment, made.tree):
        moment += 1
        if git(repo, "rev-parse", "HEAD") == before:
            continue
        (repo / "edited").write_text("mine\n")
        (repo / "own").write_text("mine\n")
        pending = bool(git(repo, "for-each-ref", "refs/worktree"))
        assert finish_merge(Checkout.of(repo)) is pending
        finished += pending
        assert (repo / "edited").read_text() == (repo / "own").read_text() == "mine\n"
        git(repo, "checkout", "-q", "edited")
        (repo / "own").unlink()
        assert status(repo) == ""
        assert (repo / "a.txt").read_text() == "b\n"
        assert (repo / "dir/b.txt").readlink() == Path("../new")
        git(repo, "reset", "-q", "--hard", before)
    assert finished >= 6
    assert status(repo) == ""
    assert not git(repo, "for-each-ref", "refs/worktree")
    assert not (repo / "gone").exists()


def test_a_merge_with_a_conflict_is_undone(repo: Path) -> None:
    made = enter(repo)
    commit(made.folder, "a.txt", "theirs\n")
    commit(repo, "a.txt", "ours\n")
    (repo / "untracked.txt").write_text("stays\n")
    before = git(repo, "rev-parse", "HEAD")
    with pytest.raises(GitError, match=r"Both sides changed a\.txt\. The merge was undone"):
        merge(made.tree)
    assert git(repo, "rev-parse", "HEAD") == before
    assert status(repo) == "?? untracked.txt"
    assert (repo / "a.txt").read_text() == "ours\n"


def test_nothing_is_merged_where_it_could_not_be_undone(repo: Path) -> None:
    made = enter(repo)
    commit(made.folder, "b.txt", "work\n")
    (repo / "a.txt").write_text("mine\n")
    with pytest.raises(GitError, match=r"uncommitted changes: a\.txt"):
        merge(made.tree)
    git(repo, "checkout", "-q", "a.txt")
    (repo / "b.txt").write_text("untracked, in the way\n")
    with pytest.raises(GitError, match="would replace b"):
        merge(made.tree)
    assert (repo / "b.txt").read_text() == "untracked, in the way\n"
    (repo / "b.txt").unlink()
    git(repo, "switch", "-qc", "other")
    with pytest.raises(GitError, match="is on other, not on main"):
        merge(made.tree)


def test_from_a_detached_head_it_is_merged_by_hand(repo: Path) -> None:
    git(repo, "checkout", "-q", "--detach")
    made = enter(repo)
    assert (made.tree.base, made.tree.target) == ("", git(repo, "rev-parse", "HEAD")[:8])
    commit(made.folder, "a.txt", "work\n")
    assert state_of(made.tree).ahead == 1
    with pytest.raises(GitError, match="from a commit") as raised:
        merge(made.tree)
    assert "git merge worktree-fix" in raised.value.hint


def test_removing_saves_what_was_not_committed(repo: Path) -> None:
    made, repository = enter(repo), Repository.of(repo)
    commit(made.folder, "c.txt", "committed\n")
    (made.folder / "a.txt").write_text("changed\n")
    (made.folder / "new.txt").write_text("new\n")
    (made.folder / "dir" / "b.txt").unlink()
    state = state_of(made.tree)
    assert state.changed == ("a.txt", "dir/b.txt", "new.txt")
    removed = remove(repository, made.tree, state)
    assert removed.branch == "worktree-fix"
    assert git(repo, "show", f"{removed.ref}:new.txt") == "new"
    assert git(repo, "show", f"{removed.ref}:a.txt") == "changed"
    assert git(repo, "diff", "--name-status", "worktree-fix", removed.ref).splitlines() == [
        "M\ta.txt",
        "D\tdir/b.txt",
        "A\tnew.txt",
    ]
    assert not made.folder.exists()
    assert f"git show {removed.ref}" in removed.words


def test_commits_on_no_branch_are_saved_too(repo: Path) -> None:
    made, repository = enter(repo), Repository.of(repo)
    git(made.folder, "checkout", "-q", "--detach")
    commit(made.folder, "a.txt", "loose\n")
    state = state_of(made.tree)
    assert (state.branch, state.loose) == ("", 1)
    removed = remove(repository, made.tree, state)
    assert git(repo, "show", f"{removed.ref}:a.txt") == "loose"


def test_what_tools_make_again_does_not_count(repo: Path) -> None:
    made = enter(repo)
    (made.folder / "dir" / "__pycache__").mkdir()
    (made.folder / "dir" / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert state_of(made.tree).is_empty
    (made.folder / "build").mkdir()
    (made.folder / "build" / "out.txt").write_text("a result\n")
    assert state_of(made.tree).ignored == ("build/",)


def test_the_branch_stays_where_its_commits_cannot_be_counted(repo: Path) -> None:
    made, repository = enter(repo), Repository.of(repo)
    commit(made.folder, "new.txt", "work\n")
    (repo / ".git" / "refs" / "tags" / "broken").write_text("1" * 40 + "\n")
    gone = remove(repository, made.tree, state_of(made.tree))
    assert gone.branch == "worktree-fix"
    assert git(repo, "show", "worktree-fix:new.txt") == "work"


def test_a_repository_whose_path_has_line_breaks(repo: Path, tmp_path: Path) -> None:
    odd = tmp_path / "two\n\nlines"
    repo.rename(odd)
    assert enter(odd).new
    assert not enter(odd).new
    assert Repository.of(odd).names() == ["fix"]


def test_one_that_is_worked_in_is_not_removed(repo: Path) -> None:
    made, repository = enter(repo), Repository.of(repo)
    lock = in_use(made.tree)
    lock.share()
    with pytest.raises(GitError, match="Another session works in"):
        remove(repository, made.tree, state_of(made.tree))
    lock.release()
    remove(repository, made.tree, state_of(made.tree))
    assert not made.folder.exists()


def test_one_that_is_being_removed_is_not_worked_in(repo: Path) -> None:
    made, repository = enter(repo), Repository.of(repo)
    lock, removing = in_use(made.tree), in_use(made.tree)
    assert removing.acquire()
    with pytest.raises(GitError, match="being removed"):
        lock.share()
    removing.release()
    lock.share()
    lock.release()
    remove(repository, made.tree, state_of(made.tree))
    with pytest.raises(GitError, match="being removed"):
        lock.share()


def test_a_note_that_names_another_repository_is_not_believed(repo: Path, tmp_path: Path) -> None:
    made = enter(repo)
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(repo), str(other))
    note = made.tree.git_dir / "holdfast.json"
    note.write_text(note.read_text().replace(f'"{repo}"', f'"{other}"'))
    assert enter(repo).tree.origin == repo
    note.write_text("{")
    assert enter(repo).tree.base == "main"


def test_submodules_are_said_to_be_empty(repo: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    git(tmp_path, "clone", "-q", str(repo), str(library))
    git(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "lib")
    git(repo, "commit", "-qm", "with a submodule")
    assert any("Submodules are empty" in note for note in enter(repo).notes)
    inner = enter(repo / "lib")
    assert inner.folder == repo / "lib/.holdfast/worktrees/fix"
    assert status(repo / "lib") == ""
    assert status(repo) == ""


def test_a_submodule_that_was_worked_in_is_never_just_dropped(repo: Path, tmp_path: Path) -> None:
    library, allow = tmp_path / "library", ("-c", "protocol.file.allow=always")
    git(tmp_path, "clone", "-q", str(repo), str(library))
    git(repo, *allow, "submodule", "add", "-q", str(library), "lib")
    git(repo, "commit", "-qm", "with a submodule")
    made = enter(repo)
    assert state_of(made.tree).is_empty
    git(made.folder, *allow, "submodule", "update", "-q", "--init")
    settings, ran = made.tree.git_dir / "modules" / "lib" / "config", tmp_path / "ran"
    git(repo, "config", "--file", str(settings), "core.fsmonitor", f"touch {ran}")
    (made.folder / "lib" / "a.txt").write_text("changed\n")
    state = state_of(made.tree)
    assert state.ignored == ("submodules",)
    assert not ran.exists()


def test_paths_say_what_they_belong_to() -> None:
    top = Path("/r/.holdfast/worktrees/fix")
    assert worktree_of(top / "a" / "b") == top
    assert worktree_of(top.parent) is None
    assert checkout_of(top / "a") == Path("/r/a")
    assert checkout_of(Path("/r/a")) == Path("/r/a")


def test_the_environment_does_not_lead_elsewhere(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "x")
    assert enter(repo).new
    assert os.environ["GIT_DIR"]


def test_what_changes_after_it_was_looked_at_is_never_removed(repo: Path) -> None:
    made = enter(repo)
    mine = Repository.of(repo)
    (made.folder / "build" / "deep").mkdir(parents=True)
    state = state_of(made.tree)
    (made.folder / "new.txt").write_text("precious\n")
    with pytest.raises(GitError, match="has just changed"):
        remove(mine, made.tree, state)
    state = state_of(made.tree)
    (made.folder / "build" / "deep" / "result").write_text("took a day\n")
    with pytest.raises(GitError, match="has just changed"):
        remove(mine, made.tree, state)
    assert (made.folder / "new.txt").read_text() == "precious\n"


@pytest.mark.parametrize("committed", [False, True])
def test_a_repository_inside_is_never_removed(repo: Path, committed: bool) -> None:
    made = enter(repo)
    inner = made.folder / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    git(inner, "config", "user.email", "test@example.org")
    git(inner, "config", "user.name", "Test")
    commit(inner, "work.txt", "work\n")
    mine = Repository.of(repo)
    if committed:
        commit(made.folder, "a.txt", "with inner\n")
        merge(made.tree)
    state = state_of(made.tree)
    assert not state.is_empty
    assert state.inner == ("inner",)
    with pytest.raises(GitError, match="inner, with a repository of its own"):
        remove(mine, made.tree, state)
    assert (inner / "work.txt").exists()


@pytest.mark.parametrize("flag", ["--skip-worktree", "--assume-unchanged"])
def test_changes_that_git_takes_no_notice_of_count(repo: Path, flag: str) -> None:
    made = enter(repo)
    git(made.folder, "update-index", flag, "a.txt")
    mine = Repository.of(repo)
    assert state_of(made.tree).is_empty
    (made.folder / "a.txt").write_text("mine\n")
    state = state_of(made.tree)
    assert state.changed == ("a.txt",)
    ref = remove(mine, made.tree, state).ref
    assert git(repo, "show", f"{ref}:a.txt") == "mine"


def test_what_a_sparse_checkout_leaves_out_is_not_saved_as_deleted(repo: Path) -> None:
    for folder in ("in", "out"):
        (repo / folder).mkdir()
    commit(repo, "in/b.txt", "b\n")
    commit(repo, "out/c.txt", "c\n")
    made = enter(repo)
    git(made.folder, "sparse-checkout", "set", "in")
    assert not (made.folder / "out").exists()
    (made.folder / "in" / "b.txt").write_text("mine\n")
    mine = Repository.of(repo)
    ref = remove(mine, made.tree, state_of(made.tree)).ref
    assert git(repo, "diff", "--name-status", "main", ref) == "M\tin/b.txt"


def test_what_is_only_staged_is_saved_too(repo: Path) -> None:
    made = enter(repo)
    (made.folder / "staged.txt").write_text("staged\n")
    git(made.folder, "add", "staged.txt")
    (made.folder / "staged.txt").unlink()
    mine = Repository.of(repo)
    ref = remove(mine, made.tree, state_of(made.tree)).ref
    assert git(repo, "show", f"{ref}^2:staged.txt") == "staged"


def test_the_last_branch_with_some_commits_stays(repo: Path) -> None:
    git(repo, "switch", "-q", "-c", "feature")
    commit(repo, "f.txt", "f\n")
    made = enter(repo)
    git(repo, "switch", "-q", "main")
    git(repo, "branch", "-q", "-D", "feature")
    mine = Repository.of(repo)
    tree = mine.find("fix")
    assert remove(mine, tree, state_of(tree)).branch == "worktree-fix"
    assert git(repo, "show", "worktree-fix:f.txt") == "f"
    assert not made.folder.exists()


def test_settings_that_hold_in_worktrees_only_run_nothing(repo: Path, tmp_path: Path) -> None:
    trap = tmp_path / "ran"
    (repo / ".git" / "more").write_text(
        f'[filter "trap"]\n\tclean = "touch {trap}; cat"\n\tsmudge = "touch {trap}; cat"\n'
    )
    commit(repo, ".gitattributes", "*.txt filter=trap\n")
    with (repo / ".git" / "config").open("a") as config:
        config.write('[includeIf "gitdir:**/worktrees/**"]\n\tpath = more\n')
    made = enter(repo)
    (made.folder / "a.txt").write_text("changed\n")
    mine = Repository.of(repo)
    state = state_of(made.tree)
    assert state.changed == ("a.txt",)
    remove(mine, made.tree, state)
    assert not trap.exists()
    assert "The repository's own filters (trap) didn't run" in " ".join(made.notes)


def test_nothing_is_fetched_and_a_worktree_that_cannot_be_filled_is_none(
    repo: Path, tmp_path: Path
) -> None:
    trap = tmp_path / "ran"
    blob = git(repo, "rev-parse", "HEAD:a.txt")
    with (repo / ".git" / "config").open("a") as config:
        config.write(
            f'[remote "far"]\n\turl = "ext::touch {trap}"\n\tpromisor = true\n'
            '[protocol "ext"]\n\tallow = always\n'
            "[extensions]\n\tpartialClone = far\n[core]\n\trepositoryFormatVersion = 1\n"
        )
    (repo / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(GitError, match="reset failed"):
        enter(repo)
    assert not trap.exists()
    assert not (repo / ".holdfast" / "worktrees" / "fix").exists()
    assert git(repo, "branch", "--list", "worktree-fix") == ""


def test_links_at_the_names_of_our_own_files_are_not_followed(repo: Path, tmp_path: Path) -> None:
    """A command may write in the git folder of its worktree, and guess the names."""
    made = enter(repo)
    profile = tmp_path / "profile"
    profile.write_text("mine\n")
    for name in ("holdfast.json", f"holdfast-index-{os.getpid()}"):
        (made.tree.git_dir / name).unlink(missing_ok=True)
        (made.tree.git_dir / name).symlink_to(profile)
    (made.folder / "new.txt").write_text("new\n")
    state = state_of(made.tree)
    agree(made.tree, state)
    assert git(repo, "show", f"{remove(Repository.of(repo), made.tree, state).ref}:new.txt")
    assert profile.read_text() == "mine\n"


def test_a_folder_that_a_link_leads_out_of_the_worktree_is_not_made(
    repo: Path, tmp_path: Path
) -> None:
    (repo / "out").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    commit(repo, "c.txt", "with a link\n")
    (repo / "out").unlink()
    (repo / "out" / "new").mkdir(parents=True)
    with pytest.raises(GitError, match="leads out of the worktree"):
        enter(repo / "out" / "new")
    assert not list((tmp_path / "elsewhere").iterdir())
