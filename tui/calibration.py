"""How many tokens a model makes of what it is sent, learned from the usage that it reports.

An estimate is a weighted sum of a few figures (`Sample`). The weights are those of a ridge
regression over the session's answers, older ones fading: so two measures of text, one near a
tokeniser's and one of bytes, are mixed as the model's own tokeniser mixes them, and what every
first request carries besides is told apart. What is not ASCII is weighed as the rest, and by how
much it differs from that: a script that has not been seen yet follows what was learned of others.
Weights and estimates are kept within reason, whatever is reported.

What was learned is kept by model, one small file in the cache folder.
"""

from __future__ import annotations

import json
import logging
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from tui.bounded import bounded
from tui.errors import StorageError
from tui.storage.files import read_small, replace_file
from tui.storage.private import safe_name

log = logging.getLogger(__name__)


class Sample(NamedTuple):
    """The figures that an estimate is made of.

    `text`, `wide` and `quarter` measure text, `frames` what stands around it; `thought` is
    thinking of turns that are over, which some models do not read again; `first` is 1 for a whole
    request, which the server adds to, and 0 for what came since the last.
    """

    text: float = 0.0
    wide: float = 0.0
    quarter: float = 0.0
    frames: float = 0.0
    thought: float = 0.0
    first: float = 0.0


_PRIOR: Final = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
"""The weights before anything was learned: of both measures by kind, of what is wide in addition,
then as in `Sample`."""

_STIFFNESS: Final = (0.1, 3.0, 0.1, 20.0, 2.0, 1e-5)
"""What it takes to move a weight away from its prior: little for what tells tokenisers apart,
so that the first answers decide; much for what hardly differs among them."""

_BOUNDS: Final = ((0.0, 4.0), (-4.0, 4.0), (0.0, 4.0), (0.0, 3.0), (-1.0, 0.0), (0.0, 4000.0))
_VERSION: Final = 2
_FADING: Final = 0.98
_LEAST: Final = 20
"""Answers to fewer new tokens than this teach nothing."""
_FACTOR: Final = 6
"""Further off than by so many times the volume, something else than the tokeniser is at work."""
_SIZE: Final = len(_PRIOR)
_CONTENT: Final = 4
"""So many of the figures measure content; what is learned of the others is no ratio."""
TRUST: Final = 3.0
"""So many times an estimate may differ from the one before anything was learned: further off no
tokeniser is, so what was learned cannot make it worse than by that."""


def _zeros() -> list[list[float]]:
    return [[0.0] * _SIZE for _ in range(_SIZE)]


@dataclass(slots=True)
class Calibration:
    """What is known of one model. `answers` is how many it was learned from."""

    answers: int = 0
    gram: list[list[float]] = field(default_factory=_zeros)
    moment: list[float] = field(default_factory=lambda: [0.0] * _SIZE)
    weights: tuple[float, ...] = _PRIOR

    def tokens(self, sample: Sample) -> float:
        """The tokens that the model is expected to make of a sample.

        Of content it is never more than TRUST times what is expected before anything was learned,
        nor less than that part of it. A difference of two contents has no such bounds.
        """
        found = list(map(float.__mul__, self.weights, _figures(sample)))
        content, rest = sum(found[:_CONTENT]), sum(found[_CONTENT:])
        measures = sample[:_CONTENT]
        plain = sample.text + sample.wide + sample.frames
        if min(measures) >= 0:
            content = min(max(content, plain / TRUST), plain * TRUST)
        elif max(measures) <= 0:
            content = max(min(content, plain / TRUST), plain * TRUST)
        return content + rest

    def learn(self, sample: Sample, reported: float) -> None:
        """Take in what the model reported for a sample."""
        volume = max(sample.text + sample.wide, sample.quarter) + sample.frames + sample.thought
        missed = abs(reported - self.tokens(sample))
        if volume < _LEAST or not missed < _FACTOR * volume:  # also what is no number
            return
        found = _figures(sample)
        for i in range(_SIZE):
            self.moment[i] = self.moment[i] * _FADING + found[i] * reported / volume
            for j in range(_SIZE):
                self.gram[i][j] = self.gram[i][j] * _FADING + found[i] * found[j] / volume
        self.answers += 1
        self.weights = self._solve()

    def _solve(self) -> tuple[float, ...]:
        """The weights within their bounds that fit best."""
        matrix = [
            [value + (_STIFFNESS[i] if i == j else 0.0) for j, value in enumerate(row)]
            for i, row in enumerate(self.gram)
        ]
        right = [self.moment[i] + _STIFFNESS[i] * _PRIOR[i] for i in range(_SIZE)]
        text, wide, *others = bounded(matrix, right, _BOUNDS, _PRIOR)
        return text, max(wide, -text), *others

    def encoded(self) -> bytes:
        """All of it, as JSON."""
        kept = {
            "version": _VERSION,
            "answers": self.answers,
            "gram": self.gram,
            "moment": self.moment,
        }
        return json.dumps(kept).encode()

    @classmethod
    def decoded(cls, data: bytes) -> Calibration:
        """What `encoded` gave. Raises ValueError for anything else."""
        try:
            kept: Any = json.loads(data)
            if kept["version"] != _VERSION:
                raise ValueError("of another version")
            gram = [_row(row) for row in kept["gram"]]
            moment, answers = _row(kept["moment"]), int(kept["answers"])
        except (KeyError, TypeError, IndexError, RecursionError) as error:
            raise ValueError(str(error)) from error
        made = cls(answers, gram, moment)
        try:
            made.weights = made._solve()
        except (ZeroDivisionError, IndexError, OverflowError) as error:
            raise ValueError(str(error)) from error
        return made


def load(folder: Path, model: str) -> Calibration:
    """What earlier sessions learned of a model; nothing where that cannot be read."""
    path = _path(folder, model)
    try:
        return Calibration.decoded(read_small(path, limit=20_000)[0])
    except FileNotFoundError:
        return Calibration()
    except (OSError, ValueError) as error:
        log.warning("%s is not used: %s", path, error)
        return Calibration()


def save(folder: Path, model: str, kept: bytes) -> None:
    """Keep the `encoded` calibration for the next session. Blocks. Raises StorageError."""
    path = _path(folder, model)
    try:
        replace_file(path, kept)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}.") from error


def _path(folder: Path, model: str) -> Path:
    return folder / "calibration" / f"{safe_name(model)}.json"


def _figures(sample: Sample) -> tuple[float, ...]:
    """What the weights are for: both measures by kind as one, and what is wide in addition."""
    text, wide, *others = map(float, sample)
    return text + wide, wide, *others


def _row(value: Any) -> list[float]:
    row = [float(each) for each in value]
    if len(row) != _SIZE or not all(map(math.isfinite, row)):
        raise ValueError("not what was kept")
    return row
