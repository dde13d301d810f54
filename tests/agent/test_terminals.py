"""Terminals of the model: what may be typed into them, who answers secrets, and what stays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.core.clock import SystemClock
from tui.core.config import SandboxSettings
from tui.core.facts import Fact, JobFinished, Notice, QuestionAnswered
from tui.core.messages import text_of
from tui.core.paths import folders
from tui.core.questions import SecretAnswer, SecretQuestion
from tui.core.workspace import Workspace
from tui.permissions.gate import Gate, RulesOnly
from tui.permissions.policy import Policy
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.types import Answer, Call, Decision, Mode
from tui.session.session import Session
from tui.tools.registry import builtin_tools
from tui.tools.terminal import TerminalTool

SECRET = "correct horse battery staple"
GETPASS = "python3 -c 'import getpass; print(len(getpass.getpass()), \"characters\")'"


@dataclass
class Person(RulesOnly):
    """Answers from a list, and types a secret if there is one."""

    answers: list[Answer] = field(default_factory=list[Answer])
    secret: str | None = None
    asked: list[tuple[Call, Decision]] = field(default_factory=list[tuple[Call, Decision]])
    secrets: list[SecretQuestion] = field(default_factory=list[SecretQuestion])
    given: list[SecretAnswer] = field(default_factory=list[SecretAnswer])
    asks_secrets: bool = True

    async def ask(self, call: Call, decision: Decision) -> Answer:
        self.asked.append((call, decision))
        return self.answers.pop(0)

    async def ask_secret(self, question: SecretQuestion) -> SecretAnswer | None:
        self.secrets.append(question)
        if self.secret is None:
            return None
        self.given.append(SecretAnswer(bytearray(self.secret.encode())))
        return self.given[-1]


def start(command: str, **more: Any) -> dict[str, Any]:
    return {"action": "start", "command": command, **more}


def send(text: str = "", *keys: str, **more: Any) -> dict[str, Any]:
    return {"action": "send", "terminal": "job-1", "text": text, "keys": list(keys), **more}


CAT = "sh -c 'echo ready; cat; true'"
"""Shows something at once: a program that shows nothing is waited for as one that starts."""
CLOSE = {"action": "close", "terminal": "job-1"}
YES = Answer("once")
Ends = Callable[..., Agent]
Step = dict[str, Any] | list[dict[str, Any]]
"""The input of a call, or a whole answer."""


@pytest.fixture
async def agent_of(tmp_path: Path) -> AsyncIterator[Ends]:
    made: list[Agent] = []
    root = tmp_path / "work"
    root.mkdir()

    def make(*steps: Step, mode: Mode = "ask", **fields: Any) -> Agent:
        script = [
            [call("terminal", f"c{n}", **step)] if isinstance(step, dict) else step
            for n, step in enumerate(steps)
        ]
        fields.setdefault("gate", Gate(fields.pop("policy", Policy())))
        tools = builtin_tools() | {"terminal": TerminalTool(2)}
        agent = make_agent(root, ScriptedProvider(*script, say("ok")), tools=tools, **fields)
        agent.permissions.mode = mode
        made.append(agent)
        return agent

    yield make
    for agent in made:
        await agent.close()


def results(agent: Agent) -> list[str]:
    """The text of each result."""
    return [
        text_of(one.data["content"]) for one in agent.session.records if one.type == "tool_result"
    ]


def recorded_secrets(agent: Agent) -> list[dict[str, str]]:
    """The questions for secrets that the results tell of."""
    every = (one.data["details"] for one in agent.session.records if one.type == "tool_result")
    return [asked for details in every for asked in details.get("secrets", [])]


def everything(agent: Agent, shown: list[Fact]) -> str:
    """All that the record, the events and the files of a session say."""
    root = agent.full_outputs.parent.parent
    files = [
        path.read_bytes().decode("utf-8", "replace") for path in root.rglob("*") if path.is_file()
    ]
    records = [json.dumps(one.data, default=str) for one in agent.session.records]
    return "\n".join([*records, *map(repr, shown), *files])


async def test_without_walls_each_input_asks_and_shows_what_is_typed(agent_of: Ends) -> None:
    person = Person([YES, YES, Answer("no", "not now"), YES])
    agent = agent_of(start(CAT), send("one", "enter"), send("two", "enter"), CLOSE, approver=person)
    await events_of(agent, "go")
    (begun, one, two) = (asked for asked, _ in person.asked)
    assert (begun.command, begun.preview) == (CAT, CAT)
    assert one.preview == f"Into job-1 (sh > cat): {CAT}\n\none⏎"
    assert two.preview.endswith("two⏎")
    _, typed, refused, closed = results(agent)
    assert "one\none\n[job-1 · running sh > cat]" in typed
    assert refused == "Declined by the user; it didn't run. Reason: not now"
    assert "two" not in closed


async def test_a_yes_for_the_session_covers_one_terminal(agent_of: Ends) -> None:
    person = Person([YES, Answer("session")])
    agent = agent_of(start(CAT), send("one", "enter"), send("two", "enter"), approver=person)
    await events_of(agent, "go")
    assert [asked.scope for asked, _ in person.asked][1] == "all input to job-1"
    assert "two\ntwo" in results(agent)[-1]


async def test_a_yes_for_good_covers_one_terminal_too(agent_of: Ends) -> None:
    gate = Gate(Policy())
    agent = agent_of(start(CAT), send("x"), approver=Person([YES, Answer("always")]), gate=gate)
    await events_of(agent, "go")
    assert "ready\nx\n" in results(agent)[-1]
    assert not gate.policy.allow


async def test_a_yes_for_the_session_reaches_no_terminal_of_the_same_name(
    agent_of: Ends, tmp_path: Path
) -> None:
    """As a sub-agent's: it shares the grants, and numbers its terminals itself."""
    gate = Gate(Policy())
    person = Person([YES, Answer("session")])
    agent = agent_of(start(CAT), send("one", "enter"), approver=person, gate=gate)
    await events_of(agent, "go")
    other = make_agent(
        tmp_path / "work",
        ScriptedProvider([call("terminal", "d0", **start(CAT))],
                         [call("terminal", "d1", **send("two", "enter"))], say("ok")),
        tools=builtin_tools() | {"terminal": TerminalTool(2)},
        gate=gate,
        approver=(asked := Person([YES, Answer("no")])),
    )  # fmt: skip
    await events_of(other, "go")
    assert [one.preview.partition(":")[0] for one, _ in asked.asked][1:] == [
        "Into job-1 (sh > cat)"
    ]
    await other.close()


