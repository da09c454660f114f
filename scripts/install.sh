#!/usr/bin/env bash
# Installs the pinned packages for this machine, as every script does when it runs for the first time, and ends. Then
# `source scripts/activate.sh` makes them available in a shell.
#
#   bash scripts/install.sh               what this machine needs: cpu, or gpu, or gpu_cuda12 for drivers below 580
#   bash scripts/install.sh gpu_cuda12    on a machine without GPUs (a login node), for others that share this folder
#
# Variables: PYTHON (3.11, 3.12 or an interpreter; uv fetches a Python that is not there), VENV (where to install).

set -euo pipefail
folder=${VENV:-}
source "$(dirname "$0")/common.sh"
help_and_exit "$@"

KIND=${1:-$KIND}
[ -e "$REQUIREMENTS/$KIND.lock" ] || die "there is no environment '$KIND': cpu, gpu or gpu_cuda12"
VENV=${folder:-$ROOT/.venv-$KIND}
ensure_environment
say "installed: $VENV"
