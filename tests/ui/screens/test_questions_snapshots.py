"""Pictures of the questions: what is allowed, trusted, done, or given up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from textual.pilot import Pilot

from tests.support.script import Ask
from tests.support.world import OldSession, World, record
from tests.ui.screens.driving import turn, until
from tests.ui.screens.pictures import (
    Picture,
    Pictures,
    Shot,
    Stage,
    Take,
    command,
    each_of,
    opened,
    press,
    prompt,
)
from tests.ui.screens.test_recovery import ROWS
from tui.agent.agent import Agent
from tui.agent.compaction import CompactionPreview
from tui.app.services import SessionChoice
from tui.context.ledger_items import Item
from tui.context.repair_levels import REPAIR_LEVELS
from tui.core import facts
from tui.core.errors import ErrorClass, ProviderError
from tui.core.messages import text_block
from tui.core.questions import UserAnswers, UserQuestion
from tui.permissions.types import Call, Decision
from tui.provider import catalogue
from tui.session.records import Record
from tui.settings.trust import TrustItem
from tui.tools.mcp.elicitation import fill_form
from tui.ui.app import HoldfastApp
from tui.ui.screens.picker import PickScreen
from tui.ui.screens.plan import PlanModal, PlanScreen
from tui.ui.screens.recovery import RecoveryScreen
from tui.ui.widgets.approval import ApprovalModal
from tui.ui.widgets.questionnaire import QuestionnaireModal
from tui.ui.widgets.questions import ChoiceDialog, Confirmation

DIFF = """\
--- tests/test_store.py
+++ tests/test_store.py
@@ -10,4 +10,5 @@ def test_append(tmp_path):
     store = Store(tmp_path / "a.jsonl")
-    store.append({"n": 1})
+    with store:
+        store.append({"n": 1})
     assert store.read() == [{"n": 1}]
"""
EDITS = "edits here"
WRITE = Call("t2", "edit_file", "write", "tests/test_store.py", None, (), "diff", DIFF, EDITS)
ASKED = Decision("ask", "", "default", "standard")
COMMAND = "rm -rf build && pip install -e ."
ONLY = "this command"
RUN = Call("t3", "run_command", "run", COMMAND, COMMAND, (), "command", COMMAND, ONLY)
RISKY = Decision("ask", "`rm -r` removes files for good.", "tiers", "high-risk")
SCRIPT = "cat <<'END' > build.sh\n#!/bin/sh\n" + "make all || exit 1\n" * 60 + "END"
LONG = Call("t4", "run_command", "run", SCRIPT, SCRIPT, (), "command", SCRIPT, ONLY)
SHOWN = 'get_current_time of the MCP server time\n{\n  "timezone": "Europe/Lisbon"\n}'
SERVED = "this tool"
MCP = Call("t5", "mcp__time__get_current_time", "run", "", None, (), "text", SHOWN, SERVED)
UNKNOWN = Decision("ask", "", "default")
PAGE = Call(
    "t6", "fetch_url", "read", "https://docs.example.org/guide", None, (), "text",
    "GET https://docs.example.org/guide", "docs.example.org",
)  # fmt: skip
REACHES = Decision("ask", "It reaches a server on the network.", "default", "standard")
ERROR = (
    "messages.17: `tool_use` ids were found without `tool_result` blocks immediately after:"
    " toolu_01. Each `tool_use` block must have a corresponding `tool_result` block."
)


def asks(call: Call, decision: Decision, *keys: str) -> Callable[[Stage], Shot]:
    def make(stage: Stage) -> Shot:
        world = World()
        world.untitled = True
        started = facts.ToolStarted(call.id, call.tool, {}, call.subject)
        asked = facts.PermissionAsked(call.id, call.tool, decision.reason)
        world.scripts.append(turn(started, asked, Ask(call, decision)))

        async def drive(pilot: Pilot[None]) -> None:
            await prompt("fix the flaky test", lambda app: isinstance(app.screen, ApprovalModal))(
                pilot
            )
            world.clock.elapsed += 1  # keys that come too soon do not count
            await pilot.press(*keys)

        return stage.app(world), drive

    return make


def questions(stage: Stage) -> Shot:
    world = World()
    world.untitled = True
    database = {
        "header": "Database",
        "question": "Where should the service keep its jobs? Two processes write 200 a minute.",
        "choices": [
            {"label": "SQLite", "description": "One file, nothing to run; enough for this load"},
            {
                "label": "PostgreSQL",
                "description": "A server to run, with many writers at the same time; staging has"
                " one already, with backups and the dashboard that operations looks at",
            },
            {"label": "Redis"},
        ],
    }
    called = facts.ToolStarted("q1", "ask_user", {"questions": [database, database]})
    world.scripts.append(turn(called))

    async def drive(pilot: Pilot[None]) -> None:
        await prompt("plan it", lambda app: isinstance(app.screen, QuestionnaireModal))(pilot)

    return stage.app(world), drive


FORM = {
    "type": "object",
    "properties": {
        "region": {
            "type": "string",
            "title": "Region",
            "description": "Where the database is created. It can't be moved later.",
            "default": "eu",
            "oneOf": [
                {"const": "eu", "title": "Frankfurt"},
                {"const": "us", "title": "Virginia"},
            ],
        },
        "size": {"type": "integer", "minimum": 1, "maximum": 64},
    },
}


def form(stage: Stage) -> Shot:
    """A form of a server, at its first field."""

    async def drive(pilot: Pilot[None]) -> None:
        await opened(pilot)
        app = cast("HoldfastApp", pilot.app)

        async def ask(questions: Sequence[UserQuestion]) -> UserAnswers:
            await app.push_screen(QuestionnaireModal(tuple(questions), ""))
            return UserAnswers()

        await fill_form("cloud", "Where should the database be?", FORM, ask)
        await pilot.pause()

    return stage.app(World()), drive


PLAN = """\
Move the store behind one class, so that a test can put a faulty one in its place.

