"""A session as one file: on another machine it is what it was, or nothing is written."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import zipfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.session.test_lock import another
from tests.support.agents import Yes, events_of, make_agent
from tests.support.clock import ManualClock
from tests.support.provider import ScriptedProvider, call, say
from tui.app.packs.form import FORMAT, MANIFEST, SESSION
from tui.app.packs.pack import Packed, Secrets, pack
from tui.app.packs.unpack import Unpacked, unpack
from tui.cli.main import main
from tui.core.clock import SystemClock
from tui.core.errors import HoldfastError, SessionError, SessionInUseError, StorageError
from tui.core.output_store import open_full_copy
from tui.core.paths import Folders, folders
from tui.core.workspace import Workspace
from tui.session import chain_check
from tui.session.checkpoints.restore import restore
from tui.session.checkpoints.store import CheckpointStore, store_of
from tui.session.lock import SessionLock
from tui.session.reader import read
from tui.session.records import CHECKPOINT
from tui.session.session import Session, children_of

KEY = "sk-ant-api03-" + "a1B2" * 24


@dataclass(frozen=True, slots=True)
class Machine:
    """A home and a folder to work in."""

    home: Path
    work: Path
    use: Callable[[Path], None]

    def here(self) -> Folders:
        """Make it the machine that the program is on."""
        self.use(self.home)
        return folders()

    @property
    def store(self) -> CheckpointStore:
        return store_of(self.here(), self.work)

    def pack(self, path: Path, secrets: Secrets = "refuse", name: str = "s.zip") -> Packed:
        out = self.home / name
        return pack(path, out, folders=self.here(), clock=SystemClock(), secrets=secrets)

    def unpack(self, packed: Packed | Path) -> Unpacked:
        file = packed if isinstance(packed, Path) else packed.path
        assert file
        return unpack(file, self.work, folders=self.here(), clock=SystemClock())

    def files(self) -> set[str]:
        """All that is in its data folder, but locks and stores, which a mere look makes."""
        data = self.here().data
        return {
            str(path.relative_to(data))
            for path in data.rglob("*")
            if path.is_file() and "checkpoints" not in path.parts
        }


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Machine]:
    def make(name: str) -> Machine:
        home, work = tmp_path / name / "home", tmp_path / name / "work"
        home.mkdir(parents=True)
        work.mkdir()
        return Machine(home, work, lambda at: monkeypatch.setenv("HOLDFAST_HOME", str(at)))

    return make


@pytest.fixture
def here(machine: Callable[[str], Machine]) -> Machine:
    return machine("here")


@pytest.fixture
def there(machine: Callable[[str], Machine]) -> Machine:
    return machine("there")


async def _talk(at: Machine, *prompts: str, path: Path | None, files: Mapping[str, str]) -> Path:
    """Let a session run a command with a long output and change files, with checkpoints."""
    home = at.here()
    clock = SystemClock()
    session = (
        Session.open(path, clock=clock)
        if path
        else Session.create(at.work, folders=home, clock=clock)
    )
    answers: list[Any] = []
    for number, prompt in enumerate(prompts):
        id_ = f"toolu_{prompt.replace(' ', '_')}_{number}"
        answers += [[call("run_command", id_, command="seq 30000")], say("done")]
    store = at.store
    agent = make_agent(at.work, ScriptedProvider(*answers), session=session, approver=Yes())
    for prompt in prompts:
        for name, text in files.items():
            (at.work / name).parent.mkdir(parents=True, exist_ok=True)
            (at.work / name).write_text(f"{text} {prompt}")
        session.append(CHECKPOINT, checkpoint=store.take().id, files=1, by="", prompt="")
        await events_of(agent, prompt)
    await agent.close()
    store.close()
    assert session.path
    return session.path


def talk(
    at: Machine, *prompts: str, path: Path | None = None, files: Mapping[str, str] | None = None
) -> Path:
    return asyncio.run(_talk(at, *prompts, path=path, files=files or {}))


def checkpoints_of(path: Path) -> list[str]:
    return [r.data["checkpoint"] for r in read(path).records if r.type == CHECKPOINT]


def test_a_session_moves_whole(here: Machine, there: Machine) -> None:
    path = talk(here, "one", "two", files={"a.txt": "a", "src/b.txt": "b"})
    packed = here.pack(path)
    assert (packed.outputs, packed.checkpoints, packed.secrets) == (2, 2, [])
    done = there.unpack(packed)
    assert done.path.read_bytes() == path.read_bytes()
    assert (done.id, done.state, done.verified) == (packed.manifest.session, "new", True)
    assert done.path.parent == there.here().sessions_of(there.work)
    assert done.path.stat().st_mode & 0o777 == 0o600
    assert sorted(done.differs or ()) == ["a.txt", "src/b.txt"]
    assert done.problems == []
    receipts = [r.data["receipt"] for r in read(done.path).records if r.data.get("receipt")]
    assert len(receipts) == 2
    for receipt in receipts:
        opened = open_full_copy(Path(receipt["path"]), Workspace(there.work).tool_results)
        with open(opened, "rb") as file:
            assert sha256(file.read()).hexdigest() == receipt["sha256"]
    first, _ = checkpoints_of(done.path)
    store = there.store
    restore(store.difference(first, store.take().id), store)
    assert (there.work / "src/b.txt").read_text() == "b one"
    store.close()


def test_it_goes_on_there_and_comes_back(here: Machine, there: Machine) -> None:
    path = talk(here, "one", files={"a.txt": "a"})
    moved = there.unpack(here.pack(path)).path
    talk(there, "two", path=moved, files={"b.txt": "b"})
    back = here.unpack(there.pack(moved, name="back.zip"))
    assert (back.state, back.path, back.verified) == ("grown", path, True)
    assert path.read_bytes() == moved.read_bytes()
    assert not chain_check.verify(path).changed
    first, second = checkpoints_of(path)
    store = here.store
    assert [c.path.name for c in store.difference(first, second)] == ["a.txt", "b.txt"]
    store.close()
    assert here.unpack(there.pack(moved, name="again.zip")).state == "same"
    talk(here, "three", path=path)
    assert here.unpack(there.pack(moved, name="old.zip")).state == "older"
    # both have gone on
    talk(there, "four", path=moved)
    before, files = path.read_bytes(), here.files()
    with pytest.raises(SessionError, match="both copies have been continued") as told:
        here.unpack(there.pack(moved, name="other.zip"))
    assert "Nothing was written" in told.value.hint
    assert (path.read_bytes(), here.files()) == (before, files)


def test_sub_agents_go_along(here: Machine, there: Machine) -> None:
    path = talk(here, "one")
    child = children_of(path) / "20260101T000000Z-abcdef012345.jsonl"
    below = children_of(child) / "20260101T000001Z-abcdef012346.jsonl"
    below.parent.mkdir(parents=True)
    id_ = read(path).header.id.encode()
    child.write_bytes(path.read_bytes().replace(id_, b"abcdef012345"))
    below.write_bytes(path.read_bytes().replace(id_, b"abcdef012346"))
    (children_of(path) / "notes.jsonl").write_text("no session of ours")
    packed = here.pack(path)
    done = there.unpack(packed)
    assert (packed.children, done.children) == (2, 2)
    family = children_of(done.path)
    for one in (child, below):
        assert (family / one.relative_to(children_of(path))).read_bytes() == one.read_bytes()


def test_what_looks_secret_is_named_and_stays(here: Machine, there: Machine) -> None:
    (here.work / "deep").mkdir()
    (here.work / "deep/.env").write_text("NAME=plain")
    (here.work / ".env.example").write_text("NAME=")
    (here.work / "notes").write_text(f"key {KEY}")
    path = talk(here, f"use {KEY}")
    refused = here.pack(path)
    assert refused.path is None
    assert not (here.home / "s.zip").exists()
    places = {secret.place: secret.why for secret in refused.secrets}
    assert places["checkpoints, deep/.env"] == "its name"
    assert places["checkpoints, notes"] == "a key"
    assert any(place.startswith("session.jsonl, line ") for place in places)
    assert not any("example" in place for place in places)
    whole = there.unpack(here.pack(path, "keep"))
    assert whole.verified
    assert KEY in whole.path.read_text()


def test_a_redacted_pack_is_to_read(here: Machine, there: Machine) -> None:
    (here.work / "notes").write_text(f"key {KEY}")
    path = talk(here, f"use {KEY}")
    packed = here.pack(path, "redact")
    assert packed.path
    with zipfile.ZipFile(packed.path) as opened:
        assert not any(KEY.encode() in opened.read(name) for name in opened.namelist())
        assert not [name for name in opened.namelist() if "content" in name or "check" in name]
    done = there.unpack(packed)
    assert not done.verified
    assert "Secrets were masked when it was packed." in done.problems
    assert [r.type for r in read(done.path).records] == [r.type for r in read(path).records]


@pytest.mark.parametrize("before", ["\n", "\t", "\u2028", '"', "\\", "\x01"])
def test_a_secret_is_found_after_what_json_escapes(
    here: Machine, there: Machine, before: str
) -> None:
    session = Session.create(here.work, folders=here.here(), clock=SystemClock())
    session.append("user", content=[{"type": "text", "text": f"x{before}{KEY}"}])
    session.append("draft", answer=KEY[:24], after=0)
    session.append("draft", answer=KEY[24:], after=24)
    asyncio.run(session.close())
    assert session.path
    refused = here.pack(session.path)
    assert any(one.why == "a key" for one in refused.secrets)
    assert refused.path is None
    redacted = there.unpack(here.pack(session.path, "redact")).path.read_text()
    assert KEY[24:] not in redacted


def test_a_line_of_json_that_is_no_object_is_masked_too(here: Machine) -> None:
    path = talk(here, "one")
    with path.open("ab") as file:
        file.write(json.dumps([KEY]).encode() + b"\n" + b"[" * 3000 + KEY.encode() + b"\n")
    assert here.pack(path).path is None
    packed = here.pack(path, "redact").path
    assert packed
    with zipfile.ZipFile(packed) as opened:
        assert KEY.encode() not in opened.read(SESSION)


def test_secrets_in_names_and_in_wide_characters_are_found(here: Machine) -> None:
    (here.work / f"of-{KEY}").mkdir()
    (here.work / "wide.ps1").write_bytes(f"$key = '{KEY}'".encode("utf-16"))
    places = {one.place: one.why for one in here.pack(talk(here, "one")).secrets}
    assert places == {
        "checkpoints, of-[secret removed]": "a key in its name",
        "checkpoints, wide.ps1": "a key",
    }


def test_a_running_session_is_packed_up_to_its_last_whole_line(
    here: Machine, there: Machine
) -> None:
    path = talk(here, "one")
    whole = path.read_bytes()
    lock = SessionLock(path, clock=ManualClock())
    lock.take()
    with path.open("ab") as file:
        file.write(b'{"type":"user","id"')
    packed = here.pack(path)
    lock.release()
    assert there.unpack(packed).path.read_bytes() == whole


def test_a_session_that_is_open_does_not_grow(here: Machine, there: Machine) -> None:
    path = talk(here, "one")
    moved = there.unpack(here.pack(path)).path
    talk(there, "two", path=moved)
    packed = there.pack(moved, name="back.zip")
    before = path.read_bytes()
    here.here()
    with another(path):
        with pytest.raises(SessionInUseError):
            here.unpack(packed)
        assert path.read_bytes() == before
    assert here.unpack(packed).state == "grown"


def test_an_output_that_was_changed_is_not_verified(here: Machine, there: Machine) -> None:
    path = talk(here, "one")
    (copy,) = (here.work / ".holdfast/tool-results").glob("*.txt")
    copy.chmod(0o600)
    copy.write_text("other")
    assert not there.unpack(here.pack(path)).verified


def test_an_output_that_is_gone_is_named(here: Machine, there: Machine) -> None:
    path = talk(here, "one", "two")
    copies = list((here.work / ".holdfast/tool-results").glob("*.txt"))
    copies[0].unlink()
    packed = here.pack(path)
    assert packed.manifest.gone == (str(copies[0]),)
    done = there.unpack(packed)
    assert done.problems == ["1 full output had been deleted before."]
    assert done.verified


def test_a_session_that_lies_elsewhere_is_packed_under_its_own_name(
    here: Machine, there: Machine
) -> None:
    path = talk(here, "one")
    copy = here.home / "my copy.jsonl"
    copy.write_bytes(path.read_bytes())
    done = there.unpack(here.pack(copy))
    assert done.path.stem.endswith(f"-{read(path).header.id}")
    assert done.path.read_bytes() == path.read_bytes()


# Packs that are cut, changed, hostile


@pytest.fixture
def packed(here: Machine) -> Path:
    made = here.pack(talk(here, "one", files={"a.txt": "a"})).path
    assert made
    return made


def test_a_pack_that_is_cut_or_changed_anywhere_writes_nothing(
    packed: Path, there: Machine
) -> None:
    data, files = packed.read_bytes(), there.files()
    changed = packed.with_name("changed.zip")
    with zipfile.ZipFile(packed) as opened:
        session = opened.read(SESSION)
    for at in range(0, len(data), max(1, len(data) // 150)):
        for made in (data[:at], data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :]):
            changed.write_bytes(made)
            try:
                done = there.unpack(changed)
            except HoldfastError:
                assert there.files() == files, at
            else:  # a date in the zip's own head, say
                assert done.path.read_bytes() == session
                done.path.unlink()
                for each in there.here().outputs.rglob("*.txt"):
                    each.unlink()


@contextmanager
def _made(packed: Path) -> Generator[tuple[dict[str, Any], dict[str, bytes]]]:
    """The manifest and the files of a pack, to be changed."""
    with zipfile.ZipFile(packed) as opened:
        files = {name: opened.read(name) for name in opened.namelist()}
    manifest = json.loads(files.pop(MANIFEST))
    yield manifest, files
    _write(packed, manifest, files)


def _write(packed: Path, manifest: object, files: dict[str, bytes]) -> None:
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in files.items():
            opened.writestr(name, data)
        opened.writestr(MANIFEST, json.dumps(manifest))


def _set(manifest: dict[str, Any], name: str, **fields: object) -> None:
    next(one for one in manifest["files"] if one["name"] == name).update(fields)


def test_a_pack_of_a_newer_version_says_so(packed: Path, there: Machine) -> None:
    with _made(packed) as (manifest, _):
        manifest["format"] = FORMAT + 1
    with pytest.raises(SessionError, match="newer version") as told:
        there.unpack(packed)
    assert "Update" in told.value.hint


@pytest.mark.parametrize(
    "name",
    [
        "../x.jsonl",
        "/etc/x",
        "children/../../x.jsonl",
        "outputs/../1.txt",
        "contents/zz",
        "a\\b",
        "",
    ],
)
def test_a_file_that_no_pack_has_is_refused(packed: Path, there: Machine, name: str) -> None:
    with _made(packed) as (manifest, files):
        files[name or "empty"] = b"x"
        digest = sha256(b"x").hexdigest()
        manifest["files"].append({"name": name, "bytes": 1, "sha256": digest, "path": ""})
    files = there.files()
    with pytest.raises(SessionError, match="damaged or was changed"):
        there.unpack(packed)
    assert there.files() == files


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "tool-results/a.txt", "/x/tool-results/../a.txt", "/x/tool-results/a.sh", ""],
)
def test_an_output_of_a_strange_place_is_refused(packed: Path, there: Machine, path: str) -> None:
    with _made(packed) as (manifest, _):
        _set(manifest, "outputs/1.txt", path=path)
    with pytest.raises(SessionError, match="damaged or was changed"):
        there.unpack(packed)


@pytest.mark.parametrize("file", ["../../x.jsonl", "x.jsonl", "20260101T000000Z-other.jsonl"])
def test_a_session_file_of_a_strange_name_is_refused(
    packed: Path, there: Machine, file: str
) -> None:
    with _made(packed) as (manifest, _):
        manifest["file"] = file
    with pytest.raises(SessionError, match="damaged or was changed"):
        there.unpack(packed)


def test_a_file_longer_than_it_says_is_refused_unread(packed: Path, there: Machine) -> None:
    with _made(packed) as (manifest, files):
        files["outputs/1.txt"] = bytes(50_000_000)
        _set(manifest, "outputs/1.txt", bytes=10)
    with pytest.raises(SessionError, match="isn't as long as it says"):
        there.unpack(packed)


def test_a_pack_for_which_there_is_no_room_writes_nothing(
    packed: Path, there: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = os.statvfs_result([4096, 4096, 1000, 10, 10, 1000, 10, 10, 0, 255])
    monkeypatch.setattr(os, "statvfs", lambda _: full)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    files = there.files()
    with pytest.raises(StorageError, match="Not enough room"):
        there.unpack(packed)
    assert there.files() == files


def test_two_files_of_one_name_are_refused(packed: Path, there: Machine) -> None:
    with zipfile.ZipFile(packed, "a") as opened, pytest.warns(UserWarning, match="Duplicate"):
        opened.writestr(SESSION, b"{}")
    with pytest.raises(SessionError, match="damaged or was changed"):
        there.unpack(packed)


def _put(manifest: dict[str, Any], files: dict[str, bytes], name: str, data: bytes) -> None:
    """Put a file into a pack, or another content into one."""
    told = {"name": name, "bytes": len(data), "sha256": sha256(data).hexdigest(), "path": ""}
    manifest["files"] = [one for one in manifest["files"] if one["name"] != name]
    manifest["files"].append(told)
    files[name] = data


def _with_entries(
    packed: Path, entries: Mapping[str, object], *contents: bytes, id_: str = ""
) -> None:
    """Add entries to the first checkpoint of a pack, and contents."""
    with _made(packed) as (manifest, files):
        (line,) = files["checkpoints.jsonl"].splitlines()
        state = json.loads(line)
        state["checkpoint"] = id_ or state["checkpoint"]
        state["entries"].update(entries)
        _put(manifest, files, "checkpoints.jsonl", json.dumps(state).encode() + b"\n")
        for data in contents:
            _put(manifest, files, f"contents/{sha256(data).hexdigest()}", data)


def _go_back(at: Machine, done: Unpacked) -> None:
    store = at.store
    restore(store.difference(checkpoints_of(done.path)[0], store.take().id), store)
    store.close()


def test_checkpoints_of_somebody_else_put_nothing_into_guarded_folders(
    packed: Path, there: Machine
) -> None:
    hook = b"#!/bin/sh\n"
    entry = [1, 0o755, len(hook), sha256(hook).hexdigest(), False]
    _with_entries(packed, {".git/hooks/pre-commit": entry}, hook)
    done = there.unpack(packed)
    left = "Left out of its checkpoints: 1 path that file tools may not write, such as"
    assert done.problems == [f"{left} '.git/hooks/pre-commit'."]
    _go_back(there, done)
    assert not (there.work / ".git").exists()


def test_nor_take_they_anything_out_of_them(packed: Path, there: Machine) -> None:
    settings = there.work / "sub/.claude/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text("mine")
    (there.work / "other").write_text("mine")
    _go_back(there, there.unpack(packed))
    assert settings.read_text() == "mine"
    assert not (there.work / "other").exists()


def test_a_nested_repository_is_no_problem_of_a_pack(here: Machine, there: Machine) -> None:
    (here.work / "lib/.git").mkdir(parents=True)
    (here.work / "lib/a").write_text("a")
    done = there.unpack(here.pack(talk(here, "one")))
    assert done.problems == []
    assert done.differs == ["lib/a"]


def test_a_link_out_of_the_workspace_leads_nothing_out_of_it(
    packed: Path, there: Machine, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    target = os.fsencode(outside)
    link = [2, 0o777, len(target), sha256(target).hexdigest(), False]
    file = [1, 0o644, 1, sha256(b"x").hexdigest(), False]
    _with_entries(packed, {"l": link, "l/x": file}, b"x", target)
    _go_back(there, there.unpack(packed))
    assert (there.work / "l").is_symlink()
    assert not list(outside.iterdir())


@pytest.mark.parametrize(
    "entry",
    [
        [1, 0o644, 10**30, None, False],
        [4, 0o644, 1, "00" * 32, False],
        [9, 0o644, 1, None, False],
        [1, 0o644, -1, None, False],
        "x",
    ],
)
def test_an_entry_that_no_checkpoint_has_is_refused(
    packed: Path, there: Machine, entry: object
) -> None:
    _with_entries(packed, {"z": entry})
    files = there.files()
    with pytest.raises(SessionError, match="holds something that isn't a checkpoint"):
        there.unpack(packed)
    assert there.files() == files


@pytest.mark.parametrize("id_", ["\ud800", "x" * 2000, "-1"])
def test_a_checkpoint_of_a_strange_name_is_refused(packed: Path, there: Machine, id_: str) -> None:
    _with_entries(packed, {}, id_=id_)
    files = there.files()
    with pytest.raises(SessionError, match="holds something that isn't a checkpoint"):
        there.unpack(packed)
    assert there.files() == files


def test_a_record_of_another_session_is_refused(packed: Path, there: Machine) -> None:
    with _made(packed) as (manifest, files):
        own = manifest["session"].encode()
        header, rest = files[SESSION].split(b"\n", 1)
        other = header.replace(b'"session"', b'"\\u0073ession"').replace(own, b"abcdef012345")
        _put(manifest, files, SESSION, b"\n".join((b"{}", other, header, rest)))
    files = there.files()
    with pytest.raises(SessionError, match="record of another session"):
        there.unpack(packed)
    assert there.files() == files


@pytest.mark.parametrize("header", [{"id": "f"}, {"id": "abc", "parent_session": "f"}])
def test_a_sub_agent_of_another_session_is_refused(
    packed: Path, there: Machine, header: dict[str, str]
) -> None:
    with _made(packed) as (manifest, files):
        line = json.dumps({"type": "session"} | header).encode()
        _put(manifest, files, "children/20260101T000000Z-abc.jsonl", line)
    with pytest.raises(SessionError, match="record of another session"):
        there.unpack(packed)


def test_files_that_could_not_be_compared_are_not_called_the_same(
    packed: Path, there: Machine
) -> None:
    _with_entries(packed, {}, id_="abcdef01-9")
    done = there.unpack(packed)
    assert (done.checkpoints, done.differs, done.problems) == (1, None, [])


@pytest.mark.parametrize("data", [b"", b"PK", b"not a zip", b"\x50\x4b\x05\x06" + bytes(18)])
def test_what_is_no_pack_says_so(there: Machine, data: bytes) -> None:
    file = there.home / "x.zip"
    file.write_bytes(data)
    with pytest.raises(SessionError, match="damaged or was changed"):
        there.unpack(file)


def test_a_disk_that_fills_up_at_any_step_loses_nothing(
    here: Machine, there: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = talk(here, "one", files={"a.txt": "a"})
    real, left = os.fsync, 0

    def fsync(file: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    for step in range(8):
        left = step
        try:
            made = here.pack(path, name=f"{step}.zip")
            break
        except StorageError:
            assert not list(here.home.glob(".*"))
            assert step or not list(here.home.glob("*.zip"))
    else:
        pytest.fail("it never came through")
    for step in range(30):
        left = step
        try:
            done = there.unpack(made)
        except StorageError:
            assert not list(there.here().sessions_of(there.work).glob("*.jsonl"))
        else:
            assert done.path.read_bytes() == path.read_bytes()
            return
    pytest.fail("it never came through")


# The commands


def test_the_commands(
    here: Machine,
    there: Machine,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = talk(here, "one", files={"a.txt": "a"})
    id_ = read(path).header.id
    monkeypatch.chdir(here.work)
    assert main(["sessions", "pack", id_[:6]]) == 0
    out, err = capfd.readouterr()
    file = here.work / f"session-{id_}.holdfast.zip"
    assert out.strip() == str(file)
    assert err.startswith("Packed the session, 1 full output, 1 checkpoint (")
    assert main(["sessions", "pack", id_]) == 1
    assert "already exists" in capfd.readouterr().err
    monkeypatch.chdir(there.work)
    there.here()
    assert main(["sessions", "unpack", str(file)]) == 0
    out, err = capfd.readouterr()
    assert err.splitlines() == [
        "Unpacked.",
        "Verified: every line and output is as it was written.",
        "Not as the session left them: 1 file here.",
        "  a.txt",
        f"Resume with: holdfast -r {id_}",
    ]
    assert main(["sessions", "unpack", str(file), "--json"]) == 0
    value = json.loads(capfd.readouterr().out)
    assert (value["id"], value["verified"], value["state"]) == (id_, True, "same")
    assert value["path"] == out.strip()
    assert main(["sessions", "verify", id_]) == 0
    assert "1 full output: as saved." in capfd.readouterr().err
    assert main(["sessions", "unpack"]) == 2
    assert main(["sessions", "unpack", "nothing.zip"]) == 4
    assert main(["sessions", "pack", id_, "--redact", "--with-secrets"]) == 2
    assert main(["sessions", "pack", id_, "-o", "-", "--json"]) == 2


def test_a_pack_goes_to_standard_output(
    here: Machine, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = read(talk(here, "one", files={"a.txt": "a"})).header.id
    monkeypatch.chdir(here.work)
    before = os.listdir()
    assert main(["sessions", "pack", id_, "--out", "-"]) == 0
    out, err = capfdbinary.readouterr()
    assert out.startswith(b"PK")
    assert err.startswith(b"Packed the session, ")
    assert os.listdir() == before


def test_a_refused_pack_says_why_and_how(
    here: Machine, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here.work / ".env").write_text("A=b")
    path = talk(here, "one")
    monkeypatch.chdir(here.work)
    assert main(["sessions", "pack", str(path)]) == 1
    err = capfd.readouterr().err
    assert err.splitlines()[:2] == ["Looks secret, in 1 place:", "  checkpoints, .env: its name"]
    assert "--with-secrets" in err
    assert "--redact" in err
    assert main(["sessions", "pack", str(path), "--json"]) == 1
    value = json.loads(capfd.readouterr().out)
    assert value["path"] is None
    assert value["secrets"] == [{"place": "checkpoints, .env", "why": "its name"}]
    assert not list(here.work.glob("*.zip"))
