"""The actions that make a file, move one, or add a title. No byte of a session is ever changed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tui.app.options.arguments import Options
from tui.cli.sessions.read import (
    load,
    note,
    path_of,
    print_,
    print_findings,
    print_json,
)
from tui.context.history import history
from tui.context.repair import repair
from tui.core.clock import SystemClock
from tui.core.errors import SessionError, UsageError
from tui.core.messages import Message
from tui.core.paths import folders
from tui.session import catalog, copies, importers
from tui.session.export import export
from tui.session.reader import LoadedSession
from tui.session.records import Finding
from tui.session.session import Session


def repair_(options: Options) -> int:
    """Write a repaired copy, and next to it a byte-identical backup of the original."""
    path = path_of(options)
    loaded = load(path)
    messages, repaired = repair(history(loaded.branch).messages, tail="open")
    findings = (*loaded.findings, *repaired)
    written = backup = None
    if not options.dry_run and (findings or options.out):
        written, backup = _write_repaired(path, loaded, messages, options.out)
    if options.json:
        return print_json(
            {
                "written": _text(written),
                "backup": _text(backup),
                "findings": [finding.to_json() for finding in findings],
            }
        )
    _print_repair(findings, written, backup)
    return 0


def import_(options: Options) -> int:
    """Take over another agent's session as one of ours."""
    path = path_of(options)
    loaded = importers.load(path)
    clock = SystemClock()
    if importers.recognise(path) == "ours":
        raise SessionError(
            f"{path} is a session of Holdfast's own.",
            hint="`holdfast -r FILE` goes on with it, `holdfast sessions fork FILE` copies it.",
        )
    made = copies.fork(loaded, folders=folders(), clock=clock, cwd=Path.cwd())
    return _made(options, made, messages=_messages(loaded), findings=_json(loaded.findings))


def export_(options: Options) -> int:
    """Print a session as a document, or write it to a file."""
    loaded = load(path_of(options))
    document = export(loaded, options.format, title=_title(loaded))
    if options.out is not None:
        copies.write_new(options.out.absolute(), document.text.encode("utf-8", "replace"))
    if options.json:
        print_json(
            {
                "written": str(options.out.absolute()) if options.out else None,
                "format": options.format,
                "secrets": document.secrets,
                **({} if options.out else {"document": document.text}),
            }
        )
    elif options.out is None:
        sys.stdout.write(document.text.encode("utf-8", "replace").decode())
    else:
        note(f"Written to {options.out}.")
    if document.secrets:
        note(f"{document.secrets} {'secret' if document.secrets == 1 else 'secrets'} removed.")
    return 0


def fork(options: Options) -> int:
    loaded = load(path_of(options))
    made = copies.fork(
        loaded, folders=folders(), clock=SystemClock(), at=options.at or "", cwd=Path.cwd()
    )
    return _made(options, made)


def rename(options: Options) -> int:
    """Add a title to the record."""
    title = " ".join((options.title or "").split())
    if not title:
        raise UsageError("What is the title?", hint='holdfast sessions rename ID "a title"')
    path = path_of(options)
    catalog.check_ours(path, folders())
    session = Session.open(path, clock=SystemClock())

    async def add() -> None:
        session.append("title", title=title)
        await session.close()

    asyncio.run(add())
    if options.json:
        return print_json({"id": session.id, "path": str(path), "title": title})
    return 0


def delete(options: Options) -> int:
    path = path_of(options)
    moved = copies.delete(path, folders=folders(), clock=SystemClock())
    if options.json:
        return print_json({"id": catalog.id_of(path), "path": str(moved)})
    note(f"Moved to {moved}.")
    return 0


def _write_repaired(
    path: Path, loaded: LoadedSession, messages: list[Message], out: Path | None
) -> tuple[Path, Path]:
    clock = SystemClock()
    header = copies.header_of(loaded, clock=clock)
    name = f"{clock.now():%Y%m%dT%H%M%SZ}-{header.id}.jsonl"
    written = out.absolute() if out else path.absolute().with_name(name)
    return written, copies.write_repaired(loaded, header, messages, written)


def _print_repair(findings: tuple[Finding, ...], written: Path | None, backup: Path | None) -> None:
    print_findings(findings)
    if written:
        print_(str(written))
        note(f"The original is unchanged; a copy of it is {backup}.")


def _made(options: Options, path: Path, **more: object) -> int:
    id_ = catalog.id_of(path)
    if options.json:
        return print_json({"id": id_, "path": str(path), **more})
    print_(id_)
    note(f"Go on with: holdfast -r {id_}")
    return 0


def _messages(loaded: LoadedSession) -> int:
    return sum(record.type in {"user", "assistant"} for record in loaded.branch)


def _json(findings: tuple[Finding, ...]) -> list[dict[str, str]]:
    return [finding.to_json() for finding in findings]


def _text(path: Path | None) -> str | None:
    return str(path) if path else None


def _title(loaded: LoadedSession) -> str:
    return Session.of(loaded, clock=SystemClock()).title
