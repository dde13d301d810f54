"""Imports: none in a circle, rooms entered by their doors, nothing heavy where it is not needed.

import-linter checks their direction."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

import grimp
import pytest

DOORS: Final = Path(__file__).with_name("doors.toml")
GROUND: Final = "core"
"""The room that all others stand on: each of its modules may be imported."""
_BY_NAME: Final = re.compile(r"""import_module\(\s*["'](tui\.[\w.]+)["']""")


@cache
def imports() -> dict[str, set[str]]:
    """The modules that each module of the program imports, also in functions, for types, and by
    `import_module` with their name. Not those that a table names, as that of slash commands does.
    """
    graph = grimp.build_graph("tui", cache_dir=None)
    return {
        module: graph.find_modules_directly_imported_by(module) | _imported_by_name(module)
        for module in graph.modules
    }


def _imported_by_name(module: str) -> set[str]:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:  # a folder without code
        return set()
    return set(_BY_NAME.findall(Path(spec.origin).read_text(encoding="utf-8")))


def _place(module: str) -> tuple[str, str]:
    """The room of a module, and its name there; "" for the room itself."""
    _, _, within = module.partition(".")
    room, _, inside = within.partition(".")
    return room, inside


def test_no_imports_run_in_a_circle() -> None:
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        pytest.fail(f"{' <- '.join(circle)}: split one of them, or hand in what it needs (a port).")


def test_rooms_are_entered_by_their_doors() -> None:
    doors: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for importer, found in imports().items():
        for module in found:
            room, inside = _place(module)
            if inside and room not in {GROUND, _place(importer)[0]}:
                doors[room][inside] = importer
    listed: dict[str, list[str]] = tomllib.loads(DOORS.read_text(encoding="utf-8"))
    new = {
        f"{room}: {door} (from {importer})"
        for room, found in doors.items()
        for door, importer in found.items()
        if door not in listed.get(room, [])
    }
    assert not new, (
        f"New doors: {sorted(new)}. Use one that {DOORS.name} lists, or a name of the room's"
        " __init__; a new one is a line there that needs a reason."
    )
    closed = {
        f"{room}: {door}"
        for room, found in listed.items()
        for door in found
        if door not in doors[room]
    }
    assert not closed, f"Nobody enters by {sorted(closed)} any more: take it out of {DOORS.name}."


def _modules_after(code: str, *argv: str) -> set[str]:
    script = f"{code}\nimport sys, json; print('MODULES' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script, *argv],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    return set(json.loads(done.stdout.rsplit("MODULES", 1)[1]))


@pytest.mark.parametrize(
    ("code", "never"),
    [
        ("import tui.cli.main", {"textual", "anthropic", "tiktoken", "msgspec", "asyncio", "PIL"}),
        ("import tui.app", {"asyncio", "tui.app.conversation"}),
        ("from tui.app import Conversation", {"textual", "rich", "anthropic"}),
        ("import tui.cli.print_mode", {"textual", "rich", "anthropic", "mcp", "PIL"}),
        (
            "import tui.agent.composition",
            {"textual", "anthropic", "tiktoken", "keyring", "tomlkit", "PIL"},
        ),
        ("import tui.provider.anthropic", {"textual", "anthropic"}),
        (
            "import tui.ui.app",
            {"anthropic", "tiktoken", "pygments", "markdown_it", "keyring", "mcp", "PIL"},
        ),
    ],
)
def test_what_an_import_must_not_bring(code: str, never: set[str]) -> None:
    assert not never & _modules_after(code)


_MOST_FOR_THE_FIRST_PICTURE = 498
"""All modules, Python's own too, that the real screen has loaded once it is drawn. It may only
fall: the first key waits for them."""


def test_the_first_picture_loads_little() -> None:
    loaded = _modules_after("import tui.ui.start.fullscreen_main, tui.ui.app")
    assert len(loaded) <= _MOST_FOR_THE_FIRST_PICTURE, "load it where it is used first"


def test_our_own_front_matter_needs_no_yaml() -> None:
    """Which would take every start 15 ms."""
    code = (
        "import pathlib, tui; from tui.core import front_matter\n"
        "texts = [path.read_bytes() for path in pathlib.Path(tui.__file__).parent.rglob('*.md')]\n"
        "assert any(front_matter.parse(text).fields for text in texts)"
    )
    assert "yaml" not in _modules_after(code)


_MOST_TO_ASK_FOR_A_BACKGROUND_SESSION = 150
"""All modules, Python's own too, that `holdfast --bg` loads in the process that the shell waits
for; the one that works loads the rest."""


def test_asking_for_a_background_session_loads_little() -> None:
    code = "import tui.cli.main, tui.app.options.parser, tui.cli.background_launch"
    loaded = _modules_after(code)
    assert not {"asyncio", "msgspec", "tui.agent"} & loaded
    assert len(loaded) <= _MOST_TO_ASK_FOR_A_BACKGROUND_SESSION


_MOST_FOR_A_PROMPT = 308
"""The modules of ours that a prompt loads whose answer calls no tool. It may only fall."""
_NOT_FOR_A_PROMPT = {
    *("tui.app.conversation", "tui.app.dialog_data", "tui.agent.exam", "tui.agent.calls.stations"),
    *("tui.permissions.risk", "tui.permissions.plain_command", "tui.permissions.wrapper_commands"),
    *("tui.session.chain_check", "tui.session.catalog", "tui.tools.pdf", "tui.tools.notebook"),
    *("importlib.resources", "zipfile", "fractions"),
}


def test_printing_never_loads_the_screen() -> None:
    code = (
        "import os, sys, tempfile; from tui.cli.main import main\n"
        "os.environ['HOLDFAST_HOME'] = tempfile.mkdtemp()\n"
        "sys.argv = ['holdfast', '--practice', '--no-session', '-p', 'hello']\n"
        "assert main() == 0"
    )
    loaded = _modules_after(code)
    assert not {"textual", "anthropic", *_NOT_FOR_A_PROMPT} & loaded
    ours = sum(name.startswith("tui.") for name in loaded)
    assert ours <= _MOST_FOR_A_PROMPT, f"{ours} modules: load what few prompts use where it is used"
