#!/usr/bin/env bash
# The Countdown experiment on two nodes of a SLURM cluster: train_countdown.sh once on each, with this job's addresses.
#
#   sbatch scripts/slurm.sh [RECIPE.yaml] [flags of swift rlhf]
#   RESUME=1 sbatch scripts/slurm.sh
#
# Hardware: two nodes of eight GPUs. On both the trainers have GPUs 0 to 3; on the first the rollout server has the others.
# The checkout, its environment and the output are in folders that the nodes share. Change the lines below for your cluster,
# or override them: sbatch --partition gpu --nodes 4 scripts/slurm.sh
# Variables: those of train_countdown.sh, which sbatch passes on; TRAIN_GPUS (0,1,2,3), the same number on every node.
#SBATCH --job-name=countdown
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=32
#SBATCH --time=24:00:00
#SBATCH --output=slurm-%j.log

set -euo pipefail
# sbatch runs a copy of this file, in the folder where it was called: the root of the checkout.
cd "${SLURM_SUBMIT_DIR:?is set by sbatch: sbatch scripts/slurm.sh}"
[ -e scripts/train_countdown.sh ] || { echo "error: call sbatch in the root of the checkout" >&2; exit 2; }

MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))  # two jobs on a node do not meet
export NNODES=$SLURM_JOB_NUM_NODES MASTER_ADDR MASTER_PORT TRAIN_GPUS=${TRAIN_GPUS:-0,1,2,3}

srun --nodes=1 --ntasks=1 bash scripts/install.sh  # once: the environment is shared
# --kill-on-bad-exit: when one node fails, the others wait for it for nothing.
exec srun --kill-on-bad-exit=1 bash -c 'NODE_RANK=$SLURM_NODEID exec bash scripts/train_countdown.sh "$@"' node "$@"