### Steps

1. `store.py`: a class `Store` with `append` and `read`; the functions stay as its callers.
2. `app.py`: takes a `Store`, made in `main`.
3. `tests/test_store.py`: a store that fails on the second `append`.

### What could go wrong

- Files of version 1 have **no header**: `read` has to accept both.

### How I'll check

```sh
pytest -q tests/test_store.py
```
"""


def plan(stage: Stage) -> Shot:
    world = World(stage.workspace())
    world.untitled = True
    called = facts.ToolStarted(
        "p1", "present_plan", {"title": "One class for the store", "plan": PLAN}
    )
    world.scripts.append(turn(called))

    async def drive(pilot: Pilot[None]) -> None:
        await opened(pilot)
        world.agent.permissions.mode = "plan"
        await prompt("plan it", lambda app: isinstance(app.screen, PlanModal))(pilot)

    return stage.app(world), drive


def approved_plan(stage: Stage) -> Shot:
    async def drive(pilot: Pilot[None]) -> None:
        await opened(pilot)
        where = ".holdfast/plans/2026-11-21-one-class-for-the-store.md"
        await pilot.app.push_screen(PlanScreen("One class for the store", PLAN, where))
        await pilot.pause()

    return stage.app(World()), drive


def trust(stage: Stage) -> Shot:
    world = World()
    world.undecided = (
        TrustItem(
            "base_url", "Sends the conversation, and the key kept for it, to http://x.test", "1"
        ),
        TrustItem("mcp.files", "Starts npx -y files-mcp --root . (MCP server files)", "2"),
        TrustItem(
            "permissions.allow: run_command(make *)",
            "Allows without asking: run_command(make *)",
            "3",
            change=(
                "-Allows without asking: run_command(make test)",
                "+Allows without asking: run_command(make *)",
            ),
        ),
        TrustItem(
            ".holdfast/boot.md", "Adds a text to each session: 12 lines, “Read this first”", "4"
        ),
    )
    return stage.app(world), press()


def elevated(stage: Stage) -> Shot:
    world = World()
    world.was_elevated = True
    world.add_row("clean up", hours=1)
    path = world.rows[0].path
    world.old[path] = OldSession(title="clean up")

    async def drive(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirmation))

    return stage.app(world, choice=SessionChoice(path)), drive


def compaction(stage: Stage) -> Shot:
    world = World()
    long = [Item(f"r{n}", "result", f"read_file src/m{n}.py", 1000 * n, "full") for n in range(9)]
    planned = CompactionPreview(
        kept=(Item("k", "user", "fix the flaky test", 200, "full"),),
        summarised=tuple(long),
        pinned=(Item("p", "result", "the plan", 700, "full", pinned=True),),
        tokens_before=45_900,
        tokens_kept=900,
    )

    async def drive(pilot: Pilot[None]) -> None:
        await opened(pilot)
        world.agent.planned = planned
        await command("/compact the tests", ChoiceDialog)(pilot)

    return stage.app(world), drive


def asked_before(agent: Agent) -> None:
    """A request was sent to a model whose effort holds for a whole conversation."""
    agent.models.use(catalogue.model_info("claude-sonnet-5"))
    agent.session.append(
        "request", n=1, model=agent.models.current, server="", effort=None, marks=[]
    )
    agent.session.append(
        "assistant",
        content=[text_block("Done.")],
        model=agent.models.current,
        server="",
        usage={"cache_creation_input_tokens": 3000},
    )


def effort(stage: Stage) -> Shot:
    world = World()

    async def drive(pilot: Pilot[None]) -> None:
        await opened(pilot)
        asked_before(world.agent)
        await command("/effort max", ChoiceDialog)(pilot)

    return stage.app(world), drive


def past() -> list[Record]:
    """Three prompts; the second changed a file."""
    told: list[Record] = []
    prompts = ("read the README", "fix the flaky test in test_store.py", "and now the changelog")
    for number, text in enumerate(prompts):
        said = [{"type": "text", "text": text}]
        told.append(record("user", 10 * number, content=said, text=text))
        if number == 1:
            input_ = {"path": "/home/me/proj/store.py"}
            call = {"type": "tool_use", "id": "t1", "name": "write_file", "input": input_}
            details = {"path": input_["path"], "before": None, "before_sha256": None}
            details["after_sha256"] = "0" * 64
            told.append(record("assistant", 11, content=[call], model="m"))
            told.append(
                record("tool_result", 12, call_id="t1", name="write_file", content=said,
                       details=details)
            )  # fmt: skip
    return told


def rewinding(*keys: str) -> Callable[[Stage], Shot]:
    def make(stage: Stage) -> Shot:
        world = World()
        world.add_row("fix the flaky test", hours=1)
        path = world.rows[0].path
        world.old[path] = OldSession(title="fix the flaky test", records=past())
        drive = command("/rewind", PickScreen, *keys)
        return stage.app(world, choice=SessionChoice(path)), drive

    return make


def refused(error_class: ErrorClass, told: str, status: int) -> Callable[[Stage], Shot]:
    def make(stage: Stage) -> Shot:
        world = World()
        world.models, world.tried, world.untitled = ROWS, REPAIR_LEVELS[0], True
        hint = "The same request fails again."
        error = ProviderError(error_class, told, hint=hint, status=status, request_id="req_011CQ")
        world.scripts.append(turn(error))
        drive = prompt("fix the flaky test", lambda app: isinstance(app.screen, RecoveryScreen))
        return stage.app(world), drive

    return make


PICTURES: Pictures = {
    "change": Picture(ApprovalModal, asks(WRITE, ASKED)),
    "command": Picture(ApprovalModal, asks(RUN, RISKY)),
    "long command": Picture(ApprovalModal, asks(LONG, RISKY), state=True),
    "tool of a server": Picture(ApprovalModal, asks(MCP, UNKNOWN), state=True),
    "page": Picture(ApprovalModal, asks(PAGE, REACHES), state=True),
    "why not": Picture(ApprovalModal, asks(RUN, RISKY, "4"), state=True),
    "questions": Picture(QuestionnaireModal, questions),
    "form": Picture(QuestionnaireModal, form, state=True),
    "plan": Picture(PlanModal, plan),
    "approved plan": Picture(PlanScreen, approved_plan),
    "trust": Picture(ChoiceDialog, trust),
    "elevated": Picture(Confirmation, elevated),
    "compaction": Picture(ChoiceDialog, compaction),
    "effort": Picture(ChoiceDialog, effort),
    "rewind": Picture(PickScreen, rewinding("up")),
    "rewind files": Picture(ChoiceDialog, rewinding("up", "enter"), state=True),
    "refused": Picture(RecoveryScreen, refused("invalid_request", ERROR, 400)),
    "too long": Picture(
        RecoveryScreen, refused("context_overflow", "prompt is too long", 400), state=True
    ),
    "no key": Picture(RecoveryScreen, refused("auth", "invalid x-api-key", 401), state=True),
}


@each_of(PICTURES)
def test_picture(take: Take, picture: Picture) -> None:
    take(picture)
