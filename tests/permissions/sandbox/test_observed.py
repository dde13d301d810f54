"""A plan that is used again: only where a new one would be the same, whatever changed meanwhile."""

from __future__ import annotations

import os
import shutil
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.permissions.sandbox.conftest import Scene
from tui.permissions.sandbox import walls as planning
from tui.permissions.sandbox.observed import Observed
from tui.permissions.sandbox.walls import Level, Walls, plan, prepare

LEVELS = [Level.READ_ONLY, Level.WORKSPACE]
PLACES = (
    "home/.local", "home/.local/bin", "home/.ssh", "home/.netrc", "home/.zsh_history", "home/go",
    "home/.cargo", "home/.cargo/bin", "home/.cargo/credentials.toml", "w", "w/.git", "w/.git/hooks",
    "w/.git/config", "w/secret", "w/deep", "w/deep/denied", "tools", "tools/bin",
    "tools/pyvenv.cfg", "run/socket", "added", "added/link",
)  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def _alone() -> Iterator[None]:
    """Other programs of this machine come and go, and a plan looks at their folders."""

    def none(_: str) -> frozenset[str]:
        return frozenset()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "_working_folders", none)
        yield


def walls_at(base: Path) -> Walls:
    inside = {name: base / "w" / name for name in ("secret", ".git", "deep/denied")}
    return Walls(
        workspace=base / "w", session=base / "s", cache=base / "c", home=base / "home",
        search_path=f"{base}/tools/bin:/usr/bin", added=(base / "added",), git=(inside[".git"],),
        protected=(inside[".git"] / "hooks", inside[".git"] / "config"), hidden=(inside["secret"],),
        denied=(inside["deep/denied"],), opened=(base / "home/.ssh/open",),
        sockets=(base / "run/socket",),
    )  # fmt: skip


def _made(base: Path, kind: str, place: Path, other: Path) -> None:
    """Change one place: what cannot be done is left."""
    with suppress(OSError):
        match kind:
            case "folder":
                place.mkdir(parents=True)
            case "file":
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text("x")
            case "link":
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(other)
            case "moved":
                other.parent.mkdir(parents=True, exist_ok=True)
                place.rename(other)
            case _:
                if place.is_dir() and not place.is_symlink():
                    shutil.rmtree(place)
                else:
                    place.unlink()


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["folder", "file", "link", "moved", "gone"]),
        st.sampled_from(PLACES),
        st.sampled_from(PLACES),
    ),
    max_size=12,
)


@settings(max_examples=150)
@given(CHANGES, CHANGES, st.sampled_from(LEVELS))
def test_a_plan_that_still_holds_is_the_plan_of_now(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[tuple[str, str, str]],
    meanwhile: list[tuple[str, str, str]],
    level: Level,
) -> None:
    base = tmp_path_factory.mktemp("plan")
    walls, observed = walls_at(base), Observed()
    for kind, place, other in before:
        _made(base, kind, base / place, base / other)
    made = plan(walls, level, observed)
    assert observed.hold()
    for kind, place, other in meanwhile:
        _made(base, kind, base / place, base / other)
    assert not observed.hold() or plan(walls, level) == made
    shutil.rmtree(base)


def _new_secret(scene: Scene) -> None:
    (scene.walls.home / ".config/git").mkdir(parents=True)
    (scene.walls.home / ".config/git/credentials").write_text("password")


def _new_protected(scene: Scene) -> None:
    (scene.workspace / ".git/config.worktree").write_text("[core]")


def _swapped(scene: Scene) -> None:
    (scene.workspace / "kept").rename(scene.workspace / "other")
    (scene.workspace / "kept").symlink_to("other")


def _new_socket(scene: Scene) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(scene.workspace / "agent"))
    scene.listeners.append(listener)


@pytest.mark.parametrize("change", [_new_secret, _new_protected, _swapped, _new_socket])
def test_what_needs_another_wall_is_seen(scene: Scene, change: Callable[[Scene], None]) -> None:
    kept = scene.workspace / "kept"
    kept.mkdir()
    walls = replace(scene.walls, protected=(kept, scene.workspace / ".git/config.worktree"))
    prepare(walls)
    observed = Observed()
    made = plan(walls, Level.WORKSPACE, observed)
    change(scene)
    assert plan(walls, Level.WORKSPACE) != made
    assert not observed.hold()


def test_a_place_is_looked_at_once_however_much_is_asked_of_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hundreds of looks were most of what a command behind known walls cost."""
    prepare(scene.walls)
    observed = Observed()
    plan(scene.walls, Level.WORKSPACE, observed)
    looks = Counter[str]()
    stat, lstat = os.stat, os.lstat

    def counted(look: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def counting(path: str, **options: object) -> os.stat_result:
            looks[path] += 1
            return look(path, **options)

        return counting

    monkeypatch.setattr(os, "stat", counted(stat))
    monkeypatch.setattr(os, "lstat", counted(lstat))
    observed.hold()  # not if another program has made a socket meanwhile
    monkeypatch.undo()
    assert len(looks) > 50
    assert looks.total() < 1.2 * len(looks)


def test_what_links_lead_to_is_seen_too(tmp_path: Path) -> None:
    link, gone, target = tmp_path / "link", tmp_path / "gone", tmp_path / "target"
    target.mkdir()
    link.symlink_to("target")
    gone.symlink_to("nowhere")
    observed = Observed()
    assert observed.is_link(link)
    assert observed.is_dir(str(link))
    assert observed.is_link(gone)
    assert not observed.exists(str(gone))
    assert not observed.is_file("a\0b")
    assert observed.hold()
    target.rmdir()
    target.write_text("a file now")
    assert not observed.hold()
