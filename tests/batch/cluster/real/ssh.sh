#!/bin/bash
# A run of tasks on two hosts by ssh, with faults, for real: sshd on the loopback of a network and
# process namespace of its own. Needs Linux, unshare, ip, git and OpenSSH's server.
#
#   tests/batch/cluster/real/ssh.sh [FAULT…]
#
# Faults come 8 s after each other, once two tasks are at work: worker (SIGKILL), driver (SIGKILL, started again), sshd (both
# daemons and all connections, started again), network (down for 60 s), stop (the driver, SIGSTOP
# for 180 s).
set -euo pipefail
{

if [[ ${HOLDFAST_REAL_SSH:-} != inside ]]; then
  as_root=(); [[ $(id -u) == 0 ]] || as_root=(--map-root-user --user)
  HOLDFAST_REAL_SSH=inside exec unshare "${as_root[@]}" --net --pid --fork --mount-proc \
    --kill-child "$0" "$@"
fi

faults=("${@:-worker worker driver worker sshd network}")
read -ra faults <<<"${faults[*]}"
tasks=${TASKS:-12}
top=$(cd "$(dirname "$0")/../../../.." && pwd)
python=${PYTHON:-$top/.venv/bin/python}
sshd=$(PATH=$PATH:/usr/sbin:/sbin command -v sshd)
work=$(mktemp -d /tmp/holdfast-ssh-XXXXXX)
export HOLDFAST_HOME=$work/home GIT_SSH_COMMAND="ssh -F $work/config"
declare -A daemons=()

clean_up() {
  local ended=$?
  if [[ $ended != 0 && -n ${KEEP:-} ]]; then cp -r "$work" "$KEEP"; fi
  for pid in "${daemons[@]}" ${driver:-}; do kill "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap clean_up EXIT

say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }

# Two hosts, a and b, and one for the store, all of them this machine.
ip link set lo up
[[ -d /run/sshd ]] || mkdir -p /run/sshd
ssh-keygen -q -t ed25519 -N '' -f "$work/host"
ssh-keygen -q -t ed25519 -N '' -f "$work/key"
for port in 2201 2202 2203; do
  echo "[127.0.0.1]:$port $(cat "$work/host.pub")"
done >"$work/known_hosts"
cat >"$work/config" <<END
Host a
  Port 2201
Host b
  Port 2202
Host store
  Port 2203
Host *
  HostName 127.0.0.1
  IdentityFile $work/key
  IdentitiesOnly yes
  UserKnownHostsFile $work/known_hosts
END
cat >"$work/sshd.conf" <<END
ListenAddress 127.0.0.1
HostKey $work/host
AuthorizedKeysFile $work/key.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
SetEnv HOLDFAST_HOME=$work/there "GIT_SSH_COMMAND=$GIT_SSH_COMMAND"
END
daemon() {
  "$sshd" -D -e -p "$1" -f "$work/sshd.conf" 2>>"$work/sshd-$1.log" &
  daemons[$1]=$!
}
daemon 2201; daemon 2202; daemon 2203
until ssh -F "$work/config" -o BatchMode=yes store true 2>/dev/null; do sleep 0.2; done

# The program there, and the store, at a place with an odd name.
odd="$work/it's \$(here)"
mkdir "$odd"; printf '#!/bin/sh\nexec %q -m tui "$@"\n' "$python" >"$odd/hold fast"
chmod +x "$odd/hold fast"
remote=$(printf %q "$odd/hold fast")
store="store:$odd/runs.git"

# A folder with tasks, and a script that edits, and sleeps.
repo=$work/repo
git init -q -b main "$repo"; cd "$repo"
git config user.name Ann; git config user.email ann@example.org
{ echo '# Tasks'; for i in $(seq "$tasks"); do echo "- task $i"; done; } >TASKS.md
git add -A; git commit -qm base
for i in 1 2 3 4 5; do
  cat <<END
[[turn]]
text = "Step $i."
delay_s = ${DELAY:-1}
tools = [{name = "run_command", input = {command = "sleep 0.3; echo $i >> f-\$(date +%N)\$RANDOM.txt"}}]
END
done >"$work/script.toml"
printf '[[turn]]\ntext = "Done."\ndelay_s = 1\n' >>"$work/script.toml"

drive() {
  (cd "$top" && exec "$python" -m tui run "$repo/TASKS.md" --cwd "$repo" --on ssh:a,b=2 --parallel 4 \
    --remote "$remote" --store "$store" --yolo --practice-script "$work/script.toml" --headless \
    >>"$work/out.log" 2>&1 </dev/null) &
  driver=$!
}
workers() { pgrep -f "^$python -m tui work" || true; }
at_work() { [[ $(workers | wc -l) -ge 2 && $(find "$work/there/work" -path '*/sessions/*.jsonl' 2>/dev/null | wc -l) -ge 2 ]]; }
running() { kill -0 "$driver" 2>/dev/null; }

export PYTHONPATH=$top
say "without a repository for the store"
drive; wait "$driver" && exit 1
grep -m 1 "git init --bare" "$work/out.log"
: >"$work/out.log"
git init -q --bare "$odd/runs.git"

say "$tasks tasks"
SECONDS=0
drive
for fault in "${faults[@]}"; do
  sleep "${PAUSE:-8}"
  until at_work || ! running; do sleep 0.5; done
  running || break
  case $fault in
    worker)
      pid=$(workers | shuf -n 1)
      say "kill worker $pid"; kill -KILL "$pid" || true ;;
    driver)
      say "kill the driver; workers: $(workers | wc -l)"
      kill -KILL "$driver"; wait "$driver" 2>/dev/null || true
      for _ in $(seq 60); do [[ -n $(workers) ]] || break; sleep 0.5; done
      say "workers left: $(workers | wc -l)"; drive ;;
    sshd)
      say "restart the daemons of a and b, all connections cut"
      for port in 2201 2202; do
        pkill -KILL -P "${daemons[$port]}" || true
        kill -KILL "${daemons[$port]}"; wait "${daemons[$port]}" 2>/dev/null || true
      done
      sleep 3; daemon 2201; daemon 2202
      for _ in $(seq 60); do [[ -n $(workers) ]] || break; sleep 0.5; done
      say "workers left: $(workers | wc -l)" ;;
    network)
      say "no network; workers: $(workers | wc -l)"; ip link set lo down; sleep "${DOWN:-60}"
      say "network; workers: $(workers | wc -l)"; ip link set lo up ;;
    stop)
      say "stop the driver; workers: $(workers | wc -l)"; kill -STOP "$driver"; sleep 180
      say "wake it; workers: $(workers | wc -l)"; kill -CONT "$driver" ;;
  esac
done
wait "$driver" && code=0 || code=$?
say "the run ended with $code"
[[ ${SHOW:-} ]] && cat "$work/out.log"
tail -n 4 "$work/out.log"

commits=$(git log --no-merges --format=%s | grep -vc '^base$' || true)
twice=$(git log --no-merges --format=%s | sort | uniq -d)
wrong=0
for session in "$HOLDFAST_HOME"/data/sessions/*/*.jsonl; do
  "$python" -m tui sessions verify "$session" >"$work/verify.log" 2>&1 || { wrong=$((wrong + 1)); cat "$work/verify.log"; }
done
sessions=$(find "$HOLDFAST_HOME/data/sessions" -name '*.jsonl' | wc -l)
sleep 1
left=$(workers | wc -l)
strays=$(pgrep -f 'ssh -F|keeper' | wc -l || true)
say "commits $commits of $tasks, twice: ${twice:-none}; sessions $sessions, not verified $wrong; workers left $left, strays $strays"
[[ $code == 0 && $commits == "$tasks" && -z $twice && $wrong == 0 && $sessions -ge $tasks && $left == 0 && $strays == 0 ]]
exit
}
