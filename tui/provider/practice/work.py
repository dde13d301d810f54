"""How each step is done: a generator that says things, asks for calls, and reads their results.

A generator starts from the beginning at every request and is handed the results that are in the
messages already, so it must ask for the same calls again when it sees the same results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tui.provider.practice import looking, results, words, writing
from tui.provider.practice.asking import SHOWN, Work, ask, first_line, say
from tui.provider.practice.dialogue import Outcome
from tui.provider.practice.steps import (
    Append,
    Change,
    Create,
    Find,
    FixTests,
    Job,
    ListFolder,
    Mark,
    Plan,
    Read,
    Run,
    Search,
    Step,
    Talk,
    Think,
    Unknown,
    code,
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a step may know beside its words: the tools and the task list."""

    tools: frozenset[str]
    todos: Sequence[dict[str, str]] = ()


def perform(step: Step, around: Surroundings) -> Work:  # noqa: C901, PLR0912 - one case a step
    """The work of a step. Yields text to say, or calls; is sent the calls' outcomes."""
    match step:
        case Read():
            return looking.read(step)
        case Search():
            return looking.search(step)
        case Find():
            return looking.find(step)
        case ListFolder():
            return looking.list_folder(step)
        case Run():
            return _run(step)
        case Job():
            return _job(step)
        case Create():
            return writing.create(step)
        case Change():
            return writing.change(step)
        case Append():
            return writing.append(step)
        case Plan():
            return _plan(step)
        case Mark():
            return _mark(step, around)
        case FixTests():
            return _fix_tests()
        case Unknown():
            return _unknown(step, around)
        case Think(topic):
            return say(words.THOUGHT.format(topic=code(topic)))
        case Talk(kind):
            return say(words.talk(kind, around.tools))


def _run(step: Run) -> Work:
    back = " in the background" if step.background else ""
    yield f"I'll run {code(step.command)}{back}."
    outcome = yield from ask(
        "run_command", command=step.command, background=True if step.background else None
    )
    if step.background and not outcome.is_error:
        job = results.job_id(outcome.text)
        yield (
            f"It runs in the background as **{job}**. Say `check {job}`, `wait for {job}` or "
            f"`stop {job}`."
        )
    else:
        yield _about_run(step.command, outcome)


def _about_run(command: str, outcome: Outcome) -> str:
    ran = results.ran(outcome.text)
    if not outcome.known:
        return f"{code(command)} has run; what it printed is no longer in front of me."
    ended = f" ({ran.words}, {ran.seconds} s)" if ran.seconds else ""
    verdict = "**failed**" if outcome.is_error else "succeeded"
    lines = [line for line in ran.output.splitlines() if line.strip()]
    if not lines or lines == ["(no output)"]:
        return f"{code(command)} {verdict}{ended} and printed nothing."
    return f"{code(command)} {verdict}{ended}. It printed:\n\n{results.fence(lines, tail=True)}"


def _job(step: Job) -> Work:
    outcome = yield from ask("command_status", job=step.job, action=step.action)
    lines = [line for line in outcome.text.splitlines() if line.strip()]
    yield f"This is how it stands:\n\n{results.fence(lines, tail=True)}"


def _plan(step: Plan) -> Work:
    todos = [{"text": item, "status": "pending"} for item in step.items]
    outcome = yield from ask("todo_write", todos=todos)
    if outcome.is_error:
        yield f"The plan was not taken: {first_line(outcome)}"
        return
    items = "\n".join(f"{n}. {item}" for n, item in enumerate(step.items, 1))
    yield f"Noted, {len(step.items)} to do:\n\n{items}\n\nSay `mark 1 done` as you get on."


def _mark(step: Mark, around: Surroundings) -> Work:
    if not 1 <= step.number <= len(around.todos):
        yield f"There is no item {step.number}; the plan has {len(around.todos)}."
        return
    todos = [dict(todo) for todo in around.todos]
    todos[step.number - 1]["status"] = step.status
    outcome = yield from ask("todo_write", todos=todos)
    if outcome.is_error:
        yield f"The plan was not changed: {first_line(outcome)}"
        return
    done = sum(todo.get("status") == "completed" for todo in todos)
    item, status = code(str(todos[step.number - 1].get("text"))), step.status.replace("_", " ")
    yield f"{item} is {status} now; {done} of {len(todos)} are done."


def _fix_tests() -> Work:
    command = "pytest -q"
    yield f"First I run {code(command)} to see what fails."
    outcome = yield from ask("run_command", command=command)
    ran = results.ran(outcome.text)
    failed = results.failed_tests(ran.output)
    if not outcome.is_error:
        yield f"Nothing to fix: {_about_run(command, outcome)}"
        return
    if not failed:
        yield _about_run(command, outcome) + "\n\nI see no failing test named there."
        return
    first = failed[0]
    lines = results.trace_lines(ran.output, first.path)
    offset = max(1, lines[0] - 8) if lines else 1
    yield f"{len(failed)} failed. I read where it happens, in {code(first.path)}."
    source = yield from ask("read_file", path=first.path, offset=offset, limit=16)
    listed = [
        f"- `{t.path}`"
        + (f" {code(t.name)}" if t.name else "")
        + (f": {t.reason}" if t.reason else "")
        for t in failed[:SHOWN]
    ]
    said = [line for line in ran.output.splitlines() if line.startswith("E  ")]
    text = "What fails:\n\n" + "\n".join(listed)
    if said:
        text += f"\n\nWhat pytest says:\n\n{results.fence(said)}"
    if not source.is_error and source.known:
        shown = results.page(source.text).lines
        text += f"\n\n`{first.path}` from line {offset}:\n\n{results.fence(shown, 'python')}"
    yield (
        f"{text}\n\nFinding the repair takes a real model; I only go by rules. Tell me the change, "
        "say `change A to B in FILE and then run pytest -q`, and I make it."
    )


def _unknown(step: Unknown, around: Surroundings) -> Work:
    names: list[str] = []
    if "list_dir" in around.tools:
        yield "I'll look around before I answer."
        outcome = yield from ask("list_dir", path=".")
        names = [] if outcome.is_error else results.entries(outcome.text)
    yield words.did_not_understand(step.text, names, around.tools)
