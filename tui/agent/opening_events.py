"""What is told of a session before its first turn."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from tui.agent import events
from tui.agent.deferred_retry import parked_in
from tui.agent.directives import Directives
from tui.agent.events import Event
from tui.agent.inside import Inside
from tui.agent.interrupted_work import new_findings
from tui.agent.parts import Parts


async def first_events(parts: Parts, inside: Inside) -> list[Event]:
    """The events that stand before the first turn; what they say of the session is put in force."""
    session, switches = parts.session, inside.switches
    path = str(session.path) if session.path else None
    model, root = inside.preparing.model.id, str(parts.workspace.root)
    found: list[Event] = [events.SessionStarted(session.id, path, model, root, session.resumed)]
    if files := [asdict(one) for one in parts.injected]:
        found.append(events.ContextFiles(tuple(files)))
    seen = await asyncio.to_thread(inside.preparing.look)  # keys are answered meanwhile
    inside.pruning.begin(seen)
    if findings := new_findings(session.records, (*session.findings, *seen.findings)):
        told = [finding.to_json() for finding in findings]
        found.append(events.RepairApplied(tuple(told)))
        session.with_next_prompt("repair", findings=told)
    inside.settings.verbose = switches.now.verbose
    if parts.switches:
        switches.apply(parts.switches)
        await inside.recorder.sync()
    if switches.now != Directives():
        found.append(events.DirectivesChanged(**switches.now.to_json()))
    if switches.was_elevated and not switches.now.elevated:
        found.append(
            events.Notice("This session was elevated. Send /elevated to switch it on again.")
        )
    found.extend(map(events.Notice, parts.notices))
    found.extend(inside.preparing.measured())
    if parked := parked_in(session.records):
        found.append(parked)
    return found
