# Sourced by every script here: the virtual environment, recipes, hardware, ports, and stopping child processes.
# All of them run in the root of the repository, from which relative paths count.
# Variables: PYTHON (interpreter that makes the environment, 3.11 or 3.12), VENV (default: .venv in the repository).

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
PYTHON=${PYTHON:-python3}
VENV=${VENV:-$ROOT/.venv}

say() { printf '\033[1m== %s\033[0m\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 2; }

# help_and_exit "$@": with --help or -h among the arguments, prints the calling script's header and exits.
help_and_exit() {
  local argument
  for argument in "$@"; do
    case $argument in -h | --help) sed -n '2,/^$/s/^# \{0,1\}//p' "scripts/${0##*/}"; exit 0 ;; esac
  done
}

# read_recipe NAME VARIABLE=FLAG... -- ARGUMENTS...: sets CONFIG to the recipe, which is the first argument if that is a
# .yaml file and else scripts/configs/NAME.yaml, and FLAGS to what overrides it: the variables that are set, as flags,
# and then the other arguments. Of a flag that is given twice the last counts. Variables that were settings once are an
# error: a training that ignored them would be found out too late.
read_recipe() {
  local name removed=(LEARNING_RATE SCHEDULER WARMUP WEIGHT_DECAY BETA EPSILON GENERATIONS BATCH MICRO_BATCH EVAL_BATCH
    ACCUMULATION ITERATIONS MAX_COMPLETION EPOCHS MAX_STEPS SAVE_STEPS EVAL_STEPS LOGGING_STEPS KEEP REWARDS
    REWARD_WEIGHTS EVAL_DATASET SAMPLER TASK)
  for name in "${removed[@]}"; do
    [ -z "${!name+set}" ] || die "the variable $name has no effect: settings are flags, named as in scripts/configs/*.yaml"
  done
  CONFIG=scripts/configs/$1.yaml FLAGS=()
  while shift && [ "$1" != -- ]; do
    name=${1%=*}
    [ -z "${!name:-}" ] || FLAGS+=("--${1#*=}" "${!name}")
  done
  shift
  case ${1:-} in *.yaml | *.yml) CONFIG=$1; shift ;; esac
  [ -f "$CONFIG" ] || die "there is no recipe $CONFIG"
  [ -z "${WANDB_API_KEY:-}" ] || [ -z "$(setting report_to)" ] || FLAGS+=(--report_to wandb)
  FLAGS+=("$@")
}

# print_command COMMAND...: for DRY_RUN, as it could be typed.
print_command() {
  [ "$1" != env ] || shift
  echo "${CUDA_VISIBLE_DEVICES:+CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES }$(printf '%q ' "$@")"
}

