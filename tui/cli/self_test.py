"""`holdfast self-test`: checks that the program works here, for a report of a problem.

The program itself is started, again and again, in a throwaway folder with the practice model. No
network is used, and nothing of the person's is read except what doctor reports about the machine.
The output holds no keys, and the home folder only as `~`.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final, Literal, TypeAlias, get_args, get_type_hints

from msgspec import structs

import tui
from tui.app.doctor import Check, Subject, machine
from tui.app.doctor.sandbox import sandbox
from tui.app.options.arguments import Options
from tui.core.config import SandboxSettings
from tui.core.dataclass import asdict, dataclass, field, replace
from tui.core.paths import folders
from tui.core.redaction import mask

Status: TypeAlias = Literal["ok", "failed", "skipped"]

_MARKS: Final = {"ok": "✓", "failed": "✗", "skipped": "-"}
_NAME: Final = 27
_PATIENCE_S: Final = 60
_SYSTEMS: Final = {"Linux": {"bubblewrap", "launcher", "landlock"}, "Darwin": {"seatbelt"}}
_README: Final = "A throwaway folder.\n"

_EDIT: Final = """
[[turn]]
tools = [{name = "read_file", input = {path = "README.md"}}]
[[turn]]
[[turn.tools]]
name = "edit_file"
input = {path = "README.md", old_string = "A throwaway", new_string = "An edited"}
[[turn]]
text = "Done."
"""
_SLOW: Final = """
[[turn]]
text = "Never said."
delay_s = 600
"""
_END: Final = """
[[turn]]
text = "Continued."
"""


class _FailedError(Exception):
    """A step did not end as it should."""


class _SkippedError(Exception):
    """A step cannot be tried here."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the self-test and its result."""

    name: str
    status: Status
    detail: str
    seconds: float


@dataclass(slots=True)
class _Place:
    """The throwaway folder, and the session that the steps pass on."""

    root: Path
    env: dict[str, str] = field(default_factory=dict[str, str])
    session: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def project(self) -> Path:
        return self.root / "project"

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-P", "-m", "tui", *words]

    def prompt(self, text: str, script: str, *words: str) -> list[str]:
        """Return the words that send a prompt to the practice model with a script."""
        file = self.root / "script.toml"
        file.write_text(script, encoding="utf-8")
        out = ("--output-format", "stream-json", "--practice-script", str(file))
        return self.argv("-p", text, *out, *words)

    def run(self, argv: list[str], *, code: int = 0) -> str:
        """Run the program and return its output. Raises _FailedError on another exit code."""
        done = subprocess.run(
            argv,
            cwd=self.project,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PATIENCE_S,
            check=False,
        )
        if done.returncode != code:
            output = " ".join(done.stderr.split()[-40:]) or "nothing on stderr"
            raise _FailedError(f"exit code {done.returncode}, not {code}: {output}")
        return done.stdout

    def events(self, argv: list[str]) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.run(argv).splitlines()]

    def of_session(self, what: str) -> str:
        if what not in self.session:
            raise _SkippedError("no session was written before")
        return str(self.session[what])


def run(options: Options) -> int:
    """Try everything, and print a line for each step. Returns 1 if something failed."""
    seen = [_without_home(check) for check in _machine()]
    steps: list[Step] = []
    with TemporaryDirectory(prefix="holdfast-self-test-", ignore_cleanup_errors=True) as made:
        place = _prepared(Path(os.path.realpath(made)))
        if not options.json:
            _say("\n".join(f"  {check.name:<{_NAME}}{check.detail}" for check in seen) + "\n")
        for name, tried in all_steps():
            steps.append(_tried(name, tried, place))
            if not options.json:
                _say(f"{_MARKS[steps[-1].status]} {name:<{_NAME}}{_line_of(steps[-1])}")
    failed = [step for step in steps if step.status == "failed"]
    if options.json:
        report = {"version": tui.__version__, "system": platform.platform(), "ok": not failed}
        report |= {
            "machine": [check.to_json() for check in seen],
            "steps": list(map(asdict, steps)),
        }
        _say(json.dumps(report, indent=2))
    else:
        _say(f"\n{len(failed)} of {len(steps)} failed." if failed else "\nEverything works here.")
    return 1 if failed else 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _line_of(step: Step) -> str:
    return f"{step.status}: {step.detail}" if step.status != "ok" else step.detail


def _prepared(root: Path) -> _Place:
    place = _Place(root)
    place.project.mkdir()
    (place.project / "README.md").write_text(_README, encoding="utf-8")
    variables = {name: value for name, value in os.environ.items() if "ANTHROPIC" not in name}
    place.env = {**variables, "HOLDFAST_HOME": str(root / "home"), "PYTHONUTF8": "1"}
    return place


def _machine() -> Iterator[Check]:
    """Yield doctor's checks of the machine that need no network and no settings."""
    what = Subject.of(Path.cwd(), folders(), os.environ)
    for look in (machine.program, machine.packages, machine.terminal, machine.programs):
        yield from look(what)


def _without_home(check: Check) -> Check:
    return replace(check, detail=_clean(check.detail), fix=_clean(check.fix))


