"""What runs without a question, and what an allow rule covers: tables, judged through the gate.

Only `-p` really runs some of them, see tests/e2e/test_plain_commands.py.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.permissions.test_policy import command
from tui.core.workspace import Workspace
from tui.permissions.gate import Gate
from tui.permissions.plain_command import MOST_CHARS, parse
from tui.permissions.policy import Policy
from tui.permissions.types import Decision, Mode


def lines(table: str) -> list[str]:
    """One command a line; `⏎` stands for a newline, `⇥` for a tab."""
    return [line.replace("⏎", "\n").replace("⇥", "\t") for line in table.strip().split("\n")]


class World:
    """A project below a home with secrets, and links that lead to them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / "project"
        (self.root / "src" / "deep").mkdir(parents=True)
        (self.root / "a").write_text("1\n")
        (self.root / "a.txt").write_text("1\n")
        (home / "secrets" / "below").mkdir(parents=True)
        (home / "secrets" / "key").write_text("s3cret\n")
        (self.root / "link").symlink_to(home / "secrets" / "below")
        (self.root / "key.txt").symlink_to(home / "secrets" / "key")

    def decide(
        self, text: str, *, allow: tuple[str, ...] = (), mode: Mode = "ask", cwd: str = ""
    ) -> Decision:
        made = Policy.of(allow=allow, private=[self.home / "config"])
        policy = Policy(allow=made.allow, home=self.home, private=made.private)
        workspace = Workspace.at(self.root, ceiling=self.home)
        return Gate(policy).decide(
            command(text, cwd), mode=mode, elevated=False, workspace=workspace
        )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("home"))


LOOKS = r"""
ls
ls -la
ls -lah src
ls -1 src src/deep
ls -R src
ls --color=never -t
ls && pwd; date
ls | wc -l
ls nothing 2>/dev/null
ls nothing 2> /dev/null || true
ls 2>&1 | head -5
ls >/dev/null 2>&1 && echo there
cat a a.txt
cat -n a | head -20
cat a 2>&1
cat 'a'
cat "a.txt"
cat ./src/../a
head -n 20 a
head -20 a
head -c 100 a.txt
head -n20 a
head --lines=3 a
tail -n 5 a
tail -5 a a.txt
tail -n +3 a
wc -l a
wc -lc a a.txt
nl -ba a
sort a | uniq -c | sort -rn | head
sort -k2,2 -t: -u a
sort -t , -k 3 a
uniq -c a
cut -d: -f1 a
cut -d , -f 2 a
tr a-z A-Z
rg foo
rg -n foo src
rg -n 'foo bar' src | head -50
rg -in --hidden -g '*.py' "def main" src
rg -l TODO -t py
rg --type=md --files-with-matches Install
rg --files src
rg --files -g '*.py' | wc -l
rg -A3 -B 2 -C1 foo
rg -e foo -e bar src
rg '/api/users' src
grep -rn "x y" src | head -50
grep -rn --include='*.py' TODO .
grep -rn --include "*.py" --exclude-dir=node_modules "import os" src
grep -c . a
grep -5 x a
grep -e '-x' a
grep -inE 'a|b' a
grep '../x' a
find . -name x
find . -name '*.py' -not -path './.git/*'
find src -maxdepth 2 -type f
find . -type f -size +10k -mtime -2 | sort
find src -name 'a' -o -name 'b' -print
tree -L 2
tree -a -I .git src
du -sh src
du -h -d 1 .
stat a
stat -c %s a
file a
file -b --mime-type a
basename src/a.py .py
dirname src/a.py
which python
date
date +%F
date '+%Y-%m-%d %H:%M'
date -u
echo hello
echo "--- the files ---" && ls
echo -n a; echo b
pwd
true
false || echo no
sleep 0.1
sed -n '1,20p' a
sed -n 5p a
sed -n '1,5p; 9p' a
cd src && ls
cd src && cat ../a
cd src/deep && ls -la && pwd | cat
cd src && rg foo | head
git --version
git status
git status -sb
git status --short --branch
git status --porcelain=v1 -uno
git --no-pager log --oneline -5
git log
git log -p -2 -- src
git log --oneline -n 20 --graph --all
git log --format='%h %an %s' --since='2 weeks ago'
git log -S foo --oneline
git log -L 1,5:a
git log main..HEAD
git diff
git diff --stat
git diff --cached
git diff HEAD~1 -- src
git diff HEAD^ HEAD
git diff main...HEAD --name-only
git diff -U10 --ignore-all-space
git show
git show HEAD:src/a.py
git show --stat HEAD~2
git show 'stash@{0}'
git blame -L 1,10 a
git branch
git branch -a
git branch -vv
git branch --show-current
git branch --list 'feature/*'
git tag
git tag -l 'v1.*'
git remote -v
git remote get-url origin
git rev-parse HEAD
git rev-parse --show-toplevel
git rev-parse --abbrev-ref HEAD
git ls-files
git ls-files -o --exclude-standard
git ls-tree -r --name-only HEAD
git describe --tags --always
git shortlog -sn
git merge-base main HEAD
git cat-file -p HEAD
git rev-list --count HEAD
git stash list
git worktree list
git reflog -5
"""

