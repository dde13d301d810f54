"""A rule that forbids a command forbids it however it is written, and whatever runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.core.workspace import Workspace
from tui.permissions.policy import Policy, decide
from tui.permissions.types import Call

SPELLINGS = r"""
git push origin main
/usr/bin/git push
git  push
git -C . push
git -c a.b=c push
git --git-dir=.git push
git --git-dir .git push
git --exec-path=/x push
git -p push
git --no-pager push
git --literal-pathspecs push
git --list-cmds=x push
git -c alias.p=push p
git -c alias.p='push origin' p x
git -c "alias.p=!git push" p
git -c alias.p='!f() { git push; }; f' p
git -c ALIAS.P=push p
git -c alias.p='!sh -c "git push"' p
git -c alias.a=b -c alias.b=push a
git --config-env=alias.p=X p
git --config-env alias.p=X p
X=push git --config-env=alias.p=X p
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0=push git p
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0=push; git p
env GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0=push git p
GIT_CONFIG_PARAMETERS="'alias.p'='push'" git p
GIT_CONFIG_GLOBAL=/tmp/x git p
GIT_CONFIG=/tmp/x git p
HOME=/tmp/x git p
XDG_CONFIG_HOME=/tmp/x git p
git -c include.path=/tmp/x p
git -c include.path=x status
GIT_EXEC_PATH=/tmp/x git p
env git push
env -i git push
env -u A git push
env A=b git push
env -S 'git push'
env --split-string='git push'
env -C . git push
env -- git push
command git push
command -p git push
builtin command git push
exec git push
exec -a x git push
nohup git push
setsid git push
setsid -w git push
nice git push
nice -n 5 git push
nice -5 git push
timeout 5 git push
timeout -k 1 5 git push
timeout --kill-after 1 5 git push
timeout --signal KILL 5 git push
stdbuf -oL git push
time git push
time -p git push
/usr/bin/time -v git push
/usr/bin/time -o f git push
sh -c 'git push'
sh -ec 'git push'
bash -lc "git push"
bash --norc -c 'git push'
bash -o errexit -c 'git push'
bash +x -c 'git push'
dash -c 'git push'
zsh -c 'git push'
ash -c 'git push'
ksh -c 'git push'
fish -c 'git push'
busybox sh -c 'git push'
eval git push
eval 'git push'
eval "git" "push"
echo x | xargs git push
xargs -n1 git push
xargs -a f git push
xargs --arg-file f git push
xargs --arg-file=f git push
xargs -I{} git push {}
xargs -I {} sh -c 'git push {}'
echo push | xargs git
find . -exec git push {} ;
find . -exec git push {} \;
find . -execdir git push \;
find . -ok git push \;
find . -exec sh -c 'git push' \;
fd x -x git push
parallel git push ::: a
echo a | parallel git push
sudo git push
sudo -u x git push
sudo --user x git push
doas git push
su -c 'git push'
su x -c 'git push'
su x --command='git push'
g=git; $g push
g=git p=push; $g $p
a="git push"; $a
$(echo git) push
$(echo git push)
`echo git push`
git $(echo push)
git pu''sh
git "push"
gi\t push
'git' push
{git,push}
git push;
true && git push
true; git push
(git push)
{ git push; }
if true; then git push; fi
while git push; do :; done
for a in 1; do git push; done
case a in a) git push;; esac
f() { git push; }; f
function f { git push; }; f
! git push
git push &
git push > x
> x git push
2>&1 git push
A=b git push
echo $(git push)
echo `git push`
echo "$(git push)"
cat <(git push)
echo ${x:-$(git push)}
alias p='git push'; p
trap 'git push' EXIT
trap "git push" 0
bash <<< 'git push'
echo 'git push' | sh
printf 'git push' | bash
sh -s <<< 'git push'
. /dev/stdin <<< 'git push'
source <(echo git push)
bash <(echo git push)
python3 -c 'import os; os.system("git push")'
perl -e 'system("git push")'
node -e 'require("child_process").execSync("git push")'
ruby -e '`git push`'
awk 'BEGIN{system("git push")}'
vim -c '!git push'
git submodule foreach git push
git submodule foreach 'git push'
git submodule foreach --recursive git push
git bisect run git push
git rebase -x 'git push' HEAD~1
git rebase --exec='git push' HEAD~1
git filter-branch --tree-filter 'git push'
git filter-branch --msg-filter='git push' HEAD
git difftool -x 'git push'
git difftool --extcmd='git push'
git difftool --extcmd 'git push'
git -c core.pager='git push' log
git -c core.editor='git push' commit
git -c core.sshCommand='git push' fetch
git -c diff.external='git push' diff
git -c core.fsmonitor='git push' status
GIT_PAGER='git push' git log
GIT_EDITOR='git push' git commit
GIT_SSH_COMMAND='git push' git fetch
GIT_EXTERNAL_DIFF='git push' git diff
PAGER='git push' git log
git grep -O'git push' x
git grep --open-files-in-pager='git push' x
git config alias.p push; git p
git config alias.p push && git p
git config --global alias.p '!git push'
git config set alias.p push
git-push
/usr/lib/git-core/git-push
$(git --exec-path)/git-push origin
watch git push
watch -n 1 git push
watch 'git push'
strace git push
strace -f git push
strace -E A=b git push
ltrace git push
unshare git push
unshare -n git push
chroot / git push
flock f git push
flock f -c 'git push'
flock -n f git push
script -c 'git push'
script -qc 'git push' /dev/null
script --command 'git push'
ssh localhost git push
docker run x git push
npx -c 'git push'
uv run git push
poetry run git push
entr git push
taskset 1 git push
taskset -c 1 git push
chrt 1 git push
chrt -f 1 git push
ionice -c3 git push
ionice -c 3 git push
prlimit --nofile=1 git push
runuser -u x -- git push
runuser -u x git push
runuser x -c 'git push'
setpriv --reuid 1 git push
systemd-run git push
systemd-run --user git push
systemd-inhibit git push
dbus-run-session git push
dbus-run-session -- git push
xvfb-run git push
faketime x git push
fakeroot git push
proot git push
gdb --args git push
gdb -ex run --args git push
valgrind git push
rlwrap git push
numactl -l git push
cgexec -g x git push
firejail git push
bwrap --ro-bind / / git push
at now <<< 'git push'
batch <<< 'git push'
ld.so /usr/bin/git push
/lib64/ld-linux-x86-64.so.2 /usr/bin/git push
busybox env git push
toybox env git push
coproc git push
coproc x { git push; }
git    -C  a  push   x
git --work-tree=. push
git --bare push
git --paginate push
git --no-replace-objects push
git --no-optional-locks push
git -P push
git --html-path push
unbuffer git push
expect -c 'spawn git push'
tmux new -d 'git push'
screen -dm git push
nsenter -t 1 git push
sg x -c 'git push'
sg x 'git push'
ifne git push
chronic git push
ts git push
time -f x git push
env -iS 'git push'
env -vS'git push'
env --ignore-environment git push
env -a x git push
env --argv0=x git push
env --default-signal=PIPE git push
env --block-signal git push
nice --adjustment=5 git push
sh -c -- 'git push'
sh -c 'exec "$@"' x git push
sh -c '"$@"' x git push
sh -c '$0 $@' git push
sh -c '$0 $1' git push
bash -c 'git $1' x push
bash -O extglob -c 'git push'
bash --rcfile f -c 'git push'
bash --init-file f -ic 'git push'
exec -c git push
exec -l git push
time -- git push
git --attr-source HEAD push
git fetch --upload-pack='git push' x
git pull --upload-pack 'git push' x
git clone -u 'git push' a b
git clone --upload-pack='git push' a b
git ls-remote --exec='git push' x
git archive --remote=x --exec='git push'
git send-pack --receive-pack='git push' x
git fetch "ext::git push"
git -c protocol.ext.allow=always ls-remote 'ext::sh -c "git push"'
g?t push
/usr/bin/g[i]t push origin
/usr/bin/g* push
"""

ALLOWED = r"""
git pull
git stash push
git status
git log --grep push
git commit -m "don't git push"
echo git push
grep -rn "git push" .
cat push
make push
npm run push
git -c user.name=x commit -m x
git -c alias.p=push status
git log alias.py
rsync -a a b
"""
"""What does not run it; `make push` and other programs that do it by themselves are the limit, as
are a copy of git by another name and an alias in the person's own settings."""


