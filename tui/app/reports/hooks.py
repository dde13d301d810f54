"""/hooks: what runs when, from which file, if it counts, and how it ended last."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from tui.app.reports import Row, problem_row
from tui.core.formatting import plural
from tui.core.messages import string_of
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line
from tui.session.records import Record
from tui.settings.hook_files import HOOK_FILES, Hook, HookEvent, Hooks

if TYPE_CHECKING:
    from pathlib import Path

    from tui.agent.agent import Agent
    from tui.app.services import AppServices
    from tui.settings.trust import Trust, TrustItem

NONE: Final = "No hooks yet."
ABOUT: Final = "Hooks run commands of your own at set moments, such as before each edit."
_WHEN: Final[dict[HookEvent, str]] = {
    "PreToolUse": "before a tool call",
    "PermissionRequest": "before you're asked about a tool call",
    "PostToolUse": "after a tool call",
    "PostToolUseFailure": "after a tool call that failed",
    "UserPromptSubmit": "when you send a prompt",
    "SessionStart": "when a session starts",
    "SessionEnd": "when a session ends",
    "Stop": "when the model has finished",
    "StopFailure": "when a turn fails",
    "SubagentStart": "when a sub-agent starts",
    "SubagentStop": "when a sub-agent has finished",
    "PreCompact": "before older messages are summarized",
    "PostCompact": "after older messages were summarized",
    "Notification": "when Holdfast notifies you",
}
_OUTCOMES: Final = {
    "ok": ("✓", "success"),
    "blocked": ("■", "warning"),
    "failed": ("✗", "error"),
    "timeout": ("✗", "error"),
    "cancelled": ("■", "muted"),
}


async def rows_of_hooks(agent: Agent, services: AppServices) -> list[Row]:
    """Return the hooks as they are in the files now, those that don't count too."""
    found = await asyncio.to_thread(agent.find_hooks)
    brought = await asyncio.to_thread(services.brought)
    untrusted = _untrusted_rows(brought, services.trust(), services.workspace)
    return [*hook_rows(found, agent.session.records), *untrusted]


def hook_rows(hooks: Hooks, records: Iterable[Record]) -> Iterator[Row]:
    """Yield a row for each hook, and one for each thing that is wrong."""
    runs: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.type == "hook":
            key = string_of(record.data.get("event")), string_of(record.data.get("command"))
            runs.setdefault(key, []).append(record)
    for number, hook in enumerate(hooks.all):
        if not hook.problem:  # those are among the problems
            yield _row(hook, runs.get((hook.event, hook.line), []), f"{number}")
    yield from map(problem_row, hooks.problems)


def _untrusted_rows(brought: Sequence[TrustItem], trust: Trust, workspace: Path) -> list[Row]:
    """Make a row for each file of the folder whose hooks don't run, as it isn't trusted."""
    return [
        Row(
            item.name,
            ("not trusted", one_line(item.does)),
            f"untrusted {item.name}",
            "!",
            "warning",
            (item.does, "Not trusted, so its hooks don't run. /trust changes it."),
            frozenset({"open", "edit"}),
            dim=True,
            file=workspace / item.name,
        )
        for item in brought
        if item.name in HOOK_FILES
        and not trust.everything
        and trust.granted.get(item.name) != item.sha256
    ]


def _row(hook: Hook, runs: Sequence[Record], key: str) -> Row:
    last = string_of(runs[-1].data.get("outcome")) if runs else ""
    mark, look = _OUTCOMES.get(last, ("○", "muted"))
    matcher = one_line(f"{hook.event} {hook.matcher}".rstrip())
    where = shorten(hook.path) if hook.path else ""
    whose = "this folder's, trusted" if hook.scripts is not None else "yours"
    whose = f"from the plugin {hook.plugin.name}" if hook.plugin else whose
    limits = [f"at most {hook.timeout_s:g} s"]
    limits += ["blocks if it fails"] if hook.on_error == "block" else []
    limits += ["runs in the background"] if hook.detached else []
    limits += [f"only for {one_line(hook.condition)}"] if hook.condition else []
    when = f"Runs {_WHEN[hook.event]}" + (f" of {hook.matcher}" if hook.matcher else "")
    about = (
        hook.line,
        one_line(f"{when} · {' · '.join(limits)}"),
        " · ".join(filter(None, (where, whose))),
        _ended(runs),
    )
    actions = {"open", "copy", "edit"} if hook.path else {"copy"}
    return Row(
        matcher,
        (f"{last} {len(runs):,}×" if runs else "not run yet", one_line(hook.line)),
        key,
        mark,
        look,
        about,
        frozenset(actions),
        file=hook.path,
    )


def _ended(runs: Sequence[Record]) -> str:
    """Say how a hook ended last, and what it said."""
    if not runs:
        return "Hasn't run in this session."
    last = runs[-1]
    data, times = last.data, plural(len(runs), "time")
    seconds = data.get("seconds")
    took = f" in {seconds:g} s" if isinstance(seconds, int | float) else ""
    text = one_line(string_of(data.get("text")))
    said = f": {text}" if text else ""
    return f"Ran {times}, last{_clock(last.time)} {data.get('outcome')}{took}{said}"


def _clock(time: str) -> str:
    try:
        return f" at {datetime.fromisoformat(time).astimezone():%H:%M:%S}"
    except ValueError:
        return ""


def hook_lines(rows: Iterable[Row]) -> list[str]:
    """Return two lines for each hook, and one for each problem."""
    lines: list[str] = []
    for row in rows:
        command, *facts = row.about
        if row.mark == "!":
            lines.append(one_line(f"{row.name}: {facts[0]}" if facts else command))
        else:
            lines += [f"{row.name}: {one_line(command)}", f"    {' · '.join(facts)}"]
    return lines
