"""Changing the user's config.toml: comments stay, and a broken file is never made or touched."""

from __future__ import annotations

import json
import stat
import threading
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from tui.core.errors import ConfigError, StorageError
from tui.core.paths import Folders, folders
from tui.settings.edit import (
    Changes,
    change_settings,
    remember_always,
    set_user_value,
    take_back,
)

TEXT = """\
# my settings
model = "mine"   # the good one

[permissions]  # careful
# reading is fine
allow = [
    "read_file",   # always
    "list_dir",
]

[retry]
max_attempts = 5
"""


@pytest.fixture
def home(tmp_path: Path) -> Folders:
    return folders({"HOLDFAST_HOME": str(tmp_path / "home")})


@pytest.fixture
def file(home: Folders) -> Path:
    home.config.mkdir(parents=True)
    home.config_file.write_text(TEXT)
    return home.config_file


def data(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text())


def test_a_rule_is_added_and_every_comment_stays(home: Folders, file: Path) -> None:
    remember_always(home, "run_command(git status*)")
    assert data(file)["permissions"]["allow"] == [
        "read_file",
        "list_dir",
        "run_command(git status*)",
    ]
    kept = [line for line in TEXT.splitlines() if "#" in line]
    assert all(line in file.read_text() for line in kept)


def test_a_rule_is_added_once(home: Folders, file: Path) -> None:
    remember_always(home, "read_file")
    assert file.read_text() == TEXT


def test_the_first_rule_makes_the_file(home: Folders) -> None:
    remember_always(home, "read_file")
    assert data(home.config_file) == {"permissions": {"allow": ["read_file"]}}
    assert stat.S_IMODE(home.config_file.stat().st_mode) == 0o600


def test_the_mode_is_kept(home: Folders, file: Path) -> None:
    file.chmod(0o640)
    remember_always(home, "x")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    "rule", ['run_command(echo "a\'b" \\\\ $x)', "run_command(a\nb)", "run_command(ü → 漢)"]
)
def test_any_rule_reads_back_as_it_was(home: Folders, file: Path, rule: str) -> None:
    remember_always(home, rule)
    assert data(file)["permissions"]["allow"][-1] == rule


@pytest.mark.parametrize(
    "before",
    [
        "",
        "# only a comment",
        'permissions = { allow = ["a"] }',
        'permissions.allow = ["a"]\nmodel = "m"',
        "permissions.ask = []",
        "[permissions]",
        "[permissions]\nallow = []",
        "[retry]\nmax_attempts = 1\n\n[permissions]\ndeny = []\n",
        '[mcp.x]\ncommand = ["a"]',
        '[permissions]\r\nallow = ["a"] # win\r\n',
    ],
)
def test_every_way_of_writing_the_section(home: Folders, file: Path, before: str) -> None:
    file.write_bytes(before.encode())
    old = data(file)
    remember_always(home, "new_rule")
    new = data(file)
    assert new["permissions"]["allow"] == [
        *old.get("permissions", {}).get("allow", []),
        "new_rule",
    ]
    new["permissions"].pop("allow")
    old.get("permissions", {}).pop("allow", None)
    assert {**old, "permissions": old.get("permissions", {})} == new


def test_values_are_set_and_removed(home: Folders, file: Path) -> None:
    set_user_value(home, "theme", "day")
    set_user_value(home, "model", "other")
    set_user_value(home, "retry.max_attempts", 0)
    set_user_value(home, "compaction.threshold", 0.5)
    found = data(file)
    assert (found["theme"], found["model"]) == ("day", "other")
    assert found["retry"] == {"max_attempts": 0}
    assert found["compaction"] == {"threshold": 0.5}
    assert "# the good one" in file.read_text()
    set_user_value(home, "model", None)
    assert "model" not in data(file)


def test_removing_what_is_not_there_changes_nothing(home: Folders, file: Path) -> None:
    set_user_value(home, "guard.clamp_lines", None)
    set_user_value(home, "theme", None)
    assert file.read_text() == TEXT


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("retry.max_attempts", -1),
        ("modle", "x"),
        ("base_url", "nonsense"),
        ("theme", ""),
        ("a.b", 1),
    ],
)
def test_what_would_be_invalid_is_refused(
    home: Folders, file: Path, key: str, value: str | int
) -> None:
    with pytest.raises(ConfigError):
        set_user_value(home, key, value)
    assert file.read_text() == TEXT


def test_something_that_is_no_rule_is_refused(home: Folders, file: Path) -> None:
    with pytest.raises(ConfigError, match=r"tool or tool\(glob\)"):
        remember_always(home, "two words")
    assert file.read_text() == TEXT


