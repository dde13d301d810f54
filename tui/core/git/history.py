"""The history of a checkout as git tells it: where HEAD went, files in commits, and who committed
their lines. Blocks; raises GitError."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tui.core.dataclass import dataclass
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError
from tui.core.git.quoted_names import unquoted

_MOVES_MAX: Final = 20_000
_FIELD: Final = "%x00"
_PICKED: Final = ("(pick)", "(reword)", "(edit)", "(squash)", "(fixup)", "(continue)")
"""Steps of a rebase that make a commit, as HEAD's log names them."""


@dataclass(frozen=True, slots=True)
class HeadMove:
    """A commit that HEAD came to, when (seconds since the epoch), and by what, in git's words:
    `commit: …`, `pull: Fast-forward`."""

    commit: str
    time: int
    words: str

    @property
    def is_commit(self) -> bool:
        """True if what was checked out was committed, and no file changed by it."""
        return self.words.startswith(("commit:", "commit (initial)", "commit (amend)"))

    @property
    def made_here(self) -> bool:
        """True if the commit was made in this checkout; else it came from elsewhere, as with a pull
        that only goes forward, or HEAD went back to it."""
        made = ("commit", "cherry-pick", "revert", "am", "holdfast")
        by, _, what = self.words.partition(":")
        return by.startswith(made) or by.endswith(_PICKED) or what.startswith(" Merge made")


class CommittedLine(NamedTuple):
    """The commit that a line came with: its id, its author and their address (`<a@b>`), when it was
    written and committed, in seconds since the epoch, its subject, and the file's path in it.
    `previous` is the commit before it that has the file, and the path there: "" where it began."""

    commit: str
    author: str
    mail: str
    time: int
    committed: int
    summary: str
    name: str
    previous: str = ""


def head_moves(checkout: Checkout) -> list[HeadMove]:
    """The moves of HEAD, by its own log, the oldest first."""
    return _moves(checkout, "HEAD")


def commits_made(checkout: Checkout) -> dict[str, int]:
    """The commits that were made in any work tree of the repository, also in one that is gone, as
    the logs of HEADs and branches tell, and when; the oldest first."""
    made = sorted((one for one in _moves(checkout, "--all") if one.made_here), key=_time)
    return {one.commit: one.time for one in made}


def changed_in(
    checkout: Checkout, commits: Iterable[str], paths: Sequence[str]
) -> list[tuple[str, str]]:
    """The commits that changed one of these files, with its path there; no merges."""
    shape = ("--stdin", "-r", "--root", "--no-renames", "--diff-filter=AM", "--name-only", "-z")
    words = checkout.git(
        "diff-tree", *shape, "--", *paths, stdin="".join(f"{c}\n" for c in commits)
    )
    found: list[tuple[str, str]] = []
    commit = ""
    for word in words.strip("\0").split("\0"):
        if word in paths:
            found.append((commit, word))
        else:
            commit = word
    return found


def _time(move: HeadMove) -> int:
    return move.time


def _moves(checkout: Checkout, of: str) -> list[HeadMove]:
    shape = f"--format=%H{_FIELD}%gd{_FIELD}%gs"
    log = ("log", "-g", "-z", f"-n{_MOVES_MAX}", shape, "--date=unix", of, "--")
    moves: list[HeadMove] = []
    words = checkout.git(*log).split("\0")
    for commit, when, what in zip(words[::3], words[1::3], words[2::3], strict=False):
        time = when.partition("@{")[2].rstrip("}")
        moves.append(HeadMove(commit, int(time) if time.isdecimal() else 0, what))
    return moves[::-1]


def committed_text(checkout: Checkout, commit: str, path: str) -> str | None:
    """A file of a commit, as it would be checked out; None where there is none. Odd bytes are kept
    as `os.fsdecode` has them."""
    if not checkout.answer("rev-parse", "--verify", "-q", f"{commit}:{path}"):
        return None
    return checkout.git("cat-file", "--filters", f"{commit}:{path}")


