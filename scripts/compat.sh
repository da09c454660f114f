#!/usr/bin/env bash
# Tests which versions of ms-swift and TRL this package works with, and whether the README's install commands work with
# the newest packages. Prints a table at the end, and exits with status 1 if something does not work.
# Hardware: two CPU cores, 8 GiB, 12 GB of disk for uv's cache; a version takes some minutes.
#
#   bash scripts/compat.sh                    ms-swift: the last release of each minor version, and 4.0.2
#   bash scripts/compat.sh 4.2.0 4.6.0
#   bash scripts/compat.sh trl [VERSION...]   TRL 0.29.1 to 1.16.0, or these
#   bash scripts/compat.sh newest [EXTRA...]  each extra, unpinned, in an empty environment: trl, train, report and dev
#
# For ms-swift it installs the newest packages that the version accepts, runs this package's tests of the plugin, and does
# one real step of GRPO with the tiny model, without vLLM. The other scripts need the one version that they install.
# For TRL it does two steps with held-out evaluation, and runs the tests of training with TRL.
# Variables: KEEP=1 (keep the environments and logs, and print their folder), PYTHON (as for the other scripts; newest
# accepts any version).

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"

SUBJECT=ms-swift
case ${1:-} in trl | newest) SUBJECT=$1; shift ;; esac
CHOSEN=("$@")
if [ $# = 0 ]; then
  case $SUBJECT in
    ms-swift) CHOSEN=(4.0.2 4.1.3 4.2.3 4.3.2 4.4.2 4.5.3 4.6.0) ;;
    trl) CHOSEN=(0.29.1 1.0.0 1.4.0 1.8.0 1.12.0 1.16.0) ;;
    newest) CHOSEN=(trl train report dev) ;;
  esac
fi
for choice in "${CHOSEN[@]}"; do
  case $SUBJECT-$choice in
    newest-trl | newest-train | newest-report | newest-dev) ;;
    newest-*) die "'$choice' is not one of the extras trl, train, report and dev" ;;
    ms-swift-[0-9]*.*) ;;
    ms-swift-*) die "'$choice' is not a version of ms-swift, such as 4.6.0" ;;
    trl-[0-9]*.*) ;;
    trl-*) die "'$choice' is not a version of TRL, such as 1.16.0" ;;
  esac
done

WORK=$(mktemp -d)
clean_up() { [ "${KEEP:-0}" = 1 ] || rm -rf "$WORK"; }
trap clean_up EXIT
# Torch for a CPU on every machine, and nothing of the user's in a test: ms-swift keeps prepared datasets in its cache.
export KIND=cpu CUDA_VISIBLE_DEVICES='' USE_HF=0 HF_HUB_OFFLINE=1 OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
if ! uv pip install --help 2>/dev/null | grep -q -- --torch-backend; then
  VENV=$WORK get_uv "$(grep '^uv==' "$REQUIREMENTS/cpu.lock")"
  export PATH=$WORK/uv/bin:$PATH
fi

# environment NAME: an empty one for a choice, and what its processes leave behind in its own folder. The next process is
# spared what one has compiled, seconds of each import, and the checkout has no files of this.
environment() {
  VENV=$WORK/$1
  export MODELSCOPE_CACHE=$VENV/cache PYTHONPYCACHEPREFIX=$VENV/pycache PYTHONDONTWRITEBYTECODE=
  uv venv -q --python "${PYTHON:-$2}" "$VENV"
}

# install PACKAGE...: what pip would take today, of this machine's index.
install() {
  interruptible "$VENV/bin/python" "$REQUIREMENTS/with_pip_settings.py" uv pip install -q --python "$VENV/bin/python" "$@"
}

# step NAME COMMAND...: runs it with its output in NAME.log; a line of `outcomes` says whether it worked.
step() {
  local name=$1 start=$SECONDS status=0
  shift
  "$@" >"$VENV/$name.log" 2>&1 || status=$?
  [ "$status" = 0 ] || { echo "   $name fails:"; tail -n 20 "$VENV/$name.log"; }
  echo "$name $status" >>"$VENV/outcomes"
  echo "   $name: $((SECONDS - start)) s"
}

# ms-swift.

# The tiny model's tokenizer is written in the form of transformers 5.
tiny_transformers_4() {
  [ ! -e "$WORK/tiny_transformers_4" ] || return 0
  cp -r plugin/swift_rlvr/share/tiny_model/weights "$WORK/tiny_transformers_4"
  sed -i 's/"extra_special_tokens"/"additional_special_tokens"/' "$WORK/tiny_transformers_4/tokenizer_config.json"
}

