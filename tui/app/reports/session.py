"""/status and /diff: a session as it is now, and the files that it changed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tui.agent.launch import PRACTICE
from tui.app.reports import Row
from tui.app.workspace_diff import diff_text
from tui.context.file_changes import changes
from tui.context.workspace_changes import WorkspaceChanges, changed_since
from tui.core.facts import DEFAULT_PROFILE
from tui.core.formatting import money, plural, tokens
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line
from tui.permissions.types import MODE_NAMES
from tui.session.checkpoints.entries import CheckpointError
from tui.session.records import CHECKPOINT

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.app.conversation import Conversation
    from tui.app.frontend import Level
    from tui.core.config import Config


def status_rows(agent: Agent, workspace: Path, config: Config) -> Iterator[Row]:
    """Yield the rows of every front end; cache and cost once something was answered. `config` says
    if a cloud serves the models."""
    session, spending = agent.session, agent.spending()
    yield Row("session", (session.id,))
    yield Row("file", (shorten(session.path) if session.path else "none, kept in memory only",))
    yield Row("folder", (shorten(workspace),))
    yield Row("model", (agent.models.current, f"window {tokens(agent.models.window)}"))
    if agent.models.fallbacks:
        yield Row("fallbacks", tuple(map(one_line, agent.models.fallbacks)))
    if agent.models.profile:
        yield Row("profile", (one_line(agent.models.profile),))
    if config.provider.kind != "anthropic" and agent.models.server != PRACTICE:
        from tui.core.clouds import access_of  # noqa: PLC0415 - few have one

        if cloud := access_of(config, os.environ):
            yield Row("server", (str(cloud), cloud.identity))
    yield Row("mode", (MODE_NAMES[agent.permissions.mode],))
    if agent.models.effort != agent.models.own_effort:
        yield Row("effort", (agent.models.effort,))
    if (share := spending.last.cache_share) is not None:
        yield Row("cache", (f"{floor(100 * share)} % of the last request",))
        paid = ", ".join(_paid_by(agent))
        yield Row("cost", (money(spending.session.usd) + (f" ({paid})" if paid else ""),))
    if states := checker_states(agent):
        yield Row("checks", (states,))
    if agent.spans is not None:
        done, where = agent.spans.figures, agent.spans.collector
        refused = (f"{done.dropped:,} refused",) if done.dropped else ()
        problem = (done.problem,) if done.problem else ()
        yield Row("spans", (f"{done.sent:,} sent to {where}", *refused, *problem))


def _paid_by(agent: Agent) -> Iterator[str]:
    """Yield what each profile paid, where several did."""
    every = (*agent.session.elsewhere, *agent.session.records)
    from tui.context.usage import Amount, bills_of  # noqa: PLC0415 - on demand

    prices, paid = agent.models.prices, dict[str, Amount]()
    for bill in (bill for record in every for bill in bills_of(record)):
        paid.setdefault(bill.profile, Amount()).add(Amount.of(bill, bill.price(prices)))
    if len(paid) > 1:
        for payer, amount in paid.items():
            unknown = " + ?" if amount.unpriced else ""
            yield f"{one_line(payer or DEFAULT_PROFILE)} {money(amount.usd)}{unknown}"


class Copied(NamedTuple):
    """A text to copy, "" for none, and what to say."""

    text: str
    said: str
    level: Level = "success"
    hint: str = ""


def copied(number: str, answer: str, code: Sequence[str]) -> Copied:
    """Choose what /copy takes: the last answer, or by a number one of the code blocks."""
    if not number:
        if not answer:
            return Copied("", "No answer to copy yet.", "info")
        return Copied(answer, f"Copied last answer ({plural(len(answer), 'character')}).")
    if not code:
        return Copied("", "No code block to copy yet.", "info")
    if number.isdecimal() and 0 < int(number[:9]) <= len(code):
        text = code[int(number[:9]) - 1]
        lines = plural(text.count("\n") + 1, "line")
        return Copied(text, f"Copied code block {int(number[:9])} ({lines}).")
    numbers = "1" if len(code) == 1 else f"1 to {len(code)}"
    return Copied("", f"No code block {number} here.", "warning", f"/copy {numbers}")


def checker_states(agent: Agent) -> str:
    """The language servers and linters of the session and their state; "" before the first
    edit that one could check."""
    return ", ".join(
        f"{one.name} {one.state}" + (f" ({one_line(one.detail)})" if one.detail else "")
        for one in agent.checkers
    )


async def session_diff(conversation: Conversation) -> tuple[int, str] | None:
    """Return the number of files that the session changed, by its tools and its commands, and one
    unified diff of them all, from before the session to their present state; a message where there
    are none."""
    agent = conversation.agent
    now = await agent.checkpoints.now() if agent and agent.checkpoints else ""
    changes = await asyncio.to_thread(_since_start, agent, now) if agent else None
    if agent is None or changes is None or not changes.own_files:
        hint = "" if now else "(Changes made by commands aren't known: there are no checkpoints.)"
        conversation.frontend.say("No files changed in this session.", hint=hint)
        return None
    text = await asyncio.to_thread(_diff_text, agent, changes, conversation.services.workspace)
    return len(changes.own_files), text


def diff_until(agent: Agent, record: str, root: Path) -> tuple[int, str] | str:
    """Return the number of files that the session had changed by a record, and a unified diff of
    them; a sentence where that isn't known. Blocks."""
    records = list(agent.session.records)
    end = next((n for n, one in enumerate(records, 1) if one.id == record), 0)
    before = records[:end]
    first = next((n for n, one in enumerate(before) if one.type == "user"), None)
    taken = [one for one in before if one.type == CHECKPOINT]
    if first is None or not taken or agent.checkpoints is None:
        return "No checkpoint of the files was taken by then."
    store = agent.checkpoints.store()
    try:
        at = str(taken[-1].data.get("checkpoint"))
        found = changed_since(before, first, at, store.difference)
        text = diff_text(found, root, store.content)
    except CheckpointError as error:
        return error.message
    return (len(found.own_files), text) if text else "No files had changed by then."


def _since_start(agent: Agent, now: str) -> WorkspaceChanges:
    records = list(agent.session.records)
    written = WorkspaceChanges(known=False, beside=tuple(changes(records)))
    first = next((n for n, record in enumerate(records) if record.type == "user"), None)
    if agent.checkpoints is None or not now or first is None:
        return written
    try:
        return changed_since(records, first, now, agent.checkpoints.store().difference)
    except CheckpointError:
        return written


def _diff_text(agent: Agent, found: WorkspaceChanges, root: Path) -> str:
    content = agent.checkpoints.store().content if agent.checkpoints else _no_content
    return diff_text(found, root, content)


def _no_content(digest: bytes) -> bytes:
    raise CheckpointError(f"There is no copy of {digest.hex()}.")
