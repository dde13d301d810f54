"""Records the stream of the real Claude Code: `python -m tests.cli.claude_stream.record [CASE …]`.

Installs the pinned program in a temporary folder (or takes CLAUDE, a path to it), runs it against a
loopback server that plays the model, and writes `NAME.jsonl`: `{"in": line}` for what the driver
sent, `{"out": line}` for what the program wrote. Nothing here is collected by pytest.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, cast

from tests.cli.claude_stream.cases import CASES, FLAGS, Case
from tests.cli.claude_stream.driver import Driver
from tests.cli.claude_stream.model_server import ModelServer

VERSION = "2.1.332"
HERE = Path(__file__).parent
PATIENCE_S = 40
WHOLE = "text"
"""The case whose lines are kept whole; of others what is the same there is left out."""
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")
_CLIPPED = 200


def main() -> None:
    """Record the cases that are named, or all."""
    names = sys.argv[1:] or list(CASES)
    with tempfile.TemporaryDirectory(prefix="claude-stream-") as folder:
        program = os.environ.get("CLAUDE") or _install(Path(folder))
        for name in names:
            lines = record(program, CASES[name], Path(folder))
            lines = lines if name == WHOLE else [_brief(one) for one in lines]
            text = "".join(f"{json.dumps(one, ensure_ascii=True)}\n" for one in lines)
            (HERE / f"{name}.jsonl").write_text(text)
            print(name, len(lines), "lines", len(text), "bytes", flush=True)


def _install(folder: Path) -> str:
    package = f"@anthropic-ai/claude-code@{VERSION}"
    subprocess.run(["npm", "install", "--prefix", folder, package], check=True)
    return str(folder / "node_modules/.bin/claude")


def record(program: str, case: Case, folder: Path) -> list[dict[str, Any]]:
    """Hold the conversation of a case. Returns what went in and came out, in order, made even."""
    home, cwd = (Path(tempfile.mkdtemp(dir=folder)) for _ in range(2))
    for name, text in case.files.items():
        (cwd / name).parent.mkdir(parents=True, exist_ok=True)
        (cwd / name).write_text(text)
    server = ModelServer(json.loads(json.dumps(case.turns).replace("{cwd}", str(cwd))))
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "ANTHROPIC_BASE_URL": server.address,
        "ANTHROPIC_API_KEY": "x",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
        **case.env,
    }
    command = [program, *FLAGS[:3], "--system-prompt", "", *case.flags, *FLAGS[3:]]
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=cwd,
        env=env,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    stdin, seen = child.stdin, list[dict[str, Any]]()
    timer = threading.Timer(PATIENCE_S, child.kill)
    timer.start()

    def send(line: dict[str, Any] | None) -> None:
        if line is None:
            stdin.close()
            return
        seen.append({"in": line})
        stdin.write(json.dumps(line) + "\n")
        stdin.flush()

    driver = Driver(case, str(cwd), send)
    driver.begin()
    for text in child.stdout:
        line = json.loads(text)
        seen.append({"out": line})
        driver.see(line)
    seen.append({"exit": child.wait()})
    timer.cancel()
    server.close()
    return [json.loads(_even(json.dumps(_clipped(one)), cwd, home)) for one in seen]


def _brief(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a line without what the case `text` shows."""
    line = entry.get("out", {})
    if line.get("type") == "control_response" and "commands" in str(line)[:400]:
        line["response"]["response"] = {"as in": WHOLE}
    elif line.get("subtype") == "init":
        entry["out"] = {"type": "system", "subtype": "init", "as in": WHOLE}
    elif line.get("type") == "result":
        for name in ("usage", "modelUsage", "model_usage_since_last_result", "subagent_stats"):
            if name in line:
                line[name] = {"as in": WHOLE}
    elif line.get("type") == "assistant" and "usage" in line["message"]:
        line["message"]["usage"] = {"as in": WHOLE}
    return entry


def _clipped(value: Any) -> Any:
    """Return a line without what is long and says nothing about the format."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: _clipped(one) for key, one in fields.items()}
    if isinstance(value, list):
        items = cast("list[Any]", value)
        kept = items if len(items) <= 6 or not isinstance(items[0], dict) else items[:2]
        return [_clipped(one) for one in kept]
    if isinstance(value, str) and len(value) > _CLIPPED:
        return value[:_CLIPPED] + "…"
    return value


def _even(text: str, cwd: Path, home: Path) -> str:
    """Replace what differs from run to run."""
    text = text.replace(str(cwd), "{cwd}").replace(str(home), "{home}")
    text = text.replace(str(cwd).replace("/", "-"), "{cwd-slug}")
    known: dict[str, str] = {}
    text = _UUID.sub(lambda m: known.setdefault(m[0], "00000000-0000-4000-8000-000000000000"), text)
    text = re.sub(r"/tmp/cc-socks/\d+\.sock", "{socket}", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "{server}", text)
    text = re.sub(r'("[a-z_]*(?:_ms|Ms)": )[\d.]+', r"\g<1>1", text)
    return _TIME.sub("2026-11-28T20:00:00.000Z", text)


if __name__ == "__main__":
    main()
