"""`holdfast blame`: for people, for editors as git prints it, as JSON, as git notes; bad input."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tui.session.checkpoints.store as store_module
from tests.support.blame_world import World
from tui.app.options.parser import parse
from tui.app.session_path import forked
from tui.cli.main import main
from tui.core.errors import SessionError
from tui.core.paths import folders
from tui.session import catalog
from tui.session.reader import read


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """One edit in a file of many lines, not committed yet; the person's line is."""
    monkeypatch.setattr(store_module, "time", store_module.time)
    home = tmp_path / "world" / "home"
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    world = World(tmp_path / "world", 1)
    monkeypatch.chdir(world.root)
    world.put(world.root, [("first", "person"), *world.lines()])
    world.commit(words="my own line")
    session = world.session()
    session.edit("edit_file", [*world.lines(), ("last", "")])
    session.prompt()
    session.save()
    yield world
    world.close()


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["blame", *words]) == 0
    return capsys.readouterr().out


def test_people_see_who_wrote_a_line_and_how_to_go_there(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    last = len(world.lines())
    out = printed(capsys, f"src/module.py:{last - 1}-{last}")
    session = world.sessions[0].id
    lines = out.splitlines()
    assert lines[0].split()[:2] == ["[1]", "before"]
    assert lines[1].split()[:2] == ["[2]", "edit"]
    assert lines[1].endswith("│ last")
    assert f"holdfast -r {session}" in out
    assert "“Please do part 1" in out
    assert "$0.0030" in out
    assert all(len(line) <= 80 for line in lines)


def test_a_line_has_the_price_that_its_own_profile_paid(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    path = catalog.resolve(world.sessions[0].id, folders())
    head = '{"type":"session"'
    path.write_text(path.read_text().replace(head, f'{head},"profile":"work"', 1))
    file = folders().config_file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[profile.work.prices."*"]\ntimes = 2.0\n')
    last = len(world.lines())
    assert "$0.0060" in printed(capsys, f"src/module.py:{last}")


def test_lines_that_are_not_committed_name_no_commit(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    file = world.root / "other.py"
    file.write_text("one\n")
    world.git("add", "other.py")
    world.git("commit", "-qm", "one line")
    file.write_text("one\ntwo\n")
    assert ", commit " in printed(capsys, "other.py:1")
    assert ", commit " not in printed(capsys, "other.py:2")
    assert ", commit " not in printed(capsys, "other.py")


def test_an_empty_file_is_said_to_be_empty(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    (world.root / "empty").touch()
    assert main(["blame", "empty"]) == 0
    assert capsys.readouterr() == ("", "empty is empty.\n")


def test_the_commands_that_it_names_open_and_fork(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    session = world.sessions[0]
    session.prompt()
    session.edit("edit_file", [*world.lines(), ("again", "")])
    session.save()
    prompt = session.prompts[-1][0]
    before = next(one.id for one in reversed(session.records) if one.type == "assistant")
    place = next(n for n, one in enumerate(session.records) if one.id == prompt)
    said = [one.id for one in session.records[:place] if one.type in {"user", "assistant"}]
    out = printed(capsys, f"src/module.py:{len(world.lines())}")
    assert f"    go there:    holdfast -r {session.id} --at {prompt}\n" in out
    assert f"    from before: holdfast -r {session.id} --at {said[-1]} --fork\n" in out
    assert before not in out
    assert parse(["-r", session.id, "--at", prompt]).sessions.at == prompt
    options = forked(parse(["-r", session.id, "--at", said[-1], "--fork"]))
    copy = read(Path(str(options.opening.resume)))
    assert [one.id for one in copy.branch if one.type in {"user", "assistant"}] == said
    assert (options.opening.fork, options.sessions.at) == (False, None)


def test_a_fork_without_a_terminal_leaves_no_copy_behind(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    session = world.sessions[0]
    before = catalog.files(world.folders)
    for way in ((), ("--plain",)):
        assert main(["-r", session.id, "--at", session.prompts[0][0], "--fork", *way]) == 2
        assert "needs a terminal" in capsys.readouterr().err
    assert catalog.files(world.folders) == before


def test_a_pack_is_named_as_one(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    session = world.sessions[0]
    pack = world.folder / "a.zip"
    assert main(["sessions", "pack", session.id, "-o", str(pack)]) == 0
    with pytest.raises(SessionError) as caught:
        forked(parse(["-r", str(pack), "--fork"]))
    assert "looks like a packed session" in caught.value.message
    assert f"holdfast sessions unpack {pack}" in caught.value.hint


def test_a_prompt_after_a_rewind_is_forked_without_what_was_rewound(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    session = world.sessions[0]
    kept = session.records[-1]
    session.prompt()
    session.edit("edit_file", [*world.lines(), ("rewound", "")])
    left = len(session.records)
    session.records.append(replace(session.write("rewind", target="", left=""), parent=kept.id))
    del session.records[left]
    session.prompt()
    session.edit("edit_file", [*world.lines(), ("kept", "")])
    session.save()
    out = printed(capsys, f"src/module.py:{len(world.lines())}")
    speaking = [one.id for one in session.records[:left] if one.type in {"user", "assistant"}]
    kept_ids = {one.id for one in session.records[: session.records.index(kept) + 1]}
    before = [id_ for id_ in speaking if id_ in kept_ids][-1]
    assert f"--at {before} --fork" in out


@pytest.mark.parametrize(("lines", "count"), [("2", 1), ("2-4", 3), ("2,+5", 5), ("2,4", 3)])
def test_lines_are_named_as_for_git(
    world: World, capsys: pytest.CaptureFixture[str], lines: str, count: int
) -> None:
    told = json.loads(printed(capsys, "--json", f"{world.root}/src/module.py:{lines}"))
    assert [one["line"] for one in told] == list(range(2, 2 + count))


def test_json_has_all_that_is_known_of_a_call(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    last = len(world.lines())
    told = json.loads(printed(capsys, "--json", f"src/module.py:{last}"))
    (line,) = told
    (maker,) = line["makers"]
    session = world.sessions[0]
    assert (line["line"], line["text"], line["origin"]) == (last, "last", "tool")
    assert line["session_id"] == maker["session_id"] == session.id
    assert line["prompt"] == maker["prompt"]
    assert "part 1" in line["prompt"]
    assert maker["prompt_id"] == session.prompts[0][0]
    assert maker["approval"] == {"answer": "allow", "by": "rule", "reason": ""}
    assert line["cost_usd"] == maker["cost_usd"] > 0
    assert {"call", "model", "time"} <= line.keys()
    assert (line["commit"], line["why"], line["formatters"]) == (None, None, [])


def test_json_of_what_no_session_made_has_the_same_fields(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    told = json.loads(printed(capsys, "--json", "src/module.py"))
    assert len({tuple(line) for line in told}) == 1
    assert {line["origin"] for line in told} <= {"tool", "command", "person", "before", "uncertain"}
    other = next(line for line in told if line["origin"] != "tool")
    assert (other["session_id"], other["prompt"], other["call"]) == (None, None, None)


def groups(porcelain: str) -> list[tuple[str, str, dict[str, str]]]:
    """The id, the text and the fields of each line of git's porcelain."""
    known: dict[str, dict[str, str]] = {}
    found: list[tuple[str, str, dict[str, str]]] = []
    id_ = ""
    for line in porcelain.splitlines():
        if line.startswith("\t"):
            found.append((id_, line[1:], known[id_]))
        elif len(line.split(" ")[0]) == 40:
            id_ = line.split(" ")[0]
            known.setdefault(id_, {})
        else:
            name, _, value = line.partition(" ")
            known[id_][name] = value
    return found


def test_the_porcelain_is_gits_where_nobody_of_ours_wrote(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = groups(printed(capsys, "--porcelain", "src/module.py"))
    git = groups(world.git("blame", "--porcelain", "src/module.py"))
    assert [text for _, text, _ in ours] == [text for _, text, _ in git]
    assert [id_ for id_, _, _ in ours[:-1]] == [id_ for id_, _, _ in git[:-1]]
    shared = {"author", "author-mail", "author-time", "committer", "summary", "filename"}
    for (_, _, mine), (_, _, its) in zip(ours[:-1], git[:-1], strict=True):
        assert {name: mine[name] for name in shared} == {name: its[name] for name in shared}
    _, _, fields = ours[-1]
    assert fields["holdfast-session"] == world.sessions[0].id
    assert fields["summary"].startswith("Please do part 1")
    assert set(git[-1][2]) - set(fields) <= {"previous", "boundary"}


def test_notes_are_made_once_for_each_commit_and_file(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.commit(words="with the edit")
    for _ in range(2):
        printed(capsys, "--notes", "src/module.py")
    note = world.git("notes", "--ref=holdfast", "show", "HEAD").splitlines()
    session, last = world.sessions[0], len(world.lines())
    (line,) = [one for one in note if one]
    assert line.startswith(f"src/module.py:{last} session {session.id} prompt ")
    assert not world.git("notes", "list")


def test_nothing_is_written_to_git_unasked(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    before = world.git("for-each-ref")
    printed(capsys, "src/module.py")
    assert world.git("for-each-ref") == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.py"], "There is no file"),
        (["src/module.py:9999"], "there is no line 9999"),
        (["src/module.py:0"], "there is no line 0"),
        (["src/module.py:x"], "names no lines"),
        (["src/module.py:"], "“src/module.py:” names no lines"),
        (["src/module.py:3-2"], "3-2 names no lines: it ends before it begins"),
        ([f"src/module.py:{'9' * 5000}"], "names no lines"),
        (["binary"], "is a binary file"),
        (["src"], "Can't read"),
        (["pipe"], "Can't read"),
    ],
)
def test_what_cannot_be_told_is_said(
    world: World, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    (world.root / "binary").write_bytes(b"\0\1\2")
    subprocess.run(["mkfifo", world.root / "pipe"], check=True)
    assert main(["blame", *words]) in {1, 2}
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("form", [(), ("--json",), ("--porcelain",)])
def test_a_file_whose_name_is_not_utf8(
    world: World, capsys: pytest.CaptureFixture[str], form: tuple[str, ...]
) -> None:
    name = os.fsdecode(b"odd\xff.txt")
    (world.root / name).write_text("what it holds\n")
    assert "what it holds" in printed(capsys, *form, name)


def test_a_file_outside_git_that_no_session_knows(
    world: World, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "alone.txt").write_text("one\ntwo")
    out = printed(capsys, str(tmp_path / "alone.txt"))
    assert "[1] From before the first state that is known." in out


def test_sessions_that_may_not_be_read_are_named(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = world.root.parent / "home" / "data" / "sessions"
    assert closed.is_dir()
    listed, looked = os.scandir, os.stat

    def refused(path: Any) -> None:
        if str(path).startswith(str(closed)):
            raise PermissionError(13, "Permission denied", str(path))

    def scandir(path: Any = ".") -> Any:
        refused(path)
        return listed(path)

    def stat(path: Any, **more: Any) -> os.stat_result:
        refused(path if path != closed else None)
        return looked(path, **more)

    other = world.root.parent / "other.txt"
    other.write_text("a line that no session has written\n")
    assert main(["blame", str(other)]) == 0
    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(os, "stat", stat)
    assert main(["blame", str(other)]) == 0
    assert "data/sessions can't be read" in capsys.readouterr().err
    assert main(["blame", "src/module.py"]) == 0
    err = " ".join(capsys.readouterr().err.split())
    assert "data/sessions can't be read: what its sessions wrote counts as others'." in err


def test_damaged_sessions_are_named(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    path = world.sessions[0].save()
    data = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*data[:2], b'{"type":"user", broken\n', *data[2:]]))
    assert main(["blame", "src/module.py"]) == 0
    out, err = capsys.readouterr()
    assert "edit" in out
    assert f"Damaged sessions, which may lack steps: {world.sessions[0].id}." in err


def test_an_imported_session_tells_what_its_calls_say(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another agent's edit fits the file as it was, so its line is known."""
    session = world.session()
    before = (world.root / "src/module.py").read_text()
    path = str(world.root / "src/module.py")
    given = {"file_path": path, "old_string": "last\n", "new_string": "last\nby another agent\n"}
    call = session.call("Edit", given)
    session.result(call, "Edit", {})
    session.save(origin="claude_code:abc")
    world.tick()
    (world.root / "src/module.py").write_text(before + "by another agent\n")
    told = json.loads(printed(capsys, "--json", f"src/module.py:{len(world.lines()) + 1}"))
    (maker,) = told[0]["makers"]
    assert (maker["tool"], maker["agent"]) == ("Edit", "claude_code")


def test_no_text_of_a_session_is_a_field_or_a_line_of_its_own(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """A session may come from anybody; and git's notes can be pushed."""
    (session,) = world.sessions
    path, key = session.file, "sk-ant-api03-" + "B" * 40
    prompt = session.prompts[0][0]
    evil = json.dumps(f"{prompt}\nauthor Nobody\nREADME:1 \x1b[2J")
    text = path.read_text().replace(json.dumps(prompt), evil)
    path.write_text(text.replace("Please do part 1", f"Use {key}"))
    told = printed(capsys, "--porcelain", "src/module.py")
    assert "holdfast-prompt" in told
    assert not {"author Nobody", "README:1"} & {*told.splitlines()}
    assert "\x1b" not in told
    world.commit(words="with the edit")
    printed(capsys, "--notes", "src/module.py")
    note = world.git("notes", "--ref=holdfast", "show", "HEAD")
    assert [line.partition(":")[0] for line in note.splitlines() if line] == ["src/module.py"]
    assert "Use" in note
    assert key not in note


@pytest.mark.parametrize(
    "evil", ["1; touch pwned", "--yolo", "$(touch pwned)", "1\nholdfast -y", "1\u202e2", "a b"]
)
def test_no_command_is_named_that_a_session_made_up(
    world: World, capsys: pytest.CaptureFixture[str], evil: str
) -> None:
    """What is shown is pasted into a shell: an id that isn't one of ours names no command."""
    (session,) = world.sessions
    path, last = session.file, len(world.lines())
    prompt = session.prompts[0][0]
    whole = path.read_text()
    path.write_text(whole.replace(json.dumps(prompt), json.dumps(evil)))
    out = printed(capsys, f"src/module.py:{last}")
    assert "“Please do part 1" in out
    assert "go there" not in out
    assert all(line == line.lstrip() or "holdfast" not in line for line in out.splitlines())
    path.write_text(whole.replace(f'"id":"{session.id}"', f'"id":{json.dumps(evil)}'))
    out = printed(capsys, f"src/module.py:{last}")
    assert f"    go there:    holdfast -r {session.id} --at {prompt}\n" in out, "by its file's name"


def test_notes_of_others_stay_whatever_is_in_them(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    (session,) = world.sessions
    path = session.file
    path.write_text(path.read_text().replace("Please do part 1", "Half \\ud800 part"))
    world.commit(words="with the edit")
    odd = b"theirs:1 \0 \xff \x1b[2J\n" + b"long " * 50_000 + b"\n"
    blob = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], cwd=world.root, input=odd, check=True,
        capture_output=True,
    ).stdout.decode().strip()  # fmt: skip
    world.git("notes", "--ref=holdfast", "add", "-C", blob, "HEAD")
    for _ in range(2):
        printed(capsys, "--notes", "src/module.py")
    show = ["git", "notes", "--ref=holdfast", "show", "HEAD"]
    shown = subprocess.run(show, cwd=world.root, capture_output=True, check=True).stdout
    assert odd.split(b"\n")[0] in shown
    assert shown.count(b"long") == 50_000
    assert shown.count(b"src/module.py:") == 1


def test_a_program_that_git_would_show_files_by_is_not_needed(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.git("config", "diff.odd.textconv", "touch ran; cat")
    (world.root / ".git" / "info" / "attributes").write_text("*.py diff=odd\n")
    ours = groups(printed(capsys, "--porcelain", "src/module.py:1"))
    assert ours[0][0] == world.git("rev-parse", "HEAD").strip()
    assert not (world.root / "ran").exists()


def test_odd_bytes_in_a_name_and_an_author_stop_nothing(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    path = world.root / os.fsdecode(b"odd\xff")
    path.write_text("a\nb\n")
    world.git("add", "-A")
    world.git("commit", "-qm", "odd", "--author", os.fsdecode(b"\xe9v <v@example.org>"))
    for form in ((), ("--porcelain",), ("--json",)):
        assert world.git("rev-parse", "HEAD")[:8] in printed(capsys, *form, str(path))


ODD_NAMES = [
    "-dash.py", "a  b.py", " lead.py", "trail.py ", "nl\nx.py", "esc\x1b[2Jx.py",
    "bidi\u202egnp.py", "q\"uo'te.py", "ünï.py", "~backup.py", "x.py:3",
]  # fmt: skip


@pytest.mark.parametrize("name", ODD_NAMES)
def test_an_odd_name_is_told_as_git_tells_it(
    world: World, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """The lines of commits, those of a call, and the notes in git name the file alike."""
    world.names[world.root] = name
    world.put(world.root, [("first", "person"), ("second", "person")])
    world.commit(words="mine")
    session = world.session()
    session.edit("edit_file", [*world.lines(), ("last", "")])
    session.save()
    git = world.git("blame", "--porcelain", "--", name).split("\n")
    named = {line for line in git if line.startswith("filename ")}
    told = printed(capsys, "--porcelain", "--", name).split("\n")
    assert {line for line in told if line.startswith("filename ")} == named
    assert json.loads(printed(capsys, "--json", "--", name))[-1]["text"] == "last"
    assert "│ last" in printed(capsys, "--", name)
    world.commit(words="with the edit")
    for _ in range(2):
        printed(capsys, "--notes", "--", name)
    (note,) = filter(None, world.git("notes", "--ref=holdfast", "show", "HEAD").split("\n"))
    (quoted,) = named
    assert note.startswith(f"{quoted.removeprefix('filename ')}:3 session {session.id} ")


def test_the_notes_of_a_file_with_a_colon_in_its_name_stay(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("src/module.py:3", "src/module.py"):
        world.names[world.root] = name
        world.put(world.root, [("first", "person"), ("second", "person")])
        session = world.session()
        session.edit("edit_file", [*world.lines(), (f"last of {name}", "")])
        session.save()
    world.commit(words="both")
    for name in ("src/module.py:3", "src/module.py"):
        printed(capsys, "--notes", name)
    notes = filter(None, world.git("notes", "--ref=holdfast", "show", "HEAD").split("\n"))
    assert sorted(line.split(" ")[0] for line in notes) == ["src/module.py:3", "src/module.py:3:3"]


def test_no_user_of_that_name_is_no_bug(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["blame", "~nobody-here/x.py:3"]) == 1
    assert "There is no file" in capsys.readouterr().err


def test_keys_in_what_was_said_are_masked_and_the_file_is_as_it_is(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is printed is pasted, and kept by programs; the file is there anyway."""
    (session,) = world.sessions
    key, own = "sk-ant-api03-" + "B" * 40, "ghp_" + "c0" * 20
    text = session.file.read_text()
    session.file.write_text(text.replace("Please do part 1", f"Use {key}"))
    world.put(world.root, [*world.lines(), (f"token = '{own}'", "person")])
    for form in ((), ("--porcelain",), ("--json",)):
        assert main(["blame", *form, "src/module.py"]) == 0
        out, err = capsys.readouterr()
        assert key not in out
        assert "Use [secret removed] of " in out
        assert own in out
        assert "Removed 1 secret from what sessions say. The file is as it is.\n" in err
    assert main(["blame", "src/module.py:1"]) == 0
    assert "Removed" not in capsys.readouterr().err, "nothing of the session is told there"
