#!/usr/bin/env bash
# GRPO with TRL's GRPOTrainer instead of ms-swift's: the same rewards, datasets and logs, in one process. At the end it
# loads the trained model again and asks it one question.
#
#   bash scripts/train_trl.sh [RECIPE.yaml] [flags of swift-rlvr train]
#   bash scripts/train_trl.sh --max_steps 20 --temperature 0.9
#
# Hardware: the first visible GPU runs the R1-Zero recipe (r1_zero_trl.yaml). Without a GPU it trains the tiny model on
# Countdown (countdown_trl_cpu.yaml): 40 steps in about ten minutes on one CPU core.
# Flags override the recipe; `swift-rlvr train --trainer trl --help` lists them.
# Variables: MODEL, DATASET, OUTPUT, USE_HF=0 (datasets by name from ModelScope, not Hugging Face), WANDB_API_KEY (report
# to wandb), EXTERNAL_<REWARD>_<PARAMETER> for the rewards, DRY_RUN=1 (print the command and stop).

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"
ensure_environment
exec swift-rlvr train trl "$@"
