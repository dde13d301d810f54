"""Pictures of what a command or a key lays over the chat to be looked at."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from msgspec import structs
from textual.pilot import Pilot
from textual.widgets import Static

from tests.support.script import MODEL, Hold
from tests.support.spent_session import spent_session
from tests.support.world import OldSession, World, record
from tests.ui.screens.driving import answer, say, session_open, turn, until
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
from tests.ui.screens.test_mcp import AsksToSignIn, Vault, nothing, servers
from tests.ui.screens.test_recovery import ROWS
from tests.ui.screens.test_side_question import Asked
from tests.ui.screens.test_sub_agents import child_records
from tui.agent.agent_jobs import AgentJobs
from tui.agent.background_jobs import OwnedJob
from tui.agent.sub_agent_list import SubAgent
from tui.app import doctor
from tui.app.dialog_data import BranchQuestion, BranchRow, ProfileRow, ShownLine
from tui.app.doctor import Check, Subject
from tui.app.reports.hooks import hook_rows
from tui.app.reports.skills import skill_rows
from tui.app.reports.usage import usage_tables
from tui.app.reports.why import WhyAnswer
from tui.app.services import SessionChoice
from tui.context.blame import FileBlame, LineOrigin, RecordedStep
from tui.context.usage.attribution import attribute
from tui.core import facts
from tui.core.config import Cache, McpServer, Permissions, Price
from tui.core.messages import Usage
from tui.core.paths import Folders
from tui.permissions.types import Call
from tui.provider.prices import Payer
from tui.session.records import Record
from tui.settings.fields import fields_of
from tui.settings.hook_files import Hook, Hooks
from tui.settings.schema import Setting
from tui.settings.skills import InstalledSkill, InstalledSkills
from tui.tools.jobs import Job, Origin
from tui.ui.app import HoldfastApp
from tui.ui.screens import mcp_sign_in
from tui.ui.screens.branches import BranchesScreen
from tui.ui.screens.debug_log import DebugLogScreen
from tui.ui.screens.help import HelpScreen
from tui.ui.screens.installed import HooksScreen, SkillsScreen
from tui.ui.screens.jobs import JobOutputScreen, JobsScreen
from tui.ui.screens.mcp import McpScreen
from tui.ui.screens.permissions import PermissionsScreen
from tui.ui.screens.picker import ModelsScreen, ProfilesScreen, ThemePicker
from tui.ui.screens.read_screen import FileScreen, ReadScreen
from tui.ui.screens.read_session import ReadSessionScreen, RecordedConversation
from tui.ui.screens.reports import DiffScreen, DoctorScreen
from tui.ui.screens.settings import ChoicesScreen
from tui.ui.screens.side_question import SideQuestionScreen
from tui.ui.screens.sub_agents import AgentsScreen, SubAgentScreen
from tui.ui.screens.usage import UsageScreen
from tui.ui.screens.why import WhyScreen
from tui.ui.widgets.conversation.items import AssistantItem, ToolItem, UserItem
from tui.ui.widgets.questions import ChoiceDialog

if TYPE_CHECKING:
    from tui.agent.agent import Agent

SERVED = (
    "VITE v7.2.4  ready in 412 ms",
    "➜  Local:   http://localhost:5173/",
    "9:04:11 AM [vite] hmr update /src/app.ts",
    "9:04:16 AM [vite] hmr update /src/panel.ts",
)
CHECKS = [
    Check("program", "ok", "holdfast 1.2.3, Python 3.11.7 on Linux"),
    Check("terminal", "ok", "xterm-256color, 120 × 40"),
    Check("colours", "warn", "16", "If the terminal supports more: export COLORTERM=truecolor"),
    Check("configuration", "ok", "~/.config/holdfast/config.toml"),
    Check("key", "fail", "none", "Set ANTHROPIC_API_KEY, or run `holdfast` and paste one."),
    Check("storage", "ok", "~/.local/share/holdfast is writable"),
    Check("sessions", "ok", "37 sessions (2 interrupted)"),
]


def helped(*keys: str) -> Callable[[Stage], Shot]:
    return lambda stage: (stage.app(World()), press("f1", *keys))


def examined(stage: Stage) -> Shot:
    def examine(_: Subject) -> list[Check]:
        return CHECKS

    def done(app: HoldfastApp) -> bool:
        if not isinstance(app.screen, DoctorScreen):
            return False
        checks = app.screen.query("#checks").results(Static)
        return any("Looking" not in str(shown.visual) for shown in checks)

    stage.monkeypatch.setattr(doctor, "examine", examine)
    return stage.app(World()), prompt("/doctor", done)


def happened(*keys: str) -> Callable[[Stage], Shot]:
    """The events of a turn that waits to be sent again."""

    def make(stage: Stage) -> Shot:
        world = World()
        world.untitled = True
        retry = facts.RetryScheduled(1, 3, 4.0, "rate limited", 429, "rate_limit", "req_0124")
        run = Call("t1", "run_command", "run", "pytest -q", "pytest -q", (), "command", "pytest -q")
        world.scripts.append(
            turn(
                facts.ThinkingDelta("The test opens a file and never closes it."),
                facts.ToolStarted(run.id, run.tool, {"command": run.subject}, run.subject),
                facts.PermissionAnswered(run.id, run.tool, "allow", "safe"),
                facts.ToolFinished(run.id, run.tool, True, 12.3, None, "exit code 1", "1 failed"),
                facts.RequestSent(3, 12_345, MODEL, 1),
                retry,
                Hold(),
            )
        )

        async def drive(pilot: Pilot[None]) -> None:
            await prompt("go", lambda app: app.chat.retry.display)(pilot)
            await pilot.press("f12", *keys)
            await pilot.pause()

        return stage.app(world), drive

    return make


def served(*keys: str, any_: bool = True) -> Callable[[Stage], Shot]:
    def make(stage: Stage) -> Shot:
        folder = stage.folder
        stage.monkeypatch.setenv("HOME", str(folder))
        docs, time = servers(folder)
        time.log_file.write_text("Starting.\nListening on stdio.\n")
        time.switched_off.add("convert_time")
        world = World(mcp=(docs, time) if any_ else ())
        drive = command("/mcp", McpScreen, *keys)
        if "o" not in keys:
            return stage.app(world), drive

        async def with_log(pilot: Pilot[None]) -> None:
            await drive(pilot)
            await until(pilot, lambda: isinstance(pilot.app.screen, ReadScreen))

        return stage.app(world), with_log

    return make


def helpers(stage: Stage) -> Shot:
    """The sub-agents of a session: one that failed, one that ended well."""
    world = World()
    world.add_row("look around", hours=1)
    path = world.rows[0].path
    usage = {"input_tokens": 24_000, "output_tokens": 1_900}
    told = [record("user", 0, content=[], text="look around")]
    rows = (
        ("explore", "find where settings are read", "done", 14),
        ("general", "add a note to NOTES.md", "failed", 2),
    )
    for number, (agent, about, state, calls) in enumerate(rows, 1):
        facts = {"call_id": f"t{number}", "session": f"5ab00000000{number}", "path": ""}
        facts |= {"agent": agent, "description": about, "model": "claude-haiku-5-5"}
        spent = [{"model": "claude-haiku-5-5", "requests": calls, "usage": usage}]
        told.append(record("sub_agent", number, **facts, state=state, calls=calls, spent=spent))
    world.old[path] = OldSession(records=told, title="look around")
    return stage.app(world, choice=SessionChoice(path)), command("/agents", AgentsScreen)


def helper(stage: Stage) -> Shot:
    """A sub-agent that has ended."""
    world = World()
    one = SubAgent("t1", "5ab", None, "explore", "find where it is", MODEL, "done", 1)
    one.seconds = 14.0
    screen = SubAgentScreen(one, child_records(), world.clock)

    async def drive(pilot: Pilot[None]) -> None:
        pilot.app.push_screen(screen)
        await until(pilot, lambda: screen.is_mounted and bool(screen.view.items))

    return stage.app(world), drive


class StillJob:
    """A background command as it stands, without a process."""

    def __init__(self, number: int, command: str, seconds: float, printed: str, path: Path) -> None:
        self.id, self.command, self.path = f"job-{number}", command, path
        self.process = f"process {4100 + number}"
        self.seconds, self.bytes = seconds, len(printed)
        self.since = datetime(2026, 11, 21, 9, number, tzinfo=UTC)
        self.origin = Origin("c1", "person" if number == 3 else "")
        self.ended, self.exit_code = number < 3, number - 1
        self.stopped = False
        self._printed = printed

    def state(self) -> str:
        return f"exit code {self.exit_code}" if self.ended else "running"

    def tail(self, *, lines: int, chars: int) -> str:
        return "\n".join(self._printed[-chars:].splitlines()[-lines:])


class StillJobs:
    """An agent that has these, and a port."""

    def __init__(self, *jobs: StillJob) -> None:
        owners = ["general: try the examples", "", ""]
        self.all = [
            OwnedJob(cast("Job", job), owner) for job, owner in zip(jobs, owners, strict=True)
        ]

    @property
    def jobs(self) -> StillJobs:
        return self

    async def ports(self) -> dict[int, int]:
        return {5173: 0}


def still_jobs(stage: Stage) -> StillJobs:
    stage.monkeypatch.setenv("HOME", str(stage.folder))
    kept = stage.folder / "proj" / ".holdfast" / "tool-results"
    kept.mkdir(parents=True)
    printed = (
        "34 passed in 2.11s\n",
        "src/app.ts(14,3): error TS2304: Cannot find name 'conect'.\n",
        "".join(f"{line}\n" for line in SERVED),
    )
    commands = ("pytest -q examples", "npm run build -- --mode production", "npm run dev")
    jobs: list[StillJob] = []
    for number, (line, text) in enumerate(zip(commands, printed, strict=True), 1):
        path = kept / f"job-{number}.txt"
        path.write_text(text, encoding="utf-8")
        jobs.append(StillJob(number, line, 40.0 * number, text, path))
    return StillJobs(*jobs)


def background(stage: Stage) -> Shot:
    """Background commands: one runs, others have ended."""

    async def drive(pilot: Pilot[None]) -> None:
        screen = JobsScreen(cast("Agent", still_jobs(stage)), nothing_done)
        await pilot.app.push_screen(screen)
        await until(pilot, lambda: "5173" in str(screen.query_one("#about", Static).content))

    return stage.app(World()), drive


def quitting(stage: Stage) -> Shot:
    """A background command runs while somebody quits."""
    jobs = still_jobs(stage).all
    stage.monkeypatch.setattr(AgentJobs, "all", property(lambda _: jobs))

    async def drive(pilot: Pilot[None]) -> None:
        await opened(pilot)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChoiceDialog))

    return stage.app(World()), drive


def no_background(stage: Stage) -> Shot:
    return stage.app(World()), command("/jobs", JobsScreen)


def background_output(stage: Stage) -> Shot:
    """The output of one that runs."""

    async def drive(pilot: Pilot[None]) -> None:
        screen = JobOutputScreen(still_jobs(stage).all[2])
        await pilot.app.push_screen(screen)
        await until(pilot, lambda: screen.is_mounted and screen.pane.view.file.size > 0)

    return stage.app(World()), drive


async def nothing_done() -> None:
    """In the place of opening a port."""


def signing_in(stage: Stage) -> Shot:
    stage.monkeypatch.setenv("HOME", str(stage.folder))
    stage.monkeypatch.setattr(mcp_sign_in, "open_page", nothing)
    url = "https://door.test/mcp"
    door = AsksToSignIn(
        "door", McpServer(url=url), stage.folder, stage.folder / "x.log", vault=Vault()
    )
    door.state, door.detail = "needs sign-in", "it needs you to sign in"
    drive = command("/mcp", McpScreen, "l")

    async def with_address(pilot: Pilot[None]) -> None:
        await drive(pilot)
        await until(pilot, lambda: isinstance(pilot.app.screen, mcp_sign_in.McpSignInDialog))
        address = pilot.app.screen.query_one("#address", Static)
        await until(pilot, lambda: "door.test" in str(address.content))

    return stage.app(World(mcp=(door,))), with_address


def hooks_and_runs(stage: Stage) -> Shot:
    """A hook that blocked, others that never ran, and what is wrong with a file."""
    home = Path("/home/me")
    stage.monkeypatch.setenv("HOME", str(home))
    guard = Hook(
        "PreToolUse", "Bash", "./guard.sh --strict", 5.0, home / "proj/.holdfast/hooks.json"
    )
    known = (
        replace(guard, scripts={}, on_error="block"),
        Hook("PostToolUse", "Edit|Write", "ruff format", path=home / ".config/holdfast/hooks.json"),
        Hook("Stop", "", "notify-send done"),
    )
    ran = {"event": "PreToolUse", "command": guard.command, "outcome": "blocked", "exit_code": 2}
    runs = [record("hook", 1, **ran, seconds=0.12, text="not on Fridays", call_id="t1")]
    problems = ("settings.json: hooks for ConfigChange don't run here.",)
    rows = list(hook_rows(Hooks(known, problems), runs))

    async def drive(pilot: Pilot[None]) -> None:
        await pilot.app.push_screen(HooksScreen(rows))

    return stage.app(World()), drive


def skills_here(stage: Stage) -> Shot:
    abouts = {
        "deploy": "Deploys the site to staging, and checks that it answers.",
        "pdf": "Fills in forms, merges and splits PDFs, and reads tables from them.",
        "release-notes": "Writes release notes from the commits since the last tag.",
    }
    root = Path("/home/me/.claude/skills")
    stage.monkeypatch.setenv("HOME", "/home/me")
    skills = {
        name: InstalledSkill(name, about, root / name, root / name / "SKILL.md", "~/.claude/skills")
        for name, about in abouts.items()
    }
    nowhere = Folders(*[stage.folder] * 4)
    problems = ("~/.agents/skills/old: There is no SKILL.md.",)
    found = InstalledSkills(nowhere, stage.folder, lambda _name, _data: True, skills, problems)

    async def drive(pilot: Pilot[None]) -> None:
        await pilot.app.push_screen(SkillsScreen(list(skill_rows(found))))

    return stage.app(World()), drive


def choosing(stage: Stage) -> Shot:
    """The choices of a setting."""
    field = fields_of(Cache)["ttl"]
    setting = Setting(
        key=("cache", "ttl"),
        kind="choice",
        value="auto",
        default="auto",
        options=("auto", "5m", "1h"),
        description=field,
    )

    async def drive(pilot: Pilot[None]) -> None:
        await pilot.app.push_screen(ChoicesScreen(setting, "auto"))
        await pilot.press("down")

    return stage.app(World()), drive


def models(*keys: str) -> Callable[[Stage], Shot]:
    def make(stage: Stage) -> Shot:
        world = World()
        world.models = ROWS
        return stage.app(world), command("/model", ModelsScreen, *keys)

    return make


def account(name: str, model: str, server: str, key: str, **more: Any) -> ProfileRow:
    payer = Payer("" if name == "default" else name, server, {})
    return ProfileRow(name, model, server, key, payer, 1_000_000, **more)


API = "https://api.anthropic.com"
PROFILES = (
    account("default", "claude-sonnet-5-5", API, "your usual key", now=True),
    account("work", "claude-opus-5-5", "https://gateway.example.com", "its own key"),
    account("a client whose name is long", "claude-haiku-5-5", API, "no key"),
)


def accounts(stage: Stage) -> Shot:
    world = World()
    world.profiles = PROFILES
    world.scripts.append(turn(*answer("All of it is there.")))
    app = stage.app(world)

    async def drive(pilot: Pilot[None]) -> None:
        await say(pilot, "Look at it")
        await until(pilot, lambda: bool(world.agent.sent) and not app.conversation.busy)
        await say(pilot, "/profile")
        await until(pilot, lambda: isinstance(app.screen, ProfilesScreen))
        await pilot.press("down")

    return app, drive


def colours(stage: Stage) -> Shot:
    return stage.app(World()), command("/theme", ThemePicker)


def decided(*, any_: bool = True) -> Callable[[Stage], Shot]:
    def make(stage: Stage) -> Shot:
        world = World()
        world.permissions = Permissions(
            allow=("read_file", "run_command(git status*)"), deny=("run_command(git push*)",)
        )
        rows = (
            ("run_command", "git status", "allow", "safe", "Read-only."),
            ("edit_file", "src/store.py", "once", "person", "Writes a file."),
            ("run_command", "rm -rf build", "no", "person", "`rm -r` removes files for good."),
            ("run_command", "pip install -e .", "allow", "elevated", "It installs packages."),
            ("run_command", "git push origin main --force-with-lease", "deny",
             "run_command(git push*)", "The rule run_command(git push*) denies it."),
        )  # fmt: skip
        names = ("tool", "subject", "answer", "by", "reason")
        told = [record("user", 0, content=[], text="go")]
        if any_:
            told += [
                record("permission", n, **dict(zip(names, row, strict=True)))
                for n, row in enumerate(rows, 1)
            ]
        world.add_row("clean up", hours=1)
        path = world.rows[0].path
        world.old[path] = OldSession(records=told, title="clean up")
        drive = command("/permissions", PermissionsScreen)
        return stage.app(world, choice=SessionChoice(path)), drive

    return make


def written(path: Path, text: str) -> list[Record]:
    """A turn in which a file was written that was not there before."""
    call = {"type": "tool_use", "id": "t1", "name": "write_file", "input": {"path": path.name}}
    digest = hashlib.sha256(text.encode()).hexdigest()
    details = {"path": str(path), "before": None, "before_sha256": None, "after_sha256": digest}
    said = [{"type": "text", "text": "Written."}]
    return [
        record("user", 0, content=[{"type": "text", "text": "go"}], text="go"),
        record("assistant", 1, content=[call], model="m"),
        record("tool_result", 2, call_id="t1", name="write_file", content=said, details=details),
        record("assistant", 3, content=said, model="m"),
    ]


def changes(stage: Stage) -> Shot:
    root = stage.workspace()
    folder = root / "src"
    folder.mkdir()
    path, text = folder / "store.py", "class Store:\n    def append(self, record):\n        ...\n"
    path.write_text(text)
    world = World(root)
    world.add_row("write the store", hours=1)
    session = world.rows[0].path
    world.old[session] = OldSession(records=written(path, text), title="write the store")
    return stage.app(world, choice=SessionChoice(session)), command("/diff", DiffScreen)


def branching(stage: Stage) -> Shot:
    """A session that was rewound four times, once to nothing yet."""
    world = World()
    now = world.clock.now()
    told = [
        ("Fix the flaky test in the scheduler and say why it only fails at midnight", 0, 24.0),
        ("Try it with a frozen clock", 1, 3.0),
        ("Use the fake clock of the other tests, 日本語", 2, 0.2),
        ("Leave the test, look at the code", 1, 2.0),
        ("", 9, 0.01),
    ]
    rows = [
        BranchRow(
            f"06a1f2c4{number:012x}",
            first,
            prompts=5 - number,
            all_prompts=5 + number,
            updated=(now - timedelta(hours=hours)).isoformat(),
            cost_usd=0.42 / (number + 1) if first else 0.0,
            files=3 - number if number < 3 else 0,
            parent="06a1f2c4" if depth else None,
            fork_words="Which test is it?",
            depth=depth,
            current=number == 2,
        )
        for number, (first, depth, hours) in enumerate(told)
    ]

    async def show(pilot: Pilot[None]) -> None:
        screen = BranchesScreen(BranchQuestion(rows, can_undo=True), world.clock)
        await pilot.app.push_screen(screen)

    return stage.app(world), show


WROTE = RecordedStep(
    "edit",
    time="2026-11-24T12:08:00Z",
    session="06a1f2c4d7e9",
    prompt="p2",
    said="Fix the flaky test in the scheduler and say why it only fails at midnight, 日本語",
    before="a1",
    call="c1",
    tool="edit_file",
    label="src/scheduler.py",
    model="claude-sonnet-5-5",
    usage=Usage(12_000, 900),
    by="person",
)


def origin(*keys: str, certain: bool = True) -> Callable[[Stage], Shot]:
    """The answer about a line; one that isn't certain has two candidates."""

    def show(stage: Stage) -> Shot:
        other = structs.replace(WROTE, kind="command", tool="run_command", label="make format")
        why = "" if certain else "two commands ran at the same time"
        origin = LineOrigin((0,) if certain else (0, 1), why)
        found = FileBlame(
            "/w/src/scheduler.py", "src/scheduler.py", (0,), (origin,), (WROTE, other)
        )
        lines = ["    return now.astimezone(UTC).date() >= due"]
        price = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)
        answer = WhyAnswer("src/scheduler.py", found, lines, 1, 1, {"claude-sonnet-5-5": price})

        async def told(*_: object) -> WhyAnswer:
            return answer

        stage.monkeypatch.setattr("tui.ui.screens.why.line_answer", told)

        async def ask(pilot: Pilot[None]) -> None:
            app = cast("HoldfastApp", pilot.app)
            await until(pilot, lambda: session_open(app))
            screen = WhyScreen(app.frontend, ShownLine("src/scheduler.py", 1, lines[0]))
            await app.push_screen(screen)
            await until(pilot, lambda: screen.step is not None)
            await pilot.press(*keys)

        return stage.app(World()), ask

    return show


