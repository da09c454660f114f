"""What ms-swift's parser takes and its training refuses or does not read: said of the arguments alone,
as the doctor reads them, and what the trainer itself says of the tables.
"""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("swift", reason="needs the extra [train]")
from typing import Any

from swift_rlvr.training.ms_swift.unread import READERS
from swift_rlvr.training.ms_swift.unusable import LOSSES, RANGES, REFUSED_LOSSES
from swift_rlvr.training.reason_callback import ReasonCallback
from swift_rlvr.utils.errors import InputError

pytestmark = pytest.mark.slow  # as a whole

ROOT = Path(__file__).parents[3]
CPU = "scripts/configs/countdown_cpu.yaml"
TINY = "plugin/swift_rlvr/share/tiny_model/weights"
# Flags, the settings that are named, and what is said of them. Each of these ended a training.
CASES = {
    "--loss_type gspo": ("loss_type", "--importance_sampling_level sequence"),
    "--loss_type GRPO": ("loss_type", "one of grpo, bnpo"),
    "--loss_type dppo": ("loss_type", "did you mean dapo?"),
    "--loss_type real": ("loss_type", "refuses the loss real"),
    "--loss_type fipo": ("loss_type", "refuses the loss fipo"),
    "--off_policy_sequence_mask_delta 0.1": ("off_policy_sequence_mask_delta", "leave it out"),
    "--temperature 2.5": ("temperature", "vLLM cannot use 2.5 -> at most 2"),
    "--temperature 0": ("temperature", "cannot use 0 -> more than 0"),
    "--top_p 0": ("top_p", "more than 0 and at most 1"),
    "--top_p 1.5": ("top_p", "vLLM cannot use 1.5"),
    "--top_k -5": ("top_k", "at least -1"),
    "--min_p 2": ("min_p", "at least 0 and at most 1"),
    "--repetition_penalty 0": ("repetition_penalty", "more than 0"),
    "--max_completion_length 0": ("max_completion_length", "at least 1"),
    "--num_iterations 0": ("num_iterations", "at least 1"),
    "--sync_ref_model true --ref_model_sync_steps 0": ("ref_model_sync_steps", "at least 1"),
    "--fipo_decay_rate 0": ("fipo_decay_rate", "more than 0"),
    "--loss_type sapo --tau_pos 0": ("tau_pos", "more than 0"),
    "--loss_type sapo --tau_neg 0": ("tau_neg", "more than 0"),
    "--top_entropy_quantile 0": ("top_entropy_quantile", "more than 0"),
    "--dataloader_num_workers -1": ("dataloader_num_workers", "at least 0"),
    "--tuner_type lora --lora_rank 0": ("lora_rank", "at least 1"),
    # These run to their end, and nothing is learned, or the wrong thing.
    "--learning_rate 0": ("learning_rate", "no weight changes -> more than 0"),
    "--top_k 1": ("top_k", "all completions of a prompt are the same"),
    "--min_p 1": ("min_p", "all completions of a prompt are the same"),
    "--temperature 0.001": ("temperature", "vLLM takes 0.01 in its place"),
    "--beta=-0.1": ("beta", "cannot use -0.1 -> at least 0"),
    "--epsilon=-1": ("epsilon", "at least 0"),
    "--epsilon_high=-0.5": ("epsilon_high", "at least 0"),
    "--loss_type cispo": ("epsilon_high", "0.2 cuts that of every token -> --epsilon_high 5"),
    "--loss_type cispo --epsilon_high 0": ("epsilon_high", "0 cuts that of every token"),
    "--dynamic_sample true --max_resample_times 0": ("max_resample_times", "at least 1"),
    "--delta 0.5": ("delta", "more than 1"),
    "--rollout_importance_sampling_mode token_truncate --rollout_importance_sampling_threshold 0": (
        "rollout_importance_sampling_threshold",
        "more than 0",
    ),
    "--tuner_type lora --lora_alpha 0": ("lora_alpha", "more than 0"),
    "--tuner_type lora --lora_dropout 1": ("lora_dropout", "at least 0 and less than 1"),
    "--streaming true": ("streaming", "would answer different questions"),
    "--freeze_parameters_ratio 1": ("freeze_parameters_ratio", "no parameter of the model is left"),
    "--freeze_parameters model lm_head": ("freeze_parameters", "no parameter"),
    "--freeze_parameters_regex .*": ("freeze_parameters_regex", "no parameter"),
    "--tuner_type lora --target_modules nothing": ("target_modules", "not found in the base model"),
    "--dataset a b --interleave_prob 1": ("interleave_prob", "1 probabilities for 2 datasets"),
    "--callbacks reward_reason": ("callbacks", "did you mean reward_reasons?"),
    "--optimizer adamw": ("optimizer", "known are default, galore"),
    "--multi_turn_scheduler feedback": ("multi_turn_scheduler", "did you mean rlvr_feedback?"),
    "--multi_turn_scheduler gym_scheduler --gym_env math": ("gym_env", "have no math"),
    "--gym_env math_env": ("gym_env", "--multi_turn_scheduler gym_scheduler"),
    "--reward_model {tiny} --reward_model_type qwen2 --reward_model_plugin mine": (
        "reward_model_plugin",
        "have no mine -> known are default",
    ),
    "--reward_model {tiny} --reward_model_type qwen2 --reward_model_plugin genrm default": (
        "reward_model_plugin",
        "2 plugins for 1 reward models",
    ),
    "--reward_model {tiny}": ("reward_model", "--reward_model_type for each"),
    "--use_ray true": ("use_ray", "trains without Ray"),
    "--chord_sft_dataset x": (
        "chord_sft_dataset",
        "set chord_sft_per_device_train_batch_size, chord_mu_warmup_steps",
    ),
    "--eval_on_start true": ("eval_on_start", "no rows for an evaluation"),
    "--reward_funcs external_countdown soft_overlong --soft_cache_length 600": (
        "reward_funcs",
        "soft_overlong fails with soft_cache_length 600, soft_max_length 512",
    ),
    "--reward_funcs external_countdown soft_overlong --soft_cache_length 0": (
        "reward_funcs",
        "division by zero",
    ),
    "--reward_funcs external_countdown repetition --repetition_n_grams 0": (
        "reward_funcs",
        "repetition fails with repetition_n_grams 0",
    ),
    "--loss_scale nothing": ("loss_scale", "no 'nothing' in nothing"),
    "--learning_rate -1": ("optim", "Invalid learning rate: -1"),
    "--adam_beta2 1": ("optim", "Invalid beta parameter"),
    "--adam_epsilon -1": ("optim", "Invalid epsilon"),
    "--lr_scheduler_type cosine_with_min_lr": ("lr_scheduler_type", "One of min_lr"),
    "--lr_scheduler_type warmup_stable_decay": ("lr_scheduler_type", "num_decay_steps"),
}
USABLE = (
    "",
    "--loss_type sapo --importance_sampling_level sequence",
    "--loss_type cispo --epsilon_high 5 --beta 0",
    "--loss_type sapo --tau_pos 2",
    "--loss_type bnpo --delta 1.5 --epsilon 0.1",
    "--loss_type dapo",
    "--loss_type grpo --steps_per_generation 16",
    "--sync_ref_model true --ref_model_sync_steps 10",
    "--reward_funcs external_soft_overlong --soft_cache_length 100",
    "--split_dataset_ratio 0.1 --eval_steps 5",
    "--tau_pos 1.0 --epsilon 0.2",  # the defaults
    "--freeze_parameters_ratio 0.5",
    "--template llama3",
    "--freeze_parameters_ratio 1 --trainable_parameters lm_head model.norm",
    "--tuner_type lora --target_modules q_proj v_proj --lora_dropout 0",
    "--dataset a b --interleave_prob 0.9 0.1",
    "--multi_turn_scheduler gym_scheduler --gym_env math_env",
    "--reward_funcs accuracy soft_overlong repetition --soft_cache_length 100",
    '--lr_scheduler_type cosine_with_min_lr --lr_scheduler_kwargs {"min_lr":1e-7}',
    "--optim sgd --loss_scale last_round+ignore_empty_think",
)
# Flags of which a training with the tiny recipe reads none, the settings, and what is said of the first.
UNREAD = {
    "--tau_pos 2": (["tau_pos"], "it is for --loss_type sapo"),
    "--loss_type sapo --epsilon 0.1 --delta 2": (["epsilon", "delta"], "a loss that clips"),
    "--loss_type cispo --epsilon_high 5 --epsilon 0.1": (["epsilon"], "clips from below"),
    "--fipo_decay_rate 8": (["fipo_decay_rate"], "which the trainer refuses"),
    "--kl_coef 0.001": (["kl_coef"], "GRPO's weight of the KL is beta"),
    "--cliprange 0.3": (["cliprange"], "GRPO's clip range is epsilon"),
    "--beta 0 --sync_ref_model true": (["sync_ref_model"], "a beta above 0"),
    "--scale_rewards gdpo --advantage_estimator rloo": (["advantage_estimator"], "other than gdpo"),
    "--max_resample_times 5": (["max_resample_times"], "--dynamic_sample true"),
    "--reward_funcs format --cosine_max_len 99": (["cosine_max_len"], "cosine or external_cosine"),
    "--lora_rank 16 --target_modules q_proj": (["lora_rank", "target_modules"], "an adapter"),
    "--tuner_type lora --freeze_parameters_ratio 0.5": (["freeze_parameters_ratio"], "full"),
    "--train_dataloader_shuffle false": (["train_dataloader_shuffle"], "GRPO's is dataset_shuffle"),
    "--offload_model true": (["offload_model"], "--vllm_mode colocate"),
    "--max_turns 3": (["max_turns"], "multi_turn_scheduler"),
    "--eval_strategy steps --eval_steps 5": (
        ["eval_steps", "eval_strategy"],
        "rows to evaluate on",
    ),
    # Not unread: it multiplies the loss, with the recipe's 8 gradient_accumulation_steps.
    "--loss_type dapo --steps_per_generation 16": (
        ["steps_per_generation"],
        "a step sums 8 of them: the gradient is 0.5 times as large",
    ),
    "--loss_type cispo --epsilon_high 5 --generation_batch_size 32": (
        ["steps_per_generation"],
        "cispo divides by the tokens of all 2 micro-batches",
    ),
}


