"""Links of paths are followed as the system does, and those of a shared folder once."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tui.permissions.path_risk import RealPaths, real_path

NAMES = ("a", "b", "c")
PARTS = st.lists(st.sampled_from([*NAMES, "..", "."]), min_size=1, max_size=5).map("/".join)
MADE = st.lists(
    st.tuples(PARTS, st.sampled_from(["folder", "file", "link", "absolute link"]), PARTS),
    max_size=10,
)


def make(top: Path, made: list[tuple[str, str, str]]) -> None:
    """Make what can be made of folders, files and links, which may lead anywhere below the top."""
    for name, kind, target in made:
        place = Path(os.path.normpath(f"{top}/x/{name}"))
        if top not in place.parents:
            continue
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            match kind:
                case "folder":
                    place.mkdir()
                case "file":
                    place.write_text("")
                case "link":
                    place.symlink_to(target)
                case _:
                    place.symlink_to(f"{top}/x/{target}")
        except OSError:
            pass  # something else is there


@given(MADE, st.lists(PARTS, min_size=1, max_size=6))
@example([("b", "link", "b/..")], ["b/b"])
@example([("../a", "absolute link", ".."), (".", "link", "a")], ["a"])
@example([("a", "link", "c"), ("a/b", "file", "")], ["a/b", "a/../b"])
def test_it_follows_the_links_of_any_tree(
    made: list[tuple[str, str, str]], asked: list[str]
) -> None:
    with TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        make(top, made)
        paths = RealPaths()
        for name in asked:
            path = Path(f"{top}/x/{name}")
            assert paths.of(path) == real_path(path), name


def test_a_folder_that_is_a_link_is_followed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    looked: list[str] = []
    lstat = os.lstat

    def counted(path: str) -> os.stat_result:
        looked.append(path)
        return lstat(path)

    monkeypatch.setattr(os, "lstat", counted)
    paths = RealPaths()
    assert paths.of(tmp_path / "link" / "a") == tmp_path / "real" / "a"
    assert paths.of(tmp_path / "link" / "b") == tmp_path / "real" / "b"
    assert looked.count(f"{tmp_path}/link") <= 2  # once here, and once where links are followed
