"""`holdfast sessions …`: show sessions in the shell, and make copies of them.

No byte of a session is ever changed: an action makes a file, moves one, or adds a title.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

from tui.app.options.arguments import Options
from tui.app.session_path import workspace_of
from tui.cli.session_io import (
    file_of,
    load,
    loaded_branch,
    new_file_of,
    path_of,
    print_json,
    reading_progress,
    sub_agents_of,
)
from tui.context import view
from tui.context.history import history
from tui.context.repair import repair
from tui.core.clock import SystemClock
from tui.core.errors import SessionError, UsageError
from tui.core.formatting import plural
from tui.core.images import facts, of_block
from tui.core.messages import blocks_of, text_of
from tui.core.paths import folders, shorten
from tui.core.standard_output import note, print_data, print_text
from tui.core.text_cleaning import clean
from tui.core.two_processes import in_fork
from tui.core.workspace import worktree_of
from tui.session import catalog, chain_check, copies, importers, index
from tui.session.export import Exported, export
from tui.session.reader import LoadedSession
from tui.session.records import LEFT_OUT, Finding, Record, is_prompt
from tui.session.session import Session

_Action: TypeAlias = Callable[[Options], int]
_MESSAGES = frozenset({"user", "assistant"})
_LARGE = 4_000_000
"""Bytes of a session from which a second process checks it while this one reads it."""

# Actions that change nothing


def list_(options: Options) -> int:
    where = None if options.sessions.all else workspace_of(options)
    entries = index.list_sessions(folders(), where, progress=reading_progress)
    below: dict[str, list[catalog.SessionSummary]] = {}
    if options.sessions.sub_agents:
        children = catalog.scan_children(folders(), where)
        for child in index.entries(folders().cache, children, reading_progress):
            below.setdefault(str(catalog.parent_of(Path(child.path))), []).append(child)
    family = [(one, "") for one in entries]
    if below:
        there = {one.path for one in entries}
        lost = [one for path, found in below.items() if path not in there for one in found]
        family = [
            *((one, by) for parent in entries for one, by in _family(parent, below)),
            *((one, catalog.id_of(catalog.parent_of(Path(one.path)))) for one in lost),
        ]
    if options.json:
        return print_json([one.to_json() | ({"parent": by} if by else {}) for one, by in family])
    for entry, by in family:
        title = entry.title or "(no prompts)"
        flag = "" if entry.state == "ok" else f"  [{catalog.state_name(entry.state)}]"
        flag += f"  (profile {entry.profile})" if entry.profile else ""
        tree = worktree_of(Path(entry.cwd))
        flag += f"  [worktree {_printable(tree.name)}]" if tree else ""
        when = entry.updated[:16].replace("T", " ")
        mark = "└ " if by else ""
        messages = "message " if entry.messages == 1 else "messages"
        print_text(
            f"{entry.id}  {when}  {entry.messages:>4} {messages}  {mark}{_printable(title)}{flag}"
        )
    if not family:
        note("No sessions here yet." if where else "No sessions yet.")
    return 0


def _family(
    parent: catalog.SessionSummary, below: Mapping[str, Sequence[catalog.SessionSummary]]
) -> Iterator[tuple[catalog.SessionSummary, str]]:
    """A session, then those of its sub-agents with its id."""
    yield parent, ""
    for one in below.get(parent.path, ()):
        yield one, parent.id


def tree(options: Options) -> int:
    """Print the branches, each followed by those that left it."""
    # both need the configuration
    from tui.app import launch_config  # noqa: PLC0415
    from tui.app.reports.branches import (  # noqa: PLC0415
        NOTHING_SAID,
        branch_facts,
        branch_rows,
        indent,
    )

    path = path_of(options)
    loaded, prices = load(path), launch_config.config_for(options, path).prices
    rows = branch_rows(loaded.records, prices)
    if options.json:
        return print_json({"branches": [row.to_json() for row in rows]})
    now = SystemClock().now()
    for row in rows:
        here = "  [current]" if row.current else ""
        words = _printable(row.first or NOTHING_SAID)
        print_text(f"{row.leaf}  {indent(row)}{words}  ({branch_facts(row, now)}){here}")
    if len(rows) > 1:
        note("show, view, export and report take --branch with one of these ids.")
    return 0


def show(options: Options) -> int:
    loaded = loaded_branch(options)
    if options.json:
        shown = _view_of(loaded)
        return print_json(
            {"id": loaded.header.id, "path": str(loaded.path), "messages": shown.messages}
        )
    print_text(f"# {_printable(_session(loaded).title or loaded.header.id)}")
    number = 0
    for record in loaded.branch:
        if record.type in _MESSAGES:
            number += 1
            when = record.time[:16].replace("T", " ")
            own = record.type == "assistant" or is_prompt(record)
            who = record.type if own else record.data["by"]
            print_text(f"\n[{number} {who}, {when}]")
            for block in blocks_of(record.data.get("content")):
                print_text(_block_text(block))
        elif text := _other(record):
            print_text(f"\n{text}")
    return 0


def check(options: Options) -> int:
    loaded = load(path_of(options))
    seen = _view_of(loaded)
    findings = (*loaded.findings, *seen.findings)
    valid = all(finding.code == LEFT_OUT for finding in findings)
    if options.json:
        print_json(
            {
                "records": len(loaded.records),
                "messages": len(seen.messages),
                "valid": valid,
                "findings": _json(findings),
                "sub_agents": len(loaded.children),
            }
        )
    else:
        for line in _in_lines(findings):
            print_text(line)
        if valid:
            note("Nothing to repair.")
        _note_sub_agents(loaded)
    return 0 if valid else 1


def view_(options: Options) -> int:
    """The exact request that the next prompt would send, less the prompt; or one that was sent."""
    if options.sessions.request is not None and options.sessions.diff:
        raise UsageError(
            "Use only one of --at and --diff.", hint="See holdfast sessions view --help."
        )
    if options.sessions.branch and (options.sessions.request is not None or options.sessions.diff):
        raise UsageError(
            "--at and --diff find a request on any branch.", hint="Leave out --branch."
        )
    # no other action needs an agent, which takes longer to load than most actions take
    from tui.agent.composition import make_agent  # noqa: PLC0415
    from tui.app import launch_config  # noqa: PLC0415
    from tui.cli import request_commands  # noqa: PLC0415
    from tui.permissions.gate import RulesOnly  # noqa: PLC0415

    if options.sessions.request is not None:
        return request_commands.view(options, options.sessions.request)
    if options.sessions.diff:
        return request_commands.compare(options, *options.sessions.diff)
    session = _session(loaded_branch(options))
    agent = make_agent(launch_config.prepare(options), session, RulesOnly())
    sent = agent.context.next_request(prompt_follows=True)
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
                for item in agent.context.ledger.items(images=True)
            ],
        }
    )


# Actions that make a file, move one, or add a title


def repair_(options: Options) -> int:
    """Write a repaired copy, and next to it a byte-identical backup of the original."""
    path = path_of(options)
    loaded = load(path)
    messages, repaired = repair(history(loaded.branch).messages, tail="open")
    findings = (*loaded.findings, *repaired)
    written = backup = None
    out = new_file_of(options)
    if not options.dry_run and (findings or out):
        clock = SystemClock()
        header = copies.header_of(loaded, clock=clock)
        name = f"{clock.now():%Y%m%dT%H%M%SZ}-{header.id}.jsonl"
        written = out.absolute() if out else path.absolute().with_name(name)
        backup = copies.write_repaired(loaded, header, messages, written)
    if options.json:
        return print_json(
            {
                "written": str(written) if written else None,
                "backup": str(backup) if backup else None,
                "findings": _json(findings),
            }
        )
    _print_findings(findings)
    if written:
        print_text(str(written))
        note(f"The original is unchanged; a backup copy is {backup}.")
    return 0


def import_(options: Options) -> int:
    """Take over another agent's session as one of ours, or one of ours from elsewhere."""
    path = path_of(options)
    home = folders()
    if home.sessions.resolve() in path.resolve().parents:
        raise SessionError(
            f"{path} is one of Holdfast's own sessions.",
            hint="Resume it with `holdfast -r FILE` or copy it with `holdfast sessions fork FILE`.",
        )
    loaded = load(path)
    copies.check_speaks(loaded)
    ours = importers.recognise(path) == "ours"
    copy = copies.take_in if ours else copies.take_over
    made = copy(loaded, folders=home, clock=SystemClock(), cwd=Path.cwd())
    findings = (*loaded.findings, *_view_of(loaded).findings)
    messages = sum(record.type in _MESSAGES for record in loaded.branch)
    if not options.json:
        for line in _in_lines(findings):
            note(line)
        _note_sub_agents(loaded)
    sub_agents = len(loaded.children)
    return _made(options, made, messages=messages, findings=_json(findings), sub_agents=sub_agents)