async def test_a_risky_line_for_a_shell_asks_although_input_is_allowed(agent_of: Ends) -> None:
    person = Person([YES, Answer("session"), Answer("no")])
    agent = agent_of(
        start("bash --norc"), send("ls", "enter"), send("git pu"), send("sh origin", "enter"),
        approver=person,
    )  # fmt: skip
    await events_of(agent, "go")
    risky, decision = person.asked[-1]
    assert risky.command == "git push origin"
    assert decision.once


async def test_a_pasted_line_is_a_line(agent_of: Ends) -> None:
    person = Person([YES, Answer("session"), Answer("no")])
    agent = agent_of(
        start("bash --norc"),
        send("true", "enter"),
        send("git push \\\n origin", "enter"),
        approver=person,
    )
    await events_of(agent, "go")
    risky, _ = person.asked[-1]
    assert risky.command == "git push \\\n origin"


async def test_deny_rules_for_commands_hold_in_a_shell(agent_of: Ends) -> None:
    policy = Policy.of(deny=["run_command(git push*)"])
    person = Person([YES, YES])
    agent = agent_of(
        start("bash --norc"), send("git push", "enter"), start("git push"),
        approver=person, policy=policy,
    )  # fmt: skip
    await events_of(agent, "go")
    assert [text.partition(":")[0] for text in results(agent)[1:]] == 2 * ["Not allowed, not run"]


