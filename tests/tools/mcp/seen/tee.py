"""Start a server and note each line that goes in and out: `python tee.py OUT.jsonl COMMAND…`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from typing import IO


def main(out: str, command: list[str]) -> int:
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    lock = threading.Lock()
    with open(out, "a", encoding="utf-8") as file:

        def note(entry: dict[str, object]) -> None:
            with lock:
                file.write(json.dumps({**entry, "at": time.monotonic()}) + "\n")
                file.flush()

        def listen(stdout: IO[bytes]) -> None:
            for line in stdout:
                note({"said": line.decode("utf-8", "replace").rstrip("\n")})
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
            note({"ended": server.wait()})
            os._exit(server.returncode & 255)  # as its own end would be seen

        listening = threading.Thread(target=listen, args=(server.stdout,), daemon=True)
        listening.start()
        note({"started": True})
        try:
            for line in sys.stdin.buffer:
                note({"sent": line.decode("utf-8", "replace").rstrip("\n")})
                server.stdin.write(line)
                server.stdin.flush()
            server.stdin.close()
        except OSError:
            pass
        listening.join()
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
