"""The keys of keyboards with letters that are not Latin: which Latin letter is in the same place.

With Ctrl or Alt the place of a key counts, not its letter: Ctrl+С on a Russian keyboard is Ctrl+C.
Some terminals say the place; for the others this table does. The rows are those of xkeyboard-config
2.35.1, made by `python -m tests.terminals.layouts`; a space is a key without a letter of its own.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import Final

_LATIN: Final = "1234567890-=qwertyuiop[]asdfghjkl;'`\\zxcvbnm,./"
_ROWS: Final[Mapping[str, str]] = {
    "ru": "            йцукенгшщзхъфывапролджэё ячсмитьбю ",
    "uk": "            йцукенгшщзхїфівапролджє ґячсмитьбю ",
    "be": "            йцукенгшўзх фывапролджэё ячсмітьбю ",
    "bg": "             уеишщксдзц ьяаожгтнвмч  юйъэфхпрлб",
    "sr": "            љњертзуиопшђасдфгхјклчћ жжџцвбнм   ",
    "mk": "            љњертѕуиопшѓасдфгхјклчќ жзџцвбнм   ",
    "kk": " әіңғ  үұқөһйцукенгшщзхъфывапролджэ  ячсмитьбю ",
    "mn": "          ещфцужэнгшүзкъйыбөахролдп  ячёсмитьвю",
    "el": "             ςερτυθιοπ  ασδφγηξκλ    ζχψωβνμ   ",
    "he": "              קראטוןםפ  שדגכעיחלךף   זסבהנמצתץ ",
    "ar": "            ضصثقفغعهخحجدشسيبلاتنمكطذ ئءؤرﻻىةوزظ",
    "fa": "            ضصثقفغعهخحجچشسیبلاتنمکگ  ظطزرذدپو  ",
    "ka": "            ქწერტყუიოპ  ასდფგჰჯკლ    ზხცვბნმ   ",
    "hy": "ֆձ       օէղճփբսմուկըթծցջվգեանիտհպր  ժդչյզլքխշռ",
    "th": "ๅ  ภถ  คตจขชๆไำพะ  รนยบลฟหกดเ  าสวง ฃผปแอ  ทมใฝ",
}
"""The letters in the places of `_LATIN`, by the code of a language."""


def latin(letter: str) -> str:
    """Return what is on a Latin keyboard in the place of a letter, "" if that is not known."""
    return _places(_language()).get(letter, "")


def digit(character: str | None) -> str:
    """Return the ASCII digit for one of any script, such as an input method types; else ""."""
    value = unicodedata.decimal(character, None) if character and len(character) == 1 else None
    return "" if value is None else str(value)


def _language() -> str:
    """Return the code of the person's language, whose keyboard is the likely one."""
    get = os.environ.get
    return (get("LC_ALL") or get("LC_CTYPE") or get("LANG") or "")[:2]


@cache
def _places(language: str) -> Mapping[str, str]:
    """Return the Latin character for each letter; where keyboards differ, `language` decides, then
    the order of the rows."""
    rows = (_ROWS.get(language, ""), *_ROWS.values())
    places: dict[str, str] = {}
    for row in rows:
        for letter, char in zip(row, _LATIN, strict=False):
            if letter != " ":
                places.setdefault(letter, char)
    return places
