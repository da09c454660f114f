"""Registers rewards, datasets and callbacks with ms-swift: this package's, and those that installed
packages add by the entry points `swift_rlvr.rewards` and `swift_rlvr.tasks`. Only that: the rest is
in swift_rlvr. For ms-swift 4.0.2 and later; `held_out`, `curriculum` and several turns need 4.6.
scripts/compat.sh shows what works with which version.

    swift rlhf --external_plugins plugin/rlvr_plugin.py --reward_funcs external_countdown format \
        --dataset countdown:datasets/countdown/train.jsonl ...

Rewards go into `orms` under the names in REWARDS; none is overwritten. `--callbacks reward_reasons
held_out curriculum`: see swift_rlvr/training/README.md; `--multi_turn_scheduler rlvr_feedback`,
also for `swift rollout`: swift_rlvr/rewards/FEEDBACK.md; what `--dataset` takes:
swift_rlvr/tasks/README.md. ms-swift has entries for the same ModelScope ids. They stay, but a
look-up by id finds the one registered last, which is ours.
"""

from swift.callbacks import callbacks_map
from swift.rewards import orms
from swift.utils import get_logger
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.parameters import stray_variables
from swift_rlvr.tasks import TASKS
from swift_rlvr.training.curriculum import CurriculumCallback
from swift_rlvr.training.held_out import HeldOutCallback
from swift_rlvr.training.ms_swift.datasets import register_task
from swift_rlvr.training.ms_swift.multi_turn import register_scheduler
from swift_rlvr.training.reason_callback import ReasonCallback

logger = get_logger()

for name, reward in REWARDS.items():
    problem = None
    if name in orms:
        problem = f"the reward {name} is registered already, by {orms[name].__module__}: load this plugin once"
    elif reward.__name__ in {taken.__name__ for taken in orms.values()}:
        problem = f"a reward class is called {reward.__name__} already, and both would be logged under one name"
    if problem is None:
        orms[name] = reward
    elif name in REWARDS.owners:
        logger.warning(
            f"left out the reward {name} of the distribution {REWARDS.owner(name)}: {problem}"
        )
    else:
        raise ValueError(problem)

for variable in stray_variables(REWARDS):
    logger.warning(
        f"{variable} is set, and no reward here has a name that it begins with: {', '.join(REWARDS)}"
    )

callbacks = {
    "reward_reasons": ReasonCallback,
    "held_out": HeldOutCallback,
    "curriculum": CurriculumCallback,
}
for name, callback in callbacks.items():
    if name in callbacks_map:
        raise ValueError(f"the callback {name} is registered already: load this plugin once")
    callbacks_map[name] = callback
register_scheduler()

for task in TASKS.values():
    try:
        register_task(task)
    except ValueError as error:  # the name is taken
        if task.name not in TASKS.owners:
            raise
        logger.warning(
            f"left out the dataset {task.name} of the distribution {TASKS.owner(task.name)}: {error}"
        )
