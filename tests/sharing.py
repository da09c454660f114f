"""How the tests are shared out among the processes of `-n`: a file at a time, the longest first, so that no process is
left with one when the others have ended.
"""

from collections import Counter

import pytest
from xdist.scheduler import LoadFileScheduling

# These files read trainings on one rollout server, which one process starts once.
ONE_SERVER = (
    "tests/e2e/test_mixed_tasks.py",
    "tests/e2e/test_language_model.py",
    "tests/e2e/test_training.py",
    "tests/e2e/test_nodes.py",
    "tests/e2e/test_recipes.py",
    "tests/e2e/test_probe.py",
    "tests/e2e/test_own_rewards.py",
    "tests/e2e/test_weight_sync.py",
    "tests/e2e/test_held_out.py",
    "tests/e2e/test_curriculum.py",
)
# These run programs in forks of one process that has imported ms-swift.
ONE_IMPORT = (
    "tests/training/ms_swift/test_reward_names.py",
    "tests/training/ms_swift/test_megatron.py",
)
# The file with which each of them goes to a process.
FIRST = {file: group[0] for group in (ONE_SERVER, ONE_IMPORT) for file in group}
# Before all others, by the seconds of a processor that they take. Those with servers take minutes, half of which
# they wait, while other tests use the processor.
LONGEST = (
    "tests/e2e/test_faults.py",
    *ONE_SERVER,
    "tests/e2e/test_multi_turn.py",
    "tests/e2e/test_lora.py",
    "tests/e2e/test_pictures.py",
    "tests/e2e/test_refusals.py",
    # Few tests that train, build or import much.
    "tests/grpo/test_speedups.py",
    "tests/test_scripts.py",
    "tests/training/test_trl.py",
    "tests/test_examples.py",
    "tests/launch/test_doctor.py",
    "tests/evaluation/test_added_tests.py",
    "tests/evaluation/test_models.py",
    "tests/grpo/test_script.py",
    *ONE_IMPORT,
    "tests/training/ms_swift/test_unusable.py",
    "tests/training/ms_swift/test_confirmation.py",
    "tests/test_install.py",
    "tests/test_wheel.py",
    "tests/training/test_recipes.py",
    "tests/training/ms_swift/test_sampler.py",
    "tests/training/ms_swift/test_rewards.py",
    "tests/cli/test_new.py",
    "tests/verifiers/reasoning_gym/test_rows.py",
    "tests/verifiers/reasoning_gym/test_audit.py",
    "tests/grpo/test_walkthrough.py",
    "tests/test_docs.py",
    # Many tests with a sandbox each.
    "tests/verifiers/code/test_harness.py",
    "tests/verifiers/code/test_honest.py",
    "tests/verifiers/code/test_sandbox.py",
    "tests/rewards/test_code.py",
    "tests/tasks/test_contract.py",
    "tests/rewards/test_contract.py",
)


def longest_first(items: list[pytest.Item]) -> None:
    """Sorts them by LONGEST, then by the number of tests in a file, and leaves the order within a file."""
    tests = Counter(item.location[0] for item in items)
    places = {file: place for place, file in enumerate(LONGEST)}

    def place(item: pytest.Item) -> tuple[int, int]:
        file = item.location[0]
        return places.get(file, len(places)), -tests[file]

    items.sort(key=place)


class ByFile(LoadFileScheduling):
    """xdist's `--dist loadfile`, but the files that share a server or a process count as one."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return FIRST.get(file, file)