# resolve VERSION LOCK: msgspec comes with vLLM, and ms-swift's GRPO trainer imports it without vLLM too. ms-swift 4.0 takes
# TRL up to 0.28, whose GRPO trainer cannot be imported beside transformers 5, and does not say so.
resolve() {
  local torch transformers=transformers
  case $1 in 4.0.*) transformers='transformers<5' ;; esac
  torch=$(grep '^torch==' "$REQUIREMENTS/cpu.lock")
  printf '%s\n' "ms-swift==$1" "$torch" "$(grep '^mpmath==' "$REQUIREMENTS/cpu.lock")" msgspec "$transformers" \
    typer rich numpy regex nvidia-ml-py pytest hypothesis setuptools >"$2.in"
  # A +cpu build comes from where the user has it, else from PyTorch's own index, which uv knows.
  compile() {
    interruptible "$VENV/bin/python" "$REQUIREMENTS/with_pip_settings.py" uv pip compile -q --no-header --no-annotate \
      --python "$VENV/bin/python" -o "$2" "$2.in" "${@:3}"
  }
  compile "$@" 2>"$2.log" || compile "$@" --torch-backend cpu || die "uv cannot resolve ms-swift $1; its message stands above"
}

# grpo_steps VERSION OUTPUT STEPS [FLAGS]: what `swift rlhf` runs in one process. The reward for length shows that ms-swift's flags reach it.
# From 4.0 to 4.2 the trainer imports an engine of vLLM's, for an annotation; the name is enough without vLLM.
grpo_steps() {
  local model=plugin/swift_rlvr/share/tiny_model/weights program=(-m swift.cli.rlhf)
  case $1 in 4.[012].*)
    program=(-c "import runpy, swift.infer_engine as e; e.GRPOVllmEngine = object; runpy.run_module('swift.cli.rlhf', run_name='__main__')") ;;
  esac
  if grep -qs '^transformers==4' "$VENV/packages.txt"; then
    tiny_transformers_4
    model=$WORK/tiny_transformers_4
  fi
  interruptible "$VENV/bin/python" "${program[@]}" --rlhf_type grpo \
    --model "$model" --model_type qwen2 --template qwen2_5 --check_model false --tuner_type full --callbacks reward_reasons \
    --external_plugins plugin/rlvr_plugin.py --reward_funcs external_countdown format external_soft_overlong \
    --soft_max_length 2 --soft_cache_length 1 --dataset countdown:datasets/countdown/tiny_train.jsonl#64 \
    --split_dataset_ratio 0 --dataloader_num_workers 0 --dataloader_persistent_workers false \
    --torch_dtype float32 --bf16 false --fp16 false \
    --use_vllm false --num_generations 8 --per_device_train_batch_size 32 --gradient_accumulation_steps 1 \
    --max_length 512 --max_completion_length 64 --max_steps "$3" --logging_steps 1 --learning_rate 1e-4 --warmup_ratio 0 \
    --log_completions true --save_strategy no --report_to none --output_dir "$2" --add_version false "${@:4}"
}

# row_of_swift VERSION FOLDER SECONDS: a line of the table from what the tests and the step left behind.
row_of_swift() {
  "$VENV/bin/python" - "$@" <<'PY'
import json, sys
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

swift, folder, seconds = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
cases = list(ElementTree.parse(folder / "tests.xml").iter("testcase")) if (folder / "tests.xml").exists() else []

def passed(name):
    mine = [case for case in cases if name in case.get("classname", "") and case.find("skipped") is None]
    return f"{sum(not len(case) for case in mine)} of {len(mine)}"

def rows(name):
    file = folder / "step" / name
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

steps = [row for row in rows("logging.jsonl") if "reward" in row]
step = steps[0] if steps else {}
names = ("rewards/CountdownReward/mean", "rewards/Format/mean", "grad_norm")
trained = step.get("grad_norm", 0) > 0 and all(name in step for name in names)
flags = step.get("rewards/SoftOverlongReward/mean") == -1  # every completion is longer than --soft_max_length
reasons = len(rows("records.jsonl")) > 0 and any(name.startswith("reasons/CountdownReward/") for name in step)
cells = [swift, version("transformers"), version("trl"), passed("test_rewards"), passed("test_tasks")]
cells += ["yes" if each else "NO" for each in (reasons, flags, trained)]
print("|", " | ".join([*cells, seconds]), "|")
done = [cell.split(" of ") for cell in cells[3:5]]
sys.exit(not (reasons and flags and trained and all(a == b != "0" for a, b in done)))
PY
}

check_swift() {
  local version=$1 start=$SECONDS
  environment "$version" '>=3.11,<3.13'
  resolve "$version" "$VENV/packages.txt"
  install_packages "$VENV/packages.txt"
  echo "   installed after $((SECONDS - start)) s"
  interruptible "$VENV/bin/python" -m pytest -q -p no:cacheprovider --junitxml="$VENV/tests.xml" \
    tests/training/ms_swift/test_rewards.py tests/training/ms_swift/test_tasks.py \
    >"$VENV/tests.log" || grep '^FAILED\|^ERROR\|^E  ' "$VENV/tests.log" || tail -n 20 "$VENV/tests.log"
  echo "   tested after $((SECONDS - start)) s"
  grpo_steps "$version" "$VENV/step" 1 >"$VENV/step.log" 2>&1 || tail -n 20 "$VENV/step.log"
  TABLE+=("$(row_of_swift "$version" "$VENV" $((SECONDS - start)))") || STATUS=1
}

