"""The launcher: commands, flags, messages and exit codes are ms-swift's.

``SWIFT_RLVR_SUPERVISOR``, the id of the process that starts it, ends the launcher when that process
dies.
"""

import argparse
import atexit
import os
import runpy
import sys
import time
from collections.abc import Mapping, MutableMapping, Sequence
from importlib.metadata import entry_points
from urllib.parse import urlsplit

from swift_rlvr.evaluation.models import visible_device
from swift_rlvr.training.ms_swift import LAUNCHED, RENDEZVOUS, SUPERVISOR
from swift_rlvr.training.ms_swift.patching import Patch, apply_patches
from swift_rlvr.utils.network import LOOPBACK, free_port, is_held, is_loopback, why_not_free
from swift_rlvr.utils.parallel import end_with_parent

PLUGIN = "swift_rlvr_patches"

# Defaults: a variable that is set stays.
ONE_MACHINE = {
    "GLOO_SOCKET_IFNAME": "lo",
    "MASTER_ADDR": LOOPBACK,
    "NCCL_SOCKET_IFNAME": "lo",
    "VLLM_HOST_IP": LOOPBACK,
}
ENVIRONMENT = {
    "cuda": {"VLLM_NO_USAGE_STATS": "1"},
    "cpu": {
        "DS_ACCELERATOR": "cpu",
        # Server and ranks share the cores: one thread each, which does not spin while it waits.
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        # The engine runs in the worker's process: no exchange between two processes at every token.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        # Only ours: ms-swift's own vLLM plugin needs torchvision, which is not installed beside a
        # CPU build of torch.
        "VLLM_PLUGINS": PLUGIN,
        "VLLM_NO_USAGE_STATS": "1",
    },
}


def main() -> None:
    """Run ``swift`` with the arguments of this process."""
    if supervisor := os.environ.pop(SUPERVISOR, None):
        end_with_parent()
        if os.getppid() != int(supervisor):  # it died before the line above
            raise SystemExit(1)
    # Only now: these imports take seconds.
    from swift.cli.main import ROUTE_MAPPING, cli_main, get_torchrun_args, parse_yaml_args

    from swift_rlvr.training.ms_swift.table import TABLES

    method = sys.argv[1].replace("_", "-") if len(sys.argv) > 1 else ""
    device = visible_device()
    if (
        device not in TABLES
        or method not in ROUTE_MAPPING
        or (device == "cuda" and method not in {"rollout", "rlhf"})
    ):
        cli_main()
        return
    table, argv, rank = TABLES[device], sys.argv[2:], "LOCAL_RANK" in os.environ
    if rank:
        end_with_parent()
    else:
        parse_yaml_args(argv)
        for name in RENDEZVOUS:
            if not os.environ.get(name, "unset"):
                del os.environ[name]  # set to nothing is not set; torchrun refuses it
        set_environment(device, method, argv, os.environ)
        torchrun_args = get_torchrun_args()
        if torchrun_args is not None and method in {"pt", "sft", "rlhf", "infer"}:
            if "MASTER_PORT" not in os.environ and os.environ.get("NNODES", "1") == "1":
                torchrun_args += ["--master_port", str(free_port())]
            ranks = ["-m", "swift_rlvr.training.ms_swift", method, *argv]
            run("torch.distributed.run", [*torchrun_args, *ranks], table.torchrun)
            return
    if method == "rollout" and not any(
        entry.name == PLUGIN for entry in entry_points(group="vllm.general_plugins")
    ):
        raise SystemExit(
            "vLLM finds no plugin of swift-rlvr, which is not installed: `pip install -e . --no-deps`"
        )
    if method == "rollout":
        await_port(_read(argv).port)
    run(ROUTE_MAPPING[method], argv, table.server if method == "rollout" else table.trainer)


def set_environment(
    device: str, method: str, argv: Sequence[str], environ: MutableMapping[str, str]
) -> None:
    """Set what is missing in `environ` for a command with the flags `argv`."""
    here = device == "cpu" or on_one_machine(method, argv, environ)
    environ[LAUNCHED] = device
    for name, value in {**ENVIRONMENT[device], **(ONE_MACHINE if here else {})}.items():
        environ.setdefault(name, value)
    if PLUGIN not in (plugins := environ.get("VLLM_PLUGINS", PLUGIN).split(",")):
        environ["VLLM_PLUGINS"] = ",".join([*filter(None, plugins), PLUGIN])


def on_one_machine(method: str, argv: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether a command keeps everything on this machine: one node, and every server on its
    loopback interface.

    >>> on_one_machine("rlhf", ["--vllm_server_host", "127.0.0.1"], {}), on_one_machine("rollout", [], {})
    (True, False)
    """
    flags = _read(argv)
    servers = flags.hosts or (["0.0.0.0"] if method == "rollout" else [])  # ms-swift's default
    servers += [urlsplit(url).hostname or "" for url in flags.urls]
    return environ.get("NNODES", "1") == "1" and all(map(is_loopback, servers))


def _read(argv: Sequence[str]) -> argparse.Namespace:
    """Where a command listens, and the servers that it connects to."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(
        "--host", "--vllm_server_host", "--vllm-server-host", nargs="*", dest="hosts"
    )
    parser.add_argument(
        "--vllm_server_base_url", "--vllm-server-base-url", nargs="*", dest="urls", default=[]
    )
    parser.add_argument("--port", default="8000")  # ms-swift's default
    return parser.parse_known_args(argv)[0]


def await_port(text: str, seconds: float = 120) -> None:
    """Wait until the system gives up a port whose server has just ended: ms-swift would silently
    take the next one.
    """
    if not text.isdigit():
        return  # ms-swift says what is wrong with it
    port, end = int(text), time.monotonic() + seconds
    if (error := why_not_free(port)) is None and is_held(port):
        print(f"waiting for port {port}, which a server has just left", file=sys.stderr, flush=True)
        while (error := why_not_free(port, reuse=False)) and time.monotonic() < end:
            time.sleep(0.5)
    if error is not None:
        raise SystemExit(f"error: port {port}: {error.strerror}; set PORT to a free one")


def run(module: str, argv: list[str], patches: tuple[Patch, ...]) -> None:
    """Run ``python -m module`` patched, in this process, so that signals reach the process they are
    meant for.
    """
    apply_patches(patches)
    sys.argv[1:] = argv
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _skip_teardown(ended: Sequence[bool]) -> None:
    """Leave at once after a run to the end: a thread that is still in torch's C++ code would abort
    the process.

    "terminate called without an active exception", pytorch/pytorch issue 38228: a finished training
    would have failed.
    """
    if ended:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


if __name__ == "__main__":
    ended: list[bool] = []
    atexit.register(_skip_teardown, ended)  # before all others, so that it comes last
    main()
    ended.append(True)
