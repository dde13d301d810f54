"""The person's pager and editor: what is set is used, else what there is; trouble is told."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from textual.app import App

from tui.ui.screens import external_programs
from tui.ui.screens.external_programs import (
    EditedText,
    command_of,
    edited,
    open_copy,
    open_file,
    open_text,
)


def program(folder: Path, name: str, body: str = "") -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_what_is_set_comes_first_then_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("PAGER", "VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    assert command_of("pager") == []
    for name in ("vi", "more"):
        program(tmp_path, name)
    assert command_of("pager") == ["more"]
    assert command_of("editor") == ["vi"]
    program(tmp_path, "less")
    assert command_of("pager") == ["less", "-R"]
    mine = program(tmp_path, "mine")
    monkeypatch.setenv("PAGER", f"{mine} -x 'a b'")
    assert command_of("pager") == [str(mine), "-x", "a b"]
    monkeypatch.setenv("EDITOR", "mine")
    monkeypatch.setenv("VISUAL", "")
    assert command_of("editor") == ["mine"]
    for unusable in ("not kept", "'open", "  "):
        monkeypatch.setenv("PAGER", unusable)
        assert command_of("pager") == ["less", "-R"]


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> App[None]:
    @contextmanager
    def suspend(_: App[None]) -> Generator[None]:
        yield

    monkeypatch.setattr(App, "suspend", suspend)
    return App()


async def test_it_gets_the_file_and_an_editor_cannot_write_to_it(
    app: App[None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, seen = tmp_path / "copy.txt", tmp_path / "seen"
    file.write_text("kept")
    file.chmod(0o600)
    mine = program(tmp_path, "mine", f'ls -l "$1" | cut -c1-10 > {seen}; cat "$1" >> {seen}')
    monkeypatch.setenv("VISUAL", str(mine))
    before = signal.getsignal(signal.SIGINT)
    assert await open_copy(app, file, tmp_path, "editor") == ""
    assert seen.read_text() == "-r--------\nkept"
    assert file.stat().st_mode & 0o777 == 0o600
    assert signal.getsignal(signal.SIGINT) is before
    assert await open_text(app, b"no file", "editor") == ""
    assert seen.read_text() == "-rw-------\nno file"


async def test_nothing_else_is_opened_that_takes_its_name_or_folder(
    app: App[None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, seen = tmp_path / "results", tmp_path / "seen"
    results.mkdir()
    (results / "copy.txt").write_text("kept")
    (tmp_path / "secret").write_text("do not tell")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def exchanged(app: App[None], path: Path, program: Literal["editor"]) -> str:
        (results / "copy.txt").unlink()
        (results / "copy.txt").symlink_to(tmp_path / "secret")
        return await open_file(app, path, program)

    monkeypatch.setattr(external_programs, "open_file", exchanged)
    mine = program(tmp_path, "mine", f'cat "$1" > {seen}; echo "$1" >> {seen}')
    monkeypatch.setenv("VISUAL", str(mine))
    assert await open_copy(app, results / "copy.txt", results, "editor") == ""
    text, _, path = seen.read_text().partition("/")
    assert text == "kept"
    assert path.strip().endswith("/copy.txt")
    monkeypatch.setattr(external_programs, "open_file", open_file)
    await open_text(app, b"a text\n", "editor")
    assert str(tmp_path / "text") not in seen.read_text()
    assert Path(seen.read_text().splitlines()[1]).parents[1].name == "apart"


async def test_where_the_disk_has_no_second_names_a_copy_is_opened(
    app: App[None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError

    file, seen = tmp_path / "copy.txt", tmp_path / "seen"
    file.write_text("kept")
    monkeypatch.setattr(os, "link", refused)
    monkeypatch.setenv("VISUAL", str(program(tmp_path, "mine", f'cat "$1" > {seen}')))
    assert await open_copy(app, file, tmp_path, "editor") == ""
    assert seen.read_text() == "kept"


async def test_what_an_editor_saved_counts_only_if_it_ended_well(
    app: App[None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", str(program(tmp_path, "mine", 'echo more >> "$1"')))
    assert await edited(app, "text ") == EditedText("text more\n")
    monkeypatch.setenv("VISUAL", str(program(tmp_path, "mine", 'echo more >> "$1"; exit 1')))
    problem = "mine closed with exit code 1; nothing changed."
    for patience in (-1.0, 60.0):
        monkeypatch.setattr(external_programs, "AT_ONCE_S", patience)
        assert await edited(app, "text ") == EditedText(None, problem, "text more\n")
    monkeypatch.setenv("VISUAL", str(program(tmp_path, "mine", "exit 1")))
    assert await edited(app, "text") == EditedText(None, problem)


async def test_trouble_is_told(
    app: App[None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "copy.txt"
    file.write_text("kept")
    monkeypatch.setenv("PAGER", str(program(tmp_path, "broken", "exit 3")))
    assert "closed at once with exit code 3" in await open_file(app, file, "pager")
    not_runnable = tmp_path / "odd"
    not_runnable.write_bytes(b"\x7fELF nothing")
    not_runnable.chmod(0o755)
    monkeypatch.setenv("PAGER", str(not_runnable))
    assert "Can't start" in await open_file(app, file, "pager")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("PAGER", "")
    assert "No pager found: $PAGER isn't set" in await open_file(app, file, "pager")
    missing = tmp_path / "gone.txt"
    monkeypatch.setenv("PAGER", str(program(tmp_path, "fine")))
    assert "Can't open" in await open_file(app, missing, "pager")


async def test_how_one_left_a_pager_is_no_trouble(
    app: App[None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external_programs, "AT_ONCE_S", 0.0)
    file = tmp_path / "copy.txt"
    file.write_text("kept")
    monkeypatch.setenv("PAGER", str(program(tmp_path, "odd", "exit 1")))
    assert await open_file(app, file, "pager") == ""