def read_file(stage: Stage) -> Shot:
    """A file of rules, opened from a list."""
    rules = "# Rules\n\n- Keep the tests green.\n- No vendor/ in commits.\n"

    async def show(pilot: Pilot[None]) -> None:
        app = cast("HoldfastApp", pilot.app)
        await until(pilot, lambda: session_open(app))
        await app.push_screen(FileScreen("~/proj/AGENTS.md", rules, stage.folder / "AGENTS.md", 4))

    return stage.app(World()), show


def read_there(stage: Stage) -> Shot:
    """The session that wrote a line, at its prompt."""
    shown = UserItem(WROTE.said)
    items = [
        UserItem("Which test is it?"),
        AssistantItem("`test_due`, in the scheduler."),
        shown,
        ToolItem("c1", "edit_file", "src/scheduler.py", "ok", summary="1 line"),
        AssistantItem("It compared local dates. Now both are in UTC."),
    ]
    session = RecordedConversation(stage.folder, "Fix the flaky test", items, shown, damaged=True)

    async def show(pilot: Pilot[None]) -> None:
        app = cast("HoldfastApp", pilot.app)
        await until(pilot, lambda: session_open(app))
        screen = ReadSessionScreen(app.frontend, WROTE, session)
        await app.push_screen(screen)
        await until(pilot, lambda: screen.view.cursor is shown)

    return stage.app(World()), show


