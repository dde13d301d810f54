"""Language servers as real processes: sound ones, and one that does all it should not."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.clock import ManualClock
from tests.tools.lsp.checking import checkers_of, edited, until, wild, with_wild
from tui.core.clock import SystemClock
from tui.core.config import CheckerSettings, DiagnosticSettings
from tui.tools.lsp import Checkers, FileEdit
from tui.tools.lsp.base import FILE_MAX, read_text
from tui.tools.lsp.server import RESTARTS_MAX, START_S

PROGRAMS = Path(sys.executable).parent

Make = Callable[..., Checkers]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    made: list[Checkers] = []

    def one(mode: str, **fields: Any) -> Checkers:
        made.append(with_wild(tmp_path, mode, **fields))
        return made[-1]

    yield one
    for checkers in made:
        await checkers.close()


def starts(folder: Path) -> list[int]:
    """The processes that were started."""
    file = folder / "starts.log"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_only_what_is_new_is_said_and_only_errors_and_warnings(
    make: Make, tmp_path: Path
) -> None:
    checkers, path = make("usual"), tmp_path / "a.txt"
    before = "BAD old\nfine\n"
    after = "INFO\nHM\nBAD old\nBAD new\n"
    assert await edited(checkers, path, before, after) == [
        "a.txt:4:3 error bad: BAD new [wild 7]",
        "a.txt:1:3 warning hm: HM [wild 7]".replace(":1:", ":2:"),
    ]
    assert await edited(checkers, path, after, after + "fine\n") == []
    assert await edited(checkers, path, after + "fine\n", "BAD old\nBAD third\n") == [
        "a.txt:2:3 error bad: BAD third [wild 7]"
    ]
    assert len(starts(tmp_path)) == 1


async def test_all_of_a_new_file_is_new(make: Make, tmp_path: Path) -> None:
    assert await edited(make("usual"), tmp_path / "new.txt", None, "BAD") == [
        "new.txt:1:3 error bad: BAD [wild 7]"
    ]


async def test_what_something_else_changed_is_shown_to_the_server_before_the_next_edit(
    make: Make, tmp_path: Path
) -> None:
    checkers, one, other = make("usual"), tmp_path / "one.txt", tmp_path / "other.txt"
    await edited(checkers, one, "fine", "fine too")
    await edited(checkers, other, "fine", "fine too")
    one.write_text("BAD by a command")
    await edited(checkers, other, "fine too", "and fine")
    await until(lambda: checkers.take([one]))


async def test_a_file_that_is_gone_is_forgotten(make: Make, tmp_path: Path) -> None:
    checkers, path = make("usual"), tmp_path / "a.txt"
    await edited(checkers, path, "fine", "fine too")
    path.unlink()
    await edited(checkers, tmp_path / "b.txt", "fine", "fine too")
    checkers.forget(tmp_path / "b.txt")
    assert await edited(checkers, path, "BAD", "BAD\nBAD again") == [
        "a.txt:2:3 error bad: BAD again [wild 7]"
    ]


async def test_it_ends_with_the_session(make: Make, tmp_path: Path) -> None:
    checkers = make("usual")
    await edited(checkers, tmp_path / "a.txt", "fine", "BAD")
    (pid,) = starts(tmp_path)
    assert is_running(pid)
    await checkers.close()
    assert not is_running(pid)


async def test_its_settings_reach_it(make: Make, tmp_path: Path) -> None:
    checkers = make("asks", settings={"wild": {"depth": 3}})
    said = await edited(checkers, tmp_path / "a.txt", "fine", "BAD")
    assert said == ['a.txt:1:3 error [3, {}, {"wild": {"depth": 3}}] [wild 7]']


async def test_a_column_is_in_characters_whatever_the_server_counts(
    make: Make, tmp_path: Path
) -> None:
    said = await edited(make("wide"), tmp_path / "a.txt", "", "äö𝄞 BAD")
    assert said == ["a.txt:1:5 error here [wild 7]"]


async def test_messages_that_are_none_change_nothing(make: Make, tmp_path: Path) -> None:
    checkers = make("malformed")
    said = await edited(checkers, tmp_path / "a.txt", "fine", "BAD")
    assert said == ["a.txt:1:3 error bad: BAD [wild 7]"]
    assert checkers.all[0].state == "ready"


async def test_other_files_old_versions_and_odd_diagnostics_do_not_count(
    make: Make, tmp_path: Path
) -> None:
    said = await edited(make("odd"), tmp_path / "a.txt", "fine", "BAD")
    assert [line[:40] for line in said] == [
        "a.txt:10000:1 error beyond the end [wild",
        "a.txt:1:3 error turned round </untrusted",
    ]
    assert all(line.isprintable() and len(line) < 400 for line in said)


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("flood", "it sent more than 32"),
        ("huge", "it sent a message of"),
        ("endless", "it sent a message of"),
        ("headless", "it sent what isn't the protocol"),
        ("nonsense", "it sent what isn't the protocol"),
    ],
)
async def test_one_that_breaks_a_limit_is_ended_and_said_once(
    make: Make, tmp_path: Path, mode: str, why: str
) -> None:
    checkers, path = make(mode), tmp_path / "a.txt"
    assert await edited(checkers, path, "fine", "BAD") == []
    await until(lambda: checkers.all[0].state == "failed")
    (pid,) = starts(tmp_path)
    await until(lambda: not is_running(pid))
    (said,) = checkers.take_complaints()
    assert said.startswith(f"wild can't check your files: {why}")
    assert await edited(checkers, path, "BAD", "BAD too") == []
    assert checkers.take_complaints() == []
    assert len(starts(tmp_path)) == 1


async def test_one_that_crashes_is_started_again_twice(make: Make, tmp_path: Path) -> None:
    checkers, path = make("crash"), tmp_path / "a.txt"
    said: list[str] = []
    for number in range(RESTARTS_MAX + 3):
        await edited(checkers, path, f"{number}", f"{number + 1}")
        left = min(number + 1, RESTARTS_MAX + 1)
        await until(lambda: checkers.all[0].state == ("failed" if left > RESTARTS_MAX else "off"))  # noqa: B023
        said += checkers.take_complaints()
    assert len(starts(tmp_path)) == 1 + RESTARTS_MAX
    why = "exit code 3, it broke"
    assert said == [
        f"wild ended: {why}. The next edit starts it again.",
        f"wild can't check your files: it ended 3 times: {why}. It is off in this session.",
    ]


async def test_one_that_never_answers_is_ended(make: Make, tmp_path: Path) -> None:
    clock = ManualClock()
    checkers, path = make("mute", clock=clock), tmp_path / "a.txt"
    task = checkers.begin([FileEdit(path, "", "BAD")])
    await until(lambda: START_S in clock.slept and starts(tmp_path))
    clock.advance(START_S)
    await task
    (pid,) = starts(tmp_path)
    assert not is_running(pid)
    assert "didn't answer within 30 s" in checkers.take_complaints()[0]
    assert await edited(checkers, path, "BAD", "BAD too") == []
    assert len(starts(tmp_path)) == 1


async def test_one_that_says_nothing_of_clean_files_is_not_off_for_that(
    make: Make, tmp_path: Path
) -> None:
    checkers, path = make("when_it_changes"), tmp_path / "a.txt"
    text = "fine"
    for number in range(4):
        assert await edited(checkers, path, text, f"fine {number}") == []
        text = f"fine {number}"
    assert await edited(checkers, path, text, "BAD") == ["a.txt:1:3 error bad: BAD [wild 7]"]
    assert checkers.all[0].state == "ready"
    assert checkers.take_complaints() == []


async def test_one_that_ends_before_it_answers_is_said_at_once_in_its_words(
    tmp_path: Path,
) -> None:
    program = tmp_path / "proxy"
    lines = "error: Unknown binary 'server' in the toolchain\n\nStack backtrace:\n  15: <unknown>"
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{lines}\nEND\nexit 1\n")
    program.chmod(0o755)
    server = CheckerSettings(command=str(program), files=("*.txt",))
    checkers = checkers_of(tmp_path, DiagnosticSettings(checkers={"proxy": server}))
    assert await edited(checkers, tmp_path / "a.txt", "", "BAD") == []
    (said,) = checkers.take_complaints()
    why = "exit code 1, error: Unknown binary 'server' in the toolchain"
    assert said == f"proxy can't check your files: {why}. It is off in this session."


@pytest.mark.parametrize("mode", ["pulled", "busy"])
async def test_one_that_can_be_asked_is_asked_for_each_text(
    make: Make, tmp_path: Path, mode: str
) -> None:
    checkers, path = make(mode), tmp_path / "a.txt"
    assert await edited(checkers, path, "BAD old\n", "BAD old\nBAD new\n") == [
        "a.txt:2:3 error bad: BAD new [wild 7]"
    ]
    assert await edited(checkers, path, "BAD old\nBAD new\n", "BAD old\n") == []


async def test_an_error_that_a_server_shows_is_said_once(make: Make, tmp_path: Path) -> None:
    checkers, path = make("shows_errors"), tmp_path / "a.txt"
    await edited(checkers, path, "fine", "fine too")
    assert checkers.take_complaints() == ["wild says: it found no workspace at all"]
    await edited(checkers, path, "fine too", "fine again")
    assert checkers.take_complaints() == []


async def test_where_the_preferred_one_fails_the_next_one_is_taken(tmp_path: Path) -> None:
    for name, does in (("pyright-langserver", "exit 1"), ("ruff", f"exec {_usual()}")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    checkers = checkers_of(tmp_path, DiagnosticSettings(), search_path=str(tmp_path))
    assert await edited(checkers, tmp_path / "a.py", "", "fine") == []
    assert await edited(checkers, tmp_path / "a.py", "fine", "BAD") == [
        "a.py:1:3 error bad: BAD [wild 7]"
    ]
    await checkers.close()


def _usual() -> str:
    return f"{sys.executable} {wild('usual').command[1]} usual"


async def test_one_that_is_not_there_is_said_where_it_was_asked_for(tmp_path: Path) -> None:
    gone = CheckerSettings(command="no-such-server --stdio", files=("*.txt",))
    checkers = checkers_of(tmp_path, DiagnosticSettings(checkers={"gone": gone}))
    assert await edited(checkers, tmp_path / "a.txt", "", "BAD") == []
    assert checkers.take_complaints() == [
        "gone can't check your files: no-such-server wasn't found. It is off in this session."
    ]
    unasked = checkers_of(tmp_path, DiagnosticSettings())
    assert await edited(unasked, tmp_path / "a.py", "", "x: int = ''") == []
    assert unasked.take_complaints() == []
    assert unasked.all == []


async def test_the_projects_own_program_comes_first_and_only_where_it_is_trusted(
    tmp_path: Path,
) -> None:
    for folder in (".venv/bin", "elsewhere"):
        (tmp_path / folder).mkdir(parents=True)
        program = tmp_path / folder / "ruff"
        program.write_text(f"#!/bin/sh\nexec {sys.executable} {wild('usual').command[1]} usual\n")
        program.chmod(0o755)
    search = str(tmp_path / "elsewhere")
    for brought, chosen in (((".venv/bin/ruff",), ".venv/bin"), ((), "elsewhere")):
        checkers = checkers_of(tmp_path, DiagnosticSettings(), search_path=search, brought=brought)
        assert len(await edited(checkers, tmp_path / "a.py", "", "BAD")) == 1
        assert checkers.all[0].words == (str(tmp_path / chosen / "ruff"), "server")
        await checkers.close()


async def test_a_known_one_that_is_switched_off_is_not_taken(tmp_path: Path) -> None:
    program = tmp_path / "pylsp"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    off = DiagnosticSettings(checkers={"pylsp": CheckerSettings(off=True)})
    checkers = checkers_of(tmp_path, off, search_path=str(tmp_path))
    assert await edited(checkers, tmp_path / "a.py", "", "import os\n") == []
    assert checkers.all == []


@pytest.mark.parametrize("name", ["basedpyright", "ruff"])
async def test_real_servers_find_what_an_edit_broke(name: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.basedpyright]\nreportUnusedImport = "warning"\n'
    )
    settings = DiagnosticSettings(checkers={name: CheckerSettings()})
    clock = SystemClock()
    checkers = checkers_of(tmp_path, settings, search_path=str(PROGRAMS), clock=clock)
    path = tmp_path / "a.py"
    before, after = "import sys\n", "import os\nimport sys\n"
    said = await edited(checkers, path, before, after)
    assert [line for line in said if line.startswith("a.py:1:8 warning") and "os" in line]
    assert not [line for line in said if "`sys`" in line or '"sys"' in line]
    said = await edited(checkers, path, after, "def f(:\n")
    assert any(" error " in line for line in said)
    await checkers.close()


async def test_closing_while_it_starts_leaves_nothing(make: Make, tmp_path: Path) -> None:
    checkers = make("mute")
    checkers.begin([FileEdit(tmp_path / "a.txt", "", "BAD")])
    await until(lambda: starts(tmp_path))
    await checkers.close()
    (pid,) = starts(tmp_path)
    assert not is_running(pid)


def test_only_texts_of_a_sound_size_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for data, text in (
        (b"fine", "fine"),
        (b"a\0b", None),
        (b"\xff", None),
        (b"x" * FILE_MAX, "x" * FILE_MAX),
        (b"x" * (FILE_MAX + 1), None),
    ):
        path.write_bytes(data)
        assert read_text(path) == text
    path.unlink()
    assert read_text(path) is None


async def test_many_edits_at_once_are_checked_each(make: Make, tmp_path: Path) -> None:
    checkers = make("usual")
    paths = [tmp_path / f"{number}.txt" for number in range(5)]
    await checkers.begin([FileEdit(path, "", "BAD") for path in paths])
    assert len(checkers.take(paths)) == 5
    await asyncio.gather(*(checkers.begin([FileEdit(p, "BAD", "HM")]) for p in paths))
    assert {one.severity for one in checkers.take(paths)} == {"warning"}
    assert len(starts(tmp_path)) == 1
