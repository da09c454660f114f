"""The curriculum's callback: each rank takes its part of the same rows, evaluations keep theirs,
what cannot be used is named. The real trainers are in tests/e2e/test_curriculum.py and test_trl.py.
"""

from collections import defaultdict
from itertools import chain
from threading import Barrier, Thread
from types import SimpleNamespace

import pytest
from datasets import Dataset

from swift_rlvr.rewards import REWARDS
from swift_rlvr.runs.curriculum import CurriculumSettings
from swift_rlvr.training.curriculum import STATE, CurriculumCallback, levels_of
from swift_rlvr.utils.errors import InputError

ROWS = [{"level": number % 3, "target": number} for number in range(60)]
ARGS = SimpleNamespace(seed=5)
BATCH, GENERATIONS, STEPS = 24, 3, 8


def right(row, step):
    """Level 0 is always solved, level 2 never, level 1 from the fourth step on."""
    return float(row["level"] == 0 or (row["level"] == 1 and step > 3))


def state_of(step=0, saved=None):
    return SimpleNamespace(global_step=step, stateful_callbacks={STATE: saved} if saved else {})


class Ranks:
    """Threads in place of processes, each with what the callback uses of a trainer. sampled:
    batches of all ranks.
    """

    def __init__(self, count):
        self.count, self.sampled = count, []
        self.parts: list[list[dict]] = [[]] * count
        self.barrier = Barrier(count, timeout=1800)

    def trainer(self, rank, dataset):
        trainer = SimpleNamespace(
            accelerator=SimpleNamespace(num_processes=self.count, process_index=rank), num_generations=GENERATIONS,
            model=SimpleNamespace(training=True), train_dataset=dataset, _metrics={"train": defaultdict(list)},
            reward_funcs=[REWARDS["external_format"](), REWARDS["external_countdown"]()],
            reward_func_names=["FormatReward", "CountdownReward"], _logs={"rewards": {}},
        )  # fmt: skip

        def generate_and_score(inputs):
            self.parts[rank] = inputs
            self.barrier.wait()
            rows = list(chain(*self.parts))
            self.barrier.wait()
            step = len(trainer._metrics["train"]["curriculum/level"])
            trainer._logs["rewards"] = {"FormatReward": [0.0] * 99, "CountdownReward": [0.0] * 9}
            trainer._logs["rewards"]["CountdownReward"] += [right(row, step) for row in rows]
            if rank == 0:
                self.sampled.append([row["target"] for row in rows])
            return inputs

        trainer._generate_and_score_completions = generate_and_score
        return trainer

    def run(self, dataset=ROWS, steps=STEPS, saved=None):
        """Train; the state at the end, which is the same on all ranks."""
        states = [state_of(1, saved) if saved else state_of() for _ in range(self.count)]

        def train(rank):
            trainer = self.trainer(rank, dataset)
            callback = CurriculumCallback(ARGS, trainer, CurriculumSettings(True))
            callback.on_train_begin(ARGS, states[rank], None)
            for _ in range(steps):
                trainer._generate_and_score_completions([{"target": -1}] * (BATCH // self.count))
                callback.on_step_end(ARGS, states[rank], None)

        threads = [Thread(target=train, args=(rank,)) for rank in range(self.count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(state.stateful_callbacks == states[0].stateful_callbacks for state in states)
        return states[0].stateful_callbacks[STATE]


@pytest.mark.parametrize("count", [2, 4])
def test_any_number_of_ranks_samples_the_same_rows_in_groups(count):
    one, several = Ranks(1), Ranks(count)
    assert one.run() == several.run()
    assert one.sampled == several.sampled and len(one.sampled) == STEPS
    for batch in one.sampled:
        assert len(batch) == BATCH
        assert all(
            len(set(batch[start : start + GENERATIONS])) == 1
            for start in range(0, BATCH, GENERATIONS)
        )


def test_a_continuation_samples_what_the_uninterrupted_run_samples():
    """Of a dataset of Hugging Face too. `right` counts steps from the continuation's first."""
    whole, first, second = Ranks(1), Ranks(2), Ranks(2)
    dataset = Dataset.from_list(ROWS)
    whole.run(dataset, steps=4)
    second.run(dataset, steps=1, saved=first.run(dataset, steps=3))
    assert first.sampled + second.sampled == whole.sampled


def test_the_rows_of_an_evaluation_are_its_own():
    trainer = Ranks(1).trainer(0, ROWS)
    CurriculumCallback(ARGS, trainer, CurriculumSettings(True)).on_train_begin(
        ARGS, state_of(), None
    )
    trainer.model.training = False
    inputs = [{"level": 0, "target": -1}]
    assert trainer._generate_and_score_completions(inputs) is inputs


def test_settings_are_those_of_the_variables_unless_they_are_given(monkeypatch):
    monkeypatch.setenv("SWIFT_RLVR_CURRICULUM_TARGET", "0.25")
    trainer = Ranks(1).trainer(0, ROWS)
    assert CurriculumCallback(ARGS, trainer).settings == CurriculumSettings(
        True, curriculum_target=0.25
    )


def test_levels_are_read_of_lists_and_datasets_with_and_without_the_column():
    assert levels_of(ROWS[:4]) == levels_of(Dataset.from_list(ROWS[:4])) == [0, 1, 2, 0]
    assert levels_of([{"target": 1}]) == levels_of(Dataset.from_list([{"target": 1}])) == [None]


@pytest.mark.parametrize("field", ["async_generate", "dynamic_sample"])
def test_what_draws_rows_of_its_own_is_refused(field):
    with pytest.raises(
        InputError,
        match=f"{field}: must be false with curriculum: it draws rows that curriculum did not choose",
    ):
        CurriculumCallback(SimpleNamespace(seed=1, **{field: True}), Ranks(1).trainer(0, ROWS))


def test_trainers_and_templates_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="needs the GRPO trainer of ms-swift 4.6 or TRL"):
        CurriculumCallback(ARGS, SimpleNamespace())
    for field, value in (("sequence_parallel_size", 2), ("truncation_strategy", "raise")):
        trainer = Ranks(1).trainer(0, ROWS)
        trainer.template = SimpleNamespace(**{field: value})
        with pytest.raises(InputError, match=f"{field}: must be"):
            CurriculumCallback(ARGS, trainer)
    streamed = Ranks(1).trainer(0, iter(ROWS))
    with pytest.raises(InputError, match="streaming"):
        CurriculumCallback(ARGS, streamed).on_train_begin(ARGS, state_of(), None)
    several = Ranks(1).trainer(0, ROWS)
    CurriculumCallback(ARGS, several).on_train_begin(ARGS, state_of(), None)
    several.dynamic_num_samples = True
    with pytest.raises(InputError, match="multi_turn_scheduler: makes several samples of one row"):
        several._generate_and_score_completions([{}] * BATCH)