def spent(*pressed: str) -> Callable[[Stage], Shot]:
    """A session that was paid for in every way."""

    def shot(stage: Stage) -> Shot:
        async def show(pilot: Pilot[None]) -> None:
            said = ["Session: $0.42 for 12 requests; last prompt: — for 1 request."]
            tables = usage_tables(attribute(spent_session(), {}, cwd="/w"))
            usage: Any = SimpleNamespace(
                version=0, read=lambda: iter([tables]), summary=lambda: said
            )
            screen = UsageScreen(usage)
            await pilot.app.push_screen(screen)
            await until(pilot, lambda: bool(screen.table.rows))
            await pilot.press(*pressed)

        return stage.app(World()), show

    return shot


def asked_aside(stage: Stage) -> Shot:
    """A side question with its answer, and the next one begun."""
    asked = Asked()

    async def ask(pilot: Pilot[None]) -> None:
        app = cast("HoldfastApp", pilot.app)
        await until(pilot, lambda: session_open(app))
        agent: Any = SimpleNamespace(side_questions=asked)
        screen = SideQuestionScreen(app.frontend, agent, "Why is the last item cut off?")
        await app.push_screen(screen)
        await until(pilot, lambda: bool(asked.questions))
        asked.stream("The slice in **calc.py** drops both ends:\n\n```python\nitems[1:-1]\n```\n")
        asked.end.set()
        await until(pilot, lambda: screen.field.placeholder == "Ask something else")
        await pilot.press(*"And", "space", *"where")

    return stage.app(World()), ask


