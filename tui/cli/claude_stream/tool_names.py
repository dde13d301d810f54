"""Our tools in Claude Code's words, and back: for hooks, permission callbacks and readers that were
written for its tools.

Its names and fields are those of 2.1.332 (`sdk-tools.d.ts` of its SDK). A tool without a
counterpart keeps its own name and fields, and so does a field: `cwd` of a command, for instance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from tui.core import claude_names
from tui.core.messages import list_of, object_of

Input: TypeAlias = dict[str, Any]
Convert: TypeAlias = Callable[[Input], Input]

NOT_OFFERED: Final = frozenset({"apply_patch"})
"""Our tools that a driver's model has not: Claude Code has nothing like a patch of several files,
and who guards `Edit` and `Write` would not see it."""
RESULT_TOOL: Final = "StructuredOutput"
"""Its name for the tool that hands over a result that fits a schema."""

_RENAMED: Final[Mapping[str, Mapping[str, str]]] = {
    "read_file": {"path": "file_path"},
    "write_file": {"path": "file_path"},
    "edit_file": {"path": "file_path"},
    "run_command": {"background": "run_in_background"},
    "grep_search": {"case_insensitive": "-i", "context": "-C", "max_results": "head_limit"},
    "task": {"agent": "subagent_type"},
    "skill": {"name": "skill", "arguments": "args"},
    "command_status": {"job": "task_id"},
}
"""Fields that have another name there, ours first."""
_PATHS: Final = frozenset({"read_file", "write_file", "edit_file"})
"""Tools whose path is absolute there."""


def name_of(tool: str, given: Mapping[str, Any]) -> str:
    """Return the name that a call of a tool of ours has in Claude Code."""
    if tool == "submit_result":
        return RESULT_TOOL
    if tool == "edit_file" and len(list_of(given.get("edits"))) != 1:
        return "MultiEdit"
    if tool == "command_status":
        return "TaskStop" if given.get("action") == "stop" else "TaskOutput"
    return claude_names.names_of(tool)[0]


def names_offered(tools: list[str]) -> list[str]:
    """Return the names of tools for the list of a session."""
    first = {"edit_file": "Edit", "command_status": "TaskOutput"}
    return [first.get(tool) or name_of(tool, {}) for tool in tools]


def shown(tool: str, given: Mapping[str, Any], root: Path) -> tuple[str, Input]:
    """Return a call of a tool of ours with the name and the fields that it has in Claude Code."""
    name, input_ = name_of(tool, given), dict(given)
    if tool in _PATHS and isinstance(path := input_.get("path"), str) and path:
        input_["path"] = str(root / Path(path).expanduser())
    if convert := _SHOWN.get(tool):
        input_ = convert(input_)
    renamed = _RENAMED.get(tool, {})
    return name, {renamed.get(key, key): value for key, value in input_.items()}


def own(tool: str, before: Mapping[str, Any], given: Mapping[str, Any], root: Path) -> Input:
    """Return the input of a call of ours as somebody changed what `shown` gave of `before`. What
    they left as it was stays as the model wrote it."""
    _, was = shown(tool, before, root)
    if dict(given) == was:
        return dict(before)
    back = {theirs: ours for ours, theirs in _RENAMED.get(tool, {}).items()}
    input_ = {back.get(key, key): value for key, value in given.items()}
    if convert := _OWN.get(tool):
        input_ = convert(input_)
    same = tool in _PATHS and given.get("file_path") == was.get("file_path")
    return input_ | ({"path": before["path"]} if same and "path" in before else {})


# The fields that are not only renamed.


def _bash(given: Input) -> Input:
    timeout = given.get("timeout")
    if not isinstance(timeout, int | float):
        return given
    return given | {"timeout": round(timeout * 1000)}


def _run_command(given: Input) -> Input:
    input_ = {key: value for key, value in given.items() if key != "description"}
    timeout = given.get("timeout")
    return input_ | ({"timeout": timeout / 1000} if isinstance(timeout, int | float) else {})


def _edit(given: Input) -> Input:
    edits = list_of(given.get("edits"))
    if len(edits) != 1:
        return given
    rest = {key: value for key, value in given.items() if key != "edits"}
    return rest | object_of(edits[0])


def _edit_file(given: Input) -> Input:
    if "edits" in given:
        return given
    names = ("old_string", "new_string", "replace_all")
    rest = {key: value for key, value in given.items() if key not in names}
    return rest | {"edits": [{name: given[name] for name in names if name in given}]}


def _todos(given: Input) -> Input:
    todos = [object_of(one) for one in list_of(given.get("todos"))]
    return given | {
        "todos": [
            {"content": one.get("text"), "status": one.get("status"), "activeForm": one.get("text")}
            for one in todos
        ]
    }


def _todo_write(given: Input) -> Input:
    todos = [object_of(one) for one in list_of(given.get("todos"))]
    return given | {
        "todos": [{"text": one.get("content"), "status": one.get("status")} for one in todos]
    }


def _questions(given: Input) -> Input:
    questions = [object_of(one) for one in list_of(given.get("questions"))]
    return given | {
        "questions": [
            {
                "question": one.get("question"),
                "header": one.get("header"),
                "options": list_of(one.get("choices")),
                "multiSelect": bool(one.get("several")),
            }
            for one in questions
        ]
    }


def _ask_user(given: Input) -> Input:
    questions = [object_of(one) for one in list_of(given.get("questions"))]
    return {
        "questions": [
            {
                "header": one.get("header"),
                "question": one.get("question"),
                "choices": list_of(one.get("options")),
                "several": bool(one.get("multiSelect")),
            }
            for one in questions
        ]
    }


_SHOWN: Final[Mapping[str, Convert]] = {
    "run_command": _bash,
    "edit_file": _edit,
    "todo_write": _todos,
    "ask_user": _questions,
}
_OWN: Final[Mapping[str, Convert]] = {
    "run_command": _run_command,
    "edit_file": _edit_file,
    "todo_write": _todo_write,
    "ask_user": _ask_user,
}
