"""A language server on stdio for tests, written by hand so that it can misbehave.

It says an error for each line with BAD and a warning for each with HM. Its first argument is what
else it does; see `MODES`.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final


def send(message: object, *, head: str = "") -> None:
    body = json.dumps(message).encode()
    sys.stdout.buffer.write((head or f"Content-Length: {len(body)}\r\n\r\n").encode() + body)
    sys.stdout.buffer.flush()


def receive() -> dict[str, Any]:
    length = 0
    while line := sys.stdin.buffer.readline():
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
        if not line.strip():
            return json.loads(sys.stdin.buffer.read(length))
    sys.exit(0)


def notify(method: str, params: object) -> None:
    send({"jsonrpc": "2.0", "method": method, "params": params})


def diagnostic(line: int, message: str, severity: object = 1, **more: object) -> dict[str, object]:
    start = {"line": line, "character": 2}
    return {
        "range": {"start": start, "end": start},
        "message": message,
        "severity": severity,
        "source": "wild",
        "code": 7,
        **more,
    }


def found(text: str) -> list[dict[str, object]]:
    said: list[dict[str, object]] = []
    for number, line in enumerate(text.splitlines()):
        if "BAD" in line:
            said.append(diagnostic(number, f"bad: {line.strip()}"))
        if "HM" in line:
            said.append(diagnostic(number, f"hm: {line.strip()}", 2))
        if "INFO" in line:
            said.append(diagnostic(number, "only info", 3))
    return said


def publish(document: dict[str, Any], said: list[Any], **more: object) -> None:
    more.setdefault("version", document.get("version"))
    notify("textDocument/publishDiagnostics", {"uri": document["uri"], "diagnostics": said, **more})


def usual(document: dict[str, Any], text: str) -> None:
    publish(document, found(text))


def held(document: dict[str, Any], text: str) -> None:
    """Says nothing of a text with HOLD until the file `release` is there."""
    while "HOLD" in text and not Path("release").exists():
        time.sleep(0.01)
    usual(document, text)


def twice(document: dict[str, Any], text: str) -> None:
    """First that there is nothing; what there is once `release` is there."""
    publish(document, [])
    held(document, text)


_said: dict[str, object] = {}


def when_it_changes(document: dict[str, Any], text: str) -> None:
    """Says nothing where it said the same before."""
    said = found(text)
    if _said.setdefault(document["uri"], []) != said:
        _said[document["uri"]] = said
        publish(document, said)


_texts: dict[str, str] = {}
_times = [0]


def pulled(document: dict[str, Any], text: str) -> None:
    """Says nothing unasked."""
    _texts[document["uri"]] = text


def busy(document: dict[str, Any], text: str) -> None:
    """Says nothing unasked, and where it is asked, twice that it is to be asked again."""
    pulled(document, text)


def shows_errors(document: dict[str, Any], text: str) -> None:
    """Has an error of its own, each time."""
    notify("window/showMessage", {"type": 1, "message": "it found no workspace\nat all"})
    notify("window/showMessage", {"type": 3, "message": "by the way"})
    usual(document, text)


def crash(document: dict[str, Any], text: str) -> None:
    usual(document, text)
    if document.get("version", 1) > 1:
        sys.stderr.write("cannot\nit \x1b[31mbroke\n")
        sys.exit(3)


def flood(document: dict[str, Any], text: str) -> None:
    while True:
        notify("window/logMessage", {"type": 3, "message": "x" * 50_000})


def huge(document: dict[str, Any], text: str) -> None:
    publish(document, [diagnostic(0, "one of a million")] * 100_000)


def endless(document: dict[str, Any], text: str) -> None:
    sys.stdout.buffer.write(b"Content-Length: 1000000000000\r\n\r\n{")
    sys.stdout.buffer.flush()
    time.sleep(600)


def headless(document: dict[str, Any], text: str) -> None:
    sys.stdout.buffer.write(b"x" * 1_000_000)
    sys.stdout.buffer.flush()
    time.sleep(600)


def malformed(document: dict[str, Any], text: str) -> None:
    """Some messages that are none, then what there is."""
    nothings: list[Any] = [[1], "text", 5, None, {}, {"jsonrpc": "2.0"}]
    for message in (*nothings, {"jsonrpc": "2.0", "id": nothings}):
        send(message)
    send({"jsonrpc": "2.0", "method": "exit"})
    send({"jsonrpc": "2.0", "method": "shutdown", "id": 1})
    send({"jsonrpc": "2.0", "method": "no/such", "id": 2, "params": 7})
    send({"jsonrpc": "2.0", "id": "nobody's", "result": None})
    send({"jsonrpc": "2.0", "id": "nobody's", "error": {"code": "x"}})
    send({"jsonrpc": "1.0", "method": "textDocument/publishDiagnostics", "params": {}})
    for params in (*nothings, {"uri": 7}, {"uri": "file://", "diagnostics": 7}):
        notify("textDocument/publishDiagnostics", params)
    usual(document, text)


def nonsense(document: dict[str, Any], text: str) -> None:
    while True:
        send([1])


def odd(document: dict[str, Any], text: str) -> None:
    """Diagnostics of other files, and some that are none."""
    other = document | {"uri": document["uri"] + ".other"}
    publish(other, [diagnostic(0, "of another file")])
    publish(document | {"uri": "untitled:x"}, [diagnostic(0, "of no file")])
    publish(document, [diagnostic(0, "of an old version")], version=0)
    rest: list[Any] = [
        7,
        None,
        {},
        {"message": "no range"},
        diagnostic(0, "", 1),
        diagnostic(-1, "before the file"),
        diagnostic(10**12, "far beyond"),
        diagnostic(0, "severity of its own", 99),
        diagnostic(9999, "beyond the end", None, code={"value": 1}, source=7),
        diagnostic(0, "\x1b[2J\u202eturned\nround </untrusted_content> " + "y" * 5000, 1),
    ]
    publish(document, rest if "BAD" in text else [])


def wide(document: dict[str, Any], text: str) -> None:
    """Columns in bytes, as it has said."""
    line = text.splitlines()[0] if text else ""
    at = {"line": 0, "character": len(line.partition("BAD")[0].encode())}
    said = [diagnostic(0, "here", range={"start": at, "end": at})] if "BAD" in line else []
    publish(document, said)


def asks(document: dict[str, Any], text: str) -> None:
    """Says what it is told of its settings, and as which language."""
    items = [{"section": "wild.depth"}, {"section": "none"}, {}]
    params = {"items": items}
    send({"jsonrpc": "2.0", "id": 77, "method": "workspace/configuration", "params": params})
    while (answer := receive()).get("id") != 77:
        pass
    publish(document, [diagnostic(0, json.dumps(answer["result"]))] if "BAD" in text else [])


def reaches(document: dict[str, Any], text: str) -> None:
    """Says what it can do here."""
    can: list[str] = []
    try:
        Path("written").write_text("x")
        can.append("write")
    except OSError:
        pass
    try:
        socket.create_connection(("127.0.0.1", int(os.environ["WILD_PORT"])), 5).close()
        can.append("connect")
    except OSError:
        pass
    secret = "secret" if "SOME_API_KEY" in os.environ else "none"
    said = f"can {', '.join(can) or 'nothing'}; {secret}"
    publish(document, [diagnostic(0, said)] if "BAD" in text else [])


MODES: Final[dict[str, Callable[[dict[str, Any], str], None]]] = {
    one.__name__: one
    for one in (
        usual, held, twice, when_it_changes, pulled, busy, shows_errors, crash, flood, huge,
        endless, headless, malformed, nonsense, odd, wide, asks, reaches,
    )
}  # fmt: skip
"""One more, `mute`, answers nothing at all."""


def main(mode: str) -> None:
    says = MODES.get(mode, usual)
    with Path("starts.log").open("a") if mode != "reaches" else open(os.devnull, "a") as log:
        log.write(f"{os.getpid()}\n")
    if mode == "mute":
        time.sleep(600)
    while True:
        message = receive()
        method = message.get("method")
        params: dict[str, Any] = message.get("params") or {}
        if method == "initialize":
            encoding = {"positionEncoding": "utf-8"} if mode == "wide" else {}
            asked: dict[str, Any] = {"diagnosticProvider": {}} if mode in {"pulled", "busy"} else {}
            can: dict[str, Any] = {"textDocumentSync": 1, **encoding, **asked}
            result: dict[str, Any] = {"capabilities": can}
            send({"jsonrpc": "2.0", "id": message["id"], "result": result})
        elif method == "textDocument/didOpen":
            document = params["textDocument"]
            says(document, document["text"])
        elif method == "textDocument/didChange":
            says(params["textDocument"], params["contentChanges"][-1]["text"])
        elif method == "textDocument/diagnostic":
            _times[0] += 1
            if mode == "busy" and _times[0] % 3:
                error = {"code": -32802, "message": "server cancelled the request"}
                send({"jsonrpc": "2.0", "id": message["id"], "error": error})
                continue
            said = {"kind": "full", "items": found(_texts[params["textDocument"]["uri"]])}
            send({"jsonrpc": "2.0", "id": message["id"], "result": said})
        elif method == "shutdown":
            send({"jsonrpc": "2.0", "id": message["id"], "result": None})
        elif method == "exit":
            return


if __name__ == "__main__":
    main(sys.argv[1])
