"""Settings that ms-swift takes and its GRPO never looks at, or only beside another one: a run with
`--tau_pos 2` and without `--loss_type sapo` is the run without it, and nothing says so.

As of 4.6.0, by grpo_trainer.py and rollout_mixin.py.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from swift_rlvr.training.ms_swift.unusable import Unusable
from swift_rlvr.utils.settings import as_list


@dataclass(frozen=True)
class Readers:
    """Settings, and what reads them. needed: for people. is_there: whether it is in the run."""

    settings: tuple[str, ...]
    needed: str
    is_there: Callable[[Any], bool]


def _with(setting: str, *values: Any) -> Callable[[Any], bool]:
    """Whether a setting has one of these values, or, where none is named, any but 0 and nothing."""

    def is_there(arguments: Any) -> bool:
        value = getattr(arguments, setting, None)  # older releases have fewer settings
        return value in values if values else bool(value)

    return is_there


def _rewarded_by(*names: str) -> Callable[[Any], bool]:
    return lambda arguments: not {*names}.isdisjoint(arguments.reward_funcs)


def _never(arguments: Any) -> bool:
    return False


def _is_evaluated(arguments: Any) -> bool:
    has_rows = bool(arguments.val_dataset) or arguments.split_dataset_ratio > 0
    return has_rows or bool(arguments.eval_dataset)


def _clips_below(arguments: Any) -> bool:
    # cispo limits the ratio from above alone, and takes `epsilon` where there is no `epsilon_high`.
    if arguments.loss_type == "cispo":
        return arguments.epsilon_high is None
    return bool(arguments.loss_type != "sapo")


# The first line that has a setting counts.
READERS = (
    # The loss.
    Readers(("tau_pos", "tau_neg"), "--loss_type sapo", _with("loss_type", "sapo")),
    Readers(("epsilon",), "a loss that clips from below, unlike this one", _clips_below),
    Readers(
        ("epsilon_high",),
        "a loss that clips, unlike sapo",
        lambda arguments: arguments.loss_type != "sapo",
    ),
    Readers(
        ("delta",),
        "--loss_type grpo, bnpo, dr_grpo or dapo",
        _with("loss_type", "grpo", "bnpo", "dr_grpo", "dapo"),
    ),
    Readers(
        ("fipo_decay_rate", "fipo_clip_range", "fipo_clip_high_only", "fipo_safety_threshold"),
        "--loss_type fipo, which the trainer refuses",
        _never,
    ),
    Readers(("real_tau",), "--loss_type real, which the trainer refuses", _never),
    Readers(("kl_coef",), "PPO; GRPO's weight of the KL is beta", _never),
    Readers(("cliprange",), "PPO; GRPO's clip range is epsilon", _never),
    Readers(("whiten_rewards",), "PPO; GRPO scales by scale_rewards", _never),
    Readers(("num_ppo_epochs",), "PPO; GRPO's is num_iterations", _never),
    Readers(("gamma", "lam", "vf_coef", "cliprange_value", "missing_eos_penalty"), "PPO", _never),
    Readers(("label_smoothing", "rpo_alpha", "ld_alpha", "label_smoothing_factor"), "DPO", _never),
    Readers(("enable_dft_loss", "enable_channel_loss"), "supervised training", _never),
    Readers(
        ("rollout_importance_sampling_threshold",),
        "rollout_importance_sampling_mode",
        _with("rollout_importance_sampling_mode"),
    ),
    # The reference policy, which is there for the KL term alone.
    Readers(
        ("kl_in_reward", "sync_ref_model", "ref_model", "ref_adapters"),
        "a beta above 0",
        _with("beta"),
    ),
    Readers(
        ("ref_model_sync_steps", "ref_model_mixup_alpha"),
        "--sync_ref_model true",
        _with("sync_ref_model"),
    ),
    # Advantages.
    Readers(
        ("advantage_estimator",),
        "scale_rewards other than gdpo, which has an estimator of its own",
        lambda arguments: arguments.scale_rewards != "gdpo",
    ),
    Readers(("max_resample_times",), "--dynamic_sample true", _with("dynamic_sample")),
    Readers(
        (
            *("rlsd_lambda", "rlsd_reweight_clip_range", "rlsd_lambda_warmup_steps"),
            *("rlsd_lambda_decay_steps", "rlsd_negative_only"),
        ),
        "--advantage_reweight rlsd",
        _with("advantage_reweight", "rlsd"),
    ),
    Readers(("sdar_gate_beta",), "sdar_loss_coef", _with("sdar_loss_coef")),
    Readers(
        (
            *(
                "chord_sft_per_device_train_batch_size",
                "chord_enable_phi_function",
                "chord_mu_peak",
            ),
            *("chord_mu_valley", "chord_mu_warmup_steps", "chord_mu_decay_steps"),
        ),
        "chord_sft_dataset",
        _with("chord_sft_dataset"),
    ),
    # Rewards, whose parameters of ours have the same flags.
    Readers(
        ("soft_cache_length", "soft_max_length"),
        "the reward soft_overlong or external_soft_overlong",
        _rewarded_by("soft_overlong", "external_soft_overlong"),
    ),
    Readers(
        (
            *("cosine_max_len", "cosine_min_len_value_wrong", "cosine_max_len_value_wrong"),
            *("cosine_min_len_value_correct", "cosine_max_len_value_correct"),
        ),
        "the reward cosine or external_cosine",
        _rewarded_by("cosine", "external_cosine"),
    ),
    Readers(
        ("repetition_n_grams", "repetition_max_penalty"),
        "the reward repetition or external_repetition_penalty",
        _rewarded_by("repetition", "external_repetition_penalty"),
    ),
    Readers(
        ("reward_model_type", "reward_model_plugin", "reward_adapters"),
        "reward_model",
        _with("reward_model"),
    ),
    # What is trained.
    Readers(
        (
            *("lora_rank", "lora_alpha", "lora_dropout", "lora_bias", "use_rslora", "use_dora"),
            *("target_modules", "target_regex", "modules_to_save", "vllm_enable_lora"),
        ),
        "an adapter: --tuner_type lora",
        lambda arguments: arguments.tuner_type != "full",
    ),
    Readers(
        (
            *("freeze_parameters", "freeze_parameters_ratio", "freeze_parameters_regex"),
            *("trainable_parameters", "trainable_parameters_regex"),
        ),
        "--tuner_type full",
        _with("tuner_type", "full"),
    ),
    # Rows and their order.
    Readers(("train_dataloader_shuffle",), "other trainings; GRPO's is dataset_shuffle", _never),
    Readers(("group_by_length",), "supervised training", _never),
    Readers(
        ("interleave_prob", "stopping_strategy"),
        "several datasets",
        lambda arguments: len(arguments.dataset) > 1,
    ),
    # Sampling.
    Readers(
        ("sleep_level", "offload_model", "offload_optimizer"),
        "--vllm_mode colocate",
        _with("vllm_mode", "colocate"),
    ),
    Readers(("min_p", "structured_outputs_regex"), "--use_vllm true", _with("use_vllm")),
    Readers(
        ("max_turns", "completion_length_limit_scope"),
        "multi_turn_scheduler",
        _with("multi_turn_scheduler"),
    ),
    # Evaluations.
    Readers(
        ("eval_steps", "eval_strategy", "num_generations_eval", "early_stop_interval"),
        "rows to evaluate on: val_dataset or split_dataset_ratio",
        _is_evaluated,
    ),
)


def unread(arguments: Any, named: Mapping[str, Any]) -> Iterator[Unusable]:
    """Which of the settings that a recipe or flags name a training of ms-swift does not read.

    arguments: as ms-swift has parsed them. named: the values as they were written, since ms-swift takes
    some back, such as eval_strategy. One at ms-swift's default is left out: it changes nothing,
    whoever reads it.
    """
    defaults: dict[str, Any] = {}
    for each in fields(arguments):
        defaults[each.name] = each.default
        if each.default_factory is not MISSING:
            defaults[each.name] = each.default_factory()
    for readers in READERS:
        if readers.is_there(arguments):
            continue
        for setting in readers.settings:
            if setting in named and as_list(named[setting]) != as_list(defaults.get(setting)):
                problem = f"ms-swift accepts it but does not use it in this run: it is for {readers.needed}"
                yield Unusable(setting, problem, "leave it out, or set what it is for")