ATTACKS = r"""
ls # x \⏎touch y
# nothing
bash ./x.sh -c ls
${SHELL:-ls} -c 'touch y'
x=touch; false && x=ls; $x y
export "PATH=./bin:$PATH"; ls
export PATH=./bin; ls
test -v 'a[$(touch y)]'
[ -v 'a[$(touch y)]' ]
[[ -v a[$(touch y)] ]]
jobs -x touch y
env --split='touch y' ls
env -S 'touch y'
env touch y
env
printenv
/usr/bin/time -f line -a -o out true
time -o out ls
git -C bare status
git -c core.fsmonitor=./evil status
git --git-dir=bare status
git --work-tree=/ status
git --exec-path=. status
git --config-env=core.pager=PAGER log
git -p log
ps -p $PPID e
ps e
ps -eo args,environ
cat link/../key
cat link/x
cat key.txt
cat *.txt
cat key.tx?
cat [k]ey.txt
cat {a,key.txt}
cat ../secrets/key
cat src/../../secrets/key
cat ~/secrets/key
cat ~root/x
cat $HOME/x
cat "$HOME/x"
cat < key.txt
cat <<< x
cat <<E⏎x⏎E
head -n 1 /etc/passwd
tail -n1 -- ../secrets/key
grep -r x ..
grep -R x .
grep --dereference-recursive x .
grep -f key.txt a
grep -fkey.txt a
grep -e x ../secrets/key
grep x a ../secrets/key
grep --regexp=x ../secrets/key
rg --pre ./evil x
rg --pre=./evil x
rg -L x
rg --follow x
rg -z x
rg --hostname-bin ./evil x
rg -f key.txt
rg --ignore-file=key.txt x
rg --files ..
rg -e x ..
rg --fil ../secrets x
sort -o out a
sort -oout a
sort -uo out a
sort --output=out a
sort --outp out a
sort --compress-program=./evil a
sort --files0-from=a
sort -T . a
uniq a out
uniq -c a out
tree -o out
tree -ao out
tree -R -H . -o out
tree -l
date -s 2020-01-01
date --set=2020-01-01
date 010100002020
date -f key.txt
date -r key.txt
find . -delete
find . -name x -exec rm {} +
find . -exec touch y ';'
find . -execdir touch y ';'
find . -ok touch y ';'
find . -fprint out
find . -fprintf out %p
find . -fls out
find -L . -name x
find . -follow
find .. -name x
find / -name x
find link/ -name x
find . -files0-from a
ls | xargs touch
ls | tee out
tee out
ls > out
ls >> out
ls >| out
ls 2> out
ls &> out
ls >& out
ls 1<> out
ls > /dev/tcp/127.0.0.1/9
ls 2>&1x
ls > /dev/nullx
ls > /dev/null x
cat a > /dev/null/../../x
echo a>out
echo a 2>out
ls &
ls & touch y
ls |& tee out
ls;touch y
ls ; ; ls
ls &&
| ls
;
(touch y)
(ls)
{ ls; }
! ls
!ls
if ls; then ls; fi
for f in a; do cat a; done
while true; do ls; done
time ls
coproc ls
function ls { touch y; }
ls() { touch y; }; ls
alias ls=touch; ls y
eval ls
command ls
builtin cd ..
exec ls
source a
. a
trap ls EXIT
hash -p ./evil ls; ls
enable -f ./evil.so ls
set -x
shopt -s expand_aliases
unset PATH
read x
printf -v PATH .
mapfile x
PATH=. ls
A=1 ls
A=1
a+=1 ls
LD_PRELOAD=./x.so ls
'A=1' ls
ls $(touch y)
ls `touch y`
ls "$(touch y)"
ls "`touch y`"
ls <(touch y)
ls $((1))
ls ${x}
ls $x
ls 'a\b'
ls "a\b"
ls a\ b
ls \⏎-la
ls $'a'
ls $"a"
ls⏎touch y
ls⇥-la
ls 'a⏎b'
'ls'
l's'
"cat" a
/bin/ls
./ls
bin/cat a
../x
/tmp/ls
sh -c ls
bash -c ls
sh a
python -c x
python --version
node -e x
perl -e x
awk '{print}' a
awk 'BEGIN{system("touch y")}'
sed -n '1w out' a
sed -n '1e touch y' a
sed -n 1,5p -i a
sed -ni 1p a
sed -i s/a/b/ a
sed s/a/b/w out
sed -n -f a a
sed -n 1p ../secrets/key
sed a
sed -n
sed -n -
sort -k --output a
sort -tsrc/a a
find . -name -exec touch y
find -maxdepth -exec
rg -g-z x
rg -A -z x
grep -A 3 /etc x
basename /etc/x
git
xxd -r a out
jq -n env
less a
more a
man ls
vi a
diff a key.txt
diff -r src link
cmp a key.txt
file -f key.txt
file -m key.txt a
file -C -m x
file -z a
stat ../secrets/key
ls ..
ls ../secrets
ls /
ls link
ls link/
du -L .
wc --files0-from=a
wc -l ../secrets/key
cd .. && ls
cd ..
cd
cd - && ls
cd link && cat key
cd link/.. && cat key
cd src/.. && ls
cd src; cat a
cd src || cat a
cd src && cd deep && ls
ls && cd src && ls
cd src | cat ../a
cd src && cat ../../secrets/key
cd -P src && ls
cd src && ls || cat ../a
pushd src && ls
make
pytest
npm test
kill 1
touch y
mkdir y
rm a
cp a b
mv a b
ln -s / x
chmod +x a
curl http://127.0.0.1
ssh x
nc -l 1
git push
git commit -m x
git add .
git checkout main
git stash
git stash show -p
git stash pop
git branch new
git branch -d x
git branch -D x
git branch -m x
git branch --edit-description
git branch -u x
git branch -v new
git branch --list x -d
git tag v1
git tag -d v1
git tag -l v1 -d
git tag -a v1 -m x
git remote add x y
git remote update
git remote show origin
git remote get-url --add origin x y
git fetch
git pull
git worktree add ../x
git worktree prune
git reflog expire --all
git config --get user.name
git config -l
git config alias.x '!touch y'
git diff --output=out
git diff --outp=out
git diff --ext-diff
git diff --textconv
git diff --no-index a ../secrets/key
git diff /dev/null ../secrets/key
git diff -- ../secrets/key a
git diff --submodule=log
git diff -O key.txt
git diff -Okey.txt
git log --output=out
git log --show-signature
git log --format='%G?'
git log --pretty='%h %+GK'
git log --remerge-diff
git log --textconv
git show --output=out
git show --ext-diff
git show --textconv HEAD:a
git blame --contents ../secrets/key a
git blame -S key.txt a
git blame --ignore-revs-file=key.txt a
git grep x
git grep -O./evil x
git cat-file --batch-all-objects --batch
git cat-file --textconv HEAD:a
git cat-file --filters HEAD:a
git ls-files -X key.txt
git archive HEAD
git bisect run ./evil
git rebase -x ./evil
git submodule status
git status | sh
git help -w x
git var GIT_EDITOR
git 'branch --list' x -D
git statusx
git
gitx status
"""

