"""Profiles in the settings: which one is used, what it changes, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.settings.test_layers import load_all, write
from tui.core.errors import ConfigError, CredentialsError
from tui.core.paths import Folders, folders
from tui.settings import credentials, edit, schema
from tui.settings.layers import check_own, own_prices, parse, project_file
from tui.settings.profiles import Profile
from tui.settings.sign_in import SignIn

TWO = """
model = "mine"
base_url = "http://127.0.0.1:1"

[retry]
max_attempts = 1

[profile.work]
model = "work-model"
base_url = "http://127.0.0.1:2"

[profile.work.retry]
max_attempts = 7

[profile."odd. \\"name"]
key_from = "default"
"""


@pytest.fixture
def home(tmp_path: Path) -> Folders:
    return folders({"HOLDFAST_HOME": str(tmp_path / "home")})


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "work" / ".holdfast").mkdir(parents=True)
    return tmp_path / "work"


def use(home: Folders, text: str) -> None:
    write(home.config_file, text)


def test_without_a_profile_nothing_of_one_counts(home: Folders, workspace: Path) -> None:
    use(home, TWO)
    loaded = load_all(home, workspace)
    assert (loaded.config.model, loaded.config.profile) == ("mine", "")
    assert loaded.profiles == ("work", 'odd. "name')
    assert loaded.profile == Profile()


def test_a_profile_is_over_the_persons_settings_and_below_the_rest(
    home: Folders, workspace: Path
) -> None:
    use(home, TWO)
    write(project_file(workspace), "[retry]\ninitial_delay_ms = 5\n[compaction]\nthreshold = 0.5\n")
    loaded = load_all(home, workspace, overrides={"profile": "work", "model": "typed"})
    assert (loaded.config.model, loaded.config.profile) == ("typed", "work")
    assert (loaded.config.retry.max_attempts, loaded.config.retry.initial_delay_ms) == (7, 5)
    assert loaded.sources["retry.max_attempts"].endswith("[profile.work]")
    assert loaded.config.compaction.threshold == 0.5


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ({"option": "work", "session": "default", "variable": "b", "folder": "b"}, "work"),
        ({"option": "default", "session": "work", "own": "work"}, ""),
        ({"session": "work", "variable": "b", "folder": "b", "own": "b"}, "work"),
        ({"session": "default", "variable": "work", "own": "work"}, ""),
        ({"variable": "work", "folder": "b", "own": "b"}, "work"),
        ({"folder": "work", "own": "b"}, "work"),
        ({"folder": "default", "own": "b"}, ""),
        ({"own": "work"}, "work"),
        ({}, ""),
    ],
)
def test_the_first_that_names_one_counts(
    home: Folders, workspace: Path, given: dict[str, str], used: str
) -> None:
    own = f'default_profile = "{given["own"]}"\n' if "own" in given else ""
    use(home, f"{own}[profile.work]\n[profile.b]\n")
    if "folder" in given:
        write(project_file(workspace), f'profile = "{given["folder"]}"\n')
    loaded = load_all(
        home,
        workspace,
        env={"HOLDFAST_PROFILE": given.get("variable", "")},
        overrides={"profile": given["option"]} if "option" in given else {},
        session=given.get("session", ""),
    )
    assert loaded.config.profile == loaded.profile.name == used


def test_a_folder_chooses_one_only_once_it_is_trusted(home: Folders, workspace: Path) -> None:
    use(home, "[profile.work]\n")
    write(project_file(workspace), 'profile = "work"\n')
    loaded = load_all(home, workspace, trusted=False)
    assert loaded.config.profile == ""
    assert [(one.key, "trusted" in one.reason) for one in loaded.ignored] == [("profile", True)]


def test_a_folder_brings_none(home: Folders, workspace: Path) -> None:
    use(home, "[profile.work]\nmodel = 'mine'\n")
    write(project_file(workspace), "default_profile = 'work'\n[profile.work]\nmodel = 'evil'\n")
    loaded = load_all(home, workspace, overrides={"profile": "work"})
    assert loaded.config.model == "mine"
    assert [one.key for one in loaded.ignored] == ["profile", "default_profile"]
    assert load_all(home, workspace).config.profile == ""


def test_what_a_profile_says_of_its_server_no_folder_and_no_variable_changes(
    home: Folders, workspace: Path
) -> None:
    use(home, TWO)
    write(project_file(workspace), 'base_url = "http://127.0.0.1:3"\n')
    env = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:4"}
    loaded = load_all(home, workspace, env=env, overrides={"profile": "work"})
    assert loaded.config.base_url == "http://127.0.0.1:2"
    assert not loaded.foreign_server
    assert [one.key for one in loaded.ignored] == ["base_url"]
    other = load_all(home, workspace, env=env, overrides={"profile": 'odd. "name'})
    assert other.config.base_url == "http://127.0.0.1:4", "this one names no server"


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ("[profile.a]\nmodle = 'x'\n", "profile.a.modle", "known key"),
        ("[profile.a.retry]\nmax_attemps = 1\n", "profile.a.retry.max_attemps", "known key"),
        ("[profile.a]\nkey_form = 'own'\n", "profile.a.key_form", "known key"),
        ("[profile.a]\nkey_from = 'b'\n", "profile.a.key_from", '"default" or "none" or "own"'),
        ("[profile.a]\nprofile = 'b'\n[profile.b]\n", "profile.a.profile", "can't be set in"),
        ("[profile.a]\ndefault_profile = 'a'\n", "profile.a.default_profile", "can't be set in"),
        ("[profile.a]\nplain = true\n", "profile.a.plain", "can't be set in"),
        ("[profile.a.keys]\nnothing = 'x'\n", "profile.a.keys.nothing", ""),
        ("[profile.default]\n", "profile.default", "default is what there is"),
        ('[profile.""]\n', 'profile.""', "has no name"),
        ('[profile." a"]\n', 'profile." a"', "can't be a profile"),
        ('[profile."a\\u001b"]\n', 'profile."a\\u001b"', "can't be a profile"),
        ("[profile]\na = 1\n", "profile.a", "isn't a table"),
        ("profile = 'work'\n", "profile", "[profile.NAME]"),
        ("default_profile = 'x'\n[profile.y]\n", "", "no profile x"),
        ("default_profile = 5\n", "default_profile", "text in quotes"),
    ],
)
def test_a_wrong_profile_is_named_with_what_is_wrong(
    home: Folders, workspace: Path, text: str, key: str, says: str
) -> None:
    use(home, text)
    with pytest.raises(ConfigError) as caught:
        load_all(home, workspace, overrides={"profile": "default"})
    assert caught.value.key == key
    assert says in caught.value.message
    assert "config.toml" in caught.value.message


def test_near_names_are_suggested(home: Folders, workspace: Path) -> None:
    use(home, "[profile.a]\nkey_form = 'own'\n")
    with pytest.raises(ConfigError) as caught:
        load_all(home, workspace)
    assert caught.value.hint == "Did you mean key_from?"
    use(home, "[profile.work]\n")
    for option, variable in (("wrok", ""), ("", "wrok")):
        env, overrides = {"HOLDFAST_PROFILE": variable}, {"profile": option}
        with pytest.raises(ConfigError, match="there is no profile wrok") as caught:
            load_all(home, workspace, env=env, overrides=overrides)
        assert caught.value.hint == "Did you mean work?"
    with pytest.raises(ConfigError, match="this session: there is no profile gone") as caught:
        load_all(home, workspace, session="gone")
    assert "Available: work, default." in caught.value.hint
    assert "--profile" in caught.value.hint


def test_a_name_and_tables_under_one_key_are_explained(home: Folders, workspace: Path) -> None:
    use(home, "profile = 'a'\n[profile.a]\n")
    with pytest.raises(ConfigError, match="not valid TOML") as caught:
        load_all(home, workspace)
    assert "default_profile" in caught.value.hint


def test_two_keys_that_depend_on_each_other_may_be_in_two_tables(
    home: Folders, workspace: Path
) -> None:
    use(home, "[retry]\ninitial_delay_ms = 10\n[profile.a.retry]\nmax_delay_ms = 20\n")
    assert load_all(home, workspace).config.retry.initial_delay_ms == 10
    use(home, "[retry]\ninitial_delay_ms = 30\n[profile.a.retry]\nmax_delay_ms = 20\n")
    with pytest.raises(ConfigError, match=r"profile\.a\.retry\.max_delay_ms"):
        load_all(home, workspace)


def test_prices_are_known_by_profile(home: Folders) -> None:
    use(home, "[prices.m]\ninput = 1.0\n[profile.a.prices.m]\ninput = 2.0\n[profile.b]\n")
    prices = own_prices(home, {})
    assert {name: price["m"].input for name, price in prices.items()} == {"": 1.0, "a": 2.0}


# What the settings screen shows and writes


def rows_of(home: Folders, workspace: Path, profile: str) -> dict[str, schema.Setting]:
    loaded = load_all(home, workspace, overrides={"profile": profile})
    return {row.name: row for row in schema.table(loaded)}


def test_a_row_names_the_profile_and_a_change_is_written_to_it(
    home: Folders, workspace: Path
) -> None:
    use(home, TWO)
    rows = rows_of(home, workspace, "work")
    model = rows["model"]
    assert (model.shown, model.origin, model.own) == ("work-model", "profile work", "work-model")
    assert "Profile work sets it" in model.notes[0]
    assert rows["profile"].shown == "work"
    assert rows["default_profile"].options == ("", "work", 'odd. "name')
    edit.change_settings(home, edit.changes_of_text(model, "other"))
    edit.change_settings(home, edit.changes_of_text(rows["effort"], "low"))
    after = parse(home.config_file.read_bytes(), home.config_file)
    assert (after["model"], after["profile"]["work"]["model"]) == ("mine", "other")
    assert after["effort"] == "low", "the profile doesn't set it"
    edit.change_settings(home, edit.changes_to_default(model))
    assert rows_of(home, workspace, "work")["model"].origin == "your file"


def test_a_profile_that_loses_its_last_key_is_still_one(home: Folders, workspace: Path) -> None:
    use(home, "[profile.work]\nmodel = 'x'\n")
    edit.change_settings(home, {("profile", "work", "model"): None})
    assert load_all(home, workspace, overrides={"profile": "work"}).config.profile == "work"


def test_without_profiles_there_is_nothing_to_choose(home: Folders, workspace: Path) -> None:
    row = rows_of(home, workspace, "default")["default_profile"]
    assert (row.kind, row.shown) == ("fixed", "none")


def test_a_choice_of_a_profile_that_is_not_there_is_not_written(home: Folders) -> None:
    use(home, "[profile.work]\n")
    with pytest.raises(ConfigError, match="no profile gone"):
        edit.set_user_value(home, "default_profile", "gone")
    check_own(parse(home.config_file.read_bytes(), home.config_file), "f")


# Keys


OWN = "sk-" + "o" * 30
WORK = "sk-" + "w" * 30
ENV = "sk-" + "e" * 30
SERVER = "http://127.0.0.1:2"


def find(env: dict[str, str], profile: Profile, url: str = SERVER) -> credentials.Credential | None:
    return credentials.find_credential(env, folders(env), url, profile=profile)


def test_a_profile_has_its_own_key_and_no_other(tmp_path: Path) -> None:
    env = {"HOLDFAST_HOME": str(tmp_path / "home"), "ANTHROPIC_API_KEY": ENV}
    env["ANTHROPIC_BASE_URL"] = SERVER
    home = folders(env)
    work, other = Profile("work", "--profile"), Profile("other", "--profile")
    credentials.store_key(OWN, SERVER, env=env, folders=home)
    assert find(env, work) is None, "neither the stored key nor the environment's"
    credentials.store_key(WORK, SERVER, env=env, folders=home, profile="work")
    assert find(env, work) == credentials.ApiKey(WORK, "file")
    assert find(env, other) is None
    assert find(env, work, "http://127.0.0.1:9") is None, "it is for its server only"
    assert find(env, Profile()) == credentials.ApiKey(ENV, "environment")
    usual = Profile("other", "--profile", key_from="default")
    assert find(env, usual) == credentials.ApiKey(ENV, "environment")
    assert find(env, Profile("work", "--profile", key_from="none")) is None
    credentials.forget_key(SERVER, env=env, folders=home, profile="work")
    assert find(env, work) is None
    assert find({"HOLDFAST_HOME": env["HOLDFAST_HOME"]}, Profile()) == (
        credentials.ApiKey(OWN, "file")
    )


def test_names_that_look_alike_have_keys_of_their_own(tmp_path: Path) -> None:
    env = {"HOLDFAST_HOME": str(tmp_path / "home")}
    names = ["a", "a b", 'a" http://127.0.0.1:2', "a.b", "ä", "profile a"]
    for number, name in enumerate(names):
        key = f"sk-{number}" + "k" * 30
        credentials.store_key(key, SERVER, env=env, folders=folders(env), profile=name)
    found = [find(env, Profile(name, "x")) for name in names]
    assert [getattr(one, "key", "")[:4] for one in found] == [f"sk-{n}" for n in range(len(names))]


def test_a_profile_may_name_a_sign_in(tmp_path: Path, own_folders: Path) -> None:
    from tests.support.profile import write_profile  # noqa: PLC0415 - for this one

    write_profile(own_folders / "anthropic", "office")
    write_profile(own_folders / "anthropic", "gateway", base_url=SERVER)
    env = {
        "HOLDFAST_HOME": str(tmp_path / "home"),
        "ANTHROPIC_CONFIG_DIR": str(own_folders / "anthropic"),
        "ANTHROPIC_PROFILE": "gateway",
    }
    assert find(env, Profile("work", "x", sign_in="office"), "") == SignIn("office")
    assert find(env, Profile("work", "x"), "") is None, "the environment's is not the profile's"
    with pytest.raises(CredentialsError, match="for another server"):
        find(env, Profile("work", "x", sign_in="office"))
    with pytest.raises(CredentialsError, match="the sign-in gone"):
        find(env, Profile("work", "x", sign_in="gone"), "")


def test_any_setting_fits_into_a_profile(home: Folders, workspace: Path) -> None:
    """Also those that say how a provider is reached, whatever they will be."""
    use(home, "[profile.a.provider]\nmax_output = 5\n[profile.a.mcp.x]\ncommand = 'y'\n")
    write(project_file(workspace), "[provider]\nmax_output = 9\n")
    loaded = load_all(home, workspace, overrides={"profile": "a"})
    assert loaded.config.provider.max_output == 5, "who is asked is the profile's to say"
    assert "x" in loaded.config.mcp


def test_a_profile_pays_the_price_of_its_own_cloud(home: Folders) -> None:
    clouds = '[profile.google.provider]\nkind = "vertex"\n[profile.none.provider]\n'
    head = '[provider]\nkind = "bedrock"\nregion = "eu-west-1"\n'
    use(home, f'{head}{clouds}kind = "anthropic"\n[profile.same]\nvim = true\n')
    times = {
        name: prices["*"].times if "*" in prices else None
        for name, prices in own_prices(home, {}).items()
    }
    assert times == {"": 1.1, "google": None, "none": None}  # on Google Cloud, global


@pytest.mark.parametrize(("mine", "other"), [("vertex", "anthropic"), ("anthropic", "vertex")])
def test_a_profile_of_another_kind_doesnt_take_the_server_along(
    home: Folders, workspace: Path, mine: str, other: str
) -> None:
    head = f'base_url = "https://one.example"\n[provider]\nkind = "{mine}"\nregion = "eu"\n'
    use(home, f'{head}[profile.p.provider]\nkind = "{other}"\n')
    given: dict[str, Any] = {"overrides": {"profile": "p"}}
    assert load_all(home, workspace).config.base_url == "https://one.example"
    loaded = load_all(home, workspace, **given)
    provider = loaded.config.provider
    assert (provider.kind, provider.region, loaded.config.base_url) == (other, "", "")
    own = '[profile.p]\nbase_url = "https://two.example"\n[profile.p.provider]\n'
    use(home, f'{head}{own}kind = "{other}"\n')
    assert load_all(home, workspace, **given).config.base_url == "https://two.example"
    same = f'[profile.p.provider]\nkind = "{mine}"\n'
    use(home, f"{head}{same}")
    assert load_all(home, workspace, **given).config.base_url == "https://one.example"
