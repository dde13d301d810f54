"""The same conversations as Claude Code's: the lines have its kinds, order and fields, but for what
the tables here name (the README says why)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from difflib import ndiff
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cli.claude_stream.cases import ASKS, CASES, Case, call, control, initialize, user
from tests.cli.claude_stream.replay import SETTINGS, Played, play

HERE: Final = Path(__file__).parent
Line = dict[str, Any]

DIFFERENT: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("- system:thinking_tokens",),
    "partial": (
        "- system:thinking_tokens",
        "- ~content_block_delta:signature_delta",
        # An answer is in the record before it is written here, so its blocks come after all pieces.
        "- assistant:thinking",
        "- assistant:text",
        "+ ~content_block_stop",
        "+ assistant:thinking",
        "+ assistant:text",
        *("- ~content_block_stop", "+ ~content_block_stop", "- ~content_block_stop"),
    ),
    # A key that was refused is not tried again.
    "error_401": ("- system:api_retry",),
    # The tools are listed before `initialize` is answered.
    "mcp": (
        *("+ control_request:mcp_message",) * 2,
        *("- control_request:mcp_message",) * 2,
    ),
    "control": (
        # A budget of thinking, and a task that does not run, are refused with a word.
        "- control_response:success",
        "+ control_response:error",
        "+ control_response:error",
        "- control_response:success",
        "- system:background_tasks_changed",
    ),
    "compaction": (
        "- system:init",
        "- user:text",
        "- user:text",
    ),
}
"""The kinds of lines that only one of the two writes, "-" Claude Code and "+" Holdfast."""

SETTINGS_OF: Final[Mapping[str, str]] = dict.fromkeys(
    ("tools", "hook_events"),
    SETTINGS
    + '[permissions]\nallow = ["run_command(echo hi > made.txt)",'
    + ' "run_command(echo no >&2; exit 3)"]\n',
)
"""A rule for all commands allows only plain ones: these need one of their own."""

_STARTED: Final = {"run_id"}
LEFT_OUT: Final[Mapping[str, set[str]]] = {
    "assistant": {"thinking_display", "thinking_duration_ms", "tool_use_meta"},
    "user": {"tool_result_meta", "isReplay", "isSynthetic"},
    "result": {
        "begun_message_ids", "fast_mode_disabled_reason", "fast_mode_state",
        "first_content_frame_ms", "model_usage_since_last_result", "safety_stops",
        "subagent_stats", "time_to_request_ms", "ttft_ms", "ttft_stream_ms",
    },
    "stream_event": {"thinking_display", "ttft_ms", "abandoned_blocks"},
    "system:init": {
        "additional_directories", "analytics_disabled", "capabilities",
        "fast_mode_disabled_reason", "fast_mode_state", "memory_paths", "messaging_socket_path",
        "original_cwd", "per_turn_effort_active", "product_feedback_disabled", "sandbox_enabled",
        "served_by_anthropic", "terminal_slash_commands", "ultrathink_available",
        "ultrathink_typed_raises", "view_mode",
    },
    "system:compact_boundary": {"logical_parent_uuid"},
    "system:task_started": _STARTED,
    "system:task_progress": _STARTED,
    "system:task_updated": _STARTED,
    "system:task_notification": _STARTED,
}  # fmt: skip
"""Fields of Claude Code's that Holdfast has no value for."""
ADDED: Final[Mapping[str, set[str]]] = {"system:init": {"holdfast_version"}}
EXITS: Final = {"permission_interrupt": 130, "interrupt": 130, "error_401": 3}
"""Exit codes that are Holdfast's own: interrupted, and refused by the server."""


def recorded(name: str) -> list[Line]:
    return [json.loads(line) for line in (HERE / f"{name}.jsonl").read_text().splitlines()]


def kind(line: Line) -> str:
    """The kind of a line, as the tables name it."""
    match line["type"]:
        case "assistant" | "user" as who:
            content = line["message"]["content"]
            blocks = [{"type": "text"}] if isinstance(content, str) else content
            agent = "sub " if line.get("parent_tool_use_id") else ""
            return f"{agent}{who}:{','.join(block['type'] for block in blocks)}"
        case "stream_event":
            event = line["event"]
            piece = f":{event['delta']['type']}" if "index" in event and "delta" in event else ""
            return f"~{event['type']}{piece}"
        case "control_request":
            return f"control_request:{line['request']['subtype']}"
        case "control_response":
            return f"control_response:{line['response']['subtype']}"
        case other:
            return f"{other}:{line['subtype']}"


def kinds(lines: Iterable[Line]) -> list[str]:
    """The kinds in order; pieces of the same kind that follow each other are one."""
    every = [kind(line) for line in lines]
    return [
        one
        for number, one in enumerate(every)
        if not (one.startswith("~content_block_delta") and every[number - 1 : number] == [one])
    ]


