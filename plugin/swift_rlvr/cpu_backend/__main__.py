"""The launcher: commands, flags, messages and exit codes are ms-swift's."""

import os
import runpy
import socket
import sys
from importlib.metadata import entry_points

from swift_rlvr.cpu_backend import LAUNCHED, accelerator_visible
from swift_rlvr.cpu_backend.patching import Patch, apply_patches
from swift_rlvr.cpu_backend.table import SERVER, TORCHRUN, TRAINER
from swift_rlvr.parallel import end_with_parent

PLUGIN = "swift_rlvr_cpu"

ENVIRONMENT = {  # defaults: a variable that is set stays
    LAUNCHED: "1",
    "DS_ACCELERATOR": "cpu",
    "GLOO_SOCKET_IFNAME": "lo",
    "MASTER_ADDR": "127.0.0.1",
    # Server and ranks share the cores: one thread each, which does not spin while it waits.
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "TOKENIZERS_PARALLELISM": "false",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_HOST_IP": "127.0.0.1",
    # The engine runs in the worker's process: no exchange between two processes at every token.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # Only ours: ms-swift's own vLLM plugin needs torchvision, which is not installed beside a CPU build of torch.
    "VLLM_PLUGINS": PLUGIN,
    "VLLM_NO_USAGE_STATS": "1",
}


def main() -> None:
    """Run ``swift`` with the arguments of this process."""
    from swift.cli.main import ROUTE_MAPPING, cli_main, get_torchrun_args, parse_yaml_args

    method = sys.argv[1].replace("_", "-") if len(sys.argv) > 1 else ""
    if accelerator_visible() or method not in ROUTE_MAPPING:
        cli_main()
        return
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    argv = sys.argv[2:]
    if "LOCAL_RANK" not in os.environ:
        parse_yaml_args(argv)
        torchrun_args = get_torchrun_args()
        if torchrun_args is not None and method in {"pt", "sft", "rlhf", "infer"}:
            if "MASTER_PORT" not in os.environ:
                torchrun_args += ["--master_port", str(free_port())]
            ranks = ["-m", "swift_rlvr.cpu_backend", method, *argv]
            run("torch.distributed.run", [*torchrun_args, *ranks], TORCHRUN)
            return
    else:
        end_with_parent()
    if method == "rollout" and not any(entry.name == PLUGIN for entry in entry_points(group="vllm.general_plugins")):
        raise SystemExit("vLLM finds no plugin of swift-rlvr, which is not installed: `pip install -e . --no-deps`")
    run(ROUTE_MAPPING[method], argv, SERVER if method == "rollout" else TRAINER)


def run(module: str, argv: list[str], patches: tuple[Patch, ...]) -> None:
    """Run ``python -m module`` patched, in this process, so that signals reach the process they are meant for."""
    apply_patches(patches)
    sys.argv[1:] = argv
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def free_port() -> int:
    """A TCP port that is free on the loopback interface now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


if __name__ == "__main__":
    main()
