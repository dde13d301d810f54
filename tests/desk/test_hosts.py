"""The machines on the desk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.desk_world import home_in
from tui.core.errors import UsageError
from tui.desk.hosts import hosts_of
from tui.settings import bare


def test_a_machine_that_is_named_twice_is_there_once(tmp_path: Path) -> None:
    hosts = hosts_of(home_in(tmp_path), ["box", "ssh://box", "ssh://box/", "ann@box", "box"])
    assert [host.name for host in hosts] == ["", "box", "ann@box"]


@pytest.mark.parametrize(
    "name",
    [
        *(
            "-oProxyCommand=touch x",
            "ssh://-oProxyCommand=x",
            "a;b",
            "$(x)",
            "a b",
            "",
            "a\n",
            "@a",
        ),
        *("-l@box", "box:0", "box:70000", "box:-p", "[::1", "box/x", "ann@-x"),
    ],
)
def test_a_name_that_ssh_or_a_shell_could_take_for_something_else_is_refused(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(UsageError):
        hosts_of(home_in(tmp_path), [name])


def test_the_settings_of_a_folder_name_no_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    (project / ".holdfast").mkdir(parents=True)
    (project / ".holdfast" / "config.toml").write_text('[desk]\nhosts = ["evil"]\n')
    monkeypatch.chdir(project)
    assert [host.name for host in hosts_of(home_in(tmp_path))] == [""]


@pytest.mark.parametrize("broken", ['theme = "no', "[desk\n", "pruning = 3", "\xff"])
def test_broken_settings_lose_no_machine_that_can_be_read(tmp_path: Path, broken: str) -> None:
    home = home_in(tmp_path)
    home.config_file.parent.mkdir(parents=True, exist_ok=True)
    text = f'{broken}\n[desk]\nhosts = ["box"]\n'
    home.config_file.write_bytes(text.encode("latin-1"))
    assert [host.name for host in hosts_of(home)] == ["", "box"]
    _, (notice, *_) = bare.own(home)
    assert "not applied, because" in notice
