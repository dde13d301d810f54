"""`holdfast blame FILE[:LINES]`: where each line of a file comes from, as the sessions tell.

Nothing is written but the cache, and git's notes where they are asked for.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha1
from pathlib import Path
from typing import Any, Final

import msgspec

from tui.app import launch_config
from tui.app.options.arguments import Options
from tui.app.session_path import workspace_of
from tui.cli.session_io import print_json, reading_progress
from tui.context.blame import (
    FileBlame,
    RecordedStep,
    asked_lines,
    blame_file,
    cost,
    fork_command,
    label,
    line_range,
    open_command,
    words,
)
from tui.core.config import Price
from tui.core.errors import HoldfastError
from tui.core.formatting import moment_of, plural, ranges, shortened
from tui.core.git.checkout import Checkout
from tui.core.git.history import CommittedLine
from tui.core.git.notes import put_note, read_note
from tui.core.git.quoted_names import quoted
from tui.core.paths import folders
from tui.core.redaction import mask
from tui.core.standard_output import note, print_data, print_text
from tui.core.text_cleaning import clean, one_line

NOTES: Final = "refs/notes/holdfast"
_KINDS: Final = {
    "edit": "edit",
    "command": "command",
    "formatter": "format",
    "git": "git",
    "job": "job",
    "rewind": "rewind",
    "person": "person",
    "commit": "commit",
    "before": "before",
    "lost": "unsure",
}
_UNSURE: Final = "unsure"
_ORIGINS: Final = {
    "edit": "tool",
    "command": "command",
    "formatter": "command",
    "git": "command",
    "job": "command",
    "rewind": "person",
    "person": "person",
    "commit": "person",
    "before": "before",
    "lost": "uncertain",
}
"""The origins that programs are promised, by the kind of a step."""
_PROMISED: Final = ("session_id", "prompt", "call", "model", "cost_usd", "time")
_COLOURS: Final = {
    "person": "32",
    "before": "2",
    "commit": "2",
    "unsure": "33",
}
_COLOUR: Final = "36"
_WIDTH: Final = 80


def run(options: Options) -> int:
    """Print, or note in git, where lines come from. Returns the exit code."""
    path, wanted = asked_lines(str(options.target or ""), workspace_of(options))
    found, lines = blame_file(path, folders(), reading_progress)
    first, last = line_range(wanted, len(lines), path.name)
    found, secrets = _without_secrets(found, first, last)
    prices = launch_config.prepare(options).config.prices
    if options.sessions.shape == "notes":
        return _notes(found, first, last)
    if options.json:
        print_json(_described(found, lines, first, last, prices))
    elif options.sessions.shape == "porcelain":
        _porcelain(found, lines, first, last)
    elif lines:
        _show(found, lines, first, last, prices)
    else:
        note(f"{path.name} is empty.")
    for text in found.notes:
        note(text)
    if secrets:
        note(f"Removed {plural(secrets, 'secret')} from what sessions say. The file is as it is.")
    return 0


def _without_secrets(found: FileBlame, first: int, last: int) -> tuple[FileBlame, int]:
    """The answer with the keys masked in what was said, run and answered, and the number of them
    in what is told about these lines: it is pasted, and notes are pushed."""
    told = {
        number
        for origin in {found.of[n] for n in range(first - 1, last)}
        for number in (*found.origins[origin].makers, *found.origins[origin].formatters)
    }
    steps, secrets = list(found.steps), 0
    for number in told:
        step = steps[number]
        texts = {name: mask(getattr(step, name)) for name in ("said", "label", "reason")}
        secrets += sum(keys for _, keys in texts.values())
        masked = {name: text for name, (text, _) in texts.items()}
        steps[number] = msgspec.structs.replace(step, **masked)
    return msgspec.structs.replace(found, steps=tuple(steps)), secrets


# For people


def _show(
    found: FileBlame, lines: Sequence[str], first: int, last: int, prices: Mapping[str, Price]
) -> None:
    terminal = sys.stdout.isatty()
    coloured = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    width = shutil.get_terminal_size().columns if terminal else 0
    places: dict[int, list[int]] = {}
    for n in range(first - 1, last):
        places.setdefault(found.of[n], []).append(n)
    numbers = {origin: number for number, origin in enumerate(places, 1)}
    digits, before = len(str(last)), -1
    for n in range(first - 1, last):
        origin = found.of[n]
        number = numbers[origin]
        what = _kind(found, n)
        when = _when(found.makers(n)[0].time or _commit_time(found.commit(n)))
        head = f"[{number}]" if origin != before else ""
        who, when = (what, when) if origin != before else ("", "")
        left = f"{head:>5} {who:<8}{when:<13}{n + 1:>{digits}} │ "
        code = clean(lines[n]).expandtabs(8)
        if width:
            code = code[: max(10, width - len(left))]
        if coloured:
            _coloured(f"\x1b[{_COLOURS.get(what, _COLOUR)}m{left}\x1b[0m{code}\n")
        else:
            print_text(f"{left}{code}".rstrip())
        before = origin
    print_text("")
    for lines_of, number in zip(places.values(), numbers.values(), strict=True):
        for text in _source(found, lines_of, number, prices):
            print_text(text)


def _coloured(text: str) -> None:
    """Write a cleaned text with colors of our own, which the stream for people would take out."""
    stream = sys.__stdout__ or sys.stdout
    sys.stdout.flush()
    stream.write(text)
    stream.flush()


def _kind(found: FileBlame, line: int) -> str:
    return _KINDS[found.makers(line)[0].kind] if found.certain(line) else _UNSURE


def _when(time: str) -> str:
    then = moment_of(time)
    return then.astimezone().strftime("%d %b %H:%M") if then else ""


def _commit_time(commit: CommittedLine | None) -> str:
    return datetime.fromtimestamp(commit.time, UTC).isoformat() if commit else ""


def _source(
    found: FileBlame, lines: Sequence[int], number: int, prices: Mapping[str, Price]
) -> list[str]:
    """The lines that say where a block comes from, and how to go there; commands are never cut."""
    place = lines[0]
    one = found.origins[found.of[place]]
    makers = [found.steps[n] for n in one.makers]
    certain, head = found.certain(place), f"[{number}]"
    texts = [] if certain else [_cut(f"{head} Uncertain: {one.why}. It may be:")]
    for step in makers:
        first, *more = words(step, found.commit_of(lines) if certain else None, prices)
        texts.append(_cut(f"{head} {first}" if certain else f"    - {first}"))
        texts += [_cut(f"    {text}") for text in more]
        texts += [f"    {what:<12} {command}" for what, command in _commands(step)]
    return texts + [_cut(f"    reformatted by {label(found.steps[n])}") for n in one.formatters]


def _cut(text: str) -> str:
    return shortened(text, _WIDTH)


def _commands(step: RecordedStep) -> list[tuple[str, str]]:
    """The commands that open a step's session, and that begin again from before its prompt."""
    ways = (("go there:", open_command(step)), ("from before:", fork_command(step)))
    return [(what, command) for what, command in ways if command]


