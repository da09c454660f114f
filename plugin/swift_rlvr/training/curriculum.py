"""Difficulty that follows the model in trainers that are built on transformers' Trainer: ms-swift's
and TRL's.

    swift rlhf --external_plugins plugin/rlvr_plugin.py --callbacks curriculum ...
    swift-rlvr train --trainer trl --curriculum true ...

The rows of a batch are chosen when its completions are about to be sampled, in place of those that
the dataloader
brought: a sampler would choose before it knows the last rewards. Every rank chooses all rows, from
the rewards that the trainer gathers anyway, and takes its part. The state is in trainer_state.json
of each checkpoint.
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

    settings: by default those of the variables. InputError where the trainer, its settings or rows
    do not allow it.
    """

    def __init__(self, args: Any, trainer: Any, settings: CurriculumSettings | None = None):
        self.trainer, self.settings = (
            trainer,
            settings or CurriculumSettings.from_environment(curriculum=True),
        )
        self.curriculum: Curriculum | None = None
        if not hasattr(trainer, "_generate_and_score_completions"):
            raise InputError("curriculum needs the GRPO trainer of ms-swift 4.6 or TRL")
        self.generate_and_score = trainer._generate_and_score_completions
        for name in ("async_generate", "dynamic_sample"):
            if getattr(args, name, False):
                raise InputError("draws rows that curriculum does not choose: expected false", name)
        template = getattr(trainer, "template", None)
        if getattr(template, "sequence_parallel_size", 1) > 1:
            raise InputError("must be 1 with curriculum", "sequence_parallel_size")
        if getattr(template, "truncation_strategy", None) == "raise":
            raise InputError(
                "must be left with curriculum: delete draws other rows", "truncation_strategy"
            )

    def on_train_begin(self, args, state, control, **kwargs):
        trainer, dataset = self.trainer, self.trainer.train_dataset
        if not hasattr(dataset, "__len__"):
            raise InputError(
                "has no effect on curriculum, which needs all rows: expected false", "streaming"
            )
        curriculum = Curriculum(levels_of(dataset), self.settings, args.seed)
        if state.global_step and (saved := (state.stateful_callbacks or {}).get(STATE)):
            curriculum.load(saved)
        check_has_verifier(functions_of(trainer))
        judges, names = Judges.from_rewards(functions_of(trainer)), names_of(trainer)

        def with_drawn_rows(inputs: Any) -> Any:
            if not trainer.model.training:
                return self.generate_and_score(inputs)
            ranks, rank, mine = (
                trainer.accelerator.num_processes,
                trainer.accelerator.process_index,
                len(inputs),
            )
            drawn = curriculum.draw(mine * ranks // trainer.num_generations)
            numbers = [number for number in drawn for _ in range(trainer.num_generations)]
            batch = self.generate_and_score(
                [dict(dataset[i]) for i in numbers[rank * mine : (rank + 1) * mine]]
            )
            if getattr(trainer, "dynamic_num_samples", False):
                problem = "makes several samples of a row, which curriculum cannot tell apart: expected one"
                raise InputError(problem, "multi_turn_scheduler")
            values = {
                key: list(trainer._logs["rewards"][name])[-len(numbers) :]
                for key, name in names.items()
            }
            successes = []
            for index, number in enumerate(numbers):
                rewards = {key: column[index] for key, column in values.items()}
                successes.append(
                    judges.of(rewards, verifier_of(dataset[number].get("task"))).success
                )
            for name, value in curriculum.record(numbers, successes).items():
                trainer._metrics["train"][name].append(value)
            return batch

        self.curriculum = curriculum
        trainer._generate_and_score_completions = with_drawn_rows

    def on_step_end(self, args, state, control, **kwargs):
        assert self.curriculum is not None
        state.stateful_callbacks[STATE] = self.curriculum.state()


def levels_of(dataset: Any) -> Sequence[Any]:
    """The level of each row of a trainer's dataset, None where a row has none."""
    columns = getattr(dataset, "column_names", None)
    if columns is None:
        return [row.get(COLUMN) for row in dataset]
    return list(dataset[COLUMN]) if COLUMN in columns else [None] * len(dataset)
