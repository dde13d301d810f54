"""The conversations that were recorded with Claude Code, and are played again with Holdfast.

A case is data: the words of the command line, what the model answers (with Claude Code's names of
tools), and what the driver sends and answers.
"""

# ruff: noqa: E501 - a line of the stream is one here, too

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

Line = dict[str, Any]

FLAGS: Final = ("--output-format", "stream-json", "--verbose", "--input-format", "stream-json")
ASKS: Final = ("--permission-prompt-tool", "stdio")
PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def user(content: object, **more: object) -> Line:
    message = {"role": "user", "content": content}
    return {"type": "user", "session_id": "", "message": message, "parent_tool_use_id": None} | more


def control(id_: str, subtype: str, **more: object) -> Line:
    return {"type": "control_request", "request_id": id_, "request": {"subtype": subtype} | more}


def initialize(**more: object) -> Line:
    return control("init", "initialize", **({"hooks": None} | more))


def call(name: str, id_: str = "", **given: object) -> Line:
    return {"name": name, "input": given} | ({"id": id_} if id_ else {})


@dataclass(frozen=True)
class Case:
    """One conversation.

    `lines` are sent one after the other: a prompt when the one before has its result, a control
    request at once. `replies` answer the program's own requests by their subtype, in order;
    `on` sends lines when a kind of line is seen first.
    """

    turns: list[Line]
    lines: list[Line]
    flags: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    replies: dict[str, list[Line]] = field(default_factory=dict)
    on: dict[str, list[Line]] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    at_once: bool = False
    """The lines are sent without waiting for anything."""


_DONE: Final = {"text": "Done."}
_READ: Final = call("Read", "toolu_read", file_path="{cwd}/a.txt")
_ECHO: Final = call("Bash", "toolu_bash", command="echo hi > made.txt", description="Say hi")
_FILES: Final = {"a.txt": "alpha\nbeta\n", "b.txt": "gamma\n"}
_ALLOW: Final = ("--allowedTools", "Read,Bash,Write,Edit,Task,Agent")
_HOOKS: Final = {
    "PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}],
    "PostToolUse": [{"matcher": None, "hookCallbackIds": ["hook_1"]}],
    "UserPromptSubmit": [{"matcher": None, "hookCallbackIds": ["hook_2"]}],
    "Stop": [{"matcher": None, "hookCallbackIds": ["hook_3"]}],
}
_MCP: Final = '{"mcpServers":{"calc":{"type":"sdk","name":"calc"}}}'