# For programs


def _described(
    found: FileBlame, lines: Sequence[str], first: int, last: int, prices: Mapping[str, Price]
) -> list[dict[str, Any]]:
    """A row for each line: its origin, and the step that made it if that is certain. `makers` are
    all steps that may have made it, `formatters` those that only reformatted it."""
    sources: dict[int, dict[str, Any]] = {
        origin: {
            "why": found.origins[origin].why or None,
            "makers": [_step(found.steps[n], prices) for n in found.origins[origin].makers],
            "formatters": [_step(found.steps[n], prices) for n in found.origins[origin].formatters],
        }
        for origin in {found.of[n] for n in range(first - 1, last)}
    }
    rows: list[dict[str, Any]] = []
    for n in range(first - 1, last):
        source, commit = sources[found.of[n]], found.commit(n)
        certain = found.certain(n)
        maker: dict[str, Any] = source["makers"][0] if certain else {}
        step: dict[str, Any] = {name: maker.get(name) for name in _PROMISED}
        step["time"] = step["time"] or (certain and _commit_time(commit)) or None
        rows.append(
            {
                "line": n + 1,
                "text": lines[n],
                "origin": _ORIGINS[found.makers(n)[0].kind] if certain else "uncertain",
                **step,
                "commit": commit.commit if commit else None,
                **source,
            }
        )
    return rows


def _step(step: RecordedStep, prices: Mapping[str, Price]) -> dict[str, Any]:
    fields = {
        "kind": step.kind,
        "time": step.time,
        "session_id": step.session,
        "parent_session_id": step.parent,
        "prompt": step.said,
        "prompt_id": step.prompt,
        "fork_at": step.before,
        "call": step.call,
        "tool": step.tool,
        "label": step.label,
        "model": step.model,
        "agent": step.app,
        "commit": step.commit,
        "author": step.author,
    }
    known: dict[str, Any] = {name: value for name, value in fields.items() if value}
    if step.by:
        known["approval"] = {"answer": step.answer, "by": step.by, "reason": step.reason}
    if (usd := cost(step, prices)) is not None:
        known["cost_usd"] = round(usd, 6)
    return known


