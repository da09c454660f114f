"""Registers rewards, datasets, callbacks and a multi-turn scheduler with ms-swift.

    swift rlhf --external_plugins plugin/rlvr_plugin.py --reward_funcs external_countdown format \
        --dataset countdown:datasets/countdown/train.jsonl ...

Registered are this package's, and those that installed packages add by the entry points
`swift_rlvr.rewards` and `swift_rlvr.tasks`. Everything else is in swift_rlvr:

- rewards go into `orms` under the names in REWARDS; none is overwritten. A name with a colon in
  `--reward_funcs`, such as trl.rewards:accuracy_reward, is an import path of another's reward;
- what `--dataset` takes: docs/guides/own_data.md;
- `--callbacks reward_reasons held_out curriculum`: docs/guides/reading_a_run.md, docs/guides/curriculum.md;
- `megatron rlhf` takes rewards, datasets and reward_reasons: docs/launch/megatron.md;
- `--multi_turn_scheduler rlvr_feedback`, also for `swift rollout`: docs/guides/multi_turn.md.

For ms-swift 4.0.2 and later; `held_out`, `curriculum` and several turns need 4.6. scripts/compat.sh
shows what works with which version. ms-swift has datasets for the same ModelScope ids. They stay,
but a look-up by id finds the one registered last, which is ours.
"""

import sys

from swift.callbacks import callbacks_map
from swift.rewards import orms
from swift.utils import get_logger

from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.imported import import_reward, is_import_path, reward_names
from swift_rlvr.rewards.parameters import stray_variables
from swift_rlvr.tasks import TASKS
from swift_rlvr.training.curriculum import CurriculumCallback
from swift_rlvr.training.held_out import HeldOutCallback
from swift_rlvr.training.ms_swift.datasets import register_task
from swift_rlvr.training.ms_swift.reward_names import described
from swift_rlvr.training.reason_callback import ReasonCallback

logger = get_logger()

for name, reward in REWARDS.items():
    class_names = {registered.__name__ for registered in orms.values()}
    if name in orms:
        other = orms[name]
        remedy = "remove that plugin from --external_plugins"
        if other is reward:
            remedy = "load this plugin once"
        problem = f"the reward {name} is registered already, as {described(other)}: {remedy}"
    elif reward.__name__ in class_names:
        others = [other for other in orms.values() if other.__name__ == reward.__name__]
        problem = (
            f"a reward class is called {reward.__name__} already, {described(others[0])},"
            " and both would be logged under one name"
        )
    else:
        orms[name] = reward
        continue
    # Another package's reward must not keep ours from training.
    if name not in REWARDS.owners:
        raise ValueError(problem)
    owner = REWARDS.owner(name)
    logger.warning(f"left out the reward {name} of the distribution {owner}: {problem}")

# `megatron rlhf` has callbacks of its own, and on Ray a file in place of flags.
names_of_rewards = reward_names
if "swift.megatron" in sys.modules:
    from swift_rlvr.training.ms_swift import megatron

    megatron.register_callbacks(sys.argv)
    names_of_rewards = megatron.all_reward_names

# Rewards of others, by their import paths in the flags of this process.
for name in names_of_rewards(sys.argv):
    if is_import_path(name):
        orms.setdefault(name, import_reward(name))

for variable in stray_variables(REWARDS):
    names = ", ".join(REWARDS)
    logger.warning(f"{variable} is set, and no reward here has a name that it begins with: {names}")

callbacks = {
    "reward_reasons": ReasonCallback,
    "held_out": HeldOutCallback,
    "curriculum": CurriculumCallback,
}
for name, callback in callbacks.items():
    if name in callbacks_map:
        raise ValueError(f"the callback {name} is registered already: load this plugin once")
    callbacks_map[name] = callback
try:
    from swift_rlvr.training.ms_swift.multi_turn import register_scheduler
except ModuleNotFoundError as error:
    # Before 4.3 ms-swift's own schedulers need vLLM, and rewards and datasets do not.
    if error.name != "vllm":
        raise
else:
    register_scheduler()

for task in TASKS.values():
    try:
        register_task(task)
    except ValueError as error:
        # The name is taken.
        if task.name not in TASKS.owners:
            raise
        owner = TASKS.owner(task.name)
        logger.warning(f"left out the dataset {task.name} of the distribution {owner}: {error}")
