"""How much memory a training takes on each GPU, by one formula.

Its peak was measured once, for Qwen2.5-3B on one H100: about 62 GiB in a step, for which the formula
says 63. Several GPUs, evaluations and LoRA were not measured.
"""

import math
from dataclasses import dataclass

from swift_rlvr.launch.model_size import ModelSize
from swift_rlvr.launch.settings import GrpoSettings

GIB, MIB = 2**30, 2**20
# Above this share of a GPU what the formula leaves out may no longer fit.
TIGHT = 0.9
# Moments of a training GPU.
STEP, UPDATE = "in a step", "while vLLM gets the weights"
# What ms-swift sends to a rollout server at once, as SWIFT_UPDATE_WEIGHTS_BUCKET_SIZE is by default.
BUCKET = 512 * MIB
# vLLM's, for CUDA graphs and the logits of 256 sequences.
VLLM_RESERVES = 1.4 * GIB


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes on a training GPU by what they hold; roughly.

    weights, gradients and optimizer are always there, logits and activations in a step, update while
    vLLM gets the weights, and evaluation in an evaluation.

    vllm_weights: on each of vLLM's GPUs. moved_weights, moved_optimizer: what offload_model and
    offload_optimizer move to the host while vLLM samples.
    """

    weights: float
    gradients: float
    optimizer: float
    logits: float
    activations: float
    update: float
    evaluation: float
    vllm_weights: float
    moved_weights: float
    moved_optimizer: float

    @property
    def states(self) -> float:
        """What is always there."""
        return self.weights + self.gradients + self.optimizer

    def by_moment(self, share: float, sleeps: bool) -> dict[str, float]:
        """The bytes at each moment that may be the worst: a step, an update of vLLM's weights, an
        evaluation, or vLLM's sampling where it is on the same GPU.

        share: vLLM's bytes on this GPU. sleeps: it gives them back while the trainer computes.
        """
        awake = 0.0 if sleeps else share
        moments = {
            STEP: awake + self.states + self.logits + self.activations,
            UPDATE: awake + self.states + self.update,
            "in an evaluation": awake + self.states + self.evaluation,
        }
        if sleeps:
            # Its weights are awake while they are updated, and all of it while it samples.
            moments[UPDATE] += self.vllm_weights
            moved = self.moved_weights + self.moved_optimizer
            moments["while vLLM samples"] = self.states - moved + share
        return moments


def training_memory(model: ModelSize, settings: GrpoSettings, processes: int) -> TrainingMemory:
    """What a training takes on each GPU.

    processes: of all nodes. For P parameters and N processes, of which ZeRO-3 divides everything,
    ZeRO-2 gradients and optimizer, and ZeRO-1 the optimizer (Rajbhandari et al. 2020, arXiv
    1910.02054, section 3.1):

    - weights: 2 P in 16 bits, and as much for the reference policy (full training with beta > 0).
    - gradients and optimizer: under DeepSpeed 4 P and 12 P, for AdamW has the weights, momentum and
      variance in 32 bits; without it AdamW has the weights' own type. Of LoRA, of the adapters.
    - logits, log-softmax and the gradients of both: 4 numbers for each token of a completion and
      each of the vocabulary.
    - activations: with gradient checkpointing about 4.8 sqrt(P) bytes a token in 16 bits, which is
      what 8 x hidden + 4 x intermediate + hidden x layers makes for Qwen2.5 of 0.5B to 32B.
    - update: see `update_memory`.
    - evaluation: ms-swift runs the policy on a whole batch, without gradients: its logits, the
      log-softmax of one row, and the first two terms of the activations, 2.2 sqrt(P) bytes a token.

    Left out are CUDA's context, NCCL's buffers and fragmentation: some GB together.
    """
    size, zero = settings.bytes_a_parameter, settings.zero
    trained = trained_parameters(model, settings)
    copies = 2 if settings.trains_all_parameters and settings.beta > 0 else 1
    weights = float(copies * size * model.parameters)
    gradients, optimizer = 4 * trained, 12 * trained
    can_move = 2 / 3  # of 12 bytes 4 are the weights, which stay
    if zero.stage is None:
        gradients, optimizer, can_move = size * trained, 2 * size * trained, 1
    if zero.offloads_optimizer:
        gradients, optimizer = 2 * trained, 0
    if zero.stage == 3:
        weights /= processes
    if zero.stage in (2, 3):
        gradients /= processes
    if zero.stage in (1, 2, 3):
        optimizer /= processes

    # A row is a prompt with its completion.
    rows, completion = settings.per_device_train_batch_size, settings.longest_completion
    row = settings.longest_row
    if settings.vllm_max_model_len:
        row = min(row, settings.vllm_max_model_len)
    logits_a_row = size * completion * model.vocabulary
    activations_a_row = size * row * math.sqrt(model.parameters)
    evaluation = 0.0
    if evaluated := settings.evaluated_at_once:
        evaluation = (evaluated + 1) * logits_a_row + 1.1 * evaluated * activations_a_row

    return TrainingMemory(
        weights=weights,
        gradients=gradients,
        optimizer=optimizer,
        logits=4 * rows * logits_a_row,
        activations=2.4 * rows * activations_a_row,
        update=update_memory(model, settings, processes),
        evaluation=evaluation,
        vllm_weights=vllm_weights(model, settings),
        moved_weights=weights if settings.is_on("offload_model") else 0.0,
        moved_optimizer=can_move * optimizer if settings.is_on("offload_optimizer") else 0.0,
    )


def update_memory(model: ModelSize, settings: GrpoSettings, processes: int) -> float:
    """Bytes of the weights that are gathered at once for vLLM, and of the copy that goes to a server.

    ms-swift's `_move_full_model_to_vllm` gathers each group of `split_batches` on every GPU: all
    weights, or with move_model_batches so many groups of layers, and one of the embeddings with the
    head. For a server the first GPU copies each group in buckets of 512 MiB, or of one tensor if that
    is larger. One process has its weights as they are.
    """
    size, needed = settings.bytes_a_parameter, 0.0
    group = float(size * model.parameters)
    if settings.move_model_batches:
        layers = math.ceil(model.layers / settings.move_model_batches)
        ends = model.embedding if model.is_tied else 2 * model.embedding
        group = size * max(layers * model.parameters / model.layers, ends)
    if settings.gathers_weights(processes):
        needed += group
    if settings.uses_servers:
        needed += min(group, max(BUCKET, size * model.embedding))
    return needed


def vllm_weights(model: ModelSize, settings: GrpoSettings) -> float:
    """Bytes of the model's weights on each of vLLM's GPUs."""
    return settings.bytes_a_parameter * model.parameters / settings.vllm_tensor_parallel_size


def trained_parameters(model: ModelSize, settings: GrpoSettings) -> float:
    """All parameters, or those of LoRA's adapters on all linear layers, which are about 33 x rank
    x sqrt(P) for Qwen2.5 of 0.5B to 14B.
    """
    if settings.trains_all_parameters:
        return model.parameters
    return 33 * settings.lora_rank * math.sqrt(model.parameters)


def peak_memory(
    model: ModelSize, settings: GrpoSettings, processes: int, share: float = 0
) -> tuple[str, float]:
    """The worst moment of a training GPU, and its bytes.

    processes: of all nodes. share: vLLM's bytes where it is on the same GPU, else 0.
    """
    sleeps = share > 0 and settings.sleep_level > 0
    moments = training_memory(model, settings, processes).by_moment(share, sleeps)
    worst = max(moments, key=lambda moment: moments[moment])
    return worst, moments[worst]
