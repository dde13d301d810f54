"""A search by words: texts as bags of words, the rarer a word is, the more it says. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

NAME_WEIGHT: Final = 3
"""What a word of a name counts."""
_WORD: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])|[^\W\d_A-Za-z]+")
_K: Final = 1.2
_STEM: Final = 4
"""Letters from which on the beginning of a word finds it."""


def words_in(text: str) -> Iterable[str]:
    """The words of a text, with those that names are made of."""
    return (word.lower() for word in _WORD.findall(text))


class WordIndex:
    """Things by their words, each with how much it counts."""

    def __init__(self, things: Iterable[Counter[str]]) -> None:
        self._things = list(things)
        self._spread = Counter[str]()
        for words in self._things:
            self._spread.update(words.keys())

    def find(self, query: str, most: int) -> Sequence[int]:
        """The places of the things that fit a query best, the best first; none where no word is in
        any."""
        wanted = set(words_in(query))
        scores = [
            (sum(self._score(word, words) for word in wanted), -place)
            for place, words in enumerate(self._things)
        ]
        best = sorted((one for one in scores if one[0] > 0), reverse=True)[:most]
        return [-place for _, place in best]

    def _score(self, wanted: str, words: Counter[str]) -> float:
        """Weigh how much a word of a query says for a thing: the rarer it is, the more."""
        hits = [wanted] if wanted in words else []
        if not hits and len(wanted) >= _STEM:
            hits = [word for word in words if len(word) >= _STEM and _same_stem(word, wanted)]
        return sum(
            math.log(1 + len(self._things) / self._spread[word]) * words[word] / (words[word] + _K)
            for word in hits
        )


def _same_stem(word: str, other: str) -> bool:
    short, long = sorted((word, other), key=len)
    return long.startswith(short)
