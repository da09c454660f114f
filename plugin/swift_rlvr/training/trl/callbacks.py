"""What a run under TRL shows on the terminal and leaves in files, in the form of ms-swift's, so that
`swift-rlvr report` and `swift-rlvr score` read both.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelerate.utils import gather_object
from transformers import PrinterCallback, ProgressCallback

from swift_rlvr.errors import InputError
from swift_rlvr.runs.folder import COMPLETIONS, LOG

SHOWN = {"reward": "reward", "completions/mean_length": "length", "kl": "kl", "loss": "loss", "learning_rate": "lr"}


def recording_trainer() -> type:
    """TRL's trainer, which keeps the prompts of the last training batch as messages.

    Its own record of them, beside the completions in `_logs`, is without the special tokens that tell the turns apart.
    """
    from trl import GRPOTrainer

    class RecordingTrainer(GRPOTrainer):
        prompts: list | None = None
        """Of this process; None where the last batch was one of the evaluation, or is logged."""

        def _calculate_rewards(self, inputs, prompts, completions, completion_ids_list):
            self.prompts = list(prompts) if self.model.training else None
            return super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)

    return RecordingTrainer


class RunLog(ProgressCallback):
    """A progress bar, a line for each logged step, `logging.jsonl` and `completions.jsonl` in the output folder.

    Weights that are no longer finite end the run with InputError before they are saved; the last checkpoint stays.
    """

    def __init__(self, trainer: Any):  # of recording_trainer
        super().__init__()
        self.trainer, self.folder = trainer, Path(trainer.args.output_dir)

    @classmethod
    def install(cls, trainer: Any) -> None:
        """Put it in the place of the trainer's own progress bar, and of ms-swift's where that was imported."""
        for callback in list(trainer.callback_handler.callbacks):
            if isinstance(callback, (ProgressCallback, PrinterCallback)):
                trainer.remove_callback(callback)
        trainer.add_callback(cls(trainer))

    def on_train_begin(self, args, state, control, **kwargs):
        super().on_train_begin(args, state, control, **kwargs)
        self.started, self.first = time.monotonic(), state.global_step

    def on_step_end(self, args, state, control, model=None, **kwargs):
        super().on_step_end(args, state, control, **kwargs)
        if not all(weight.isfinite().all() for weight in model.parameters()):
            raise InputError(diverged(self.folder, f"the weights are no longer finite after step {state.global_step}"))

    def on_log(self, args, state, control, logs=None, **kwargs):
        prompts, self.trainer.prompts = self.trainer.prompts, None
        prompts = gather_object([] if prompts is None else prompts)  # on all ranks, in the order of `_logs`
        if state.is_world_process_zero:
            self._append(LOG, {**_plain(logs), **self._times(state)})
            if prompts and "reward" in logs:
                self._append(COMPLETIONS, self._table(state.global_step, prompts))
            if self.prediction_bar is not None:  # over, but transformers closes it only after this
                self.prediction_bar.close()
                self.prediction_bar = None
            if "train_runtime" not in logs:
                self.training_bar.write(line(logs, state.global_step, state.max_steps))

    def _times(self, state) -> dict[str, Any]:
        elapsed, steps = time.monotonic() - self.started, state.global_step - self.first
        speed = elapsed / steps if steps else 0.0
        return {
            "global_step/max_steps": f"{state.global_step}/{state.max_steps}",
            "elapsed_time": round(elapsed, 1),
            "remaining_time": round(speed * (state.max_steps - state.global_step), 1),
            "train_speed(s/it)": round(speed, 4),
        }

    def _table(self, step: int, prompts: list) -> dict[str, list]:
        logs, tokenizer = self.trainer._logs, self.trainer.processing_class
        return {
            "step": [str(step)] * len(prompts),
            "prompt": tokenizer.apply_chat_template(prompts, add_generation_prompt=True, tokenize=False),
            "completion": list(logs["completion"]),
            **_plain({name: list(values) for name, values in logs["rewards"].items()}),
            "advantages": list(logs["advantages"]),
        }

    def _append(self, name: str, row: Mapping[str, Any]) -> None:
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def line(logs: Mapping[str, Any], step: int, steps: int) -> str:
    """What the terminal shows of a logged step, or of an evaluation.

    >>> line({"loss": 0.0123, "reward": 1.25, "rewards/FormatReward/mean": 1.0, "learning_rate": 5e-05}, 10, 60)
    'step 10/60  reward 1.25  Format 1  loss 0.0123  lr 5e-05'
    """
    prefix = "eval_" if any(name.startswith("eval_") for name in logs) else ""
    parts = []
    for name, label in SHOWN.items():
        if prefix + name in logs:
            parts.append(f"{label} {logs[prefix + name]:.3g}")
        if name == "reward":
            for key, value in logs.items():
                if key.startswith(f"{prefix}rewards/") and key.endswith("/mean"):
                    parts.append(f"{key.split('/')[1].removesuffix('Reward')} {value:.3g}")
    return "  ".join([f"{'evaluation at ' if prefix else ''}step {step}/{steps}", *parts])


def _plain(value: Any) -> Any:
    """For JSON, which has no NaN: TRL's sign for a reward that was not given."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def diverged(folder: Path, sign: str) -> str:
    """What to say where training went wrong, and what is left of it in its output folder."""
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: path.stat().st_mtime)
    kept = f"the last checkpoint is {found[-1]}" if found else "there is no checkpoint yet"
    return f"training has diverged: {sign}; a smaller --learning-rate or a larger --beta may help; {kept}"
