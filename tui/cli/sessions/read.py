"""The actions that change nothing: list, search, show, check, view; and what all actions share."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tui.agent.composition import make_agent
from tui.app import launch_config
from tui.app.options.arguments import Options
from tui.context import view
from tui.core.clock import SystemClock
from tui.core.errors import UsageError
from tui.core.images import facts, of_block
from tui.core.messages import blocks_of, text_of
from tui.core.paths import folders
from tui.permissions.gate import RulesOnly
from tui.session import catalog, importers, index
from tui.session.reader import LoadedSession, read
from tui.session.records import Finding, Record
from tui.session.session import Session, title_of

_EVERY = 500


def path_of(options: Options) -> Path:
    """The file that is meant. Raises SessionError or UsageError."""
    if not options.target:
        raise UsageError("Which session?", hint="`holdfast sessions list` shows their ids.")
    return catalog.resolve(options.target, folders())


def load(path: Path) -> LoadedSession:
    """A session of ours or of another agent, by its content. Raises SessionError.

    What lies in the folder of the sessions is ours, whatever is left of it.
    """
    home = folders().sessions.resolve()
    if home in path.resolve().parents or not path.stat().st_size:
        return read(path)
    return importers.load(path)


def model_of(loaded: LoadedSession) -> str:
    """The model that answered last, "" if none is known."""
    for record in reversed(loaded.branch):
        model = record.data.get("model")
        if record.type == "assistant" and isinstance(model, str):
            return model
    return ""


def progress(done: int, of: int) -> None:
    """Say on a terminal how far a long reading is."""
    if of >= _EVERY and sys.stderr.isatty():
        end = "\r" if done < of else "\n"
        sys.stderr.write(f"Reading sessions: {done:,} of {of:,}{end}")
        sys.stderr.flush()


def print_findings(findings: Sequence[Finding]) -> None:
    for finding in findings:
        print_(f"{finding.code}  {finding.where}: {finding.action}")
    if not findings:
        note("Nothing to repair.")


def print_json(value: object) -> int:
    print_(json.dumps(value, ensure_ascii=True, indent=2))
    return 0


def print_(text: str) -> None:
    sys.stdout.write(text.encode("utf-8", "replace").decode() + "\n")


def note(text: str) -> None:
    sys.stderr.write(text + "\n")


_MESSAGES = frozenset({"user", "assistant"})


def list_(options: Options) -> int:
    where = None if options.all else launch_config.workspace_of(options)
    entries = index.list_sessions(folders(), where, progress=progress)
    if options.json:
        return print_json([entry.to_json() for entry in entries])
    for entry in entries:
        title = entry.title or "(nothing asked)"
        flag = "" if entry.state == "ok" else f"  [{entry.state}]"
        when = entry.updated[:16].replace("T", " ")
        print_(f"{entry.id}  {when}  {entry.messages:>4} messages  {_printable(title)}{flag}")
    if not entries:
        note("No sessions here yet." if where else "No sessions yet.")
    return 0


def search(options: Options) -> int:
    if not (options.target or "").strip():
        raise UsageError("What is to be found?", hint='holdfast sessions search "some words"')
    home = folders()
    found = catalog.scan(home)
    hits = index.search(home.cache, found, options.target or "", progress=progress)
    if options.json:
        return print_json([hit.to_json() for hit in hits])
    for hit in hits:
        print_(f"{hit.id}  line {hit.line}  {hit.snippet}")
    if not hits:
        note("Nothing found.")
    elif len(hits) == index.searching.LIMIT:
        note(f"These are the first {len(hits)}; more words find fewer.")
    return 0


def show(options: Options) -> int:
    loaded = load(path_of(options))
    if options.json:
        shown = _view_of(loaded)
        return print_json(
            {"id": loaded.header.id, "path": str(loaded.path), "messages": shown.messages}
        )
    print_(f"# {_title(loaded)}")
    number = 0
    for record in loaded.branch:
        if record.type in _MESSAGES:
            number += 1
            when = record.time[:16].replace("T", " ")
            print_(f"\n[{number} {record.type}, {when}]")
            for block in blocks_of(record.data.get("content")):
                print_(_block_text(block))
        elif text := _other(record):
            print_(f"\n{text}")
    return 0


def check(options: Options) -> int:
    loaded = load(path_of(options))
    seen = _view_of(loaded)
    findings = (*loaded.findings, *seen.findings)
    if options.json:
        print_json(
            {
                "records": len(loaded.records),
                "messages": len(seen.messages),
                "valid": not findings,
                "findings": [finding.to_json() for finding in findings],
            }
        )
    else:
        print_findings(findings)
    return 1 if findings else 0


def view_(options: Options) -> int:
    """The exact request that the next prompt would send, less the prompt."""
    session = Session.of(load(path_of(options)), clock=SystemClock())
    agent = make_agent(launch_config.prepare(options), session, RulesOnly())
    sent = agent.next_request(prompt_follows=True)
    return print_json(
        {
            "model": sent.model,
            "max_tokens": sent.max_tokens,
            "system": sent.system,
            "messages": sent.messages,
            "tools": sent.tools,
            "thinking": sent.thinking,
            "ledger": [
                {"item": item.id, "kind": item.kind, "tokens": item.tokens, "state": item.state}
                for item in agent.ledger.items(images=True)
            ],
        }
    )


def _view_of(loaded: LoadedSession) -> view.View:
    return view.build(loaded.branch, model=model_of(loaded), prompt_follows=True)


def _title(loaded: LoadedSession) -> str:
    titles = (r.data.get("title") for r in reversed(loaded.branch) if r.type == "title")
    asked = (title_of(r.data) for r in loaded.branch if r.type == "user")
    return _printable(str(next(titles, "") or next(asked, "") or loaded.header.id))


def _other(record: Record) -> str:
    match record.type:
        case "tool_result":
            failed = " (failed)" if record.data.get("is_error") else ""
            return f"result{failed}: {text_of(blocks_of(record.data.get('content')))}"
        case "interrupt":
            return f"[interrupted] {record.data.get('text') or ''}".rstrip()
        case "error":
            return f"[error] {record.data.get('message') or ''}".rstrip()
        case _:
            return ""


def _block_text(block: dict[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return str(block.get("text"))
        case "tool_use":
            return f"{block.get('name')} {json.dumps(block.get('input'), ensure_ascii=False)}"
        case "image" if image := of_block(block, ""):
            return f"({image.info.media_type}, {facts(image)})"
        case kind:
            return f"({kind})"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
