"""`holdfast self-test`: all of it works here, what fails is said, and no private place is named."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.clock import PATIENCE_S
from tui.app.options.parser import parse
from tui.cli import self_test
from tui.core.errors import UsageError

KEY = "sk-ant-" + "a1b2" * 8


def steps_of(*steps: Callable[[Any], str]) -> Callable[[], Iterator[Any]]:
    return lambda: ((step.__name__, step) for step in steps)


def fine(_: object) -> str:
    return "as it should be"


def broken(_: object) -> str:
    raise UsageError(f"{Path.home()}/docs/a.txt holds {KEY}")


def run(*words: str) -> int:
    return self_test.run(parse(["self-test", *words]))


def test_what_fails_is_said_without_places_and_keys(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(self_test, "all_steps", steps_of(fine, broken))
    assert run() == 1
    said = capsys.readouterr().out
    assert "✓ fine" in said
    assert "✗ broken" in said
    assert "~/docs/a.txt" in said
    assert "1 of 2 failed." in said
    assert KEY not in said
    assert str(Path.home()) + "/" not in said
    assert run("--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert [step["status"] for step in found["steps"]] == ["ok", "failed"]
    assert {check["name"] for check in found["machine"]} >= {"program", "packages"}


def test_a_step_that_needs_an_earlier_one_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = dict(self_test.all_steps())
    written = {"session written": steps["session written"]}
    monkeypatch.setattr(self_test, "all_steps", lambda: iter(written.items()))
    assert run() == 0
    assert "- session written" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.timeout(5 * PATIENCE_S)
def test_everything_works_here_without_a_key_and_without_the_persons_settings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = tmp_path / "home" / "config" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('model = "mine"\n[permissions]\ndeny = ["edit_file"]\n')
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    code = run("--json")
    found = json.loads(capsys.readouterr().out)
    assert {
        step["name"]: step["detail"] for step in found["steps"] if step["status"] == "failed"
    } == {}
    assert (code, found["ok"]) == (0, True)
    assert str(tmp_path) not in json.dumps(found)
    assert not (tmp_path / "home" / "data").exists()
