"""The commands of a session that become checks, and paths that come along to another folder."""

from __future__ import annotations

import pytest

from tui.batch.replay.recorded import ends_as_its_check, is_check, relocated


@pytest.mark.parametrize(
    "line",
    [
        "pytest -q",
        "cd api && python -m pytest tests/test_a.py -x",
        "uv run pytest 2>&1 | tail -5",
        "npm test",
        "npm run lint -- --fix",
        "make check",
        "sh run_tests.sh",
        "./test.sh",
        "cargo clippy && cargo build",
        "go vet ./...",
        "python tests/smoke_test.py",
        "npx tsc --noEmit",
        "ruff check .",
    ],
)
def test_commands_that_judge_are_checks(line: str) -> None:
    assert is_check(line)


@pytest.mark.parametrize(
    "line",
    [
        "ls tests",
        "cat tests/test_a.py | head -20",
        "cd api; grep -rn latest .",
        "git checkout -b test",
        "pip install pytest",
        "echo testing",
        "python app.py --latest",
        "mkdir -p tests && touch tests/__init__.py",
    ],
)
def test_commands_that_look_or_prepare_are_none(line: str) -> None:
    assert not is_check(line)


@pytest.mark.parametrize(
    ("line", "ends"),
    [
        ("pytest -q", True),
        ("cd api && pytest && echo done", True),
        ("cd api; pytest 2>&1 | tail -5", True),
        ("ruff check .; pytest;", True),
        ("pytest || exit 1", True),
        ("set -e; pytest; echo done", True),
        ("set -o pipefail; pytest | awk 1", True),
        ("bash -c 'cd x; npm test'", True),
        ("pytest -k 'a; b'", True),
        ("pytest; true", False),
        ("pytest || true", False),
        ("pytest || echo 'exit 1'", False),
        ("pytest\necho $?", False),
        ("pytest -q | awk 1", False),
        ("pytest & wait", False),
        ("pytest && ruff check . || :", False),
        ("pytest; git commit -m 'all tests pass'", False),
    ],
)
def test_a_check_whose_failure_is_hidden_judges_nothing(line: str, ends: bool) -> None:
    assert is_check(line)
    assert ends_as_its_check(line) is ends


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("/home/me/app/a.py", "/new/a.py"),
        ("in /home/me/app, and in /home/me/app.", "in /new, and in /new."),
        ("/home/me/app2/a /home/me/app-x /home/me/app.old", None),
        ("/var/home/me/app", None),
        ("file:///home/me/app/a", "file:///new/a"),
    ],
)
def test_only_paths_in_the_folder_are_moved(text: str, moved: str | None) -> None:
    assert relocated(text, "/home/me/app", "/new") == (text if moved is None else moved)


def test_the_root_of_all_paths_moves_nothing() -> None:
    assert relocated("/usr/bin", "/", "/new") == "/usr/bin"
