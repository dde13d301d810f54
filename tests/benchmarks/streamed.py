"""Answers, streamed by a server of our own in a process of its own: a long one, or any script."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

_SECTION = """\
## Part {n}

The reader **streams** its input and keeps what it cannot parse, with `offset` and length:

- one bad line costs one line
- the rest of the file is *still read*

```python
def read(path, limit={n}):
    for line in path.open("rb"):
        yield parse(line, limit)
```

"""


def essay(characters: int) -> str:
    """Markdown of this length."""
    text = ""
    for n in count():
        if len(text) >= characters:
            break
        text += _SECTION.format(n=n)
    return text[:characters]


@contextmanager
def streaming(folder: Path, *, tokens: int, piece: int, every_s: float) -> Generator[str]:
    """The address of a server that says "ready", then so many tokens, each after `every_s`."""
    turns = [
        {"text": "ready"},
        {"text": essay(tokens * piece), "piece": piece, "every_s": every_s},
    ]
    with playing(folder, turns) as url:
        yield url


@contextmanager
def playing(folder: Path, turns: Sequence[Mapping[str, Any]], *more: str) -> Generator[str]:
    """The address of a server that plays these turns; `more` are options of its own."""
    script = folder / "script.json"
    script.write_text(json.dumps({"turns": turns}))
    server = [sys.executable, "-m", "tests.support.server", "--script", str(script), *more]
    with subprocess.Popen(server, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