@pytest.mark.parametrize(
    "sent",
    [
        [send("git push", "ctrl+j")],
        [send("git push", "ctrl+o")],
        [send("x", "ctrl+c", *"git pu"), send("sh", "enter")],
        [send(f"git push{' ' * 5000}"), send("", "enter")],
        [send("sleep 0.3", "enter", rest=0), send("git push", "enter")],
    ],
    ids=["line feed", "readline's own", "begun again", "a long line", "typed ahead"],
)
async def test_deny_rules_hold_however_a_shell_gets_its_line(
    agent_of: Ends, sent: list[dict[str, Any]]
) -> None:
    policy = Policy.of(deny=["run_command(git push*)"])
    person = Person([YES, *[YES] * len(sent)])
    agent = agent_of(
        start("bash --norc", until=["# ", "$ "]), *sent, approver=person, policy=policy
    )
    await events_of(agent, "go")
    assert results(agent)[-1].startswith("Not allowed, not run: Denied by the rule")


@pytest.mark.parametrize(
    "command",
    [
        "sh -s -c 'echo ready'",
        "bash --norc -s -- -c",
        "bash --norc --rcfile -c",
        "setsid -w sh",
        "sh -c 'cat | setsid -w sh'",
        "sh -c '(setsid sh -c \"sh; true\" </dev/tty &); sleep 60'",
        "bash -c 'for i in {1..210}; do sleep 60 & done; echo ready; sh'",
    ],
    ids=[
        "goes on after one line",
        "an argument like an option",
        "a value like an option",
        "in a session of its own",
        "behind a pipe",
        "left by who started it",
        "behind a crowd",
    ],
)
async def test_deny_rules_hold_however_a_shell_was_started(agent_of: Ends, command: str) -> None:
    policy = Policy.of(deny=["run_command(git push*)"])
    agent = agent_of(
        start(command, until=["ready", "# ", "$ "]),
        send("git push", "enter"),
        approver=Person([YES, YES]),
        policy=policy,
    )
    await events_of(agent, "go")
    assert results(agent)[-1].startswith("Not allowed, not run: Denied by the rule")


async def test_a_line_that_keys_have_edited_asks_where_a_rule_may_forbid_it(agent_of: Ends) -> None:
    policy = Policy.of(deny=["run_command(git push*)"])
    person = Person([YES, Answer("session"), Answer("no"), Answer("no")])
    agent = agent_of(
        start("bash --norc", until=["# ", "$ "]),
        send("true", "enter"),
        send("gti push", "home", "right", "ctrl+t", "enter"),
        send("", "up", "enter"),
        approver=person,
        policy=policy,
    )
    await events_of(agent, "go")
    why = (
        "Can't tell whether the rule run_command(git push*) forbids this: "
        "keys, earlier input or its length change the line"
    )
    asked = person.asked[2:]
    assert [one.reason.partition(", so")[0] for _, one in asked] == [why, why]
    assert all(one.once for _, one in asked)


async def test_a_line_that_the_terminal_may_cut_asks_where_a_rule_may_forbid_it(
    agent_of: Ends,
) -> None:
    policy = Policy.of(deny=["run_command(git push)"])
    person = Person([YES, Answer("session"), Answer("no")])
    agent = agent_of(
        start("sh -c 'echo ready; exec sh'", until=["ready"]),
        send("true", "enter"),
        send(f"echo {'x' * 4087} >>out", "enter"),  # of which a shell may get less
        approver=person,
        policy=policy,
    )
    await events_of(agent, "go")
    assert person.asked[-1][1].reason.startswith("Can't tell whether the rule run_command(git push")


async def test_a_yes_for_the_session_covers_no_line_that_keys_have_edited(agent_of: Ends) -> None:
    person = Person([YES, Answer("session"), Answer("no")])
    agent = agent_of(
        start("bash --norc", until=["# ", "$ "]),
        send("ls", "enter"),
        send("git pus", "x", "backspace", "h", "enter"),
        approver=person,
    )
    await events_of(agent, "go")
    assert (
        person.asked[2][1].reason
        == "Keys, earlier input or its length change the line, so only the shell knows it."
    )


