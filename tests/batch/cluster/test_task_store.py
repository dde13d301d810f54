"""The store of a run in a real bare repository: refs moved by one of many, and files kept."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.batch.test_git import git, head, make_repo
from tui.batch.cluster.entry import EntryError, TaskEntry, entry_of
from tui.batch.cluster.task_store import TASKS, StoreError, TaskStore, whole_address

REF = f"{TASKS}run/00001"


@pytest.fixture(params=["here", "far"])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> TaskStore:
    made = TaskStore.at(str(tmp_path / "store.git"), tmp_path / "mirror")
    made.make()
    return far(made, tmp_path / "far") if request.param == "far" else made


def far(store: TaskStore, folder: Path) -> TaskStore:
    """A store as another machine has it: what is read of it lies in a mirror."""
    folder.mkdir()
    git(folder, "init", "-q", "--bare", "mirror.git")
    return TaskStore(store.address, folder / "mirror.git")


def first(store: TaskStore) -> str:
    commit = store.commit(TaskEntry(key="00001").to_message(), files={"a/b": b"1\n"})
    assert store.move({REF: ("", commit)})
    return commit


def test_of_many_who_move_a_ref_one_succeeds(store: TaskStore, tmp_path: Path) -> None:
    begun = first(store)

    def take(number: int) -> bool:
        mine = store if number % 2 else far(store, tmp_path / f"mirror{number}")
        mine.fetch([begun])
        entry = TaskEntry(key="00001", state="running", holder=f"{number}")
        return mine.move({REF: (begun, mine.commit(entry.to_message(), upon=begun))})

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(take, range(4))) == [False, False, False, True]


def test_several_refs_move_together_or_not_at_all(store: TaskStore) -> None:
    begun = first(store)
    other = store.commit(TaskEntry(key="00002").to_message())
    next_ = store.commit(TaskEntry(key="00001", number=1).to_message(), upon=begun)
    stale = store.commit(TaskEntry(key="00001", number=2).to_message(), upon=begun)
    assert store.move({REF: (begun, next_)})
    assert not store.move({f"{TASKS}run/00002": ("", other), REF: (begun, stale)})
    assert store.refs() == {REF: next_}


def test_a_state_has_the_files_of_the_one_before_and_the_changes(store: TaskStore) -> None:
    begun = first(store)
    odd = {"a/b": None, 'odd "name"\n\\': b"\xff\x00", "c": b""}
    after = store.commit("x", upon=begun, files=odd)
    assert sorted(store.files(after)) == ["c", 'odd "name"\n\\']
    assert store.read(after, 'odd "name"\n\\') == b"\xff\x00"
    assert store.parents(after) == [begun]


def test_work_of_another_repository_goes_along(store: TaskStore, tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    begun = first(store)
    store.bring([head(repo)], repo)
    after = store.commit("x", upon=begun, works=[head(repo)])
    assert store.move({REF: (begun, after)})
    other = far(store, tmp_path / "elsewhere")
    other.fetch([after])
    assert list(other.files(other.parents(after)[1], "dir/")) == ["dir/b.txt"]


def test_a_move_that_landed_before_the_connection_was_lost_counts(
    store: TaskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = first(store)
    after = store.commit("x", upon=begun)
    real = TaskStore._git  # pyright: ignore[reportPrivateUsage]

    def lossy(self: TaskStore, *words: str, **given: Any) -> str:
        said = real(self, *words, **given)
        if words[0] in {"push", "update-ref"}:
            raise StoreError("the connection was closed")
        return said

    monkeypatch.setattr(TaskStore, "_git", lossy)
    assert store.move({REF: (begun, after)})


def test_a_store_that_is_gone_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    store = TaskStore.at(str(tmp_path / "none.git"), tmp_path / "mirror")
    with pytest.raises(StoreError) as error:
        store.refs()
    assert "git init --bare" in error.value.hint


def test_a_full_folder_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    with pytest.raises(StoreError, match="isn't empty"):
        TaskStore.at(str(tmp_path / "full"), tmp_path / "mirror").make()
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["file"]


@pytest.mark.parametrize("address", ["https://host/x.git", "ext::sh -c x", "git://h/x"])
def test_only_paths_and_ssh_are_addresses(address: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        TaskStore.at(whole_address(address), tmp_path / "mirror").refs()


def test_what_is_no_task_is_refused() -> None:
    with pytest.raises(EntryError):
        entry_of("holdfast: task\n\n{}")
    entry = TaskEntry(key="1", state="running", ended="a\n\nb")
    assert entry_of(entry.to_message()) == entry


def test_the_store_can_be_read_by_git_alone(store: TaskStore) -> None:
    first(store)
    said = git(Path(store.address), "log", "-1", "--format=%s", REF)
    assert said == "holdfast: task 00001 is waiting, attempt 0\n"