def export_(options: Options) -> int:
    """Print a session as a document, or write it to a file."""
    loaded = loaded_branch(options)
    if (format_ := options.sessions.format) == "otlp":
        from tui.cli.session_spans import as_lines  # noqa: PLC0415 - seldom asked for

        return _written(options, Exported(as_lines(options, loaded), 0))
    return _written(options, export(loaded, format_, title=_session(loaded).title))


def send(options: Options) -> int:
    """Send the spans of a session to the person's collector."""
    from tui.cli import session_spans  # noqa: PLC0415 - seldom asked for

    return session_spans.send(options, loaded_branch(options))


def report(options: Options) -> int:
    """Print what was done in a session, or write it to a file."""
    # all need the configuration
    from tui.app import launch_config  # noqa: PLC0415
    from tui.app.session_page import session_page  # noqa: PLC0415
    from tui.app.session_report import session_report  # noqa: PLC0415

    path = path_of(options)
    large = path.is_file() and path.stat().st_size > _LARGE
    with in_fork(_state, [path], worth=large) as checked:
        loaded = loaded_branch(options)
        state = next(checked).decode()
    prices = launch_config.config_for(options, path).prices
    title = _session(loaded).title
    if options.sessions.format == "html":
        own = sub_agents_of(loaded)
        made = session_page(loaded, prices, title=title, state=state, sub_agents=own)
    else:
        made = session_report(loaded, prices, title=title, state=state)
    return _written(options, replace(made, text=clean(made.text)))  # it is for people


