"""A session as OpenTelemetry spans: `sessions export --format otlp`, and `sessions send`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress

from tui.agent import span_collector
from tui.agent.span_collector import CollectorError
from tui.app import launch_config
from tui.app.options.arguments import Options
from tui.cli.session_io import print_json, sub_agents_of
from tui.context.spans import RunningCall, SpanFold, spans_of
from tui.core.config import Config
from tui.core.errors import SessionError
from tui.core.formatting import plural
from tui.core.otlp import Span, to_json
from tui.core.standard_output import note
from tui.session import catalog
from tui.session.reader import LoadedSession, read


def as_lines(options: Options, loaded: LoadedSession) -> str:
    """Return the spans of a session as a file of OTLP in JSON: a request a line. Blocks."""
    config = launch_config.config_for(options, loaded.path)
    source = span_collector.source_of(config.otel, os.environ)
    lines = (
        to_json(some, source) for some in span_collector.batches(_spans(options, loaded, config))
    )
    return "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines)


def send(options: Options, loaded: LoadedSession) -> int:
    """Send them to the collector, and say what became of them. Returns the exit code. Blocks;
    raises CollectorError where that is off, or can't take them, ConfigError where the profile of
    the session is gone: its collector is that one's."""
    config = launch_config.config_for(options, loaded.path, strictly=True)
    if not config.otel.enabled or span_collector.switched_off(os.environ):
        raise CollectorError(
            "No collector is switched on.",
            hint="Set enabled = true in the [otel] table of your own config.toml.",
        )
    collector = span_collector.collector_of(config.otel, os.environ)
    sent = rejected = 0
    why = ""
    for some in span_collector.batches(_spans(options, loaded, config)):
        done = collector.deliver(some)
        if done.outcome != "taken":
            before = f" after {plural(sent, 'span')}" if sent else ""
            raise CollectorError(
                f"{collector.name} doesn't take the spans{before}: {done.why}.",
                hint="Run it again when the collector is back: what it has keeps its ids.",
            )
        sent += len(some) - done.rejected
        rejected, why = rejected + done.rejected, done.why or why
    if options.json:
        return print_json({"collector": collector.name, "sent": sent, "rejected": rejected})
    note(f"Sent {plural(sent, 'span')} to {collector.name}.")
    if rejected:
        note(f"It rejected {plural(rejected, 'span')}{f': {why}' if why else ''}.")
    return 1 if rejected else 0


def _spans(options: Options, loaded: LoadedSession, config: Config) -> Iterator[Span]:
    """Return the spans of all branches, or of the one that is named."""
    records = loaded.branch if options.sessions.branch else loaded.records
    return spans_of(
        loaded.header.id,
        records,
        config.prices,
        content=config.otel.content,
        sub_agents=sub_agents_of(loaded),
        within=_calls_around(loaded),
    )


def _calls_around(loaded: LoadedSession) -> Sequence[RunningCall]:
    """The calls that ran a sub-agent's session, by its parent's record."""
    if not loaded.header.parent_session:
        return ()
    with suppress(SessionError, OSError):
        parent = read(catalog.parent_of(loaded.path))
        fold = SpanFold(parent.header.id)
        for record in parent.records:
            fold.add(record)
        return fold.runs.get(loaded.header.id, ())
    return ()