@pytest.mark.parametrize(
    "taken",
    ["read -n1 x; echo go''t", "python3 -c 'import os,tty; tty.setcbreak(0); print(os.read(0,1))'"],
    ids=["the shell", "a pager"],
)
async def test_a_key_that_something_else_reads_hides_no_line(agent_of: Ends, taken: str) -> None:
    """As the `q` for a pager, before a line for the shell."""
    person = Person([YES, Answer("session"), Answer("no"), Answer("no"), Answer("no")])
    agent = agent_of(
        start("bash --norc", until=["# ", "$ "]),
        send("true", "enter"),
        send(taken, "enter"),
        send("q", until=["# ", "$ "]),
        send("git push", "enter"),
        approver=person,
    )
    await events_of(agent, "go")
    last, decision = person.asked[-1]
    assert "git push" in last.subject
    assert decision.once
    assert results(agent)[-1].startswith("Declined by the user")


async def test_a_yes_is_none_to_the_program_that_comes_while_it_is_asked(agent_of: Ends) -> None:
    class Slow(Person):
        async def ask(self, call: Call, decision: Decision) -> Answer:
            if call.types is not None:
                (job,) = (owned.job for owned in agent.jobs.all)
                assert job.terminal is not None
                await job.terminal.type(b"\x04", "person")
                while "next" not in (await job.terminal.refresh()).text:  # noqa: ASYNC110 - a process
                    await asyncio.sleep(0.01)
            return await super().ask(call, decision)

    agent = agent_of(
        start("sh -c 'echo ready; cat; echo next; cat -u; true'", until=["ready"]),
        send("yes", "enter"), {"action": "read", "terminal": "job-1"},
        approver=Slow([YES, YES]),
    )  # fmt: skip
    async with asyncio.timeout(30):
        await events_of(agent, "go")
    _, refused, after = results(agent)
    assert "Nothing was typed: the program has changed" in refused
    assert "yes" not in after


async def test_keys_for_a_program_that_is_no_shell_are_no_lines(agent_of: Ends) -> None:
    person = Person([YES, Answer("session")])
    agent = agent_of(
        start("bash --norc -c 'cat; true'"),
        send("", "enter"),
        send("git push", "up", "enter"),
        approver=person,
    )
    await events_of(agent, "go")
    assert len(person.asked) == 2
    assert "git push" in results(agent)[-1]


async def test_plan_mode_starts_and_types_nothing(agent_of: Ends) -> None:
    agent = agent_of(start(CAT), mode="plan", approver=Person())
    await events_of(agent, "go")
    assert results(agent) == [
        "Not allowed, not run: Plan mode is read-only: nothing is written or run."
    ]


async def test_nobody_there_refuses_what_a_command_would_be_refused(agent_of: Ends) -> None:
    agent = agent_of(start(CAT), approver=RulesOnly())
    await events_of(agent, "go")
    assert "There is no one to ask." in results(agent)[0]


async def test_a_secret_goes_to_the_program_and_nowhere_else(agent_of: Ends) -> None:
    person = Person([YES], secret=SECRET)
    agent = agent_of(start(GETPASS, until=["characters"]), approver=person)
    shown = await events_of(agent, "go")
    assert person.secrets == [SecretQuestion("job-1", GETPASS, "Password:", "python3")]
    assert f"{len(SECRET)} characters" in results(agent)[0]
    assert SECRET not in everything(agent, shown)
    assert bytes(person.given[0].data).strip(b"\0") == b""
    (answered,) = (one for one in shown if isinstance(one, QuestionAnswered))
    assert answered.answers[0]["chosen"] == ["answered, and shown to nobody"]
    assert recorded_secrets(agent) == [{"prompt": "Password:", "answer": "answered"}]


async def test_a_question_for_a_secret_names_what_asks_and_what_the_model_typed(
    agent_of: Ends,
) -> None:
    """A shell that the model typed into can show any question."""
    person = Person([YES, YES], secret=SECRET)
    asks = "read -sp '[sudo] password for ann: ' x"
    agent = agent_of(start("bash --norc", until=["# ", "$ "]), send(asks, "enter"), approver=person)
    await events_of(agent, "go")
    (question,) = person.secrets
    assert question.prompt.endswith("[sudo] password for ann:")
    assert question.asker == f"bash reads it. The model typed last: {asks}"


