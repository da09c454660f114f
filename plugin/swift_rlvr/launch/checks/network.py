"""Checks of ports, of a server that should run already and of the hub."""

import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress

from swift_rlvr.launch.checks import CheckResult, Launch, failed, passed, warning
from swift_rlvr.launch.estimate import local_file
from swift_rlvr.launch.sizes import model_folder
from swift_rlvr.network import why_not_free
from swift_rlvr.tasks import TASKS

OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")
HUBS = {"Hugging Face": "https://huggingface.co", "ModelScope": "https://www.modelscope.cn"}


def ports(launch: Launch) -> Iterator[CheckResult]:
    """The ports that the plan's programs will listen on, and who holds those that are taken."""
    plan = launch.plan
    wanted: list[tuple[int, str, str]] = []
    if plan.server is not None:
        wanted.append((plan.ports[0], "rollout server", "PORT"))
        # A server that runs already may hold its own from the training before.
        wanted += [(port, "weight sync", "SYNC_PORT") for port in plan.sync_ports]
    if plan.variables.node_rank == 0 and plan.master_port is not None:
        wanted.append((plan.master_port, "torchrun", "MASTER_PORT"))
    free: list[str] = []
    for index, (port, purpose, variable) in enumerate(wanted):
        if not 0 < port < 65536:
            yield failed("ports", f"{variable}: {port} is no port", "choose one from 1024 to 65535")
        elif same := [other for other in wanted[:index] if other[0] == port]:
            message = f"port {port} is meant for {same[0][1]} and for {purpose}"
            yield failed("ports", message, f"set {variable} to another one")
        elif (error := why_not_free(port)) is None:
            free.append(f"{port} ({purpose})")
        else:
            why = f"is in use by {holder(port)}" if error.errno == 98 else str(error)
            yield failed("ports", f"port {port} ({purpose}) {why}", f"end it, or set {variable} to a free port")
    if free:
        yield passed("ports", f"free: {', '.join(free)}")


def holder(port: int) -> str:
    """The program that listens on a port of this machine, as far as this user may know."""
    import psutil  # type: ignore[import-untyped]

    with suppress(OSError, RuntimeError, psutil.Error):
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port and connection.pid:
                process = psutil.Process(connection.pid)
                return f"{' '.join(process.cmdline())[:80] or process.name()} (pid {connection.pid})"
    return "another program, which only its user or root can see"


def running_servers(launch: Launch) -> Iterator[CheckResult]:
    """Servers that should run already answer."""
    plan = launch.plan
    if plan.server is not None:
        return
    for host, port in zip(plan.hosts, plan.ports, strict=False):
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}/health/"
        try:
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(url, timeout=3):
                yield passed("server", f"{host}:{port} answers")
        except (OSError, ValueError) as error:  # also HTTPError and URLError
            message = f"no rollout server answers at {host}:{port} ({getattr(error, 'reason', error)})"
            remedy = "start it with `swift-rlvr rollout`, or unset START_SERVER, or set HOST and PORT to where it runs"
            # On other nodes it may still be starting.
            if plan.variables.nnodes > 1 or plan.variables.start_server:
                yield warning("server", f"{message}; the launch waits for it", remedy)
            else:
                yield failed("server", message, remedy)


def hub(launch: Launch) -> Iterator[CheckResult]:
    """What is loaded from a hub: not in offline mode, and, in the full part, it is there."""
    model = str(launch.settings.get("model"))
    names = [("models", model)] if "/" in model and model_folder(model) is None else []
    for name in [*launch.listed("dataset"), *launch.listed("val_dataset")]:
        if local_file(name)[0] is None and (identity := dataset_id(name, launch.use_hf)):
            names.append(("datasets", identity))
    if not names:
        return
    offline = next((name for name in OFFLINE if os.environ.get(name, "").lower() in ("1", "true", "yes", "on")), None)
    if offline and launch.use_hf:
        if names[0] == ("models", model):
            message = f"{offline} is set, and {model} is not on this machine"
            yield failed("hub", message, f"unset {offline}, or set MODEL to a folder")
        return
    if os.environ.get("HF_ENDPOINT") and not launch.use_hf:
        message = "HF_ENDPOINT is set, and ms-swift loads from ModelScope"
        yield warning("hub", message, "USE_HF=1 loads from Hugging Face")
    if launch.fast:
        yield passed("hub", f"from {launch.hub}: {', '.join(name for _, name in names)}")
        return
    for sort, name in names:
        yield _answer(sort, name, launch.use_hf)


def dataset_id(name: str, use_hf: bool) -> str | None:
    """The id on the hub of what `--dataset` names; None for what only a plugin can know.

    >>> dataset_id("gsm8k:test#10", False), dataset_id("owner/data#9", True), dataset_id("mine", True)
    ('modelscope/gsm8k', 'owner/data', None)
    """
    text = name.partition("#")[0]
    task = TASKS.get(text.partition(":")[0])
    if task is not None:
        return task.hf_dataset_id if use_hf else task.ms_dataset_id
    return text.partition(":")[0] if text.count("/") == 1 else None


def _answer(sort: str, name: str, use_hf: bool) -> CheckResult:
    """Whether a hub has the model or the dataset; sort: "models" or "datasets"."""
    where, path = ("Hugging Face", f"api/{sort}") if use_hf else ("ModelScope", f"api/v1/{sort}")
    base = (use_hf and os.environ.get("HF_ENDPOINT")) or HUBS[where]
    try:
        with urllib.request.urlopen(f"{base.rstrip('/')}/{path}/{name}", timeout=10):
            return passed("hub", f"{where} has {name}")
    except urllib.error.HTTPError as error:
        if error.code in (401, 403, 404):
            remedy = "check the name; a private or gated one needs a token; USE_HF=1 is Hugging Face, else ModelScope"
            return failed("hub", f"{where} has no {sort[:-1]} {name} that can be read (status {error.code})", remedy)
        return warning("hub", f"{where} answers {error.code} for {name}", "try again later")
    except (OSError, ValueError) as error:
        message = f"{where} does not answer ({getattr(error, 'reason', error)})"
        remedy = "connect, or bring the files here and set MODEL and DATASET to them"
        if sort == "models":
            return failed("hub", f"{message}, and {name} is not on this machine", remedy)
        return warning("hub", f"{message}; {name} must be in its cache", remedy)


CHECKS = (ports, running_servers, hub)
