"""A file that was half written in place by a killed program comes back at the next start."""

from __future__ import annotations

from pathlib import Path

from tests.tools.test_kept_form import killed
from tui.app import launch_config
from tui.app.options.arguments import Options


def test_the_next_start_brings_a_file_back_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old content")
    (tmp_path / "twin.txt").hardlink_to(path)
    killed(path, "new content, longer", 5)
    notices = launch_config.prepare(Options()).notices
    assert [one.partition(" was ")[2] for one in notices if "a.txt" in one] == [
        "half written when Holdfast stopped. Its old content is back."
    ]
    assert path.read_text() == (tmp_path / "twin.txt").read_text() == "old content"
    assert not [one for one in launch_config.prepare(Options()).notices if "a.txt" in one]
