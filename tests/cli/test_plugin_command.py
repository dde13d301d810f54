"""`holdfast plugin add|list|remove`: what a person sees, and what programs read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tui.cli.main import main


def test_a_plugin_is_added_listed_and_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "tools"
    (root / "commands").mkdir(parents=True)
    (root / "commands/fix.md").write_text("Fix $0.")
    assert main(["plugin", "add", str(root)]) == 0
    assert "command: /tools:fix" in capsys.readouterr().out
    assert main(["plugin", "list", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["plugins"]
    assert (one["name"], one["counts"], one["brings"]) == (
        "tools",
        True,
        ["1 command: /tools:fix"],
    )
    (root / "commands/fix.md").write_text("Break $0.")
    assert main(["plugin", "list"]) == 0
    assert "changed since you added it, so it doesn't count" in capsys.readouterr().out
    assert main(["plugin", "remove", "tools"]) == 0
    assert main(["plugin", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"plugins": []}
    assert main(["plugin", "add", str(tmp_path / "missing")]) == 2
