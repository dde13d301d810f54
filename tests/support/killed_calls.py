"""Kills a program at every step between the intent of a call and its recorded result, and says what
the next run makes of it.

The program itself only starts them: for every line on stdin, it forks one run that is killed, then
one that recovers, both with real keepers, and answers with what was seen as a line of JSON. Forked,
not started: so hundreds of kills take seconds. By hand, from the root of the repository:

    python -m tests.support.killed_calls COUNT FOLDER
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import cycle
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from tests.support.agents import Yes, make_agent
from tests.support.dying_zygote import KILL_AT
from tests.support.kill_points import KillPoint
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.agent.prompts import parse
from tui.app.interruption import known, taken_over
from tui.context.repair import INTERRUPTED
from tui.core.clock import SystemClock
from tui.core.facts import Fact, ToolOutputChunk
from tui.core.messages import blocks_of, string_of, text_of
from tui.core.paths import folders
from tui.keeper.command import PlainStarter, command_folders, lives
from tui.keeper.parent import WarmParent
from tui.session.session import Session
from tui.tools.jobs import Jobs

KINDS = ("front", "background", "moved")
_ID = "toolu_1"
_PATIENCE_S = 30.0
_COMMANDS = {
    "front": "echo {id} >> ran; echo printed",
    "background": "echo {id} >> ran; echo printed",
    "moved": "echo {id} >> ran; echo printed; until test -e go; do sleep 0.01; done",
}


@dataclass(frozen=True, slots=True)
class Kill:
    """Where what is killed: the program before its step `at`, the keeper before its step `keeper`;
    0 for never. `torn`: the last line of the record is cut in half, as where a machine stops."""

    kind: str
    at: int = 0
    keeper: int = 0
    torn: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of a call. `ran` is how often it ran, `before` what was said of it when the
    session was opened again, `result` the text of its recorded result."""

    kill: Kill
    ran: int
    ran_before: int
    before: str
    result: str
    results: int
    left: int
    steps: int = 0

    @property
    def fault(self) -> str:
        """What may not be; "" where all is well."""
        began = " as job-" in self.result and not self.kill.keeper  # else its end says it
        succeeded = "exit code 0" in self.result or began
        if self.ran > 1:
            return "it ran twice"
        if self.results != 1:
            return f"{self.results} results"
        if succeeded and not self.ran:
            return "it is said to have run"
        if "start the command" in self.result and self.ran:
            return "it is said not to have started"
        if "never started" in self.before and self.ran_before:
            return "it is said never to have started"
        if "never started" in self.before and self.ran != 1:
            return "it never started, and did not run"
        if "result is kept" in self.before and INTERRUPTED in self.result:
            return "its result is said to be kept"
        return f"{self.left} folders are left" if self.left else ""


