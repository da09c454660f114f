#!/usr/bin/env bash
# Installs the pinned packages for this machine. Every other script does the same when it first runs. Afterwards
# `source scripts/activate.sh` makes the packages available in your shell.
#
#   bash scripts/install.sh               what this machine needs: cpu, or gpu, or gpu_cuda12 for drivers below 580 and V100
#   bash scripts/install.sh gpu_cuda12    as KIND=gpu_cuda12; on a machine without GPUs (a login node) for others that share
#                                         this folder
#
# Variables: KIND (cpu, gpu or gpu_cuda12), PYTHON (3.11, 3.12 or an interpreter; uv fetches a Python that is not there),
# VENV (where to install).

set -euo pipefail
case ${1:--} in -*) ;; *) KIND=$1 ;; esac
source "$(dirname "$0")/common.sh"
help_and_exit "$@"

ensure_environment
say "installed: $VENV"
