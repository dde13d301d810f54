"""Bulk plans: which results, and what masking them would save, before it is done."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.context.sessions import MODEL, answer, extended, output, overlay, pin, prompt, records
from tests.context.wild import call
from tui.context import masks
from tui.context.file_changes import change_checker
from tui.context.masks import FileRead
from tui.context.overrides import Stand, chars, content_of, stand
from tui.context.view import build
from tui.core.facts import Overlay
from tui.session.records import Record


def found(said: list[Record]) -> list[masks.MaskableResult]:
    seen = build(said, model=MODEL)
    return masks.results(said, stands=seen.stands, weigh=weigher(said))


def weigher(said: list[Record]) -> Callable[[str, Stand | None], int]:
    """Four characters a token."""
    known = {record.id: record for record in said}

    def weigh(id_: str, stand: Stand | None) -> int:
        return chars(stand.blocks if stand else content_of(known[id_])) // 4

    return weigh


def turns(*sizes: int) -> list[Record]:
    """One turn for each size: a prompt, a call, a result of so many characters, an answer."""
    return records(
        *(
            told
            for n, size in enumerate(sizes)
            for told in (
                prompt(f"p{n}"),
                answer(call(f"c{n}")),
                output(f"c{n}", "word " * (size // 5)),
                answer("ok"),
            )
        )
    )


def test_R34_age_is_counted_in_turns() -> None:
    said = records(
        prompt("one"),
        answer(call("a")),
        output("a", "x"),
        prompt("typed meanwhile"),
        answer("done"),
        prompt("two"),
        ("interrupt", {"text": "half"}),
        prompt("three"),
    )
    ages = masks.ages(said)
    assert [ages[f"r{n}"] for n in range(8)] == [2, 2, 2, 2, 2, 1, 1, 0]


def test_results_older_than_so_many_turns() -> None:
    said = turns(5000, 5000, 5000)
    assert masks.older(found(said), 0).targets == ("r2", "r6")
    assert masks.older(found(said), 1).targets == ("r2",)
    assert masks.older(found(said), 2).targets == ()


def test_results_over_so_many_characters() -> None:
    said = turns(1000, 5000, 5005)
    assert masks.larger(found(said), 5000).targets == ("r10",)


def test_what_is_pinned_or_masked_or_too_small_is_left_alone() -> None:
    said = extended(turns(5000, 5000, 10, 5000), [pin("r2"), overlay("r6", "masked")])
    assert [result.id for result in found(said)] == ["r14"]


def test_a_plan_saves_what_it_says() -> None:
    said = turns(5000, 9000)
    plan = masks.older(found(said), 0)
    assert plan.targets == ("r2",)
    weigh, instead = weigher(said), stand(said[2], Overlay("r2", "masked"))
    assert plan.saves == 1250 - weigh("r2", instead)
    assert plan.saves > 1200
    masked = extended(said, [("overlay", vars_of(each)) for each in plan.overlays()])
    assert build(masked, model=MODEL).states["r2"] == "masked"
    assert found(masked)[0].id == "r6"


def vars_of(each: masks.Overlay) -> dict[str, str]:
    return {"target": each.target, "view": each.view, "by": each.by, "reason": each.reason}


def test_reads_of_files_changed_since() -> None:
    details = {"path": "/w/a.py", "size": 5, "mtime_ns": 7, "sha256": "d"}
    said = records(
        prompt("go"),
        answer(call("a", "read_file", {"path": "a.py"}), call("b", "read_file", {"path": "b.py"})),
        output("a", "word " * 99, name="read_file", details=details),
        output("b", "word " * 99, name="read_file"),
        output("c", "word " * 99, name="read_file", is_error=True),
        answer("ok"),
    )
    asked: list[FileRead] = []

    def changed(read: FileRead) -> bool:
        asked.append(read)
        return read.path == "b.py"

    assert masks.outdated(found(said), changed).targets == ("r3",)
    time = "2026-11-21T09:00:00.000Z"
    assert asked == [FileRead("/w/a.py", time, 5, 7, "d"), FileRead("b.py", time)]


def test_a_file_is_changed_when_its_content_is(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("one\n")
    stat = file.stat()
    digest = "2f8d8c1c5bd0ae3f8ff8c1e3dd2b3d1e"
    same = FileRead("a.py", "", stat.st_size, stat.st_mtime_ns, digest)
    assert not change_checker(tmp_path)(same)
    touched = FileRead("a.py", "", stat.st_size, stat.st_mtime_ns - 1, digest)
    assert change_checker(tmp_path)(touched)
    known = masks.FileRead("a.py", "", stat.st_size, 1, _sha(file))
    assert not change_checker(tmp_path)(known)
    file.write_text("two\n")
    assert change_checker(tmp_path)(known)
    file.unlink()
    assert change_checker(tmp_path)(same)


def test_a_read_whose_record_says_nothing_is_judged_by_its_time(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("one\n")
    os.utime(file, (1_000_000_000, 1_000_000_000))
    assert not change_checker(tmp_path)(FileRead("a.py", "2026-11-21T09:00:00.000Z"))
    assert change_checker(tmp_path)(FileRead("a.py", "1999-11-21T09:00:00.000Z"))
    assert not change_checker(tmp_path)(FileRead(str(file), "nonsense"))


def _sha(file: Path) -> str:
    from hashlib import sha256  # noqa: PLC0415 - once

    return sha256(file.read_bytes()).hexdigest()
