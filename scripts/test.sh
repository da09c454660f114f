#!/usr/bin/env bash
# Installs what is needed into .venv, then runs lint, the type checker, the import rules and all tests. The end-to-end
# tests with real servers run last.
#
#   bash scripts/test.sh [further flags of pytest]
#   FAST=1 bash scripts/test.sh      for daily work: no servers, no slow tests
#   WEEKLY=1 bash scripts/test.sh    with those marked weekly, as newest.yml runs them
#   PRODUCT=1 bash scripts/test.sh   those marked product: rewards, datasets and callbacks in ms-swift, a training without
#                                    a server, TRL, and swift-rlvr train with its rollout server; three minutes
#
# Hardware: two CPU cores and 8 GiB, no GPU. The tests of a language model need 18 GiB of free memory; with less they are
# left out, which the last lines say (SKIPPED). Variables: FAST, WEEKLY, PRODUCT, WORKERS (processes for the tests without servers;
# default: one per core, at most four).

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"
ensure_environment
cd "$ROOT"

say "lint, types, imports"
ruff check plugin tests scripts examples
ruff format --check plugin tests scripts examples
mypy
lint-imports
for script in scripts/*.sh .ci/run; do bash -n "$script"; done
WORKERS=${WORKERS:-$(nproc | awk '{print ($1 < 4 ? $1 : 4)}')}
if [ -n "${PRODUCT:-}" ]; then
  say "the product: registration, datasets, callbacks, trainings in ms-swift and TRL"
  python -m pytest -v -n "$WORKERS" --dist loadfile -m product --durations 10 "$@"
  exit
fi
LEFT_OUT=" and not weekly"
[ -z "${WEEKLY:-}" ] || LEFT_OUT=""
say "unit, property and contract tests"
python -m pytest -q -n "$WORKERS" --dist loadfile -m "not e2e$LEFT_OUT${FAST:+ and not slow}" --durations 10 "$@"
if [ -z "${FAST:-}" ]; then
  say "end-to-end tests: the real rollout server and two real ZeRO-3 ranks"
  # Those of the adapters install other trainers from an index; newest.yml runs them every week. The other files are
  # not collected again.
  mapfile -t files < <(grep -rl --include='test_*.py' 'mark\.e2e' tests | grep -v tests/adapters/ | sort)
  python -m pytest -v -p no:randomly -m "e2e$LEFT_OUT" --durations 20 "${files[@]}" "$@"
fi
