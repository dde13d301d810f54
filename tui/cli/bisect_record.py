"""The states that `holdfast bisect` has judged, kept until a search is over."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast

from tui.cli.bisect_report import Judgement
from tui.context.bisection import Verdict
from tui.core.dataclass import dataclass
from tui.core.errors import StorageError, os_error_as
from tui.core.files import read_small, replace_file
from tui.core.messages import list_of, object_of, string_of
from tui.core.paths import Folders

_MAX: Final = 16_000_000
_VERDICTS: Final = frozenset({"passes", "fails", "skipped"})


@dataclass(frozen=True, slots=True)
class JudgedStates:
    """The file with the judged of one search. `names` are those of its states."""

    file: Path
    names: Sequence[str]

    @classmethod
    def of(cls, folders: Folders, names: Sequence[str], question: Sequence[str]) -> JudgedStates:
        """The file of a search, by its first state and by what is asked in each."""
        key = sha256(json.dumps([names[:1], question]).encode()).hexdigest()[:24]
        return cls(folders.data / "bisect" / f"{key}.json", names)

    def load(self) -> dict[int, Judgement]:
        """The judged of an interrupted search, by the numbers of the states; none where there was
        none, or where it can't be read."""
        with suppress(OSError, ValueError):
            value = object_of(json.loads(read_small(self.file, limit=_MAX, follow=False)[0]))
            return {
                n: judgement
                for n, name in enumerate(self.names)
                if (judgement := _judgement(object_of(value.get(name)))) is not None
            }
        return {}

    def save(self, judged: Mapping[int, Judgement]) -> None:
        """Keep the judged. Raises StorageError."""
        with os_error_as(StorageError, f"Can't write {self.file}"):
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            value = {
                self.names[n]: {
                    "verdict": one.verdict,
                    "codes": one.codes,
                    "why": one.why,
                    "output": one.output,
                    "seconds": one.seconds,
                    "timed_out": one.timed_out,
                }
                for n, one in judged.items()
            }
            replace_file(self.file, json.dumps(value).encode())

    def forget(self) -> None:
        """Remove the file: the search is over."""
        with suppress(OSError):
            self.file.unlink()


def _judgement(value: Mapping[str, Any]) -> Judgement | None:
    verdict, seconds = value.get("verdict"), value.get("seconds")
    if verdict not in _VERDICTS:
        return None
    return Judgement(
        cast("Verdict", verdict),
        tuple(code for code in list_of(value.get("codes")) if isinstance(code, int)),
        string_of(value.get("why")),
        string_of(value.get("output")),
        float(seconds) if isinstance(seconds, int | float) else 0.0,
        bool(value.get("timed_out")),
    )
