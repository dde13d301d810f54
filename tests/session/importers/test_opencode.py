"""opencode's sessions, from its database and from files of `opencode export`, told as ours."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from tests.session.importers.telling import codes, kinds, left_out, prompts, request, said
from tests.support import opencode_database
from tests.support.opencode_database import SESSION, damage
from tui.cli.main import main
from tui.context.validate import check
from tui.context.view import build
from tui.core.errors import SessionError
from tui.session import importers
from tui.session.reader import LoadedSession

Json = dict[str, Any]
ANTHROPIC = {"providerID": "anthropic", "modelID": "claude-sonnet-5-5"}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "opencode.db"
    opencode_database.make(path, 2)
    return path


def test_sessions_of_sub_agents_are_named(database: Path) -> None:
    with closing(sqlite3.connect(database)) as db:
        db.execute("ALTER TABLE session ADD parent_id text")
        row = ("ses_2", "global", "x", "/w", "A child", "1", "{}", None, None, 1, 1, SESSION)
        db.execute(f"INSERT INTO session VALUES ({', '.join('?' * 12)})", row)
        db.commit()
    assert left_out(importers.load(database)) == [
        f"session {SESSION}: left out: 1 session of sub-agents; name one to import it"
    ]


def user(id_: str, *parts: Json) -> Json:
    return {"info": {"id": id_, "role": "user", "time": {"created": 1}}, "parts": list(parts)}


def answer(id_: str, *parts: Json, **info: Any) -> Json:
    given = {"id": id_, "role": "assistant", "time": {"created": 2}, **ANTHROPIC, **info}
    return {"info": given, "parts": list(parts)}


def text(words: str, **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


def tool(id_: str, status: str, **state: Any) -> Json:
    given = {"status": status, "input": {"command": "ls"}, **state}
    return {"type": "tool", "callID": id_, "tool": "bash", "state": given}


def export(path: Path, *messages: Json, **info: Any) -> Path:
    """A file as `opencode export` writes it."""
    about = {"id": "ses_1", "directory": "/w", "title": "A title", "version": "1.18.33", **info}
    path.write_text(json.dumps({"info": about, "messages": list(messages)}, indent=2))
    return path


def load(tmp_path: Path, *messages: Json, **info: Any) -> LoadedSession:
    path = export(tmp_path / "session.json", *messages, **info)
    assert importers.recognise(path) == "opencode"
    return importers.load(path)


def test_a_session_of_a_database_is_told_whole_and_needs_no_repair(database: Path) -> None:
    before = database.read_bytes()
    path = database / SESSION
    assert importers.recognise(path) == "opencode"
    loaded = importers.load(path)
    assert codes(loaded) == []
    messages, findings = request(loaded)
    assert findings == []
    assert said(messages) == [
        "user: prompt 0 é",
        "assistant: c0, answer 0 é",
        "user: c0=a, prompt 1 é",
        "assistant: c1, answer 1 é",
        "user: c1=a",
    ]
    assert loaded.header.origin == f"opencode:{SESSION}"
    assert (loaded.header.cwd, loaded.header.app) == ("/w", "opencode 1.18.33")
    assert database.read_bytes() == before


def test_each_step_is_an_answer_with_its_results(tmp_path: Path) -> None:
    loaded = load(
        tmp_path,
        user("msg_1", text("go"), text("file content", synthetic=True), text("no", ignored=True)),
        answer(
            "msg_2",
            {"type": "step-start"},
            {"type": "reasoning", "text": "hm", "metadata": {"anthropic": {"signature": "sig"}}},
            text("I look."),
            tool("a", "completed", output="out a"),
            tool("b", "error", error="no such file"),
            {"type": "step-finish", "reason": "tool-calls", "tokens": {"input": 3, "output": 4}},
            {"type": "step-start"},
            text("Done."),
            {"type": "step-finish", "reason": "stop", "tokens": {"input": 5, "output": 6}},
        ),
    )
    assert prompts(loaded) == ["go"]
    messages, findings = request(loaded)
    assert findings == []
    assert said(messages)[:4] == [
        "user: go, file content",
        "assistant: thinking, I look., a, b",
        "user: a=out a, b=no such file",
        "assistant: Done.",
    ]
    answers = [record.data for record in loaded.records if record.type == "assistant"]
    assert [one["stop_reason"] for one in answers] == ["tool_use", "end_turn"]
    assert answers[0]["usage"] == {"input_tokens": 3, "output_tokens": 4}
    assert loaded.records[0].data["text"] == "go"


def test_a_call_that_was_running_says_that_it_was_interrupted(tmp_path: Path) -> None:
    aborted = {"name": "MessageAbortedError", "data": {"message": "Aborted"}}
    loaded = load(
        tmp_path,
        user("msg_1", text("go")),
        answer("msg_2", tool("a", "running"), error=aborted),
        user("msg_3", text("on")),
        answer("msg_4", error={"name": "APIError", "data": {"message": "overloaded"}}),
    )
    assert kinds(loaded) == [
        "user", "assistant", "tool_result", "interrupt", "user", "error", "title",
    ]  # fmt: skip
    messages, _ = request(loaded)
    assert said(messages)[2].startswith("user: a=[Tool execution was interrupted]")


def test_thinking_of_another_provider_is_left_out(tmp_path: Path) -> None:
    other = {"type": "reasoning", "text": "hm", "metadata": {"openai": {"itemId": "rs_1"}}}
    loaded = load(
        tmp_path,
        user("msg_1", text("go")),
        answer("msg_2", other, text("Done."), providerID="openai", modelID="gpt-5"),
    )
    assert said(request(loaded)[0])[:2] == ["user: go", "assistant: Done."]


def test_a_compaction_is_an_event_that_names_what_it_left_in_place(tmp_path: Path) -> None:
    ask = {"type": "compaction", "auto": True, "tail_start_id": "msg_3"}
    loaded = load(
        tmp_path,
        user("msg_1", text("first")),
        answer("msg_2", text("one")),
        user("msg_3", text("second")),
        answer("msg_4", text("two")),
        user("msg_5", ask),
        answer("msg_6", text("What was done."), summary=True, parentID="msg_5", finish="stop"),
        user("msg_7", text("third")),
    )
    kept = next(record for record in loaded.records if record.data.get("text") == "second")
    compaction = next(record for record in loaded.records if record.type == "compaction")
    assert (compaction.data["summary"], compaction.data["first_kept"]) == (
        "What was done.",
        kept.id,
    )
    assert said(request(loaded)[0]) == [
        "user: first", "assistant: one", "user: second", "assistant: two", "user: third",
    ]  # fmt: skip


def test_what_was_reverted_stays_in_the_original(tmp_path: Path) -> None:
    loaded = load(
        tmp_path,
        user("msg_1", text("first")),
        answer("msg_2", text("one")),
        user("msg_3", text("second")),
        answer("msg_4", text("two")),
        revert={"messageID": "msg_3"},
    )
    assert said(request(loaded)[0])[:2] == ["user: first", "assistant: one"]
    assert "second" not in str(request(loaded)[0])
    notes = [record.data["text"] for record in loaded.records if record.type == "note"]
    assert notes == ["2 records of other branches stayed in the original file."]


def test_an_image_is_attached_and_another_file_is_named(tmp_path: Path) -> None:
    url = "data:image/png;base64,aGk="
    image = {"type": "file", "mime": "image/png", "filename": "a.png", "url": url}
    pdf = {"type": "file", "mime": "application/pdf", "filename": "b.pdf", "url": "data:x"}
    note = {"type": "file", "mime": "text/plain", "filename": "c.txt", "url": "file:///c.txt"}
    loaded = load(tmp_path, user("msg_1", text("see"), image, pdf, note))
    content = loaded.records[0].data["content"]
    assert [block["type"] for block in content] == ["text", "image", "text"]
    assert content[1]["source"]["data"] == "aGk="
    assert content[2]["text"] == "[Attached application/pdf: b.pdf]"


def test_of_an_export_that_is_cut_the_whole_messages_are_read(tmp_path: Path) -> None:
    messages = [user(f"msg_{n}", text(f"prompt {n}")) for n in range(5)]
    path = export(tmp_path / "session.json", *messages)
    whole = path.read_text()
    path.write_text(whole[: whole.index("prompt 3")])
    loaded = importers.load(path)
    assert codes(loaded) == ["B52"]
    assert said(request(loaded)[0]) == ["user: prompt 0, prompt 1, prompt 2"]
    assert loaded.header.origin == "opencode:ses_1"


def test_a_database_with_several_sessions_says_how_to_name_one(database: Path) -> None:
    assert importers.load(database).records, "it has one only"
    with closing(sqlite3.connect(database)) as db:
        names = "id, project_id, slug, directory, title, version, time_created, time_updated"
        row = ("ses_2", "global", "x", "/v", "Other", "1", 1, 5)
        db.execute(f"INSERT INTO session ({names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        db.commit()
    with pytest.raises(SessionError) as raised:
        importers.load(database)
    assert raised.value.message == f"{database} has 2 sessions."
    assert raised.value.hint.splitlines() == [
        "Name one:", f"{database / 'ses_2'}  Other", f"{database / SESSION}  A title",
    ]  # fmt: skip
    with pytest.raises(SessionError, match="ses_3"):
        importers.load(database / "ses_3")


def test_the_sessions_of_its_database_are_listed(tmp_path: Path) -> None:
    folders = importers.usual_folders(tmp_path)
    assert importers.find(folders) == []
    home = folders["opencode"][0]
    home.mkdir(parents=True)
    opencode_database.make(home / "opencode.db", 2)
    (found,) = importers.find(folders)
    assert (found.format, found.title, found.cwd) == ("opencode", "A title", "/w")
    assert found.path == home / "opencode.db" / SESSION
    (home / "opencode.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    assert importers.find(folders) == []


def test_damaged_databases_are_opened(tmp_path: Path) -> None:
    sound, path = tmp_path / "sound.db", tmp_path / "o.db"
    opencode_database.make(sound)
    for seed in range(100):
        shutil.copy(sound, path)
        damage(path, random.Random(seed))
        loaded = importers.load(path / SESSION)
        assert check(build(loaded.branch, model="claude-sonnet-5-5").messages) == [], seed
        with closing(sqlite3.connect(path)) as db:
            rows = db.execute("SELECT data FROM part").fetchall()
        told = json.dumps([record.data for record in loaded.records], ensure_ascii=False)
        for (raw,) in rows:
            try:
                part = json.loads(raw)
            except (ValueError, TypeError):
                continue
            said_ = cast("Json", part) if isinstance(part, dict) else {}
            if said_.get("type") == "text" and "text" in said_:
                assert said_["text"] in told, seed


def test_of_damaged_pages_the_readable_messages_are_told(tmp_path: Path) -> None:
    path = tmp_path / "o.db"
    opencode_database.make(path, 100)
    data = bytearray(path.read_bytes())
    page = data.index(b'"prompt 50') // 4096 * 4096  # a leaf with rows
    data[page : page + 8] = b"\xff" * 8
    path.write_bytes(bytes(data))
    loaded = importers.load(path / SESSION)
    assert "B52" in codes(loaded)
    told = str([record.data for record in loaded.records])
    assert "prompt 1 " in told
    assert "prompt 99 " in told


def test_the_command_imports_it(
    database: Path, capsys: pytest.CaptureFixture[str], own_folders: Path
) -> None:
    assert main(["sessions", "import", str(database / SESSION), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["messages"] == 4
    assert own_folders in Path(made["path"]).parents
