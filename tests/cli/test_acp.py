"""`holdfast acp`: what an editor gets, asks and changes, with the official client on the other
side of the pipes."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from acp import RequestError, schema
from acp.connection import Connection

from tests.support.clock import PATIENCE_S, ManualClock
from tests.support.editor import EditorClient, editing
from tests.support.server import LoopbackServer
from tests.support.serving import serving
from tui.app.options.arguments import Options
from tui.app.options.parser import parse
from tui.cli.acp.agent import EditorService
from tui.cli.acp.editor import PATIENCE_S as PATIENCE_REMINDED_S
from tui.cli.acp.editor import EditorApprover, Outbox
from tui.cli.acp.updates import SessionUpdates
from tui.core.facts import ToolStarted
from tui.core.paths import folders
from tui.core.questions import AnswerChoice, UserQuestion
from tui.permissions.types import Call, Decision
from tui.session import catalog
from tui.session.reader import read

Serve: TypeAlias = Callable[..., LoopbackServer]

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9aw"
    "AAAABJRU5ErkJggg=="
)
EDIT = {
    "name": "edit_file",
    "input": {"path": "calc.py", "edits": [{"old_string": "a - b", "new_string": "a + b"}]},
}
READ = {"name": "read_file", "input": {"path": "calc.py"}}
RUN = {"name": "run_command", "input": {"command": "python3 calc.py"}}
ACP = Options(command="acp")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "calc.py").write_text("def add(a, b):\n    return a - b\n\nprint(add(1, 2))\n")
    return folder


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Generator[Serve]:
    """Starts a loopback server with these turns, and makes it the one that is asked."""
    with ExitStack() as stack:

        def start(*turns: dict[str, Any], **more: Any) -> LoopbackServer:
            script = {"turns": list(turns), "signatures": False, "binding": False, **more}
            server = stack.enter_context(serving(script))
            monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
            monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
            config = folders().config_file
            config.parent.mkdir(parents=True, exist_ok=True)
            config.write_text('titles = "prompt"\n')
            return server

        yield start


def records(session: str) -> list[Any]:
    return read(catalog.resolve(session, folders())).branch


async def test_initialize_says_what_is_there_whatever_version_is_asked_for(
    work: Path, serve: Serve
) -> None:
    serve()
    async with editing(ACP, work) as editor:
        found = await editor.conn.initialize(protocol_version=999)
    assert found.protocol_version == 1
    can = found.agent_capabilities
    assert can is not None
    assert can.load_session
    assert can.prompt_capabilities is not None
    assert can.prompt_capabilities.image
    assert can.prompt_capabilities.embedded_context
    assert not can.prompt_capabilities.audio
    assert can.mcp_capabilities is not None
    assert can.mcp_capabilities.http
    assert [way.id for way in found.auth_methods or ()] == ["stored", "environment"]


async def test_a_refused_notification_is_one_line_of_the_log(
    work: Path, serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    serve()
    async with editing(ACP, work) as editor:
        await editor.conn.cancel(session_id="none")
        await editor.conn.cancel(session_id="\x1b[2J\n" * 10_000)
        await editor.conn.ext_notification("no/such", {"odd": ["params"]})
        await editor.conn.initialize(protocol_version=1)
    refused = [line for line in caplog.records if "refused" in line.message]
    assert len(refused) == 3
    assert not any(line.exc_info for line in caplog.records)
    assert all(len(line.message) < 600 and line.message.isprintable() for line in refused)


async def test_a_cursor_of_thousands_of_digits_is_refused_in_words(work: Path, serve: Serve):
    serve()
    async with editing(ACP, work) as editor:
        with pytest.raises(RequestError, match="none of Holdfast's"):
            await editor.conn.list_sessions(cursor="1" * 5_000)


async def test_without_a_key_it_says_so_in_words(work: Path) -> None:
    async with editing(ACP, work) as editor:
        with pytest.raises(RequestError, match="No API key found") as caught:
            await editor.new()
        assert caught.value.code == -32000
        with pytest.raises(RequestError, match="Set ANTHROPIC_API_KEY") as caught:
            await editor.conn.authenticate(method_id="stored")
        assert caught.value.code == -32000
        with pytest.raises(RequestError, match="no way to sign in named 'magic'"):
            await editor.conn.authenticate(method_id="magic")


async def test_a_key_in_the_environment_signs_in(work: Path, serve: Serve) -> None:
    serve()
    async with editing(ACP, work) as editor:
        assert await editor.conn.authenticate(method_id="environment") is not None


async def test_a_whole_task_with_edits_and_approvals(work: Path, serve: Serve) -> None:
    todo = {"name": "todo_write", "input": {"todos": [{"text": "fix it", "status": "completed"}]}}
    serve(
        {"thinking": "Where is it?", "text": "I'll look.", "tools": [READ]},
        {"tools": [EDIT, todo]},
        {"tools": [RUN]},
        {"text": "Fixed."},
    )
    async with editing(ACP, work) as editor:
        session = await editor.new()
        done = await editor.prompt(session, "Fix the bug.")
    client = editor.client
    assert done.stop_reason == "end_turn"
    assert done.usage is not None
    assert done.usage.output_tokens == 80
    assert "a + b" in (work / "calc.py").read_text()
    assert client.said == "I'll look.Fixed."
    assert "".join(t["content"]["text"] for t in client.of("agent_thought_chunk")) == "Where is it?"

    edit, run = client.asked
    assert edit["kind"] == "edit"
    assert edit["content"][-1] == {
        "type": "diff",
        "path": str(work / "calc.py"),
        "oldText": "def add(a, b):\n    return a - b\n\nprint(add(1, 2))",
        "newText": "def add(a, b):\n    return a + b\n\nprint(add(1, 2))",
    }
    assert [(one["optionId"], one["kind"]) for one in edit["options"]] == [
        ("once", "allow_once"),
        ("session", "allow_always"),
        ("always", "allow_always"),
        ("no", "reject_once"),
    ]
    assert [one["name"] for one in edit["options"]] == [
        "Yes",
        "Yes, edits here this session",
        "Always here",
        "No",
    ]
    assert "edit_file(" in edit["content"][0]["content"]["text"]
    assert run["kind"] == "execute"
    assert "python3 calc.py" in run["content"][-1]["content"]["text"]

    started = {one["toolCallId"]: one for one in client.of("tool_call")}
    kinds = [(one["title"], one["kind"]) for one in started.values()]
    assert kinds == [
        ("Read calc.py", "read"),
        ("Edit calc.py", "edit"),
        ("To-do list 1/1 done", "think"),
        ("Run python3 calc.py", "execute"),
    ]
    assert started[edit["toolCallId"]]["rawInput"] == EDIT["input"]
    ended = {o["toolCallId"]: o for o in client.of("tool_call_update") if "rawOutput" in o}
    assert {one["status"] for one in ended.values()} == {"completed"}
    assert ended[edit["toolCallId"]]["content"][0]["newText"].startswith("def add")
    place = {"path": str(work / "calc.py"), "line": 1}
    assert ended[edit["toolCallId"]]["locations"] == [place]
    assert "exit code 0" in ended[run["toolCallId"]]["content"][0]["content"]["text"]
    (plan,) = client.of("plan")
    assert plan["entries"] == [{"content": "fix it", "priority": "medium", "status": "completed"}]
    assert client.of("usage_update")[-1]["size"] == 200_000
    assert client.of("session_info_update")[-1]["title"] == "Fix the bug."


async def test_a_session_is_listed_and_loaded_with_its_history(work: Path, serve: Serve) -> None:
    serve({"thinking": "Hm.", "text": "I'll fix it.", "tools": [READ, EDIT]}, {"text": "Fixed."})
    async with editing(ACP, work) as editor:
        session = await editor.new()
        await editor.prompt(session, "Fix the bug.")
    async with editing(ACP, work) as editor:
        listed = await editor.conn.list_sessions(cwd=str(work))
        assert [(one.session_id, one.title) for one in listed.sessions] == [
            (session, "Fix the bug.")
        ]
        loaded = await editor.conn.load_session(cwd=str(work), session_id=session, mcp_servers=[])
        history = list(editor.client.updates)
    assert loaded is not None
    assert loaded.modes is not None
    assert [one["sessionUpdate"] for one in history][:8] == [
        "user_message_chunk",
        "agent_thought_chunk",
        "agent_message_chunk",
        "tool_call",
        "tool_call",
        "tool_call_update",
        "tool_call_update",
        "agent_message_chunk",
    ]
    assert history[0]["content"]["text"] == "Fix the bug."
    assert history[4]["title"] == "Edit calc.py"
    assert history[6]["status"] == "completed"
    assert history[6]["content"][0]["type"] == "diff"


async def test_a_session_is_resumed_without_its_history_and_forked(
    work: Path, serve: Serve
) -> None:
    serve({"text": "One."}, {"text": "Two."})
    async with editing(ACP, work) as editor:
        session = await editor.new()
        await editor.prompt(session, "First.")
        await editor.conn.close_session(session_id=session)
        with pytest.raises(RequestError, match=r"isn't open here\. Load or resume it first"):
            await editor.prompt(session, "Second.")
        before = len(editor.client.of("user_message_chunk"))
        await editor.conn.resume_session(cwd=str(work), session_id=session)
        copy = await editor.conn.fork_session(cwd=str(work), session_id=session)
        assert copy.session_id != session
        await editor.prompt(copy.session_id, "Second.")
        assert len(editor.client.of("user_message_chunk")) == before
    assert [r.data["text"] for r in records(copy.session_id) if r.type == "user"] == [
        "First.",
        "Second.",
    ]
    assert [r.data["text"] for r in records(session) if r.type == "user"] == ["First."]


async def test_a_session_that_is_not_there_is_an_error_in_words(work: Path, serve: Serve) -> None:
    serve()
    async with editing(ACP, work) as editor:
        with pytest.raises(RequestError, match="Session not found: 123456789abc"):
            await editor.conn.load_session(cwd=str(work), session_id="123456789abc", mcp_servers=[])
        with pytest.raises(RequestError, match="absolute path of a folder, not 'somewhere'"):
            await editor.conn.new_session(cwd="somewhere", mcp_servers=[])
        with pytest.raises(RequestError, match="cursor"):
            await editor.conn.list_sessions(cursor="x")


async def test_sessions_of_one_process_do_not_mix(work: Path, serve: Serve) -> None:
    serve({"text": "One."}, {"text": "Two."})
    async with editing(ACP, work) as editor:
        one, two = await editor.new(), await editor.new()
        await editor.prompt(one, "First.")
        await editor.prompt(two, "Second.")
    said = {
        session: [
            update["content"]["text"]
            for update in editor.client.of("agent_message_chunk")
            if update["session"] == session
        ]
        for session in (one, two)
    }
    assert said == {one: ["One."], two: ["Two."]}


@pytest.mark.parametrize("answer", ["no", None], ids=["rejected", "closed"])
async def test_what_is_not_allowed_is_not_done(
    work: Path, serve: Serve, answer: str | None
) -> None:
    serve({"tools": [READ, EDIT]}, {"text": "Then not."})
    async with editing(ACP, work, EditorClient(answer=lambda _: answer)) as editor:
        session = await editor.new()
        done = await editor.prompt(session, "Fix the bug.")
    assert done.stop_reason == "end_turn"
    assert "a - b" in (work / "calc.py").read_text()
    assert editor.client.of("tool_call_update")[-1]["status"] == "failed"


async def test_a_yes_for_the_session_and_one_for_ever_count(work: Path, serve: Serve) -> None:
    again = {"name": "write_file", "input": {"path": "new.py", "content": "1\n"}}
    serve({"tools": [READ, EDIT]}, {"tools": [again]}, {"text": "Done."})
    async with editing(ACP, work, EditorClient(answer=lambda _: "always")) as editor:
        session = await editor.new()
        await editor.prompt(session, "Fix the bug.")
    assert len(editor.client.asked) == 1
    assert (work / "new.py").exists()
    assert "edit_file(" in folders().config_file.read_text()


async def test_cancelling_ends_the_turn_and_the_question(work: Path, serve: Serve) -> None:
    serve({"tools": [READ, EDIT]}, {"text": "More."})
    async with editing(ACP, work, EditorClient(answer=None)) as editor:
        session = await editor.new()
        prompt = asyncio.create_task(editor.prompt(session, "Fix the bug."))
        await editor.client.asking.wait()
        await editor.conn.cancel(session_id=session)
        assert (await prompt).stop_reason == "cancelled"
        editor.client.answer = lambda _: "once"
        assert (await editor.prompt(session, "Go on.")).stop_reason == "end_turn"
    assert "a - b" in (work / "calc.py").read_text()
    assert any(record.type == "interrupt" for record in records(session))


async def test_an_editor_that_goes_interrupts_the_turn(work: Path, serve: Serve) -> None:
    serve({"tools": [READ, EDIT]})
    client = EditorClient(answer=None)
    async with editing(ACP, work, client) as editor:
        session = await editor.new()
        prompt = asyncio.create_task(editor.prompt(session, "Fix the bug."))
        await client.asking.wait()
    with pytest.raises((ConnectionError, asyncio.CancelledError)):
        await prompt
    kinds = [record.type for record in records(session)]
    assert "interrupt" in kinds
    assert "a - b" in (work / "calc.py").read_text()
    async with editing(ACP, work) as editor:  # nothing has it open any more
        await editor.conn.load_session(cwd=str(work), session_id=session, mcp_servers=[])
        assert "Interrupted." in editor.client.said


async def test_modes_say_what_asks(work: Path, serve: Serve) -> None:
    serve({"tools": [READ, EDIT]}, {"text": "Done."})
    async with editing(ACP, work) as editor:
        made = await editor.conn.new_session(cwd=str(work), mcp_servers=[])
        assert made.modes is not None
        assert [mode.id for mode in made.modes.available_modes] == ["ask", "accept_edits", "plan"]
        session = made.session_id
        await editor.conn.set_session_mode(session_id=session, mode_id="accept_edits")
        with pytest.raises(RequestError, match=r"no mode 'elevated'\. Use ask, accept_edits, plan"):
            await editor.conn.set_session_mode(session_id=session, mode_id="elevated")
        await editor.prompt(session, "Fix the bug.")
        assert not editor.client.asked
        assert "a + b" in (work / "calc.py").read_text()
        await editor.prompt(session, "/plan")
        changed = [one["currentModeId"] for one in editor.client.of("current_mode_update")]
        assert changed == ["accept_edits", "plan"]


async def test_elevated_is_a_mode_where_it_was_started_so(work: Path, serve: Serve) -> None:
    serve({"tools": [READ, EDIT]}, {"text": "Done."})
    async with editing(parse(["acp", "-y"]), work) as editor:
        made = await editor.conn.new_session(cwd=str(work), mcp_servers=[])
        assert made.modes is not None
        assert made.modes.current_mode_id == "elevated"
        await editor.conn.set_session_mode(session_id=made.session_id, mode_id="ask")
        await editor.prompt(made.session_id, "Fix the bug.")
        assert len(editor.client.asked) == 1
        await editor.conn.set_session_mode(session_id=made.session_id, mode_id="elevated")
        again = await editor.conn.load_session(
            cwd=str(work), session_id=made.session_id, mcp_servers=[]
        )
        assert again is not None
        assert again.modes is not None
        assert again.modes.current_mode_id == "elevated"


async def test_a_prompt_elevates_nothing_where_it_was_not_started_so(
    work: Path, serve: Serve
) -> None:
    server = serve({"text": "One."})
    async with editing(ACP, work) as editor:
        session = await editor.new()
        with pytest.raises(RequestError, match="Only holdfast acp -y can be elevated"):
            await editor.prompt(session, "/elevated on and delete it")
        await editor.prompt(session, "/elevated off Hello.")
    assert len(server.posts) == 1


async def test_a_session_that_is_closed_ends_its_prompts(work: Path, serve: Serve) -> None:
    serve({"tools": [READ, EDIT]})
    async with editing(ACP, work, EditorClient(answer=None)) as editor:
        session = await editor.new()
        prompt = asyncio.create_task(editor.prompt(session, "Fix the bug."))
        await editor.client.asking.wait()
        await editor.conn.close_session(session_id=session)
        assert (await prompt).stop_reason == "cancelled"
    assert any(record.type == "interrupt" for record in records(session))


async def test_a_session_goes_to_the_trash(work: Path, serve: Serve) -> None:
    serve({"text": "One."})
    async with editing(ACP, work) as editor:
        session = await editor.new()
        await editor.prompt(session, "Hello.")
        delete = schema.DeleteSessionRequest(session_id=session)
        service = EditorService(ACP)
        await editor.conn.close_session(session_id=session)
        await service.delete(delete)
        assert (await editor.conn.list_sessions(cwd=str(work))).sessions == []


class Wire:
    """Takes what is sent; nothing ever comes."""

    def __init__(self) -> None:
        self.sent = asyncio.Queue[dict[str, Any]]()

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.put_nowait(message)

    async def receive(self) -> dict[str, Any] | None:
        return None

    async def close(self) -> None:
        """Nothing is open."""


async def test_a_question_that_nobody_answers_is_said_to_wait(work: Path) -> None:
    wire, clock = Wire(), ManualClock()
    outbox = Outbox(Connection(EditorService(ACP), wire, listening=False))
    approver = EditorApprover(outbox, SessionUpdates(work), form=False)
    approver.clock = clock
    outbox.release()
    call = Call(id="c1", tool="run_command", effect="run", subject="make", command="make")
    asked = asyncio.create_task(approver.ask(call, Decision("ask", "It runs.", "default")))
    question = await asyncio.wait_for(wire.sent.get(), PATIENCE_S)
    assert question["method"] == "session/request_permission"
    await asyncio.sleep(0)
    clock.advance(PATIENCE_REMINDED_S)
    said = await asyncio.wait_for(wire.sent.get(), PATIENCE_S)
    assert "Waits for your answer: Run make." in said["params"]["update"]["content"]["text"]
    assert not asked.done()
    approver.take_back()
    assert (await asked).answer == "no"


@pytest.mark.parametrize("form", [True, False])
async def test_questions_of_calls_at_the_same_time_name_their_call(
    work: Path, *, form: bool
) -> None:
    """Two calls of one MCP tool: the question belongs to the call that asks, whichever began
    last."""
    wire, updates = Wire(), SessionUpdates(work)
    outbox = Outbox(Connection(EditorService(ACP), wire, listening=False))
    approver = EditorApprover(outbox, updates, form=form)
    for call in ("c1", "c2"):
        for _ in updates.of(ToolStarted(call, "mcp__odd__ask", {}, "")):
            pass
    for call, agent, named in (("c1", "", "c1"), ("c2", "", "c2"), ("c3", "reviewer", "")):
        question = UserQuestion("Go", "Go on?", (AnswerChoice("Yes"),), server="odd", call=call)
        asked = asyncio.create_task(approver.ask_user([question], agent))
        sent = (await asyncio.wait_for(wire.sent.get(), PATIENCE_S))["params"]
        told = sent.get("toolCallId", "") if form else sent["toolCall"]["toolCallId"]
        assert told == named or (not named and told.startswith("question-"))
        approver.take_back()
        await asked


async def test_a_plan_is_reviewed_and_carried_out(work: Path, serve: Serve) -> None:
    plan = {"name": "present_plan", "input": {"title": "Fix add", "plan": "1. Edit calc.py."}}
    serve({"tools": [plan]}, {"tools": [READ, EDIT]}, {"text": "Done."})
    client = EditorClient(answer=lambda _: "accept_edits")
    async with editing(parse(["acp", "--permission-mode", "plan"]), work, client) as editor:
        session = await editor.new()
        await editor.prompt(session, "Fix the bug.")
    (asked,) = client.asked
    assert asked["kind"] == "switch_mode"
    assert "1. Edit calc.py." in asked["content"][0]["content"]["text"]
    assert asked["toolCallId"] == client.of("tool_call")[0]["toolCallId"]
    assert client.of("current_mode_update")[0]["currentModeId"] == "accept_edits"
    assert "a + b" in (work / "calc.py").read_text()


async def test_a_plan_that_is_not_approved_changes_nothing(work: Path, serve: Serve) -> None:
    plan = {"name": "present_plan", "input": {"title": "Fix add", "plan": "1. Edit calc.py."}}
    server = serve({"tools": [plan]}, {"text": "What then?"})
    client = EditorClient(answer=lambda _: "change")
    async with editing(parse(["acp", "--permission-mode", "plan"]), work, client) as editor:
        await editor.prompt(await editor.new(), "Fix the bug.")
    assert "change nothing" in server.posts[-1].raw.decode()


QUESTIONS = {
    "name": "ask_user",
    "input": {
        "questions": [
            {
                "header": "Color",
                "question": "Which color?",
                "choices": [{"label": "Red", "description": "warm"}, {"label": "Blue"}],
            },
            {
                "header": "Sizes",
                "question": "Which sizes?",
                "choices": [{"label": "S"}, {"label": "L"}],
                "several": True,
            },
        ]
    },
}


async def test_questions_are_choices_where_there_are_no_forms(work: Path, serve: Serve) -> None:
    server = serve({"tools": [QUESTIONS]}, {"text": "Fine."})
    client = EditorClient(answer=lambda asked: asked["options"][1]["optionId"])
    async with editing(ACP, work, client) as editor:
        await editor.prompt(await editor.new(), "Ask me.")
    assert [asked["title"] for asked in client.asked] == ["Which color?", "Which sizes?"]
    sent = server.posts[-1].raw.decode()
    assert "Blue" in sent.split("The user answered")[1]
    assert "in their own words" not in sent


async def test_questions_are_a_form_where_the_editor_has_forms(work: Path, serve: Serve) -> None:
    server = serve({"tools": [QUESTIONS]}, {"text": "Fine."})
    given = {"q0": "Red", "q1": ["S", "L"], "q1_text": "and M"}
    async with editing(ACP, work, EditorClient(fill_in=lambda _: given), form=True) as editor:
        await editor.prompt(await editor.new(), "Ask me.")
    (asked,) = editor.client.asked
    assert asked["message"] == "Which color?\nWhich sizes?"
    answered = server.posts[-1].raw.decode().split("The user answered")[1]
    assert "S, L; in their own words: and M" in answered


async def test_a_form_that_is_declined_is_no_answer(work: Path, serve: Serve) -> None:
    server = serve({"tools": [QUESTIONS]}, {"text": "Fine."})
    async with editing(ACP, work, form=True) as editor:
        await editor.prompt(await editor.new(), "Ask me.")
    assert "The user didn't answer" in server.posts[-1].raw.decode()


async def test_an_editor_chooses_no_profile(work: Path, serve: Serve) -> None:
    """Whose account pays is what a person types, though fallbacks may name a profile."""
    serve({"text": "One."})
    with folders().config_file.open("a") as file:
        file.write(
            'fallback_models = ["@work/claude-opus-5-5"]\n[profile.work]\nkey_from = "default"\n'
        )
    async with editing(ACP, work) as editor:
        made = await editor.conn.new_session(cwd=str(work), mcp_servers=[])
        (models,) = [one for one in made.config_options or () if one.id == "model"]
        assert "@work" not in models.model_dump_json()
        with pytest.raises(RequestError, match="no model '@work/claude-opus-5-5'"):
            await editor.conn.set_config_option(
                config_id="model", session_id=made.session_id, value="@work/claude-opus-5-5"
            )


async def test_settings_choose_model_and_effort(work: Path, serve: Serve) -> None:
    server = serve({"text": "One."}, catalogue=True)
    async with editing(ACP, work) as editor:
        made = await editor.conn.new_session(cwd=str(work), mcp_servers=[])
        session = made.session_id
        by_id = {one.id: one for one in made.config_options or ()}
        assert by_id["model"].category == "model"
        other = next(
            one.value
            for one in by_id["model"].options  # pyright: ignore[reportAttributeAccessIssue]
            if one.value != by_id["model"].current_value
        )
        with pytest.raises(RequestError, match="no model 'none'"):
            await editor.conn.set_config_option(config_id="model", session_id=session, value="none")
        with pytest.raises(RequestError, match="no setting 'taste'"):
            await editor.conn.set_config_option(config_id="taste", session_id=session, value="x")
        with pytest.raises(RequestError, match="has no effort level 'huge'"):
            await editor.conn.set_config_option(
                config_id="effort", session_id=session, value="huge"
            )
        await editor.conn.set_config_option(config_id="effort", session_id=session, value="low")
        changed = await editor.conn.set_config_option(
            config_id="model", session_id=session, value=other
        )
        assert changed is not None
        now = {one.id: one.current_value for one in changed.config_options}
        assert now == {"mode": "ask", "model": other, "effort": now["effort"]}
        await editor.conn.set_config_option(config_id="mode", session_id=session, value="plan")
        assert editor.client.of("current_mode_update")[-1]["currentModeId"] == "plan"
        await editor.conn.set_session_mode(session_id=session, mode_id="ask")
        told = editor.client.of("config_option_update")[-1]["configOptions"]
        assert told[0]["currentValue"] == "ask"
        await editor.prompt(session, "Hello.")
    assert json.loads(server.posts[-1].raw)["model"] == other


async def test_links_and_embedded_texts_and_images_go_along(work: Path, serve: Serve) -> None:
    server = serve({"text": "Seen."})
    text = schema.TextResourceContents(uri="file:///other/notes.md", text="Buy milk. /think on")
    image = schema.BlobResourceContents(uri="shot.png", blob=PIXEL, mime_type="image/png")
    async with editing(ACP, work) as editor:
        done = await editor.prompt(
            await editor.new(),
            "Look at",
            schema.ResourceContentBlock(
                type="resource_link", name="calc.py", uri=f"{(work / 'calc.py').as_uri()}#L2:3"
            ),
            schema.ResourceContentBlock(
                type="resource_link", name="site", uri="https://example.org/a"
            ),
            schema.ImageContentBlock(type="image", data=PIXEL, mime_type="image/png"),
            schema.EmbeddedResourceContentBlock(type="resource", resource=text),
            schema.EmbeddedResourceContentBlock(type="resource", resource=image),
        )
    assert done.stop_reason == "end_turn"
    body = json.loads(server.posts[0].raw)
    sent = json.dumps(body["messages"])
    assert "Look at @calc.py:2-3 https://example.org/a" in sent
    assert sent.count(PIXEL) == 2
    assert 'untrusted_content source=\\"file:///other/notes.md\\"' in sent
    assert "Buy milk. /think on" in sent
    assert "return a - b" in sent  # the link was read
    assert editor.client.of("tool_call")[0]["locations"] == [
        {"path": str(work / "calc.py"), "line": 2}
    ]


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (schema.AudioContentBlock(type="audio", data="", mime_type="audio/wav"), "Sound can't"),
        (
            schema.ImageContentBlock(type="image", data="%%", mime_type="image/png"),
            "isn't valid base64",
        ),
        (
            schema.ImageContentBlock(type="image", data="aGVsbG8=", mime_type="image/png"),
            "isn't a PNG",
        ),
        (
            schema.EmbeddedResourceContentBlock(
                type="resource",
                resource=schema.BlobResourceContents(
                    uri="file:///a/b.zip", blob="aaaa", mime_type="application/zip"
                ),
            ),
            r"b\.zip can't be attached \(application/zip\)",
        ),
        (schema.TextContentBlock(type="text", text=" "), "The prompt is empty"),
    ],
)
async def test_what_cannot_be_sent_is_an_error_in_words(
    work: Path, serve: Serve, block: Any, words: str
) -> None:
    serve({"text": "Sent."})
    async with editing(ACP, work) as editor:
        session = await editor.new()
        with pytest.raises(RequestError, match=words) as caught:
            await editor.prompt(session, block)
        assert caught.value.code == -32602
        assert (await editor.prompt(session, "Hello.")).stop_reason == "end_turn"


async def test_a_bad_attachment_costs_that_one_alone(work: Path, serve: Serve) -> None:
    server = serve({"text": "Seen."})
    good = schema.ImageContentBlock(type="image", data=PIXEL, mime_type="image/png")
    bad = schema.ImageContentBlock(
        type="image", data="aGVsbG8=", mime_type="image/png", uri="file:///a/bad.png"
    )
    sound = schema.AudioContentBlock(type="audio", data="", mime_type="audio/wav")
    async with editing(ACP, work) as editor:
        session = await editor.new()
        blocks = [
            {"type": "text", "text": "Look at"},
            *(one.model_dump(by_alias=True, exclude_none=True) for one in (good, bad, sound)),
            {"type": "video", "data": "x"},
            "no block",
        ]
        request = {"sessionId": session, "prompt": blocks}
        done = await editor.conn._conn.send_request("session/prompt", request)  # pyright: ignore[reportPrivateUsage] - blocks of no kind that the client knows
        assert done["stopReason"] == "end_turn"
        # One notice each, to the person; the model reads in the text what is missing.
        said = editor.client.said
        assert said.count("The bad.png image isn't a PNG, JPEG, GIF or WebP.") == 1
        assert said.count("Sound can't be attached.") == 1
        assert said.count("A block of the prompt can't be read (type 'video').") == 1
    sent = server.posts[0].raw.decode()
    assert sent.count(PIXEL) == 1
    assert "[left out: Sound can't be attached.]" in sent
    assert "[left out: A block of the prompt can't be read (type None).]" in sent


@pytest.mark.parametrize("method", ["session/new", "session/load", "session/resume"])
async def test_a_folder_that_is_none_is_refused_in_words(
    work: Path, serve: Serve, method: str
) -> None:
    serve({"text": "Hello."})
    async with editing(ACP, work) as editor:
        session = await editor.new()
        await editor.prompt(session, "Hello.")
        await editor.conn.close_session(session_id=session)
        given = {} if method == "session/new" else {"sessionId": session}
        for folder in (work / "missing", work / "calc.py", "work", ""):
            request: dict[str, Any] = {**given, "cwd": str(folder), "mcpServers": []}
            with pytest.raises(RequestError, match="absolute path of a folder") as caught:
                await editor.conn._conn.send_request(method, request)  # pyright: ignore[reportPrivateUsage] - as an editor in error would
            assert caught.value.code == -32602
        request = {**given, "cwd": str(work), "mcpServers": [], "additionalDirectories": ["none"]}
        with pytest.raises(RequestError, match="none") as caught:
            await editor.conn._conn.send_request(method, request)  # pyright: ignore[reportPrivateUsage] - as above
        assert caught.value.code == -32602
    assert not (work / "missing").exists()


async def test_an_output_goes_out_once(work: Path, serve: Serve) -> None:
    command = "printf 'a-%s-z' mark"
    serve({"tools": [{"name": "run_command", "input": {"command": command}}]}, {"text": "Done."})
    async with editing(ACP, work) as editor:
        session = await editor.new()
        await editor.prompt(session, "Run it.")
        live = [one for one in editor.client.updates if one.get("status") == "completed"]
    async with editing(ACP, work) as editor:
        await editor.conn.load_session(session_id=session, cwd=str(work), mcp_servers=[])
        loaded = editor.client.updates
    assert json.dumps(live).count("a-mark-z") == 1
    assert json.dumps(loaded).count("a-mark-z") == 1


async def test_commands_are_told_and_carried_out(work: Path, serve: Serve) -> None:
    review = folders().config / "commands" / "review.md"
    review.parent.mkdir(parents=True)
    review.write_text("---\ndescription: look at it\n---\nReview this: $ARGUMENTS")
    server = serve({"text": "One."}, {"text": "Two."}, {"text": "Three."})
    async with editing(ACP, work) as editor:
        session = await editor.new()
        await editor.prompt(session, "/skills")
        assert "No skills here." in editor.client.said
        assert (await editor.prompt(session, "/theme")).stop_reason == "end_turn"
        assert "/theme needs the screen." in editor.client.said
        await editor.prompt(session, "/clear")
        assert "/new needs the screen." in editor.client.said
        with pytest.raises(RequestError, match="Unknown command /nothing"):
            await editor.prompt(session, "/nothing")
        notes = schema.TextResourceContents(uri="file:///other/notes.md", text="Buy milk.")
        attached = schema.EmbeddedResourceContentBlock(type="resource", resource=notes)
        await editor.prompt(session, "/review calc.py", attached)
        await editor.prompt(session, "!touch made")
        await editor.prompt(session, "exit")
        await editor.prompt(session, "/rename A better name")
    (told,) = editor.client.of("available_commands_update")
    names = {one["name"]: one for one in told["availableCommands"]}
    assert {"compact", "review", "effort"} <= set(names)
    assert not {"new", "quit", "theme", "login"} & set(names)
    assert names["review"]["description"] == "look at it"
    sent = server.posts[0].raw.decode()
    assert "Review this: calc.py" in sent
    assert "Buy milk." in sent
    assert "Buy milk." not in json.dumps(json.loads(server.posts[1].raw)["messages"][-1])
    assert not (work / "made").exists()
    assert "!touch made" in server.posts[1].raw.decode()
    assert editor.client.of("session_info_update")[-1]["title"] == "A better name"


async def test_a_command_can_ask(work: Path, serve: Serve) -> None:
    serve(*({"text": f"{n} " + "word " * 4000} for n in range(4)), {"text": "A summary."})
    async with editing(ACP, work, EditorClient(answer=lambda _: "compact")) as editor:
        session = await editor.new()
        for number in range(4):
            await editor.prompt(session, f"Tell me more, {number}.")
        await editor.prompt(session, "/compact")
    (asked,) = editor.client.asked
    assert asked["title"] == "Compact the context?"
    assert "Compacted " in editor.client.said


async def test_goals_side_questions_and_repeated_prompts(work: Path, serve: Serve) -> None:
    server = serve({"text": "One."}, {"text": "On the side."}, {"text": "Two."})
    async with editing(ACP, work, EditorClient(answer=lambda _: "yes")) as editor:
        session = await editor.new()
        await editor.prompt(session, "Hello.")
        await editor.prompt(session, "/btw why?")
        assert "Asking on the side: " in editor.client.said
        assert "On the side." in editor.client.said
        await editor.prompt(session, "/goal Do it -- true")
        assert "Round 1 of 20: the goal is met. `true` passed." in editor.client.said
        editor.client.answer = lambda _: "cancel"
        await editor.prompt(session, "/every 10m look")
    titles = [one["title"] for one in editor.client.asked]
    assert titles == ["Ask on the side?", "Repeat this prompt in the background?"]
    assert len(server.posts) == 3
    assert "why?" not in str(server.posts[2].body["messages"])
    (told,) = editor.client.of("available_commands_update")
    assert {"btw", "goal", "every"} <= {one["name"] for one in told["availableCommands"]}


async def test_servers_of_the_editor_have_tools_that_ask(
    work: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.tools.mcp.PATIENCE_S", PATIENCE_S)
    serve({"tools": [{"name": "mcp__odd__echo", "input": {"text": "from afar"}}]}, {"text": "So."})
    given = schema.McpServerStdio(
        name="odd",
        command=sys.executable,
        args=["-c", "from tests.tools.mcp.server import server; server.run('stdio')"],
        env=[schema.EnvVariable(name="PYTHONPATH", value=str(Path(__file__).parents[2]))],
    )
    async with editing(ACP, work) as editor:
        await editor.prompt(await editor.new(mcp_servers=[given]), "Say it.")
    (asked,) = editor.client.asked
    assert asked["title"].startswith("odd: echo")
    ended = editor.client.of("tool_call_update")[-1]
    assert ended["status"] == "completed"
    assert ended["content"][0]["content"]["text"] == "from afar"


async def test_a_server_that_makes_no_sense_is_an_error_in_words(work: Path, serve: Serve) -> None:
    serve()
    bad = schema.HttpMcpServer(type="http", name="x", url="nowhere", headers=[])
    async with editing(ACP, work) as editor:
        with pytest.raises(RequestError, match=r"mcp\.x\.url"):
            await editor.new(mcp_servers=[bad])


async def test_sub_agents_are_seen_on_their_call(work: Path, serve: Serve) -> None:
    task = {
        "name": "task",
        "input": {"agent": "explore", "description": "find it", "prompt": "Find the bug."},
    }
    serve({"tools": [task]}, {"tools": [READ]}, {"text": "In add."}, {"text": "Found."})
    async with editing(ACP, work) as editor:
        await editor.prompt(await editor.new(), "Find the bug.")
    (started,) = editor.client.of("tool_call")
    assert started["title"].startswith("Sub-agent")
    texts = [
        one["content"][0]["content"]["text"]
        for one in editor.client.of("tool_call_update")
        if one.get("content")
    ]
    assert any("- Read calc.py" in text for text in texts)
    assert "In add." in texts[-1]


@pytest.mark.parametrize(
    ("turn", "more", "stop"),
    [
        ({"text": "Half", "stop_reason": "max_tokens"}, (), "max_tokens"),
        ({"text": "", "stop_reason": "refusal"}, (), "refusal"),
        ({"tools": [READ]}, ("--max-turns", "1"), "max_turn_requests"),
    ],
)
async def test_why_a_turn_ended(
    work: Path, serve: Serve, turn: dict[str, Any], more: tuple[str, ...], stop: str
) -> None:
    serve(turn, turn, turn, turn)
    async with editing(parse(["acp", *more]), work) as editor:
        done = await editor.prompt(await editor.new(), "Hello.")
    assert done.stop_reason == stop


async def test_a_turn_that_fails_is_an_error_in_words(work: Path, serve: Serve) -> None:
    refused = {"status": 400, "message": "messages: this is wrong"}
    serve({"text": "No.", "faults": [refused]}, {"text": "Yes."})
    async with editing(ACP, work) as editor:
        session = await editor.new()
        with pytest.raises(RequestError, match="this is wrong") as caught:
            await editor.prompt(session, "Hello.")
        assert caught.value.data == {"class": "invalid_request"}


async def test_a_key_that_is_refused_asks_to_sign_in(work: Path, serve: Serve) -> None:
    serve({"text": "No."}, keys=["another"])
    async with editing(ACP, work) as editor:
        session = await editor.new()
        with pytest.raises(RequestError) as caught:
            await editor.prompt(session, "Hello.")
        assert caught.value.code == -32000


async def test_a_second_prompt_joins_the_turn(work: Path, serve: Serve) -> None:
    server = serve({"tools": [READ, EDIT]}, {"text": "Both."})
    async with editing(ACP, work, EditorClient(answer=None)) as editor:
        session = await editor.new()
        first = asyncio.create_task(editor.prompt(session, "Fix the bug."))
        await editor.client.asking.wait()
        second = asyncio.create_task(editor.prompt(session, "And test it."))
        await asyncio.sleep(0)
        await editor.conn.cancel(session_id=session)
        assert [(await one).stop_reason for one in (first, second)] == ["cancelled", "cancelled"]
    assert len(server.posts) == 1


async def test_a_prompt_in_base64_is_as_large_as_an_image(work: Path, serve: Serve) -> None:
    serve({"text": "Seen."})
    large = base64.b64encode(b"x" * 3_000_000).decode()
    async with editing(ACP, work) as editor:
        session = await editor.new()
        with pytest.raises(RequestError, match="isn't a PNG"):
            await editor.prompt(
                session, schema.ImageContentBlock(type="image", data=large, mime_type="image/png")
            )