def _state(path: Path) -> bytes:
    """Say whether a session's file is what was written."""
    lines = chain_check.verify(path)
    if not lines.linked:
        return b"not covered: an older version wrote it"
    return b"changed since" if lines.changed else b"unchanged since it was written"


def _written(options: Options, document: Exported) -> int:
    """Print a document, or write it to the file that is named."""
    out = file_of(options)
    if out is not None:
        copies.write_new(out.absolute(), document.text.encode("utf-8", "replace"))
    if options.json:
        print_json(
            {
                "written": str(out.absolute()) if out else None,
                "format": options.sessions.format,
                "secrets": document.secrets,
                **({} if out else {"document": document.text}),
            }
        )
    elif out is None:
        print_data(document.text, end="")
    else:
        note(f"Written to {shorten(out)}.")
    if document.secrets:
        note(f"Removed {document.secrets} {'secret' if document.secrets == 1 else 'secrets'}.")
    return 0


def fork(options: Options) -> int:
    loaded = load(path_of(options))
    here = Path.cwd()
    made = copies.fork(
        loaded, folders=folders(), clock=SystemClock(), at=options.sessions.at or "", cwd=here
    )
    if gone := copies.gone_folder(loaded.header, here, loaded.records):
        note(gone)
    return _made(options, made)


def rename(options: Options) -> int:
    """Add a title to the record."""
    from tui.app.session_repository import add_title  # noqa: PLC0415 - for this action only

    title = " ".join((options.sessions.second or "").split())
    if not title:
        raise UsageError("Give a title.", hint='holdfast sessions rename ID "a title"')
    path = path_of(options)
    catalog.check_ours(path, folders())
    id_ = add_title(path, title, SystemClock())
    if options.json:
        return print_json({"id": id_, "path": str(path), "title": title})
    return 0


def delete(options: Options) -> int:
    path = path_of(options)
    moved = copies.delete(path, folders=folders(), clock=SystemClock())
    if options.json:
        return print_json({"id": catalog.id_of(path), "path": str(moved)})
    note(f"Moved to {moved}.")
    return 0


_ELSEWHERE: Final = {
    "search": ("session_search", "search"),
    "diff": ("session_diff", "diff"),
    "verify": ("session_verify", "verify"),
    "replay": ("session_replay", "replay"),
    "timeline": ("session_timeline", "timeline"),
    "distill": ("session_distill", "distill"),
    "pack": ("session_pack", "pack_"),
    "unpack": ("session_pack", "unpack_"),
}
"""The module and function of each action that has a module: most take longer to load than to list
the sessions."""

_ACTIONS: Final[Mapping[str, _Action]] = {
    "list": list_,
    "show": show,
    "tree": tree,
    "check": check,
    "view": view_,
    "repair": repair_,
    "import": import_,
    "export": export_,
    "send": send,
    "report": report,
    "fork": fork,
    "rename": rename,
    "delete": delete,
}


def run(options: Options) -> int:
    """Carry out one action. Returns the exit code; raises HoldfastError."""
    if options.action in _ELSEWHERE:
        module, name = _ELSEWHERE[options.action]
        act: _Action = getattr(import_module(f"tui.cli.{module}"), name)
        return act(options)
    return _ACTIONS[options.action](options)


# What is read


def _session(loaded: LoadedSession) -> Session:
    """Make the session that a file describes: its title, the model that answered last."""
    return Session.of(loaded, clock=SystemClock())


def _view_of(loaded: LoadedSession) -> view.View:
    return view.build(loaded.branch, model=_session(loaded).model, prompt_follows=True)


# What is printed


def _print_findings(findings: Sequence[Finding]) -> None:
    for line in _in_lines(findings):
        print_text(line)
    if not findings:
        note("Nothing to repair.")


def _in_lines(findings: Iterable[Finding]) -> list[str]:
    return [f"{finding.code}  {finding.where}: {finding.action}" for finding in findings]


def _note_sub_agents(loaded: LoadedSession) -> None:
    if loaded.children:
        note(f"With {plural(len(loaded.children), 'session')} of sub-agents.")


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


def _made(options: Options, path: Path, **more: object) -> int:
    id_ = catalog.id_of(path)
    if options.json:
        return print_json({"id": id_, "path": str(path), **more})
    print_text(id_)
    note(f"Resume with: holdfast -r {id_}")
    return 0


def _json(findings: Sequence[Finding]) -> list[dict[str, str]]:
    return [finding.to_json() for finding in findings]