def _clean(text: str, root: Path | None = None) -> str:
    """Return a text without keys, and without the person's paths."""
    for place, name in ((root, "TMP"), (Path.home(), "~"), (Path.cwd(), ".")):
        if place is not None and len(place.parts) > 1:
            text = text.replace(str(place), name)
    return mask(" ".join(text.split()))[0]


def _tried(name: str, step: Callable[[_Place], str], place: _Place) -> Step:
    began, status = perf_counter(), "ok"
    try:
        detail = step(place)
    except _SkippedError as reason:
        detail, status = str(reason), "skipped"
    except subprocess.TimeoutExpired:
        detail, status = f"no end after {_PATIENCE_S} s", "failed"
    except Exception as error:  # noqa: BLE001 - whatever it is, the report has to say it
        known = isinstance(error, _FailedError)
        detail, status = str(error) if known else repr(error), "failed"
    took = round(perf_counter() - began, 2)
    return Step(name, status, _clean(detail, place.root), took)  # pyright: ignore[reportArgumentType] - one of the three


def all_steps() -> Iterator[tuple[str, Callable[[_Place], str]]]:
    """Yield every step, in an order in which each can build on those before."""
    yield "start", _start
    yield "edit without a rule", _denied
    yield "read and edit", _edited
    for engine in get_args(get_type_hints(SandboxSettings)["engine"]):
        if engine not in {"auto", "off"}:
            yield f"sandbox: {engine}", lambda where, engine=engine: _confined(where, engine)
    yield "session written", _written
    yield "session killed, resumed", _killed
    yield "session damaged, repaired", _repaired


def _start(place: _Place) -> str:
    version = place.run(place.argv("--version")).strip()
    _expect(tui.__version__ in version, f"another version started: {version}")
    return version


def _denied(place: _Place) -> str:
    events = place.events(place.prompt("edit", _EDIT))
    _expect(_text(place) == _README, "the file was changed though nothing allowed it")
    answers = [one["answer"] for one in events if one["type"] == "permission_answered"]
    _expect(answers == ["no"], f"the edit was answered {answers}")
    return "denied, and the file is unchanged"


def _edited(place: _Place) -> str:
    events = place.events(place.prompt("edit", _EDIT, "--allow", "edit_file"))
    _expect(_text(place) == _README.replace("A throwaway", "An edited"), "the file wasn't edited")
    _expect(events[-1]["outcome"] == "done", f"the turn ended as {events[-1]['outcome']}")
    place.session = {"id": events[0]["session_id"], "path": events[0]["path"]}
    return "allowed by a rule, and made"


def _text(place: _Place) -> str:
    return (place.project / "README.md").read_text(encoding="utf-8")


def _confined(place: _Place, engine: Any) -> str:
    if engine not in _SYSTEMS.get(platform.system(), set[str]()):
        raise _SkippedError(f"not on {platform.system()}")
    what = Subject.of(place.project, folders(place.env), place.env)
    config = structs.replace(what.config, sandbox=SandboxSettings(engine=engine))
    (check,) = sandbox(replace(what, config=config))
    if check.status == "warn":
        raise _SkippedError(check.detail)
    _expect(check.status == "ok", check.detail)
    return check.detail.removeprefix(f"{engine}; ")


def _written(place: _Place) -> str:
    id_ = place.of_session("id")
    listed = json.loads(place.run(place.argv("sessions", "list", "--json")))
    _expect(id_ in [one["id"] for one in listed], "it isn't listed")
    place.run(place.argv("sessions", "check", id_))
    place.run(place.argv("sessions", "verify", id_))
    return "listed, sound and verified"


def _killed(place: _Place) -> str:
    argv = place.prompt("the prompt before the kill", _SLOW)
    with subprocess.Popen(
        argv, cwd=place.project, env=place.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout
        lines = (json.loads(line) for line in process.stdout)
        first = next(lines, None)
        asked = next((one for one in lines if one["type"] == "request_sent"), None)
        # As with kill -9 in the middle of an answer.
        process.kill()
    _expect(first is not None and asked is not None, "it ended before its first request")
    id_ = first["session_id"] if first else ""
    events = place.events(place.prompt("continue", _END, "-r", id_))
    _expect(events[-1]["outcome"] == "done", f"the turn ended as {events[-1]['outcome']}")
    shown = place.run(place.argv("sessions", "show", id_))
    complete = "the prompt before the kill" in shown and "Continued." in shown
    _expect(complete, "the resumed session lacks what was before the kill")
    return "the prompt before kill -9 is there, and was continued"


def _repaired(place: _Place) -> str:
    path = Path(place.of_session("path"))
    data = path.read_bytes()
    damaged = path.with_name("damaged.jsonl")
    damaged.write_bytes(data[: len(data) // 2] + b"\0\0\n" + data[len(data) // 2 :])
    place.run(place.argv("sessions", "check", str(damaged)), code=1)
    copy = place.root / "repaired.jsonl"
    place.run(place.argv("sessions", "repair", str(damaged), "--out", str(copy)))
    place.run(place.argv("sessions", "check", str(copy)))
    events = place.events(place.prompt("continue", _END, "-r", str(copy)))
    _expect(events[-1]["outcome"] == "done", f"the turn ended as {events[-1]['outcome']}")
    return "found, repaired in a copy, and continued"


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise _FailedError(otherwise)
