#!/usr/bin/env bash
# msgspec 0.22.0 and basedpyright 1.40.2 (strict): a checker takes a Struct for a dataclass, the
# standard library does not.
#
# Best guesses, written down before the run:
#   1. `dataclasses.replace`, `asdict` and `fields` given a msgspec.Struct are errors of a strict
#      check: they ask for an instance with `__dataclass_fields__`, and a Struct has none.
#   2. Changing a class from a dataclass to a Struct is therefore found wherever it is copied.
#   3. The other way round, `msgspec.structs.replace` given a dataclass is an error of the check.
#
# Seen: the check of the first three says nothing, and each raises TypeError when it runs; only the
# third guess holds. A Struct is declared with `dataclass_transform`, and such a class gets its
# `__dataclass_fields__` from the checker, where no library gives it one.
#
# Who is hurt: whoever moves data from dataclasses to structs under a strict check, call by call.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check "msgspec==0.22.0" "basedpyright==1.40.2" \
  2>/dev/null
cat > "$folder/copies.py" <<'PY'
import dataclasses
from importlib.metadata import version

import msgspec


class Point(msgspec.Struct, frozen=True):
    x: int
    y: int = 0


point = Point(1)


def copies() -> None:
    print(dataclasses.replace(point, x=2))


def dicts() -> None:
    print(dataclasses.asdict(point))


def names() -> None:
    print([field.name for field in dataclasses.fields(point)])


print("msgspec", version("msgspec"), "basedpyright", version("basedpyright"))
for attempt in (copies, dicts, names):
    try:
        attempt()
    except TypeError as error:
        print(f"{attempt.__name__}: TypeError: {error}")
    else:
        raise SystemExit(f"{attempt.__name__} works")
assert msgspec.structs.replace(point, x=2) == Point(2)
PY
cat > "$folder/other_way.py" <<'PY'
import dataclasses

import msgspec


@dataclasses.dataclass(frozen=True)
class Point:
    x: int


def copy(point: Point) -> object:
    return msgspec.structs.replace(point, x=2)
PY
cd "$folder"
"$folder/venv/bin/python" copies.py
check=("$folder/venv/bin/basedpyright" --pythonpath "$folder/venv/bin/python" --level error)
"${check[@]}" copies.py | tee checked.txt
grep -q "^0 errors" checked.txt || { echo "the check sees it now"; exit 1; }
if "${check[@]}" other_way.py; then echo "the other way round passes too"; exit 1; fi
echo "the check passes what fails, and refuses only the other way round"
