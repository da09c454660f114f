#!/usr/bin/env bash
# The Countdown experiment on two nodes of a SLURM cluster: runs train_countdown.sh once on each node.
#
#   sbatch scripts/slurm.sh [RECIPE.yaml] [flags of swift rlhf]
#
# Hardware: two nodes with eight GPUs each; the recipe is the one that train_countdown.sh uses for several nodes. Put the
# checkout, its environment and the output in folders that the nodes share. Edit the lines below for your cluster, or
# override them: sbatch --partition gpu --nodes 4 scripts/slurm.sh
# The job may be requeued at any time: by a failed node, by preemption or by `scontrol requeue`. It then resumes from the
# last complete checkpoint (RESUME=auto). At its time limit it requeues itself. A training that fails is not restarted.
# Variables: those of train_countdown.sh, which sbatch passes on; RESUME (auto), REQUEUES (how often the job may be
# requeued at its time limit: 10; 0: never).
#SBATCH --job-name=countdown
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=32
#SBATCH --time=24:00:00
#SBATCH --output=slurm-%j.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@120

set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^#SBATCH/{/^#SBATCH/d;s/^# \{0,1\}//p}' "$0"; exit 0 ;; esac
# sbatch runs a copy of this file, in the folder where it was called: the root of the checkout.
cd "${SLURM_SUBMIT_DIR:?is set by sbatch: sbatch scripts/slurm.sh}"
[ -e scripts/train_countdown.sh ] || { echo "error: call sbatch in the root of the checkout" >&2; exit 2; }

MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))  # two jobs on a node do not meet
export NNODES=$SLURM_JOB_NUM_NODES MASTER_ADDR MASTER_PORT RESUME=${RESUME:-auto}
# From 22.05 on srun does not inherit the job's cores for a task: ranks and loaders would share one.
CORES=()
[ -z "${SLURM_CPUS_PER_TASK:-}" ] || CORES=("--cpus-per-task=$SLURM_CPUS_PER_TASK")

# SLURM sends USR1 two minutes before the time limit (--signal). A requeue ends the programs as scancel does.
requeue() {
  SIGNALLED=1
  if [ "${SLURM_RESTART_COUNT:-0}" -lt "${REQUEUES:-10}" ]; then
    echo "the time limit is near: requeued, to resume from the last complete checkpoint"
    scontrol requeue "$SLURM_JOB_ID" || true  # a cluster may forbid it, and says so
  else
    echo "the time limit is near, and the job was requeued ${SLURM_RESTART_COUNT:-0} times: sbatch it again to resume" >&2
  fi
}
trap requeue USR1

srun --nodes=1 --ntasks=1 "${CORES[@]}" bash scripts/install.sh  # once: the environment is shared
# --kill-on-bad-exit: when one node fails, the others wait for it for nothing.
srun --kill-on-bad-exit=1 "${CORES[@]}" \
  bash -c 'NODE_RANK=$SLURM_NODEID exec bash scripts/train_countdown.sh "$@"' node "$@" &
STEP=$!
SIGNALLED=1
while [ -n "$SIGNALLED" ]; do  # a signal ends `wait`, and not the step
  SIGNALLED='' STATUS=0
  wait "$STEP" || STATUS=$?
done
exit "$STATUS"