async def test_the_model_types_no_secret_and_hears_why(agent_of: Ends) -> None:
    person = Person([YES, YES, YES])
    agent = agent_of(
        start(GETPASS),
        send("guess", "enter"),
        send("", "ctrl+c", until=["KeyboardInterrupt"]),
        approver=person,
    )
    await events_of(agent, "go")
    begun, typed, interrupted = results(agent)
    assert "waits for a secret that the user hasn't given" in begun
    assert recorded_secrets(agent)[0] == {"prompt": "Password:", "answer": "not answered"}
    assert "Nothing was typed: the program reads a secret" in typed
    assert "KeyboardInterrupt" in interrupted


async def test_where_nobody_can_be_asked_the_result_says_so(agent_of: Ends) -> None:
    agent = agent_of(start(GETPASS), approver=Person([YES], asks_secrets=False))
    shown = await events_of(agent, "go")
    (notice,) = (one.text for one in shown if type(one) is Notice)
    assert notice.startswith(
        f"{GETPASS} in job-1 waits for a secret. It can only be typed in the full"
    )
    assert "waits for a secret that the user hasn't given" in results(agent)[0]


async def test_a_full_screen_program_is_no_secret_prompt(agent_of: Ends) -> None:
    raw = "import tty,sys,os; tty.setraw(0); print('ready', flush=True); print(os.read(0,1))"
    person = Person([YES, YES])
    agent = agent_of(
        start(f'python3 -c "{raw}"', until=["ready"]), send("q", until=["b'q'"]), approver=person
    )
    await events_of(agent, "go")
    assert not person.secrets
    assert "b'q'" in results(agent)[1]


async def test_a_prompt_is_waited_for_with_the_space_at_its_end(agent_of: Ends) -> None:
    shell = "[print(end='$ ', flush=True) for _ in iter(input, 'exit')]"
    first = "import sys; sys.stdout.write('1\\n')"  # at once, whatever PYTHONUNBUFFERED says
    agent = agent_of(
        start(f'python3 -c "{first}; sys.stdout.flush(); {shell}"', until=["1"]),
        send("x", "enter", until=["$ "], timeout=60),
        send("y", "enter", until=["$ "], timeout=60),
        approver=Person([YES, Answer("session")]),
    )
    async with asyncio.timeout(30):
        await events_of(agent, "go")
    _, one, two = results(agent)
    assert "x\n$\n" in one
    assert "y\n$\n" in two


async def test_while_the_person_has_the_keyboard_the_model_waits(agent_of: Ends) -> None:
    person = Person([YES, Answer("session")])
    agent = agent_of(start(CAT), send("a", "enter"), approver=person)
    await events_of(agent, "go")
    (job,) = (owned.job for owned in agent.jobs.all)
    assert job.terminal is not None
    await job.terminal.hold(held=True)
    assert await job.terminal.type(b"b", "model") == "keyboard"
    assert await job.terminal.type(b"mine\r", "person") == ""
    await job.terminal.hold(held=False)
    assert job.terminal.typed


async def test_the_program_that_reads_is_named_with_the_one_that_started_it(agent_of: Ends) -> None:
    """As a pager's for `psql`, or the `sudo` of a script that asks for a secret."""
    script = (
        "import subprocess; subprocess.run(['sh', '-c', 'read -r x; stty -echo; read -r y; :'])"
    )
    person = Person([YES, YES], secret=SECRET)
    agent = agent_of(start(f'python3 -c "{script}"'), send("a", "enter"), approver=person)
    await events_of(agent, "go")
    assert "[job-1 · running python3 > sh" in results(agent)[0]
    assert person.secrets[0].asker.startswith("python3 > sh reads it.")


