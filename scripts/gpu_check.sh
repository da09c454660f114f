#!/usr/bin/env bash
# Verifies on this machine what the documentation says of GPUs, with the real programs, and writes what was measured:
# output/gpu_check/<time>/report.md and report.json, after each step. A step that fails stops no other.
#
#   bash scripts/gpu_check.sh                                        the tiny model of this repository, no download
#   bash scripts/gpu_check.sh --model FOLDER --dataset FILE    memory, checkpoints and times with your model
#   bash scripts/gpu_check.sh --minutes 20                           what fits into 20 minutes; 55 by default
#   bash scripts/gpu_check.sh --dry-run                              what each step would do
#   bash scripts/gpu_check.sh --list                                 the steps
#   bash scripts/gpu_check.sh --only weights vllm                    some of them
#   bash scripts/gpu_check.sh --output FOLDER                        go on there: what has passed is not run again
#   bash scripts/gpu_check.sh --cpu                                  as on a machine without a GPU
#
# Hardware: one to eight NVIDIA GPUs. Without one the CPU takes their place, and what only a GPU can show is skipped.
# It installs first, as every script does, and that counts as time of --minutes. Its last lines are the rows of the table
# in docs/launch/gpu_check.md, filled in for this machine: please open an issue with them and report.md.
# Variables: KIND, PYTHON, VENV, INSTALL=0, CUDA_VISIBLE_DEVICES. Exit status: 1 where a step has failed.

set -euo pipefail
for word in "$@"; do
  if [ "$word" = --cpu ]; then export CUDA_VISIBLE_DEVICES=; fi  # the CPU's environment too
done
source "$(dirname "$0")/common.sh"
help_and_exit "$@"
installed=0
if [ "${INSTALL:-1}" != 0 ] && ! ls "$VENV"/.installed-* >/dev/null 2>&1; then installed=1; fi
start=$SECONDS
ensure_environment
if [ "$installed" = 1 ]; then export GPU_CHECK_INSTALL_SECONDS=$((SECONDS - start)); fi
export GPU_CHECK_LOCK=$KIND PYTHONPATH="$ROOT/scripts${PYTHONPATH:+:$PYTHONPATH}"
exec python -m gpu_check "$@"
