"""What the practice model can be asked to do, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Read:
    """Read files; lines count from 1."""

    paths: tuple[str, ...]
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Search:
    text: str
    path: str = "."
    regex: bool = False


@dataclass(frozen=True, slots=True)
class Find:
    pattern: str
    path: str = "."


@dataclass(frozen=True, slots=True)
class ListFolder:
    path: str = "."


@dataclass(frozen=True, slots=True)
class Run:
    command: str
    background: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """Look at, wait for or stop a background command."""

    job: str
    action: Literal["read", "wait", "stop"]


@dataclass(frozen=True, slots=True)
class Create:
    """Write a file. `overwrite`: the wording allows for a file that exists."""

    path: str
    content: str
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    old: str
    new: str
    path: str
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Append:
    text: str
    path: str


@dataclass(frozen=True, slots=True)
class Plan:
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """Set the status of the n-th item of the plan, from 1."""

    number: int
    status: Literal["pending", "in_progress", "completed"]


@dataclass(frozen=True, slots=True)
class FixTests:
    pass


@dataclass(frozen=True, slots=True)
class Think:
    topic: str


@dataclass(frozen=True, slots=True)
class Talk:
    kind: Literal["hello", "help", "who", "thanks", "stop"]


@dataclass(frozen=True, slots=True)
class Unknown:
    text: str


Step: TypeAlias = (
    Read
    | Search
    | Find
    | ListFolder
    | Run
    | Job
    | Create
    | Change
    | Append
    | Plan
    | Mark
    | FixTests
    | Think
    | Talk
    | Unknown
)


def code(text: str) -> str:
    """A short text as inline code of markdown, on one line, whatever it holds."""
    shown = " ".join(text.split())
    shown = shown if len(shown) <= 80 else shown[:79] + "…"
    if "`" not in shown:
        return f"`{shown}`" if shown else "` `"
    return f"`` {shown} ``" if "``" not in shown else "`" + shown.replace("`", "'") + "`"


def describe(step: Step) -> str:  # noqa: C901, PLR0912 - one case a step
    """A step in a few words that finish the sentence "I will …"."""
    match step:
        case Read(paths):
            return "read " + ", ".join(map(code, paths))
        case Search(text, path):
            return f"search {code(text)}" + ("" if path == "." else f" in {code(path)}")
        case Find(pattern, path):
            return f"find files {code(pattern)}" + ("" if path == "." else f" in {code(path)}")
        case ListFolder(path):
            return "list the folder" if path == "." else f"list {code(path)}"
        case Run(command, background):
            return f"run {code(command)}" + (" in the background" if background else "")
        case Job(job, action):
            return f"{'look at' if action == 'read' else action} job {code(job)}"
        case Create(path):
            return f"write {code(path)}"
        case Change(old, new, path):
            what = f"change {code(old)} to {code(new)}" if new else f"remove {code(old)}"
            return f"{what} in {code(path)}"
        case Append(_, path):
            return f"append to {code(path)}"
        case Plan(items):
            return f"note a plan of {len(items)} steps"
        case Mark(number, status):
            return f"mark step {number} as {status.replace('_', ' ')}"
        case FixTests():
            return "run the tests and read what fails"
        case Think(topic):
            return f"think about {code(topic)}"
        case Talk():
            return "answer"
        case Unknown(text):
            return f"make sense of {code(text)}"
