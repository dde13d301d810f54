"""The gate: what an answer covers afterwards, and what is remembered for good."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Literal

import pytest

from tests.permissions.test_policy import command, patch, read, web, write
from tui.core.errors import StorageError
from tui.core.workspace import Workspace
from tui.permissions.gate import Gate, RulesOnly, prefix_of
from tui.permissions.plain_command import parse
from tui.permissions.policy import Policy
from tui.permissions.rules import Rule
from tui.permissions.sandbox.walls import Level
from tui.permissions.types import Answer, Call, Decision, TypedInput


class Person:
    """A gate, and a person who answers it."""

    def __init__(self, root: Path, policy: Policy | None = None) -> None:
        self.root = root
        self.remembered: list[str] = []
        self.gate = Gate(policy or Policy(), remember_always=self._remember)

    def _remember(self, rule: Rule) -> None:
        self.remembered.append(str(rule))

    def decision(self, call: Call, holds: Collection[Level] = ()) -> Decision:
        workspace = Workspace.at(self.root, ceiling=self.root.parent)
        return self.gate.decide(call, mode="ask", elevated=False, workspace=workspace, holds=holds)

    def answers(self, call: Call, answer: Literal["once", "session", "always", "no"]) -> None:
        assert self.decision(call).answer == "ask"
        self.gate.record(call, Answer(answer))

    def is_asked(self, call: Call) -> bool:
        return self.decision(call).answer == "ask"


@pytest.fixture
def person(tmp_path: Path) -> Person:
    (tmp_path / "project").mkdir()
    return Person(tmp_path / "project")


def test_once_and_no_grant_nothing(person: Person) -> None:
    person.answers(command("make test"), "once")
    person.answers(command("make test"), "no")
    assert person.is_asked(command("make test"))
    assert person.remembered == []


def test_a_session_yes_covers_program_and_subcommand(person: Person) -> None:
    person.answers(command("git commit -m x"), "session")
    assert not person.is_asked(command("git commit -m y"))
    assert not person.is_asked(command("cd src && git commit"))
    assert person.is_asked(command("git add ."))
    assert person.is_asked(command("git commit && make x"))
    assert person.is_asked(command("git commit > /tmp/x"))
    assert person.remembered == []


def test_a_yes_to_several_commands_covers_each(person: Person) -> None:
    call = command("ruff check && pytest -q")
    assert person.gate.scope_of(call) == "this call"
    person.answers(call, "session")
    assert person.gate.scope_of(call) == "ruff … and pytest …"
    assert not person.is_asked(command("pytest tests"))


@pytest.mark.parametrize(
    "text",
    [
        "rm -r build",
        "git push",
        "python -c 'x'",
        "rm a.txt",
        "echo x > out.txt",
        "echo 'oops",
        "make test > out.txt",
        "a=*; make $a",
        "env A=1 make",
        "export A=1",
        "cd src; make",
        "make $X",
    ],
)
def test_what_may_do_harm_is_granted_to_the_letter(person: Person, text: str) -> None:
    person.answers(command(text), "session")
    assert person.gate.scope_of(command(text)) == "this command"
    assert not person.is_asked(command(text))
    assert person.is_asked(command(text + " x"))
    assert person.is_asked(command(text, cwd="."))


def test_always_remembers_the_rule_that_the_session_got(person: Person) -> None:
    person.answers(command("npm run build"), "always")
    assert person.remembered == ["run_command(npm run *)"]
    again = Person(person.root, Policy.of(allow=person.remembered))
    assert not again.is_asked(command("npm run build"))
    assert not again.is_asked(command("npm run"))
    assert again.is_asked(command("npm test"))


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("jq . a.json", ["jq *"]),
        ("pytest 2>&1 | jq . | tail -5", ["pytest *", "jq *"]),
        ("cd src && pytest -q && git status", ["pytest *"]),
    ],
)
def test_a_rule_is_offered_where_it_covers_what_was_asked(
    person: Person, text: str, rules: list[str]
) -> None:
    (person.root / "src").mkdir()
    person.answers(command(text), "always")
    assert person.remembered == [f"run_command({rule})" for rule in rules]
    assert not Person(person.root, Policy.of(allow=person.remembered)).is_asked(command(text))


@pytest.mark.parametrize("text", ["rm -r build", "rm -r *.tmp", "curl x | sh", "echo 'oops", "[ a"])
def test_always_to_the_letter_holds_in_the_next_session(person: Person, text: str) -> None:
    if not person.is_asked(command(text)):
        pytest.skip("needs no yes")
    person.answers(command(text), "always")
    again = Person(person.root, Policy.of(allow=person.remembered))
    assert not again.is_asked(command(text))
    assert again.is_asked(command(text + "x"))


def test_a_yes_to_an_edit_covers_the_files_of_the_workspace(person: Person) -> None:
    call = write("src/a.py", "edit_file")
    person.answers(call, "always")
    assert person.gate.scope_of(call) == "edits here"
    for tool in ("edit_file", "write_file"):
        assert not person.is_asked(write("b.txt", tool))
        assert f"{tool}({person.root}/*)" in person.remembered
    assert person.is_asked(write(".git/config"))
    assert person.is_asked(command("make x"))
    assert person.decision(write("../x")).answer == "deny"
    again = Person(person.root, Policy.of(allow=person.remembered))
    assert not again.is_asked(write("b.txt"))
    elsewhere = person.root.parent / "other"
    elsewhere.mkdir()
    assert Person(elsewhere, Policy.of(allow=person.remembered)).is_asked(write("b.txt"))


def test_a_yes_to_a_guarded_file_covers_only_that(person: Person) -> None:
    call = write(".git/config")
    person.answers(call, "always")
    assert person.gate.scope_of(call) == "this file"
    assert not person.is_asked(write(".git/config"))
    assert person.is_asked(write(".git/hooks/x"))
    again = Person(person.root, Policy.of(allow=person.remembered))
    assert not again.is_asked(write(".git/config"))


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("https://docs.python.org/3/", "docs.python.org"),
        ("http://localhost:3000/a?b", "localhost:3000"),
        ("http://[::1]:3000/", "[::1]:3000"),
    ],
)
def test_a_yes_to_a_web_address_covers_its_host(person: Person, url: str, site: str) -> None:
    person.answers(web(url), "always")
    assert person.gate.scope_of(web(url)) == site
    again = Person(person.root, Policy.of(allow=person.remembered))
    for one in (person, again):
        assert not one.is_asked(web(f"{url.partition(site)[0]}{site}/other"))
        assert one.is_asked(web("https://docs.python.org.evil.com/"))
        assert one.is_asked(web("http://localhost:3001/"))


def test_where_a_rule_asks_a_yes_covers_this_call_in_this_session(person: Person) -> None:
    strict = Person(person.root, Policy.of(ask=["run_command(make*)", "write_file(a*)"]))
    strict.answers(command("make x"), "always")
    assert strict.gate.scope_of(command("make x")) == "this call"
    assert strict.gate.always(command("make x")) == ()
    assert not strict.is_asked(command("make x"))
    assert strict.is_asked(command("make y"))
    strict.answers(write("b"), "session")
    assert strict.is_asked(write("a"))
    assert strict.remembered == []


def test_a_yes_to_another_tool_covers_the_tool(person: Person) -> None:
    call = Call("1", "mcp__x__y", "run", "")
    person.answers(call, "always")
    assert person.gate.scope_of(call) == "this tool"
    assert not person.is_asked(Call("2", "mcp__x__y", "run", "other"))
    assert person.is_asked(Call("3", "mcp__x__z", "run", ""))
    assert person.remembered == ["mcp__x__y"]


def test_a_configuration_that_cannot_be_written_costs_only_the_always(
    person: Person, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_rule: Rule) -> None:
        raise StorageError("Can't write config.toml: the disk is full.")

    person.gate = Gate(Policy(), remember_always=fail)
    person.answers(command("make test"), "always")
    assert not person.is_asked(command("make test"))
    assert "the disk is full" in caplog.text


async def test_where_nobody_can_be_asked_the_answer_names_the_rule() -> None:
    call, decision = command("git commit -m 'a *'"), Decision("ask", "It may.", "default")
    answer = await RulesOnly().ask(call, decision)
    assert (answer.answer, answer.by) == ("no", "default")
    assert "It may." in answer.reason
    assert "--allow 'run_command(git commit -m " in answer.reason
    assert "--yolo" in answer.reason


async def test_no_rule_is_named_for_a_command_that_none_covers(tmp_path: Path) -> None:
    call = command("ls # x \\\ntouch y")
    answer = await RulesOnly().ask(call, Decision("ask", "", "default"))
    assert "--allow" not in answer.reason
    assert "--yolo" in answer.reason
    assert Person(tmp_path, Policy.of(allow=["run_command"])).is_asked(call)


async def test_the_rule_that_is_named_works(tmp_path: Path) -> None:
    page = web("http://localhost:8000/a*b?c=[1]")
    for call in (command("make all"), command("rm -r a*"), write("a.txt"), page):
        answer = await RulesOnly().ask(call, Decision("ask", "", "default"))
        rule = answer.reason.split("--allow ")[1].split(", or with")[0].strip("'")
        assert not Person(tmp_path, Policy.of(allow=[rule])).is_asked(call)


@pytest.mark.parametrize("level", [Level.NETWORK, Level.OUTSIDE])
async def test_the_rule_that_is_named_for_a_terminals_input_is_one_on_its_start(
    tmp_path: Path, level: Level
) -> None:
    began = Call("c", "terminal", "run", "gdb a", command="gdb a", background=True)
    call = Call("c", "terminal", "run", "job-1 ← n⏎", types=TypedInput("job-1", level, began=began))
    answer = await RulesOnly().ask(call, Person(tmp_path).decision(call))
    if level is Level.OUTSIDE:  # each input asks, whatever rules there are
        assert answer.reason.endswith("There is no one to ask. Allow with --yolo.")
        return
    rule = answer.reason.split("--allow ")[1].split(", or with")[0].strip("'")
    assert rule == "terminal(gdb a) network"
    assert not Person(tmp_path, Policy.of(allow=[rule])).is_asked(call)


def test_reading_needs_no_yes(person: Person) -> None:
    assert not person.is_asked(read("a"))


@pytest.mark.parametrize(
    ("command", "prefix"),
    [
        ("pytest -q", "pytest"),
        ("git commit -m x", "git commit"),
        ("npm run build", "npm run"),
        ("python -m pytest -q", "python -m pytest"),
        ("./run.sh a", "./run.sh"),
        ("make test", "make test"),
        ("make", None),
        ("git -C x commit", None),
        ("python script.py", None),
        ("python -c 'x'", None),
        ("bash script.sh", None),
        ("rm a", None),
        ("curl https://x", None),
        ("X=1 make test", None),
        ("xargs pytest", None),
        ("$X y", None),
        ('"git" commit', None),
    ],
)
def test_a_yes_stands_for_program_and_subcommand_at_most(command: str, prefix: str | None) -> None:
    line = parse(command)
    assert (prefix_of(line[0]) if line else None) == prefix


def test_the_rules_that_always_writes_are_known_before(person: Person) -> None:
    for call in (command("pytest -q && ruff check"), write("a.py"), command("rm -r build")):
        assert person.is_asked(call)
        before = person.gate.always(call)
        person.remembered.clear()
        person.answers(call, "always")
        assert list(before) == person.remembered != []
        assert {str(rule) for rule in person.gate.policy.allow} >= set(before)


def test_where_nothing_is_written_nothing_is_announced(tmp_path: Path) -> None:
    gate = Gate(Policy())
    call = command("pytest")
    gate.decide(call, mode="ask", elevated=False, workspace=Workspace.at(tmp_path, ceiling="/"))
    assert gate.always(call) == ()


def test_what_was_granted_can_be_revoked(person: Person) -> None:
    for text, rule in (("pytest -q", "run_command(pytest *)"), ("rm -r x", "run_command(rm -r x)")):
        person.answers(command(text), "always")
        assert not person.is_asked(command(text))
        assert person.gate.revoke(Rule.parse(rule))
        assert person.is_asked(command(text))
        assert not person.gate.revoke(Rule.parse(rule))


@pytest.mark.parametrize(
    ("text", "outside"),
    [
        ("docker ps", True),
        ("docker ps && make", False),
        ("make", False),
        ("docker ps && docker images", True),
        ("docker ps $X", None),
    ],
)
def test_a_rule_gives_outside_only_where_it_says_so(
    tmp_path: Path, text: str, outside: bool | None
) -> None:
    policy = Policy.of(allow=["run_command(docker*) outside", "run_command(make*)"])
    decision = Person(tmp_path, policy).decision(command(text), tuple(Level))
    if outside is not None:
        assert decision.answer == "allow"
    assert (decision.level is Level.OUTSIDE) is (outside is not False)


def test_a_yes_of_this_session_never_gives_outside(person: Person) -> None:
    person.answers(command("make"), "session")
    decision = person.decision(command("make"), tuple(Level))
    assert (decision.answer, decision.level) == ("allow", Level.WORKSPACE)


def test_a_yes_to_edits_covers_patches_and_the_reverse(person: Person) -> None:
    folder = person.root
    person.answers(patch("a.py", "src/b.py"), "always")
    assert person.remembered == [
        f"{tool}({folder}/*)" for tool in ("edit_file", "write_file", "apply_patch")
    ]
    assert not person.is_asked(write("other.txt"))
    assert not person.is_asked(patch("x", "y", "z"))
    assert person.is_asked(patch("x", ".git/config"))


def test_a_yes_to_a_patch_of_guarded_files_covers_those_alone(person: Person) -> None:
    call = patch("a.py", ".git/hooks/x")
    person.answers(call, "session")
    assert person.gate.scope_of(call) == "these files"
    assert not person.is_asked(call)
    assert person.is_asked(patch("b.py", ".git/hooks/x"))


async def test_what_would_allow_a_patch_is_named_by_file(person: Person) -> None:
    call = patch("a.py", "b.py")
    answer = await RulesOnly().ask(call, person.decision(call))
    assert "--allow 'apply_patch(a.py)' --allow 'apply_patch(b.py)'" in answer.reason
