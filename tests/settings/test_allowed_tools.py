"""`allowed-tools` as public command files have it, in rules of ours."""

from __future__ import annotations

import pytest

from tui.core import front_matter
from tui.settings.allowed_tools import allowed_tools


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
