"""The launcher: commands, flags, messages and exit codes are ms-swift's.

``SWIFT_RLVR_SUPERVISOR``, the id of the process that starts it, ends the launcher when that process
dies.
"""

import atexit
import os
import runpy
import sys
import time
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import nullcontext
from importlib.metadata import entry_points
from itertools import dropwhile
from typing import Any
from urllib.parse import urlsplit

from swift_rlvr.evaluation.models import visible_device
from swift_rlvr.training.ms_swift import LAUNCHED, RENDEZVOUS, SUPERVISOR
from swift_rlvr.training.ms_swift.patching import Patch, apply_patches
from swift_rlvr.training.recipes import read_flags
from swift_rlvr.utils.imports import without_collecting
from swift_rlvr.utils.inductor import avoid_inductor
from swift_rlvr.utils.network import LOOPBACK, free_port, is_held, is_loopback, why_not_free
from swift_rlvr.utils.nvcc import choose_sampler
from swift_rlvr.utils.parallel import end_with_parent
from swift_rlvr.utils.settings import as_list
from swift_rlvr.utils.temporary import in_temporary_folder

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
        # torch keeps a compiled header in the temporary folder, whatever TORCHINDUCTOR_CACHE_DIR is: each start
        # compiled it anew, 6 s of a core and 150 MB.
        "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
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
    supervisor = os.environ.pop(SUPERVISOR, None)
    if supervisor:
        end_with_parent()
        if os.getppid() != int(supervisor):  # it died before the line above
            raise SystemExit(1)
    method = sys.argv[1].replace("_", "-") if len(sys.argv) > 1 else ""
    is_rank = "LOCAL_RANK" in os.environ and method != "rollout"  # which torchrun has started below
    if is_rank:
        torchrun = os.getppid()
        end_with_parent()
        if os.getppid() != torchrun:  # as above
            raise SystemExit(1)
    # Only now: these imports take seconds, in which a parent can die.
    with without_collecting():
        from swift.cli.main import ROUTE_MAPPING, cli_main, parse_yaml_args

    from swift_rlvr.training.ms_swift.table import TABLES

    device = visible_device()
    is_patched = device in TABLES and method in ROUTE_MAPPING
    if device == "cuda":
        is_patched = is_patched and method in ("rollout", "rlhf")
    if not is_patched:
        cli_main()
        return
    argv = sys.argv[2:]
    if is_rank:
        run(ROUTE_MAPPING[method], argv, _of_trainer(argv, TABLES[device]))
        return
    parse_yaml_args(argv)
    set_environment(device, method, argv, os.environ)
    # A supervisor has made one for all its programs.
    with nullcontext() if supervisor else in_temporary_folder():
        run_command(method, argv, device)


def run_command(method: str, argv: list[str], device: str) -> None:
    """Run a patched command of ms-swift: with several ranks through torchrun, else in this process."""
    from swift.cli.main import ROUTE_MAPPING, get_torchrun_args

    from swift_rlvr.training.ms_swift.table import TABLES

    table = TABLES[device]
    torchrun_args = get_torchrun_args()
    if torchrun_args is not None and method in ("pt", "sft", "rlhf", "infer"):
        if "MASTER_PORT" not in os.environ and os.environ.get("NNODES", "1") == "1":
            torchrun_args += ["--master_port", str(free_port())]
        ranks = ["-m", "swift_rlvr.training.ms_swift", method, *argv]
        run("torch.distributed.run", [*torchrun_args, *ranks], table.torchrun)
        return
    if method != "rollout":
        run(ROUTE_MAPPING[method], argv, _of_trainer(argv, table))
        return
    plugins = [entry.name for entry in entry_points(group="vllm.general_plugins")]
    if PLUGIN not in plugins:
        remedy = "which is not installed: `pip install -e . --no-deps`"
        raise SystemExit(f"vLLM finds no plugin of swift-rlvr, {remedy}")
    await_port(str(_flags(argv).get("port", 8000)))  # ms-swift's default
    run(ROUTE_MAPPING[method], argv, table.server)