def group(line: Line) -> str:
    """The kind of a line, as far as it decides which fields it has."""
    system = line["type"] == "system"
    return f"system:{line['subtype']}" if system else str(line["type"])


@pytest.mark.parametrize("name", CASES)
def test_the_lines_are_those_of_claude_code(name: str, tmp_path: Path) -> None:
    entries = recorded(name)
    theirs = [entry["out"] for entry in entries if "out" in entry]
    played = play(CASES[name], tmp_path, settings=SETTINGS_OF.get(name, SETTINGS))
    difference = ndiff(kinds(theirs), kinds(played.lines))
    differs = tuple(line.rstrip() for line in difference if line[0] in "+-")
    assert differs == DIFFERENT.get(name, ()), played.stderr
    assert played.code == EXITS.get(name, entries[-1]["exit"])
    _same_fields(theirs, played.lines)


def _same_fields(theirs: list[Line], ours: list[Line]) -> None:
    """Each field of ours is one of theirs, and none of theirs is missing that isn't named."""
    known: dict[str, set[str]] = {}
    for line in theirs:
        if "as in" not in line:
            known.setdefault(group(line), set()).update(line)
    for line in ours:
        name = group(line)
        if name in known:
            assert not set(line) - known[name] - ADDED.get(name, set()), line
    written: dict[str, set[str]] = {}
    for line in ours:
        written.setdefault(group(line), set()).update(line)
    for name, fields in known.items():
        if name in written:
            assert not fields - written[name] - LEFT_OUT.get(name, set()), name


def _one(*turns: Line, flags: tuple[str, ...] = (), prompt: object = "Go", **more: Any) -> Case:
    return Case([*turns, {"text": "Done."}], [initialize(), user(prompt)], flags, **more)


def _bash(command: str) -> Line:
    return {"tools": [call("Bash", "toolu_bash", command=command)]}


# What is decided


def test_what_the_driver_changed_is_what_runs(tmp_path: Path) -> None:
    played = play(CASES["permission_write"], tmp_path)
    assert not (played.folder / "c.txt").exists()
    assert (played.folder / "d.txt").read_text() == "other\n"
    (asked,) = played.of("control_request")
    assert asked["request"]["input"] == {
        "file_path": str(played.folder / "c.txt"),
        "content": "new\n",
    }


def test_a_command_that_a_wall_stopped_runs_again_as_the_driver_changed_it(tmp_path: Path) -> None:
    settings = SETTINGS.replace('engine = "off"', 'engine = "auto"')
    played = play(CASES["permission_allowed"], tmp_path, settings=settings)
    assert (played.folder / "made.txt").read_text() == "other\n"


def test_a_lasting_yes_is_not_for_what_was_changed(tmp_path: Path) -> None:
    rule: Line = {"type": "addRules", "rules": [], "behavior": "allow", "destination": "session"}
    changed = {"behavior": "allow", "updatedInput": {"command": "touch other"}}
    case = _one(
        *({"tools": [call("Bash", f"toolu_{n}", command="touch x")]} for n in "ab"),
        flags=ASKS,
        replies={
            "can_use_tool": [
                changed | {"updatedPermissions": [rule]},
                {"behavior": "deny", "message": "No."},
            ]
        },
    )
    played = play(case, tmp_path)
    assert len(played.of("control_request")) == 2
    assert [path.name for path in played.folder.iterdir()] == ["other"]


def test_a_lasting_yes_is_for_the_session(tmp_path: Path) -> None:
    rule: Line = {
        "type": "addRules",
        "rules": [],
        "behavior": "allow",
        "destination": "userSettings",
    }
    case = _one(
        *({"tools": [call("Bash", f"toolu_{n}", command="touch x")]} for n in "ab"),
        flags=ASKS,
        replies={"can_use_tool": [{"behavior": "allow", "updatedPermissions": [rule]}]},
    )
    played = play(case, tmp_path)
    assert len(played.of("control_request")) == 1
    assert "holds for this session only" in played.stderr


