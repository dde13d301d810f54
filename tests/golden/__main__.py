"""`python -m tests.golden`: renew the corpus, and say by form what changed.

Refuses what may not change without a reason: any line of what is exact (requests, records,
stream-json), and lines of other forms that are gone or changed. With `--lost` it is kept all the
same: say why in the commit. `--look` only says what would change.
"""

from __future__ import annotations

import argparse
import sys

from tests.golden.corpus import Change, changes, keep, made


def _print(one: Change) -> None:
    print(f"\n{one.summary()}{'' if one.allowed else ': needs --lost'}")
    print("\n".join(f"  {line}" for line in one.diff))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--lost", action="store_true", help="keep what is lost or inexact, too")
    parser.add_argument("--look", action="store_true", help="write nothing")
    options = parser.parse_args()
    found = [*changes()]
    for one in found:
        _print(one)
    refused = [one for one in found if not (one.allowed or options.lost)]
    for one in found:
        if one not in refused and not options.look:
            keep(one.form, made(one.form))
    done = "would change" if options.look else "renewed"
    print(f"\n{len(found) - len(refused)} forms {done}, {len(refused)} refused.")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
