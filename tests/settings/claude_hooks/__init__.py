"""What Claude Code 2.1.332 does with hooks, rules and settings, as it was seen: see README.md."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any, Final

LOG: Final = 'd=$(cat); printf "%s\\n" "$d" >> "$HOOK_LOG/{name}"; '
"""Beginning of a hook: keep what it was given."""
ALLOW: Final[dict[str, Any]] = {"permissions": {"allow": ["Bash", "Read", "Write", "Edit"]}}
"""The settings of a case that names no others."""
USUAL: Final[dict[str, Any]] = {
    "prompt": "go",
    "turns": [
        [{"tool": "Bash", "input": {"command": "echo ran", "description": "x"}}],
        [{"text": "done"}],
    ],
    "mode": "default",
    "model": "claude-opus-5-5",
    "exit": 0,
    "judged": 0,
    "ends": [["completed", "done"]],
}
"""What is left out of the data where it is so."""
EVENTS: Final = (
    "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "Notification",
    "UserPromptSubmit", "UserPromptExpansion", "SessionStart", "SessionEnd", "Stop", "StopFailure",
    "SubagentStart", "SubagentStop", "PreCompact", "PostCompact", "PreModelSwitch",
    "PostModelSwitch", "PermissionRequest", "PermissionDenied", "Setup", "TeammateIdle",
    "TaskCreated", "TaskCompleted", "Elicitation", "ElicitationResult", "ConfigChange",
    "WorktreeCreate", "WorktreeRemove", "InstructionsLoaded", "CwdChanged", "FileChanged",
    "DirectoryAdded", "MessageDisplay", "PreSkillShellCommand",
)  # fmt: skip
"""The events in its own table of them."""
_EMPTY: Final[dict[str, Any]] = {"given": {}, "results": {}, "made": [], "said": [], "settings": {}}


def cases() -> dict[str, dict[str, Any]]:
    """The cases of hooks, whole, by name."""
    found: dict[str, dict[str, Any]] = {}
    for line in (Path(__file__).parent / "hooks.jsonl").read_text("utf-8").splitlines():
        text = re.sub(r"\[log ([^\]]+)\]", _log, line)
        one = copy.deepcopy(_EMPTY | USUAL) | json.loads(text)
        one["settings"] = ALLOW | one["settings"]
        found[one["case"]] = one
    return found


def _log(match: re.Match[str]) -> str:
    return json.dumps(LOG.format(name=match[1]))[1:-1]


def rules() -> list[dict[str, Any]]:
    """The rules that were tried, and the calls that each forbade."""
    lines = (Path(__file__).parent / "rules.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]
