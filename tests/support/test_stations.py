"""`python -m tests.benchmarks --profile`: samples of processes become a table of stations."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.benchmarks import stations
from tests.benchmarks.stations import ProfileError

_BENCHMARK = 'process 1:"python -m tests.benchmarks keys"'
_PROGRAM = f'{_BENCHMARK};process 7:"/venv/bin/python -m tui --practice"'
_MAIN = "main (tui/cli/main.py:30)"
_MARKDOWN = "prefixed (tui/ui/widgets/markdown/text.py:9)"
_SSE = "EventDecoder.feed (tui/provider/anthropic/sse.py:40)"


def _summed(*raw: str) -> dict[str, tuple[int, dict[str, int]]]:
    return {one.name: (one.count, dict(one.functions)) for one in stations.stations(raw)}


def test_a_sample_counts_for_the_innermost_call_that_has_a_station() -> None:
    assert _summed(
        f"{_PROGRAM};{_MAIN};{_SSE};loads (json/__init__.py:1);decode (json/decoder.py:2) 3",
        f"{_PROGRAM};{_MAIN};{_SSE} 4",
        f"{_PROGRAM};{_MAIN};{_SSE};{_MARKDOWN};<genexpr> (typing.py:5) 2",
        f"{_PROGRAM};start (runpy.py:5) 1",
    ) == {
        "server-sent events": (7, {"EventDecoder.feed (sse.py)": 7}),
        "markdown": (2, {"prefixed (text.py)": 2}),
        "the interpreter": (1, {"start (runpy.py)": 1}),
    }


def test_what_a_module_does_while_it_is_imported_counts_for_who_asked_for_it() -> None:
    loads = "_find_and_load (<frozen importlib._bootstrap>:1147)"
    assert _summed(
        f"{_PROGRAM};{_MAIN};{_MARKDOWN};{loads};<module> (tui/ui/app.py:3);_create_fn (x.py:4) 5",
        f"{_PROGRAM};<module> (tui/__main__.py:5);{loads} 1",
    ) == {"imports": (6, {"for prefixed (text.py)": 5, "for the start": 1})}


def test_only_the_program_counts_where_there_is_one() -> None:
    server = f'{_BENCHMARK};process 8:"python -m tests.support.server --script x"'
    command = f'{_PROGRAM};process 9:"git status"'
    raw = [f"{at};{_MARKDOWN} 1" for at in (_BENCHMARK, server, command)]
    assert _summed(*raw) == {"markdown": (1, {"prefixed (text.py)": 1})}
    assert _summed(*raw, f"{_PROGRAM};{_SSE} 5")["server-sent events"][0] == 5
    assert "markdown" not in _summed(*raw, f"{_PROGRAM};{_SSE} 5")


def test_threads_that_wait_are_left_out() -> None:
    assert not _summed(
        f"{_PROGRAM};{_MAIN};EpollSelector.select (selectors.py:468) 9",
        f"{_PROGRAM};Thread.run (threading.py:9);_worker (concurrent/futures/thread.py:81) 9",
        f"{_PROGRAM};{_MARKDOWN};Event.wait (threading.py:1);Condition.wait (threading.py:327) 9",
    )


def test_a_command_line_may_have_lines_and_semicolons() -> None:
    script = f'{_BENCHMARK};process 5:"python -c import sys; print(9)'
    assert _summed(script, 'do (1)"', f";{_MARKDOWN} 2", f"{_PROGRAM};{_SSE} 1") == {
        "server-sent events": (1, {"EventDecoder.feed (sse.py)": 1})
    }


def test_the_table_has_shares_and_the_heaviest_functions() -> None:
    raw = (f"{_PROGRAM};{_SSE} 3", f"{_PROGRAM};{_MARKDOWN} 1", f"{_PROGRAM};{_SSE} 996")
    head, first, *more = stations.table(stations.stations(raw))
    assert head.split() == ["1,000", "samples,", str(stations.RATE), "a", "second"]
    assert first.split() == [
        *("99.9%", "server-sent", "events", "EventDecoder.feed", "(sse.py)", "99.9%"),
    ]
    assert not more, "a tenth of a per cent is no line"


def test_no_samples_are_no_table() -> None:
    assert stations.table([]) == ["      no samples: nothing in it took time"]


def _install(monkeypatch: pytest.MonkeyPatch, spy: Path | None) -> None:
    def which(_name: str, path: str = "") -> str | None:
        return str(spy) if spy else None

    monkeypatch.setattr(shutil, "which", which)


def test_without_py_spy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, None)
    with pytest.raises(ProfileError, match="py-spy is not installed"):
        stations.profile("keys")


def test_where_the_system_does_not_allow_it_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spy = tmp_path / "py-spy"
    spy.write_text(
        "#!/bin/sh\necho 'py-spy> Sampling'\necho 'Error: Permission denied' >&2\nexit 1\n"
    )
    spy.chmod(0o755)
    _install(monkeypatch, spy)
    with pytest.raises(ProfileError, match="ptrace"):
        stations.profile("keys")
    assert capsys.readouterr().out == "Error: Permission denied\n"
