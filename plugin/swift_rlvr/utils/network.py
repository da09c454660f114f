"""Addresses that only this machine can reach, and ports that can be used."""

import http.client
import ipaddress
import os
import random
import socket
import struct
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"
# Below Linux's default range for outgoing connections, which could take a free port before us.
PORTS = range(10_000, 32_768)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("gpu-7")
    (True, True, False, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refusal_of_server(host: str, port: int) -> str | None:
    """Why no rollout server answers at an address; None if one does. No proxy is asked."""
    # A server that listens on all interfaces answers on this one.
    address = LOOPBACK if host in ("0.0.0.0", "::") else host
    connection = http.client.HTTPConnection(address, port, timeout=2)
    try:
        connection.request("GET", "/health/")
        response = connection.getresponse()
        response.read()
        return None if response.status == 200 else f"status {response.status}"
    except (OSError, http.client.HTTPException) as error:
        return str(error)
    finally:
        # We hang up first, so that the minute for which the system holds a port is ours.
        connection.close()


def why_no_hub(use_hf: bool) -> str | None:
    """Why ModelScope or Hugging Face cannot be reached; None if it can, or behind a proxy.

    Their own libraries would try for minutes.
    """
    if use_hf:
        address = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    else:
        address = f"https://{os.environ.get('MODELSCOPE_DOMAIN') or 'modelscope.cn'}"
    parts = urlsplit(address)
    port = parts.port or (80 if parts.scheme == "http" else 443)
    proxies = urllib.request.getproxies()
    if parts.scheme in proxies or "all" in proxies:
        return None
    try:
        socket.create_connection((parts.hostname or "", port), timeout=10).close()
    except OSError as error:
        return f"{parts.hostname} cannot be reached: {error.strerror or error}"
    return None


def free_port() -> int:
    """A TCP port that is free now."""
    start = random.SystemRandom().randrange(len(PORTS))
    for number in range(len(PORTS)):
        port = PORTS[(start + number) % len(PORTS)]
        if not is_held(port):
            return port
    raise OSError(f"no port from {PORTS[0]} to {PORTS[-1]} is free")


def is_held(port: int) -> bool:
    """Whether the system holds a port, as it does for a minute after its server has ended.

    `swift rollout` would silently take the next one.
    """
    return why_not_free(port, reuse=False) is not None


def why_not_free(port: int, reuse: bool = True) -> OSError | None:
    """The error with which listening on a port of this machine fails; None if it is free.

    reuse: whether a port that the system only holds counts as free.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(reuse))
        try:
            probe.bind(("", port))
        except OSError as error:
            return error
    return None


@contextmanager
def reserved(ports: Iterable[int]) -> Iterator[None]:
    """Keep ports from the plans of others inside the block: `reserved_by` names this process there.

    A program listens on its port many seconds after the launch has found it free, and until then
    another launch would find it free as well. The mark is a socket of Linux's abstract namespace,
    which the system takes away with the process, however it ends. A port that another process has
    reserved is left to it.
    """
    with ExitStack() as marks:
        for port in ports:
            mark = marks.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            try:
                mark.bind(_mark_of(port))
            except OSError:
                continue
            mark.listen()
        yield


def reserved_by(port: int) -> int | None:
    """The process that has reserved a port, None if none has; 0 for one that does not answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(1)
        try:
            client.connect(_mark_of(port))
            credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        except TimeoutError:
            return 0
        except OSError:
            return None
    pid, _, _ = struct.unpack("3i", credentials)
    return pid


def _mark_of(port: int) -> str:
    return f"\0swift-rlvr port {port}"
