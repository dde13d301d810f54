"""The state of a replay: `replay.json` in its folder, replaced whole after each step.

How far each prompt's turn is stands in the state of the run beside it, as in any run of tasks.
"""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from tui.core.errors import StorageError, UsageError, os_error_as
from tui.core.files import read_small, replace_file

Verdict: TypeAlias = Literal["", "solved", "unsolved", "failed", "left out"]
"""`failed`: the turn did not come to its end; `left out`: the checks say nothing about the case.
"" is a case that is still to be done."""

_MAX: Final = 64_000_000
_FILE: Final = "replay.json"


class Figures(msgspec.Struct, frozen=True):
    """The cost of a turn. `calls` are those of tools, `requests` those to the model; `cost_usd` is
    None where a price isn't known, `seconds` where the time isn't."""

    calls: int = 0
    requests: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    seconds: float | None = None


class CheckResult(msgspec.Struct, frozen=True):
    """A check that ran. `exit_code` is None where it was stopped for taking too long; `output` is
    the end of what it wrote."""

    command: str
    exit_code: int | None
    seconds: float
    output: str = ""


class CaseState(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a case. `session` and `prompt` are those of the record, `session_id` is the
    session that the replay made, `folder` where it worked. `reason` says in a sentence why a case
    is not solved. `cut_off` has the figures of attempts that a kill or a stop ended, and that began
    again, by their sessions."""

    name: str
    session: str
    prompt: str
    run: int = 1
    verdict: Verdict = ""
    reason: str = ""
    session_id: str = ""
    folder: str = ""
    then: Figures = Figures()
    now: Figures = Figures()
    cut_off: dict[str, Figures] = {}
    checks: tuple[CheckResult, ...] = ()


class Variation(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between a replay and what was recorded; texts are whole. `model` is the one
    that is asked."""

    model: str
    effort: str = ""
    system_prompt: str = ""
    append_system_prompt: str = ""
    agents_md: str | None = None

    @property
    def words(self) -> str:
        """For the person."""
        parts = [
            self.model,
            f"effort {self.effort}" if self.effort else "",
            "own system prompt" if self.system_prompt else "",
            "added system prompt" if self.append_system_prompt else "",
            "" if self.agents_md is None else "own AGENTS.md",
        ]
        return ", ".join(filter(None, parts))


class ReplayState(msgspec.Struct, frozen=True, kw_only=True):
    """A replay of one suite, whose contents have this `sha256`. The cases are those of the suite,
    once for each of its `runs`."""

    suite: str
    sha256: str
    started_at: str
    variation: Variation
    cases: tuple[CaseState, ...]
    runs: int = 1

    @property
    def is_over(self) -> bool:
        """True if there is a verdict on each case."""
        return all(case.verdict for case in self.cases)

    def label(self, index: int) -> str:
        """The name of a run of a case, which no other has."""
        case = self.cases[index]
        return case.name if self.runs == 1 else f"{case.name} (run {case.run})"

    def with_case(self, index: int, **changes: Any) -> ReplayState:
        """The state with one of the cases changed."""
        cases = [*self.cases]
        cases[index] = replace(cases[index], **changes)
        return replace(self, cases=tuple(cases))


def load(folder: Path) -> ReplayState | None:
    """The state of the replay in a folder; None without one. Raises UsageError for a damaged
    one."""
    path = folder / _FILE
    try:
        data, _ = read_small(path, limit=_MAX, follow=False)
        return msgspec.json.decode(data, type=ReplayState)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(
            f"Can't read the replay in {path}: {error}.",
            hint="Move its folder away; the next replay begins from the start.",
        ) from error


def save(folder: Path, state: ReplayState) -> None:
    """Replace the state, synced. Raises StorageError; the old one then remains."""
    data = msgspec.json.format(msgspec.json.encode(state), indent=1)
    hint = f"Free up space or fix the permissions of {folder}, then run again."
    with os_error_as(StorageError, "Can't save the replay's state", hint=hint):
        replace_file(folder / _FILE, data + b"\n")


def replays_in(home: Path) -> list[tuple[Path, ReplayState]]:
    """The replays of a suite so far, each with its folder, in their order. Raises UsageError."""
    found = ((home / name, load(home / name)) for name in _names(home))
    return [(folder, state) for folder, state in found if state is not None]


def folder_for(
    home: Path, sha256: str, variation: Variation, runs: int
) -> tuple[Path, ReplayState | None]:
    """The folder below `home` for a replay, and the state of an unfinished one of the same suite
    with the same variation and as many runs, which goes on; else a new folder. Raises UsageError,
    StorageError."""
    for folder, state in reversed(replays_in(home)):
        same = (state.sha256, state.variation, state.runs) == (sha256, variation, runs)
        if same and not state.is_over:
            return folder, state
    with os_error_as(StorageError, f"Can't write to {home}"):
        if not home.exists():
            home.mkdir(parents=True)
            (home / ".gitignore").write_text("*\n")  # results are no part of a project around them
        for number in count(int((_names(home) or ["0"])[-1]) + 1):
            with suppress(FileExistsError):
                (folder := home / f"{number:03}").mkdir(mode=0o700)
                return folder, None
    raise AssertionError  # the numbers have no end


def _names(home: Path) -> list[str]:
    """The names of the folders of replays, by their numbers; none is a link, which may come with a
    suite of somebody else's. Raises UsageError where `home` is one."""
    if home.is_symlink():
        raise UsageError(
            f"{home} is a link, so the results of a replay aren't written there.",
            hint="Move it away, or copy the suite to another folder.",
        )
    try:
        with os.scandir(home) as found:
            names = [one.name for one in found if one.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(filter(str.isdecimal, names), key=int)