INHERITS = r"""
pytest > ~/.bashrc
pytest > out
pytest >> conftest.py
pytest 2> out
pytest &> out
pytest < key.txt
pytest # x \⏎touch y
pytest⏎touch y
pytest; touch y
pytest && touch y
pytest || touch y
pytest | sh
pytest | tee out
pytest |& tee out
pytest & touch y
pytest $(touch y)
pytest `touch y`
pytest "$(touch y)"
pytest <(touch y)
pytest "`touch y`"
pytest $x
pytest ${x:=y}
pytest *.py
pytest {a,b}
pytest ~/x
pytest a\ b
PATH=. pytest
PYTEST_ADDOPTS=-x pytest
env PATH=. pytest
export PATH=.; pytest
pytest() { touch y; }; pytest
alias pytest=touch; pytest y
time -o out pytest
timeout 9 pytest
nice pytest
command pytest
eval pytest
sh -c pytest
xargs pytest
sudo pytest
pytest/../evil
pytest/evil
pytest-dir/../../evil
./pytest
/usr/bin/pytest
bin/pytest
'pytest' x
py"test"
if pytest; then touch y; fi
for x in a; do pytest; done
while pytest; do touch y; done
! pytest
( pytest )
{ pytest; }
coproc pytest
cd .. && pytest
cd link && pytest
cd $x && pytest
pushd src && pytest
pytest && cat key.txt
pytest && cat ../secrets/key
pytest && git push
pytest && sort -o out a
"""


