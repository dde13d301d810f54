"""Problems that language servers and linters find in edited files, for model and person.

An edit's result waits a short time for them. Later ones are reported with the next result or at the
end of the next request, and to the person at the end of the turn: nothing that was sent changes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tui.agent.agent_context import AgentContext
from tui.context.notices import problems as problems_notice
from tui.context.untrusted import wrap
from tui.core.dataclass import dataclass, field, replace
from tui.core.facts import Notice
from tui.core.formatting import plural
from tui.core.messages import ToolOutput, list_of, object_of, text_block
from tui.tools.lsp.base import FileEdit, read_text
from tui.tools.lsp.problems import Problem, problem_lines

log = logging.getLogger(__name__)

BYTES_MAX: Final = 4000
"""Bytes of problems that are reported at once."""
_NAMED: Final = 3
"""Problems that a notice names for the person."""


@dataclass(slots=True)
class EditChecks:
    """The checks of one agent's edits."""

    ctx: AgentContext
    _edited: dict[Path, None] = field(default_factory=dict[Path, None])
    """The files that it has edited, as the checkers know them."""
    _late: list[Problem] = field(default_factory=list[Problem])
    """Problems that the person has seen and the model has not."""
    _failures: list[str] = field(default_factory=list[str])
    """Failures of checkers that the model doesn't know of."""

    async def after_edit(self, output: ToolOutput) -> ToolOutput:
        """The result of a call that changed files, with the problems that are new since."""
        if self.ctx.toolbox.checkers is None or output.is_error:
            return output
        try:
            return await self._checked(output)
        except Exception:  # the edit is made, whatever becomes of this
            log.exception("couldn't check what was edited")
            return output

    async def finish(self) -> None:
        """At the end of a turn, wait a little for what is still to come; name what is not done."""
        if self.ctx.toolbox.checkers is None:
            return
        if names := await self.ctx.toolbox.checkers.finish():
            self.ctx.publish(Notice(f"Still checking the last edits: {', '.join(names)}."))

    def collect(self) -> None:
        """Tell the person of problems that came late; the model gets them with the next request."""
        if self.ctx.toolbox.checkers is None:
            return
        problems = self.ctx.toolbox.checkers.take(self._edited)
        self._complain()
        if not problems:
            return
        self._late += problems
        named = "; ".join(problem_lines(problems)[:_NAMED])
        more = f"; and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
        self.ctx.publish(Notice(f"{_counted(problems)} after the last edits: {named}{more}"))

    def take_late(self) -> dict[str, Any] | None:
        """The fields of the notice about what came late, and about checkers that failed; None where
        there is nothing."""
        self.collect()
        problems, self._late = self._late, []
        failures, self._failures = self._failures, []
        if not problems and not failures:
            return None
        return problems_notice(_wrapped(problems) if problems else "", failures)

    async def _checked(self, output: ToolOutput) -> ToolOutput:
        checkers, clock = self.ctx.toolbox.checkers, self.ctx.clock
        assert checkers is not None
        files = [one for one in _files_of(output.details) if checkers.fits(one[0])]
        edits = await asyncio.to_thread(_edits, files)
        for path, _ in files:
            if path not in {edit.path for edit in edits}:
                checkers.forget(path)
                self._edited.pop(path, None)
        if not edits:
            return output
        self._edited |= {edit.path: None for edit in edits}
        task = checkers.begin(edits)
        timer = asyncio.create_task(clock.sleep(checkers.wait_s))
        try:
            await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
        self._complain()
        return with_problems(output, checkers.take(self._edited))

    def _complain(self) -> None:
        assert self.ctx.toolbox.checkers is not None
        for text in self.ctx.toolbox.checkers.take_complaints():
            self._failures.append(text)
            self.ctx.publish(Notice(text))


def with_problems(output: ToolOutput, found: Sequence[Problem]) -> ToolOutput:
    """A result with the new problems: for the model at its end, for the person on the card and
    above the difference, which may be cut."""
    if not found:
        return output
    count, lines = _counted(found), problem_lines(found)
    return replace(
        output,
        content=[*output.content, text_block(f"{count} after this edit:\n{_wrapped(found)}")],
        summary=" · ".join(filter(None, (output.summary, count))),
        display="\n".join([f"{count}:", *lines, "", output.display]),
    )


def _counted(found: Sequence[Problem]) -> str:
    return plural(len(found), "new problem")


def _wrapped(found: Sequence[Problem]) -> str:
    """The lines of problems for the model, which others may have written in part."""
    lines, left = list[str](), BYTES_MAX
    for line in problem_lines(found):
        left -= len(line.encode()) + 1
        if left < 0:
            lines.append("…")
            break
        lines.append(line)
    sources = ", ".join(dict.fromkeys(one.source for one in found))
    return wrap("\n".join(lines), sources)


def _files_of(details: Mapping[str, Any]) -> list[tuple[Path, str | None]]:
    """The files that a call wrote, each with the copy of what it held before."""
    several = [object_of(one) for one in list_of(details.get("files"))]
    return [
        (Path(path), before if isinstance(before := one.get("before"), str) else None)
        for one in several or [details]
        if isinstance(path := one.get("path"), str)
    ]


def _edits(files: Sequence[tuple[Path, str | None]]) -> list[FileEdit]:
    """Read the files that are texts and not too large, as they were and as they are. Blocks."""
    edits: list[FileEdit] = []
    for path, copy in files:
        after = read_text(path)
        before = read_text(Path(copy)) if copy else None
        if after is not None and (before is not None or copy is None):
            edits.append(FileEdit(path, before, after))
    return edits
