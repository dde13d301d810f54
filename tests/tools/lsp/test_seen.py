"""What is said after edits where real servers answer: each recording in `seen` is played to our
client, with the delays that were seen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.tools.lsp.checking import checkers_of
from tests.tools.lsp.replay import Timeline, at_most, played
from tests.tools.lsp.seen.scenarios import SCENARIOS, SEEN, UNFIT, Scenario, Step
from tui.core.config import CheckerSettings, DiagnosticSettings
from tui.tools.lsp import Checkers, FileEdit, Problem

THINKS_S = 2.0
"""Seconds that a model takes between two edits."""
LACKING = {
    "pylsp-alone": "pylsp can't check your files: it doesn't find any problems: its linters (such",
    "bash-alone": "bash can't check your files: it doesn't find any problems: shellcheck isn't",
    "typescript-7": "typescript can't check your files: Request initialize failed with message: C",
    "rust-analyzer-alone": "rust-analyzer says: rust-analyzer failed to load workspace: Failed to",
}
WAIT_S = DiagnosticSettings().wait_s


async def edit(checkers: Checkers, clock: Timeline, root: Path, step: Step) -> list[Problem]:
    """What is said with the result of one edit."""
    path = root / step.file
    before = path.read_text()
    path.write_text(step.text)
    began = clock.elapsed
    await at_most(WAIT_S, clock, checkers.begin([FileEdit(path, before, step.text)]))
    assert clock.elapsed - began <= WAIT_S + 1e-6
    return checkers.take(root.rglob("*.*"))


def lay(root: Path, scenario: Scenario) -> None:
    for name, text in scenario.files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def server_of(name: str, scenario: Scenario, root: Path, clock: Timeline) -> Checkers:
    words = ("/bin/true", *scenario.words.split()[1:])
    settings = CheckerSettings(command=words, files=scenario.globs)
    return checkers_of(root, DiagnosticSettings(checkers={name: settings}), clock=clock)


def lines(said: Sequence[Problem]) -> set[str]:
    return {f"{one.path}:{one.line}" for one in said}


@pytest.mark.parametrize("name", SCENARIOS)
async def test_all_that_an_edit_broke_is_said_and_nothing_else(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, clock = SCENARIOS[name], Timeline()
    lay(tmp_path, scenario)
    checkers = server_of(name, scenario, tmp_path, clock)

    found: list[set[str]] = []

    async def session() -> None:
        for step in scenario.steps:
            soon = await edit(checkers, clock, tmp_path, step)
            await clock.sleep(THINKS_S)
            await checkers.finish(60)
            late = checkers.take(tmp_path.rglob("*.*"))
            found.append(lines([*soon, *late]))
        await checkers.close()

    with played(SEEN / f"{name}.jsonl", tmp_path, clock, monkeypatch):
        await clock.run(session())
    assert checkers.take_complaints() == []
    for step, said in zip(scenario.steps, found, strict=True):
        assert set(step.breaks) <= said, step
        assert said <= {*step.breaks, *step.may}, step


@pytest.mark.parametrize("name", UNFIT)
async def test_a_server_that_lacks_something_says_so_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, clock = UNFIT[name], Timeline()
    lay(tmp_path, scenario)
    known = name.removesuffix("-alone").removesuffix("-7")
    checkers = server_of(known, scenario, tmp_path, clock)

    async def session() -> list[Problem]:
        found: list[Problem] = []
        for step in scenario.steps[:3]:
            found += await edit(checkers, clock, tmp_path, step)
            await checkers.finish(60)
        await checkers.close()
        return found

    with played(SEEN / f"{name}.jsonl", tmp_path, clock, monkeypatch):
        assert await clock.run(session()) == []
    (complaint,) = checkers.take_complaints()
    assert complaint.startswith(LACKING[name])


@pytest.mark.parametrize("name", ["ruff", "ty", "pylsp", "typescript", "clangd", "gopls", "bash"])
async def test_edits_that_follow_each_other_at_once_are_told_as_the_last_one_is(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each edit is followed by the next one before its list can be whole."""
    scenario, clock = SCENARIOS[name], Timeline()
    lay(tmp_path, scenario)
    checkers = server_of(name, scenario, tmp_path, clock)
    one_file = [step for step in scenario.steps if step.file == scenario.steps[0].file]
    first, broken, *_ = one_file

    async def session() -> tuple[set[str], set[str]]:
        await edit(checkers, clock, tmp_path, first)
        await clock.sleep(0.01)
        soon = await edit(checkers, clock, tmp_path, broken)
        await checkers.finish(120)
        everything = checkers.take(tmp_path.rglob("*.*"))
        again = checkers.take(tmp_path.rglob("*.*"))
        await checkers.close()
        return lines([*soon, *everything]), lines(again)

    with played(SEEN / f"{name}.jsonl", tmp_path, clock, monkeypatch):
        said, again = await clock.run(session())
    assert set(broken.breaks) <= said <= {*broken.breaks, *broken.may}
    assert again == set()
