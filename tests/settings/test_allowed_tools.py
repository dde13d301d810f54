"""`allowed-tools` as public command files have it, in rules of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.settings.claude_hooks import rules as recorded_rules
from tui.core import front_matter
from tui.core.workspace import Workspace
from tui.permissions.policy import Policy, decide
from tui.permissions.types import Call
from tui.settings.allowed_tools import allowed_tools, for_all_editors, restricted_tools


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        (
            "Bash(git add:*), Bash(git commit:*)",
            ["run_command(git add *)", "run_command(git commit *)"],
        ),
        ("Bash(npm run test), Bash", ["run_command(npm run test)", "run_command"]),
        ("Bash(*)", ["run_command"]),
        ("[Read, Grep, Glob, LS]", ["read_file", "grep_search", "find_by_name", "list_dir"]),
        ("Edit, MultiEdit, Write(./docs/**)", ["edit_file", "apply_patch", "write_file(docs/**)"]),
        ("Edit(/src/*), Edit(//etc/x), Edit(~/y)", ["(src/*)", "(/etc/x)", "(~/y)"]),
        ("WebFetch(domain:docs.python.org)", ["web_fetch(https://docs.python.org/*)"]),
        ("mcp__github, mcp__time__now", ["mcp__github__*", "mcp__time__now"]),
        ("run_command(make *), read_file", ["run_command(make *)", "read_file"]),
        ("\n  - Read\n  - Bash(ls:*)", ["read_file", "run_command(ls *)"]),
    ],
)
def test_what_others_write(line: str, rules: list[str]) -> None:
    file = front_matter.parse(f"---\nallowed-tools: {line}\n---\n".encode())
    found = allowed_tools(file.names("allowed-tools") or ())
    expected = [
        whole
        for rule in rules
        for whole in ([f"edit_file{rule}", f"apply_patch{rule}"] if rule[0] == "(" else [rule])
    ]
    assert list(found.rules) == expected
    assert found.ignored == ()


@pytest.mark.parametrize(
    "name",
    ["WebSearch", "Other", "mcp__*", "WebFetch(x)", "WebFetch(domain:*)", "Bash(x) outside", "*"],
)
def test_what_grants_nothing_is_named(name: str) -> None:
    found = allowed_tools([name])
    assert found.rules == ()
    assert found.ignored == (name,)


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("WebSearch", ["web_search"]),
        ("WebSearch(anything)", ["web_search"]),
        ("mcp__x__*", ["mcp__x__*"]),
        ("mcp__x__get_*", ["mcp__x__get_*"]),
        ("mcp__*", ["mcp__*"]),
        ("mcp__x", ["mcp__x__*"]),
        ("*", ["*"]),
        ("Bash(curl:*)", ["run_command(curl *)"]),
        ("Read(./.env)", ["read_file(**/.env)", "read_file(**/.env/*)"]),
        ("Read(secrets/)", ["read_file(**/secrets/*)"]),
        ("Read(./a/b/**)", ["read_file(a/b/**)"]),
        ("Read(//etc/x)", ["read_file(/etc/x)", "read_file(/etc/x/*)"]),
        ("WebFetch(domain:a.org)", ["web_fetch(*://a.org)", "web_fetch(*://a.org:*)"]),
        ("WebFetch(domain:*.a.org)", ["web_fetch(*://*.a.org)", "web_fetch(*://*.a.org:*)"]),
        ("Task(Explore)", ["task(Explore)"]),
        ("Skill(deploy)", ["skill(deploy)"]),
        ("Skill(deploy:*)", ["skill(deploy)"]),
        ("run_command(rm *)", ["run_command(rm *)"]),
    ],
)
def test_what_forbids_is_read_generously(name: str, rules: list[str]) -> None:
    found = restricted_tools([name])
    assert (list(found.rules), found.ignored) == (rules, ())


@pytest.mark.parametrize(
    "name",
    ["Other", "Bash(x", "", "a b"],
)
def test_what_forbids_and_has_no_rule_is_named(name: str) -> None:
    assert restricted_tools([name]).ignored == (name,)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("mcp__x__y(z)", "mcp__x__y"),
        ("mcp__x(y)", "mcp__x__*"),
        ("WebFetch(x)", "web_fetch"),
        ("WebSearch(q)", "web_search"),
        ("TodoWrite(x)", "todo_write"),
        ("KillShell(1)", "command_status"),
    ],
)
def test_the_nearest_rule_that_says_more_stands_for_what_no_rule_says(name: str, rule: str) -> None:
    found = restricted_tools([name])
    assert (found.rules, found.ignored, found.wider) == ((rule,), (), (name,))


@pytest.mark.parametrize(
    ("name", "tool", "subject"),
    [
        # What Claude Code 2.1.332 refuses, tried with its Read.
        ("Read(.env)", "read_file", ".env"),
        ("Read(.env)", "read_file", "sub/.env"),
        ("Read(./.env)", "read_file", "sub/.env"),
        ("Read(secrets)", "read_file", "secrets/k"),
        ("Read(secrets/)", "read_file", "sub/secrets/k"),
        ("Read(./secrets)", "read_file", "sub/secrets/k"),
        ("WebFetch(domain:a.org)", "web_fetch", "http://a.org/x"),
        ("WebFetch(domain:a.org)", "web_fetch", "https://a.org:8443/x"),
        ("WebFetch(domain:*.a.org)", "web_fetch", "https://b.a.org/x"),
        ("mcp__x__*", "mcp__x__y", "{}"),
    ],
)
def test_what_forbids_there_forbids_here(
    tmp_path: Path, name: str, tool: str, subject: str
) -> None:
    policy = Policy.of(deny=restricted_tools([name]).rules)
    effect = "fetch" if tool == "web_fetch" else "read"
    paths = (subject,) if tool == "read_file" else ()
    call = Call("c", tool, effect, subject, paths=paths)
    decision = decide(
        call, policy, mode="ask", elevated=True, grants=(), workspace=Workspace.at(tmp_path)
    )
    assert decision.answer == "deny"


SUBJECTS: dict[str, tuple[str, str, str]] = {
    "git status": ("run_command", "run", "git status"),
    "git": ("run_command", "run", "git"),
    "gitk": ("run_command", "run", "gitk --version"),
    "WebFetch": ("web_fetch", "fetch", "http://127.0.0.1:9/x"),
    "WebSearch": ("web_search", "read", "q q"),
    "Agent Explore": ("task", "none", "Explore"),
    "Skill tidy": ("skill", "none", "tidy"),
}
"""The calls as ours: tool, effect and what rules match. Others follow from their names."""


def as_ours(name: str) -> tuple[str, str, str]:
    tool, _, subject = name.partition(" ")
    if name in SUBJECTS:
        return SUBJECTS[name]
    if name.startswith("mcp__"):
        return name, "run", "{}"
    if tool in {"Read", "Write"} and subject:
        path = str(Path(subject).expanduser())
        return ("read_file", "read", path) if tool == "Read" else ("write_file", "write", path)
    return "run_command", "run", name


@pytest.mark.parametrize("row", recorded_rules(), ids=lambda row: ",".join(row["deny"]))
def test_each_call_that_claude_code_forbids_is_forbidden(
    tmp_path: Path, row: dict[str, list[str]]
) -> None:
    (tmp_path / "src").mkdir()
    own = tuple(for_all_editors(restricted_tools(row["deny"]).rules, "deny"))
    workspace = Workspace.at(tmp_path, ceiling="/")
    for name in row["refused"]:
        if name.startswith("cd src") and row["deny"][0].startswith("Read"):
            continue  # it reads nothing in there; what is in there, walls hide from it
        tool, effect, subject = as_ours(name)
        paths = (subject,) if tool in {"read_file", "write_file"} else ()
        command = subject if tool == "run_command" else None
        given: Any = effect
        call = Call("c", tool, given, subject, command=command, paths=paths)
        decision = decide(
            call,
            Policy.of(deny=own),
            mode="ask",
            elevated=True,
            grants=(),
            workspace=workspace.widen(True),
        )
        assert decision.answer == "deny", (row["deny"], name)
