#!/usr/bin/env bash
# Installs what is needed into .venv, then runs lint and all tests, the end-to-end ones with real servers last.
#
#   bash scripts/test.sh [further flags of pytest]
#
# Hardware: two CPU cores, 8 GiB; a GPU is not needed. FAST=1 leaves the end-to-end tests out (about a quarter of an hour).

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"
ensure_environment
cd "$ROOT"

say "lint"
ruff check plugin tests
ruff format --check plugin tests
for script in scripts/*.sh .ci/run; do bash -n "$script"; done
say "unit, property and contract tests"
python -m pytest -q -m "not e2e" --durations 5 "$@"
if [ -z "${FAST:-}" ]; then
  say "end-to-end tests: the real rollout server and two real ZeRO-3 ranks"
  python -m pytest -v -m e2e --durations 5 "$@"
fi