@pytest.mark.parametrize("text", lines(LOOKS))
def test_an_everyday_look_needs_no_question(world: World, text: str) -> None:
    for mode in ("ask", "plan"):
        decision = world.decide(text, mode=mode)
        assert (decision.answer, decision.by) == ("allow", "safe"), decision


@pytest.mark.parametrize("text", lines(ATTACKS))
def test_what_is_not_plain_does_not_run_without_a_question(world: World, text: str) -> None:
    assert world.decide(text).answer != "allow"
    assert world.decide(text, mode="plan").answer == "deny"


@pytest.mark.parametrize("text", lines(INHERITS))
def test_no_rule_covers_what_is_not_plain(world: World, text: str) -> None:
    assert world.decide(text, allow=("run_command(pytest*)",)).answer != "allow"
    assert world.decide(text, allow=("run_command(pytest *)",)).answer != "allow"


@pytest.mark.parametrize(
    "text",
    [
        "pytest",
        "pytest -q 'tests/a b' -k \"x and y\"",
        "pytest 2>&1 | tail -20",
        "cd src && pytest -x",
        "ls; pytest >/dev/null || echo failed",
        "pytest-3 -q",
    ],
)
def test_a_rule_covers_its_program_in_plain_words(world: World, text: str) -> None:
    decision = world.decide(text, allow=("run_command(pytest*)",))
    assert (decision.answer, decision.by) == ("allow", "run_command(pytest*)")


@pytest.mark.parametrize(
    ("rule", "text", "allowed"),
    [
        ("./scripts/*", "./scripts/run.sh -x", True),
        ("./scripts/*", "./scripts/../evil.sh", False),
        ("./scripts/*", "./scripts/sub/evil.sh", False),
        ("./*/run.sh", "./../run.sh", False),
        ("./run.sh *", "./run.sh", True),
        ("./run.sh *", "run.sh", False),
        ("*test*", "./pytest", False),
        ("*test*", "pytest -q", True),
        ("/usr/bin/make *", "/usr/bin/make all", True),
        ("/usr/bin/make *", "make all", False),
        ("npm run *", "npm run build", True),
        ("npm run *", "npm exec run build", False),
        ("cd *", "cd .. && cat secrets/key", False),
        ("timeout *", "timeout 9 ls", True),
        ("timeout *", "timeout 9 pytest", False),
        ("env *", "env PATH=. ls", False),
        ("env *", "env --split='touch y' ls", False),
        ("sh -c *", "sh -c 'PATH=. ls'", False),
        ("git *", "git reflog -n 5", True),
    ],
)
def test_a_rule_says_which_program_and_where(
    world: World, rule: str, text: str, allowed: bool
) -> None:
    decision = world.decide(text, allow=(f"run_command({rule})",))
    assert (decision.answer == "allow") is allowed


def test_every_part_needs_a_rule_of_its_own(world: World) -> None:
    rules = ("run_command(ruff *)", "run_command(pytest *)")
    assert world.decide("ruff check && pytest -q", allow=rules).answer == "allow"
    assert world.decide("ruff check && pytest -q && make", allow=rules).answer == "ask"


def test_a_rule_without_wildcards_allows_its_very_text(world: World) -> None:
    text = "for f in *.py; do wc -l $f; done"
    assert world.decide(text, allow=(f"run_command({text.replace('*', '[*]')})",)).answer == "allow"
    assert world.decide(text + " ; ls", allow=(f"run_command({text})",)).answer == "ask"
    assert world.decide(text, allow=("run_command", "run_command(*)", "*")).answer == "ask"