CASES: Final[dict[str, Case]] = {
    "text": Case([{"thinking": "Hmm.", "text": "Hello there."}], [initialize(), user("Hi")]),
    "two_prompts": Case(
        [{"text": "One."}, {"text": "Two."}], [initialize(), user("First"), user("Second")]
    ),
    "no_initialize": Case([{"text": "One."}], [user("First")]),
    "partial": Case(
        [{"thinking": "Hmm.", "text": "Reading.", "tools": [_READ]}, _DONE],
        [initialize(), user("Read a.txt")],
        ("--include-partial-messages", *_ALLOW),
        _FILES,
    ),
    "tools": Case(
        [
            {"text": "Reading.", "tools": [_READ]},
            {"tools": [call("Edit", "toolu_edit", file_path="{cwd}/a.txt", old_string="alpha", new_string="ALPHA")]},
            {"tools": [call("Write", "toolu_write", file_path="{cwd}/c.txt", content="new\n")]},
            {"tools": [_ECHO]},
            {"tools": [call("Bash", "toolu_fail", command="echo no >&2; exit 3", description="Fail")]},
            _DONE,
        ],
        [initialize(), user("Work")],
        _ALLOW,
        _FILES,
    ),
    "parallel": Case(
        [
            {"tools": [_READ, call("Read", "toolu_second", file_path="{cwd}/b.txt")]},
            _DONE,
        ],
        [initialize(), user("Read both")],
        _ALLOW,
        _FILES,
    ),
    "permission_allowed": Case(
        [{"tools": [_ECHO]}, _DONE],
        [initialize(), user("Say hi")],
        ASKS,
        replies={"can_use_tool": [{"behavior": "allow", "updatedInput": {"command": "echo other > made.txt"}}]},
    ),
    "permission_denied": Case(
        [{"tools": [_ECHO]}, _DONE],
        [initialize(), user("Say hi")],
        ASKS,
        replies={"can_use_tool": [{"behavior": "deny", "message": "Not today."}]},
    ),
    "permission_interrupt": Case(
        [{"tools": [_ECHO]}, _DONE],
        [initialize(), user("Say hi")],
        ASKS,
        replies={"can_use_tool": [{"behavior": "deny", "message": "Stop it.", "interrupt": True}]},
    ),
    "permission_write": Case(
        [{"tools": [call("Write", "toolu_write", file_path="{cwd}/c.txt", content="new\n")]}, _DONE],
        [initialize(), user("Write it")],
        ASKS,
        replies={"can_use_tool": [{"behavior": "allow", "updatedInput": {"file_path": "{cwd}/d.txt", "content": "other\n"}}]},
    ),
    "nobody_asked": Case([{"tools": [_ECHO]}, _DONE], [initialize(), user("Say hi")]),
    "disallowed": Case(
        [{"tools": [_ECHO]}, _DONE],
        [initialize(), user("Say hi")],
        ("--disallowedTools", "Bash"),
    ),
    "error_401": Case(
        [{"status": 401, "error": "authentication_error", "message": "invalid x-api-key"}] * 9,
        [initialize(), user("Hi")],
        env={"CLAUDE_CODE_MAX_RETRIES": "1"},
    ),
    "error_429": Case(
        [{"status": 429, "error": "rate_limit_error", "message": "Slow down."}] * 9,
        [initialize(), user("Hi")],
        env={"CLAUDE_CODE_MAX_RETRIES": "1"},
    ),
    "error_529": Case(
        [{"status": 529, "error": "overloaded_error", "message": "Overloaded"}] * 9,
        [initialize(), user("Hi")],
        env={"CLAUDE_CODE_MAX_RETRIES": "1"},
    ),
    "error_400": Case(
        [{"status": 400, "error": "invalid_request_error", "message": "messages: bad"}] * 9,
        [initialize(), user("Hi")],
    ),
    "max_turns": Case(
        [{"tools": [_READ]}, _DONE],
        [initialize(), user("Read a.txt")],
        ("--max-turns", "1", *_ALLOW),
        _FILES,
    ),
    "interrupt": Case(
        [{"text": "A long answer that never ends.", "stall": True}],
        [initialize(), user("Talk")],
        ("--include-partial-messages",),
        on={"stream_event/content_block_delta": [control("stop", "interrupt")]},
    ),
    "sub_agent": Case(
        [
            {"tools": [call("Task", "toolu_task", description="Look", prompt="Read a.txt", subagent_type="Explore", run_in_background=False)]},
            {"text": "Looking.", "tools": [_READ]},
            {"text": "It says alpha."},
            _DONE,
        ],
        [initialize(), user("Delegate")],
        _ALLOW,
        _FILES,
    ),
    "compaction": Case(
        [{"text": "One."}, {"text": "<summary>What was said.</summary>"}, {"text": "Two."}],
        [initialize(), user("First"), user("/compact"), user("Second")],
    ),
    "image": Case(
        [{"text": "A pixel."}],
        [
            initialize(),
            user(
                [
                    {"type": "text", "text": "What is it?"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                ]
            ),
        ],
    ),
    "hooks": Case(
        [{"tools": [_ECHO]}, _DONE],
        [initialize(hooks=_HOOKS), user("Say hi")],
        _ALLOW,
        replies={
            "hook_callback": [
                {},
                {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"command": "echo hook > made.txt"}}},
                {},
                {},
            ]
        },
    ),
    "hook_denies": Case(
        [{"tools": [_ECHO]}, _DONE],
        [initialize(hooks=_HOOKS), user("Say hi")],
        _ALLOW,
        replies={
            "hook_callback": [
                {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "The sky is green."}},
                {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "No shell."}},
                {},
            ]
        },
    ),
    "command": Case(
        [{"text": "Greeted."}],
        [initialize(), user("/tt one two")],
        files={".claude/commands/tt.md": "Greet $ARGUMENTS.\n"},
    ),
    "unknown_command": Case([{"text": "What?"}], [initialize(), user("/nosuch thing")]),
    "mcp": Case(
        [{"tools": [call("mcp__calc__add", "toolu_add", a=1, b=2)]}, _DONE],
        [initialize(), user("Add")],
        ("--mcp-config", _MCP, "--allowedTools", "mcp__calc__add"),
        replies={"mcp_message": []},
    ),
    "control": Case(
        [{"text": "One."}],
        [
            initialize(),
            control("c1", "set_permission_mode", mode="acceptEdits"),
            control("c2", "set_model", model="claude-haiku-4-5"),
            control("c3", "mcp_status"),
            control("c4", "no_such_thing"),
            control("c5", "interrupt"),
            control("c6", "set_max_thinking_tokens", max_thinking_tokens=2000),
            control("c7", "set_permission_mode", mode="sideways"),
            control("c8", "mcp_reconnect", serverName="none"),
            control("c9", "stop_task", task_id="none"),
            control("c10", "initialize", hooks=None),
            control("c11", "set_permission_mode", mode="bypassPermissions"),
            control("c12", "set_model", model=None),
            control("c13", "get_context_usage"),
            control("c14", "rewind_files", user_message_id="none"),
            control("c15", "mcp_toggle", serverName="none", enabled=False),
            user("First"),
        ],
    ),
    "garbage": Case([{"text": "One."}], [{"type": "nonsense"}, user("First")], at_once=True),
    "queued": Case(
        [{"text": "One."}, {"text": "Two."}],
        [initialize(), user("First"), user("Second")],
        at_once=True,
    ),
    "session_state": Case(
        [{"tools": [_ECHO]}, _DONE],
        [initialize(), user("Say hi")],
        ASKS,
        replies={"can_use_tool": [{"behavior": "allow", "updatedInput": {"command": "echo hi > made.txt"}}]},
        env={"CLAUDE_CODE_SDK_READS_SESSION_STATE": "1"},
    ),
    "hook_events": Case(
        [{"tools": [_ECHO]}, _DONE],
        [initialize(hooks=_HOOKS), user("Say hi")],
        ("--include-hook-events", *_ALLOW),
        replies={"hook_callback": []},
    ),
    "file_prompt": Case([{"text": "One."}], [user("First")], ("--append-system-prompt", "Be brief.", "--model", "claude-haiku-4-5", "--setting-sources=")),
    "questions": Case(
        [
            {"tools": [call("AskUserQuestion", "toolu_ask", questions=[{"question": "Which?", "header": "Pick", "options": [{"label": "A", "description": "one"}, {"label": "B", "description": "two"}], "multiSelect": False}])]},
            _DONE,
        ],
        [initialize(), user("Ask me")],
        ASKS,
        replies={"can_use_tool": [{"behavior": "allow", "updatedInput": {"questions": [{"question": "Which?", "header": "Pick", "options": [{"label": "A", "description": "one"}, {"label": "B", "description": "two"}], "multiSelect": False}], "answers": {"Which?": "B"}}}]},
    ),
    "structured": Case(
        [{"tools": [call("StructuredOutput", "toolu_out", answer=4)]}, _DONE],
        [initialize(), user("Two and two")],
        (
            "--json-schema",
            '{"type":"object","properties":{"answer":{"type":"number"}},"required":["answer"]}',
        ),
    ),
}  # fmt: skip
