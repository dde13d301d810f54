"""The command line: every flag of the interface, and what is wrong said plainly."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.app.options.arguments import Options
from tui.app.options.flags import COMMANDS, FAULTS, MAIN, first_words
from tui.app.options.parser import parse
from tui.core.errors import UsageError


def given_by(line: str) -> dict[str, Any]:
    """The options that differ from the defaults."""
    options, default = parse(shlex.split(line)).by_name(), Options().by_name()
    return {name: value for name, value in options.items() if value != default[name]}


def refused(line: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        parse(shlex.split(line))
    return caught.value


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", {}),
        ("'fix it'", {"prompt": "fix it"}),
        ("-c", {"newest": True}),
        ("--continue 'go on'", {"newest": True, "prompt": "go on"}),
        ("-r", {"resume": ""}),
        ("--resume", {"resume": ""}),
        ("-r -c", None),
        ("-r 01abc 'go on'", {"resume": "01abc", "prompt": "go on"}),
        ("-r --verbose", {"resume": "", "verbose": True}),
        ("--resume=f.jsonl", {"resume": "f.jsonl"}),
        ("-m a --fallback-model b", {"model": "a", "fallback_models": ("b",)}),
        ("--fallback-model b --fallback-model c", {"fallback_models": ("b", "c")}),
        ("-C /x", {"cwd": Path("/x")}),
        ("--add-dir a --add-dir b", {"add_dirs": (Path("a"), Path("b"))}),
        ("--practice", {"practice": True}),
        ("--practice-script s.toml", {"practice": True, "practice_script": Path("s.toml")}),
        ("--verbose --theme day", {"verbose": True, "theme": "day"}),
        ("-y", {"yolo": True}),
        ("--yolo --trust", {"yolo": True, "trust": True}),
        ("-p", {"headless": True}),
        ("-p hi", {"headless": True, "prompt": "hi"}),
        ("hi -p", {"headless": True, "prompt": "hi"}),
        ("--print=hi", {"headless": True, "prompt": "hi"}),
        ("-p -m x hi", {"headless": True, "model": "x", "prompt": "hi"}),
        ("-p --output-format json", {"headless": True, "output_format": "json"}),
        ("-p --output-format stream-json", {"headless": True, "output_format": "stream-json"}),
        ("--max-turns 3 --max-tokens 900", {"max_turns": 3, "max_tokens": 900}),
        ("--max-cost 0.5 --max-wait 0", {"max_cost": 0.5, "max_wait": 0.0}),
        (
            "--allow read_file --allow 'run_command(git *)' --deny x",
            {"allow": ("read_file", "run_command(git *)"), "deny": ("x",)},
        ),
        ("--no-session", {"no_session": True}),
        ("-r abc --at 12", {"resume": "abc", "at": "12"}),
        ("-r abc --at 12 --fork", {"resume": "abc", "at": "12", "fork": True}),
        ("-c --fork", {"newest": True, "fork": True}),
        (
            "-p x -r abc --at 12 --fork",
            {
                "headless": True,
                "prompt": "x",
                "resume": "abc",
                "at": "12",
                "fork": True,
            },
        ),
        ("--at 12", None),
        ("--fork", None),
        ("-r --fork", None),
        ("-p x -r abc --at 12", None),
        ("--bg x -r abc --at 12", None),
        ("-ym x hi", {"yolo": True, "model": "x", "prompt": "hi"}),
        ("''", {}),
    ],
)
def test_plain_holdfast(line: str, expected: dict[str, Any] | None) -> None:
    if expected is None:
        refused(line)
    else:
        assert given_by(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("run T.md", {"command": "run", "tasks": Path("T.md")}),
        (
            "run T.md --model a --fallback-model b --dir d --headless --json --yolo --trust",
            {
                "command": "run",
                "tasks": Path("T.md"),
                "model": "a",
                "fallback_models": ("b",),
                "cwd": Path("d"),
                "headless": True,
                "json": True,
                "yolo": True,
                "trust": True,
            },
        ),
        ("run --dry-run T.md", {"command": "run", "tasks": Path("T.md"), "dry_run": True}),
        ("run --status --json", {"command": "run", "status": True, "json": True}),
        ("run --reset", {"command": "run", "reset": True}),
        ("run -- -t.md", {"command": "run", "tasks": Path("-t.md")}),
        ("desk", {"command": "desk"}),
        (
            "desk --host a --host me@b --json",
            {"command": "desk", "hosts": ("a", "me@b"), "json": True},
        ),
        ("attach ssh://box/3f2a", {"command": "attach", "target": "ssh://box/3f2a"}),
        ("serve --stdio", {"command": "serve", "stdio": True}),
        ("sessions list", {"command": "sessions", "action": "list"}),
        (
            "sessions list --all --json",
            {"command": "sessions", "action": "list", "all": True, "json": True},
        ),
        (
            "sessions -C d list --json",
            {"command": "sessions", "action": "list", "cwd": Path("d"), "json": True},
        ),
        ("sessions search x", {"command": "sessions", "action": "search", "target": "x"}),
        (
            "sessions repair a.jsonl --dry-run --out b",
            {
                "command": "sessions",
                "action": "repair",
                "target": "a.jsonl",
                "dry_run": True,
                "out": Path("b"),
            },
        ),
        (
            "sessions export 01 --format html",
            {"command": "sessions", "action": "export", "target": "01", "format": "html"},
        ),
        (
            "sessions fork 01 --at m3",
            {"command": "sessions", "action": "fork", "target": "01", "at": "m3"},
        ),
        ("doctor --json", {"command": "doctor", "json": True}),
        ("tour", {"command": "tour"}),
        ("tour --theme daylight", {"command": "tour", "theme": "daylight"}),
        ("drill", {"command": "drill"}),
        ("drill 429,cut", {"command": "drill", "faults": ("429", "cut")}),
        ("completion zsh", {"command": "completion", "shell": "zsh"}),
    ],
)
def test_subcommands(line: str, expected: dict[str, Any]) -> None:
    assert given_by(line) == expected


@pytest.mark.parametrize("action", ["show", "check", "view", "import", "delete"])
def test_every_action_on_a_session(action: str) -> None:
    assert given_by(f"sessions {action} 01 --json") == {
        "command": "sessions",
        "action": action,
        "target": "01",
        "json": True,
    }
    refused(f"sessions {action}")


def test_a_first_word_that_is_a_subcommands_name_is_that_subcommand() -> None:
    assert parse(["doctor"]).command == "doctor"
    assert parse(["doctor the tests"]).prompt == "doctor the tests"
    assert parse(["-p", "doctor"]).prompt == "doctor"
    assert parse(["--", "doctor"]).prompt == "doctor"
    assert parse(["-r", "doctor"]).opening.resume == "doctor"
    assert parse(["-m", "doctor", "hi"]).prompt == "hi"


@pytest.mark.parametrize("line", ["docter", "docter --json", "--practice docter", "runn T.md"])
def test_a_slip_in_a_commands_name_sends_no_prompt(line: str) -> None:
    word, meant = ("runn", "run") if "runn" in line else ("docter", "doctor")
    error = refused(line)
    assert error.message == f"There is no command {word!r}."
    assert error.hint == f"Did you mean {meant}? To send it as a prompt: holdfast -- {word}"


@pytest.mark.parametrize(
    ("line", "use"),
    [
        ("resume", "holdfast -r"),
        ("resume 01", "holdfast -r"),
        ("login", "/login in a session"),
        ("exec fix", "holdfast -p"),
    ],
)
def test_a_command_of_another_agent_sends_no_prompt(line: str, use: str) -> None:
    word = line.split(maxsplit=1)[0]
    error = refused(line)
    assert error.message == f"There is no command {word!r}."
    assert error.hint == f"Use {use}. To send it as a prompt: holdfast -- {word}"


@pytest.mark.parametrize(
    "line", ["-- docter", "-p docter", "-- login", "hello", "fix", "test", "continue"]
)
def test_a_prompt_of_one_word_is_sent(line: str) -> None:
    assert parse(line.split()).prompt == line.rsplit(maxsplit=1)[-1]


def test_flags_may_stand_before_the_subcommand() -> None:
    assert given_by("-m run run run.md") == {
        "command": "run",
        "model": "run",
        "tasks": Path("run.md"),
    }
    assert given_by("--json -C d sessions list")["json"] is True
    assert "unknown option --theme" in refused("--theme x doctor").message


def test_resume_does_not_take_a_word_that_starts_with_a_dash() -> None:
    assert "-1" in refused("-r -1").message
    options = parse(["-r", "-m", "x"])
    assert (options.opening.resume, options.models.model) == ("", "x")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("fix it", "More than one prompt"),
        ("runn T.md", "There is no command 'runn'. Did you mean run?"),
        ("-p a b", "Two prompts"),
        ("--modle x", "--model"),
        ("--mod x", "unknown option --mod"),
        ("doctor --jsno", "--json"),
        ("-m", "--model"),
        ("-m ''", "can't be empty"),
        ("--max-turns 0", "--max-turns"),
        ("--max-turns 1.5", "whole number above 0"),
        ("--max-tokens -4", "whole number above 0"),
        ("--max-cost 0", "above 0"),
        ("--max-cost nan", "above 0"),
        ("--max-cost inf", "above 0"),
        ("--max-wait -1", "0 or more"),
        ("--max-wait soon", "number of seconds"),
        ("-p --output-format xml", "stream-json"),
        ("--output-format json", "-p"),
        ("-c -r 01", "combined"),
        ("-p -r", "session browser"),
        ("--no-session -c", "--no-session"),
        ("run", "task file"),
        ("run T.md --status --reset", "only one"),
        ("run A.md B.md", "unexpected argument"),
        ("run T.md --theme x", "run: unknown option --theme"),
        ("run T.md --on slurm --batch-api", "can't be combined with --batch-api"),
        ("run T.md --store /x", "--store needs --on, or --parallel"),
        ("run T.md --remote x", "--remote needs --on, or --parallel"),
        ("sessions", "list, search"),
        ("sessions lst", "Did you mean list?"),
        ("sessions export 01 --format pdf", "html"),
        ("sessions list 01", "unexpected argument"),
        ("drill 429,boom", "boom"),
        ("drill ,", "FAULTS"),
        ("completion", "SHELL"),
        ("completion tcsh", "tcsh"),
    ],
)
def test_what_is_wrong_is_said_with_a_way_out(line: str, says: str) -> None:
    error = refused(line)
    assert says in str(error)
    assert error.hint, "every usage error says what to do"
    assert not error.message.startswith("holdfast")


def test_what_belongs_to_the_configuration_has_the_shape_of_the_file() -> None:
    line = "-m a --fallback-model b --theme t --allow x --deny y --deny z"
    assert parse(line.split()).overrides == {
        "model": "a",
        "fallback_models": ["b"],
        "theme": "t",
        "permissions": {"allow": ["x"], "deny": ["y", "z"]},
    }
    assert parse([]).overrides == {}


@pytest.mark.parametrize("words", [(), *(command.words for command in COMMANDS), ("sessions",)])
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_of_every_command_goes_to_stdout(
    words: tuple[str, ...], flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        parse([*words, flag])
    assert left.value.code == 0
    out = capsys.readouterr()
    assert out.err == ""
    assert out.out.startswith(" ".join(("usage: holdfast", *words)))
    command = next((c for c in (MAIN, *COMMANDS) if c.words == words), None)
    for name in (name for flag in (command.flags if command else ()) for name in flag.names):
        assert name in out.out


def test_the_main_help_names_commands_examples_and_exit_codes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"])
    text = capsys.readouterr().out
    for word in (*first_words(), "Examples:", "Exit codes:", "130"):
        assert word in text


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        parse(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out.split()[0] == "holdfast"


def test_a_flag_means_the_same_wherever_it_stands() -> None:
    """Else a line could not be read before its command is known."""
    takes: dict[str, tuple[bool, bool]] = {}
    for command in (MAIN, *COMMANDS):
        for flag in command.flags:
            assert flag.field in Options().by_name() or flag.field == "text"
            for name in flag.names:
                kind = (flag.takes_value, flag.optional)
                assert takes.setdefault(name, kind) == kind


_WORDS = st.sampled_from(
    [
        *(name for c in (MAIN, *COMMANDS) for flag in c.flags for name in flag.names),
        *(word for c in COMMANDS for word in c.words),
        *FAULTS,
        "--",
        "-",
        "",
        "hi",
        "T.md",
        "3",
        "-1",
        "--x=y",
        "-pq",
        "--allow=a(b)",
    ]
)


@given(st.lists(_WORDS | st.text("-=a1 \0\n~é", max_size=5), max_size=6))
def test_any_line_gives_options_or_a_usage_error(argv: list[str]) -> None:
    if {"-h", "--help", "--version"} & set(argv):
        return
    try:
        options = parse(argv)
    except UsageError as error:
        assert error.message  # noqa: PT017 - else it is parsed
    except SystemExit:
        assert any(part.startswith("-") and "h" in part for part in argv)
    else:
        assert options.command in {"chat", *first_words()}


def test_parsing_loads_nothing_heavy() -> None:
    code = (
        "import sys; from tui.app.options.parser import parse;"
        "parse(['-p', 'x', '--allow', 'a']);"
        "print(sorted({'textual', 'anthropic', 'msgspec', 'tomlkit', 'keyring', 'asyncio',"
        " 'tempfile', 'json'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("line", ["--bogus", "--x", "--zzzzzz"])
def test_an_option_that_is_like_none_suggests_none(line: str) -> None:
    error = refused(line)
    assert "unknown option" in error.message
    assert error.hint == "See holdfast --help."


def test_the_home_folder_by_its_short_name() -> None:
    assert parse(["--cwd", "~"]).cwd == Path.home()


def test_the_desk_needs_names_and_serve_its_streams() -> None:
    assert "--host" in refused("desk --host ''").message
    assert "holdfast serve --stdio" in refused("serve").message
