"""`holdfast sessions …`, from the words to what is printed and what is on the disk."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.core.test_otlp import read_by_the_package
from tests.support.clock import FakeClock
from tests.support.foreign import ClaudeCode, claude_code, lines, tool_use
from tests.support.span_collector import local_collector
from tui.cli import main, session_search
from tui.core.paths import folders, shorten
from tui.session import catalog
from tui.session.reader import read
from tui.session.session import Session

CALL: dict[str, Any] = {"type": "tool_use", "id": "a", "name": "read_file", "input": {"path": "x"}}
KEY = "sk-ant-" + "a1" * 12


def test_a_list_loads_no_agent(path: Path) -> None:
    code = (
        "import sys; from tui.cli.main import main; main(['sessions', 'list', '--all']);"
        "print([m for m in ('tui.agent.agent', 'tui.agent.turn', 'tui.settings.layers')"
        " if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "read <b>x</b>" in done.stdout
    assert done.stderr.splitlines()[-1] == "[]"


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


@pytest.fixture
def path(own_folders: Path) -> Path:
    """A session with a call that was never answered, and a key in a prompt."""
    session = Session.create(Path.cwd(), folders=folders(), clock=FakeClock())

    async def write() -> None:
        session.append("user", content=text("read <b>x</b>"), text="read <b>x</b>")
        session.append("assistant", content=[*text("I will."), CALL], model="claude-sonnet-5-5")
        session.append("tool_result", call_id="a", name="read_file", content=text("the result"))
        session.append("assistant", content=text("done"), model="claude-sonnet-5-5")
        session.append("user", content=text(f"my key is {KEY}"), text="my key")
        broken = CALL | {"id": "b"}
        session.append("assistant", content=[*text("again"), broken], model="claude-sonnet-5-5")
        session.append("user", content=text("and?"), text="and?")
        await session.close()

    asyncio.run(write())
    assert session.path is not None
    return session.path


Run = Any


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `sessions` with words; returns the exit code, stdout and stderr."""

    def go(*words: object) -> tuple[int, str, str]:
        code = main.main(["sessions", *map(str, words)])
        done = capsys.readouterr()
        return code, done.out, done.err

    return go


def test_list_and_search_as_json(run: Run, path: Path) -> None:
    id_ = catalog.id_of(path)
    code, out, _ = run("list", "--json")
    assert code == 0
    assert [entry["id"] for entry in json.loads(out)] == [id_]
    code, out, _ = run("search", "RESULT", "--json")
    (hit,) = json.loads(out)
    assert hit == {
        "id": id_, "path": str(path), "message": read(path).records[2].id, "line": 4,
        "snippet": "the result", "title": "read <b>x</b>", "cwd": str(Path.cwd()),
        "time": read(path).records[2].time, "kind": "result",
    }  # fmt: skip
    assert run("search", "not kept")[1:] == ("", "Nothing found.\n")
    assert run("search", " ")[0] == 2


def test_those_of_sub_agents_are_listed_where_asked_and_searched(run: Run, path: Path) -> None:
    async def write() -> Session:
        parent = Session.open(path, clock=FakeClock())
        child = Session.create_child(parent, "toolu_1", clock=FakeClock())
        child.append("user", content=text("find the loader"), text="find the loader")
        await child.close()
        await parent.close()
        return child

    child = asyncio.run(write())
    assert child.id not in run("list")[1]
    parent, below = run("list", "--sub-agents")[1].splitlines()
    assert parent.startswith(catalog.id_of(path))
    assert below.startswith(child.id)
    assert below.endswith("└ find the loader  [interrupted]")
    first, second = json.loads(run("list", "--sub-agents", "--json")[1])
    assert "parent" not in first
    assert (second["id"], second["parent"]) == (child.id, first["id"])
    assert run("search", "loader")[1].startswith(child.id)
    assert "find the loader" in run("show", child.id[:7])[1]
    assert child.path is not None
    path.rename(path.with_name("gone.txt"))
    (lost,) = json.loads(run("list", "--sub-agents", "--json")[1])
    assert (lost["id"], lost["parent"]) == (child.id, first["id"])


