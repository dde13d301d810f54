"""The session that the command line means."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.clock import FakeClock
from tui.app.options.arguments import OpeningOptions, Options
from tui.app.session_path import session_path
from tui.core.paths import folders
from tui.session.session import Session


async def begin(folder: Path, title: str) -> Path:
    session = Session.create(folder, folders=folders(), clock=FakeClock())
    session.append("user", content=[{"type": "text", "text": "hi"}], text="hi")
    session.append("title", title=title)
    await session.close()
    assert session.path is not None
    return session.path


async def test_every_step_of_a_start_means_the_same_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    options = Options(cwd=tmp_path, opening=OpeningOptions(resume="fix the parser"))
    meant = await begin(tmp_path, "Fix the parser")
    assert session_path(options) == meant
    await begin(tmp_path, "Fix the parser")  # meanwhile, in another window
    assert session_path(options) == meant
