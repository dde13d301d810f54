"""The manual and the README say what the program does: tables, commands, examples and pictures.

A table behind `<!-- table: NAME -->` is made from the program's own tables, word for word.
`python -m tests.test_manual` rewrites them.
"""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from string import punctuation
from typing import Any, get_args

import pytest
from textual.keys import _character_to_key  # pyright: ignore[reportPrivateUsage]

from tests.pictures.scenes import SCENES
from tests.terminals.heard import limits
from tests.ui import habits
from tui import plain
from tui.app import manual
from tui.app.commands import find
from tui.app.commands.table import COMMANDS, INSTEAD
from tui.app.options.flags import COMMANDS as SUBCOMMANDS
from tui.app.options.flags import FAULTS, FORMATS, MAIN, Command, Flag, first_words
from tui.app.options.parser import parse
from tui.batch.events import BatchEvent, FromAgent
from tui.batch.replay import suite
from tui.cli import main
from tui.core import clouds
from tui.core.errors import ErrorClass
from tui.core.facts import Alive, Fact
from tui.core.keymap import DEFAULT_KEYS
from tui.core.keymap import shown as shown_key
from tui.core.paths import Folders
from tui.provider.practice.script import read_script
from tui.settings import layers
from tui.settings.schema import Setting, table
from tui.settings.trust import Trust
from tui.settings.user_commands import SHIPPED
from tui.tools.registry import builtin_tools
from tui.ui.toolkit import themes
from tui.ui.widgets.keys import HELP, Key

ROOT = Path(__file__).parents[1]
MANUAL = ROOT / "tui" / "manual"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(MANUAL.glob("*.md"))}
ALL = "\n".join([README, *PAGES.values()])
LINES = ALL.splitlines()
PLAIN_TEXT = re.sub(r"^```.*?^```", "", ALL, flags=re.DOTALL | re.MULTILINE)


def cell(text: str) -> str:
    """A text as it stands in a cell of a table."""
    return text.replace("|", "\\|")


def row(*cells: str) -> str:
    return f"| {' | '.join(map(cell, cells))} |"


