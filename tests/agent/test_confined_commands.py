"""Commands behind the walls of a real sandbox, with each engine that this machine lets run."""

from __future__ import annotations

import asyncio
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from tests.agent.test_guards import results
from tests.support.agents import events_of, make_agent
from tests.support.clock import PATIENCE_S
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.core.config import Permissions, SandboxSettings
from tui.core.facts import Fact, Notice
from tui.core.messages import text_of
from tui.core.workspace import Workspace
from tui.permissions.gate import Gate, RulesOnly
from tui.permissions.policy import Policy
from tui.permissions.rules import Rule
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.sandbox.walls import Level
from tui.permissions.types import Answer, Call, Decision, Mode
from tui.settings.hook_files import Hook, Hooks

MOUNTS = ("bubblewrap", "launcher")
EVERY = (*MOUNTS, "landlock")
SECRET = "the-mark-of-a-secret"


class Says(RulesOnly):
    """Answers from a list and keeps what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers, self.asked = list(answers), list[Decision]()

    async def ask(self, call: Call, decision: Decision) -> Answer:
        self.asked.append(decision)
        return self.answers.pop(0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("text\n")
    return tmp_path / "work"


Confine = Callable[[str], Confinement]


@pytest.fixture
async def confine(root: Path, tmp_path: Path) -> AsyncIterator[Confine]:
    made: list[Confinement] = []
    hidden = tmp_path / "data"
    hidden.mkdir()
    (hidden / "secret").write_text(SECRET)

    def make(engine: Any) -> Confinement:
        settings = SandboxSettings(engine=engine)
        workspace = Workspace.at(root, ceiling="/")
        session, cache = tmp_path / "state" / "session", tmp_path / "state" / "cache"
        made.append(Confinement(settings, workspace, session, cache, hidden=(hidden,)))
        return made[-1]

    yield make
    for confinement in made:
        await confinement.close()


async def agent_with(
    root: Path,
    confinement: Confinement,
    *commands: str,
    says: Says | RulesOnly | None = None,
    policy: Policy | None = None,
    mode: Mode = "ask",
    seen: list[Fact] | None = None,
    hooks: Hooks | None = None,
    **arguments: Any,
) -> Agent:
    """An agent that has run these commands, one a turn."""
    if not await confinement.levels() and confinement.settings.engine != "off":
        pytest.skip(confinement.reason)
    script = [
        turn
        for n, command in enumerate(commands)
        for turn in ([call("run_command", f"c{n}", command=command, **arguments)], say("ok"))
    ]
    agent = make_agent(
        root,
        ScriptedProvider(*script),
        approver=says or RulesOnly(),
        gate=Gate(policy or Policy()),
        confinement=confinement,
        find_hooks=lambda: hooks or Hooks(),
    )
    agent.permissions.mode = mode
    for _ in commands:
        events = await events_of(agent, "go")
        if seen is not None:
            seen += events
    return agent


def outputs(agent: Agent) -> list[str]:
    return [text_of(record.data["content"]) for record in results(agent)]


def permissions(agent: Agent) -> list[tuple[str, str, str]]:
    found = (r.data for r in agent.session.records if r.type == "permission")
    return [(data["answer"], data["by"], data.get("level", "")) for data in found]


def written(path: Path) -> str:
    """A command that writes a file, which nobody sees by reading it."""
    return f'python3 -c "open(bytes.fromhex({str(path).encode().hex()!r}), {chr(39)}w{chr(39)})"'


async def test_a_run_of_one_turn_without_a_command_builds_no_sandbox(
    root: Path, confine: Confine, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = list[bool]()
    monkeypatch.setattr(
        "tui.permissions.sandbox.own_process.hide_secrets", lambda: hidden.append(True)
    )
    confinement = confine("auto")
    for ahead, built in ((False, False), (True, True)):
        agent = make_agent(root, ScriptedProvider(say("Hi.")), confinement=confinement, ahead=ahead)
        await events_of(agent, "hello")
        async with asyncio.timeout(PATIENCE_S):
            while built and not confinement.folder.exists():  # noqa: ASYNC110 - built by a thread
                await asyncio.sleep(0)
        assert confinement.folder.exists() is built
        assert hidden == [True], "the secrets of its environment are hidden either way, once"


@pytest.mark.parametrize("behavior", ["allow", "deny"])
async def test_a_hook_answers_for_the_person_about_what_a_wall_stopped(
    root: Path, confine: Confine, behavior: str
) -> None:
    answer = {"behavior": behavior, "message": "not now"}
    own = {"hookEventName": "PermissionRequest", "decision": answer}
    said = json.dumps({"hookSpecificOutput": own})
    hooks = Hooks((Hook("PermissionRequest", "Bash", f"echo {shlex.quote(said)}"),))
    says = Says()
    command = written(root / "made.txt")
    agent = await agent_with(root, confine("bubblewrap"), command, says=says, hooks=hooks)
    assert not says.asked
    assert (root / "made.txt").exists() == (behavior == "allow")
    ((*_, kept),) = [permissions(agent)]
    assert kept[:2] == ({"allow": "once", "deny": "no"}[behavior], "hook")
    assert ("not now" in outputs(agent)[0]) == (behavior == "deny")


@pytest.mark.parametrize("engine", EVERY)
@pytest.mark.parametrize("mode", ["ask", "plan"])
async def test_nobody_is_asked_about_what_only_reads(
    root: Path, confine: Confine, engine: str, mode: Mode
) -> None:
    hard_to_read = "x=a; for f in $x*; do cat \"$f\"; done; python3 -c 'print(6 * 7)'"
    says = Says()
    agent = await agent_with(root, confine(engine), hard_to_read, says=says, mode=mode)
    assert outputs(agent)[0].startswith("text\n42\n[exit code 0")
    assert not says.asked
    assert [level for _, _, level in permissions(agent)] == ["read-only"]


@pytest.mark.parametrize("engine", EVERY)
async def test_what_nobody_allowed_does_not_happen(
    root: Path, tmp_path: Path, confine: Confine, engine: str
) -> None:
    attacks = (
        "echo x > made; echo done",
        f"cat {tmp_path}/data/secret; echo done",
        f"touch {tmp_path}/outside; echo done",
        "rm a.txt",
        "setsid sh -c 'sleep 1; touch later' & disown; echo done",
    )
    agent = await agent_with(root, confine(engine), *attacks)
    assert [path.name for path in root.iterdir() if path.name != ".holdfast"] == ["a.txt"]
    assert not (tmp_path / "outside").exists()
    assert SECRET not in "".join(outputs(agent))


@pytest.mark.parametrize("engine", MOUNTS)
async def test_what_needs_more_asks_for_just_that(
    root: Path, confine: Confine, engine: str
) -> None:
    says = Says(Answer("once"))
    agent = await agent_with(root, confine(engine), "touch made", says=says)
    (asked,) = says.asked
    assert (asked.level, asked.reason) == (
        Level.WORKSPACE,
        "It needs to write made. So far it only read: nothing was changed.",
    )
    assert (root / "made").exists()
    assert outputs(agent)[0].startswith("(no output)\n[exit code 0")
    assert [level for _, _, level in permissions(agent)] == ["read-only", "workspace"]


@pytest.mark.parametrize("engine", MOUNTS)
async def test_a_no_is_said_with_what_it_needed(root: Path, confine: Confine, engine: str) -> None:
    agent = await agent_with(
        root, confine(engine), "touch made", says=Says(Answer("no", "not there"))
    )
    assert not (root / "made").exists()
    assert "[needs to write made; ran at the level read-only: it could" in outputs(agent)[0]
    assert "[what it needs was not allowed. not there]" in outputs(agent)[0]


@pytest.mark.parametrize("engine", MOUNTS)
async def test_a_yes_for_the_session_holds_at_its_level(
    root: Path, tmp_path: Path, confine: Confine, engine: str
) -> None:
    says = Says(Answer("session"), Answer("no"))
    commands = ("touch made", "touch made again", f"touch {tmp_path}/outside")
    agent = await agent_with(root, confine(engine), *commands, says=says)
    assert (root / "again").exists()
    assert not (tmp_path / "outside").exists()
    answers = [("allow", "sandbox", "read-only"), ("session", "person", "workspace")]
    assert permissions(agent)[:3] == [*answers, ("allow", "session", "workspace")]


@pytest.mark.parametrize("engine", MOUNTS)
async def test_an_allow_rule_and_accepted_edits_end_at_the_workspace(
    root: Path, tmp_path: Path, confine: Confine, engine: str
) -> None:
    command = f"touch made; {written(tmp_path / 'outside')}"
    allow = Policy.of(allow=[f"run_command({command})"])
    cases: list[tuple[Policy, Mode]] = [(allow, "ask"), (Policy(), "accept_edits")]
    for policy, mode in cases:
        agent = await agent_with(root, confine(engine), command, policy=policy, mode=mode)
        assert (root / "made").exists()
        (root / "made").unlink()
        assert not (tmp_path / "outside").exists()  # what it wrote is in its own /tmp
        assert outputs(agent)[0].startswith("(no output)\n[exit code 0")


@pytest.mark.parametrize("engine", EVERY)
async def test_only_a_rule_that_says_outside_has_no_walls(
    root: Path, tmp_path: Path, confine: Confine, engine: str
) -> None:
    policy = Policy.of(allow=["run_command(touch *) outside"])
    agent = await agent_with(root, confine(engine), f"touch {tmp_path}/outside", policy=policy)
    assert (tmp_path / "outside").exists()
    assert permissions(agent) == [("allow", "run_command(touch *) outside", "outside")]


def test_what_always_writes_can_be_read_again() -> None:
    for level in (Level.WORKSPACE, Level.NETWORK, Level.OUTSIDE):
        rule = Rule("run_command", "git push *", level)
        assert Rule.parse(str(rule)) == rule
        assert msgspec.convert({"allow": [str(rule)]}, Permissions).allow == (str(rule),)


@pytest.mark.parametrize("engine", MOUNTS)
async def test_the_rule_that_allows_least_counts_for_the_whole(
    root: Path, confine: Confine, engine: str
) -> None:
    rules = ("run_command(touch *) outside", "run_command(mkdir *)", "run_command(id *) network")
    agent = await agent_with(
        root,
        confine(engine),
        "touch a && mkdir b",
        "touch a && id -u",
        "touch a && touch b",
        policy=Policy.of(allow=rules),
    )
    levels = ["workspace", "workspace + network", "outside"]
    assert [level for _, _, level in permissions(agent)] == levels


@pytest.mark.parametrize("engine", EVERY)
async def test_what_is_high_risk_asks_before_it_runs(
    root: Path, confine: Confine, engine: str
) -> None:
    says = Says(Answer("no"), Answer("no"), Answer("no"))
    commands = ("rm -rf sub", "git push", "pip install x")
    await agent_with(root, confine(engine), *commands, says=says)
    outside = engine == "landlock"
    levels = [Level.WORKSPACE, Level.OUTSIDE, Level.NETWORK]
    expected = [Level.OUTSIDE] * 3 if outside else levels
    assert [asked.level for asked in says.asked] == expected


@pytest.mark.parametrize("engine", MOUNTS)
async def test_git_settings_are_kept_and_what_git_would_run_is_moved_away(
    root: Path, confine: Confine, engine: str
) -> None:
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", root], check=True)
    (root / ".git" / "hooks").rename(root / ".git" / "no-hooks")
    hook = "import os; os.mkdir('.git/hooks'); open('.git/hooks/pre-commit', 'w')"
    commands = ("git config remote.o.vcs ./run", f'python3 -c "{hook}"')
    agent = await agent_with(root, confine(engine), *commands, mode="accept_edits")
    assert "vcs" not in (root / ".git" / "config").read_text()
    assert not (root / ".git" / "hooks").exists()
    assert "hooks to " in outputs(agent)[1]


async def test_a_background_command_is_asked_about_and_stays_behind_its_walls(
    root: Path, tmp_path: Path, confine: Confine
) -> None:
    says = Says(Answer("once"))
    command = f"touch made; {written(tmp_path / 'outside')}; sleep 60"
    confinement = confine("auto")
    agent = await agent_with(root, confinement, command, says=says, background=True)
    (job,) = agent._ctx.toolbox.jobs.list()  # pyright: ignore[reportPrivateUsage] - what runs
    assert [asked.level for asked in says.asked] == [Level.WORKSPACE]
    await job.wait(0.5)
    assert not (tmp_path / "outside").exists()
    await agent.close()
    assert job.ended


async def test_without_a_sandbox_what_is_not_plain_asks(root: Path, confine: Confine) -> None:
    says = Says(Answer("no"))
    agent = await agent_with(root, confine("off"), "cat a.txt", "python3 -c 1", says=says)
    assert outputs(agent)[0].startswith("text\n")
    assert [asked.walls for asked in says.asked] == [False]
    assert agent.permissions.unconfined


async def test_where_rules_forbid_reading_walls_are_not_enough(
    root: Path, confine: Confine
) -> None:
    says = Says(Answer("no"))
    policy = Policy.of(deny=["read_file(*.pem)"])
    await agent_with(root, confine("auto"), "python3 -c 1", says=says, policy=policy)
    assert len(says.asked) == 1


async def test_a_workspace_that_walls_cannot_hold_is_said(tmp_path: Path) -> None:
    workspace = Workspace.at(Path("/"), ceiling="/")
    confinement = Confinement(SandboxSettings(), workspace, tmp_path / "s", tmp_path / "c")
    assert not await confinement.levels()
    assert "that the walls must hide" in confinement.reason
    await confinement.close()


@pytest.mark.parametrize("engine", MOUNTS)
async def test_what_tools_run_later_is_named_at_the_end_of_a_turn(
    root: Path, confine: Confine, engine: str
) -> None:
    commands = ("echo all: > Makefile; mkdir .husky; echo x > .husky/pre-push", "cat Makefile")
    seen: list[Fact] = []
    await agent_with(root, confine(engine), *commands, mode="accept_edits", seen=seen)
    told = [event.text for event in seen if isinstance(event, Notice)]
    what = ".husky/pre-push, Makefile"
    assert told == [f"Commands changed files that your tools run later: {what}."]


def repository(root: Path, *settings: str, branches: Sequence[str] = ()) -> Path:
    """A repository with one commit and these settings; its file of settings."""
    run = partial(subprocess.run, cwd=root, check=True, capture_output=True)
    run(["git", "init", "-q", "."])
    for setting in ("user.name=a", "user.email=a@b", *settings):
        run(["git", "config", *setting.split("=", 1)])
    run(["git", "-c", "commit.gpgsign=false", "commit", "-q", "--allow-empty", "-m", "x"])
    for branch in branches:
        run(["git", "branch", branch])
    return root / ".git" / "config"


@pytest.mark.parametrize("engine", MOUNTS)
@pytest.mark.parametrize("answer", ["once", "no"])
async def test_deleting_a_clone_whole_is_asked(
    root: Path, confine: Confine, engine: str, answer: Any
) -> None:
    repository(root)
    clone = root / "build" / "dep"
    clone.mkdir(parents=True)
    repository(clone)
    says = Says(Answer(answer))
    command = "python3 -c \"import shutil; shutil.rmtree('build')\""
    agent = await agent_with(root, confine(engine), command, says=says, mode="accept_edits")
    (asked,) = says.asked
    assert asked.reason.startswith("It deletes or moves the clone build/dep whole, and was stopped")
    assert asked.level is Level.WORKSPACE
    assert asked.once
    assert clone.exists() == (answer == "no")
    if answer == "no":
        assert (clone / ".git" / "HEAD").exists()
        assert (
            "[it deletes or moves the clone build/dep whole: that was not allowed.]"
            in outputs(agent)[0]
        )


@pytest.mark.parametrize("engine", MOUNTS)
async def test_new_repositories_in_filled_folders_are_told_as_a_number(
    root: Path, confine: Confine, engine: str
) -> None:
    command = "for n in a b c; do git init -q node_modules/$n/x; done; git init -q new"
    seen: list[Fact] = []
    await agent_with(root, confine(engine), command, mode="accept_edits", seen=seen)
    told = [event.text for event in seen if isinstance(event, Notice)]
    what = "new/.git, 3 .git in node_modules"
    assert told == [f"Commands changed files that your tools run later: {what}."]


@pytest.mark.parametrize("engine", MOUNTS)
@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("ask", "It needs to write .git/config, which git runs or trusts later. So far"),
        ("accept_edits", "It set remote.up.url = https://example.org/up.git in "),
    ],
)
async def test_an_address_that_git_reaches_is_asked_about_once(
    root: Path, confine: Confine, engine: str, mode: Mode, why: str
) -> None:
    settings = repository(root)
    says = Says(Answer("once"))
    command = "git remote add up https://example.org/up.git"
    agent = await agent_with(root, confine(engine), command, says=says, mode=mode)
    (asked,) = says.asked
    assert asked.level is Level.WORKSPACE
    assert asked.reason.startswith(why)
    assert "url = https://example.org/up.git" in settings.read_text()
    assert f"[{settings}: set remote.up.url = https://example.org/up.git, " in outputs(agent)[0]


@pytest.mark.parametrize("engine", MOUNTS)
@pytest.mark.parametrize("answer", ["no", "once"])
@pytest.mark.parametrize(
    "command",
    [
        "git config remote.o.vcs ./run",
        "git config core.worktree ..",
        "git remote add o ./planted.git",
        "git config remote.o.pushurl ext::./run",
        "git config -f .git/config submodule.x.update '!./run'",
    ],
)
async def test_what_git_would_run_counts_only_after_a_yes_to_it(
    root: Path, confine: Confine, engine: str, command: str, answer: Any
) -> None:
    settings = repository(root)
    before = settings.read_bytes(), settings.stat()
    says = Says(Answer("once"), Answer(answer))
    agent = await agent_with(root, confine(engine), command, says=says)
    assert says.asked[1].reason.startswith("It set ")
    assert says.asked[1].once
    assert (settings.read_bytes() == before[0]) == (answer == "no")
    assert settings.stat()[:4] == before[1][:4]  # the same file: what is mounted on it holds
    assert ("[not applied: " in outputs(agent)[0]) == (answer == "no")


@pytest.mark.parametrize("engine", MOUNTS)
async def test_a_branch_follows_a_known_remote_without_a_question(
    root: Path, confine: Confine, engine: str
) -> None:
    settings = repository(root, "remote.origin.url=https://example.org/x.git", branches=("other",))
    refs = root / ".git/refs/remotes/origin"
    refs.mkdir(parents=True)
    (refs / "topic").write_text((root / ".git/refs/heads/other").read_text())
    settings.write_text(
        f'{settings.read_text()}[remote "origin"]\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n'
    )
    agent = await agent_with(
        root, confine(engine), "git switch -c z origin/topic", mode="accept_edits"
    )
    assert '[branch "z"]\n\tremote = origin\n\tmerge = refs/heads/topic\n' in settings.read_text()
    assert "set branch.z.remote = origin, branch.z.merge = refs/heads/topic]" in outputs(agent)[0]


@pytest.mark.parametrize("engine", MOUNTS)
async def test_a_branch_follows_another_one_without_a_question(
    root: Path, confine: Confine, engine: str
) -> None:
    settings = repository(root, branches=("other",))
    command = "git branch --set-upstream-to=other"
    await agent_with(root, confine(engine), command, mode="accept_edits")
    assert "merge = refs/heads/other" in settings.read_text()


@pytest.mark.parametrize("engine", MOUNTS)
async def test_a_line_that_did_more_than_git_is_not_run_again(
    root: Path, confine: Confine, engine: str
) -> None:
    repository(root)
    says = Says()
    command = "echo x >> made; cp a.txt b; git config user.name other"
    agent = await agent_with(root, confine(engine), command, says=says, mode="accept_edits")
    assert not says.asked
    assert (root / "made").read_text() == "x\n"
    assert "[needs to write .git/config, which git runs or trusts later" in outputs(agent)[0]


@pytest.mark.parametrize("engine", MOUNTS)
async def test_a_commit_that_git_signs_asks_to_run_outside(
    root: Path, confine: Confine, engine: str
) -> None:
    repository(root, "commit.gpgsign=true", "gpg.program=/bin/false")
    says = Says(Answer("no", "unsigned, please"))
    command = "git commit --allow-empty -m y"
    agent = await agent_with(root, confine(engine), command, says=says, mode="accept_edits")
    (asked,) = says.asked
    assert asked.level is Level.OUTSIDE
    assert asked.reason == ("It needs your signing key, which the sandbox hides. Git did nothing.")
    assert "[what it needs was not allowed. unsigned, please]" in outputs(agent)[0]


@pytest.mark.parametrize("engine", MOUNTS)
@pytest.mark.parametrize("mode", ["ask", "plan"])
async def test_file_tools_and_commands_share_a_tmp(
    root: Path, confine: Confine, engine: str, mode: Mode
) -> None:
    confinement = confine(engine)
    if not await confinement.levels():
        pytest.skip(confinement.reason)
    folder = f"/tmp/{root.parent.name}-d"
    link = "python3 -c \"import os; os.symlink('/', '/tmp/up')\""
    calls = [
        call("run_command", "c0", command=f"mkdir {folder}; seq 3 > {folder}/out; cd /tmp; {link}"),
        call("read_file", "c1", path=f"{folder}/out"),
        call("write_file", "c2", path=f"{folder}/made", content="from a tool\n"),
        call("run_command", "c3", command=f"cat {folder}/made", cwd=folder),
        call("grep_search", "c4", pattern="tool", path="/tmp"),
        call("list_dir", "c5", path=folder),
        call("read_file", "c6", path="/tmp/up/etc/passwd"),
        call("write_file", "c7", path="/tmp/up/tmp/made", content="x"),
        call("read_file", "c8", path="/tmp/none"),
    ]
    agent = make_agent(
        root,
        ScriptedProvider(*([one] for one in calls), say("ok")),
        approver=RulesOnly(),
        gate=Gate(Policy()),
        confinement=confinement,
    )
    agent.permissions.mode = mode
    await events_of(agent, "go")
    said = outputs(agent)
    assert "2" in said[1]
    assert said[3].startswith("from a tool\n[exit code 0")
    assert f"{folder}/made" in said[4]
    assert "made" in said[5]
    assert "outside the workspace" in said[6]
    assert "outside the workspace" in said[7]
    assert "Commands and file tools have their own /tmp" in said[8]
    assert not Path(folder).exists()


@pytest.mark.parametrize("engine", MOUNTS)
async def test_a_port_inside_the_sandbox_is_opened_to_the_person(
    root: Path, confine: Confine, engine: str
) -> None:
    command = f"exec {sys.executable} -u -m http.server 0 --bind 127.0.0.1"
    confinement = confine(engine)
    agent = await agent_with(root, confinement, command, says=Says(Answer("once")), background=True)
    found: dict[int, int] = {}
    for _ in range(2000):
        if found := await agent.jobs.ports():
            break
        await asyncio.sleep(0.005)
    ((port, opened),) = found.items()
    assert opened == 0
    with pytest.raises(ConnectionError):
        await asyncio.open_connection("127.0.0.1", port)
    outside = await agent.jobs.forward(port)
    assert await agent.jobs.forward(port) == outside
    assert await agent.jobs.ports() == {port: outside}
    for _ in range(3):
        reader, writer = await asyncio.open_connection("127.0.0.1", outside)
        writer.write(b"GET /a.txt HTTP/1.0\r\n\r\n")
        assert (await reader.read()).endswith(b"\r\n\r\ntext\n")
        writer.close()
    await agent.close()
    assert await agent.jobs.ports() == {}
    with pytest.raises(ConnectionError):
        await asyncio.open_connection("127.0.0.1", outside)


@pytest.mark.parametrize("engine", MOUNTS)
async def test_what_a_background_command_plants_later_is_moved_away(
    root: Path, confine: Confine, engine: str
) -> None:
    repository(root)
    hooks = root / ".git" / "hooks"
    shutil.rmtree(hooks)
    (root / "plant.sh").write_text(
        "until [ -e go ]; do sleep 0.01; done; mkdir .git/hooks; touch done; exec sleep 300"
    )
    confinement, says = confine(engine), Says(Answer("once"))
    agent = await agent_with(root, confinement, "sh plant.sh", says=says, background=True)
    (root / "go").touch()
    for _ in range(2000):
        if (root / "done").exists():
            break
        await asyncio.sleep(0.005)
    assert hooks.exists()
    (line,) = await confinement.traces.tidy()
    assert line.startswith(f"moved {hooks} to ")
    assert not hooks.exists()
    await agent.close()


@pytest.mark.parametrize("engine", MOUNTS)
async def test_a_command_that_hides_what_it_does_runs_behind_the_walls(
    root: Path, tmp_path: Path, confine: Confine, engine: str
) -> None:
    """Nobody has to be asked: what no word names can do no more than the level lets it."""
    hidden = (
        'for d in . /tmp; do find "$d" -maxdepth 1; done',
        'x=$(printf rm); $x -f a.txt; touch "$(printf made)"; echo done',
        "if then (",
    )
    says = Says()
    agent = await agent_with(root, confine(engine), *hidden, says=says, mode="plan")
    assert not says.asked
    assert {level for _, _, level in permissions(agent)} == {"read-only"}
    assert (root / "a.txt").exists()
    named = 'x=$(printf push); git push; git "$x"'
    agent = await agent_with(root, confine(engine), named, says=Says(Answer("no")))
    assert [answer for answer, _, _ in permissions(agent)] == ["no"]


@pytest.mark.parametrize("engine", EVERY)
async def test_tools_that_only_look_need_no_folder_for_their_caches(
    root: Path, confine: Confine, engine: str
) -> None:
    (root / "one.py").write_text("import two\n")
    (root / "two.py").write_text("print(6 * 7)\n")
    says, ruff = Says(), shutil.which("ruff", path=str(Path(sys.executable).parent))
    look = f"{ruff} check --isolated one.py; {sys.executable} one.py"
    agent = await agent_with(root, confine(engine), look, says=says)
    assert outputs(agent)[0].startswith("F401")
    assert "\n42\n[exit code 0" in outputs(agent)[0]
    assert not says.asked
    made = {path.name for path in root.iterdir()} - {".holdfast", "a.txt", "one.py", "two.py"}
    assert not made


@pytest.mark.parametrize("engine", MOUNTS)
async def test_a_redirection_in_ask_mode_asks_for_the_workspace(
    root: Path, confine: Confine, engine: str
) -> None:
    """FINDINGS A5: bash names itself in its error, and that is not where the command writes."""
    says, rules = Says(Answer("always")), list[Rule]()
    confinement = confine(engine)
    if not await confinement.levels():
        pytest.skip(confinement.reason)
    agent = make_agent(
        root,
        ScriptedProvider([call("run_command", "c0", command="echo hi > notes.txt")], say("ok")),
        approver=says,
        gate=Gate(Policy(), remember_always=rules.append),
        confinement=confinement,
    )
    await events_of(agent, "go")
    (asked,) = says.asked
    assert asked.level is Level.WORKSPACE
    assert asked.reason == (
        "It needs to write notes.txt. So far it only read: nothing was changed."
    )
    assert (root / "notes.txt").read_text() == "hi\n"
    assert [str(rule) for rule in rules] == ["run_command(echo hi > notes.txt)"]


@pytest.mark.parametrize("answer", ["session", "always"])
async def test_a_program_that_answers_gives_no_more_than_was_offered(
    root: Path, answer: Literal["session", "always"]
) -> None:
    says, rules = Says(Answer(answer), Answer("no")), list[Rule]()
    agent = make_agent(
        root,
        ScriptedProvider(
            [call("run_command", "c0", command="rm -rf sub")],
            [call("run_command", "c1", command="rm -rf sub")],
            say("ok"),
        ),
        approver=says,
        gate=Gate(Policy(), remember_always=rules.append),
    )
    await events_of(agent, "go")
    assert not rules
    assert [asked.risk for asked in says.asked] == ["high-risk", "high-risk"]


@pytest.mark.parametrize("engine", MOUNTS)
async def test_what_was_tried_in_the_workspace_asks_for_outside_with_a_new_call(
    root: Path, confine: Confine, engine: str
) -> None:
    again = "touch made; python3 tool.py"
    (root / "tool.py").write_text("open('/opt/holdfast-test', 'w')\n")
    says = Says(Answer("once"), Answer("no"))
    agent = await agent_with(root, confine(engine), again, again, "ls", says=says)
    assert [asked.level for asked in says.asked] == [Level.WORKSPACE, Level.OUTSIDE]
    assert says.asked[1].reason.startswith(
        "The sandbox stopped it: it needs to write a file that the sandbox keeps read-only. "
        "That try "
    )
    assert "[the same call again asks for the level outside]" in outputs(agent)[0]
    assert not Path("/opt/holdfast-test").exists()


@pytest.mark.parametrize("engine", MOUNTS)
async def test_a_changed_file_lets_the_same_command_try_again(
    root: Path, confine: Confine, engine: str
) -> None:
    fails = "python3 -c \"open('/opt/holdfast-test', 'w')\""
    says, policy = Says(), Policy.of(allow=[f"run_command({fails})", "run_command(touch *)"])
    agent = await agent_with(
        root, confine(engine), fails, "touch b", fails, says=says, policy=policy
    )
    assert not says.asked
    assert {level for _, _, level in permissions(agent)} == {"workspace"}
