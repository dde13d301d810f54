"""What is piped into `-p`, before an agent stands."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from tests.support.agents import Yes, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.cli import print_mode
from tui.cli.event_output import write_event
from tui.cli.standard_input import standard_input
from tui.core import facts
from tui.core.clock import SystemClock


class _Told(io.StringIO):
    """A stderr whose first message makes somebody write to the pipe at last."""

    def __init__(self, writer: int) -> None:
        super().__init__()
        self.writer = writer

    def write(self, text: str, /) -> int:
        if not self.getvalue():
            os.write(self.writer, b" late but here \n")
            os.close(self.writer)
        return super().write(text)


def test_a_silent_standard_input_is_waited_for_and_said_to_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader, writer = os.pipe()
    err = _Told(writer)
    with os.fdopen(reader) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        monkeypatch.setattr(sys, "stderr", err)
        monkeypatch.setattr("tui.cli.standard_input.STDIN_PATIENCE_S", 0)
        assert standard_input() == "late but here"
    assert "< /dev/null" in err.getvalue()


def test_a_standard_input_that_speaks_at_once_is_only_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"/think \xff")
    os.close(writer)
    with os.fdopen(reader) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        assert standard_input() == "/think \ufffd"
    assert capsys.readouterr() == ("", "")


async def test_what_still_runs_at_the_end_is_stopped_and_said_to_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = [call("run_command", "1", command="echo up; sleep 1000", background=True)]
    agent = make_agent(tmp_path, ScriptedProvider(start, say("it runs")), approver=Yes())
    code = await print_mode.run(agent, "go", format_="stream-json", clock=SystemClock())
    printed = capsys.readouterr()
    assert code == 0
    assert '"type":"job_started","id":"job-1","call_id":"1"' in printed.out
    assert "Stopping 1 background command: they end with this run." in printed.err
    (owned,) = agent.jobs.all
    assert (owned.job.ended, owned.job.stopped_by) == (True, "program")
    ended = [one.data for one in agent.session.records if one.type == "job_ended"]
    assert [one["stopped_by"] for one in ended] == ["program"]


def test_each_file_that_changed_outside_is_an_event_of_its_own() -> None:
    out = io.StringIO()
    files = tuple(
        {"path": name, "state": "changed", "why": "", "calls": ["1"]} for name in ("a.txt", "b.txt")
    )
    write_event(facts.FilesChanged(files, "Two files changed."), "stream-json", out, io.StringIO())
    whole, *each = map(json.loads, out.getvalue().splitlines())
    assert whole["type"] == "files_changed"
    assert [(one["type"], one["path"]) for one in each] == [
        ("file_changed_outside", "a.txt"),
        ("file_changed_outside", "b.txt"),
    ]
