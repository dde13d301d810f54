"""What is piped into `-p`, before an agent stands."""

from __future__ import annotations

import io
import os
import sys

import pytest

from tui.cli import print_mode
from tui.cli.print_mode import standard_input


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
        monkeypatch.setattr(print_mode, "STDIN_PATIENCE_S", 0)
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
