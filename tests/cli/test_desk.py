"""`holdfast desk`, `serve` and `attach ssh://…`: what they print, and what they refuse."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.support.desk_world import TIME, chain_of, home_in, write_session
from tests.support.owner import owner_process
from tui.app.options.arguments import Options
from tui.cli import main
from tui.cli.desk import print_desk, print_rows
from tui.core.clock import SystemClock
from tui.core.errors import UsageError
from tui.core.paths import folders
from tui.desk.far_session import far_session
from tui.desk.host import Changed, Channel, DeskRow


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of a home with one saved session."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    write_session(home_in(tmp_path), "abc", chain_of("first words"))
    return folders().data


def test_the_desk_as_json(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with owner_process(data, ["abc", "xyz"], streaming=1):
        assert main.main(["desk", "--json"]) == 0
    (one, two) = json.loads(capsys.readouterr().out)["sessions"]
    assert one.keys() == {
        *("id", "host", "state", "detail", "question", "title", "cost_usd", "cwd", "branch"),
        *("model", "profile", "started", "since", "kind", "problem"),
    }
    assert (one["id"], one["host"], one["state"], one["kind"]) == (
        "abc",
        "",
        "working",
        "background",
    )
    assert (one["started"], one["question"]) == (TIME, None)
    assert (two["id"], two["state"], two["cost_usd"]) == ("xyz", "idle", None)


def test_the_desk_without_a_terminal_is_a_table(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["desk"]) == 0
    assert "No session is open" in capsys.readouterr().err
    with owner_process(data, ["xyz"]):
        assert main.main(["desk"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["ID", "STATE", "SINCE", "COST", "TITLE", "FOLDER"]
    assert row.split()[:2] == ["xyz", "idle"]
    assert "session xyz" in row


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00", "x"])
def test_a_time_that_no_clock_has_ends_nothing(
    time: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_rows([DeskRow(id="far1", since=time, started=time)], SystemClock().now())
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["far1", "saved", "now"]


class UnreachableHost:
    """A machine that says why it can't be reached, and has a row from before."""

    name = "build"
    problem = "The line is cut."
    rows = (DeskRow(id="far1", host="build", state="waiting", title="a\x1b[31mb\nc"),)

    def follow(self, changed: Changed) -> None:
        changed()

    async def open(self, session: str) -> Channel:
        raise AssertionError(session)

    async def start(self, cwd: str, prompt: str) -> str:
        raise AssertionError(cwd, prompt)

    async def dismiss(self, session: str) -> None:
        raise AssertionError(session)

    async def close(self) -> None:
        self.problem = ""


def test_a_machine_that_cannot_be_reached_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    host = UnreachableHost()
    assert asyncio.run(print_desk(Options(), [host], SystemClock())) == 1
    said = capsys.readouterr()
    assert said.err == "The line is cut.\n"
    head, row = said.out.splitlines()
    assert head.split() == ["ID", "STATE", "SINCE", "COST", "TITLE", "HOST", "FOLDER"]
    assert row.startswith("far1  waiting for you")


@pytest.mark.parametrize(
    ("text", "host", "id_"),
    [
        ("ssh://box/3f2a", "box", "3f2a"),
        ("ssh://me@box.lan:2222/3f2a-1", "me@box.lan:2222", "3f2a-1"),
        ("ssh://[::1]:22/3f2a", "[::1]:22", "3f2a"),
        ("ssh://box/Fix: the a/b parser", "box", "Fix: the a/b parser"),
    ],
)
def test_a_session_elsewhere_by_its_name(text: str, host: str, id_: str) -> None:
    assert far_session(text) == (host, id_)


@pytest.mark.parametrize(
    "text",
    [
        *("ssh://", "ssh://box", "ssh://box/", "ssh:///3f2a", "ssh://box/ ", "ssh://box/x\x1b[2J"),
        *("ssh://-oProxyCommand=x/3f2a", "ssh://a b/3f2a", "ssh://box/-3", "ssh://box/3\n4"),
    ],
)
def test_a_bad_name_is_refused(data: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert data
    with pytest.raises(UsageError, match="names no session"):
        far_session(text)
    assert main.main(["attach", text]) == main.EXIT_USAGE
    assert "ssh://HOST/ID" in capsys.readouterr().err


def test_serve_serves_standard_input_and_output_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main.main(["serve"]) == main.EXIT_USAGE
    assert "holdfast serve --stdio" in capsys.readouterr().err