def last_line(code: str, *arguments: str) -> Any:
    """What a program in a process of its own prints last, as JSON."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800)
    assert done.stdout, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


PARSE = """
import json, os, sys
os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", DS_ACCELERATOR="cpu")
from swift_rlvr.launch.parse_arguments import NAMED_MODEL, parse
recipe, cases = sys.argv[1:]
sys.argv = [sys.argv[0], recipe]
answers = []
for model, flags in json.loads(cases):
    os.environ[NAMED_MODEL] = model
    parsed = parse([recipe, *flags.split()], 2)
    problem = parsed.problem or parsed.failure
    warned = [*parsed.unread, *parsed.rescaled]
    answers.append([problem, parsed.unusable, parsed.end_of_answer, parsed.untried, warned])
    length = parsed.numbers.get("max_completion_length")
print(json.dumps([answers, parsed.settings, length]))
"""


# What cannot be tried of a model that is not on this machine.
UNTRIED = {
    "--freeze_parameters_ratio 1": ["freeze_parameters_ratio"],
    "--tuner_type lora --target_modules none": ["target_modules"],
    "": [],
}


def test_the_arguments_alone_say_it():
    """All of them in one process, for the imports take seconds."""
    with_model = [*USABLE, *UNREAD, *(flags.format(tiny=TINY) for flags in CASES)]
    cases = [(TINY, flags) for flags in with_model]
    # The last for what a plan that reads max_completion_length would not see.
    cases += [("Qwen/not-on-this-machine", flags) for flags in [*UNTRIED, "--max_new_tokens 99"]]
    answers, settings, length = last_line(PARSE, CPU, json.dumps(cases))
    assert length == 99
    for (_, flags), (problem, *_) in zip(cases, answers, strict=True):
        assert not problem, (flags, problem)

    usable = answers[: len(USABLE)]
    unread = answers[len(USABLE) :][: len(UNREAD)]
    unusable = answers[len(USABLE) + len(UNREAD) : len(with_model)]
    without_model = answers[len(with_model) : -1]
    for flags, (_, found, end, _, ignored) in zip(USABLE, usable, strict=True):
        assert not found and not ignored, flags
        assert end == ("<|eot_id|>" if "llama3" in flags else ""), flags
    for (flags, (setting, text)), (_, found, *_) in zip(CASES.items(), unusable, strict=True):
        assert [each[0] for each in found] == [setting], (flags, found)
        assert text in f"{found[0][1]} -> {found[0][2]}", (flags, found)
    for (flags, (names, text)), (_, found, _, _, ignored) in zip(
        UNREAD.items(), unread, strict=True
    ):
        assert not found and [each[0] for each in ignored] == names, (flags, found, ignored)
        assert text in ignored[0][1], (flags, ignored)
    for (flags, expected), (_, found, _, untried, _) in zip(
        UNTRIED.items(), without_model, strict=True
    ):
        assert not found and untried == expected, flags
    for readers in READERS:
        assert {*readers.settings} <= {*settings}, readers


def test_an_older_ms_swift_has_fewer_settings():
    """Of releases before 4.6, which have no advantage_reweight, the others are judged all the same."""
    older = SimpleNamespace(
        loss_type="grpo",
        epsilon_high=None,
        scale_rewards="group",
        reward_funcs=[],
        tuner_type="full",
        dataset=["a"],
        val_dataset=[],
        split_dataset_ratio=0.0,
        eval_dataset=[],
    )
    used = {
        setting for readers in READERS if readers.is_there(older) for setting in readers.settings
    }
    assert "freeze_parameters" in used and "rlsd_lambda" not in used


TRAIN = """
import json, os, sys
os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", DS_ACCELERATOR="cpu")
from swift.pipelines import rlhf_main
answers = {}
for loss in json.loads(sys.argv[2]):
    try:
        rlhf_main([*sys.argv[3:], "--loss_type", loss])
        answers[loss] = ""
    except Exception as error:
        answers[loss] = type(error).__name__
