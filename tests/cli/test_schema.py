"""`holdfast schema`: what each command prints, and what fits it."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from tests.support.json_schema import check_schema, fits, objects
from tui.app.options import flags
from tui.app.options.parser import parse
from tui.batch.events import BatchEvent, FromAgent, RunFinished
from tui.batch.state import RunState, TaskState
from tui.cli.schema import SCHEMAS, run
from tui.core.facts import (
    Debug,
    ErrorRaised,
    Fact,
    FileChangedOutside,
    SubAgentEvent,
    ThinkingDropped,
    ToolFinished,
    TurnFinished,
)
from tui.core.messages import Usage
from tui.core.theme_cache import COLOURS
from tui.ui.toolkit import themes

MANUAL = Path(__file__).parents[2] / "tui" / "manual"


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_is_printed_as_a_sound_schema(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(parse(["schema", name])) == 0
    found = json.loads(capsys.readouterr().out)
    check_schema(found)
    assert found == SCHEMAS[name]()
    known = found.get("$defs", {})
    for one in objects(found):
        if "$ref" in one:
            assert one["$ref"].removeprefix("#/$defs/") in known


def test_the_words_of_the_command_line_are_the_schemas() -> None:
    assert tuple(SCHEMAS) == flags.SCHEMAS


def of_type(schema: dict[str, Any], kind: type[Any]) -> dict[str, Any]:
    return schema["$defs"][kind.__name__]


def test_every_event_has_the_fields_that_are_printed() -> None:
    schema = SCHEMAS["events"]()
    kinds = {*get_args(Fact), FileChangedOutside, *get_args(BatchEvent)} - {FromAgent}
    tags = {
        one["properties"]["type"]["enum"][0]
        for one in schema["$defs"].values()
        if "title" in one and "type" in one["properties"]
    }
    assert tags == {kind.__struct_config__.tag for kind in kinds}
    dropped = ThinkingDropped({"model_binding_mismatch": 2}, {}).to_json()
    assert set(dropped) == set(of_type(schema, ThinkingDropped)["properties"])


@pytest.mark.parametrize(
    "event",
    [
        ThinkingDropped({"model_binding_mismatch": 2}, {}),
        TurnFinished("done", Usage(1, 2, thinking_tokens=3), 0.5),
        ErrorRaised("auth", "no", recoverable=True),
        SubAgentEvent("a", "explore", Debug("x")),
        ToolFinished("a", "read_file", False, 0.1, {"stages": []}, images=({"type": "image"},)),
        FromAgent(2, Debug("x")),
        RunFinished({"completed": 1}, 2.0, tasks=(TaskState(index=0, group="", task="a"),)),
    ],
)
def test_an_event_fits_as_it_is_printed(event: Any) -> None:
    schema = SCHEMAS["events"]()
    line = json.loads(json.dumps(event.to_json()))
    assert fits(schema, line)
    assert not fits(schema, {**line, "type": "no_event"})


def test_what_is_no_event_does_not_fit() -> None:
    schema = SCHEMAS["events"]()
    assert not fits(schema, {"type": "text_delta"})
    assert not fits(schema, {"type": "turn_finished", "outcome": "fine"})
    inner = {"type": "subagent_event", "id": "a", "name": "b", "event": {"type": "x"}}
    assert not fits(schema, inner)


def test_a_state_fits_as_it_is_kept() -> None:
    task = TaskState(index=0, group="a", task="b", status="unmerged", usage={"input_tokens": 1})
    kept = RunState(task_file="T.md", sha256="0", started_at="2026-01-01", tasks=(task,))
    value = json.loads(msgspec.json.encode(kept))
    assert fits(SCHEMAS["state"](), value)
    value["tasks"][0]["status"] = "done"
    assert not fits(SCHEMAS["state"](), value)


def test_every_theme_fits_and_what_is_reported_does_not(tmp_path: Path) -> None:
    schema = SCHEMAS["theme"]()
    for path in themes.available(tmp_path).values():
        assert fits(schema, tomllib.loads(path.read_text()))
    for text in (
        'dark = "yes"',
        "colors = 1",
        '[colors]\nbackgruond = "#000000"',
        "[colors]\nerror = 1",
    ):
        (tmp_path / "own.toml").write_text(text)
        assert themes.load("own", tmp_path).problems
        assert not fits(schema, tomllib.loads(text))
    named = {"dark": False, "colors": dict.fromkeys(COLOURS, "teal")}
    assert fits(schema, named)


def test_the_examples_of_the_manual_fit() -> None:
    found = 0
    for page in MANUAL.glob("*.md"):
        text = page.read_text()
        for block in re.findall(r"^```toml\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            kind = {"# config.toml": "config", "# themes/": "theme"}
            name = next((kind[head] for head in kind if block.startswith(head)), "")
            if name:
                assert fits(SCHEMAS[name](), tomllib.loads(block)), block
                found += 1
        for block in re.findall(r"^```json\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            if '"hooks"' in block:
                assert fits(SCHEMAS["hooks"](), json.loads(block)), block
                found += 1
    assert found > 3