# setting NAME: its value in FLAGS, else in CONFIG; empty where it has none. For names with a single value.
setting() {
  local i value
  value=$(sed -n "s/^$1: *//p" "$CONFIG" | sed "s/ \{1,\}#.*//; s/^[\"']//; s/[\"']\$//")
  for ((i = 0; i < ${#FLAGS[@]}; i++)); do
    case ${FLAGS[i]} in
      "--$1") value=${FLAGS[i + 1]:-} ;;
      "--$1="*) value=${FLAGS[i]#*=} ;;
    esac
  done
  echo "$value"
}

# GPUs that this process may use, as a comma-separated list of ids; empty where there are none.
visible_gpus() {
  local ids
  ids=$(nvidia-smi --query-gpu=index --format=csv,noheader 2>/dev/null | paste -sd, -) || ids=
  [ -z "$ids" ] || echo "${CUDA_VISIBLE_DEVICES-$ids}"
}
have_gpu() { [ -n "$(visible_gpus)" ]; }

# ms-swift's command line; without a GPU through the CPU backend, which takes the same commands and flags.
SWIFT=(python -m swift_rlvr.cpu_backend)
if have_gpu; then SWIFT=(swift); fi

# Everything is pinned, so nothing is resolved; torchvision and its kin would come for CUDA and break a CPU torch.
install_packages() {
  set -euo pipefail
  "$1" -m pip install --no-deps --no-compile --disable-pip-version-check -r "$2" |
    awk '/^(Collecting|Requirement already)/ { if (++n % 20 == 0) print "   " n " packages found"; fflush() }
         /^Installing/ { print "   unpacking"; fflush() }'
  "$1" -m pip install -q --no-deps --no-build-isolation --disable-pip-version-check -e "$ROOT"
}
export -f install_packages
export ROOT

# Makes the environment and installs the lock file for this machine, once per content of that file.
ensure_environment() {
  local kind=cpu lock stamp
  if have_gpu; then kind=gpu; fi
  lock=$ROOT/scripts/requirements/$kind.lock
  stamp=$VENV/.installed-$(cat "$lock" "$ROOT/setup.cfg" | sha256sum | cut -c1-16)
  if [ ! -e "$stamp" ]; then
    command -v "$PYTHON" >/dev/null || die "no interpreter '$PYTHON': set PYTHON to Python 3.11 or 3.12"
    "$PYTHON" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' ||
      die "$("$PYTHON" --version) does not fit: set PYTHON to Python 3.11 or 3.12"
    say "installing $(grep -c == "$lock") pinned packages into $VENV (two to three minutes)"
    [ -x "$VENV/bin/python" ] || "$PYTHON" -m venv "$VENV" || die "could not make $VENV (on Debian: apt install python3-venv)"
    run_group install_packages "$VENV/bin/python" "$lock" || die "the installation failed; its output stands above"
    rm -f "$VENV"/.installed-*
    touch "$stamp"
  fi
  export PATH=$VENV/bin:$PATH
  # DeepSpeed calls functions that torch has renamed, and the warnings would stand between the steps of every training.
  export PYTHONWARNINGS=${PYTHONWARNINGS:-ignore::FutureWarning:torch.distributed.c10d_logger}
}

# port_is_free PORT: no program uses it on any address of this machine, as swift rollout requires.
port_is_free() { can_bind "$1" 1; }

# await_port PORT: waits until swift rollout can use the port. The system holds a port for a minute after its server has
# ended, and swift rollout would silently take the next one.
await_port() {
  local waited
  for ((waited = 0; waited < 120; waited++)); do
    ! can_bind "$1" 0 || return 0
    [ $((waited % 10)) -ne 0 ] || echo "   waiting for port $1, which a server has just left: $waited s"
    sleep 1
  done
  die "port $1 is still not free"
}

can_bind() {
  python - "$1" "$2" <<'PY'
import socket, sys
with socket.socket() as s:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(sys.argv[2]))
    try:
        s.bind(("", int(sys.argv[1])))
    except OSError:
        sys.exit(1)
PY
}

# wait_for_server HOST PORT PID LOG: until the rollout server answers. PID and LOG are empty if it was started elsewhere.
wait_for_server() {
  local start=$SECONDS limit=${SERVER_TIMEOUT:-1800}
  until python -c "import urllib.request as r; r.urlopen('http://$1:$2/health/', timeout=2)" 2>/dev/null; do
    if [ -n "$3" ] && ! kill -0 "$3" 2>/dev/null; then
      tail -n 25 "$4" >&2
      die "the rollout server ended before it was ready; its log is $4"
    fi
    [ $((SECONDS - start)) -lt "$limit" ] || die "no rollout server at $1:$2 after $limit s (SERVER_TIMEOUT)"
    [ $(((SECONDS - start) % 10)) -ne 0 ] || echo "   waiting for the server: $((SECONDS - start)) s"
    sleep 1
  done
  echo "   the server is ready after $((SECONDS - start)) s"
}

# stop_group PID SECONDS: ends the process group that PID leads, with TERM, and with KILL if it is still there after SECONDS.
stop_group() {
  kill -TERM -- "-$1" 2>/dev/null || return 0
  local i
  for ((i = 0; i < $2 * 10; i++)); do
    kill -0 -- "-$1" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -KILL -- "-$1" 2>/dev/null || true
}

# start_group COMMAND...: runs it in the background as the leader of a process group, whose id is in $GROUP. All of these
# groups are stopped when the script ends, is interrupted or is terminated.
GROUPS_STARTED=()
start_group() {
  setsid "$@" &
  GROUP=$!
  GROUPS_STARTED+=("$GROUP")
}
# run_group FUNCTION|COMMAND...: the same, and waits for it; an interrupt ends it at once. Returns its status.
run_group() {
  local status=0
  start_group bash -c '"$@"' run_group "$@"
  wait "$GROUP" || status=$?
  # Stop what it left behind now: later the id may belong to another group.
  stop_group "$GROUP" 5
  unset 'GROUPS_STARTED[-1]'
  return "$status"
}
stop_started_groups() {
  local i
  for ((i = ${#GROUPS_STARTED[@]} - 1; i >= 0; i--)); do stop_group "${GROUPS_STARTED[i]}" "${STOP_SECONDS:-20}"; done
}
trap stop_started_groups EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