print(json.dumps(answers))
"""


@pytest.mark.weekly  # what ms-swift's own trainer does, of the version that is pinned
def test_the_trainer_makes_a_step_with_these_losses_and_no_others(tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"messages": [{"role": "user", "content": "1 + 1"}]}\n' * 8)
    flags = f"""--rlhf_type grpo --model {TINY} --model_type qwen2 --template qwen2_5
        --check_model false --tuner_type full --torch_dtype float32 --bf16 false --fp16 false
        --gradient_checkpointing false --dataset {rows} --max_length 64 --dataloader_num_workers 0
        --reward_funcs format --use_vllm false --num_generations 2 --max_completion_length 8
        --per_device_train_batch_size 4 --gradient_accumulation_steps 1 --max_steps 1
        --save_strategy no --report_to none --use_cpu true --output_dir {tmp_path / "run"}"""
    losses = [*LOSSES, *REFUSED_LOSSES, "gspo"]
    answers = last_line(TRAIN, "", json.dumps(losses), *flags.split())
    refused = dict.fromkeys(REFUSED_LOSSES, "ValueError")
    assert answers == dict.fromkeys(LOSSES, "") | refused | {"gspo": "UnboundLocalError"}


def test_vllm_takes_what_the_ranges_allow_and_nothing_beyond():
    vllm = pytest.importorskip("vllm", reason="needs vLLM")
    for limits in RANGES:
        if limits.whose != "vLLM":
            continue
        for value in (-5, -2, -1, 0, 0.5, 1, 1.5, 2, 2.5):
            if limits.setting == "top_k" and value != int(value):
                continue
            try:
                vllm.SamplingParams(**{limits.setting: value})
                is_taken = True
            except vllm.exceptions.VLLMValidationError:
                is_taken = False
            # Below 0 the trainer's own limit refuses a temperature.
            if limits.setting != "temperature" or value >= 0:
                assert limits.holds(value) == is_taken, (limits.setting, value)


def test_a_trainer_without_rewards_is_told_from_a_fault(tmp_path):
    """Plain `swift rlhf --rlhf_type gkd --callbacks reward_reasons`; a launch refuses it in the plan."""

    class GKDTrainer:
        pass

    callback = ReasonCallback(SimpleNamespace(output_dir=tmp_path), GKDTrainer())
    with pytest.raises(InputError, match="callbacks: .*--rlhf_type grpo; GKDTrainer has none"):
        callback.on_train_begin(None, SimpleNamespace(is_world_process_zero=True), None)
