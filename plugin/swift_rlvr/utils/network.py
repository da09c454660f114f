"""Addresses that only this machine can reach, and ports that can be used."""

import http.client
import ipaddress
import os
import random
import socket
import urllib.request
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"
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
    """Why no rollout server answers there, None where one does; past any proxy.

    We hang up first: who does holds the port for another minute.
    """
    connection = http.client.HTTPConnection(
        "127.0.0.1" if host in ("0.0.0.0", "::") else host, port, timeout=2
    )
    try:
        connection.request("GET", "/health/")
        response = connection.getresponse()
        response.read()
        return None if response.status == 200 else f"status {response.status}"
    except (OSError, http.client.HTTPException) as error:
        return str(error)
    finally:
        connection.close()


def why_no_hub(use_hf: bool) -> str | None:
    """Why ModelScope or Hugging Face cannot be reached, whose own libraries try for long; None
    behind a proxy.
    """
    address = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    parts = urlsplit(
        address if use_hf else f"https://{os.environ.get('MODELSCOPE_DOMAIN') or 'modelscope.cn'}"
    )
    port = parts.port or (80 if parts.scheme == "http" else 443)
    try:
        if not {parts.scheme, "all"} & urllib.request.getproxies().keys():
            socket.create_connection((parts.hostname or "", port), timeout=10).close()
    except OSError as error:
        return f"{parts.hostname} cannot be reached: {error.strerror or error}"
    return None


def free_port() -> int:
    """A TCP port that is free now, and that Linux by default gives to no outgoing connection before
    it is used.
    """
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        if not is_held(port):
            return port
    raise OSError(f"no port from {PORTS[0]} to {PORTS[-1]} is free")


def is_held(port: int) -> bool:
    """The system still holds the port, for a minute after a server; swift rollout would silently
    take the next one.
    """
    return why_not_free(port, reuse=False) is not None


def why_not_free(port: int, reuse: bool = True) -> OSError | None:
    """The error with which a port of this machine cannot be listened on. reuse: one that is held
    counts as free.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(reuse))
        try:
            probe.bind(("", port))
        except OSError as error:
            return error
    return None
