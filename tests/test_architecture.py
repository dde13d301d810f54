"""The directions of ARCHITECTURE, proved at run time; import-linter proves them statically."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest


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


def test_printing_never_loads_the_screen() -> None:
    code = (
        "import os, sys, tempfile; from tui.cli.main import main\n"
        "os.environ['HOLDFAST_HOME'] = tempfile.mkdtemp()\n"
        "sys.argv = ['holdfast', '--practice', '--no-session', '-p', 'hello']\n"
        "assert main() == 0"
    )
    assert not {"textual", "anthropic"} & _modules_after(code)