def play(place: Path, kill: Kill) -> Seen:
    """One run that is killed, and one that recovers."""
    shutil.rmtree(place, ignore_errors=True)
    (place / "work").mkdir(parents=True)
    steps = _forked(lambda: asyncio.run(_first(place, kill)))
    running = place / "running"
    if kill.keeper:
        _until_keepers_rest(running)
    (place / "work" / "go").touch()
    if kill.torn:
        (path,) = (place / "home").rglob("*.jsonl")
        whole = path.read_bytes()
        last = whole.rstrip(b"\n").rfind(b"\n") + 1
        path.write_bytes(whole[: last + (len(whole) - last) // 2])
    said = place / "said"
    _forked(lambda: asyncio.run(_second(place, kill, said)))
    found: dict[str, Any] = json.loads(said.read_text()) if said.exists() else {}
    _until_keepers_rest(running)
    ran = place / "work" / "ran"
    count = len(ran.read_text().splitlines()) if ran.exists() else 0
    empty: dict[str, Any] = {"before": "", "result": "", "results": 0, "ran_before": 0}
    left = len(command_folders(running))
    return Seen(kill, count, left=left, steps=steps, **{**empty, **found})


def _until_keepers_rest(running: Path) -> None:
    until = monotonic() + _PATIENCE_S
    while any(map(lives, command_folders(running))) and monotonic() < until:
        sleep(0.005)


def _forked(work: Any) -> int:
    """Run it in a fork; the steps that it counted."""
    report, theirs = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.write(theirs, json.dumps(work()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(theirs)
    status = os.waitpid(child, 0)[1]
    with os.fdopen(report, "rb") as file:
        steps = file.read()
    if os.waitstatus_to_exitcode(status) not in {0, -signal.SIGKILL}:
        raise RuntimeError("a run failed")
    return int(steps or b"0") if steps not in {b"null", b""} else 0


def _agent(place: Path, session: Session, provider: ScriptedProvider) -> tuple[Agent, PlainStarter]:
    starter = PlainStarter(WarmParent("tests.support.dying_zygote"))
    jobs = Jobs(SystemClock(), starter, session.path)
    kept = place / "running" / "session"
    agent = make_agent(
        place / "work", provider, approver=Yes(), session=session, jobs=jobs,
        kept=kept.with_name(session.id),
    )  # fmt: skip
    return agent, starter


async def _first(place: Path, kill: Kill) -> int:
    home = folders({"HOLDFAST_HOME": str(place / "home")})
    session = Session.create(place / "work", folders=home, clock=SystemClock())
    if kill.keeper:
        os.environ[KILL_AT] = str(kill.keeper)
    line = _COMMANDS[kill.kind].format(id=_ID)
    asked = call("run_command", _ID, command=line, background=kill.kind == "background")
    agent, starter = _agent(place, session, ScriptedProvider([asked], say("done")))
    point = KillPoint(kill.at)
    point.install()
    real = session.append

    def append(type_: str, **data: Any) -> Any:
        record = real(type_, **data)
        if type_ == "assistant":
            point.armed = not point.armed  # until the answer that follows its result
        return record

    session.append = append
    await agent.start()
    async for event in agent.send(parse("go")):
        if kill.kind == "moved" and _printed(event):
            agent.jobs.move_to_background()
    point.armed = False
    (place / "work" / "go").touch()
    for owned in agent.jobs.all:
        await owned.job.wait(_PATIENCE_S)
    await agent.close()
    await asyncio.to_thread(starter.close)
    return point.steps


def _printed(event: Fact) -> bool:
    return isinstance(event, ToolOutputChunk) and "printed" in event.text


async def _second(place: Path, kill: Kill, said: Path) -> None:
    os.environ.pop(KILL_AT, None)
    (path,) = [one for one in (place / "home").rglob("*.jsonl") if not one.name.startswith(".")]
    session = Session.open(path, clock=SystemClock())
    agent, starter = _agent(place, session, ScriptedProvider(*[say("done")] * 5))
    await agent.start()
    work = await asyncio.to_thread(agent.interrupted_work)
    words = [known(one) for one in work.calls]
    words += [taken_over(work)] if work.supervised else []
    ran = place / "work" / "ran"
    ran_before = len(ran.read_text().splitlines()) if ran.exists() else 0
    if any(record.type == "assistant" for record in session.records):
        async for _ in agent.go_on([one.call_id for one in work.calls]):
            pass
    for owned in agent.jobs.all:
        await owned.job.wait(_PATIENCE_S)
    await agent.close()
    await asyncio.to_thread(starter.close)
    results = [one for one in session.records if one.type == "tool_result"]
    texts = [text_of(blocks_of(one.data.get("content"))) for one in results]
    about = {"before": "; ".join(words), "result": "\n".join(texts), "results": len(results)}
    asked = any(string_of(one.data.get("call_id")) == _ID for one in results)
    if not asked and kill.torn:  # the line that was cut was the answer with the call
        about["results"] = 1
    said.write_text(json.dumps(about | {"ran_before": ran_before}))


def outcome_of(seen: Seen) -> str:
    """A few words for the table of what became of calls."""
    result = "unknown" if INTERRUPTED in seen.result else seen.result.strip().splitlines()[-1:]
    how = result if isinstance(result, str) else "".join(result)[:34].split(" · ")[0]
    said = seen.before.split(". ")[0].split("; The last")[0]
    return f"{seen.kill.kind}: {said or 'settled'} -> ran {seen.ran}x, {how}"


def main() -> None:
    if len(sys.argv) > 1:
        by_hand(int(sys.argv[1]), Path(sys.argv[2]))
        return
    for line in sys.stdin:
        given: dict[str, Any] = json.loads(line)
        seen = play(Path(given.pop("place")), Kill(**given))
        print(json.dumps({**asdict(seen), "fault": seen.fault}), flush=True)


def by_hand(count: int, place: Path) -> None:
    """So many kills, at each step in turn, and a table of what became of the calls."""
    steps = {kind: play(place, Kill(kind)).steps for kind in KINDS}
    print("steps of the program:", steps, flush=True)
    found: Counter[str] = Counter()
    faults: list[Seen] = []
    done = 0
    for at in cycle(range(1, max(steps.values()) + 1)):
        for kind in KINDS:
            if at > steps[kind]:
                continue
            round_ = done // sum(steps.values())
            kill = Kill(kind, at)
            kill = replace(kill, torn=True) if round_ == 1 else kill
            kill = Kill(kind, 0, 1 + at % 40) if round_ == 2 else kill
            kill = replace(kill, keeper=1 + done % 40) if round_ == 3 else kill
            seen = play(place, kill)
            found[outcome_of(seen)] += 1
            faults += [seen] if seen.fault else []
            if seen.fault:
                print("FAULT", seen.fault, seen, flush=True)
            done += 1
            if not done % 50:
                print(done, "kills", flush=True)
            if done >= count:
                for words, times in found.most_common():
                    print(f"{times:5} {words}")
                print(f"{done} kills, {len(faults)} faults")
                return


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        main()
