"""Notes that commits carry (`git notes`), under a ref of ours. Blocks; raises GitError."""

from __future__ import annotations

from collections.abc import Iterator

from tui.core.git.checkout import Checkout


def add_note(checkout: Checkout, ref: str, text: str) -> str:
    """Add a note to the commit that is checked out. Returns the commit's id."""
    commit = checkout.git("rev-parse", "--verify", "HEAD^{commit}").strip()
    note = ("notes", f"--ref={ref}", "append", "-m", text, commit)
    checkout.git(*note, env=checkout.identity())
    return commit


def put_note(checkout: Checkout, ref: str, commit: str, text: str) -> None:
    """Put a note in the place of a commit's own, or make it."""
    note = ("notes", f"--ref={ref}", "add", "-f", "-F", "-", commit)
    checkout.git(*note, stdin=text, env=checkout.identity())


def read_note(checkout: Checkout, ref: str, commit: str) -> str:
    """The note of a commit; "" for none."""
    return checkout.answer("notes", f"--ref={ref}", "show", commit)


def noted_lines(checkout: Checkout, ref: str, most: int) -> Iterator[tuple[str, str]]:
    """The lines of the first `most` notes, each with its commit."""
    for entry in checkout.git("notes", f"--ref={ref}", "list").splitlines()[:most]:
        blob, _, commit = entry.partition(" ")
        for line in checkout.git("cat-file", "blob", blob).splitlines():
            yield commit, line
