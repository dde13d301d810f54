"""`allowed-tools` as public command files have it, in rules of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.core import front_matter
from tui.core.workspace import Workspace
from tui.permissions.policy import Policy, decide
from tui.permissions.types import Call
from tui.settings.allowed_tools import allowed_tools, restricted_tools


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
        ("run_command(rm *)", ["run_command(rm *)"]),
    ],
)
def test_what_forbids_is_read_generously(name: str, rules: list[str]) -> None:
    found = restricted_tools([name])
    assert (list(found.rules), found.ignored) == (rules, ())


@pytest.mark.parametrize(
    "name",
    ["Other", "mcp__x__y(z)", "WebFetch(x)", "TodoWrite(x)", "KillShell(1)", "Bash(x", "", "a b"],
)
def test_what_forbids_and_has_no_rule_is_named(name: str) -> None:
    assert restricted_tools([name]).ignored == (name,)


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