@pytest.mark.parametrize(
    "broken", ["model = ", "permissions = 3", '[permissions]\nallow = "x"', "[retry]\nmax = 1"]
)
def test_a_broken_file_is_named_and_not_touched(home: Folders, file: Path, broken: str) -> None:
    file.write_text(broken)
    with pytest.raises(ConfigError, match=r"config\.toml"):
        remember_always(home, "read_file")
    assert file.read_text() == broken


def test_a_document_that_comes_out_wrong_is_not_written(
    home: Folders, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lossy(_document: object) -> str:
        return 'model = "lost the rest"'

    monkeypatch.setattr(tomlkit, "dumps", lossy)
    with pytest.raises(ConfigError, match="without losing its layout"):
        remember_always(home, "new_rule")
    assert file.read_text() == TEXT


def test_a_file_that_cannot_be_written_is_said(home: Folders) -> None:
    home.config.parent.mkdir(parents=True)
    home.config.write_text("a file in the folder's place")
    with pytest.raises(StorageError, match="Can't write"):
        remember_always(home, "read_file")


def test_two_writers_lose_nothing(home: Folders, file: Path) -> None:
    def add(start: int) -> None:
        for n in range(start, start + 5):
            remember_always(home, f"tool_{n}")

    threads = [threading.Thread(target=add, args=(start,)) for start in (0, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {f"tool_{n}" for n in range(10)} <= set(data(file)["permissions"]["allow"])


# Where a change goes


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        ("", {("model",): "m"}, 'model = "m"\n'),
        ("", {("retry", "max_attempts"): 1}, "[retry]\nmax_attempts = 1\n"),
        ("# mine\n", {("model",): "m"}, '# mine\nmodel = "m"\n'),
        (
            "# of the rules\n[permissions]\nask = []\n",
            {("model",): "m"},
            'model = "m"\n\n# of the rules\n[permissions]\nask = []\n',
        ),
        (
            "# mine\n\n# of the rules\n[permissions]\n",
            {("model",): "m"},
            '# mine\n\nmodel = "m"\n\n# of the rules\n[permissions]\n',
        ),
        (
            "[retry]\nmax_attempts = 1\n\n# of the rules\n[permissions]\n",
            {("retry", "stall_timeout_s"): 9},
            "[retry]\nmax_attempts = 1\nstall_timeout_s = 9\n\n# of the rules\n[permissions]\n",
        ),
        (
            '[prices."a.b"] # per million\ninput = 1',
            {("prices", "a.b", "output"): 2.5},
            '[prices."a.b"] # per million\ninput = 1\noutput = 2.5\n',
        ),
        ('model = "a"', {("theme",): "t"}, 'model = "a"\ntheme = "t"\n'),
        ("theme = 't' # x\n", {("theme",): "t"}, "theme = 't' # x\n"),
        ("theme = 't' # x\n", {("theme",): "u"}, 'theme = "u" # x\n'),
        ("a = 1\n"[:0] + "\r\n[retry]\r\n", {("retry", "max_attempts"): 1}, None),
        ("\ufeffmodel = 'a'\n", {("theme",): "t"}, "\ufeffmodel = 'a'\ntheme = \"t\"\n"),
    ],
)
def test_a_new_key_stands_where_a_person_would_put_it(
    home: Folders, file: Path, before: str, changes: Changes, after: str | None
) -> None:
    file.write_bytes(before.encode())
    change_settings(home, changes)
    expected = after if after is not None else "\r\n[retry]\r\nmax_attempts = 1\r\n"
    assert file.read_bytes().decode() == expected


def test_a_long_list_has_an_entry_on_each_line(home: Folders, file: Path) -> None:
    names = [f"a-model-with-a-rather-long-name-{number}" for number in range(3)]
    change_settings(home, {("fallback_models",): names})
    assert data(file)["fallback_models"] == names
    assert sum(name in line for line in file.read_text().splitlines() for name in names) == 3
    assert max(map(len, file.read_text().splitlines())) < 80


def test_what_stays_in_a_list_keeps_its_comment(home: Folders, file: Path) -> None:
    change_settings(home, {("permissions", "allow"): ["list_dir", "glob(*)"]})
    text = file.read_text()
    assert data(file)["permissions"]["allow"] == ["list_dir", "glob(*)"]
    assert "# reading is fine" in text
    change_settings(home, {("permissions", "allow"): ["first", "list_dir", "glob(*)"]})
    set_user_value(home, "permissions.allow", ["read_file", "list_dir"])
    assert data(file)["permissions"]["allow"] == ["read_file", "list_dir"]


def test_entries_between_commented_ones_come_and_go(home: Folders, file: Path) -> None:
    kept = [line for line in TEXT.splitlines() if "#" in line]
    rules = ["read_file", "list_dir"]
    change_settings(home, {("permissions", "allow"): [rules[0], "x", rules[1], "y"]})
    change_settings(home, {("permissions", "allow"): rules})
    assert all(line in file.read_text() for line in kept)


@pytest.mark.parametrize(
    "last",
    ['"b"', '"b"  # as "b"', "'b'", '"b",', '"b"  # a "b", and\n    # "c"'],
)
def test_an_entry_follows_a_comment_at_the_end_of_a_list(
    home: Folders, file: Path, last: str
) -> None:
    written = f'allow = [\n    "a",\n    {last}\n    # "off",\n]\n'
    file.write_text(f"[permissions]\n{written}deny = [\n    {last}\n]\n")
    change_settings(home, {("permissions", "allow"): ["a", "b", "new", "c"]})
    assert data(file)["permissions"]["allow"] == ["a", "b", "new", "c"]
    assert data(file)["permissions"]["deny"] == ["b"]
    now = {line.partition("#")[2] for line in file.read_text().splitlines()}
    assert {line.partition("#")[2] for line in written.splitlines()} <= now


def test_a_list_with_commas_in_front_is_left_to_the_person(home: Folders, file: Path) -> None:
    before = '[permissions]\nallow = [\n    "a" # one\n    , "b"\n]\n'
    file.write_text(before)
    with pytest.raises(ConfigError, match="without losing its layout"):
        change_settings(home, {("permissions", "allow"): ["a", "new", "b"]})
    assert file.read_text() == before


def test_the_last_price_of_a_model_takes_its_table_along(home: Folders, file: Path) -> None:
    file.write_text('[prices."m"]\n# from the invoice\ninput = 3.0\noutput = 15.0\n')
    change_settings(home, {("prices", "m", "input"): None})
    assert data(file) == {"prices": {"m": {"output": 15.0}}}
    change_settings(home, {("prices", "m", "output"): None})
    assert not data(file).get("prices")
    assert "# from the invoice" in file.read_text()


def test_several_keys_change_together_or_not_at_all(home: Folders, file: Path) -> None:
    with pytest.raises(ConfigError, match=r"retry\.max_attempts"):
        change_settings(home, {("theme",): "linen", ("retry", "max_attempts"): -1})
    assert file.read_text() == TEXT


def test_whoever_asks_may_refuse_the_whole(home: Folders, file: Path) -> None:
    def never(table: dict[str, Any]) -> None:
        assert table["theme"] == "linen"
        raise ConfigError("project", "theme", "not with me.")

    with pytest.raises(ConfigError, match="not with me"):
        change_settings(home, {("theme",): "linen"}, accept=never)
    assert file.read_text() == TEXT


@pytest.mark.parametrize("broken", ["theme = 3", "[retry]\nmax = 1", "model = "])
def test_a_broken_file_is_not_mended_by_the_way(home: Folders, file: Path, broken: str) -> None:
    file.write_text(broken)
    with pytest.raises(ConfigError):
        set_user_value(home, "theme", "linen")
    assert file.read_text() == broken


def test_a_read_only_file_is_left_alone(home: Folders, file: Path) -> None:
    file.chmod(0o444)
    with pytest.raises(StorageError, match="it is read-only"):
        set_user_value(home, "theme", "linen")
    assert file.read_text() == TEXT


def test_a_full_disk_leaves_the_file_as_it_was(
    home: Folders, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tui.core.files.os.fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        set_user_value(home, "theme", "linen")
    assert file.read_text() == TEXT
    assert [path.name for path in home.config.iterdir()] == ["config.toml"]


# Taking back


def test_an_edit_is_taken_back_byte_for_byte(home: Folders, file: Path) -> None:
    file.write_bytes(TEXT.replace("\n", "\r\n").encode())
    before = file.read_bytes()
    edit = change_settings(home, {("permissions", "allow"): ["a"], ("model",): None})
    assert edit is not None
    assert file.read_bytes() != before
    take_back(home, edit)
    assert file.read_bytes() == before


def test_the_first_edit_is_taken_back_with_the_file(home: Folders) -> None:
    edit = change_settings(home, {("theme",): "linen"})
    assert edit is not None
    take_back(home, edit)
    assert not home.config_file.exists()


def test_what_was_changed_since_is_not_taken_back(home: Folders, file: Path) -> None:
    edit = change_settings(home, {("theme",): "linen"})
    assert edit is not None
    file.write_text(file.read_text() + "# mine\n")
    with pytest.raises(ConfigError, match="changed since"):
        take_back(home, edit)
    assert file.read_text().endswith("# mine\n")


def test_nothing_to_change_is_no_edit(home: Folders, file: Path) -> None:
    assert change_settings(home, {("model",): "mine", ("theme",): None}) is None
    assert file.read_text() == TEXT


# Whatever the file looks like

_COMMENT = st.text("abc =[]\"'#é漢", max_size=12).map(lambda text: f"# {text}")
_NAME = st.text("abc-", min_size=1, max_size=6)
_SET: dict[tuple[str, ...], st.SearchStrategy[Any]] = {
    ("model",): _NAME,
    ("theme",): _NAME,
    ("fallback_models",): st.lists(_NAME, max_size=3),
    ("context_window",): st.integers(0, 9**9),
    ("retry", "max_attempts"): st.integers(0, 99),
    ("retry", "stall_timeout_s"): st.integers(1, 86_400),
    ("compaction", "threshold"): st.floats(0.01, 1),
    ("compaction", "memory_flush"): st.booleans(),
    ("guard", "bytes", "grep_search"): st.integers(1, 10**6),
    ("permissions", "deny"): st.lists(_NAME, max_size=4),
    ("prices", "a.b", "input"): st.floats(0, 100),
    ("prices", "a.b", "output"): st.floats(0, 100),
}


@st.composite
def documents(draw: st.DrawFn) -> list[tuple[tuple[str, ...] | None, str]]:
    """The lines of a file, each with the key that it sets."""
    end = draw(st.sampled_from(["\n", "\r\n"]))
    chosen = draw(st.lists(st.sampled_from(sorted(_SET)), unique=True))
    sections: dict[tuple[str, ...], list[tuple[str, ...]]] = {(): []}
    for key in chosen:
        sections.setdefault(key[:-1], []).append(key)
    lines: list[tuple[tuple[str, ...] | None, str]] = []

    def other() -> None:
        more = draw(st.lists(_COMMENT | st.just(""), max_size=3))
        lines.extend((None, text + end) for text in more)

    for section, keys in sections.items():
        other()
        if section:
            head = ".".join(f'"{part}"' if "." in part else part for part in section)
            lines.append((None, f"[{head}]{draw(st.sampled_from(['', '  # head']))}{end}"))
        for key in keys:
            other()
            value = json.dumps(draw(_SET[key]))
            tail = draw(st.sampled_from(["", "  # beside"]))
            lines.append((key, f"{key[-1]} = {value}{tail}{end}"))
    other()
    return lines


@settings(deadline=None)
@given(documents(), st.data())
def test_an_edit_keeps_every_comment_and_every_other_key_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[tuple[tuple[str, ...] | None, str]],
    choice: st.DataObject,
) -> None:
    home = folders({"HOLDFAST_HOME": str(tmp_path_factory.mktemp("home"))})
    home.config.mkdir(parents=True)
    home.config_file.write_bytes("".join(text for _, text in lines).encode())
    key = choice.draw(st.sampled_from(sorted(_SET)))
    value = choice.draw(st.none() | _SET[key])
    before = data(home.config_file)
    edit = change_settings(home, {key: value})
    text = home.config_file.read_bytes().decode()
    found = _at(data(home.config_file), key)
    assert found == value
    at = next((n for n, (own, _) in enumerate(lines) if own == key), None)
    if at is None:
        _assert_only_added("".join(each for _, each in lines), text, added=value is not None)
    elif value is None:
        alone = (
            len(key) > 2 and sum(own is not None and own[:-1] == key[:-1] for own, _ in lines) == 1
        )
        rest = [
            each
            for n, (_, each) in enumerate(lines)
            if n != at and not (alone and each.startswith(f"[{'.'.join(key[:1])}."))
        ]
        assert text == "".join(rest)
    else:
        head = "".join(each for _, each in lines[:at])
        tail = "".join(each for _, each in lines[at + 1 :])
        assert text.startswith(head)
        assert text.endswith(tail)
        changed = text[len(head) : len(text) - len(tail)]
        assert ("# beside" in lines[at][1]) == ("# beside" in changed)
        assert changed.count("\n") == 1 or isinstance(value, list)
    if edit is not None:
        take_back(home, edit)
        assert data(home.config_file) == before


def _at(table: dict[str, Any], key: tuple[str, ...]) -> Any:
    found: Any = table
    for part in key:
        found = found.get(part) if found else None
    return found


def _assert_only_added(before: str, after: str, *, added: bool) -> None:
    """Whatever stood there stands there still, in one or two pieces."""
    if not added:
        assert after == before
        return
    cut = next((n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), None)
    cut = min(len(before), len(after)) if cut is None else cut
    for place in range(cut, -1, -1):
        if after.endswith(before[place:]):
            return
    pytest.fail(f"{before!r} became {after!r}")