def test_a_search_prints_each_session_once_and_its_places(run: Run, path: Path) -> None:
    code, out, err = run("search", "i")
    first, *places = out.splitlines()
    assert (code, err) == (0, "")
    when = read(path).records[0].time[:10]
    assert first.startswith(f"{catalog.id_of(path)}  {when}")
    assert first.endswith(f"{shorten(Path.cwd())}  read <b>x</b>")
    assert places[0] == "    answer, line 3: I will."
    assert len(places) > 1


def test_a_search_is_narrowed_down_by_kind_time_and_file(run: Run, path: Path) -> None:
    assert run("search", "read_file", "--kind", "call")[1].splitlines()[1:] == [
        "    call, line 3: read_file path: x",
        "    call, line 7: read_file path: x",
    ]
    assert run("search", "read_file", "--kind", "prompt")[2] == "Nothing found.\n"
    assert len(run("search", "--file", "x")[1].splitlines()) == 3
    assert len(run("search", "done", "--file", "x")[1].splitlines()) == 2
    assert run("search", "done", "--file", "y")[2] == "Nothing found.\n"
    assert len(run("search", "done", "--since", "2026-01-01")[1].splitlines()) == 2
    assert run("search", "done", "--since", "2999-01-01")[2] == "Nothing found.\n"
    assert run("search", "done", "--since", "99999d")[0] == 0
    for wrong in ("soon", "7x", "-3d", "d"):
        assert run("search", "done", f"--since={wrong}")[0] == 2


