#!/usr/bin/env bash
# Types the first command of the README in this clone, and signs somebody up with its second one: what a newcomer does. Takes
# the port; what it keeps is in a folder of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
port=${1:-8080}
line() { grep -m 1 "^$1" README.md; }

list=$(mktemp -d)
# In a process group of its own, as in a terminal, so that the signal reaches what npm has started.
set -m
PORT=$port DATABASE_URL=sqlite:$list/waitlist.db sh -c "$(line 'npm ci && npm start')" >"$list/log" 2>&1 &
trap 'kill -INT -$! 2>/dev/null; wait $! || true; rm -rf "$list"' EXIT

# npm ci takes its time.
tries=300
until curl --silent --output /dev/null "http://localhost:$port/api/health"; do
  tries=$((tries - 1))
  if [ "$tries" -eq 0 ] || ! kill -0 $! 2>/dev/null; then
    cat "$list/log"
    exit 1
  fi
  sleep 1
done
answer=$(sh -c "$(line curl | sed "s/localhost:8080/localhost:$port/")")
echo "$answer"
case $answer in *'"alreadyExisted":false'*) ;; *) exit 1 ;; esac
