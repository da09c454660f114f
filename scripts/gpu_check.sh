#!/usr/bin/env bash
# Checks on this machine what the documentation says about GPUs, with the real programs. After each step it writes the
# measurements to output/gpu_check/<time>/report.md and report.json. If a step fails, the others still run.
#
#   bash scripts/gpu_check.sh                                        the tiny model of this repository, no download
#   bash scripts/gpu_check.sh --model FOLDER --dataset FILE    memory, checkpoints and times with your model
#   bash scripts/gpu_check.sh --minutes 20                           only what fits into 20 minutes (default: 55)
#   bash scripts/gpu_check.sh --dry-run                              show what each step would do
#   bash scripts/gpu_check.sh --list                                 list the steps
#   bash scripts/gpu_check.sh --only weights vllm                    run only these steps
#   bash scripts/gpu_check.sh --output FOLDER                        continue there; steps that passed are skipped
#
# Hardware: one to eight NVIDIA GPUs. Without one it uses the CPU and skips what only a GPU can show.
# Like every script it installs first. Please open an issue with report.md, for the table in docs/launch/gpu_check.md.
# Variables: KIND, PYTHON, VENV, INSTALL=0, CUDA_VISIBLE_DEVICES. Exit status: 1 if a step failed.

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"
ensure_environment
export PYTHONPATH="$ROOT/scripts${PYTHONPATH:+:$PYTHONPATH}"
exec python -m gpu_check "$@"
