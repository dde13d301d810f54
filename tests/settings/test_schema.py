"""The settings as rows: every key of the schema, its value, where that is from, what is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui.core.config import Config, Price
from tui.core.errors import ConfigError
from tui.core.paths import Folders, folders
from tui.settings.edit import change_settings, changes_of_text, changes_to_default
from tui.settings.fields import Field, fields_of, heading_of
from tui.settings.layers import LoadedSettings, load, project_file
from tui.settings.schema import Setting, display, field_text, search, table, without_secrets
from tui.settings.trust import Trust

SECRET = "sk-ant-" + "a1b2" * 8

ALLOWS = Trust(everything=True).allows


@pytest.fixture
def home(tmp_path: Path) -> Folders:
    home = folders({"HOLDFAST_HOME": str(tmp_path / "home")})
    home.config.mkdir(parents=True)
    return home


def loaded(home: Folders, text: str = "", **options: Any) -> LoadedSettings:
    home.config_file.write_text(text)
    given: dict[str, Any] = {"allows": ALLOWS, "env": {}, "overrides": {}}
    return load(folders=home, workspace=home.data, **(given | options))


def row(rows: list[Setting], name: str) -> Setting:
    return next(row for row in rows if row.name == name)


def settings_of(section: type[msgspec.Struct], at: str = "") -> Iterator[tuple[str, Field]]:
    """The settings of the schema by dotted key; of tables with names of the person's own, the
    table or what each has in it."""
    for name, field in fields_of(section).items():
        if inner := Price if name == "prices" else field.section:
            yield from settings_of(inner, f"{at}{name}.")
        else:
            yield f"{at}{name}", field


def test_every_setting_has_a_label_of_its_own_that_fits_its_column_and_a_sentence() -> None:
    fields = [field for _, field in settings_of(Config)]
    assert [field.name for field in fields if not field.label] == []
    assert all(field.help.endswith(".") and len(field.help) < 100 for field in fields)
    assert max(len(field.label) for field in fields) <= 24
    assert len({field.label for field in fields}) == len(fields)


def test_every_key_has_a_row_in_a_section_with_a_heading(home: Folders) -> None:
    rows = table(loaded(home), models=["m"])
    assert {row.name.replace("prices.m.", "prices.") for row in rows} == dict(
        settings_of(Config)
    ).keys()
    assert all(heading_of(row.section) for row in rows)
    assert len({row.key for row in rows}) == len(rows)
    sections = [row.section for row in rows]
    assert sections == sorted(sections, key=sections.index), "a section is in one piece"


def test_a_row_says_what_is_allowed_and_the_default(home: Folders) -> None:
    rows = table(loaded(home), themes=["linen", "midnight"])
    assert row(rows, "retry.max_attempts").allowed == "a whole number, 0 or more"
    assert row(rows, "retry.stall_timeout_s").allowed == "seconds, 1 to 86,400"
    assert row(rows, "retry.stall_timeout_s").shown == "120 s"
    assert row(rows, "compaction.threshold").allowed == "a number above 0, at most 1"
    assert row(rows, "batch.max_cost").shown == "no limit"
    assert row(rows, "effort").shown == "the model's own default"
    assert row(rows, "model").allowed == "any text"
    assert row(rows, "compaction.memory_flush").shown == "on"
    assert row(rows, "retry.max_attempts").default == 3
    assert row(rows, "prune.when").options == ("auto", "turns", "pays")
    assert row(rows, "compaction.memory_flush").kind == "switch"
    assert row(rows, "permissions.allow").allowed == "a rule: tool or tool(glob); one per line"
    assert row(rows, "guard.bytes").kind == "entries"
    assert row(rows, "theme").kind == "choice"
    assert row(rows, "theme").options == ("linen", "midnight")
    assert "quotes" not in row(rows, "model").allowed


def test_where_a_value_comes_from(home: Folders) -> None:
    project = project_file(home.data)
    project.parent.mkdir(parents=True)
    project.write_text('theme = "linen"\n[permissions]\ndeny = ["b"]\n[retry]\nmax_attempts = 9\n')
    found = loaded(
        home,
        'model = "mine"\ntheme = "clear"\n[permissions]\ndeny = ["a"]',
        env={"ANTHROPIC_BASE_URL": "http://h"},
        overrides={"small_model": "other"},
    )
    rows = table(found)
    assert row(rows, "model").origin == "your file"
    assert row(rows, "theme").origin == "this folder"
    assert row(rows, "theme").shown == "linen"
    assert row(rows, "theme").edited == "clear"
    assert "Your file says clear." in row(rows, "theme").notes
    assert row(rows, "base_url").origin == "environment"
    assert "overrides your file" in row(rows, "base_url").notes[0]
    assert row(rows, "small_model").origin == "command line"
    assert row(rows, "retry.stall_timeout_s").origin == "default"
    deny = row(rows, "permissions.deny")
    assert (deny.origin, deny.shown, deny.edited) == ("your file + this folder", "a, b", ["a"])
    assert "Only those in your file" in " ".join(deny.notes)


def test_a_folder_that_is_not_trusted_is_said_to_have_no_effect(home: Folders) -> None:
    project = project_file(home.data)
    project.parent.mkdir(parents=True)
    project.write_text('model = "evil"')
    found = row(table(loaded(home, allows=Trust().allows)), "model")
    assert found.origin == "default"
    assert "with no effect: you have not trusted it" in found.notes[0]


def test_prices_are_asked_for_the_models_in_use_and_shown_for_all(home: Folders) -> None:
    rows = table(loaded(home, '[prices."a.b"]\ninput = 3'), models=["now"])
    assert row(rows, "prices.now.input").shown == "—"
    assert row(rows, 'prices."a.b".input').shown == "$3"
    assert row(rows, 'prices."a.b".output').shown == "$0"
    assert field_text(row(rows, "prices.now.input").edited) == ""


def test_servers_are_shown_without_what_may_be_secret(home: Folders) -> None:
    text = (
        f'[mcp.time]\ncommand = ["uvx", "--token", "{SECRET}"]\n'
        '[mcp.docs]\nurl = "http://me:word@h:1/mcp?key=hush"\n'
    )
    rows = table(loaded(home, text))
    assert row(rows, "mcp.time").shown == "uvx"
    assert row(rows, "mcp.docs").shown == "http://[secret removed]@h:1/mcp"
    assert {each.kind for each in rows if each.key[0] == "mcp"} == {"fixed"}


def test_what_is_secret_is_hidden(home: Folders) -> None:
    text = f'base_url = "http://me:word@h"\n[permissions]\nallow = ["x(a {SECRET})"]'
    rows = table(loaded(home, text))
    for name in ("base_url", "permissions.allow"):
        assert row(rows, name).hidden
        assert "word" not in row(rows, name).shown
        assert SECRET not in row(rows, name).shown
    assert not row(rows, "model").hidden
    assert without_secrets("http://h/a@b") == "http://h/a@b", "a path may hold an @"


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("retry max", {"retry.max_attempts", "retry.max_delay_ms"}),
        ("RETRY.MAX_ATT", {"retry.max_attempts"}),
        ("countdown", set[str]()),
    ],
)
def test_words_find_rows(home: Folders, words: str, names: set[str]) -> None:
    assert {row.name for row in search(table(loaded(home)), words)} == names


def test_words_find_values_and_origins_too(home: Folders) -> None:
    rows = table(loaded(home, 'model = "mine"'))
    assert [row.name for row in search(rows, "mine")] == ["model"]
    assert [row.name for row in search(rows, "claude your")] == []
    assert [row.name for row in search(rows, "your mine")] == ["model"]
    assert "retry.stall_timeout_s" in {row.name for row in search(rows, "request fails")}
    assert search(rows, " ") == rows


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("context_window", " 200,000 ", 200_000),
        ("context_window", "200_000", 200_000),
        ("context_window", "many", "many"),
        ("context_window", "1.5", 1.5),
        ("compaction.threshold", "0.5", 0.5),
        ("compaction.threshold", "1", 1.0),
        ("compaction.memory_flush", "false", False),
        ("model", " m ", "m"),
        ("fallback_models", "a\n\n b \n", ["a", "b"]),
        ("prune.when", "pays", "pays"),
    ],
)
def test_what_was_meant_by_a_text(home: Folders, name: str, text: str, value: object) -> None:
    found = row(table(loaded(home)), name)
    assert changes_of_text(found, text) == {found.key: value}


def test_lines_of_a_table_become_entries_and_those_left_out_go(home: Folders) -> None:
    found = row(table(loaded(home, "[guard.bytes]\na = 1\nb = 2")), "guard.bytes")
    assert field_text(found.edited) == "a = 1\nb = 2"
    assert changes_of_text(found, "b = 3\n'c.d' = 4,000\nbad") == {
        ("guard", "bytes", "a"): None,
        ("guard", "bytes", "b"): 3,
        ("guard", "bytes", "c.d"): 4000,
        ("guard", "bytes", "bad"): "",
    }
    assert changes_to_default(found) == {
        ("guard", "bytes", "a"): None,
        ("guard", "bytes", "b"): None,
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "on"), (0, "0"), (50_000, "50,000"), (0.8, "0.8"), ("", '""'), ((), "none"),
        (("a", "b"), "a, b"), ({"x y": 1000}, '"x y" 1,000'), (None, "—"), ("a\n b", "a b"),
    ],
)  # fmt: skip
def test_values_are_told_in_one_line(value: object, text: str) -> None:
    assert display(value) == text


@settings(deadline=None)
@given(st.data())
def test_what_is_typed_unchanged_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A row's own text, written, puts the value there that was in force; any other text is
    either written and read back, or refused with the file as it was."""
    home = folders({"HOLDFAST_HOME": str(tmp_path_factory.mktemp("home"))})
    home.config.mkdir(parents=True)
    rows = [row for row in table(loaded(home), models=["m"]) if row.kind != "fixed"]
    found = data.draw(st.sampled_from(rows))
    if found.value is not None:
        change_settings(home, changes_of_text(found, field_text(found.edited)))
        again = load(folders=home, workspace=home.data, allows=ALLOWS, env={}, overrides={})
        assert again.config == Config()
    before = home.config_file.read_bytes()
    text = data.draw(st.text("ab1.-=\n(/~\"'", max_size=8) | st.integers().map(str))
    try:
        change_settings(home, changes_of_text(found, text))
    except ConfigError as error:
        assert error.key.startswith(found.key[0])  # noqa: PT017 - or it is written
        assert home.config_file.read_bytes() == before
    else:
        load(folders=home, workspace=home.data, allows=ALLOWS, env={}, overrides={})


def test_each_choice_says_what_it_means(home: Folders) -> None:
    rows = [one for one in table(loaded(home)) if one.kind == "choice" and one.key != ("theme",)]
    assert len(rows) > 12
    for one in rows:
        assert tuple(one.choices) == one.options, one.name
        assert all(one.choices.values()), one.name


def test_no_setting_speaks_of_strings(home: Folders) -> None:
    for one in table(loaded(home), models=["m"]):
        words = f"{one.allowed} {one.shown} {one.description.help}"
        assert "string" not in words, one.name
        assert "true" not in words, one.name
        assert one.shown != '""', one.name