def committed_lines(checkout: Checkout, commit: str, path: str) -> list[tuple[CommittedLine, int]]:
    """The commits of a file's lines, as `git blame` follows them from a commit on, each with the
    line's place in that commit, from 0."""
    known: dict[str, dict[str, str]] = {}
    lines: dict[str, CommittedLine] = {}
    found: list[tuple[CommittedLine, int]] = []
    at, place = "", 0
    for line in _blame(checkout, commit, path).split("\n"):
        if line.startswith("\t"):
            # what is said of a commit comes whole before its first line
            if at not in lines:
                lines[at] = _line(at, known[at])
            found.append((lines[at], place))
            continue
        word, _, rest = line.partition(" ")
        if len(word) in {40, 64} and rest[:1].isdigit():
            at, place = word, int(rest.split(" ", 1)[0]) - 1
            known.setdefault(at, {})
        elif at:
            known[at][word] = rest
    return found


def _blame(checkout: Checkout, commit: str, path: str) -> str:
    blame, what = ("blame", "--no-textconv", "--porcelain"), (commit, "--", path)
    try:
        return checkout.git(*blame, *what)
    except GitError:  # such as a file of commits to ignore that isn't there
        return checkout.git(*blame, "--no-ignore-revs-file", *what)


def _line(commit: str, fields: dict[str, str]) -> CommittedLine:
    times = (fields.get("author-time", ""), fields.get("committer-time", ""))
    authored, committed = (int(text) if text.isdecimal() else 0 for text in times)
    author, mail, summary, name = (
        fields.get(key, "") for key in ("author", "author-mail", "summary", "filename")
    )
    before, blank, path = fields.get("previous", "").partition(" ")
    previous = f"{before}{blank}{unquoted(path)}"
    name = unquoted(name)
    return CommittedLine(commit, author, mail, authored, committed, summary, name, previous)


def former_name(checkout: Checkout, path: str) -> str:
    """The name that a file had before HEAD's history gave it this one; "" where it had none."""
    log = ("log", "--follow", "-M", "--diff-filter=R", "-n1", "--name-status", "-z", "--format=")
    words = checkout.git(*log, "HEAD", "--", path).strip("\0\n").split("\0")
    return words[1] if len(words) == 3 and words[2] == path else ""


def uncommitted_former_name(checkout: Checkout, path: str) -> str:
    """The name that HEAD has a file by which was renamed since, as by `git mv`; "" for none."""
    diff = ("diff", "--no-ext-diff", "-M", "--diff-filter=R", "--name-status", "-z", "HEAD", "--")
    words = checkout.git(*diff).split("\0")
    names = dict(zip(words[2::3], words[1::3], strict=False))
    return names.get(path, "")


def adding_commit(checkout: Checkout, path: str) -> str:
    """The commit that HEAD's history has a file since; "" for none."""
    log = ("log", "--no-renames", "--diff-filter=A", "-n1", "--format=%H")
    return checkout.git(*log, "HEAD", "--", path).strip()


def files_gone_with(checkout: Checkout, commit: str) -> list[str]:
    """The files that a commit took away from its first parent's."""
    if not checkout.answer("rev-parse", "--verify", "-q", f"{commit}^"):
        return []
    shape = ("-r", "-z", "--no-renames", "--diff-filter=D", "--name-only")
    return checkout.git("diff-tree", *shape, f"{commit}^", commit).strip("\0").split("\0")


def parents(checkout: Checkout, commit: str) -> list[str]:
    """The commits that a commit was made on, the branch's own first."""
    return checkout.git("rev-parse", f"{commit}^@").split()


def reverted_commit(checkout: Checkout, commit: str) -> str:
    """The commit that one takes back, by git's own words in its message; "" for none."""
    _, _, rest = checkout.git("log", "-1", "--format=%b", commit).partition("This reverts commit ")
    word = re.match(r"[0-9a-f]{7,64}", rest)
    known = word and checkout.answer("rev-parse", "--verify", "-q", f"{word[0]}^")
    return word[0] if word and known else ""


def worktree_tops(checkout: Checkout) -> list[str]:
    """The folders of all work trees of the repository, the main one first."""
    output = checkout.git("worktree", "list", "--porcelain")
    lines = output.splitlines()
    return [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")]
