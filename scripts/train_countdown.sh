#!/usr/bin/env bash
# GRPO on Countdown with ms-swift. Shows a plan, checks what can go wrong, starts the rollout server and the ZeRO-3
# trainers, watches them, and stops everything that it started.
#
#   bash scripts/train_countdown.sh [RECIPE.yaml] [flags of swift rlhf]
#   bash scripts/train_countdown.sh --learning_rate 1e-6 --beta 0.04
#
# Hardware: it chooses the recipe of scripts/configs that fits the number and the memory of your GPUs: countdown_colocate,
# which trains and samples on all of them, countdown.yaml (the Countdown experiment, with a rollout server) on three, or
# countdown_lora on small ones. Without a GPU it runs countdown_cpu: the same programs with the tiny model on two CPU cores.
# Flags override the recipe.
# Variables: MODEL, DATASET, OUTPUT, HOST and PORT of the server, SYNC_PORT (29516, carries the weights to it),
# ROLLOUT_GPUS, TRAIN_GPUS, NPROC_PER_NODE (trainers), START_SERVER=0 (use a server that already runs on HOST:PORT),
# SERVER_TIMEOUT (seconds), RESUME (1: resume from the last complete checkpoint; auto: or start anew if there is none),
# RESTARTS (how often a server that died is restarted), VERBOSE=1 (show what the programs print), WANDB_API_KEY (report to
# wandb), DRY_RUN=1 (print the plan and the commands, and stop); for several nodes NNODES, NODE_RANK, MASTER_ADDR,
# MASTER_PORT.

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"
ensure_environment
export SWIFT_RLVR_SCRIPT="bash scripts/train_countdown.sh"  # for the command that resumes
exec swift-rlvr train countdown "$@"
