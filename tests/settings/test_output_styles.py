"""Output styles: chosen by name, as Claude Code was seen to choose them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.settings.claude_code.seen import lay_out, lines_of, seen
from tui.core.paths import folders
from tui.settings import output_styles, trust


@pytest.mark.parametrize(
    ("case", "name"), [("style", "Loud"), ("style-keeps", "loud"), ("style-by-file", "loud")]
)
def test_a_style_is_found_by_its_name(tmp_path: Path, case: str, name: str) -> None:
    lay_out(seen()[case], tmp_path, Path.home())
    style, problems = output_styles.find(name, tmp_path, folders(), lambda _name, _data: True)
    assert not problems
    assert style
    said = lines_of(seen()[case])
    assert f"# Output Style: {style.name}" in said
    assert style.text == said[said.index(f"# Output Style: {style.name}") + 1] == "Be loud."


def test_an_unknown_one_is_said(tmp_path: Path) -> None:
    assert not any("Output Style" in line for line in lines_of(seen()["style-unknown"]))
    style, problems = output_styles.find("nothing", tmp_path, folders(), lambda _n, _d: True)
    assert style is None
    assert problems == ("There is no output style 'nothing': answers are as usual.",)
    assert output_styles.find("default", tmp_path, folders(), lambda _n, _d: True) == (None, ())


def test_a_workspaces_style_needs_trust(tmp_path: Path) -> None:
    lay_out(seen()["style-off"], tmp_path, Path.home())
    (item,) = trust.items(tmp_path)
    assert item.does.startswith("Adds an output style: .claude/output-styles/loud.md, 1 line")
    style, problems = output_styles.find("loud", tmp_path, folders(), lambda _n, _d: False)
    assert style is None
    assert problems[0].startswith(".claude/output-styles/loud.md was left out")