def _porcelain(found: FileBlame, lines: Sequence[str], first: int, last: int) -> None:
    """Print what `git blame --porcelain` would, with a made-up id for each step; what only we know
    is in fields that begin with `holdfast-`."""
    told: set[str] = set()
    n = first - 1
    while n < last:
        end = n
        id_ = _id(found, n)
        while end < last and _id(found, end) == id_:
            end += 1
        for line in range(n, end):
            count = f" {end - n}" if line == n else ""
            print_data(f"{id_} {line + 1} {line + 1}{count}")
            if id_ not in told:
                told.add(id_)
                for text in _fields(found, line):
                    print_data(text)
            print_data(f"\t{lines[line]}")
        n = end


def _id(found: FileBlame, line: int) -> str:
    """The id of a line's step: git's for a commit, zeros for what isn't committed."""
    step, commit = found.makers(line)[0], found.commit(line)
    if not found.certain(line):
        return sha1(repr(found.origins[found.of[line]]).encode(), usedforsecurity=False).hexdigest()
    if step.kind in {"person", "before", "commit"}:
        return step.commit or (commit.commit if commit else "0" * 40)
    name = f"{step.session}/{step.call or step.time}"
    return sha1(name.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


def _fields(found: FileBlame, line: int) -> list[str]:
    step, commit = found.makers(line)[0], found.commit(line)
    unsure = not found.certain(line)
    kind = "uncertain" if unsure else step.kind
    author, mail, time, summary = "Not Committed Yet", "not.committed.yet", 0, ""
    if unsure:
        author, mail, summary = "Uncertain", "uncertain", found.origins[found.of[line]].why
    elif step.kind in {"person", "before", "commit"}:
        if commit:
            author, time, summary = commit.author, commit.time, commit.summary
            mail = commit.mail.strip("<>")
    else:
        author = f"{step.tool or step.kind} ({step.model or step.kind})"
        mail, summary = f"{step.session}@holdfast", step.said or step.label
        then = moment_of(step.time)
        time = int(then.timestamp()) if then else 0
    people = [
        f"{who}{what} {value}"
        for who in ("author", "committer")
        for what, value in (
            ("", author), ("-mail", f"<{mail}>"), ("-time", time), ("-tz", "+0000"),
        )
    ]  # fmt: skip
    own = {
        "kind": kind,
        "session": step.session,
        "prompt": step.prompt,
        "call": step.call,
    }
    extra = [f"holdfast-{name} {value}" for name, value in own.items() if value]
    fields = [*people, f"summary {summary}", *(extra if not unsure else extra[:1])]
    name = quoted(commit.name if commit else found.name)
    # nothing of a session can be another field
    return [*map(one_line, fields), f"filename {name}"]


# In git


def _notes(found: FileBlame, first: int, last: int) -> int:
    """Note at each commit that has lines of sessions which prompts wrote them."""
    path = Path(found.path)
    checkout = Checkout.of(path.parent)
    name = quoted(str(path.relative_to(checkout.top)))
    by_commit: dict[str, dict[str, list[int]]] = {}
    for n in range(first - 1, last):
        step, commit = found.makers(n)[0], found.commit(n)
        if commit is None or not found.certain(n) or not step.call:
            continue
        text = one_line(f"session {step.session} prompt {step.prompt} {step.said}")
        text = text.encode("utf-8", "replace").decode()  # no half characters
        by_commit.setdefault(commit.commit, {}).setdefault(text, []).append(n + 1)
    if not by_commit:
        raise HoldfastError(f"No committed line of {name} is known to come from a session.")
    own_line = re.compile(rf"{re.escape(name)}:[\d,-]+ ")
    for commit, prompts in by_commit.items():
        others = [
            line
            for line in read_note(checkout, NOTES, commit).splitlines()
            if line and not own_line.match(line)
        ]
        own = [f"{name}:{ranges(numbers)} {text}" for text, numbers in prompts.items()]
        put_note(checkout, NOTES, commit, "\n".join([*others, *own]))
    note(f"{plural(len(by_commit), 'commit')} noted. git log --notes=holdfast shows them.")
    return 0
