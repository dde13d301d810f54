#!/usr/bin/env bash
# Twelve tasks on a real Dask cluster over TLS, while a Holdfast worker, two Dask workers (one with a
# nanny), the driver and the scheduler are killed. Run by hand: real/dask.sh [PYTHON]
set -euo pipefail

python=${1:-$(command -v python)}
here=$(mktemp -d /tmp/dask53-real.XXXXXX)
mkdir "$here/repo" "$here/dask"
export HOLDFAST_HOME=$here/home DASK_CONFIG=$here/dask DASK_TEMPORARY_DIRECTORY=$here/dask
tasks=12
started=()
declare -A dask_worker

clean_up() {
  for pid in "${started[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  sleep 3
  end_leftovers
  rm -rf "$here" "/var/tmp/holdfast-$(id -u)/$(printf %s "$here/store.git" | sha256sum | cut -c-12)"
}
ours() { pgrep -f "$here/(store.git|dask|up)" | grep -vx "$$" || true; }
none_left() { [[ -z $(ours) ]]; }
end_leftovers() { for pid in $(ours); do kill -KILL "$pid" 2>/dev/null || true; done; }
trap clean_up EXIT

say() { printf '%s %s\n' "$(date +%T)" "$*"; }
workers() { pgrep -f "tui work .*--store $here/store.git" || true; }
parent() { ps -o ppid= -p "$1" | tr -d ' '; }
seen() { # seen SECONDS COMMAND…: wait until it succeeds
  local end=$((SECONDS + $1)); shift
  until "$@"; do ((SECONDS < end)) || { say "never: $*"; tail -20 "$here"/*.log; exit 1; }; sleep 0.5; done
}

# A certificate of an authority made for this, and Dask's own settings for it
cd "$here"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test-ca -keyout ca.key -out ca.pem 2>openssl.log
openssl req -newkey rsa:2048 -nodes -subj /CN=127.0.0.1 -keyout key.pem -out req.pem 2>>openssl.log
openssl x509 -req -in req.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out cert.pem \
  -extfile <(echo subjectAltName=IP:127.0.0.1) 2>>openssl.log
cat > dask/dask.yaml <<END
distributed:
  comm:
    require-encryption: true
    timeouts: {tcp: 300s}
    tls:
      ca-file: $here/ca.pem
      scheduler: {cert: $here/cert.pem, key: $here/key.pem}
      worker: {cert: $here/cert.pem, key: $here/key.pem}
      client: {cert: $here/cert.pem, key: $here/key.pem}
END
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
address=tls://127.0.0.1:$port

scheduler() {
  "$python" -m dask scheduler --protocol tls --host 127.0.0.1 --port "$port" --no-dashboard \
    --scheduler-file "$here/dask/scheduler.json" >>scheduler.log 2>&1 &
  scheduler=$!; started+=("$scheduler")
}
worker() { # worker NAME [OPTION…]
  local name=$1; shift
  "$python" -m dask worker "$address" --protocol tls --host 127.0.0.1 --nthreads 1 --no-dashboard \
    --name "$name" --local-directory "$here/dask" "$@" >>workers.log 2>&1 &
  dask_worker[$name]=$!; started+=("$!")
}
all_workers() {
  for name in nanny-1 nanny-2 bare; do
    if ! kill -0 "${dask_worker[$name]:-0}" 2>/dev/null || [[ ${dask_worker[$name]:-0} == 0 ]]; then
      worker "$name" "$([[ $name == bare ]] && echo --no-nanny || echo --nanny)"
    fi
  done
}
driver() {
  (cd repo && exec "$python" -m tui run TASKS.md --on "$address" --parallel 3 --yolo \
    --store "$here/store.git" --practice-script "$here/script.toml" --headless) >>driver.log 2>&1 &
  driver=$!; started+=("$driver")
}

# The repository, and what the practice model does in each task
cd repo
git init -q -b main; git config user.name A; git config user.email a@b.c
printf '# Tasks\n' > TASKS.md
for i in $(seq $tasks); do echo "- task $i" >> TASKS.md; done
git add -A; git commit -qm base
cd ..
for step in 1 2 3 4; do
  printf '[[turn]]\ntext = "step %s"\ndelay_s = 1.0\ntools = [{name = "run_command", input = {command = "sleep 0.3; echo %s >> f-$(date +%%N)$RANDOM.txt"}}]\n' $step $step
done > script.toml
printf '[[turn]]\ntext = "done"\ndelay_s = 1.0\n' >> script.toml

scheduler
all_workers
seen 120 grep -q "Registered to" workers.log
driver
say "driver $driver, scheduler $scheduler on $address"

commits() { git -C repo log --oneline --no-merges | tail -n +1 | grep -vc ' base$' || true; }
some_done() { (($(grep -c 'done:' driver.log || true) >= $1)); }
has_workers() { (($(workers | wc -l) >= $1)); }
under() { # a Holdfast worker whose Dask worker has (or is) the process named
  for pid in $(workers); do
    local dask; dask=$(parent "$pid")
    if [[ $dask == "${dask_worker[$1]}" || $(parent "$dask") == "${dask_worker[$1]}" ]]; then echo "$pid"; return; fi
  done
  return 1
}
is_under() { under "$1" >/dev/null; }
gone() { ! kill -0 "$1" 2>/dev/null; }

# 1. A Holdfast worker
seen 180 has_workers 2; sleep 3
pid=$(workers | head -1); kill -KILL "$pid"; say "killed a Holdfast worker, $pid"

# 2. A Dask worker that has a nanny
seen 180 is_under nanny-1; sleep 3
child=$(under nanny-1); pid=$(parent "$child"); kill -KILL "$pid"; say "killed a Dask worker with a nanny, $pid"
seen 60 gone "$child"; say "  its Holdfast worker $child is gone"

# 3. A Dask worker without one
seen 180 is_under bare; sleep 3
child=$(under bare); pid=${dask_worker[bare]}; kill -KILL "$pid"; say "killed a Dask worker without a nanny, $pid"
seen 60 gone "$child"; say "  its Holdfast worker $child is gone"
all_workers

# 4. The driver
seen 240 some_done 2
before=$(workers | sort | head -1)
kill -KILL "$driver"; say "killed the driver, with workers $(workers | tr '\n' ' ')"
sleep 5
say "  without a driver there run $(workers | tr '\n' ' ')"; has_workers 1
driver

# 5. The scheduler
seen 240 some_done 4; seen 120 has_workers 1; sleep 2
kill -KILL "$scheduler"; say "killed the scheduler"
sleep 10
scheduler
say "the scheduler is back, $scheduler"
end=$((SECONDS + 500))
until gone "$driver"; do
  ((SECONDS < end)) || { say "the driver doesn't end"; tail -20 ./*.log; exit 1; }
  all_workers
  sleep 3
done
wait "$driver" && say "the driver ended well" || say "the driver ended with $?"

# What came of it
tail -25 driver.log
failed=0
check() { if [[ $2 == "$3" ]]; then say "ok: $1: $2"; else say "NOT OK: $1: $2 instead of $3"; failed=1; fi; }
check commits "$(commits)" $tasks
check "subjects, each once" "$(git -C repo log --no-merges --format=%s | grep -v '^base$' | sort -u | wc -l)" $tasks
for pid in "${started[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
seen 120 none_left
check "processes left" "$(ours | wc -l)" 0
verified=0 sessions=0
while read -r file; do
  sessions=$((sessions + 1))
  if (cd repo && "$python" -m tui sessions verify "$file") >verify.log 2>&1 </dev/null; then
    verified=$((verified + 1))
  else
    say "$file"; tail -3 verify.log
  fi
done < <(find "$HOLDFAST_HOME" -path '*/sessions/*' -name '*.jsonl')
check "sessions" $sessions $tasks
check "sessions that verify" $verified $sessions
exit $failed
