"""What a hook's output comes to: no answer that looks like a decision is taken for none.

What Claude Code 2.1.332 makes of each was tried with a server of its own; where it lets the call
run ("drops it" below), a guard is lost without a word.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tui.agent.hook_answers import OUTPUT_MAX, HookReply, read

PRE = "PreToolUse"


def wrapped(decision: object, **more: Any) -> dict[str, Any]:
    own = {"hookEventName": PRE, "permissionDecision": decision, **more}
    return {"hookSpecificOutput": own}


DENY = json.dumps(wrapped("deny", permissionDecisionReason="no way"))
ALLOW = json.dumps(wrapped("allow"))
BARE = '{"permissionDecision": "deny", "permissionDecisionReason": "no way"}'


def said(printed: str | bytes, event: str = PRE) -> HookReply:
    return read(printed.encode() if isinstance(printed, str) else printed, event)


@pytest.mark.parametrize(
    "printed",
    [
        DENY,
        f"checking…\n{DENY}",  # drops it
        f"{DENY}\nchecked 1 file\n",  # drops it
        f"{{not json}}\n{DENY}",
        f"[{DENY}]",  # drops it
        '{"decision": "block", "reason": "no way"}',
        '{"decision": "deny", "reason": "no way"}',  # drops it
        '{"decision": "deny", "decision": "allow", "reason": "no way"}',
        '{"decision": "block", "decision": "approve", "reason": "no way"}',  # drops it
        '{"continue": false, "continue": true, "stopReason": "no way"}',
        f'{{"systemMessage": "hi"}}\n{DENY}',  # drops it
        f'{DENY}\n{{"systemMessage": "hi"}}',  # drops it
        f"{ALLOW}\n{DENY}",
        f'{DENY[:-1]}, "x": NaN}}',  # drops it
        f'{DENY[:-1]}, "x": {"9" * 5000}}}',
        f'{DENY[:-1]}, "x": "\\ud800"}}',
        f"{DENY[:-1]}, \"x\": {'[' * 500}{']' * 500}}}",
        b"\xef\xbb\xbf" + DENY.encode(),
        DENY.encode("utf-16"),  # drops it
        DENY.encode("utf-16-le"),
        DENY.encode() + b"\0",  # drops it
        DENY.replace("{", "{\r\n").encode(),
        '{"decision": "block", "reason": "no way", "log": "a\nb"}',  # a bare newline in a text
        DENY.encode()[:-2] + b', "x": "\xff"}}',
        # As jq 1.6 colors it with -C.
        ('\x1b[1;39m{\n  \x1b[0m\x1b[34;1m"decision"\x1b[0m\x1b[1;39m:\x1b[0m '
        '\x1b[0;32m"block"\x1b[0m\x1b[1;39m,\n  \x1b[0m\x1b[34;1m"reason"\x1b[0m'
        '\x1b[1;39m:\x1b[0m \x1b[0;32m"no way"\x1b[0m\x1b[1;39m\n}\x1b[0m'),
        json.dumps({"hookSpecificOutput": {"hookEventName": "PostToolUse", "permissionDecision":
            "deny", "permissionDecisionReason": "no way"}}),  # drops it
    ],
    ids=lambda _: "",
)  # fmt: skip
def test_a_decision_counts_whatever_stands_around_it(printed: str | bytes) -> None:
    found = said(printed)
    assert (found.verdict, found.reason) == ("deny", "no way")


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        (json.dumps(wrapped("Deny")), 'its permissionDecision is "Deny", none of allow, ask, deny'),
        (json.dumps(wrapped("denied")), 'its permissionDecision is "denied"'),
        (json.dumps(wrapped("block!")), 'its permissionDecision is "block!"'),
        (json.dumps(wrapped("")), 'its permissionDecision is ""'),
        (json.dumps(wrapped(["deny"])), 'its permissionDecision is ["deny"]'),
        ('{"decision": "Block"}', 'its decision is "Block"'),
        ('{"decision": {"behavior": "deny"}}', 'its decision is {"behavior": "deny"}'),
        ('{"continue": "false"}', 'its continue is "false"'),
        ('{"hookSpecificOutput": "deny"}', 'its hookSpecificOutput is "deny" and no object'),
        (BARE, 'permissionDecision ("deny") is not where a decision belongs'),
        (f'{{"a": [{BARE}]}}', 'permissionDecision ("deny") is not where'),
        ('{"hook_specific_output": {"permission_decision": "deny"}}', "permission_decision"),
        ('{"hookSpecificOutput": {"decision": "deny"}}', 'decision ("deny") is not where'),
        ('{"hookSpecificOutput": {"hookEventName": "Stop", "permissionDecision": "allow"}}',
            'its permissionDecision is for "Stop"'),
        (DENY[:60], "it begins with { but isn't JSON"),
        ("{all fine}", "it begins with { but isn't JSON"),
        (f"{{{DENY}", "it begins with { but isn't JSON"),
        ("{'decision': 'deny'}", "it begins with { but isn't JSON"),
        ('{"a":' * 40_000, "it begins with { but isn't JSON"),
        ("{" * OUTPUT_MAX, "it begins with { but isn't JSON"),
        ('{"Continue": false}', "Continue (false) is not where a decision belongs"),
        ('{"hookSpecificOutput": {"continue": false}}', "continue (false) is not where"),
        ('{"permission": "deny", "userMessage": "x"}', 'permission ("deny") is not where'),
        ('{"hookSpecificOutput": {"behavior": "deny"}}', 'behavior ("deny") is not where'),
        ('{"result": " Blocked"}', 'result (" Blocked") is not where'),
        (json.dumps({"statusCode": 200, "body": DENY}), "body ("),
        ("decision: block\nreason: x", "it has a decision in a text"),
        ("hookSpecificOutput:\n  permissionDecision: deny", "it has a decision in a text"),
        ("PERMISSION_DECISION=deny", "it has a decision in a text"),
        ("Result(decision='block')", "it has a decision in a text"),
        ('checking {"decision"=>"block"}', "it has a decision in a text"),
        ("map[decision:block reason:x]", "it has a decision in a text"),
        ("Array\n(\n    [decision] => block\n)", "it has a decision in a text"),
        ("<decision>block</decision>", "it has a decision in a text"),
        ("checking\ncontinue: false", "it has a decision in a text"),
        (f"checking…\n{DENY[:30]}", "it has a decision in a text that isn't JSON"),
        (f"[{DENY[:30]}", "it has a decision in a text that isn't JSON"),
        (f"checking…\n{DENY[:80]}", "it has a decision in a text that isn't JSON"),
        ("checking…\n{'permissionDecision': 'deny'}", "it has a decision in a text"),
        ("checking…\n{decision: 'deny'}", "it has a decision in a text"),
        (json.dumps(DENY), "it has a decision in a text"),
        ('a\n{"continue": false', "it has a decision in a text"),
        # A no without the form of a decision; Claude Code runs all of these.
        ('{"block": true}', "block (true) is not where a decision belongs"),
        ('{"deny": true}', "deny (true) is not where"),
        ('{"blocked": 1, "rules": 3}', "blocked (1) is not where"),
        ('{"isBlocked": "yes"}', 'isBlocked ("yes") is not where'),
        ('{"should_block": true}', "should_block (true) is not where"),
        ('{"allow": false}', "allow (false) is not where"),
        ('{"result": {"tool_allowed": "no"}}', 'tool_allowed ("no") is not where'),
        # As its own prompt hooks answer.
        ('{"ok": false, "reason": "x"}', "ok (false) is not where"),
        ('{"status": "rejected"}', 'status ("rejected") is not where'),
        ('{"action": "refuse"}', 'action ("refuse") is not where'),
        ('{"permissionDecisionReason": "x"}', "permissionDecisionReason ("),
        (json.dumps({"hookSpecificOutput": {"permissionDecisionReason": "x"}}),
            "its permissionDecisionReason comes without a permissionDecision"),
        ("deny", 'it says "deny" in a text that isn\'t JSON'),
        ("checking…\n  Denied.", 'it says "Denied."'),
        ('"deny"', "it says"),
        ('["deny"]', "it says"),
        ("BLOCKED: rm -rf", 'it says "BLOCKED: rm -rf"'),
        ("[BLOCKED] rm -rf", "it says"),
        ("❌ Blocked - it deletes", "it says"),
        ("BLOCKED it deletes", "it says"),
        ("blocked by policy", "it says"),
        ("Command blocked: it deletes", "it says"),
        ("Permission denied: it deletes", "it says"),
        ("**Not allowed** here", "it says"),
        ("Refusing to run it", "it says"),
        ("permission: deny", "it says"),
        ("verdict = reject", "it says"),
        ("permissionDecision deny", "it says"),
        (DENY + "x" * OUTPUT_MAX, "it is longer than 256 KiB and was cut"),
        ("x" * OUTPUT_MAX + DENY, "it is longer than 256 KiB and was cut"),
        ("{}" * 5000 + DENY, "it holds 5,000 JSON objects or more"),
    ],
    ids=lambda _: "",
)  # fmt: skip
def test_what_looks_like_a_decision_and_is_none_says_why(printed: str, why: str) -> None:
    assert why in said(printed).unclear


@pytest.mark.parametrize(
    "printed",
    [
        "",
        "all fine\n",
        "running 3 checks: decision table ok\n{1, 2} [3] {'a': 1}",
        "I will continue: false alarms are fine",
        # As public hooks print.
        "[WORKFLOW] Executing: git status",
        "✅ Command allowed: git status\nBlocked: 0, denied: none",
        "Blocklist loaded: 12 patterns\nBlocking rules checked, blocked nothing",
        "Blocked: none\nDenied: 0\nblock: false",
        "blocked commands are listed in rules.md",
        "Rejected candidates go last",
        '{"blocked": false, "missing": [], "denied": 0, "status": "ok"}',
        '{"allow": true, "block": null, "allowed": "yes", "safe": null}',
        '{"blocklist": ["rm"], "unblock": true, "allowlist": []}',
        "Decision log: 3 calls, none blocked. It made a decision.\nBlock size 4",
        '{"status": "ok", "permission": "allow", "rules": 3, "log": "{tool}"}',
        "x" * 1000,
    ],
)
def test_plain_text_is_no_decision_and_is_kept_for_the_person(printed: str) -> None:
    assert said(printed) == HookReply(text=printed.strip())


def test_an_answer_without_a_decision_decides_nothing() -> None:
    assert said('{"decision": null, "continue": true}') == HookReply()
    assert said('{"systemMessage": "hi"}') == HookReply(notice="hi")
    assert said('{"branch": "main"}').text == '{"branch": "main"}', "no answer, so it is shown"


def test_a_hook_that_prints_what_it_got_decides_nothing() -> None:
    given = {"tool_name": "x", "tool_input": {"decision": "deny", "continue": False}}
    assert said(json.dumps(given)) == HookReply(text=json.dumps(given))


def test_an_allow_counts_only_by_itself_as_a_call_may_have_put_it_there() -> None:
    assert said(ALLOW).verdict == "allow"
    found = said(f"checking: echo '{ALLOW}'")
    assert (found.verdict, found.unclear) == ("ask", "")
    assert "other text around its answer" in found.reason
    assert said(f'{{"systemMessage": "hi"}}\n{ALLOW}').verdict == "ask"


def test_the_input_that_it_wants_is_kept_as_it_is() -> None:
    printed = json.dumps(wrapped("allow", updatedInput={"command": "ls", "decision": "x"}))
    found = said(printed)
    assert (found.verdict, found.unclear) == ("allow", "")
    assert found.changed == {"command": "ls", "decision": "x"}
    assert said(json.dumps(wrapped("allow", updatedInput="ls"))).changed == {"updatedInput": "ls"}


@pytest.mark.parametrize("event", ["UserPromptSubmit", "SessionStart"])
@pytest.mark.parametrize(
    "printed",
    [
        f"A hook says no like this: {DENY}",
        f"# Hooks\n```json\n{DENY}\n```\n",
        f"{DENY[:30]}\n"[1:],
        'The API answers "decision": "block" there.',
        "decision: block\ncontinue: false",
        "BLOCKED: issue 12\ndeny",
        f"notes\n{DENY}\nmore notes",
        'last line\n{"branch": "main"}',
        "x" * OUTPUT_MAX,
    ],
    ids=lambda _: "",
)
def test_context_may_quote_decisions(printed: str, event: str) -> None:
    """Its documentation: what these hooks print is added to the context, unless it is JSON."""
    assert said(printed, event) == HookReply(text=printed[:OUTPUT_MAX].strip())


def test_an_answer_may_quote_decisions_in_its_texts() -> None:
    own = {"hookEventName": "UserPromptSubmit", "additionalContext": BARE}
    found = said(json.dumps({"hookSpecificOutput": own}), "UserPromptSubmit")
    assert (found.verdict, found.unclear, found.context) == ("", "", BARE)
    assert said('{"systemMessage": "denied", "reason": "[\\"decision\\":]"}').unclear == ""


@pytest.mark.parametrize(
    "printed",
    [
        '{"decision": "block", "reason": "no way"}',
        'banner of a shell\n{"decision": "block", "reason": "no way"}\n',
        'x\n{\n"decision": "block",\n"reason": "no way", "a":\n{\n}\n}',
    ],
)
def test_a_prompt_is_blocked_by_an_answer_at_the_beginning_or_the_end(printed: str) -> None:
    found = said(printed, "UserPromptSubmit")
    assert (found.verdict, found.reason) == ("deny", "no way")
    assert "isn't JSON" in said('{"decision": "blo', "UserPromptSubmit").unclear


def test_a_prompt_is_blocked_where_an_answer_may_have_been_cut() -> None:
    printed = "x" * OUTPUT_MAX + '\n{"decision": "block"}'
    assert "was cut" in said(printed, "UserPromptSubmit").unclear
