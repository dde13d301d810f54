"""A session as a bash script, which makes the same files in a fresh clone. Pure.

No text of the session can leave its place: commands and names stand in single quotes, contents in
here-documents whose end is no line of theirs, and comments are one line.
"""

from __future__ import annotations

import base64
import difflib
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final

from tui.context.distillation import (
    DistilledStep,
    GreenCheck,
    ReadContent,
    is_plain_file,
    is_text,
)
from tui.core.dataclass import dataclass, field
from tui.core.formatting import shortened
from tui.core.redaction import mask
from tui.core.text_cleaning import one_line
from tui.session.checkpoints.entries import CheckpointError, Kind, PathEntry

_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*(?:/[A-Za-z0-9._+-]+)*")
_DIFF_MAX: Final = 400_000
"""Bytes of a file above which it is written whole: comparing takes too long."""
_NAMED: Final = 3
_CHARS: Final = 120
_NEW_FILE: Final = 0o644
_HEAD: Final = """\
#!/usr/bin/env bash
# {title}
# Distilled from session {session}: run it in a clone as it was when that began ({began}).
set -euo pipefail

hunk() {{ git -c core.autocrlf=false apply --whitespace=nowarn -; }}
place() {{ mkdir -p -- "$(dirname -- "$1")" && rm -rf -- "$1"; }}
file() {{ place "$2" && cat > "$2" && chmod "$1" "$2"; }}
exact() {{ place "$2" && base64 -d > "$2" && chmod "$1" "$2"; }}
link() {{ place "$2" && ln -s -- "$1" "$2"; }}
run() {{ (cd -- "$1" && bash -c "$2" < /dev/null); }}
check() {{ run "$@" || {{ printf 'not green: %s\\n' "$2" >&2; failed=1; }}; }}
failed=0
"""


@dataclass(slots=True)
class DistilledScript:
    """The script, and what it can't do: a line for the person each. `secrets` were removed from
    it."""

    text: str
    cannot: list[str] = field(default_factory=list[str])
    secrets: int = 0


def script(
    steps: Sequence[DistilledStep],
    checks: Sequence[GreenCheck],
    content: ReadContent,
    *,
    session: str,
    title: str,
    began: str,
    root: str,
) -> DistilledScript:
    """The steps as a script. `root` is the folder of the session; commands name it by `.`."""
    made = DistilledScript("")
    numbered = list(enumerate(steps, 1))
    _say(made, "had the network", [(n, one) for n, one in numbered if one.step.network])
    ignored = "changed only what git ignores, which isn't checked"
    _say(made, ignored, [(n, one) for n, one in numbered if one.step.prepares])
    head = _HEAD.format(title=comment(title), session=comment(session), began=comment(began))
    parts = [head]
    for number, one in numbered:
        parts.append(f"\n# {source_of(one)}\n")
        parts += _lines(one, content, made, number, root)
    if checks:
        parts.append("\n# Checks whose last run was green\n")
    for check in checks:
        line = _call("check", check.cwd, check.command, root, made)
        parts.append(f"# call {comment(check.call_id)}\n{line}")
    parts.append('\nexit "$failed"\n')
    made.text = "".join(parts)
    return made


def _say(made: DistilledScript, why: str, found: Sequence[tuple[int, DistilledStep]]) -> None:
    """Say once of all steps why the script can't be sure to work."""
    if not found:
        return
    numbers = ", ".join(str(number) for number, _ in found)
    commands = list(dict.fromkeys(comment(one.step.command) for _, one in found))
    more = "; …" if len(commands) > _NAMED else ""
    steps = "step" if len(found) == 1 else "steps"
    made.cannot.append(f"{steps} {numbers} {why}: {'; '.join(commands[:_NAMED])}{more}")


def comment(text: str) -> str:
    """A text of the session in one line, for a comment."""
    line = one_line(mask(text)[0]).encode("utf-8", "replace").decode()
    return shortened(line, _CHARS)


def source_of(one: DistilledStep) -> str:
    """The place in the session that a step comes from, in one line."""
    origin = one.step.origin
    where = ""
    if origin is not None:
        where = f"request {origin.request}, " if origin.request else ""
        call = origin.result or origin.permission
        where += f"call {call.data.get('call_id')}: " if call is not None else ""
        where = comment(where) + " "
    said = f"  [{comment(origin.prompt_text)}]" if origin and origin.prompt_text else ""
    return f"{where}{comment(one.step.title)}{said}"


