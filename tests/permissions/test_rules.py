"""The syntax of permission rules, and what a glob matches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.core.errors import UsageError
from tui.permissions.policy import Policy
from tui.permissions.rules import Rule, require_tools, without_tool
from tui.permissions.sandbox.walls import Level


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("read_file", Rule("read_file")),
        ("run_command(git status*)", Rule("run_command", "git status*")),
        ("  write_file( src/* ) ", Rule("write_file", " src/* ")),
        ("run_command(echo (a))", Rule("run_command", "echo (a)")),
        ("run_command(a\nb)", Rule("run_command", "a\nb")),
        ("mcp__server__*", Rule("mcp__server__*")),
        ("*", Rule("*")),
    ],
)
def test_parse(text: str, rule: Rule) -> None:
    assert Rule.parse(text) == rule


@pytest.mark.parametrize(
    "text", ["", " ", "run_command(", "run_command()", "(git)", "run command", "a)b", "a(b)c", "é!"]
)
def test_a_bad_rule_is_a_usage_error_that_names_it(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        Rule.parse(text)
    assert repr(text) in caught.value.message
    assert "run_command(git status*)" in caught.value.hint


@pytest.mark.parametrize(
    ("glob", "subject", "matches"),
    [
        ("git status*", "git status", True),
        ("git status*", "git status --short", True),
        ("git status*", "git stat", False),
        ("git status *", "git status", True),
        ("git status *", "git status -s", True),
        ("git status *", "git statusx", False),
        ("src/*", "src/a/b.py", True),
        ("src/*", "tests/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/a/b.py", True),
        ("*.py", "a/b.py", True),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("rm [*].log", "rm *.log", True),
        ("rm [*].log", "rm a.log", False),
        ("echo *", "echo a\nb", True),
        ("Git*", "git x", False),
        (None, "anything", True),
    ],
)
def test_matches(glob: str | None, subject: str, matches: bool) -> None:
    assert Rule("t", glob).matches(subject) is matches


@given(st.text(min_size=1), st.text())
def test_a_rule_for_exactly_one_subject_survives_its_text(subject: str, other: str) -> None:
    rule = Rule.exactly("run_command", subject)
    assert Rule.parse(str(rule)) == rule
    assert rule.literal == subject
    assert rule.matches(subject)
    assert rule.start == subject
    if not subject.endswith(" *"):
        assert rule.matches(other) == (other == subject)


def test_what_a_rule_says_by_name() -> None:
    assert Rule.parse("run_command(git push*)").start == "git push"
    assert Rule.parse("run_command(*push)").start == ""
    assert Rule.parse("run_command").start == ""
    assert Rule.parse("run_command(git *)").literal is None
    assert Rule.parse("run_command(make)").literal == "make"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("run_command(docker *) outside", Rule("run_command", "docker *", Level.OUTSIDE)),
        ("run_command outside", Rule("run_command", None, Level.OUTSIDE)),
        ("run_command(ls outside)", Rule("run_command", "ls outside")),
        ("run_commandoutside", Rule("run_commandoutside")),
        ("outside", Rule("outside")),
    ],
)
def test_a_rule_may_say_outside(text: str, rule: Rule) -> None:
    assert Rule.parse(text) == rule
    assert str(rule) == text


def test_only_a_rule_that_allows_may_say_outside() -> None:
    with pytest.raises(UsageError, match="outside"):
        Policy.of(deny=["run_command(docker *) outside"])
    with pytest.raises(UsageError, match="outside"):
        Policy.of(ask=["run_command(docker *) outside"])


TOOLS = ("run_command", "read_file", "web_search")


@pytest.mark.parametrize("rule", ["Bash(rm *)", "run_comand", "x*", "WebSearch"])
def test_a_rule_that_forbids_and_is_about_no_tool_is_an_error(rule: str) -> None:
    with pytest.raises(UsageError) as caught:
        require_tools(Policy.of(deny=[rule]).deny, TOOLS)
    assert repr(rule) in caught.value.message


def test_the_error_says_the_name_that_is_meant() -> None:
    with pytest.raises(UsageError) as caught:
        require_tools(Policy.of(ask=["Bash(rm *)"]).ask, TOOLS)
    assert caught.value.hint == "It is called run_command here."


def test_rules_for_tools_and_servers_are_known() -> None:
    rules = Policy.of(deny=["run_command(x)", "*", "*_file", "mcp__x__y", "mcp__*", "m*"]).deny
    require_tools(rules, TOOLS)
    assert list(without_tool(rules, ())) == [rules[0], rules[2]]
