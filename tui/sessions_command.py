"""`holdfast sessions …`: look at sessions from the shell. Changes nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from tui import launch
from tui.agent.assemble import make_agent
from tui.arguments import Options
from tui.clock import SystemClock
from tui.context import view
from tui.errors import UsageError
from tui.messages import text_of
from tui.paths import folders
from tui.permissions.gate import RulesOnly
from tui.session import catalog
from tui.session.records import Finding
from tui.session.session import Session


def run(options: Options) -> int:
    """Carry out one action. Returns the exit code; raises SessionError or UsageError."""
    match options.action:
        case "list":
            return _list(options)
        case "show":
            return _show(options)
        case "check":
            return _check(options)
        case "view":
            return _view(options)
        case action:
            raise UsageError(
                f"`holdfast sessions {action}` is not part of this version.",
                hint="What works: list, show, check, view.",
            )


def _list(options: Options) -> int:
    where = None if options.all else launch.workspace_of(options)
    entries = catalog.entries(folders(), where)
    if options.json:
        return _print_json([entry.to_json() for entry in entries])
    for entry in entries:
        title = entry.title or "(nothing asked)"
        flag = "" if entry.state == "ok" else f"  [{entry.state}]"
        when = entry.updated[:16].replace("T", " ")
        _print(f"{entry.id}  {when}  {entry.messages:>4} messages  {title}{flag}")
    if not entries:
        _note("No sessions here yet." if where else "No sessions yet.")
    return 0


def _show(options: Options) -> int:
    session = _open(options)
    shown = view.build(session.records, model=session.model)
    if options.json:
        return _print_json(
            {"id": session.id, "path": str(session.path), "messages": shown.messages}
        )
    _print(f"# {session.title or session.id}")
    for message in shown.messages:
        for block in message["content"]:
            _print(f"\n[{message['role']}] {_block_text(block)}")
    return 0


def _check(options: Options) -> int:
    session = _open(options)
    findings = (*session.findings, *_view_of(session).findings)
    if options.json:
        _print_json(
            {
                "records": len(session.records),
                "messages": len(_view_of(session).messages),
                "valid": not findings,
                "findings": [finding.to_json() for finding in findings],
            }
        )
    else:
        _print_findings(findings)
    return 1 if findings else 0


def _view(options: Options) -> int:
    """The exact request that the next prompt would send, less the prompt."""
    session = _open(options)
    agent = make_agent(launch.prepare(options), session, RulesOnly())
    sent = agent.next_request(prompt_follows=True)
    return _print_json(
        {
            "model": sent.model,
            "max_tokens": sent.max_tokens,
            "system": sent.system,
            "messages": sent.messages,
            "tools": sent.tools,
            "thinking": sent.thinking,
            "ledger": [
                {"item": name, "kind": name, "tokens": count, "state": "full"}
                for name, count in agent.parts.items()
            ],
        }
    )


def _open(options: Options) -> Session:
    if not options.target:
        raise UsageError("Which session?", hint="`holdfast sessions list` shows their ids.")
    return Session.open(catalog.resolve(options.target, folders()), clock=SystemClock())


def _view_of(session: Session) -> view.View:
    return view.build(session.records, model=session.model, prompt_follows=True)


def _block_text(block: dict[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return str(block.get("text"))
        case "tool_use":
            return f"{block.get('name')} {json.dumps(block.get('input'), ensure_ascii=False)}"
        case "tool_result":
            return "result: " + text_of(block.get("content") or "")
        case kind:
            return f"({kind})"


def _print_findings(findings: Sequence[Finding]) -> None:
    for finding in findings:
        _print(f"{finding.code}  {finding.where}: {finding.action}")
    if not findings:
        _note("Nothing to repair.")


def _print_json(value: object) -> int:
    _print(json.dumps(value, ensure_ascii=True, indent=2))
    return 0


def _print(text: str) -> None:
    sys.stdout.write(text.encode("utf-8", "replace").decode() + "\n")


def _note(text: str) -> None:
    sys.stderr.write(text + "\n")