def test_a_search_for_a_regular_expression_reads_the_files(
    run: Run, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = run("search", r"^d\w+e$", "--regex")[1]
    assert out.splitlines()[1:] == ["    answer, line 5: done"]
    assert run("search", "(", "--regex")[0] == 2
    session = Session.create(Path.cwd(), folders=folders(), clock=FakeClock())

    async def write() -> None:
        for _ in range(7):
            session.append("user", content=text("a" * 60 + "b"), text="")
        await session.close()

    asyncio.run(write())
    monkeypatch.setattr(session_search, "_REGEX_S", 0.02)
    code, out, err = run("search", "(a+)+$", "--regex")
    assert code == 0
    assert "took too long for 5 texts: the search stopped there" in err


def test_other_agents_sessions_are_searched(run: Run, own_folders: Path) -> None:
    folder = own_folders / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    made = ClaudeCode()
    made.user("where is the kumquat?")
    (folder / f"{made.session}.jsonl").write_bytes(lines(made.records))
    first, place = run("search", "kumquat", "--kind", "prompt")[1].splitlines()
    assert first.endswith("/home/user/proj  where is the kumquat?  [Claude Code]")
    assert place == "    prompt: where is the kumquat?"


def test_a_pipe_gets_text_for_people_cleaned_and_data_exactly(run: Run) -> None:
    evil = "a\x1b]0;OWNED\x07b\x1b[2J\x9b31m\u202ec"
    session = Session.create(Path.cwd(), folders=folders(), clock=FakeClock())

    async def write() -> None:
        session.append("user", content=text(evil), text=evil)
        session.append("title", title=evil)
        session.append("assistant", content=text(f"half \ud83d {evil}"), model=evil)
        await session.close()

    asyncio.run(write())
    id_ = session.id
    for words in (("show", id_), ("list",), ("check", id_), ("report", id_)):
        _, out, err = run(*words)
        assert not [mark for mark in "\x1b\x07\x9b\u202e" if mark in out + err]
    assert "abc" in run("show", id_)[1]
    assert evil in run("export", id_)[1]


def test_show_numbers_the_messages(run: Run, path: Path) -> None:
    _, out, _ = run("show", catalog.id_of(path))
    assert "[1 user" in out
    assert "[2 assistant" in out
    assert "result: the result" in out
    assert 'read_file {"path": "x"}' in out


def test_R10_repair_writes_a_copy_and_a_backup_and_leaves_the_original(
    run: Run, path: Path
) -> None:
    before = path.read_bytes()
    code, out, _ = run("repair", path, "--dry-run", "--json")
    told = json.loads(out)
    assert (code, told["written"], told["backup"]) == (0, None, None)
    assert [finding["code"] for finding in told["findings"]] == ["B01"]
    code, out, _ = run("repair", path, "--json")
    told = json.loads(out)
    assert path.read_bytes() == before
    assert Path(told["backup"]).read_bytes() == before
    copy = Path(told["written"])
    assert copy.parent == path.parent
    assert read(copy).header.origin == catalog.id_of(path)
    assert read(copy).header.id != catalog.id_of(path)
    results = [r.data["content"] for r in read(copy).records if r.type == "tool_result"]
    assert results[0] == text("the result")
    assert "Session was interrupted before tool execution completed" in str(results[1])
    assert run("check", copy)[0] == 0
    assert run("check", path)[0] == 1


def test_R10_a_repaired_copy_keeps_what_was_said_of_its_parts(run: Run, own_folders: Path) -> None:
    session = Session.create(Path.cwd(), folders=folders(), clock=FakeClock())

    async def write() -> None:
        for words in ("same", "same"):
            prompt = session.append("user", content=text(words), text=words)
        call_ = session.append("assistant", content=[*text("I will."), CALL], model="m")
        session.append("intent", call_id="a", tool="read_file", effect="read")
        result = session.append("tool_result", call_id="a", name="x", content=text("kept"))
        session.append("assistant", content=[CALL | {"id": "b"}], model="m")
        session.append("intent", call_id="b", tool="read_file", effect="read")
        for target in (call_.id, result.id):
            session.append("pin", target=target, pinned=True)
        session.append("overlay", target=result.id, view="masked", by="person", reason="")
        session.append("overlay", target=prompt.id, view="masked", by="person", reason="")
        session.append("user", content=text("on"), text="on")
        await session.close()

    asyncio.run(write())
    code, out, _ = run("repair", session.path, "--json")
    assert code == 0
    copy = read(Path(json.loads(out)["written"])).branch
    by_id = {record.id: record for record in copy}
    intents = [copy[place + 1] for place, r in enumerate(copy) if r.type == "intent"]
    assert [(r.type, r.data["call_id"]) for r in intents] == [
        ("tool_result", "a"),
        ("tool_result", "b"),
    ]
    pinned = [by_id[r.data["target"]] for r in copy if r.type == "pin"]
    assert [r.type for r in pinned] == ["assistant", "tool_result"]
    masked = [by_id[r.data["target"]] for r in copy if r.type == "overlay"]
    assert masked[0] == pinned[1]
    assert all(r.data.get("text") for r in copy if r.type == "user" and "on" in str(r.data))


def test_repair_of_a_sound_session_writes_nothing(run: Run, path: Path, tmp_path: Path) -> None:
    told = json.loads(run("repair", path, "--json")[1])
    again = json.loads(run("repair", told["written"], "--json")[1])
    assert again == {"written": None, "backup": None, "findings": []}
    out = tmp_path / "copy.jsonl"
    told = json.loads(run("repair", told["written"], "--out", out, "--json")[1])
    assert told["written"] == str(out)
    assert run("repair", path, "--out", out)[0] == 1, "nothing is overwritten"


@pytest.mark.parametrize("format_", ["md", "html", "jsonl"])
def test_exports_are_masked_and_say_so(run: Run, path: Path, format_: str, tmp_path: Path) -> None:
    code, out, err = run("export", catalog.id_of(path), "--format", format_)
    assert code == 0
    assert KEY not in out
    assert "[secret removed]" in out
    assert "Removed 1 secret" in err
    file = tmp_path / f"out.{format_}"
    run("export", path, "--format", format_, "--out", file)
    assert file.read_text() == out
    assert run("export", path, "--format", format_, "--out", file)[0] == 1
    assert file.read_text() == out
    if format_ == "html":
        assert "<b>" not in out
        assert "&lt;b&gt;x" in out
        assert "1 secret removed" in out
        assert "http://" not in out
        assert "<script" not in out
    if format_ == "jsonl":
        values = [json.loads(line) for line in out.splitlines()]
        assert [value["type"] for value in values][:2] == ["session", "user"]


@pytest.mark.parametrize("words", ["export", "report", "export --format markdown"])
def test_a_dash_is_standard_output(
    run: Run, path: Path, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = run(*words.replace("markdown", "md").split(), path)[1]
    code, out, _ = run(*words.split(), path, "-o", "-")
    assert (code, out) == (0, plain)
    assert json.loads(run(*words.split(), path, "--out", "-", "--json")[1])["document"] == out
    assert not (tmp_path / "-").exists()


def test_a_copy_is_not_written_to_standard_output(
    run: Run, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run("repair", path, "-o", "-")
    assert code == 2
    assert "Name a file." in err
    assert not [*tmp_path.glob("-*")]


@pytest.mark.parametrize(("at", "kept"), [("", 7), ("1", 1), ("2", 3), ("3", 4)])
def test_fork_copies_the_way_to_a_message(run: Run, path: Path, at: str, kept: int) -> None:
    before = path.read_bytes()
    _, out, _ = run("fork", path, "--json", *(["--at", at] if at else []))
    told = json.loads(out)
    made = read(Path(told["path"]))
    assert made.header.id == told["id"] != catalog.id_of(path)
    assert made.header.origin == catalog.id_of(path)
    assert made.records == read(path).records[:kept]
    assert made.findings == ()
    assert path.read_bytes() == before
    by_id = read(path).records[kept - 1].id
    told = json.loads(run("fork", path, "--json", "--at", by_id)[1])
    assert read(Path(told["path"])).records == made.records


def test_fork_of_a_message_that_is_not_there(run: Run, path: Path) -> None:
    code, _, err = run("fork", path, "--at", "99")
    assert code == 4
    assert "No message 99" in err


def test_delete_moves_to_the_trash(run: Run, path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    kept = Path(json.loads(run("delete", catalog.id_of(path), "--json")[1])["path"])
    assert kept == folders().data / "trash" / path.parent.name / path.name
    assert kept.read_bytes() == before
    assert list(path.parent.iterdir()) == []
    assert json.loads(run("list", "--all", "--json")[1]) == []
    other = tmp_path / "other.jsonl"
    other.write_bytes(before)
    assert run("delete", other)[0] == 4
    assert other.exists()


def test_rename_appends_a_title(run: Run, path: Path) -> None:
    before = path.read_bytes()
    assert run("rename", catalog.id_of(path), "A better\n title")[0] == 0
    assert path.read_bytes().startswith(before)
    assert json.loads(run("list", "--json")[1])[0]["title"] == "A better title"
    assert run("rename", catalog.id_of(path), " ")[0] == 2


def test_import_makes_a_session_of_ours(run: Run, tmp_path: Path) -> None:
    foreign = tmp_path / "theirs.jsonl"
    lines = [
        {
            "type": kind, "uuid": kind, "parentUuid": parent, "sessionId": "s", "cwd": "/w",
            "timestamp": "2026-11-21T09:00:00.000Z", "isSidechain": False,
            "message": {"role": kind, "content": text(f"from {kind}"), "id": "m"},
        }
        for kind, parent in (("user", None), ("assistant", "user"))
    ]  # fmt: skip
    foreign.write_text("".join(json.dumps(line) + "\n" for line in lines))
    told = json.loads(run("import", foreign, "--json")[1])
    assert told["messages"] == 2
    made = read(Path(told["path"]))
    assert made.header.cwd == "/w"
    assert str(made.header.origin).startswith("claude_code:")
    assert Path(told["path"]).parent == folders().sessions_of(Path("/w"))
    assert run("check", told["id"])[0] == 0
    assert run("import", told["path"])[0] == 4, "it is ours already"


def test_import_says_what_check_says_and_takes_the_sub_agents_along(
    run: Run, tmp_path: Path
) -> None:
    foreign = tmp_path / "theirs.jsonl"
    made = ClaudeCode()
    made.user("go")
    made.piece("m", {**tool_use("call_1", "Task"), "input": {"prompt": "look"}})
    made.user("look", parent=None, isSidechain=True, agentId="a1")
    made.piece("n", {"type": "text", "text": "found"}, isSidechain=True, agentId="a1")
    made.add("progress", parent=None, data={})
    made.add("user", message=5)
    foreign.write_bytes(made.bytes())
    told = json.loads(run("import", foreign, "--json")[1])
    checked = json.loads(run("check", foreign, "--json")[1])
    assert told["findings"] == checked["findings"]
    assert {one["code"] for one in told["findings"]} == {"B01", "B56", "B59"}
    assert told["sub_agents"] == checked["sub_agents"] == 1
    rows = json.loads(run("list", "--all", "--sub-agents", "--json")[1])
    child = next(row for row in rows if row.get("parent"))
    assert child["parent"] == told["id"]
    header = read(Path(child["path"])).header
    assert (header.parent_session, header.parent_call) == (told["id"], "call_1")
    named = [r.data for r in read(Path(told["path"])).records if r.type == "sub_agent"]
    assert [(one["session"], one["path"]) for one in named] == [(child["id"], child["path"])]
    again = json.loads(run("import", foreign, "--json")[1])
    assert run("show", child["id"])[0] == 0, "a second import has sub-agents of its own"
    assert again["id"] != told["id"]


def test_what_another_program_keeps_for_itself_is_said_and_is_no_damage(
    run: Run, tmp_path: Path
) -> None:
    foreign = tmp_path / "theirs.jsonl"
    foreign.write_bytes(claude_code(1).bytes())
    code, out, err = run("check", foreign)
    assert code == 0
    assert "left out: 2 records (progress)" in out
    assert "Nothing to repair." in err
    assert "left out: 2 records (progress)" in run("import", foreign)[2]


@pytest.mark.parametrize("records", [[], [{"type": "queue-operation", "sessionId": "s"}]])
def test_a_file_without_a_message_is_no_session(
    run: Run, tmp_path: Path, records: list[Any]
) -> None:
    foreign = tmp_path / "theirs.jsonl"
    foreign.write_bytes(lines(records))
    code, _, err = run("import", foreign)
    assert (code, "no message" in err) == (4, True)
    assert run("check", foreign)[0] == 1
    assert json.loads(run("list", "--all", "--json")[1]) == []


def test_our_own_export_comes_back_with_all_its_branches(
    run: Run, path: Path, tmp_path: Path
) -> None:
    async def rewind() -> None:
        session = Session.open(path, clock=FakeClock())
        await session.rewind(next(r.id for r in session.records if r.type == "user"))
        session.append("user", content=text("another way"), text="another way")
        await session.close()

    asyncio.run(rewind())
    exported = tmp_path / "elsewhere.jsonl"
    run("export", catalog.id_of(path), "--format", "jsonl", "--out", exported)
    told = json.loads(run("import", exported, "--json")[1])
    made, before = read(Path(told["path"])), read(path)
    same = [[(r.id, r.parent, r.type) for r in one.records] for one in (made, before)]
    assert same[0] == same[1]
    assert [r.id for r in made.branch] == [r.id for r in before.branch]
    assert made.header.origin == before.header.id != made.header.id
    assert run("verify", told["id"])[0] == 0
    exported.write_bytes(exported.read_bytes().split(b"\n")[0] + b"\n")
    assert run("import", exported)[0] == 4


def test_what_is_open_elsewhere_is_not_deleted(
    run: Run, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tui.session import lock  # noqa: PLC0415

    holder = lock.SessionLock(path, clock=FakeClock())
    holder.take()
    monkeypatch.setattr(lock, "_PROGRAM", "another")
    for words in (("delete", path), ("rename", path, "x")):
        code, _, err = run(*words)
        assert code == 4
        assert "is open in" in err
    assert run("show", path)[0] == 0
    holder.release()


def test_a_session_as_spans_for_a_file_and_for_a_collector(run: Run, path: Path) -> None:
    code, out, _ = run("export", catalog.id_of(path), "--format", "otlp")
    assert code == 0
    (line,) = out.splitlines()
    spans = read_by_the_package(line).resource_spans[0].scope_spans[0].spans
    assert len(spans) == 8
    assert KEY not in out
    assert "the result" not in out  # no content without [otel] content
    code, _, err = run("send", path)
    assert code == 1
    assert "enabled = true" in err
    with local_collector() as collector:
        text = f'[otel]\nenabled = true\ncontent = true\nendpoint = "{collector.url}"\n'
        folders().config_file.parent.mkdir(parents=True, exist_ok=True)
        folders().config_file.write_text(text)
        host = collector.url.removeprefix("http://")
        assert run("send", path) == (0, "", f"Sent 8 spans to {host}.\n")
        assert json.loads(run("send", path, "--json")[1]) == {
            "collector": host,
            "sent": 8,
            "rejected": 0,
        }
        assert {one.span_id for one in collector.spans} == {one.span_id for one in spans}
        sent = "".join(map(str, collector.spans))
        assert "the result" in sent
        assert KEY not in sent
        collector.answers.append((503, {}, b""))
        code, _, err = run("send", path)
        assert code == 1
        assert f"{host} doesn't take the spans: it answers 503." in err
