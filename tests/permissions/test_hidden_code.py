"""A risky command is marked wherever bash runs it: in words, indexes, here-documents, functions.

Real bash decides what is run: a harmless program by the same name is first on its PATH (5.2.15).
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import pytest

from tests.permissions.test_risk import judge

HERE = Path(__file__).parent
SIMPLE = "git push --force"
SPELLINGS = r"""
git push --force
git push -f
rm -rf build
rm -r -f build
rm -fr -- build
rm --recursive build
command git push --force
builtin command git push --force
env git push --force
env -i git push --force
env A=b git push --force
nice git push --force
nohup git push --force
timeout 5 git push --force
\git push --force
g\it push --force
git pu\sh --force
git -c a.b=c push --force
git --no-pager push --force
git -C . push --force
A=b git push --force
A=b B=c git push --force
A[1]=b git push --force
git	push	--force
  git   push   --force
>/dev/null git push --force
> /dev/null git push --force
2>&1 git push --force
</dev/null git push --force
git push --force >/dev/null 2>&1
! git push --force
time git push --force
time -p git push --force
true && git push --force
false || git push --force
true; git push --force
true | git push --force
git push --force | true
git push --force & wait
{ git push --force; }
(git push --force)
if git push --force; then :; fi
while git push --force; do break; done
for x in 1; do git push --force; done
{git,push,--force}
git {push,--force}
${x:-git} push --force
git ${x:-push} --force
${x:-git push --force}
eval git push --force
f() { git push --force; }; f
f() { git "$@"; }; f push --force
x=git; $x push --force
x=push; git $x --force
x=(git push --force); "${x[@]}"
git push ⏎ true
true ⏎ git push --force
gi\⏎t push --force
git push \⏎ --force
true # comment ⏎ git push --force
true #\⏎git push --force
g''it push --force
g""it push --force
"git" push --force
'git' push --force
$'git' push --force
$'\x67it' push --force
$'\147it' push --force
git 'push' --force
xargs git push --force < /dev/null
find . -maxdepth 0 -exec git push --force \;
exec git push --force
[[ a ]] && git push --force
(( 1 )) && git push --force
case x in x) git push --force;; esac
"""
CONTEXTS = r"""
R
echo $(R)
echo `R`
echo "$(R)"
echo "`R`"
echo ${y:-$(R)}
echo ${y:-`R`}
echo "${y:-$(R)}"
echo "${y:-`R`}"
echo ${y:-${z:-`R`}}
echo ${y-"`R`"}
echo ${y:=`R`}
y=1; echo ${y:+`R`}
y=1; echo ${y#`R`}
y=1; echo ${y#$(R)}
y=1; echo ${y%%$(R)}
y=1; echo ${y/`R`/b}
y=1; echo ${y/1/$(R)}
y=1; echo ${y^^$(R)}
y=1; echo ${y:$(R)}
echo `echo ${y:-$(R)}`
echo "$(echo "$(R)")"
echo $(echo `R`)
echo $[ $(R) ]
echo $(( $(R) ))
echo $(( a[$(R)] ))
(( a[$(R)] = 1 ))
a[$(R)]=1
a[`R`]=1
a[${y:-`R`}]=1
a=( $(R) )
a=( [$(R)]=1 )
a=( [`R`]=1 )
a+=( `R` )
declare a[$(R)]=1
declare -A a=( [$(R)]=1 )
echo ${a[$(R)]}
echo ${a[`R`]}
echo ${#a[$(R)]}
let 'a[$(R)]=1'
let "a[\$(R)]=1"
declare 'a[$(R)]=1'
printf -v 'a[$(R)]' x
read 'a[$(R)]' <<< x
read -a 'a' <<< "$(R)"
test -v 'a[$(R)]'
[ -v 'a[$(R)]' ]
[[ -v a[$(R)] ]]
[[ -v 'a[$(R)]' ]]
[[ 'a[$(R)]' -eq 0 ]]
unset 'a[$(R)]'
x='a[$(R)]'; echo $((x))
x='a[$(R)]'; [[ x -eq 1 ]]
x='a[$(R)]'; y=abc; echo ${y:x}
x='a[$(R)]'; echo ${!x}
declare -i x='a[$(R)]'
x='$(R)'; echo "${x@P}"
x='`R`'; echo ${x@P}
PS4='$(R)'; set -x; true
PS4='$(R)' bash -xc true
BASH_ENV=<(echo 'R') bash -c :
mapfile -C 'R #' -c 1 a <<< x
readarray -c 1 -C 'R #' a <<< x
trap 'R' EXIT
trap -- 'R' EXIT
trap "R" EXIT
compgen -W '$(R)'
compgen -C 'R' x
coproc { R; }; wait
coproc N { R; }; wait
coproc N ( R ); wait
coproc R; wait
coproc N if R; then :; fi; wait
coproc N { { R; }; }; wait
echo $(coproc N { R; }; wait)
cat <(R)
cat < <(R); sleep 0.05
echo x > >(R); sleep 0.05
cat <<< $(R)
cat <<< "`R`"
cat <<END ⏎ $(R) ⏎ END
cat <<END ⏎ `R` ⏎ END
cat <<END ⏎ ${y:-$(R)} ⏎ END
cat <<END ⏎ ${y:-`R`} ⏎ END
cat <<END ⏎ $(( a[$(R)] )) ⏎ END
cat <<-END ⏎ 	`R` ⏎ 	END
cat <<'A' <<B ⏎ x ⏎ A ⏎ `R` ⏎ B
cat <<'E' ⏎ x ⏎ E ⏎ R
bash <<END ⏎ R ⏎ END
bash <<'END' ⏎ R ⏎ END
bash <<< 'R'
bash -c 'R'
sh -c "R"
echo 'R' | bash
source <(echo 'R')
. /dev/stdin <<< 'R'
eval 'R'
eval "R"
eval $'R'
eval "$(echo 'R')"
case $(R) in x) ;; esac
case x in $(R)) ;; esac
case x in `R`) ;; esac
case x in x) R;; esac
case x in x) true;& y) R;; esac
echo $(case x in x) R;; esac)
echo $(case x in (x) R;; esac)
echo `case x in x) R;; esac`
for x in `R`; do :; done
for ((i=$(R)0; i<0; i++)); do :; done
for ((i=0; i<1; i++)); do R; done
for ((i=0; i<1; i++)) { R; }
select x in 1; do R; break; done <<< 1
until R; do break; done
while read x; do R; done <<< 1
f() { R; }; f
f() ( R ); f
function f { R; }; f
function f() if R; then :; fi; f
f() for x in 1; do R; done; f
function a.b { R; }; a.b
f() { R; } > /dev/null; f
shopt -s extglob ⏎ case x in @(x|$(R))) ;; esac
shopt -s expand_aliases ⏎ alias x='R' ⏎ x
if [[ x == $(R) ]]; then :; fi
[[ x =~ `R` ]]
[ "`R`" ]
export x=`R`
local=1; readonly y=$(R)
true > $(R)/dev/null
true 2> `R`/dev/null
exec 3< <(R); sleep 0.05
x=`R` true
x+=`R`
! { R; }
time { R; }
(cd / && R)
true "$(true; R)"
true ${y:-$(true; R)}
true "${y:-`true; R`}"
echo "a`echo "\`R\`"`"
echo `a[\$(R)]=1`
"$(R)"
$(R)
"`R`"
"""
ALONE = r"""
alias g=git; shopt -s expand_aliases ⏎ alias g=git ⏎ g push --force
shopt -s expand_aliases ⏎ alias g='git push' ⏎ g --force
hash -p ../bin/git g; g push --force
f() { "$1" push "$2"; }; f git --force
PROMPT_COMMAND='git push --force' bash --norc -i < /dev/null
"""
HARMLESS = r"""
git commit -m 'Say what `git push --force` does'
git commit -m 'Use $(rm -rf build) with care'
echo 'rm -rf build' > notes.txt
cat > a.md <<'END' ⏎ Run `rm -rf build`. ⏎ END
python3 -c 'print("`git push`")'
echo "a \`b\` c"
x=$(date); echo "$x" > made
for f in *.py; do python3 "$f"; done
ls "$(git rev-parse --show-toplevel)"
echo $((1 + 2)) ${x:-y} "${a[0]}"
diff <(sort a) <(sort b)
"""


def lines(table: str) -> list[str]:
    return [line.replace(" ⏎ ", "\n").replace("⏎", "\n") for line in table.strip("\n").split("\n")]


def pairs(contexts: Iterable[str], spellings: Iterable[str]) -> list[str]:
    return [context.replace("R", spelling) for context, spelling in product(contexts, spellings)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("stand-ins")
    for name in ("git", "rm"):
        program = made / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho {name} > {made}/ran\n")
        program.chmod(0o755)
    return made


def is_run(command: str, folder: Path) -> bool:
    """Whether bash runs the stand-in."""
    work, ran = folder / "work", folder / "ran"
    work.mkdir(exist_ok=True)
    environment = {"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": str(work), "LANG": "C.UTF-8"}
    subprocess.run(
        [shutil.which("bash") or "bash", "-c", command],
        cwd=work, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False,
        timeout=30,
    )  # fmt: skip
    found = ran.exists()
    ran.unlink(missing_ok=True)
    shutil.rmtree(work)
    return found


def missed(commands: Iterable[str], folder: Path) -> list[str]:
    """The commands that are not marked though bash runs what is risky in them."""
    return [c for c in commands if not judge(c).named and is_run(c, folder)]


def test_what_runs_in_any_place_is_marked(folder: Path) -> None:
    commands = pairs(lines(CONTEXTS), [SIMPLE])
    run = [command for command in commands if is_run(command, folder)]
    assert len(run) > len(commands) * 0.95
    assert [command for command in run if not judge(command).named] == []


def test_what_runs_in_any_spelling_is_marked(folder: Path) -> None:
    places = ["R", 'echo "${y:-`R`}"', "coproc N { R; }; wait", "cat <<END\n`R`\nEND"]
    assert missed(pairs(places, lines(SPELLINGS)), folder) == []
    assert missed(lines(ALONE), folder) == []


@pytest.mark.slow
def test_every_spelling_in_every_place_is_marked(folder: Path) -> None:
    """Or said to be unseen, as a text that another shell expands (`bash <<< '{git,push}'`)."""
    commands = pairs(lines(CONTEXTS), lines(SPELLINGS))
    found = missed(commands, folder)
    assert len(found) < len(commands) / 100
    assert [one for one in found if not any(part.unseen for part in judge(one).parts)] == []
    assert {judge(one).risk for one in found} <= {"high-risk", "blocked"}


@pytest.mark.parametrize("command", lines(HARMLESS))
def test_what_is_only_text_is_not_marked(command: str) -> None:
    assert not judge(command).named


@pytest.mark.parametrize(
    "part",
    ["\\", "`", "$(", "#", "'", '"', "a[", "${x:-", "git ", "rm -rf ", "$'", "{a,", "<<E\n",
     "coproc ", "f() { g; }; f x; ", "alias a=b; a; ", "${x:y}", "#\\\n", "((", "'`'"],
)  # fmt: skip
def test_no_text_takes_long(part: str) -> None:
    for text in (part * (131_000 // len(part)), f"let x; `{part * (131_000 // len(part))}"):
        begun = time.thread_time()
        judge(text)
        assert time.thread_time() - begun < 1.0, text[:20]