# TRL, and the extras.

# trl_steps OUTPUT: two steps with held-out evaluation, in a folder that is no checkout, as after `pip install`.
trl_steps() {
  (cd "$WORK" && interruptible "$VENV/bin/swift-rlvr" train trl --max_steps 2 --held_out_every 1 --held_out_rows 4 \
    --held_out_samples 4 --per_device_train_batch_size 16 --max_completion_length 96 --output_dir "$1")
}

# row_of_steps NAME FOLDER SECONDS COLUMN...: a line of the table. A column is a name in `outcomes`, or `held-out`, which
# is read from the log of the two steps.
row_of_steps() {
  "$VENV/bin/python" - "$@" <<'PY'
import json, sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

name, folder, seconds, *columns = sys.argv[1:]
folder = Path(folder)
outcomes = dict(line.split() for line in (folder / "outcomes").read_text().splitlines())
log = folder / "steps" / "logging.jsonl"
lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
trained = [line for line in lines if line.get("grad_norm", 0) > 0]
evaluated = [line for line in lines if "eval/success" in line]
works = {
    **{column: status == "0" for column, status in outcomes.items()},
    "steps": outcomes.get("steps") == "0" and len(trained) == 2,
    "held-out": len(evaluated) == 3,  # before the first step and after each
}
cells = [name, f"{sys.version_info.major}.{sys.version_info.minor}"]
for package in "transformers", "trl", "ms-swift":
    try:
        cells.append(version(package))
    except PackageNotFoundError:
        cells.append("-")
failed = False
for column in columns:
    if column == "-":
        cells.append("-")
        continue
    cells.append("yes" if works.get(column) else "NO")
    failed |= not works.get(column)
print("|", " | ".join([*cells, seconds]), "|")
sys.exit(failed)
PY
}

check_trl() {
  local version=$1 start=$SECONDS
  environment "$version" '>=3.11,<3.14'
  step install install '.[trl,report]' "trl==$version" "$(grep '^torch==' "$REQUIREMENTS/trl.lock" | sed 's/+cpu//')" \
    pytest pytest-timeout hypothesis
  step steps trl_steps "$VENV/steps"
  step tests interruptible "$VENV/bin/python" -m pytest -q -p no:cacheprovider tests/training/test_trl.py
  TABLE+=("$(row_of_steps "TRL $version" "$VENV" $((SECONDS - start)) install steps held-out tests)") || STATUS=1
}

check_extra() {
  local extra=$1 start=$SECONDS
  local columns=(install explain - - - -)
  environment "$extra" '>=3.11,<3.14'
  step install install ".[$extra]"
  step explain "$VENV/bin/swift-rlvr" explain '<answer>3*5+7</answer>' --nums '3 5 7' --target 22
  case $extra in
    trl)
      step steps trl_steps "$VENV/steps"
      columns=(install explain steps held-out evaluate -) ;;
    train)
      step steps grpo_steps newest "$VENV/steps" 2 --save_strategy steps --save_steps 2
      columns=(install explain steps - evaluate -) ;;
    dev)  # tests that need no other extra and, unlike that of pictures, no package of the trainers
      step tests interruptible "$VENV/bin/python" -m pytest -q -p no:cacheprovider -n 2 \
        -m "not e2e and not slow and not weekly" -k "not reasoning_gym" --ignore tests/tasks/test_pictures.py \
        tests/tasks tests/verifiers/countdown
      columns=(install explain - - - tests) ;;
  esac
  case $extra in trl | train)
    step evaluate "$VENV/bin/swift-rlvr" evaluate "$VENV/steps/checkpoint-2" --num_generations 2 \
      --dataset countdown:datasets/countdown/tiny_test.jsonl#4 --max_completion_length 96 --out "$VENV/evaluated" ;;
  esac
  TABLE+=("$(row_of_steps "[$extra]" "$VENV" $((SECONDS - start)) "${columns[@]}")") || STATUS=1
}

STATUS=0
case $SUBJECT in
  ms-swift)
    TABLE=("| ms-swift | transformers | TRL | tests of rewards | tests of datasets | reasons | flags reach rewards | GRPO step | seconds |"
      "|---|---|---|---|---|---|---|---|---|") ;;
  trl)
    TABLE=("| | Python | transformers | TRL | ms-swift | installs | two steps | held-out | tests | seconds |"
      "|---|---|---|---|---|---|---|---|---|---|") ;;
  newest)
    TABLE=("| extra | Python | transformers | TRL | ms-swift | installs | explain | two steps | held-out | evaluate | tests | seconds |"
      "|---|---|---|---|---|---|---|---|---|---|---|---|") ;;
esac
for choice in "${CHOSEN[@]}"; do
  say "$SUBJECT $choice"
  case $SUBJECT in
    ms-swift) check_swift "$choice" ;;
    trl) check_trl "$choice" ;;
    newest) check_extra "$choice" ;;
  esac
done

printf '\n'
printf '%s\n' "${TABLE[@]}"
[ "${KEEP:-0}" != 1 ] || say "kept: $WORK"
exit "$STATUS"