def test_the_driver_sees_a_call_as_a_hook_changed_it(tmp_path: Path) -> None:
    changed = {"hookEventName": "PreToolUse", "updatedInput": {"command": "touch hooked"}}
    case = Case(
        [_bash("touch x"), {"text": "Done."}],
        [
            initialize(hooks={"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]}),
            user("Go"),
        ],
        ASKS,
        replies={
            "hook_callback": [{"hookSpecificOutput": changed}],
            "can_use_tool": [
                {"behavior": "allow", "updatedInput": {"command": "touch hooked"}},
            ],
        },
    )
    played = play(case, tmp_path)
    asked = played.of("control_request")[-1]["request"]
    assert asked["input"] == {"command": "touch hooked"}
    assert [path.name for path in played.folder.iterdir()] == ["hooked"]


def test_a_change_cannot_lead_past_what_is_forbidden(tmp_path: Path) -> None:
    case = _one(
        _bash("echo hi > made.txt"),
        flags=(*ASKS, "--disallowedTools", "Bash(touch *)"),
        replies={"can_use_tool": [{"behavior": "allow", "updatedInput": {"command": "touch x"}}]},
    )
    played = play(case, tmp_path)
    assert not (played.folder / "x").exists()
    (denial,) = played.result["permission_denials"]
    assert denial["tool_input"] == {"command": "touch x"}


def test_an_answer_that_is_neither_yes_nor_no_allows_nothing(tmp_path: Path) -> None:
    case = _one(_bash("touch x"), flags=ASKS, replies={"can_use_tool": [{"behavior": "maybe"}, {}]})
    played = play(case, tmp_path)
    assert not (played.folder / "x").exists()
    assert "neither allow nor deny" in json.dumps(played.of("user"))


def test_nobody_is_asked_who_did_not_say_so_on_the_command_line(tmp_path: Path) -> None:
    played = play(_one(_bash("touch x")), tmp_path)
    assert not played.of("control_request")
    assert not (played.folder / "x").exists()
    assert played.result["permission_denials"]


def test_questions_cannot_be_switched_off_later(tmp_path: Path) -> None:
    case = Case(
        [_bash("touch x"), {"text": "Done."}],
        [initialize(), control("c1", "set_permission_mode", mode="bypassPermissions"), user("Go")],
    )
    played = play(case, tmp_path)
    refused = played.of("control_response")[-1]["response"]
    assert refused["error_code"] == "bypass_not_launched"
    assert not (played.folder / "x").exists()


def test_a_driver_chooses_no_profile(tmp_path: Path) -> None:
    """Whose account pays is a person's choice, though fallbacks may name a profile."""
    case = Case(
        [{"text": "Done."}],
        [initialize(), control("c1", "set_model", model="@default/claude-opus-5-5"), user("Go")],
    )
    played = play(case, tmp_path)
    refused = played.of("control_response")[-1]["response"]
    assert (refused["subtype"], "profile" in refused["error"]) == ("error", True)
    assert played.of("assistant")[-1]["message"]["model"] != "@default/claude-opus-5-5"


def test_they_can_where_the_command_line_says_so(tmp_path: Path) -> None:
    case = _one(_bash("touch x"), flags=("--permission-mode", "bypassPermissions"))
    played = play(case, tmp_path)
    assert (played.folder / "x").exists()
    assert played.of("system", "init")[0]["permissionMode"] == "bypassPermissions"


def test_a_hook_sees_and_changes_a_call_in_claude_codes_words(tmp_path: Path) -> None:
    played = play(CASES["hooks"], tmp_path)
    assert (played.folder / "made.txt").read_text() == "hook\n"
    asked = [line["request"] for line in played.of("control_request")]
    before = next(one for one in asked if one["callback_id"] == "hook_0")
    assert before["input"]["tool_name"] == "Bash"
    assert before["input"]["tool_input"] == {"command": "echo hi > made.txt"}


def test_a_guard_that_cannot_answer_stops_the_call(tmp_path: Path) -> None:
    hooks = {"PreToolUse": [{"matcher": "Write|Edit", "hookCallbackIds": ["hook_0"]}]}
    write = call("Write", "toolu_write", file_path="{cwd}/c.txt", content="new\n")
    case = Case(
        [{"tools": [write]}, {"text": "Done."}],
        [initialize(hooks=hooks), user("Go")],
        ("--permission-mode", "acceptEdits"),
        replies={"hook_callback": [{"error": "No such callback."}]},
    )
    played = play(case, tmp_path)
    assert not (played.folder / "c.txt").exists()


# What is offered and read


def test_a_patch_is_not_offered_and_a_forbidden_tool_neither(tmp_path: Path) -> None:
    played = play(_one(flags=("--disallowedTools", "WebFetch")), tmp_path)
    tools = {tool["name"] for tool in played.requests[0]["body"]["tools"]}
    assert "edit_file" in tools
    assert not tools & {"apply_patch", "web_fetch"}


def test_the_tools_are_those_that_were_named(tmp_path: Path) -> None:
    played = play(_one(flags=("--tools", "Read,Bash")), tmp_path)
    assert {tool["name"] for tool in played.requests[0]["body"]["tools"]} == {
        "read_file",
        "run_command",
    }


def test_an_own_sub_agent_can_be_called(tmp_path: Path) -> None:
    agents = {"critic": {"description": "Finds faults.", "prompt": "Be harsh.", "tools": ["Read"]}}
    case = Case([{"text": "Done."}], [initialize(agents=agents), user("Go")])
    played = play(case, tmp_path)
    assert "critic" in played.of("system", "init")[0]["agents"]
    assert "- critic: Finds faults." in json.dumps(played.requests[0]["body"]["system"])


def test_the_same_stream_with_words_of_our_own(tmp_path: Path) -> None:
    name = "claude-stream-json"
    words = ("--input-format", name, "--output-format", name)
    played = play(CASES["permission_denied"], tmp_path, words=words)
    assert played.result["result"] == "Done."
    assert len(played.of("control_request")) == 1


def test_one_prompt_in_claude_codes_words(tmp_path: Path) -> None:
    case = Case([{"text": "Hello."}], [])
    words = ("-p", "Hi", "--output-format", "claude-stream-json")
    assert play(case, tmp_path, words=words).result["result"] == "Hello."


def test_with_p_it_stays_our_own_format(tmp_path: Path) -> None:
    words = ("-p", "Hi", "--output-format", "stream-json")
    played = play(Case([{"text": "Hello."}], []), tmp_path, words=words)
    assert played.lines[0]["type"] == "session_started"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--session-id", "5"), "--session-id doesn't work"),
        (("--no-such-option", "5"), "doesn't know Claude Code's option --no-such-option"),
        (("--permission-prompt-tool", "mcp__x__y"), "doesn't work"),
        (("--permission-mode", "sideways"), "no permission mode"),
        (("--disallowedTools", "NoTool(a b)"), "can't be forbidden"),
        (("--resume", ""), "needs a session's id"),
        (("--max-turns", "many"), "needs a number"),
    ],
)
def test_what_would_be_another_session_is_refused_with_a_word(
    flags: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    case = Case([], [], flags)
    played = play(case, tmp_path)
    assert played.code == 2
    assert said in played.stderr
    assert not played.lines


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    case = _one(flags=("--plugin-dir", "/x", "--settings", '{"env": {"A": "b"}}'))
    said = play(case, tmp_path).stderr
    assert "--plugin-dir is left out" in said
    assert "--settings: env is left out" in said


@pytest.mark.parametrize(
    "flags",
    [("--debug-to-stderr",), ("--debug",), ("--debug", "api"), ("--debug-to-stderr", "-d", "!mcp")],
    ids=" ".join,
)
def test_a_flag_without_a_value_takes_none_from_the_next_one(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    played = play(_one(flags=flags), tmp_path)
    assert (played.code, played.result["subtype"]) == (0, "success"), played.stderr


def test_a_text_may_begin_with_a_dash(tmp_path: Path) -> None:
    played = play(_one(flags=("--append-system-prompt", "--be brief")), tmp_path)
    assert "--be brief" in json.dumps(played.requests[0]["body"]["system"])


def test_an_option_that_nobody_knows_is_named(tmp_path: Path) -> None:
    played = play(Case([], [], ("--brand-new", "--include-partial-messages")), tmp_path)
    assert played.code == 2
    assert "doesn't know Claude Code's option --brand-new." in played.stderr


def test_an_answer_past_the_budget_is_told_as_claude_code_does(tmp_path: Path) -> None:
    played = play(_one(flags=("--max-budget-usd", "0.0000001")), tmp_path)
    assert (played.code, played.result["subtype"]) == (1, "error_max_budget_usd")
    assert played.result["is_error"] is True
    assert "result" not in played.result
    (spent,) = played.result["modelUsage"].values()
    assert spent["costUSD"] == played.result["total_cost_usd"] > 0


def test_a_session_that_cannot_open_says_so_to_who_initializes(tmp_path: Path) -> None:
    case = Case([], [initialize()], ("--resume=nosuchsession",))
    played = play(case, tmp_path)
    (answer,) = played.of("control_response")
    assert answer["response"]["subtype"] == "error"
    assert played.code == 4


def test_a_session_is_continued_and_forked(tmp_path: Path) -> None:
    first = play(CASES["no_initialize"], tmp_path)
    id_ = first.result["session_id"]
    again = _again(tmp_path, first, "--continue")
    assert again.result["session_id"] == id_
    (here,) = again.result["modelUsage"].values()  # of this run, the total is the session's
    assert 0 < here["costUSD"] < again.result["total_cost_usd"]
    assert "First" in json.dumps(again.requests[-1]["body"]["messages"])
    fork = _again(tmp_path, first, f"--resume={id_}", "--fork-session")
    assert fork.result["session_id"] != id_
    assert "First" in json.dumps(fork.requests[-1]["body"]["messages"])


def _again(folder: Path, before: Played, *flags: str) -> Played:
    del before
    return play(Case([{"text": "Two."}], [user("Second")], flags), folder)
