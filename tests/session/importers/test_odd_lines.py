"""One odd value in another agent's session costs that value: it opens, is shown and is copied.

The default run tries a few seeds of each format; `-m slow` tries thousands.
"""

from __future__ import annotations

import copy
import json
import math
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from tests.session.importers.telling import request
from tests.support.foreign import claude_code, codex, pi
from tests.support.odd_records import VALUES, Json, places
from tui.context.validate import check
from tui.core.clock import SystemClock
from tui.core.paths import folders
from tui.session import copies, importers
from tui.session.export import export
from tui.session.reader import read
from tui.ui.widgets.record_items import entry_of, items_of

FORMATS: Final[dict[str, Callable[[], list[Any]]]] = {
    "claude_code": lambda: claude_code(2).records,
    "pi v1": lambda: pi(2, 1).records,
    "pi": lambda: pi(2).records,
    "codex": lambda: codex(2).records,
}
FEW = 10
MANY = 1000
_ODD: Final[tuple[Any, ...]] = (*VALUES, math.nan, math.inf, "long " * 20_000, [[[[{"a": [1]}]]]])


def odd_lines(name: str, seed: int) -> tuple[list[Json], str]:
    """The lines of a session with one odd value, and in words what is odd."""
    random = Random(f"{name} {seed}")
    lines: list[Json] = copy.deepcopy(FORMATS[name]())
    number = random.randrange(len(lines))
    *path, last = random.choice(places(lines[number]))
    where: Any = lines[number]
    for key in path:
        where = where[key]
    where[last] = copy.deepcopy(random.choice(_ODD))
    return lines, f"{name} {seed}: line {number + 1} {[*path, last]} = {where[last]!r:.60}"


def examine(root: Path, name: str, seed: int) -> Iterator[str]:
    """What goes wrong with the session of a seed."""
    lines, said = odd_lines(name, seed)
    path = root / "odd.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    kept = path.read_bytes()
    try:
        _open(path)
    except Exception as error:  # noqa: BLE001 - any mistake is what is looked for
        place = traceback.extract_tb(error.__traceback__)[-1]
        yield f"{said}: {error!r:.200} {place.filename}:{place.lineno}"
    if path.read_bytes() != kept:
        yield f"{said}: the file was changed"


def _open(path: Path) -> None:
    """Open, list, show, export and copy a session. What is sent of it is a valid request."""
    if importers.recognise(path) is None:
        raise AssertionError("the session is not recognised")
    loaded = importers.load(path)
    importers.find({"pi": [path.parent]})
    items = items_of(loaded.branch)
    for record in loaded.branch:
        entry_of(loaded.branch, record.id, items)
    messages, _ = request(loaded)
    assert check(messages) == [], "the request breaks a rule"
    json.dumps(messages, ensure_ascii=False).encode()
    for format_ in ("md", "html"):
        export(loaded, format_, title="")
    if not loaded.branch:
        return
    made = copies.fork(loaded, folders=folders(), clock=SystemClock(), cwd=path.parent)
    again = read(made)
    made.unlink()
    assert again.findings == (), f"the copy is damaged: {again.findings}"
    copied, _ = request(again)
    assert copied == messages, "the copy says something else"


@pytest.mark.parametrize("name", FORMATS)
def test_B56_one_odd_value_costs_no_imported_session(name: str, tmp_path: Path) -> None:
    assert [said for seed in range(FEW) for said in examine(tmp_path, name, seed)] == []


@pytest.mark.parametrize(("name", "seed"), [("claude_code", 1203), ("pi v1", 1076)])
def test_B56_what_once_ended_the_import(name: str, seed: int, tmp_path: Path) -> None:
    """A parent that is no text; a folder whose name no folder can have."""
    assert [*examine(tmp_path, name, seed)] == []


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", FORMATS)
def test_B56_no_odd_value_costs_an_imported_session(name: str, tmp_path: Path) -> None:
    assert [said for seed in range(MANY) for said in examine(tmp_path, name, seed)] == []
