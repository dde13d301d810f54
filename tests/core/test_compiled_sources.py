"""Bytecode of made sources: the same as without, from the file the second time."""

from __future__ import annotations

import builtins
import dataclasses
import sys
import typing
from pathlib import Path
from typing import Any, ForwardRef, cast

import pytest

from tui.core.compiled_sources import CompiledSources, compiled_once


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path / "sources"


def made() -> list[object]:
    """What a data class and an annotation of ours do."""

    @dataclasses.dataclass(frozen=True)
    class Point:
        x: int
        y: list[int] = dataclasses.field(default_factory=list[int])

    annotation: Any = ForwardRef("dict[str, Any] | None")
    return [
        repr(Point(1)),
        Point(1) == Point(1, []),
        Point.__init__.__annotations__,
        eval(annotation.__forward_code__, typing.__dict__),
    ]


def test_what_is_made_is_the_same_and_compiled_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = made()
    with compiled_once(path):
        assert made() == without
    compiled = list[object]()
    compile_it = builtins.compile

    def counting(source: Any, *more: Any, **named: Any) -> Any:
        compiled.append(source)
        return cast("Any", compile_it(source, *more, **named))

    monkeypatch.setattr(builtins, "compile", counting)
    with compiled_once(path):
        assert made() == without
    assert compiled == []
    made()
    assert compiled, "afterwards they are compiled as ever"


PAIR = """
from collections import namedtuple
Pair = namedtuple("Pair", "first second", defaults=[2])
"""


def test_a_block_within_another_keeps_named_tuples_in_its_file(path: Path) -> None:
    known: dict[str, Any] = {"__name__": "some_module"}
    within = path.with_name("within")
    with compiled_once(path), compiled_once(within):
        exec(PAIR, known)
    assert known["Pair"](1) == (1, 2)
    assert b"first, second" in path.read_bytes()
    assert not within.exists(), "one file for each start"


def test_other_source_and_other_options_are_compiled(path: Path) -> None:
    with compiled_once(path):
        made()
    sources = CompiledSources(path)
    found: dict[str, int] = {}
    sources.exec("a = 1", found)
    sources.exec(compile("b = 2", "<string>", "exec"), found)
    assert (found["a"], found["b"]) == (1, 2)
    assert sources.eval("1 + 1") == sources.eval(compile("2", "<string>", "eval")) == 2
    assert eval(sources.compile("1 + 2", "another file", "eval")) == 3
    with pytest.raises(SyntaxError):
        sources.compile("1 +", "<string>", "eval")


@pytest.mark.parametrize("content", [b"", b"junk", b"\x80\x04", b"(\x01"])
def test_a_damaged_file_is_written_anew(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with compiled_once(path):
        made()
    assert len(path.read_bytes()) > 500


def test_where_no_bytecode_is_written_there_is_none(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with compiled_once(path.parent / "no" / "folder"):
        made()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    with compiled_once(path):
        made()
    assert not path.exists()
