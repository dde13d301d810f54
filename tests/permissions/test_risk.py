"""The four tiers of commands (decision 27), as one table each, and what holds for all of them."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui.permissions.risk import ORDER, RiskVerdict, classify

HOME = Path("/home/person")
ROOT = HOME / "work" / "project"
CONFIG = HOME / ".config" / "holdfast"


def judge(command: str, *, cwd: Path | None = None) -> RiskVerdict:
    return classify(command, workspace=ROOT, home=HOME, config=CONFIG, cwd=cwd)


SAFE = r"""
ls
ls -la src
pwd
cat README.md
cat src/*.py
head -n 20 a.txt
tail -5 a.txt b.txt
wc -l src/main.py
rg TODO
rg -n --pretty 'def \w+' src
grep -rn "TODO" src
grep -n '/usr/' src/main.py
git status
git status --short
git diff
git diff HEAD~1 -- src
git log --oneline -n 5
git log --format="%h %s" -n1
git show HEAD:src/main.py
git branch
git branch -a
git branch --list 'feature/*'
git blame src/main.py
git ls-files
git --no-pager diff
git -C src status
git -c color.ui=always diff
git stash list
git config --get user.name
git rev-parse --show-toplevel
git reflog
git tag -l 'v*'
find . -name '*.py'
find src -type f -newer README.md
sed -n '1,20p' src/main.py
sed -n -e '5p' -e '7q' a.txt
sed 's/a/b/g' a.txt
sort a.txt | uniq -c | sort -rn | head
echo hello
echo "$HOME $X"
printf '%s\n' a b
ls | wc -l
ls && pwd; date
ls || true
cd src && ls
cd src && cat ../README.md
cat < README.md
ls > /dev/null
ls 2>&1
ls >/dev/null 2>/dev/stderr
ls &>/dev/null
[ -f README.md ] && echo yes
[[ -d src ]]
if [ -d src ]; then ls src; else pwd; fi
for f in a b; do cat $f; done
case x in y) ls;; esac
(cd src && ls)
{ ls; pwd; }
x=$(pwd); echo "$x"
echo "$(git status)"
cat "$(pwd)/README.md"
cat <<< "text"
cat <<EOF
rm -rf /