@pytest.mark.parametrize(
    ("rule", "text", "denied"),
    [
        ("git push*", "git $x", True),
        ("git push*", "for r in a b; do GIT pu'sh' $r; done", True),
        ("git push*", "git commit -m 'it pushes'", False),
        ("git push*", "echo $x", False),
        ("git push*", "echo digits > x", False),
        ("make*", "gmake-all $x", False),
        ("make*", "makefoo $x", True),
        ("make *", "makefoo $x", False),
        ("./deploy.sh*", "cd x; bash deploy.sh $y", True),
        ("make", "make $x", True),
    ],
)
def test_what_cannot_be_read_matches_a_deny_rule_whose_program_it_names(
    world: World, rule: str, text: str, denied: bool
) -> None:
    policy = Policy.of(deny=[f"run_command({rule})"])
    workspace = Workspace.at(world.root, ceiling=world.home)
    decision = Gate(policy).decide(command(text), mode="ask", elevated=True, workspace=workspace)
    assert (decision.answer == "deny") is denied, decision


def test_a_folder_that_is_named_is_the_one_that_paths_begin_in(world: World) -> None:
    assert world.decide("cat ../a", cwd="src").answer == "allow"
    assert world.decide("cat ../a").answer == "ask"
    assert world.decide("cat ../../secrets/key", cwd="src").answer == "ask"


def test_added_folders_are_read_too_and_the_programs_own_are_not(tmp_path: Path) -> None:
    world = World(tmp_path)
    secrets = tmp_path / "secrets"
    private = tmp_path / "config"
    policy = Policy.of(private=[private])

    def by(text: str, workspace: Workspace) -> str:
        return (
            Gate(policy).decide(command(text), mode="ask", elevated=False, workspace=workspace).by
        )

    wide = Workspace.at(world.root, extra=(secrets,), ceiling=tmp_path)
    assert by("cat key.txt", wide) == by(f"cat {secrets}/key", wide) == "safe"
    home = Workspace.at(tmp_path, ceiling=tmp_path)
    assert by("cat project/a", home) == by("ls", home) == by("rg x project", home) == "safe"
    assert by("cat config/x", home) != "safe"
    for text in ("rg x", "grep -r x .", "find . -name x", "cd project && rg x ..", "rg -A 3 x"):
        assert by(text, home) == "default", text
    for text in ("find -name x", "rg -e x", "rg --files -g x", "tree -L 2", "du -d 1"):
        assert by(text, home) == "default", text


def test_the_reason_says_what_is_not_plain(world: World) -> None:
    assert world.decide("ls *").reason == "What it reads or changes is only known when it runs."
    assert world.decide("jq . a").reason == "`jq` may do more than read, as far as Holdfast knows."
    reason = world.decide("cat key.txt").reason
    assert reason == "It reads key.txt, outside the workspace."
    os.mkfifo(world.root / "pipe")
    for text in ("cat pipe", "cat ./pipe | wc -l", "head -n 1 pipe"):
        decision = world.decide(text)
        assert decision.answer == "ask"
        assert decision.reason.endswith("pipe, a pipe, socket or device.")
    denied = Policy.of(deny=["run_command(git push*)"])
    workspace = Workspace.at(world.root, ceiling=world.home)
    decision = Gate(denied).decide(
        command("git log $x"), mode="ask", elevated=True, workspace=workspace
    )
    assert "the command may run that program" in decision.reason


def test_a_long_command_is_decided_at_once(world: World) -> None:
    assert world.decide("echo " + "x" * (MOST_CHARS - 5)).answer == "allow"
    assert world.decide("echo " + "x" * (MOST_CHARS - 4)).answer == "ask"
    started = time.monotonic()
    for text in ("x" * 400_000, "echo a; " * 50_000, "ls 'a' | " * 40_000, "$((" * 130_000):
        decision = world.decide(text, allow=("run_command",))
        assert (decision.answer, decision.by) == ("deny", "blocked")
    assert time.monotonic() - started < 1


@settings(max_examples=300)
@given(st.text(alphabet="ab '\"\\$`;|&><#~*=\n()-/!{}2", max_size=20))
def test_a_line_in_plain_words_has_nothing_that_a_shell_expands(text: str) -> None:
    line = parse(text)
    if line is not None:
        assert not set(text) & set("$`\\\n")
        assert all(one.words and one.words[0] for one in line)


def test_the_words_of_a_line(world: World) -> None:
    line = parse("cd  a && grep -e 'x y' \"it's\" 2>&1 | head -n5 >/dev/null")
    assert line is not None
    assert [one.words for one in line] == [
        ("cd", "a"),
        ("grep", "-e", "x y", "it's"),
        ("head", "-n5"),
    ]
    assert [one.text for one in line] == ["cd a", "grep -e 'x y' \"it's\"", "head -n5"]
    assert [one.joint for one in line] == ["&&", "|", ""]
