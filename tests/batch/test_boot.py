"""The boot file of a run: A6 to A10."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.batch.plan import Boot, find_boot
from tui.batch.taskfile import parse
from tui.core.errors import UsageError
from tui.settings.trust import Trust

TRUST = Trust(everything=True)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "target"
    (folder / ".holdfast").mkdir(parents=True)
    return folder


def put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("Begin.\n")
    return path


def test_A6_A9_the_directive_wins_then_the_usual_places(target: Path):
    tasks = target / "TASKS.md"
    assert find_boot("", tasks, target, TRUST) == Boot()
    put(target / ".agent-loop" / "boot.md")
    assert find_boot("", tasks, target, TRUST).shown == ".agent-loop/boot.md"
    put(target / ".holdfast" / "boot.md")
    assert find_boot("", tasks, target, TRUST).shown == ".holdfast/boot.md"
    own = put(target / "docs" / "start.md")
    directive = parse(b"<!-- boot: docs/start.md -->\n## g\n- a\n").boot
    assert find_boot(directive, tasks, target, TRUST) == Boot(own, "docs/start.md")


def test_A7_a_directive_after_the_first_group_is_ignored():
    assert parse(b"## g\n<!-- boot: x.md -->\n- a\n").boot == ""


def test_A10_beside_the_task_file_first_then_in_the_target(target: Path, tmp_path: Path):
    tasks = tmp_path / "lists" / "TASKS.md"
    in_target = put(target / "boot.md")
    assert find_boot("boot.md", tasks, target, TRUST).named == in_target
    beside = put(tasks.parent / "boot.md")
    found = find_boot("boot.md", tasks, target, TRUST)
    assert found.named == beside
    assert found.shown.endswith("lists/boot.md")


@pytest.mark.parametrize(
    "directive", ["../secret.md", "/etc/hostname", "link.md", "sub/../../secret.md"]
)
def test_A10_it_must_stay_inside(target: Path, tmp_path: Path, directive: str):
    put(tmp_path / "secret.md")
    (target / "link.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(UsageError, match="outside the project"):
        find_boot(directive, target / "TASKS.md", target, TRUST)


@pytest.mark.parametrize("directive", ["nowhere.md", "a\0b"])
def test_A10_a_missing_file_is_an_error(target: Path, directive: str):
    with pytest.raises(UsageError, match="doesn't exist"):
        find_boot(directive, target / "TASKS.md", target, TRUST)


def test_A10_a_folder_is_no_boot_file(target: Path):
    (target / "docs").mkdir()
    with pytest.raises(UsageError, match="Can't read"):
        find_boot("docs", target / "TASKS.md", target, TRUST)


def test_a_link_out_of_the_project_is_no_boot_file(target: Path, tmp_path: Path):
    (target / ".holdfast" / "boot.md").symlink_to(put(tmp_path / "secret.md"))
    assert find_boot("", target / "TASKS.md", target, TRUST) == Boot()


def test_30_a_boot_file_that_nobody_trusted_is_shown_and_left_out(target: Path):
    put(target / ".holdfast" / "boot.md")
    found = find_boot("", target / "TASKS.md", target, Trust())
    assert found == Boot(shown=".holdfast/boot.md (left out: not trusted, see --trust)")
