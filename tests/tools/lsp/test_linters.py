"""Linters: commands that are run for each edited file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.clock import ManualClock
from tests.tools.lsp.checking import checkers_of, edited, until
from tui.core.config import CheckerSettings, DiagnosticSettings
from tui.tools.lsp import Checkers, FileEdit
from tui.tools.lsp.base import CHECK_S

RUFF = f"{Path(sys.executable).parent / 'ruff'} check --output-format=concise {{file}}"


def with_linter(
    root: Path, command: str | tuple[str, ...], clock: ManualClock | None = None
) -> Checkers:
    linter = CheckerSettings(command=command, files=("*.py",))
    return checkers_of(root, DiagnosticSettings(checkers={"linter": linter}), clock=clock)


def program(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text, "{file}")


async def test_a_real_linter_says_what_is_new_in_the_lines_of_an_edit(tmp_path: Path) -> None:
    checkers, path = with_linter(tmp_path, RUFF), tmp_path / "a.py"
    said = await edited(checkers, path, "import sys\n", "import sys\n\nprint(missing)\n")
    assert len(said) == 1
    assert said[0].startswith("a.py:3:7 warning F821 Undefined name `missing` [linter]")
    after = "import sys\n\nprint(missing)\nprint(gone)\n"
    said = await edited(checkers, path, "", after)
    assert [line.split(" [")[0] for line in said] == ["a.py:4:7 warning F821 Undefined name `gone`"]


async def test_many_forms_of_lines_are_read_and_others_left_out(tmp_path: Path) -> None:
    lines = [
        "{path}:1:2: error: no [such]",
        "{path}(2,3): warning TS1: what",
        "./a.py:3: fatal error: bad",
        "a.py:1:1: note: by the way",
        "other.py:1:1: error: elsewhere",
        "1 problem",
        "a.py:99999999999999:1: error: far",
    ]
    text = f"import sys\nfor line in {lines!r}: print(line.replace('{{path}}', sys.argv[1]))"
    checkers = with_linter(tmp_path, program(text))
    assert await edited(checkers, tmp_path / "a.py", None, "a\nb\nc\n") == [
        "a.py:1:2 error no [such] [linter]",
        "a.py:3 error bad [linter]",
        "a.py:2:3 warning TS1: what [linter]",
    ]


async def test_one_that_floods_is_read_to_a_limit(tmp_path: Path) -> None:
    text = "import sys\nfor n in range(400_000): print(f'{sys.argv[1]}:1:1: error: number {n}')"
    checkers = with_linter(tmp_path, program(text))
    said = await edited(checkers, tmp_path / "a.py", None, "a\n")
    assert len(said) == 21
    assert said[-1] == "… and 1,980 more"


async def test_one_that_takes_too_long_is_ended_and_not_run_again(tmp_path: Path) -> None:
    clock, pid = ManualClock(), tmp_path / "pid"
    text = f"import os, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    checkers = with_linter(tmp_path, program(text), clock=clock)
    task = checkers.begin([FileEdit(tmp_path / "a.py", None, "a")])
    await until(lambda: CHECK_S in clock.slept and pid.exists() and pid.read_text())
    clock.advance(CHECK_S)
    await task
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    assert "took longer than 30 s" in checkers.take_complaints()[0]
    pid.unlink()
    await checkers.begin([FileEdit(tmp_path / "a.py", None, "b")])
    assert not pid.exists()


async def test_one_whose_program_is_gone_is_said(tmp_path: Path) -> None:
    checkers = with_linter(tmp_path, "./no-such-program {file}")
    await edited(checkers, tmp_path / "a.py", None, "a")
    assert checkers.take_complaints() == [
        "linter can't check your files: ./no-such-program wasn't found. It is off in this session."
    ]
