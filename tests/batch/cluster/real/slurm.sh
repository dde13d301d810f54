#!/bin/bash
# A run of tasks as Slurm's jobs, with faults, for real: munged, slurmctld and slurmd on the loopback
# of a network and process namespace of its own. Needs Linux, unshare, ip, git, and the packages
# slurm-wlm and munge.
#
#   tests/batch/cluster/real/slurm.sh [FAULT…]
#
# Faults come 8 s after each other: worker (SIGKILL), driver (SIGKILL, started again), slurmctld
# (ended, started again after 10 s), requeue (as a preemption does), hangup (SIGHUP to the driver,
# started again). With STOP=1 the run is stopped at the end of the faults, and its jobs have to go.
set -euo pipefail

if [[ ${HOLDFAST_REAL_SLURM:-} != inside ]]; then
  as_root=(); [[ $(id -u) == 0 ]] || as_root=(--map-root-user --user)
  HOLDFAST_REAL_SLURM=inside exec unshare "${as_root[@]}" --net --pid --fork --mount-proc \
    --kill-child "$0" "$@"
fi

faults=("${@:-worker worker driver slurmctld worker}")
read -ra faults <<<"${faults[*]}"
tasks=${TASKS:-12}
top=$(cd "$(dirname "$0")/../../../.." && pwd)
python=${PYTHON:-$top/.venv/bin/python}
export PATH=$PATH:/usr/sbin:/sbin
work=$(mktemp -d /tmp/holdfast-slurm-XXXXXX)
store=$work/runs.git
scratch=/var/tmp/holdfast-$(id -u)/$(printf %s "$store" | sha256sum | cut -c1-12)
declare -A daemons=()

clean_up() {
  local ended=$?
  if [[ $ended != 0 && -n ${KEEP:-} ]]; then cp -r "$work" "$KEEP"; fi
  for pid in "${daemons[@]}" ${driver:-}; do kill -KILL "$pid" 2>/dev/null || true; done
  rm -rf "$work" "$scratch"
}
trap clean_up EXIT

say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }

# One node, which is this machine, with a key and a controller of its own.
ip link set lo up
ip address add 127.0.0.2/8 dev lo  # or getaddrinfo, as Slurm asks it, finds this machine without a network
mkdir "$work/munge" "$work/state" "$work/spool"; chmod 711 "$work"
head -c 1024 /dev/urandom >"$work/munge/key"; chmod 400 "$work/munge/key"; chmod 700 "$work/munge"
munged -F -f --key-file="$work/munge/key" --socket="$work/munge.socket" \
  --pid-file="$work/munge/pid" --log-file="$work/munge/log" --seed-file="$work/munge/seed" 2>/dev/null &
daemons[munged]=$!
export SLURM_CONF=$work/slurm.conf
cat >"$SLURM_CONF" <<END
ClusterName=scratch
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
NodeName=$(hostname) NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
daemon() { "$1" -D >>"$work/$1.out" 2>&1 & daemons[$1]=$!; }
until [[ -S $work/munge.socket ]]; do sleep 0.2; done
daemon slurmctld; daemon slurmd
until sinfo -h -t idle 2>/dev/null | grep -q idle; do sleep 0.2; done

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

export HOLDFAST_HOME=$work/home ANTHROPIC_API_KEY=key-that-does-not-travel
drives=0
drive() {
  "$python" -P -m tui run TASKS.md --on slurm --store "$store" --yolo \
    --practice-script "$work/script.toml" --headless >>"$work/out.log" 2>&1 </dev/null &
  driver=$!; drives=$((drives + 1))
}
workers() { pgrep -f -- "-m tui work .*--store $store" || true; }
begun() { [[ $(grep -c '^parallel: ' "$work/out.log") == "$drives" ]]; }
running() { kill -0 "$driver" 2>/dev/null; }
travelled() {
  grep -srlF "$ANTHROPIC_API_KEY" "$work/state" "$work/spool" "$store" || true
}