async def test_the_name_of_a_program_steers_nothing(agent_of: Ends) -> None:
    """A program calls itself anything, line breaks and codes for a terminal among it."""
    renamed = (
        'import ctypes; ctypes.CDLL(None).prctl(15, b"\\x1b[31mX\\n]y"); print("ready"); input()'
    )
    agent = agent_of(start(f"python3 -c '{renamed}'", until=["ready"]), approver=Person([YES]))
    await events_of(agent, "go")
    (result,) = results(agent)
    assert result.endswith("]y]")
    assert "\x1b" not in result
    assert result.splitlines()[-1].startswith("[job-1 · running ")


async def test_lines_that_left_the_screen_are_shown_once(agent_of: Ends) -> None:
    person = Person([YES, YES])
    agent = agent_of(
        start("sh -c 'seq 5; read x; seq 6 9'", rows=4), send("", "enter"), approver=person
    )
    await events_of(agent, "go")
    begun, ended = results(agent)
    assert begun.startswith("[2 lines scrolled by]\n1\n2\n[screen")
    assert ended.startswith("[5 lines scrolled by]\n3\n4\n5\n\n6\n[screen")


async def test_a_program_that_shows_nothing_of_its_input_is_waited_for(agent_of: Ends) -> None:
    busy = "stty -echo -icanon; echo ready; read -r x; sleep 0.4; echo got $x; read -r y"
    agent = agent_of(
        start(f"sh -c '{busy}'", until=["ready"]),
        send("a", "enter", rest=0.1),
        send("", "up", rest=0.1),
        approver=Person([YES, YES, YES]),
    )
    await events_of(agent, "go")
    _, answered, silent = results(agent)
    assert "got a" in answered
    assert "running sh]" in answered
    assert "running sh · nothing has changed on the screen since you typed]" in silent


async def test_a_program_that_has_drawn_nothing_yet_is_still_starting(agent_of: Ends) -> None:
    """As `mc`, which asks the terminal first."""
    slow = r"printf \\033[?1049h; sleep 0.8; echo drawn; read x"
    agent = agent_of(start(f"sh -c '{slow}'", rest=0.2), approver=Person([YES]))
    await events_of(agent, "go")
    assert "drawn" in results(agent)[0]


async def test_its_end_is_recorded_with_the_last_screen(agent_of: Ends) -> None:
    agent = agent_of(start("echo hello; exit 3"), approver=Person([YES]))
    shown: list[Fact] = []
    agent.watch(shown.append)
    shown += await events_of(agent, "go")
    await agent.close()
    (ended,) = (one for one in shown if isinstance(one, JobFinished))
    assert (ended.exit_code, ended.text) == (3, "hello")
    first, *events = map(json.loads, Path(ended.path).read_text().splitlines())
    assert (first["version"], first["width"], first["height"]) == (2, 80, 24)
    assert ["o", "hello\r\n"] in [event[1:] for event in events]


async def test_no_more_terminals_than_allowed(agent_of: Ends) -> None:
    agent = agent_of(start(CAT), start(CAT), start(CAT), approver=Person([YES, YES, YES]))
    await events_of(agent, "go")
    assert "2 terminals run, which is the limit: job-1, job-2." in results(agent)[2]


async def test_switched_on_later_the_tool_joins_without_a_new_frame(tmp_path: Path) -> None:
    home = folders({"HOLDFAST_HOME": str(tmp_path / "home")})
    session = Session.create(tmp_path, folders=home, clock=SystemClock())
    assert session.path is not None
    before = make_agent(tmp_path, ScriptedProvider(say("ok")), session=session)
    await events_of(before, "go")
    await before.close()
    session = Session.open(session.path, clock=SystemClock())
    tools = builtin_tools() | {"terminal": TerminalTool(2)}
    provider = ScriptedProvider(say("ok"))
    after = make_agent(tmp_path, provider, session=session, tools=tools)
    await events_of(after, "go on")
    types = [record.type for record in after.session.records]
    assert types.count("frame") == 1
    assert "break" not in types
    assert "terminal" not in {tool["name"] for tool in provider.requests[0].tools}
    await after.close()


