"""`holdfast doctor`: is everything there that a session needs? Read-only.

`machine` looks at what is installed, at the terminal, and at the folders and what lies in them,
`sandbox` tries the walls that commands run behind, `setup` at configuration, key and servers.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tui.app.doctor import machine, setup
from tui.app.doctor import sandbox as confined
from tui.app.doctor.check import Check, Subject
from tui.app.options.arguments import Options
from tui.app.services import AppServices
from tui.app.session_path import workspace_of
from tui.core.errors import HoldfastError
from tui.core.facts import DEFAULT_PROFILE
from tui.core.formatting import plural
from tui.core.paths import folders
from tui.core.standard_output import hanging, print_text, terminal_width

__all__ = ["Check", "Subject", "examine", "examine_session", "report", "run", "summary"]

_MARKS = {"ok": "✓", "warn": "!", "fail": "✗"}
_NAME = 15
_FIX = "→ "

_EXAMINATIONS: tuple[tuple[str, Callable[[Subject], Iterable[Check]]], ...] = (
    ("program", machine.program),
    ("installed", machine.installed),
    ("packages", machine.packages),
    ("terminal", machine.terminal),
    ("programs", machine.programs),
    ("sandbox", confined.sandbox),
    ("configuration", setup.configuration),
    ("key", setup.key),
    ("fallbacks", setup.fallbacks),
    ("server", setup.server),
    ("mcp", setup.mcp),
    ("otel", setup.otel),
    ("diagnostics", setup.diagnostics),
    ("storage", machine.folders),
    ("sessions", machine.sessions),
    ("commands", machine.commands),
    ("outputs", machine.outputs),
)


def run(options: Options) -> int:
    """Print what was found. Returns 1 where a check fails; raises UsageError for a wrong -C."""
    workspace = workspace_of(options)
    profile = options.models.profile or ""
    checks = examine(Subject.of(workspace, folders(), os.environ, profile=profile))
    if options.json:
        text = json.dumps({"checks": [check.to_json() for check in checks]}, indent=2)
    else:
        text = report(checks, terminal_width(sys.stdout))
    print_text(text)
    return 1 if any(check.status == "fail" for check in checks) else 0


def examine(what: Subject) -> list[Check]:
    """All checks, in the same order every time. Blocks, for some 4 s at most where nothing answers.

    What cannot be looked at is a check that fails; nothing is raised.
    """
    with ThreadPoolExecutor(max_workers=len(_EXAMINATIONS), thread_name_prefix="doctor") as pool:
        futures = [pool.submit(_one, name, look, what) for name, look in _EXAMINATIONS]
        return [check for future in futures for check in future.result()]


def examine_session(services: AppServices, model: str) -> list[Check]:
    """All checks as of a program that runs, with the model in use, "" for none. As `examine`."""
    profile = services.account().profile or DEFAULT_PROFILE
    return examine(
        Subject.of(
            services.workspace,
            services.folders,
            os.environ,
            model=model,
            bare=services.bare,
            profile=profile,
        )
    )


def report(checks: Sequence[Check], width: int | None = None) -> str:
    """The checks for reading, a line each and one below for what to do; with a `width`, broken
    between words."""
    lines: list[str] = []
    for check in checks:
        lines += hanging(f"{_MARKS[check.status]} {check.name:<{_NAME}}", check.detail, width)
        if check.fix:
            lines += hanging(f"  {'':<{_NAME}}", _FIX + check.fix, width, inner=len(_FIX))
    return "\n".join([*lines, "", summary(checks)])


def summary(checks: Sequence[Check]) -> str:
    """All in one line."""
    failed = sum(check.status == "fail" for check in checks)
    warned = sum(check.status == "warn" for check in checks)
    if not failed and not warned:
        return "No problems found."
    parts = [plural(failed, "problem")] if failed else []
    parts += [f"{plural(warned, 'warning')}"] if warned else []
    return f"{' and '.join(parts)}."


def _one(name: str, look: Callable[[Subject], Iterable[Check]], what: Subject) -> list[Check]:
    try:
        return list(look(what))
    except HoldfastError as error:
        return [Check(name, "fail", error.message, error.hint)]
    except OSError as error:
        return [Check(name, "fail", f"couldn't be checked: {error}.")]