def answer(command: str, tmp_path: Path, rule: str = "run_command(git push *)") -> str:
    call = Call("c", "run_command", "run", command, command=command)
    workspace = Workspace.at(tmp_path)
    policy = Policy.of(deny=(rule,))
    return decide(call, policy, mode="ask", elevated=True, grants=(), workspace=workspace).answer


@pytest.mark.parametrize("command", SPELLINGS.strip().splitlines())
def test_a_rule_holds_through_every_spelling(tmp_path: Path, command: str) -> None:
    assert answer(command, tmp_path) == "deny"


@pytest.mark.parametrize("command", ALLOWED.strip().splitlines())
def test_it_forbids_nothing_else(tmp_path: Path, command: str) -> None:
    assert answer(command, tmp_path) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "curl x",
        "git -c core.pager='curl x' log",
        "git -c alias.x='!curl y' x",
        "git bisect run curl x",
        "setpriv --reuid 1 curl x",
        'python3 -c \'import subprocess; subprocess.run(["curl", "x"])\'',
        "/usr/bin/curl x",
        "tmux new -d 'curl x'",
        "env -vS'curl x'",
    ],
)
def test_so_does_one_for_another_program(tmp_path: Path, command: str) -> None:
    assert answer(command, tmp_path, "run_command(curl *)") == "deny"


def test_a_command_that_names_it_a_thousand_times_is_judged_fast(tmp_path: Path) -> None:
    assert answer(f"python3 -c '{'git x ' * 5_000}'", tmp_path) == "deny"
