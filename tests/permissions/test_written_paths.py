"""What a command line can have changed, by its words alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.permissions.written_paths import written_paths

WORK = Path("/w")


def named(command: str) -> set[str]:
    paths = written_paths(command, WORK)
    assert paths is not None
    return set(map(str, paths))


def test_what_redirections_and_words_name_is_all_that_is_written() -> None:
    command = "cat > a.py <<'END'\nx = (1)\nEND\ntouch /m; while [ -e /m ]; do sleep 1; done"
    assert named(command) == {"/w/a.py", "/w/1", "/m"}
    assert named("echo hi | tee -a src/../b.txt") == {"/w/b.txt", "/w/-a", "/w/hi"}


@pytest.mark.parametrize(
    "command",
    [
        "make",
        "python3 make.py > out.txt",
        "echo x > $OUT",
        "echo x > ~/out",
        "rm *.py",
        "echo `make`",
        "echo $(make)",
        "cat <<END\n$(make)\nEND",
        "cd src && echo x > a.py",
        "./cat a.py",
        "PATH=. cat a.py",
        "sh -c 'echo x'",
        "echo 'unclosed",
    ],
)
def test_anything_else_may_have_written_anything(command: str) -> None:
    assert written_paths(command, WORK) is None
