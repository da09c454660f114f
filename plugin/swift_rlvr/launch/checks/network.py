"""Checks of ports, of a server that should run already, of proxies and of the hub."""

import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import cache

from swift_rlvr.launch.checks import Case, Finding, failed, passed, warning
from swift_rlvr.launch.estimate import local_file
from swift_rlvr.launch.sizes import model_folder
from swift_rlvr.network import is_loopback, why_not_free
from swift_rlvr.tasks import TASKS

PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")
HUBS = {"Hugging Face": "https://huggingface.co", "ModelScope": "https://www.modelscope.cn"}


def ports(case: Case) -> Iterator[Finding]:
    """The ports that the plan's programs will listen on, and who holds those that are taken."""
    plan = case.plan
    wanted: list[tuple[int, str, str]] = []
    if plan.server is not None:
        wanted.append((plan.ports[0], "rollout server", "PORT"))
        # A server that runs already may hold its own from the training before.
        wanted += [(port, "weight sync", "SYNC_PORT") for port in plan.sync_ports]
    if plan.variables.node_rank == 0 and plan.master_port:
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
            message = (
                f"port {port} ({purpose}) is in use by {holder(port)}" if error.errno == 98 else f"{port}: {error}"
            )
            yield failed("ports", message, f"end it, or set {variable} to a free port")
    if free:
        yield passed("ports", f"free: {', '.join(free)}")


def holder(port: int) -> str:
    """The program that listens on a port of this machine, as far as this user may know."""
    unknown = "another program, which only its user or root can see"
    try:
        import psutil  # type: ignore[import-untyped]
    except ImportError:
        return unknown
    try:
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port and connection.pid:
                process = psutil.Process(connection.pid)
                return f"{' '.join(process.cmdline())[:80] or process.name()} (pid {connection.pid})"
    except (OSError, RuntimeError, psutil.Error):
        pass
    return unknown


def running_servers(case: Case) -> Iterator[Finding]:
    """Servers that should run already answer."""
    plan = case.plan
    if not plan.hosts or plan.server is not None:
        return
    for host, port in zip(plan.hosts, plan.ports, strict=False):
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}/health/"
        try:
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(url, timeout=3):
                yield passed("server", f"{host}:{port} answers")
        except (OSError, ValueError) as error:  # also HTTPError and URLError
            reason = getattr(error, "reason", error)
            # On other nodes it may still be starting.
            waits = plan.variables.nnodes > 1 or plan.variables.node_rank > 0 or plan.variables.start_server
            remedy = "start it with `swift-rlvr rollout`, or unset START_SERVER, or set HOST and PORT to where it runs"
            note = f"no rollout server answers at {host}:{port} ({reason})"
            yield (
                warning("server", f"{note}; the launch waits for it", remedy)
                if waits
                else failed("server", note, remedy)
            )


def proxies(case: Case) -> Iterator[Finding]:
    """ms-swift's requests to the server follow the proxy variables; a proxy does not reach this machine's 127.0.0.1.

    The launcher adds the loopback addresses to NO_PROXY for the programs that it starts: only servers elsewhere count.
    """
    name = next((name for name in PROXIES if os.environ.get(name)), None)
    if name is None or not case.plan.hosts:
        return
    exempt = [part.strip() for part in (os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or "").split(",")]
    caught = [
        host
        for host in case.plan.hosts
        if not is_loopback(host) and not any(part == "*" or (part and host.endswith(part)) for part in exempt)
    ]
    if caught:
        message = f"{name} is set, and requests to the server {', '.join(caught)} go to that proxy"
        yield warning("proxy", message, f"NO_PROXY={','.join(dict.fromkeys([*filter(None, exempt), *caught]))}")
    else:
        yield passed("proxy", f"{name} is set; requests to this machine's own addresses pass it by")


def hub(case: Case) -> Iterator[Finding]:
    """What is loaded from a hub: not in offline mode, and, in the full part, it is there."""
    names = [("models", str(case.settings.get("model")))] if not _is_here(case) else []
    for name in [*case.listed("dataset"), *case.listed("val_dataset")]:
        if local_file(name)[0] is None and (identity := dataset_id(name, case.use_hf)):
            names.append(("datasets", identity))
    if not names:
        return
    offline = next((name for name in OFFLINE if os.environ.get(name, "").lower() in ("1", "true", "yes", "on")), None)
    if offline and case.use_hf:
        models = [name for kind, name in names if kind == "models"]
        if models:
            message = f"{offline} is set, and {', '.join(models)} is not on this machine"
            yield failed("hub", message, f"unset {offline}, or set MODEL to a folder")
        return
    if os.environ.get("HF_ENDPOINT") and not case.use_hf:
        yield warning(
            "hub", "HF_ENDPOINT is set, and ms-swift loads from ModelScope", "USE_HF=1 loads from Hugging Face"
        )
    listed = ", ".join(name for _, name in names)
    if case.fast:
        yield passed("hub", f"from {case.hub}: {listed}")
        return
    for kind, name in names:
        yield _asked(kind, name, case.use_hf)


def _is_here(case: Case) -> bool:
    return model_folder(str(case.settings.get("model"))) is not None or "/" not in str(case.settings.get("model"))


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


def _asked(kind: str, name: str, use_hf: bool) -> Finding:
    where, path = ("Hugging Face", f"api/{kind}") if use_hf else ("ModelScope", f"api/v1/{kind}")
    base = (use_hf and os.environ.get("HF_ENDPOINT")) or HUBS[where]
    try:
        with urllib.request.urlopen(f"{base.rstrip('/')}/{path}/{name}", timeout=10):
            return passed("hub", f"{where} has {name}")
    except urllib.error.HTTPError as error:
        if error.code in (401, 403, 404):
            remedy = "check the name; a private or gated one needs a token; USE_HF=1 is Hugging Face, else ModelScope"
            return failed("hub", f"{where} has no {kind[:-1]} {name} that can be read (status {error.code})", remedy)
        return warning("hub", f"{where} answers {error.code} for {name}", "try again later")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        remedy = "connect, or bring the files here and set MODEL and DATASET to them"
        if kind == "models":
            return failed("hub", f"{where} does not answer ({reason}), and {name} is not on this machine", remedy)
        return warning("hub", f"{where} does not answer ({reason}); {name} must be in its cache", remedy)


@cache
def dataset_answers(name: str, use_hf: bool) -> bool:
    """Whether a hub says that it has the dataset; asked once."""
    identity = dataset_id(name, use_hf)
    return bool(identity) and _asked("datasets", str(identity), use_hf).status == "passed"
