"""Every number of REQUIREMENTS.md is borne by the name of a test, or listed here with a reason."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LINE = re.compile(r"^- (?P<number>[KLAORBD]\d+a?): (?P<text>.+)$", re.MULTILINE)
NUMBERS = {
    found["number"]: found["text"]
    for found in LINE.finditer((HERE / "REQUIREMENTS.md").read_text(encoding="utf-8"))
}
COUNTS = {"K": 51, "L": 29, "A": 46, "O": 33, "R": 42, "B": 58, "D": 33}

NOT_BORNE = {
    "K50": "the coverage of a whole area and its documentation: no single test can show it",
    "R42": "the suite as a whole, and the changelog",
}


@cache
def borne() -> frozenset[str]:
    """The numbers in the names of tests, as in `test_K15_K16_a_name`; decisions as in
    "decision 27" of a docstring."""
    numbers: set[str] = set()
    for path in HERE.rglob("test_*.py"):
        source = path.read_text(encoding="utf-8")
        for name in re.findall(r"def (test_\w+)", source):
            numbers |= {part for part in name.split("_") if part in NUMBERS}
        numbers |= {f"D{found}" for found in re.findall(r"[Dd]ecision (\d+)", source)}
    return frozenset(numbers)


def test_every_number_has_its_line() -> None:
    groups = [number[0] for number in NUMBERS]
    assert {group: groups.count(group) for group in COUNTS} == COUNTS


@pytest.mark.parametrize("number", NUMBERS)
def test_a_test_bears_the_number(number: str) -> None:
    if number in NOT_BORNE:
        assert number not in borne(), "take it out of NOT_BORNE"
    elif number not in borne():
        assert number.startswith("D"), f"no test is named test_{number}_…"
        carried = re.findall(r"[KLAORB]\d+a?", NUMBERS[number].rpartition("(")[2])
        assert carried
        assert set(carried) <= borne()
