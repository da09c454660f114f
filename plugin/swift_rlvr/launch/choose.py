"""Which recipe a command means, and the flags that its machine and its model need besides."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from swift_rlvr.launch.estimate import Estimate, memory
from swift_rlvr.launch.machine import Machine
from swift_rlvr.launch.model_size import model_size, size_in_name
from swift_rlvr.launch.plan import make_plan
from swift_rlvr.training.recipes import (
    CONFIGS,
    EXPERIMENTS,
    FOR_A_CPU,
    SUFFIXES,
    Recipe,
    read_flags,
    read_recipe,
)
from swift_rlvr.utils.errors import InputError, did_you_mean


def read_words(
    words: Sequence[str], machine: Machine, environ: Mapping[str, str] | None = None
) -> tuple[Recipe | None, list[str]]:
    """The recipe that a command's words name, None if they begin with a flag, and the flags.

    In place of the file an experiment's name stands for the recipe that fits the machine.
    `countdown my.yaml` is `my.yaml`, so that a script can say what it is for and its user another
    recipe.

    Raises:
        InputError: there is no such file, or it cannot be read.
    """
    environ = os.environ if environ is None else environ
    if not words or not words[0] or words[0].startswith("-"):
        return None, list(words)
    first, *flags = words
    if first in EXPERIMENTS and flags and flags[0].endswith(SUFFIXES):
        first, *flags = flags
    if first in EXPERIMENTS:
        recipe, changes = choose_recipe(first, flags, machine, environ)
        return recipe, [*changes, *flags]
    if first.endswith(SUFFIXES) or Path(first).exists():
        return read_recipe(first), flags

    problem = did_you_mean(first, EXPERIMENTS) or "there is no such experiment."
    choices = f"The experiments are {', '.join(EXPERIMENTS)}; a recipe is a .yaml file"
    raise InputError(f"{first}: {problem} {choices}")


def choose_recipe(
    experiment: str, flags: Sequence[str], machine: Machine, environ: Mapping[str, str]
) -> tuple[Recipe, list[str]]:
    """The first recipe of an experiment that fits this machine with the user's model and flags, and
    the flags that belong to it. If none fits this is the last one, which needs least.

    Raises:
        InputError: the experiment needs a GPU, and there is none.
    """
    candidates = []
    for least_gpus, words in EXPERIMENTS[experiment]:
        # A recipe for a CPU is none for a machine with GPUs.
        if min(len(machine.gpus), 1) <= least_gpus <= len(machine.gpus):
            name, *changes = words.split()
            candidates.append(Candidate(read_recipe(CONFIGS / f"{name}.yaml"), changes))
    if not candidates:
        raise InputError(f"needs a GPU, and none is visible; {FOR_A_CPU}", experiment)
    # All nodes need the same settings, whatever their GPUs.
    if len(candidates) == 1 or (environ.get("NNODES") or "1") != "1":
        return candidates[0]

    tuner = read_flags(flags).get("tuner_type")
    if tuner is not None:
        # LoRA's recipe has LoRA's learning rate.
        of_tuner = [each for each in candidates if each.recipe.settings["tuner_type"] == tuner]
        candidates = of_tuner or candidates

    # The first that fits, with a note why it is not the first of all; else the last.
    chosen = candidates[0]
    problem = ""  # of the first one
    for candidate in candidates:
        try:
            needed = candidate.memory(flags, machine, environ)
        except InputError as error:  # such as TRAIN_GPUS that leave no GPU for a server
            problem = problem or f"chosen because of {error}"
            continue
        chosen = candidate
        if needed.fits:
            break
        path = candidate.recipe.path
        problem = problem or f"chosen by memory: with {path} as it is: {needed.text}"
    # A smaller recipe than the GPUs' number promises would look like a mistake without its reason.
    if chosen is candidates[0]:
        return chosen
    return chosen._replace(recipe=chosen.recipe._replace(note=problem))


class Candidate(NamedTuple):
    """A line of EXPERIMENTS: a recipe, and flags with which it needs less memory."""

    recipe: Recipe
    flags: list[str]

    def memory(
        self, flags: Sequence[str], machine: Machine, environ: Mapping[str, str]
    ) -> Estimate:
        """What it needs with the user's flags. A model of unknown size counts as the recipe's."""
        words = [*self.flags, *flags]
        # Each recipe has a folder of its own, in which there may be nothing to resume from.
        plan = make_plan(self.recipe, words, machine, {**environ, "RESUME": "0"})
        if any(gpu.memory is None for gpu in machine.gpus):
            return Estimate("a memory that the driver does not know", fits=False)
        named = plan.grpo.model
        recipes_own = str(self.recipe.settings.get("model"))
        # A hub's model is first judged by its name, so that the choice stays when it has been downloaded.
        size = None if Path(named).is_dir() else size_in_name(named)
        return memory(plan, size or model_size(named) or model_size(recipes_own))
