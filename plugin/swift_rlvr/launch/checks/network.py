"""Checks of ports, of a server that should run already and of the hub."""

import os
import urllib.request
from collections.abc import Iterator
from contextlib import suppress

from swift_rlvr.launch.checks import CheckResult, Launch, failed, passed, warning
from swift_rlvr.launch.sizes import model_folder
from swift_rlvr.network import why_not_free

OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")


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
            remedy = "start it with scripts/rollout.sh, or unset START_SERVER, or set HOST and PORT to where it runs"
            # On other nodes it may still be starting.
            if plan.variables.nnodes > 1 or plan.variables.start_server:
                yield warning("server", f"{message}; the launch waits for it", remedy)
            else:
                yield failed("server", message, remedy)


def hub(launch: Launch) -> Iterator[CheckResult]:
    """A model that is loaded from a hub, not in offline mode and from the hub that is meant."""
    model = str(launch.settings.get("model"))
    if "/" not in model or model_folder(model) is not None:
        return
    offline = next((name for name in OFFLINE if os.environ.get(name, "").lower() in ("1", "true", "yes", "on")), None)
    if offline and launch.use_hf:
        message = f"{offline} is set, and {model} is not on this machine"
        yield failed("hub", message, f"unset {offline}, or set MODEL to a folder")
    elif os.environ.get("HF_ENDPOINT") and not launch.use_hf:
        message = "HF_ENDPOINT is set, and ms-swift loads from ModelScope"
        yield warning("hub", message, "USE_HF=1 loads from Hugging Face")


CHECKS = (ports, running_servers, hub)
