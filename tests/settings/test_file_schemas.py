"""JSON Schemas of config.toml and hooks.json: what the program takes fits, wrong things don't."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tui
from tests.support.json_schema import check_schema, fits, objects
from tui.core.config import Config
from tui.core.errors import ConfigError
from tui.core.keymap import DEFAULT_KEYS
from tui.core.messages import is_object
from tui.core.paths import Folders, folders
from tui.settings import hook_files
from tui.settings.edit import add_server, set_user_value
from tui.settings.file_schemas import SCHEMA_FILE, Schema, config, hooks, write_schema_for
from tui.settings.layers import project_file
from tui.settings.validation import check

CONFIG = config()
HOOKS = hooks()


@pytest.fixture
def home(tmp_path: Path) -> Folders:
    return folders({"HOLDFAST_HOME": str(tmp_path / "home")})


@pytest.mark.parametrize("schema", [config(), hooks()], ids=["config", "hooks"])
def test_a_schema_is_one_and_names_the_version(schema: Schema) -> None:
    check_schema(schema)
    assert f"/{tui.__version__}/" in schema["$id"]
    for one in objects(schema):
        pattern = one.get("pattern", "")
        if isinstance(pattern, str):  # what JavaScript and Rust don't have
            assert not re.search(r"\\Z|\(\?s|\\0", pattern)
        assert "\n" not in str(one.get("description", ""))


def test_every_setting_is_described_for_an_editor() -> None:
    found = config()
    for name, one in found["properties"].items():
        assert one.get("description", "").endswith("."), name
    assert found["$defs"]["Retry"]["properties"]["max_attempts"]["description"]


TEXT = st.text(max_size=8) | st.sampled_from(["", "~", "~/a", "http://a", "read_file", "ls", "on"])
ONE = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
ANY = ONE | st.lists(TEXT, max_size=3) | st.dictionaries(TEXT, TEXT, max_size=2)


@given(st.data())
def test_what_the_program_takes_fits_the_schema(data: st.DataObject) -> None:
    """Sections as they are made from the types, with values that may be wrong."""
    whole: dict[str, Any] = msgspec.to_builtins(Config())
    names = data.draw(st.lists(st.sampled_from(sorted(whole)), max_size=4, unique=True))
    table: dict[str, Any] = {}
    for name in names:
        value = whole[name]
        if is_object(value) and value:
            keys = data.draw(st.lists(st.sampled_from(sorted(value)), max_size=3, unique=True))
            table[name] = {key: data.draw(st.just(value[key]) | ANY) for key in keys}
        else:
            table[name] = data.draw(st.just(value) | ANY)
    try:
        check(table, table, "config.toml")
    except ConfigError:
        return
    assert fits(CONFIG, json.loads(json.dumps(table))), table


WORDS = st.sampled_from(
    [{"command": "a"}, {"command": ["a", "b"]}, {"url": "https://a"}, {}, {"url": "a b"}]
)
MORE = st.fixed_dictionaries(
    {},
    optional={
        "args": st.lists(TEXT, max_size=2) | ANY,
        "env": st.dictionaries(TEXT, TEXT, max_size=2) | ANY,
        "type": st.sampled_from(["http", "sse", "stdio", "", "x"]),
        "sandbox": st.sampled_from(["outside", "network", "x"]),
        "tools": ANY,
    },
)


@given(
    st.tuples(WORDS, MORE),
    st.dictionaries(st.sampled_from([*DEFAULT_KEYS, "x"]), st.sampled_from(["f7", "", "alt+k"])),
    st.dictionaries(TEXT, st.fixed_dictionaries({}, optional={"input": ANY, "output": ANY})),
)
def test_servers_keys_and_prices_that_the_program_takes_fit_the_schema(
    server: tuple[dict[str, Any], dict[str, Any]], keys: dict[str, str], prices: dict[str, Any]
) -> None:
    table: dict[str, Any] = {"mcp": {"a": server[0] | server[1]}, "keys": keys, "prices": prices}
    for name, value in table.items():
        try:
            check({name: value}, {name: value}, "config.toml")
        except ConfigError:
            continue
        assert fits(CONFIG, {name: value})


@pytest.mark.parametrize(
    "text",
    [
        'modle = "a"',
        "model = 1",
        'effort = "much"',
        "[retry]\nmax_attempts = -1",
        "[retry]\nattempts = 1",
        '[keys]\nfly = "f7"',
        '[permissions]\nallow = ["read file(x)"]',
        '[mcp.a]\nargs = ["x"]',
        'base_url = "ftp://a"',
        "[compaction]\nthreshold = 1.5",
    ],
)
def test_what_the_program_refuses_does_not_fit(text: str) -> None:
    table = tomllib.loads(text)
    with pytest.raises(ConfigError):
        check(table, table, "config.toml")
    assert not fits(CONFIG, table)


def test_a_new_file_of_the_person_names_its_schema_which_lies_beside_it(home: Folders) -> None:
    set_user_value(home, "model", "a")
    assert home.config_file.read_text() == f'#:schema ./{SCHEMA_FILE}\nmodel = "a"\n'
    kept = home.config_file.with_name(SCHEMA_FILE)
    assert json.loads(kept.read_text()) == config()
    kept.write_text("{}")  # as of an earlier version
    set_user_value(home, "retry.max_attempts", 5)
    assert json.loads(kept.read_text()) == config()
    changed = kept.stat().st_mtime_ns
    write_schema_for(home.config_file)
    assert kept.stat().st_mtime_ns == changed


def test_a_file_that_is_there_or_is_shared_gets_no_line(home: Folders, tmp_path: Path) -> None:
    home.config_file.parent.mkdir(parents=True)
    home.config_file.write_text('model = "a"\n')
    set_user_value(home, "theme", "linen")
    assert "#:schema" not in home.config_file.read_text()
    assert not home.config_file.with_name(SCHEMA_FILE).exists()
    shared = project_file(tmp_path)
    add_server(shared, "a", {"command": ["b"]})
    assert shared.read_text().startswith("[mcp.a]")
    assert [path.name for path in shared.parent.iterdir()] == ["config.toml"]


HOOK = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["command", "prompt"]),
        "command": TEXT,
        "timeout": ANY,
        "on_error": st.sampled_from(["continue", "block", "stop"]),
        "if": TEXT,
        "statusMessage": TEXT,
    },
)
GROUP = st.fixed_dictionaries(
    {"hooks": st.lists(HOOK, max_size=2) | ANY},
    optional={"matcher": st.sampled_from(["", "*", "Edit|Write", "[", 3])},
)
EVENTS = st.sampled_from([*hook_files.EVENTS, "Notification", "Later"])


@given(st.dictionaries(EVENTS, st.lists(GROUP, max_size=2) | ANY, max_size=3))
def test_hooks_that_the_program_takes_without_a_word_fit_the_schema(
    tmp_path_factory: pytest.TempPathFactory, said: dict[str, Any]
) -> None:
    file = tmp_path_factory.mktemp("hooks") / "hooks.json"
    file.write_text(json.dumps({"hooks": said}))
    found = hook_files.load([file])
    if not found.problems:
        assert fits(HOOKS, {"hooks": said}), said


@pytest.mark.parametrize(
    "said",
    [
        {"PreToolUse": []},
        {"hooks": {"BeforeTool": []}},
        {"hooks": {"Stop": [{"command": "a"}]}},
        {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": " "}]}]}},
        {"hooks": {"Stop": [{"hooks": [{"command": "a", "timeout": "9s"}]}]}},
        {"hooks": {"Stop": [{"hooks": [{"command": "a", "on_error": "stop"}]}]}},
    ],
)
def test_hooks_that_are_complained_about_do_not_fit(tmp_path: Path, said: dict[str, Any]) -> None:
    file = tmp_path / "hooks.json"
    file.write_text(json.dumps(said))
    assert hook_files.load([file]).problems
    assert not fits(HOOKS, said)
