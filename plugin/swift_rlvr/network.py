"""Addresses that only this machine can reach, and ports that can be used."""

import ipaddress
import socket

LOOPBACK = "127.0.0.1"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("gpu-7")
    (True, True, False, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def free_port() -> int:
    """A TCP port that is free on the loopback interface now."""
    with socket.create_server((LOOPBACK, 0)) as server:
        return int(server.getsockname()[1])


def is_free(port: int) -> bool:
    """No program listens there, on any address of this machine."""
    return why_not_free(port) is None


def is_held(port: int) -> bool:
    """The system still holds the port, for a minute after a server; swift rollout would silently take the next one."""
    return why_not_free(port, reuse=False) is not None


def why_not_free(port: int, reuse: bool = True) -> OSError | None:
    """The error with which a port of this machine cannot be listened on. reuse: one that is held counts as free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(reuse))
        try:
            probe.bind(("", port))
        except OSError as error:
            return error
    return None