def _of_trainer(argv: Sequence[str], table: Any) -> tuple[Patch, ...]:
    """The patches of a process with the flags `argv`; those of vLLM's engine only if it is to run there:
    they import it, a second and a half of a core.
    """
    # A flag's name may be abbreviated, its value (--vllm_mode colocate, --infer_backend vllm) is whole.
    values = {word.rpartition("=")[2] for word in argv}
    if values.isdisjoint({"colocate", "vllm"}):
        return table.trainer
    return (*table.trainer, *table.colocated)


def set_environment(
    device: str, method: str, argv: Sequence[str], environ: MutableMapping[str, str]
) -> None:
    """Set what is missing in `environ` for a command with the flags `argv`."""
    for name in RENDEZVOUS:
        # Set to nothing is not set; torchrun refuses it.
        if environ.get(name) == "":
            del environ[name]
    defaults = dict(ENVIRONMENT[device])
    if device == "cpu" or on_one_machine(method, argv, environ):
        defaults |= ONE_MACHINE
    environ[LAUNCHED] = device
    for name, value in defaults.items():
        environ.setdefault(name, value)
    if device == "cuda":
        choose_sampler(environ)
    else:
        avoid_inductor(environ)
    plugins = environ.get("VLLM_PLUGINS", PLUGIN).split(",")
    if PLUGIN not in plugins:
        environ["VLLM_PLUGINS"] = ",".join([*filter(None, plugins), PLUGIN])


def on_one_machine(method: str, argv: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether a command keeps everything on this machine: one node, and every server on its
    loopback interface.

    >>> on_one_machine("rlhf", ["--vllm_server_host", "127.0.0.1"], {}), on_one_machine("rollout", [], {})
    (True, False)
    """
    if environ.get("NNODES", "1") != "1":
        return False
    flags = _flags(argv)
    servers = [*as_list(flags.get("host")), *as_list(flags.get("vllm_server_host"))]
    if method == "rollout" and not servers:
        servers = ["0.0.0.0"]  # ms-swift's default
    for url in as_list(flags.get("vllm_server_base_url")):
        servers.append(urlsplit(str(url)).hostname or "")
    return all(is_loopback(str(server)) for server in servers)


def _flags(argv: Sequence[str]) -> dict[str, Any]:
    """The settings of a command line of ms-swift, which may have variables before the first flag."""
    return read_flags(list(dropwhile(lambda word: not word.startswith("--"), argv)))


def await_port(text: str, seconds: float = 120) -> None:
    """Wait until the system gives up a port whose server has just ended: ms-swift would silently
    take the next one.
    """
    if not text.isdigit():
        return  # ms-swift says what is wrong with it
    port = int(text)
    end = time.monotonic() + seconds
    error = why_not_free(port)
    if error is None and is_held(port):
        print(
            f"waiting until the port {port} of an earlier server is free",
            file=sys.stderr,
            flush=True,
        )
        while time.monotonic() < end:
            error = why_not_free(port, reuse=False)
            if error is None:
                break
            time.sleep(0.5)
    if error is not None:
        raise SystemExit(f"error: port {port}: {error.strerror}; set PORT to a free port")


def run(module: str, argv: list[str], patches: tuple[Patch, ...]) -> None:
    """Run ``python -m module`` patched, in this process, so that signals reach the process they are
    meant for.
    """
    with without_collecting():  # it imports what is patched
        apply_patches(patches)
    sys.argv[1:] = argv
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _skip_teardown(has_ended: Sequence[bool]) -> None:
    """Leave at once after a run to the end: a thread that is still in torch's C++ code would abort
    the process.

    "terminate called without an active exception", pytorch/pytorch issue 38228: a finished training
    would have failed.
    """
    if has_ended:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


if __name__ == "__main__":
    has_ended: list[bool] = []
    atexit.register(_skip_teardown, has_ended)  # before all others, so that it comes last
    main()
    has_ended.append(True)
