"""Commands in plain lines: each leads somewhere or says why not; those that list take a number."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.plain.face import talking, until
from tests.support.clock import ManualClock
from tests.support.script import MODEL
from tests.support.world import OldSession, World, record
from tui.app import manual
from tui.app.commands.table import COMMANDS
from tui.app.dialog_data import ModelRow, ProfileRow, ProfileSetup
from tui.app.services import SessionChoice
from tui.context.token_ledger import Item
from tui.core import clipboard, facts, plain_detection
from tui.core.config import Config, McpServer
from tui.core.errors import ToolError
from tui.core.messages import Usage
from tui.plain import views
from tui.plain.input_loop import complete
from tui.plain.views import REASONS, SHOWN, VIEWS, item_lines
from tui.provider.prices import Payer
from tui.tools.mcp import McpPrompt, McpResource, Server
from tui.tools.mcp.oauth import OpenPage
from tui.tools.mcp.redirect import Paste

CARRIED_OUT = {c.name for c in COMMANDS if not c.directive} - REASONS.keys()


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.clock = ManualClock()
    return world


def test_every_command_of_the_table_is_carried_out_or_answered_with_a_reason() -> None:
    for command in COMMANDS:
        own = command.name in VIEWS or command.name in REASONS
        assert own or command.module or command.directive
    assert not VIEWS.keys() & REASONS.keys()
    assert all(reason.endswith(".") for reason in REASONS.values())


def test_nothing_of_it_loads_the_screen() -> None:
    code = (
        "import pkgutil, sys, json, importlib, tui.plain, tui.app.program\n"
        "for one in pkgutil.iter_modules(tui.plain.__path__):\n"
        "    importlib.import_module(f'tui.plain.{one.name}')\n"
        "print(json.dumps(sorted({'textual', 'rich', 'anthropic'} & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize("name", sorted(CARRIED_OUT - {"quit"}))
async def test_every_command_says_something_in_a_new_session(world: World, name: str) -> None:
    async with talking(world, answers=[None]) as (_, face):
        face.prompts.append(f"/{name}")
        await until(lambda: face.said or world.agent.sent)
        assert "went wrong" not in face.text
        assert "needs the full screen" not in face.text


@pytest.mark.parametrize("name", sorted(REASONS))
async def test_what_needs_the_screen_says_so(world: World, name: str) -> None:
    async with talking(world) as (_, face):
        face.prompts.append(f"/{name} x")
        await until(lambda: face.said)
        assert face.said == [REASONS[name]]


async def test_an_unknown_command_names_a_near_one(world: World) -> None:
    async with talking(world) as (_, face):
        face.prompts.append("/statsu")
        await until(lambda: face.said)
        assert face.said[0].startswith("Unknown command /statsu. Did you mean /status?")


async def test_help_names_every_command_and_what_is_not_here(world: World) -> None:
    async with talking(world) as (_, face):
        face.prompts.append("/help")
        await until(lambda: face.said)
        assert all(f"/{command.name}" in face.text for command in COMMANDS)


async def test_help_reads_a_topic_of_the_manual(world: World) -> None:
    async with talking(world) as (_, face):
        face.prompts += ["/help permiss", "/help nothing-of-that-name"]
        await until(lambda: "Which topic?" in face.text)
        assert "What runs without asking" in face.text
        assert "`" not in face.text
        assert all(topic.name in face.said[-1] for topic in manual.topics())


async def test_directives_go_to_the_agent_as_typed(world: World) -> None:
    async with talking(world) as (_, face):
        face.prompts.append("/think on")
        await until(lambda: world.agent.directives.think)


async def test_status_speaks_the_meter(world: World) -> None:
    measured = facts.ContextMeasured(82_100, 1, 1, 200_000, {}, "catalogue")
    world.scripts.append([facts.UserMessage("go"), measured])
    async with talking(world) as (_, face):
        face.prompts += ["go", "/status"]
        await until(lambda: any(line.startswith("Context") for line in face.said))
        assert (
            "Context: 41 percent of the context, 82,100 of 200,000 tokens, compacts at 80 percent."
            in face.said
        )


async def test_status_speaks_of_cache_and_cost(world: World) -> None:
    measured = facts.ContextMeasured(
        41_000, 1, 1, 1_000_000, {}, "server", cache_share=0.97, cost_usd=0.42
    )
    world.scripts.append([facts.UserMessage("go"), measured])
    async with talking(world) as (_, face):
        face.prompts += ["go", "/status"]
        await until(lambda: any(line.startswith("Context") for line in face.said))
        said = "97 percent of the last request from the cache. Session cost: $0.42."
        assert said in face.said


async def test_an_answer_and_its_code_blocks_are_copied(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    desktop: list[str] = []
    monkeypatch.setattr(clipboard, "write", desktop.append)
    path = world.workspace / "old.jsonl"
    answers = ("```sh\nls\n```\nor\n```py\nprint(1)\n\nprint(2)\n```\n", "Yes.")
    records = [
        one
        for at, text in enumerate(answers)
        for one in (
            record("user", 10 * at, content=[{"type": "text", "text": "go"}]),
            record("assistant", 10 * at + 1, content=[{"type": "text", "text": text}]),
        )
    ]
    world.old[path] = OldSession(records=records)
    async with talking(world, choice=SessionChoice(path)) as (_, face):
        face.prompts += ["/copy", "/copy 2", "/copy 3"]
        await until(lambda: "No code block 3 here. /copy 1 to 2." in face.said)
        assert face.said[-3:-1] == [
            "Copied last answer (4 characters).",
            "Copied code block 2 (3 lines).",
        ]
        assert face.copied == desktop == ["Yes.", "print(1)\n\nprint(2)"]


async def test_without_an_answer_nothing_is_copied(world: World) -> None:
    async with talking(world) as (_, face):
        face.prompts += ["/copy", "/copy 1"]
        await until(lambda: "No code block to copy yet." in face.said)
        assert "No answer to copy yet." in face.said
        assert face.copied == []


def test_the_context_is_read_largest_first_with_sums_of_system_and_tools() -> None:
    items = [
        Item("system:a", "system", "identity", 300, "full"),
        Item("system:b", "system", "environment", 20, "full"),
        Item("tool:t", "tools", "read_file", 700, "full"),
        Item("r0", "result", "read_file a.py", 5, "summarised"),
        *(Item(f"r{n}", "result", f"run {n}", 10 * n, "full") for n in range(1, 40)),
    ]
    lines = item_lines(items, every=False)
    assert lines[:3] == [
        "System prompt: 2 items, 320 tokens.",
        "Tools: 1 item, 700 tokens.",
        "43: result, 390 tokens, run 39",
    ]
    assert len(lines) == 2 + SHOWN + 2
    assert lines[-2] == "10 smaller items: 455 tokens."
    every = item_lines(items, every=True)
    assert every[0] == "1: system, 300 tokens, identity"
    assert every[3] == "4: result, 5 tokens, read_file a.py, summarized"
    assert len(every) == len(items)
    assert item_lines([], every=False) == ["/context all lists every item in request order."]


async def test_the_modes(world: World) -> None:
    async with talking(world) as (_, face):
        seen: list[str] = []
        for typed in ("/plan", "/plan edits", "/plan ask", "/plan", "/plan"):
            before = len(face.said)
            face.prompts.append(typed)
            await until(lambda before=before: len(face.said) > before)
            seen.append(world.agent.permissions.mode)
        assert seen == ["plan", "accept_edits", "ask", "plan", "ask"]


async def test_resume_lists_by_number_and_takes_an_id(world: World) -> None:
    world.add_row("first", hours=1, messages=2)
    world.add_row("second", hours=2, messages=2)
    for row in world.rows:
        world.old[row.path] = OldSession()
    async with talking(world, answers=["2"]) as (_, face):
        face.prompts.append("/resume")
        await until(lambda: len(world.agents) == 2)
        assert world.chosen[-1] == SessionChoice(world.rows[1].path)
        await until(lambda: world.agents[0].closed)
        face.prompts.append(f"/resume {world.rows[0].id[:4]}")
        await until(lambda: len(world.agents) == 3)
        face.prompts.append("/resume zzz")
        await until(lambda: "is called zzz" in face.text)


async def test_models_are_chosen_by_number(world: World) -> None:
    world.models = (ModelRow("other", 200_000),)
    async with talking(world, answers=["2"]) as (_, face):
        face.prompts.append("/model")
        await until(lambda: world.agent.models.current == "other")
        assert any("in use now" in line for line in face.said)


async def test_todos_are_kept_to_be_read_again(world: World) -> None:
    todos = facts.TodosChanged(({"text": "a", "status": "in_progress"},))
    world.scripts.append([facts.UserMessage("go"), todos])
    async with talking(world) as (_, face):
        face.prompts += ["go", "/todos"]
        await until(lambda: face.said.count("  now: a") == 2)


async def test_the_timeline_is_said_in_short_and_by_prompt(world: World) -> None:
    said = facts.AssistantMessage("One.", "end_turn", Usage(1000, 50))
    sent = facts.RequestSent(1, 100, "m", 1)
    world.scripts.append([facts.UserMessage("go"), sent, facts.TextDelta("One."), said])
    async with talking(world) as (_, face):
        face.prompts += ["go", "/timeline", "/timeline 1", "/timeline 2"]
        await until(lambda: "There is no prompt 2 here." in face.text)
        assert any(line.startswith("1 prompt, 1 request") for line in face.said)
        assert any(line.endswith("prompt: 1, go.") for line in face.said)
        assert any("request: 1, " in line for line in face.said)


async def test_export_writes_a_document(world: World, tmp_path: Path) -> None:
    world.add_row("what was said", hours=1, messages=2)
    path = world.rows[0].path
    world.old[path] = OldSession()
    async with talking(world, choice=SessionChoice(path)) as (_, face):
        face.prompts += ["/export md", "/export pdf"]
        await until(lambda: "Unknown format pdf." in face.text)
        (made,) = tmp_path.glob("session-*.md")
        assert "what was said" in made.read_text()


async def test_rewind_lays_the_prompt_ready(world: World) -> None:
    world.add_row("go", hours=1, messages=4)
    path = world.rows[0].path
    world.old[path] = OldSession()
    async with talking(world, answers=["2"], choice=SessionChoice(path)) as (_, face):
        face.prompts.append("/rewind")
        await until(lambda: len(world.agents) == 2)
        await until(lambda: face.began_with[-1] == "go")
        assert world.agents[0].session.records[-1].type == "rewind"


def test_a_word_is_completed(world: World, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("x")
    (tmp_path / "nest").mkdir()
    (tmp_path / "nest" / "deep.py").write_text("x")
    (tmp_path / ".hidden").write_text("x")

    class Talk:
        services = world.services()
        agent = None

        class user_commands:  # noqa: N801
            commands: dict[str, Any] = {"mine": None}  # noqa: RUF012

    def of(line: str) -> list[str]:
        return list(complete(Talk, line))  # pyright: ignore[reportArgumentType] - all it looks at

    assert of("/unc") == ["/uncompact "]
    assert of("/mi") == ["/mine "]
    assert of("look at @no") == ["@notes.md "]
    assert of("@n") == ["@nest/", "@notes.md "]
    assert of("@nest/d") == ["@nest/deep.py "]
    assert of("plain words") == []
    assert of("/tmp/x") == []


@pytest.mark.parametrize(
    ("argv", "term", "settings", "why"),
    [
        ((), "xterm-256color", "", ""),
        (("--plain",), "xterm-256color", "", "asked"),
        (("-C", "x", "--plain", "go"), "xterm", "", "asked"),
        (("--", "--plain"), "xterm", "", ""),
        ((), "dumb", "", "dumb"),
        ((), "", "", "dumb"),
        ((), "xterm", "plain = true\n", "configured"),
        ((), "xterm", "plain = false\n", ""),
        ((), "xterm", 'theme = "plain"\n', ""),
        ((), "xterm", "plain = \n", ""),
    ],
)
def test_when_lines_are_spoken(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    argv: tuple[str, ...],
    term: str,
    settings: str,
    why: str,
) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text(settings)
    assert plain_detection.why(argv) == why


def test_the_settings_are_looked_for_where_they_are_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tui.core.paths import folders  # noqa: PLC0415

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("HOLDFAST_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for base in ("", str(tmp_path / "xdg")):
        monkeypatch.setenv("XDG_CONFIG_HOME", base)
        file = folders().config_file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("plain = true\n")
        assert plain_detection.why(()) == "configured"
        file.unlink()
        assert plain_detection.why(()) == ""


async def test_signing_in_to_an_mcp_server(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Door(Server):
        async def sign_in(self, open_page: OpenPage, paste: Paste | None = None) -> None:
            await open_page("https://door.test/authorize?state=1")
            assert paste
            assert await paste() == "http://127.0.0.1:1/callback?code=2"

        async def sign_out(self) -> None:
            raise ToolError("The keyring is locked.")

    monkeypatch.setattr(views, "open_page", str.isdigit)
    door = Door("door", McpServer(url="https://door.test"), tmp_path, tmp_path / "x.log")
    door.state = "needs sign-in"
    world.mcp = (door,)
    async with talking(world, answers=["http://127.0.0.1:1/callback?code=2"]) as (_, face):
        face.prompts += ["/mcp", "/mcp login door", "/mcp logout door", "/mcp nothing door"]
        await until(lambda: "Unknown /mcp nothing" in face.text)
        assert "Server door, needs sign-in, 0 tools." in face.text
        assert "Open in a browser: https://door.test/authorize?state=1" in face.text
        assert "Signed in to door." in face.text
        assert "The keyring is locked." in face.text


async def test_the_prompts_of_an_mcp_server_are_commands(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def prompt_text(prompt: McpPrompt, arguments: str, _session: str) -> str:
        if not arguments:
            raise ToolError(f"The prompt {prompt.name} needs: path.")
        asked.append(arguments)
        return f"Review {arguments}."

    server = Server("odd", McpServer(command="x"), tmp_path, tmp_path / "x.log", state="ready")
    monkeypatch.setattr(server.calls, "prompt_text", prompt_text)
    server.prompts = (McpPrompt("review", "Review a file.", (("path", True),)),)
    server.resources = (McpResource("note://all", "All"), McpResource("note://a b", "Two"))
    world.mcp = (server,)
    async with talking(world) as (conversation, face):
        face.prompts += ["/mcp", "/mcp__odd__review", "/mcp__odd__review a.py"]
        await until(lambda: bool(world.agent.sent))
        assert "Also 2 resources (@odd:…), 1 prompt (/mcp__odd__…)." in face.text
        assert "The prompt review needs: path." in face.text
        (sent,) = world.agent.sent
        assert sent == "/mcp__odd__review a.py"
        assert asked == ["a.py"]
        assert "Review a.py." in world.agent.attached[0]
        assert list(complete(conversation, "/mcp__")) == ["/mcp__odd__review "]
        assert list(complete(conversation, "see @odd:")) == ["@odd:note://all "]


async def test_background_commands_are_read_out_and_stopped(world: World) -> None:
    clock = world.clock
    assert isinstance(clock, ManualClock)
    async with talking(world) as (conversation, face):
        face.prompts += ["/jobs", "/jobs 1", "/jobs move"]
        await until(lambda: "No background commands in this session." in face.said)
        await until(lambda: "No background command 1." in face.text)
        await until(lambda: "No command is running in the foreground." in face.text)
        face.prompts.append("!echo up; sleep 1000")
        await until(lambda: "up" in face.said)
        face.listener.typed("/jobs move")
        await until(lambda: not conversation.busy)
        (owned,) = world.agent.jobs.all
        assert "moved to the background, still running as job-1" in face.text
        moved = "job-1 moved to the background: echo up; sleep 1000."
        await until(lambda: moved in face.said)
        face.said.clear()
        face.prompts += ["/jobs", "/jobs 1"]
        await until(lambda: "up" in face.said)
        assert "1: echo up; sleep 1000, running, 0 s." in face.said
        assert f"process {owned.job.pid}, moved by you, output " in face.text
        face.prompts.append("/jobs stop 1")
        await until(lambda: clock.advance(0.05) or "job-1 stopped by you after" in face.text)
        face.prompts += ["/jobs stop 1", "/jobs stop all of them"]
        await until(lambda: "job-1 has already ended." in face.said)
        await until(lambda: "Unknown /jobs" in face.text)


async def test_the_keys_of_the_full_screen_are_listed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-kitty")
    world.config = Config(keys={"find": "ctrl+t", "tasks": ""})
    async with talking(world) as (_, face):
        face.prompts.append("/keys")
        await until(lambda: face.said)
        assert face.said[0].startswith("Terminal: xterm-kitty")
        assert "can't show them" in face.said[1]
        assert {"undo: Ctrl+_, Alt+Z", "find: Ctrl+T", "tasks: no key"} <= set(face.said)


async def test_profiles_are_read_out_and_one_is_chosen_by_its_number(tmp_path: Path) -> None:
    world = World(tmp_path)
    payer = Payer("", "https://api.anthropic.com", {})
    world.profiles = (
        ProfileRow("default", MODEL, payer.server, "your usual key", payer, 200_000, now=True),
        ProfileRow("work", "other", "https://gateway", "its own key", payer, 200_000),
    )
    async with talking(world, answers=["2"]) as (_, face):
        face.prompts.append("/profile")
        await until(lambda: len(world.agents) == 2)
        assert "Which profile?" in face.said
        assert f"1: default, {MODEL}, https://api.anthropic.com, your usual key, in use now" in (
            line.rstrip(".") for line in face.said
        )
        assert world.set_up_with == [ProfileSetup("work")]
        await until(lambda: "Switched to profile work" in face.text)
