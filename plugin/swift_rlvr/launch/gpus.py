"""Which GPUs of a machine train, which are the rollout server's, and what a user may not expect of
that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from swift_rlvr.launch.machine import Machine
from swift_rlvr.launch.settings import BATCH, DATA, TENSOR, GrpoSettings
from swift_rlvr.launch.variables import Variables
from swift_rlvr.training.recipes import Recipe
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.settings import number


@dataclass(frozen=True)
class Sharing:
    """What decides who gets which GPU. settings: the recipe's with the flags. has_server: a server
    runs on this machine, or will.
    """

    recipe: Recipe
    settings: GrpoSettings
    variables: Variables
    machine: Machine
    has_server: bool

    @property
    def recipes_processes(self) -> int:
        """Trainer processes on each node, as the recipe has them."""
        return number(self.recipe.env, "NPROC_PER_NODE", 1, at_least=1)

    @cached_property
    def recipes_completions(self) -> int:
        """Completions a step, as the recipe has them."""
        nodes = number(self.recipe.env, "NNODES", 1, at_least=1)
        return GrpoSettings.read(self.recipe.settings).completions(self.recipes_processes * nodes)

    def processes(self, train_gpus: Sequence[str]) -> int:
        """Trainer processes on this node: one for each of its GPUs. Without a GPU NPROC_PER_NODE or the
        recipe says how many.
        """
        return len(train_gpus) or self.variables.nproc_per_node or self.recipes_processes

    @property
    def least_for_server(self) -> int:
        """The fewest GPUs that the server can do with, where no variable names them."""
        if not self.has_server or self.variables.rollout_gpus:
            return 0
        return self.settings.vllm_tensor_parallel_size * self.settings.vllm_data_parallel_size

    def share(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Returns the trainers' GPUs and the server's, which are never the same."""
        visible = [gpu.index for gpu in self.machine.gpus]
        train, server = self.variables.train_gpus, self.variables.rollout_gpus
        for name, gpus in (("TRAIN_GPUS", train), ("ROLLOUT_GPUS", server)):
            for gpu in gpus:
                if gpu not in visible:
                    listed = ", ".join(visible) or "none"
                    raise InputError(f"names GPU {gpu}, and visible are {listed}", name)
        if server and not self.has_server:
            problem = f"is set, and {self.recipe.path} needs no server on this machine"
            raise InputError(problem, "ROLLOUT_GPUS")
        if not visible:
            return (), ()

        tensor = self.settings.vllm_tensor_parallel_size
        needed = self.least_for_server
        free = tuple(gpu for gpu in visible if gpu not in train and gpu not in server)
        if not train:
            count = self._number_of_trainers(len(free) - needed)
            train, free = free[:count], free[count:]
        asked = self.variables.nproc_per_node
        if asked not in (None, len(train)):
            problem = f"is {asked}, and {len(train)} GPUs are free for trainers"
            if self.variables.train_gpus:
                problem = f"is {asked}, and TRAIN_GPUS names {len(train)}: leave one of the two out"
            elif needed:
                problem += (
                    "; the server has the others (a recipe with vllm_mode: colocate has none)"
                )
            raise InputError(problem, "NPROC_PER_NODE")
        if not train or len(free) < needed:
            raise self._too_few_gpus(len(visible))

        if needed and DATA not in self.settings.values:
            # A worker for each trainer: more would wait for the trainers most of the time.
            needed = max(tensor, min(len(free), len(train)) // tensor * tensor)
        if needed:
            server = free[-needed:]
        return train, server

    def _number_of_trainers(self, available: int) -> int:
        """NPROC_PER_NODE says how many, as far as there are GPUs. Without it this is the largest number
        that keeps the recipe's completions a step, or else the largest that there are GPUs for; at
        most as many as the recipe has.
        """
        if self.variables.nproc_per_node:
            return max(0, min(self.variables.nproc_per_node, available))
        most = max(0, min(self.recipes_processes, available))
        for count in range(most, 0, -1):
            processes = count * self.variables.nnodes
            at_once = processes * self.settings.per_device_train_batch_size
            if self.recipes_completions % at_once == 0:
                return count
        return most

    def _too_few_gpus(self, gpus: int) -> InputError:
        """The error that says who asks for how many GPUs, and how they would be enough."""
        if self.variables.rollout_gpus:
            return InputError("leaves no GPU for training", "ROLLOUT_GPUS")
        tensor = self.settings.vllm_tensor_parallel_size
        data = self.settings.vllm_data_parallel_size
        train_gpus = self.variables.train_gpus
        server = f"{tensor} ({TENSOR})"
        if data > 1:
            server += f" x {data} ({DATA})"
        trainers = "the training needs at least one"
        remedy = "more GPUs, or a recipe without a server (vllm_mode: colocate)"
        left = gpus - max(1, len(train_gpus))
        smaller = [size for size in (8, 4, 2, 1) if size < tensor and size * data <= left]
        if train_gpus:
            trainers = f"TRAIN_GPUS is {','.join(train_gpus)}"
        if len(train_gpus) > 1 and self.least_for_server < gpus:
            remedy = "leave TRAIN_GPUS out"
        elif smaller:
            remedy = f"--{TENSOR} {smaller[0]}"
        elif data > 1 and tensor <= left:
            remedy = f"--{DATA} {left // tensor}"
        problem = f"needs more than {gpus} GPUs: the rollout server takes {server}, and {trainers}"
        return InputError(f"{problem}: {remedy}", str(self.recipe.path))

    def notes(
        self,
        train_gpus: Sequence[str],
        server_gpus: Sequence[str],
        completions: int,
        is_chosen: bool,
    ) -> tuple[str, ...]:
        """What a user may not expect of the plan. is_chosen: a flag chooses the completions."""
        notes = []
        if self.recipe.note:
            notes.append(self.recipe.note)
        used = {*train_gpus, *server_gpus}
        unused = [gpu.index for gpu in self.machine.gpus if gpu.index not in used]
        if unused:
            why = self._why_unused(len(train_gpus), len(unused))
            notes.append(f"GPU {', '.join(unused)} not used: {why}")
        wanted = self.recipes_completions
        if completions != wanted:
            why = "as the flags say" if is_chosen else "which cannot be kept"
            notes.append(f"{completions} completions a step; the recipe has {wanted}, {why}")
        return tuple(notes)

    def _why_unused(self, trainers: int, unused: int) -> str:
        """Why GPUs are left over, and what would give them work."""
        if self.variables.train_gpus:
            return "TRAIN_GPUS names others"
        if self.variables.nproc_per_node:
            return f"NPROC_PER_NODE is {trainers}"
        most = self.recipes_processes
        if trainers >= most:
            return f"{self.recipe.path} is for {most} trainer processes"
        completions = self.recipes_completions
        why = f"{completions} completions a step are not divided among more"
        all_processes = min(most, trainers + unused) * self.variables.nnodes
        if completions % all_processes == 0:
            why += f"; --{BATCH} {completions // all_processes} divides them"
        return why
