"""One odd value in a session costs that value: every reader goes on, and no other session is lost.

The default run tries a few seeds; `-m slow` tries many. `examine` is also what to run by hand.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.support.generated_session import GeneratedSession
from tests.support.odd_records import Json, odd_session, whole_session, write_lines
from tui.app.doctor.check import Subject
from tui.app.doctor.machine import sessions as sessions_check
from tui.cli import main
from tui.core.paths import folders
from tui.session import catalog, index, search
from tui.session.reader import read
from tui.ui.widgets.conversation.items import UserItem
from tui.ui.widgets.record_items import entry_of, items_of

GOOD = "0123456789ab"
ODD = "0ddba11"
FEW = 10
MANY = 400

_ACTIONS = (
    "sessions check FILE --json",
    "sessions view FILE --practice",
    "sessions view FILE --at 1",
    "sessions view FILE --diff 1 1",
    "sessions verify FILE",
    "sessions repair FILE --out OUT",
    "sessions export FILE --format md",
    "sessions export FILE --format html --out OUT",
    "sessions show FILE",
    "sessions show FILE --json",
    "sessions list --all --json",
    "sessions list --all",
    "sessions fork FILE",
    "sessions rename FILE another title",
    "sessions import FILE",
    "sessions search alpha --json",
    "-r FILE --practice -p hello",
    "-c --practice -p hello",
)


def _run(words: list[str]) -> tuple[int, str, BaseException | None]:
    """The exit code of a command, its stdout, and the mistake that ended it, if one did."""
    mistakes: list[Exception] = []
    report = main._report  # pyright: ignore[reportPrivateUsage] - the last boundary

    def note(error: Exception) -> int:
        code = report(error)
        if type(error).__module__ != "tui.core.errors":
            mistakes.append(error)
        return code

    out = StringIO()
    with (
        redirect_stdout(out),
        redirect_stderr(StringIO()),
        patch.object(main, "_report", note),
        patch.object(main, "_give_up_stdout", lambda: None),
        patch.object(sys, "stdin", None),
    ):
        code = main.main(words)
    return code, out.getvalue(), next(iter(mistakes), None)


def examine(
    root: Path, work: Path, seed: int, commands: int = len(_ACTIONS)
) -> Iterator[tuple[str, str]]:
    """What goes wrong with the session of a seed: what was done to it, and the mistake."""
    lines, said = odd_session(seed)
    shutil.rmtree(folders().sessions, ignore_errors=True)
    own = folders().sessions_of(work)
    good = write_lines(own / f"20250101T000000Z-{GOOD}.jsonl", whole_session())
    odd = write_lines(own / f"20260101T000000Z-{ODD}.jsonl", lines)
    os.utime(good, (1, 1))
    kept = odd.read_bytes()

    def tried(name: str, step: Callable[[], object]) -> Iterator[tuple[str, str]]:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - any mistake is what is looked for
            place = traceback.extract_tb(error.__traceback__)[-1]
            yield f"{said}: {name}", f"{error!r} {place.filename}:{place.lineno}"

    def seen_by_the_screen() -> None:
        loaded = read(odd)
        items = items_of(loaded.branch)
        for record in loaded.branch:
            entry_of(loaded.branch, record.id, items)

    def listed() -> None:
        found = {Path(e.path): e for e in index.list_sessions(folders())}
        assert found.keys() == {good, odd}, "a session is missing in the list"
        assert found[good].state != "unreadable", "the good session is lost"
        damaged = read(odd).findings
        (check,) = sessions_check(Subject.of(work, folders(), {}))
        assert not damaged or found[odd].id in check.fix, "the damaged file is not named"
        files = search.ours(catalog.scan(folders()))
        found_hits = search.search(folders().cache, files, search.Query.of("look")).hits
        hits = {Path(hit.path) for hit in found_hits}
        assert good in hits, "the good session is not found"

    yield from tried("screen", seen_by_the_screen)
    yield from tried("lists", listed)
    random_start = seed % len(_ACTIONS)
    for number in range(commands):
        action = _ACTIONS[(random_start + number) % len(_ACTIONS)]
        out = root / "out"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        words = [{"FILE": str(odd), "OUT": str(out)}.get(w, w) for w in action.split()]
        code, text, mistake = _run(words)
        if mistake is not None:
            place = traceback.extract_tb(mistake.__traceback__)[-1]
            yield f"{said}: {action}", f"{mistake!r} {place.filename}:{place.lineno}"
        if action.endswith("hello") and code:
            yield f"{said}: {action}", f"exit code {code}"
        if action.endswith("--json") and not mistake and text:
            json.loads(text)
        if not odd.read_bytes().startswith(kept):
            yield f"{said}: {action}", "the file was changed"
        for copied in {*own.glob("*.jsonl")} - {good, odd}:
            copied.unlink()
        odd.write_bytes(kept)
        os.utime(odd)


@pytest.mark.parametrize("seed", [*range(FEW), 20558])
def test_B56_one_odd_value_shuts_nothing_out(seed: int, tmp_path: Path) -> None:
    assert [*examine(tmp_path / "out", Path.cwd(), seed, commands=3)] == []


async def test_B56_nothing_that_the_program_writes_is_odd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for seed in (0, 1):
        root = tmp_path / str(seed)
        root.mkdir()
        await GeneratedSession(root, seed).play(8)
    found = [f for path in catalog.files(folders()) for f in read(path).findings]
    assert [finding for finding in found if finding.code == "B56"] == []


@pytest.mark.parametrize(
    "line",
    [
        {"type": {"a": 1}, "id": "x1", "parent": None, "time": "t"},
        {"type": ["user"], "id": "x1", "parent": None, "time": "t"},
    ],
)
def test_B56_a_record_whose_type_is_no_text_is_skipped(tmp_path: Path, line: Json) -> None:
    path = write_lines(tmp_path / "a.jsonl", [*whole_session(), line])
    found = read(path)
    assert [f.action for f in found.findings] == ["skipped: a record without a type"]
    assert len(found.records) == len(whole_session()) - 2


def test_B56_a_text_in_the_place_of_a_block_becomes_one(tmp_path: Path) -> None:
    lines = whole_session()[:1]
    content: Json = {"content": ["a text"], "text": "a text"}
    lines.append({"type": "user", "id": "1", "parent": None, "time": "t", **content})
    found = read(write_lines(tmp_path / "a.jsonl", lines))
    assert found.records[0].data["content"] == [{"type": "text", "text": "a text"}]
    assert [f.action for f in found.findings] == ["odd fields left out or repaired: content"]
    assert [item.text for item in items_of(found.branch) if isinstance(item, UserItem)] == [
        "a text"
    ]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_B56_no_odd_value_shuts_anything_out(tmp_path: Path) -> None:
    found = [p for seed in range(MANY) for p in examine(tmp_path / "out", Path.cwd(), seed)]
    assert found == []
