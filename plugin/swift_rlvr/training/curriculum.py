"""Difficulty that follows the model, in ms-swift's trainer and in TRL's.

    swift rlhf --external_plugins plugin/rlvr_plugin.py --callbacks curriculum ...
    swift-rlvr train --trainer trl --curriculum true ...

The rows of a batch are chosen when its completions are about to be sampled, in place of those that
the dataloader brought: a sampler would choose before it knows the last rewards. Every rank chooses
all rows, from the rewards that the trainer gathers anyway, and takes its part. The state is in
trainer_state.json of each checkpoint.
"""

from collections.abc import Sequence
from typing import Any

from transformers import TrainerCallback

from swift_rlvr.runs.curriculum import COLUMN, Curriculum, CurriculumSettings, check_has_verifier
from swift_rlvr.success import Judges
from swift_rlvr.tasks import verifier_of
from swift_rlvr.training.reason_callback import functions_of, names_of
from swift_rlvr.utils.errors import InputError

STATE = "swift_rlvr.curriculum"  # in trainer_state.json


class CurriculumCallback(TrainerCallback):
    """Draws the rows of a training by their level, see `swift_rlvr.runs.curriculum`, and logs
    `curriculum/...`.

    settings: by default those of the variables.

    Raises:
        InputError: the trainer, its settings or its rows do not allow it.
    """

    def __init__(self, args: Any, trainer: Any, settings: CurriculumSettings | None = None):
        self.trainer = trainer
        self.settings = settings or CurriculumSettings.from_environment(curriculum=True)
        self.curriculum: Curriculum | None = None
        _check_trainer(args, trainer)
        self.generate_and_score = trainer._generate_and_score_completions

    def on_train_begin(self, args, state, control, **kwargs):
        dataset = self.trainer.train_dataset
        if not hasattr(dataset, "__len__"):
            problem = "must be false with curriculum, which needs all rows"
            raise InputError(problem, "streaming")
        self.curriculum = Curriculum(levels_of(dataset), self.settings, args.seed)
        # A resumed run goes on with what its checkpoint knows of the levels.
        saved = (state.stateful_callbacks or {}).get(STATE)
        if state.global_step and saved:
            self.curriculum.load(saved)
        rewards = functions_of(self.trainer)
        check_has_verifier(rewards)
        self.judges = Judges.from_rewards(rewards)
        self.trainer._generate_and_score_completions = self._generate_and_score_drawn

    def on_step_end(self, args, state, control, **kwargs):
        assert self.curriculum is not None
        state.stateful_callbacks[STATE] = self.curriculum.state()

    def _generate_and_score_drawn(self, inputs: Any) -> Any:
        """The trainer's method with rows of our choice, for a batch of the size of `inputs`."""
        trainer, curriculum = self.trainer, self.curriculum
        assert curriculum is not None
        if not trainer.model.training:  # an evaluation, whose rows are its own
            return self.generate_and_score(inputs)
        # All ranks draw the same rows, by the same random numbers, and each takes its part of them.
        size = len(inputs)
        ranks = trainer.accelerator.num_processes
        first = trainer.accelerator.process_index * size
        # The row of each completion, of all ranks: those of a row stand together.
        numbers: list[int] = []
        for number in curriculum.draw(size * ranks // trainer.num_generations):
            numbers += [number] * trainer.num_generations
        dataset = trainer.train_dataset
        rows = [dict(dataset[number]) for number in numbers[first : first + size]]
        batch = self.generate_and_score(rows)
        if getattr(trainer, "dynamic_num_samples", False):
            problem = "makes several samples of one row, which curriculum cannot tell apart"
            raise InputError(f"{problem}: expected one", "multi_turn_scheduler")
        # The rewards of these rows are the last that the trainer has logged.
        columns = {}
        for key, name in names_of(trainer).items():
            columns[key] = list(trainer._logs["rewards"][name])[-len(numbers) :]
        successes = []
        for index, number in enumerate(numbers):
            rewards = {key: column[index] for key, column in columns.items()}
            verifier = verifier_of(dataset[number].get("task"))
            successes.append(self.judges.of(rewards, verifier).success)
        for name, value in curriculum.record(numbers, successes).items():
            trainer._metrics["train"][name].append(value)
        return batch


def _check_trainer(args: Any, trainer: Any) -> None:
    """InputError for a trainer of another kind, and for settings that draw rows of their own."""
    if not hasattr(trainer, "_generate_and_score_completions"):
        raise InputError("curriculum needs the GRPO trainer of ms-swift 4.6 or TRL")
    for name in ("async_generate", "dynamic_sample"):
        if getattr(args, name, False):
            raise InputError(
                "must be false with curriculum: it draws rows that curriculum did not choose", name
            )
    template = getattr(trainer, "template", None)  # ms-swift's
    if getattr(template, "sequence_parallel_size", 1) > 1:
        raise InputError("must be 1 with curriculum", "sequence_parallel_size")
    # ms-swift turns `delete` into `raise`, and draws another row for one that is too long.
    if getattr(template, "truncation_strategy", None) == "raise":
        problem = "must be left with curriculum, because delete draws other rows"
        raise InputError(problem, "truncation_strategy")


def levels_of(dataset: Any) -> Sequence[Any]:
    """The level of each row of a trainer's dataset, None if a row has none."""
    columns = getattr(dataset, "column_names", None)
    if columns is None:
        return [row.get(COLUMN) for row in dataset]
    if COLUMN not in columns:
        return [None] * len(dataset)
    return list(dataset[COLUMN])