def blocks(language: str) -> list[str]:
    """The code blocks in a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", ALL, re.DOTALL | re.MULTILINE)


def spans(text: str = PLAIN_TEXT) -> list[str]:
    """What stands in backticks outside of code blocks, as it is read."""
    return [found.replace("\\|", "|") for found in re.findall(r"`([^`\n]+)`", text)]


# The tables of the program, as rows


def key_rows(keys: Iterable[Key]) -> list[str]:
    return [row(f"`{key.shown}`", key.help) for key in keys if key.shown]


def own_key_rows() -> list[str]:
    rows: list[str] = []
    help_ = ""
    for key in (key for _, keys in HELP for key in keys):
        help_ = key.help or help_
        if key.name and not any(line.startswith(f"| `{key.name}` |") for line in rows):
            keys = ", ".join(f"`{name}`" for name in DEFAULT_KEYS[key.name])
            rows.append(row(f"`{key.name}`", keys, help_))
    return rows


def command_rows() -> list[str]:
    rows: list[str] = []
    for command in COMMANDS:
        names = ", ".join(f"`/{name}`" for name in (command.name, *command.aliases))
        rows.append(row(f"{names} {command.argument}".rstrip(), command.help))
    return rows


def flag_rows(flags: Iterable[Flag]) -> list[str]:
    return [row(_flag_names(flag), flag.help) for flag in flags]


def _flag_names(flag: Flag) -> str:
    names = ", ".join(f"`{name}`" for name in flag.names)
    value = flag.value or "|".join(flag.choices)
    return f"{names} {f'[{value}]' if flag.optional else value}".rstrip()


def all_settings() -> list[Setting]:
    nowhere = Folders(*[ROOT / "not kept"] * 4)
    loaded = layers.load(
        folders=nowhere, workspace=nowhere.data, allows=Trust().allows, env={}, overrides={}
    )
    return table(loaded, models=["MODEL"])


def setting_rows() -> list[str]:
    rows: list[str] = []
    for setting in all_settings():
        default = "none" if setting.key == ("mcp",) else f"`{_toml(setting.default)}`"
        rows.append(row(f"`{setting.name}`", default, setting.description.words))
    return rows


def _toml(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case tuple() | list():
            assert not value
            return "[]"
        case _:
            return str(value)


def event_rows() -> list[str]:
    return [row(f"`{_type(kind)}`", _fields(kind)) for kind in get_args(Fact)]


def run_event_rows() -> list[str]:
    kinds = [kind for kind in get_args(BatchEvent) if kind is not FromAgent]
    return [row(f"`{_type(kind)}`", _names(kind)) for kind in kinds]


def _type(kind: type[Any]) -> str:
    return kind.__struct_config__.tag


def _fields(kind: type[Any]) -> str:
    """The names that `to_json` gives the fields."""
    values = dict.fromkeys(kind.__struct_fields__, "") | {"event": Alive()}
    empty = kind(**{name: values[name] for name in kind.__struct_fields__})
    return ", ".join(name for name in empty.to_json() if name != "type") or "—"


def _names(kind: type[Any]) -> str:
    return ", ".join(kind.__struct_fields__)


def run_flag_rows(name: str) -> list[str]:
    """The options that only `run` or `replay` has, or that mean something else there."""
    run = next(command for command in SUBCOMMANDS if command.words == (name,))
    return flag_rows(flag for flag in run.flags if flag not in MAIN.flags)


def habit_rows(program: str) -> list[str]:
    """The keys of another program that do something else here."""
    return [
        row(
            habits.PLACES[each["place"]],
            " ".join(map(_pressed, each["key"].split())),
            each["there"],
            each["here"],
            each["instead"],
        )
        for each in habits.rows("keys")
        if each["program"] == program and "here" in each
    ]


_CHARACTERS = {_character_to_key(sign): sign for sign in punctuation}


def _pressed(key: str) -> str:
    *modifiers, name = key.split("+")
    name = _CHARACTERS.get(name, name)
    return shown_key("+".join([*modifiers, name])) if modifiers or len(name) > 1 else name


def habit_command_rows() -> list[str]:
    """The commands of other agents that have another name here, or none."""
    found: dict[str, tuple[list[str], str]] = {}
    for each in habits.rows("commands"):
        name, does = each["command"], each["does"]
        here = each.get("here") or (INSTEAD[name[1:]] if does == "says" else f"`{does}`")
        if "here" in each or (find(name[1:]) is None and here != f"`{name}`"):
            found.setdefault(name, ([], here))[0].append(each["program"])
    return [row(name, ", ".join(by), here) for name, (by, here) in sorted(found.items())]


def cloud_rows() -> list[str]:
    """What each cloud has of what a server may have."""
    every = clouds.CLOUDS.values()
    has = [
        row(words, *("no" if name in cloud.lacks else "yes" for cloud in every))
        for name, words in clouds.FEATURES.items()
    ]
    return [*has, row("largest request", *(f"{cloud.request_mb} MB" for cloud in every))]


@cache
def tables() -> dict[str, list[str]]:
    """The rows of every table that is made from the program, by its name."""
    return {
        "options": flag_rows(MAIN.flags),
        "options of run": run_flag_rows("run"),
        "options of replay": run_flag_rows("replay"),
        "commands": command_rows(),
        "own keys": own_key_rows(),
        "settings": setting_rows(),
        "events": event_rows(),
        "events of run": run_event_rows(),
        **{f"habits: {name}": habit_rows(name) for name in habits.programs("keys")},
        "habits: commands": habit_command_rows(),
        "clouds": cloud_rows(),
        "terminals": [row(*cells) for cells in limits()],
        **{f"keys: {title}": key_rows(keys) for title, keys in HELP},
    }


_TABLE = re.compile(r"<!-- table: (?P<name>.+) -->\n(?P<head>\|.*\n\|[-|]+\n)(?P<rows>(?:\|.*\n)*)")


def with_tables(text: str) -> str:
    """A page with its tables as the program has them now."""
    made = tables()

    def table_of(found: re.Match[str]) -> str:
        rows = "".join(f"{line}\n" for line in made[found["name"]])
        return f"<!-- table: {found['name']} -->\n{found['head']}{rows}"

    return _TABLE.sub(table_of, text)


# Each of them is in the manual


@pytest.mark.parametrize("name", tables())
def test_a_table_is_as_the_program_has_it(name: str) -> None:
    there = {found["name"]: found["rows"].splitlines() for found in _TABLE.finditer(ALL)}
    assert there.get(name) == tables()[name], "python -m tests.test_manual rewrites it"


@pytest.mark.parametrize("command", SUBCOMMANDS, ids=lambda command: "-".join(command.words))
def test_every_subcommand_is_named_with_its_options(command: Command) -> None:
    name = " ".join(("holdfast", *command.words))
    lines = [line for line in LINES if line.startswith(name)]
    assert lines, f"{name} is not in the synopsis"
    for flag in command.flags:
        assert any(f"`{given}`" in ALL or given in " ".join(lines) for given in flag.names)


def test_every_exit_code_is_named() -> None:
    codes = {value for name, value in vars(main).items() if name.startswith("EXIT_")}
    for code in {0, *codes, plain.TERMINAL_GONE}:
        assert any(line.startswith(f"| `{code}` |") for line in LINES), code


@pytest.mark.parametrize(
    "words",
    [
        get_args(ErrorClass),
        FAULTS,
        FORMATS,
        tuple(builtin_tools()),
        themes.available(ROOT / "not kept"),
    ],
    ids=["error classes", "faults", "formats", "tools", "themes"],
)
def test_every_word_of_a_choice_is_named(words: Iterable[str]) -> None:
    named = set(spans()) | {word for span in spans() for word in re.split(r"[|, ]+", span)}
    assert sorted(set(words) - named) == []


# Nothing else does


def test_every_slash_command_in_the_text_exists() -> None:
    known = {name for command in COMMANDS for name in (command.name, *command.aliases)}
    known |= {path.stem for path in SHIPPED.glob("*.md")}
    known.add("notes")  # the example of a command of one's own
    named = {found[1] for span in spans() if (found := re.match(r"/([a-z-]+)(?: |$)", span))}
    assert named, "no command was found"
    assert sorted(named - known) == []


def test_every_command_line_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    lines += [span for span in spans() if span.startswith("holdfast ")]
    given = [found[1] for line in lines if (found := re.search(r"\bholdfast (.+)", line))]
    assert len(given) > 20
    names = {command.words for command in SUBCOMMANDS}
    for words in given:
        argv = shlex.split(words.partition(" > ")[0], comments=True)
        if tuple(argv) not in names:
            parse(argv)  # raises UsageError where it is not understood


def test_the_synopsis_names_only_commands_that_exist() -> None:
    first = {line.split()[1] for line in LINES if re.match(r"holdfast [a-z]", line)}
    assert first == set(first_words())


def test_every_example_of_the_configuration_is_valid(tmp_path: Path) -> None:
    found = 0
    for block in blocks("toml"):
        head = block.splitlines()[0]
        path = tmp_path / "example.toml"
        path.write_text(block, encoding="utf-8")
        if head.startswith("# config.toml"):
            read = layers.parse(block.encode(), path)
            layers.check_own(read, "manual")
        elif head.startswith("# script.toml"):
            assert read_script(path)
        elif head.startswith("# suite.toml"):
            assert suite.parse(block.encode(), path.name).case
        else:
            assert head.startswith("# themes/")
            folder = tmp_path / "themes"
            folder.mkdir(exist_ok=True)
            (folder / "own.toml").write_text(block, encoding="utf-8")
            assert themes.load("own", folder).problems == ()
        assert tomllib.loads(block)
        found += 1
    assert found > 3


def test_every_variable_that_is_named_is_read_somewhere() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tui").rglob("*.py"))
    rows = [line for line in LINES if re.match(r"\| `[A-Z_]{4,}`", line)]
    named = [name for line in rows for name in re.findall(r"`([A-Z_]{4,})`", line.split(" | ")[0])]
    assert len(named) > 5
    assert [name for name in named if f'"{name}"' not in source] == []


# The manual as a whole


def test_the_topics_are_the_files() -> None:
    assert sorted(manual.TOPICS) == sorted(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_a_topic_begins_with_its_title_and_one_line_about_it(name: str) -> None:
    head, summary, *_ = PAGES[name].split("\n\n")
    assert re.fullmatch(r"# [^\n]+", head)
    assert re.fullmatch(r"[^\n]{10,120}\.", summary)


def test_every_link_leads_to_a_page_or_a_heading() -> None:
    for name, page in PAGES.items():
        for target in re.findall(r"\]\(([^)]+)\)", page):
            assert (MANUAL / target).exists(), f"{name}: {target}"
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target


BANNED = re.compile(
    r"\b(shall|stands|anew|the ways? on|go(es)? on with|is told|are told|at last)\b|\.\.\."
)
"""What a native speaker of English would not write here."""


def test_the_texts_are_plain_english() -> None:
    tables = _TABLE.sub("", PLAIN_TEXT)
    found = [line for line in tables.splitlines() if BANNED.search(line)]
    assert found == []


# The README: pictures, size, and the test command


def test_every_picture_is_there_and_made_from_the_program() -> None:
    shown = re.findall(r"!\[[^\]]+\]\([./]*\.github/([a-z-]+)\.svg\)", ALL)
    assert len(shown) == ALL.count("![")
    assert set(shown) == {scene.name for scene in SCENES}
    for name in shown:
        path = ROOT / ".github" / f"{name}.svg"
        assert path.stat().st_size < 100_000, name
        assert path.read_text(encoding="utf-8").startswith("<svg"), name
    assert {path.stem for path in (ROOT / ".github").glob("*.svg")} == set(shown)


def test_the_readme_is_read_in_five_minutes() -> None:
    assert len(README.encode()) <= 12_000
    assert "![" in README
    assert "holdfast help" in README


def test_the_test_command_is_the_one_that_ci_runs() -> None:
    found = re.search(r'^test_command="(.+)"$', (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert found
    assert found[1] in README
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


if __name__ == "__main__":
    for _name, _page in PAGES.items():
        (MANUAL / f"{_name}.md").write_text(with_tables(_page), encoding="utf-8")
