"""The man page: as the program has it now, and clean for those who format it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tui.app.man_page import text
from tui.app.options.flags import COMMANDS, MAIN
from tui.cli import main

ROOT = Path(__file__).parents[2]
PAGE = ROOT / ".packaging" / "holdfast.1"


def test_the_committed_page_is_the_programs() -> None:
    assert PAGE.read_text(encoding="utf-8") == text(), "holdfast help --man > .packaging/holdfast.1"


def test_it_goes_where_man_finds_it_and_into_the_sdist() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '".packaging/holdfast.1" = "share/man/man1/holdfast.1"' in project
    assert '"/.packaging"' in project


def test_it_has_every_option_command_and_exit_code() -> None:
    plain = text().replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
    for command in (MAIN, *COMMANDS):
        assert all(name in plain for flag in command.flags for name in flag.names)
        assert " ".join(("holdfast", *command.words)) in plain
    for name, code in vars(main).items():
        if name.startswith("EXIT_"):
            assert f"\n.TP\n{code}\n" in plain, name


def test_help_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["help", "--man"]) == 0
    assert capsys.readouterr().out == text()


@pytest.mark.parametrize(
    "command",
    [
        ["mandoc", "-Tlint", "-Wall", str(PAGE)],
        ["groff", "-man", "-Tutf8", "-Kutf8", "-ww", "-z", str(PAGE)],
    ],
    ids=["mandoc", "groff"],
)
def test_those_who_format_it_have_no_complaint(command: list[str]) -> None:
    """Seen with mandoc 1.14.6 and groff 1.22.4."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