say "$(sbatch --version), $tasks tasks, faults: ${faults[*]}"
SECONDS=0
drive
for fault in "${faults[@]}"; do
  until { begun && [[ $(workers | wc -l) -ge 2 ]]; } || ! running; do sleep 0.5; done
  sleep "${PAUSE:-8}"
  running || { say "the run was over before the $fault"; exit 1; }
  [[ -z $(travelled) ]] || { say "a key travelled: $(travelled)"; exit 1; }
  case $fault in
    worker)
      mapfile -t now < <(workers)
      [[ ${#now[@]} -gt 0 ]] || { say "no worker to kill"; exit 1; }
      victim=${now[RANDOM % ${#now[@]}]}
      grep -qzF "$ANTHROPIC_API_KEY" "/proc/$victim/environ" && { say "a key travelled"; exit 1; }
      kill -KILL "$victim"; say "worker $victim killed";;
    driver)
      kill -KILL "$driver"; wait "$driver" 2>/dev/null || true
      say "driver killed; $(squeue -h -r -t R | wc -l) jobs run on"; sleep 5
      say "started again; $(squeue -h -r -t R | wc -l) jobs run"; drive;;
    hangup)
      kill -HUP "$driver"; wait "$driver" || true
      say "driver hung up; $(squeue -h -r -t R | wc -l) jobs run on"; sleep 5; drive;;
    slurmctld)
      kill "${daemons[slurmctld]}"; wait "${daemons[slurmctld]}" || true
      say "slurmctld ended"; sleep 10; daemon slurmctld; say "slurmctld started again";;
    requeue)
      job=$(squeue -h -r -t R -o %i | head -1)
      scontrol requeue "$job"; say "job $job requeued";;
  esac
done

if [[ -n ${STOP:-} ]]; then
  until [[ $(workers | wc -l) -ge 2 ]] || ! running; do sleep 0.5; done
  say "stopped with $(squeue -h -r | wc -l) jobs"
  kill -TERM "$driver"; wait "$driver" || true
  for _ in $(seq 40); do [[ -z $(squeue -h) && -z $(workers) ]] && break; sleep 1; done
  say "$(squeue -h -r | wc -l) jobs, $(workers | wc -l) workers; started again"
  [[ -z $(squeue -h) && -z $(workers) ]]
  drive
fi

code=0; wait "$driver" || code=$?
say "driver ended: $code"
grep -v -e '^\[[0-9]*\] \(done\|merged\)' "$work/out.log" | grep -v '^ *[0-9]* *completed' | tail -n 40

# What has to be true now.
subjects=$(git log --no-merges --format=%s | grep -v '^base$')
commits=$(wc -l <<<"$subjects"); different=$(sort -u <<<"$subjects" | wc -l)
lines=$(cat f-*.txt | wc -l)
verified=0; bad=0
while read -r session; do
  if "$python" -P -m tui sessions verify "$session" >>"$work/verify.log" 2>&1
  then verified=$((verified + 1)); else bad=$((bad + 1)); fi
done < <(find "$HOLDFAST_HOME/data/sessions" -name '*.jsonl' 2>/dev/null)
sleep 2
left=$(pgrep -f "$python" | wc -l || true)
jobs=$(squeue -h -r | wc -l)
say "$commits commits, $different different, $lines steps of $((tasks * 5)); sessions verified:" \
  "$verified, bad: $bad; processes left: $left, jobs left: $jobs; keys found: $(travelled | wc -l)"
# The script begins anew with each worker, so a task that went on has some steps twice.
[[ $code == 0 && $commits == "$tasks" && $different == "$tasks" && $lines -ge $((tasks * 5)) ]]
[[ $verified -ge $tasks && $bad == 0 && $left == 0 && $jobs == 0 && -z $(travelled) ]]
say "all of it is true"
