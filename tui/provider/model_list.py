"""The models that a server lists, kept for a day, and short names for the newest of a line.

`opus` is the newest Opus that the server listed; the catalogue's if the server was never asked. The
list is read from the cache folder only to resolve a short name or to show the models, and nobody
waits for a newer one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from tui.core.errors import StorageError
from tui.core.files import read_small, replace_file
from tui.core.messages import is_object, list_of, object_of, string_of
from tui.provider import catalogue

_log = logging.getLogger(__name__)

SHORT_NAMES: Final = ("opus", "sonnet", "haiku", "fable")
LASTS: Final = timedelta(days=1)
_BYTES_MAX: Final = 4_000_000


def resolve(name: str, cache: Path, url: str) -> str:
    """Resolve a short name to a model; return any other name as it is. Blocks."""
    line = name.strip().casefold()
    if line not in SHORT_NAMES:
        return name
    return newest(line, listed(cache, url)) or newest(line, known())


def newest(line: str, models: Sequence[dict[str, Any]]) -> str:
    """The newest available model of a line, "" for none.

    Of two with the same creation time, or without one, the first.
    """
    candidates = [
        model
        for model in models
        if string_of(model.get("id"))
        and model.get("lifecycle") != "retired"
        and _line(model) == line
    ]
    last = max(candidates, key=lambda model: string_of(model.get("created_at")), default=None)
    return last["id"] if last else ""


def known() -> list[dict[str, Any]]:
    """The models of the catalogue, as a server would list them: the newest first."""
    return [{"id": name} for name in catalogue.names()]


def listed(cache: Path, url: str) -> list[dict[str, Any]]:
    """The models that a server listed last, [] if it was never asked. Blocks."""
    return [model for model in list_of(_read(cache, url).get("models")) if is_object(model)]


def is_due(cache: Path, url: str, now: datetime) -> bool:
    """True if a server should be asked for its models again. Blocks."""
    try:
        age = now - datetime.fromisoformat(string_of(_read(cache, url).get("at")))
    except (ValueError, TypeError):
        return True
    return not timedelta() <= age < LASTS


def keep(cache: Path, url: str, models: Sequence[object], now: datetime) -> None:
    """Keep a server's list. If that fails, the server is asked again. Blocks."""
    data = json.dumps({"at": now.isoformat(), "models": list(models)})
    try:
        replace_file(_path(cache, url), data.encode())
    except (OSError, StorageError) as error:
        _log.info("the list of models cannot be kept: %s", error)


def _line(model: dict[str, Any]) -> str:
    """The line that the server names; if it names none, the catalogue's."""
    line = model.get("line", catalogue.model_info(string_of(model.get("id"))).line)
    return string_of(line)


def _read(cache: Path, url: str) -> dict[str, Any]:
    try:
        return object_of(json.loads(read_small(_path(cache, url), limit=_BYTES_MAX)[0]))
    except (OSError, ValueError, RecursionError, StorageError):
        return {}


def _path(cache: Path, url: str) -> Path:
    return cache / "models" / f"{sha256(url.encode()).hexdigest()[:16]}.json"