def _call(function: str, cwd: str, command: str, root: str, made: DistilledScript) -> str:
    folder = os.path.relpath(cwd, root) if cwd.startswith("/") else cwd or "."
    masked, secrets = mask(command)
    if secrets:
        made.secrets += secrets
        made.cannot.append(f"a secret was removed from a command: {comment(masked)}")
    return f"{function} {quoted(folder)} {quoted(masked)}\n"


def quoted(text: str) -> str:
    """A text as one word of the shell."""
    return shlex.quote(text.replace("\0", "").encode("utf-8", "replace").decode())


def _lines(
    one: DistilledStep, content: ReadContent, made: DistilledScript, number: int, root: str
) -> Iterator[str]:
    """The lines of a step: its command, or its changes one by one."""
    if one.step.command:
        yield _call("run", one.step.cwd, one.step.command, root, made)
        return
    removed = [path for path, (_, new) in one.changes.items() if new is None]
    for path in reversed(removed):  # what is in a folder before the folder
        yield f"rm -rf -- {_name(path)}\n"
    for path, (old, new) in one.changes.items():
        if new is None:
            continue
        try:
            yield from _change(path, old, new, content, made)
        except CheckpointError as error:
            made.cannot.append(f"step {number}: {comment(os.fsdecode(path))}: {error.message}")
            yield f"# {comment(os.fsdecode(path))} can't be made: {comment(error.message)}\n"


def _name(path: bytes) -> str:
    """A path below the folder, as one word: `./`, so that none is an option."""
    text = os.fsdecode(path)
    try:
        return shlex.quote(f"./{text}") if text.isprintable() else _ansi(path)
    except UnicodeError:
        return _ansi(path)


def _ansi(path: bytes) -> str:
    """Any bytes as one word of bash."""
    plain = frozenset(b"/._-")
    inner = "".join(
        chr(c) if (c < 128 and chr(c).isalnum()) or c in plain else f"\\x{c:02x}" for c in path
    )
    return f"$'./{inner}'"


def _change(
    path: bytes,
    old: PathEntry | None,
    new: PathEntry,
    content: ReadContent,
    made: DistilledScript,
) -> Iterator[str]:
    name = _name(path)
    if new.kind is Kind.FOLDER:
        yield f"mkdir -p -- {name}\n"
        return
    if new.digest is None:
        raise CheckpointError("its content isn't kept")
    data = content(new.digest)
    if new.kind is Kind.LINK:
        yield f"link {_target(data)} {name}\n"
        return
    before: bytes | None = None
    if old is not None and is_plain_file(old) and old.digest is not None:
        before = content(old.digest)
    mode = f"{new.mode & 0o777:o}"
    patch = _patch(path, before, data)
    if patch and not mask(patch)[1]:
        yield f"hunk {_here(patch)}"
    elif before != data:
        yield _whole(name, mode, data, made)
        return
    if old is not None and new.mode != old.mode:
        yield f"chmod {mode} {name}\n"


def _target(data: bytes) -> str:
    return "".join(("$'", *(f"\\x{c:02x}" for c in data), "'"))


def _whole(name: str, mode: str, data: bytes, made: DistilledScript) -> str:
    """Write a file as a whole, without what looks secret."""
    if not is_text(data):
        return f"exact {mode} {name} {_here(base64.encodebytes(data).decode())}"
    text, secrets = mask(data.decode())
    if secrets:
        made.secrets += secrets
        made.cannot.append(f"a secret was removed from {comment(name)}")
    if text.endswith("\n"):
        return f"file {mode} {name} {_here(text)}"
    return f"exact {mode} {name} {_here(base64.encodebytes(text.encode()).decode())}"


def _patch(path: bytes, before: bytes | None, data: bytes) -> str:
    """A change of a file as a patch for `git apply`; "" where it can't be told as one."""
    name = os.fsdecode(path)
    if not before or not data or before == data or max(len(before), len(data)) > _DIFF_MAX:
        return ""
    if not (_PLAIN_NAME.fullmatch(name) and is_text(before) and is_text(data)):
        return ""
    old, new = _cut(before.decode()), _cut(data.decode())
    lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _here(text: str) -> str:
    """A text that ends with a line break as a here-document, which is taken word for word."""
    end = "END"
    lines = set(text.split("\n"))
    while end in lines:
        end = f"END_{sha256((end + text).encode()).hexdigest()[:12]}"
    return f"<<'{end}'\n{text}{end}\n"


def _cut(text: str) -> list[str]:
    """Cut a text at its line feeds alone, as git does."""
    lines = text.split("\n")
    return [*(f"{line}\n" for line in lines[:-1]), *([lines[-1]] if lines[-1] else [])]
