#!/usr/bin/env bash
# Installs what is needed into .venv, then runs lint, the type checker, the import rules and all tests.
#
#   bash scripts/test.sh [further flags of pytest]
#   FAST=1 bash scripts/test.sh      for daily work: no servers, no slow tests
#   WEEKLY=1 bash scripts/test.sh    with those marked weekly, as newest.yml runs them, and all examples of properties
#   PRODUCT=1 bash scripts/test.sh   those marked product: rewards, datasets and callbacks in ms-swift, a training without
#                                    a server, TRL, and swift-rlvr train with its rollout server; three minutes
#
# Hardware: two CPU cores and 16 GiB, no GPU. The tests of a language model are left out where too little memory is free,
# which the last lines say (SKIPPED). Variables: FAST, WEEKLY, PRODUCT, WORKERS (processes for the tests; default: one per
# core, at most four; where servers are started one more, because those tests wait for half of their time, and with
# 20 GiB of free memory two).

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"
ensure_environment
cd "$ROOT"

CORES=$(nproc | awk '{print ($1 < 4 ? $1 : 4)}')
if [ -z "${FAST:-}" ]; then
  FREE=$(awk '/MemAvailable/ {print int($2 / 1024 / 1024)}' /proc/meminfo)
  WORKERS=${WORKERS:-$((FREE < 20 ? CORES + 1 : CORES + 2))}
fi
NOT_WEEKLY=" and not weekly"
[ -z "${WEEKLY:-}" ] || NOT_WEEKLY=""
if [ -n "${PRODUCT:-}" ]; then
  title="the product: registration, datasets, callbacks, trainings in ms-swift and TRL"
  # The files alone that have such tests: to collect all others takes each process a dozen seconds.
  mapfile -t files < <(grep -rl --include='test_*.py' 'mark\.product' tests)
  selected=(-v -m product "${files[@]}")
elif [ -n "${FAST:-}" ]; then
  title="unit, property and contract tests"
  selected=(-q -m "not e2e and not slow$NOT_WEEKLY")
else
  title="all tests, those with the real rollout server and two real ZeRO-3 ranks first"
  # Those of the adapters install other trainers from an index; newest.yml runs them every week.
  selected=(-q -m "${NOT_WEEKLY# and }" --ignore tests/adapters/test_loaders.py)
fi

say "lint"
ruff check plugin tests scripts examples
ruff format --check plugin tests scripts examples
for script in scripts/*.sh .ci/run; do bash -n "$script"; done

# Types and imports beside the tests, with which they have nothing to do. Each is a process group of its own, which
# ends as a whole when this script is stopped: the tests' processes start others.
set -m
types=$(mktemp)
{ mypy && lint-imports; } >"$types" 2>&1 &
types_pid=$!
say "$title"
python -m pytest "${selected[@]}" -n "${WORKERS:-$CORES}" --dist loadfile --durations 20 "$@" &
tests_pid=$!

# stop SIGNAL: the tests have 30 seconds to end the servers that they have started.
stop() {
  trap - EXIT
  trap '' INT TERM HUP
  rm -f "$types"
  kill -KILL -- "-$types_pid" 2>/dev/null || true
  kill "-$1" -- "-$tests_pid" 2>/dev/null || true
  for _ in {1..300}; do
    kill -0 -- "-$tests_pid" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL -- "-$tests_pid" 2>/dev/null || true
  exit $((128 + $(kill -l "$1")))
}
for signal in INT TERM HUP; do trap "stop $signal" "$signal"; done
trap 'kill -- "-$types_pid" 2>/dev/null || true; rm -f "$types"' EXIT

failed=0
wait "$tests_pid" || failed=$?
say "types, imports"
wait "$types_pid" || failed=$?
cat "$types"
exit "$failed"
