#!/usr/bin/env bash
# pytest 8.4.2 (with Python 3.11 or newer): the n-th test that takes tmp_path reads the names of the
# folders of all n - 1 before it, so that a suite's folders cost the square of its tests.
#
# Best guesses, written down before the run:
#   1. A test's folder is made by its name; only tests of the same name have to look for a number.
#   2. So twice the tests read at most about twice as many names of folders.
#
# Seen: twice the tests, all of different names, read four times as many names. For each folder the
# whole parent is listed to find the next free number behind the test's name. With 400 tests
# over 150,000 names are read; 12,000 would read over a hundred million.
#
# Who is hurt: large suites whose tests are fast; nearly half of the time of 2,000 empty tests was this.
# A fixture of one's own that counts the names itself, and asks for `mktemp(…, numbered=False)`,
# costs the same for each test.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check "pytest==8.4.2" 2>/dev/null
mkdir "$folder/suite"
cat > "$folder/suite/conftest.py" <<'PY'
"""Counts the names that are read from folders below the base of tmp_path while the tests run."""
import os
from pathlib import Path

import pytest

count, listing = 0, os.scandir


class Counted:
    def __init__(self, entries):
        self.entries = entries

    def __iter__(self):
        global count
        for entry in self.entries:
            count += 1
            yield entry

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.entries.close()

    def close(self):
        self.entries.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    os.scandir = lambda path=".": Counted(listing(path))
    try:
        return (yield)
    finally:
        os.scandir = listing


def pytest_sessionfinish():
    Path(os.environ["COUNT"]).write_text(str(count))
PY
names() { # how many names are read for so many tests
  python3 - "$1" > "$folder/suite/test_many.py" <<'PY'
import sys

for number in range(int(sys.argv[1])):
    print(f"def test_{number:05d}_of_many(tmp_path): pass")
PY
  rm -rf "$folder/base"
  COUNT="$folder/count" "$folder/venv/bin/pytest" -q -p no:cacheprovider \
    --basetemp "$folder/base" "$folder/suite" > /dev/null
  cat "$folder/count"
}
cd "$folder"
"$folder/venv/bin/pytest" --version
one=$(names 100) two=$(names 200) four=$(names 400)
echo "names read for 100, 200, 400 tests: $one, $two, $four"
test $((two * 10)) -gt $((one * 36)) && test $((four * 10)) -gt $((two * 36))
echo "twice the tests read four times as many"
