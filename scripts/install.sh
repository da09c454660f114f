#!/usr/bin/env bash
# Installs the pinned packages for this machine, as every script does when it runs for the first time, and ends. Then
# `source scripts/activate.sh` makes them available in a shell.
#
#   bash scripts/install.sh            what this machine needs: .venv-gpu where a GPU is visible, else .venv-cpu
#   bash scripts/install.sh gpu        on a machine without GPUs (a login node), for others that share this folder
#
# Variables: PYTHON (3.11, 3.12 or an interpreter; uv fetches a Python that is not there), VENV (where to install).

set -euo pipefail
folder=${VENV:-}
source "$(dirname "$0")/common.sh"
help_and_exit "$@"

KIND=${1:-$KIND}
[ "$KIND" = cpu ] || [ "$KIND" = gpu ] || die "$KIND is neither cpu nor gpu"
VENV=${folder:-$ROOT/.venv-$KIND}
ensure_environment
say "installed: $VENV"
