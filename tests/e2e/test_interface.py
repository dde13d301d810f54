"""The shapes of data that other programs are promised, on one session of the practice model."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest

from tui.cli.main import main

Shape: TypeAlias = "frozenset[str] | Mapping[str, Shape] | Sequence[Shape]"
"""The names that an object has at least, with the shapes of some; in a list that of each."""

SCRIPT = """
[[turn]]
text = "I look."
tools = [{name = "write_file", input = {path = "a.txt", content = "one\\ntwo\\n"}}]
usage = {input_tokens = 1200, output_tokens = 30}
[[turn]]
text = "done"
[[turn]]
tools = [{name = "run_command", input = {command = "echo three >> a.txt"}}]
[[turn]]
text = "done again"
"""
USAGE = "input_tokens output_tokens cache_creation_input_tokens cache_read_input_tokens"


def names(words: str) -> frozenset[str]:
    return frozenset(words.split())


def of(words: str, **more: Shape) -> Mapping[str, Shape]:
    return {**dict.fromkeys(words.split(), frozenset()), **more}


FINDINGS: Shape = [names("code where action")]
SHAPES: Mapping[str, Shape] = {
    "sessions list --json": [
        names("id path title cwd created updated messages tokens state problems")
    ],
    "sessions search two --json": [names("id path message line snippet title cwd time kind")],
    "sessions search two --since 1d --kind call --json": [names("id path message line snippet")],
    "sessions check ID --json": of("records messages valid", findings=FINDINGS),
    "sessions view ID --json": of(
        "model max_tokens system messages tools thinking", ledger=[names("item kind tokens state")]
    ),
    "sessions tree ID --json": of(
        "", branches=[names("leaf from prompts first updated cost_usd current")]
    ),
    "sessions fork ID --json": names("id path"),
    "sessions repair ID --dry-run --json": of("written backup", findings=FINDINGS),
    "blame a.txt --json": [
        names("line text origin session_id prompt call model cost_usd time")
    ],
    "bisect ID --no-sandbox --json -- ! grep -q three a.txt": names(
        "checkpoint call prompt session_id"
    ),
    **{
        f"usage --by {by} --json": of(
            "total_usd", rows=[names("key requests tokens cost_usd")]
        )
        for by in ("day", "model", "folder", "tool", "file", "prompt")
    },
    "doctor --json": of("", checks=[names("name status detail fix")]),
    "import-settings --from claude --json": of("", taken=[], left=[names("what where why")]),
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with a session, and the session's id."""
    folder = tmp_path_factory.mktemp("interface")
    (folder / "work").mkdir()
    (folder / "script.toml").write_text(SCRIPT)
    with pytest.MonkeyPatch.context() as patch, standing_in(folder, patch):
        script = ("--practice-script", str(folder / "script.toml"))
        for prompt, more in (("write a.txt", ()), ("add a line", ("-c",))):
            words = ("--permission-mode", "edits", "--yolo", "-p", prompt)
            assert main([*script, *more, *words]) == 0
    (path,) = (folder / "home/data/sessions").rglob("*.jsonl")
    return folder, path.stem.rpartition("-")[2]


@contextmanager
def standing_in(folder: Path, patch: pytest.MonkeyPatch) -> Generator[None]:
    with Path(os.devnull).open() as nothing:
        patch.setenv("HOLDFAST_HOME", str(folder / "home"))
        patch.setenv("HOME", str(folder))
        patch.setattr("sys.stdin", nothing)
        patch.chdir(folder / "work")
        yield


@pytest.fixture
def session(made: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The id of the session, in whose folder one stands."""
    with standing_in(made[0], monkeypatch):
        yield made[1]


def lacking(value: Any, shape: Shape, at: str = "") -> list[str]:
    """The promised names that data lacks."""
    if isinstance(shape, frozenset):
        return [f"{at}.{name}" for name in sorted(shape - value.keys())]
    if isinstance(shape, Mapping):
        missing = [f"{at}.{name}" for name in shape if name not in value]
        return missing + [
            one
            for name, inner in shape.items()
            if name in value and inner
            for one in lacking(value[name], inner, f"{at}.{name}")
        ]
    assert isinstance(value, list), at
    each = cast("list[Any]", value)
    return [one for n, row in enumerate(each) for one in lacking(row, shape[0], f"{at}[{n}]")]


@pytest.mark.parametrize("command", SHAPES)
def test_data_has_what_programs_are_promised(
    session: str, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    words, _, tried = command.replace("ID", session).partition(" -- ")
    code = main([*words.split(), *(("--", tried) if tried else ())])
    out, err = capsys.readouterr()
    assert code in {0, 1}, err
    assert lacking(json.loads(out), SHAPES[command]) == []


def test_the_end_of_a_prompt_has_what_programs_are_promised(
    session: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--practice", "-p", "hello", "--output-format", "json"])
    value = json.loads(capsys.readouterr().out)
    promised = names(
        "session_id result is_error error_class turns usage cost_usd duration_ms model cuts"
    )
    assert lacking(value, {**dict.fromkeys(promised, frozenset()), "usage": names(USAGE)}) == []
    assert value["session_id"] != session