@pytest.fixture(params=["bubblewrap", "launcher"])
async def confinement(request: pytest.FixtureRequest, tmp_path: Path) -> Confinement:
    made = Confinement(
        SandboxSettings(engine=request.param),
        Workspace.at(tmp_path / "work", ceiling="/"),
        tmp_path / "state" / "session",
        tmp_path / "state" / "cache",
    )
    if not await made.levels():
        pytest.skip(made.reason)
    return made


async def test_a_confined_terminal_has_its_walls_and_a_yes_covers_it_for_the_session(
    agent_of: Ends, confinement: Confinement, tmp_path: Path
) -> None:
    person = Person([Answer("session"), Answer("no")])
    outside = tmp_path / "outside"
    agent = agent_of(
        start("bash --norc -i", until=["# ", "$ "]),
        send(f"touch {outside} in; echo d''one", "enter", until=["done"]),
        send("read -s x </dev/tty", "enter"),
        send("", "ctrl+c", until=["# ", "$ "]),
        send("sleep 60", "enter", rest=0.2),
        send("git push", "enter"),
        send("", "ctrl+c", until=["# ", "$ "]),
        approver=person,
        confinement=confinement,
    )
    await events_of(agent, "go")
    assert [call.command for call, _ in person.asked[1:]] == ["git push"]  # typed ahead
    assert (tmp_path / "work" / "in").exists()
    assert not outside.exists()
    _, _, secret, _, _, _, interrupted = results(agent)
    assert "waits for a secret" in secret
    assert "running bash" in interrupted


async def test_one_yes_to_a_confined_terminal_is_none_to_its_input(
    agent_of: Ends, confinement: Confinement
) -> None:
    person = Person([YES, YES, Answer("session")])
    agent = agent_of(
        start(CAT), send("a", "enter"), send("b", "enter"), send("c", "enter"),
        approver=person, confinement=confinement,
    )  # fmt: skip
    await events_of(agent, "go")
    assert [call.subject for call, _ in person.asked[1:]] == ["job-1 ← a⏎", "job-1 ← b⏎"]
    assert person.asked[0][1].reason.endswith("A single yes doesn't cover its input.")
    why = "job-1 can change files in the workspace, so each input asks until you allow all"
    assert person.asked[1][1].reason.startswith(why)
    assert "c\nc" in results(agent)[-1]


@pytest.mark.parametrize("was", ["elevated", "accept_edits"])
async def test_the_mode_in_which_a_terminal_was_started_ends_for_its_input(
    agent_of: Ends, confinement: Confinement, was: str
) -> None:
    person = Person([Answer("no")])
    agent = agent_of(
        start(CAT), send("a", "enter"), say("so far"), send("b", "enter"),
        approver=person, confinement=confinement,
        mode="accept_edits" if was == "accept_edits" else "ask",
    )  # fmt: skip
    await events_of(agent, "/elevated on go" if was == "elevated" else "go")
    assert not person.asked
    agent.permissions.mode = "ask"
    await events_of(agent, "/elevated off go on" if was == "elevated" else "go on")
    ((asked, decision),) = person.asked
    assert asked.subject == "job-1 ← b⏎"
    has = "has network" if was == "elevated" else "can change files in the workspace"
    why = f"job-1 {has}, so each input asks until you allow all of it for this session."
    assert decision.reason == why
    assert "a\na" in results(agent)[1]
    assert results(agent)[2].startswith("Declined by the user")


@pytest.mark.parametrize(("word", "asks"), [("network", 0), ("", 1)])
async def test_a_rule_covers_the_input_of_what_it_lets_start_with_those_walls(
    agent_of: Ends, confinement: Confinement, word: str, asks: int
) -> None:
    """What began while elevated has network."""
    person = Person([Answer("no")])
    agent = agent_of(
        start("cat"), say("so far"), send("b", "enter"),
        approver=person, confinement=confinement,
        policy=Policy.of(allow=[f"terminal(cat) {word}".strip()]),
    )  # fmt: skip
    await events_of(agent, "/elevated on go")
    await events_of(agent, "/elevated off go on")
    assert len(person.asked) == asks
