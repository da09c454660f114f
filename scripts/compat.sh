#!/usr/bin/env bash
# Which versions of ms-swift the plugin works with. For each version: an environment with the newest packages which that
# ms-swift accepts, this package's tests of the plugin, and one real step of GRPO with the tiny model, without vLLM. Ends
# with a table, and with status 1 if something does not work. The other scripts need the one version that they install.
# Hardware: two CPU cores, 8 GiB, 12 GB of disk for uv's cache; a version takes some minutes.
#
#   bash scripts/compat.sh                    the last release of each minor version, and 4.0.2
#   bash scripts/compat.sh 4.2.0 4.6.0
#
# Variables: KEEP=1 (keep the environments and logs, whose folder is printed), PYTHON (as for the other scripts).

set -euo pipefail
source "$(dirname "$0")/common.sh"
help_and_exit "$@"

VERSIONS=("$@")
[ $# -gt 0 ] || VERSIONS=(4.0.2 4.1.3 4.2.3 4.3.2 4.4.2 4.5.3 4.6.0)
for version in "${VERSIONS[@]}"; do
  [[ $version =~ ^[0-9]+(\.[0-9]+)+ ]] || die "'$version' is no version of ms-swift, such as 4.6.0"
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
# The tiny model's tokenizer is written in the form of transformers 5.
cp -r plugin/swift_rlvr/share/tiny_model/weights "$WORK/tiny_transformers_4"
sed -i 's/"extra_special_tokens"/"additional_special_tokens"/' "$WORK/tiny_transformers_4/tokenizer_config.json"

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

# grpo_step VERSION OUTPUT: what `swift rlhf` runs in one process. The reward for length shows that ms-swift's flags reach it.
# From 4.0 to 4.2 the trainer imports an engine of vLLM's, for an annotation; the name is enough without vLLM.
grpo_step() {
  local model=plugin/swift_rlvr/share/tiny_model/weights program=(-m swift.cli.rlhf)
  case $1 in 4.[012].*)
    program=(-c "import runpy, swift.infer_engine as e; e.GRPOVllmEngine = object; runpy.run_module('swift.cli.rlhf', run_name='__main__')") ;;
  esac
  ! grep -q '^transformers==4' "$VENV/packages.txt" || model=$WORK/tiny_transformers_4
  interruptible "$VENV/bin/python" "${program[@]}" --rlhf_type grpo \
    --model "$model" --model_type qwen2 --template qwen2_5 --check_model false --tuner_type full --callbacks reward_reasons \
    --external_plugins plugin/rlvr_plugin.py --reward_funcs external_countdown format external_soft_overlong \
    --soft_max_length 2 --soft_cache_length 1 --dataset countdown:datasets/countdown/tiny_train.jsonl#64 \
    --split_dataset_ratio 0 --dataloader_num_workers 0 --dataloader_persistent_workers false \
    --torch_dtype float32 --bf16 false --fp16 false \
    --use_vllm false --num_generations 8 --per_device_train_batch_size 32 --gradient_accumulation_steps 1 \
    --max_length 512 --max_completion_length 64 --max_steps 1 --logging_steps 1 --learning_rate 1e-4 --warmup_ratio 0 \
    --log_completions true --save_strategy no --report_to none --output_dir "$2" --add_version false
}

# row VERSION FOLDER SECONDS: a line of the table from what the tests and the step left behind.
row() {
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

TABLE=("| ms-swift | transformers | TRL | tests of rewards | tests of datasets | reasons | flags reach rewards | GRPO step | seconds |"
  "|---|---|---|---|---|---|---|---|---|")
STATUS=0
for version in "${VERSIONS[@]}"; do
  start=$SECONDS
  VENV=$WORK/$version
  # The next process is spared what one has compiled, seconds of each import, and the checkout has no files of this.
  export MODELSCOPE_CACHE=$VENV/cache PYTHONPYCACHEPREFIX=$VENV/pycache PYTHONDONTWRITEBYTECODE=
  say "ms-swift $version"
  uv venv -q --python "${PYTHON:->=3.11,<3.13}" "$VENV"
  resolve "$version" "$VENV/packages.txt"
  install_packages "$VENV/packages.txt"
  echo "   installed after $((SECONDS - start)) s"
  interruptible "$VENV/bin/python" -m pytest -q -p no:cacheprovider --junitxml="$VENV/tests.xml" \
    tests/training/ms_swift/test_rewards.py tests/training/ms_swift/test_tasks.py \
    >"$VENV/tests.log" || grep '^FAILED\|^ERROR\|^E  ' "$VENV/tests.log" || tail -n 20 "$VENV/tests.log"
  echo "   tested after $((SECONDS - start)) s"
  grpo_step "$version" "$VENV/step" >"$VENV/step.log" 2>&1 || tail -n 20 "$VENV/step.log"
  TABLE+=("$(row "$version" "$VENV" $((SECONDS - start)))") || STATUS=1
done

printf '\n'
printf '%s\n' "${TABLE[@]}"
[ "${KEEP:-0}" != 1 ] || say "kept: $WORK"
exit "$STATUS"