PICTURES: Pictures = {
    "a side question": Picture(SideQuestionScreen, asked_aside),
    "branches": Picture(BranchesScreen, branching),
    "help": Picture(HelpScreen, helped()),
    "end of the help": Picture(HelpScreen, helped("end"), state=True, fresh=True),
    "doctor": Picture(DoctorScreen, examined),
    "events": Picture(DebugLogScreen, happened()),
    "event": Picture(DebugLogScreen, happened("end", "enter"), state=True),
    "filtered events": Picture(DebugLogScreen, happened("slash", *"tool"), state=True),
    "servers": Picture(McpScreen, served("down", "enter", "down")),
    "log of a server": Picture(ReadScreen, served("down", "o")),
    "no servers": Picture(McpScreen, served(any_=False), state=True),
    "hooks": Picture(HooksScreen, hooks_and_runs),
    "skills": Picture(SkillsScreen, skills_here),
    "choices": Picture(ChoicesScreen, choosing),
    "sub-agents": Picture(AgentsScreen, helpers),
    "sub-agent": Picture(SubAgentScreen, helper),
    "background commands": Picture(JobsScreen, background),
    "no background commands": Picture(JobsScreen, no_background, state=True),
    "output of a background command": Picture(JobOutputScreen, background_output),
    "quitting with background commands": Picture(ChoiceDialog, quitting, state=True),
    "mcp sign-in": Picture(mcp_sign_in.McpSignInDialog, signing_in),
    "models": Picture(ModelsScreen, models()),
    "profiles": Picture(ProfilesScreen, accounts),
    "another model": Picture(ModelsScreen, models(*"llama3"), state=True),
    "colours": Picture(ThemePicker, colours),
    "permissions": Picture(PermissionsScreen, decided()),
    "no decision yet": Picture(PermissionsScreen, decided(any_=False), state=True),
    "changes": Picture(DiffScreen, changes),
    "where a line comes from": Picture(WhyScreen, origin()),
    "where a line may come from": Picture(WhyScreen, origin("n", certain=False), state=True),
    "a session to read": Picture(ReadSessionScreen, read_there),
    "a file to read": Picture(FileScreen, read_file),
    "usage by prompt": Picture(UsageScreen, spent()),
    "usage by tool": Picture(UsageScreen, spent("right", "right", "home"), state=True),
    "usage by break": Picture(UsageScreen, spent(*["right"] * 5, "home"), state=True),
}


@each_of(PICTURES)
def test_picture(take: Take, picture: Picture) -> None:
    take(picture)
