"""The rollout servers that a launch names."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from swift_rlvr.training.recipes import uses_servers
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.settings import as_list, number

PORT, SYNC_PORT = "vllm_server_port", "vllm_server_group_port"


class Server(NamedTuple):
    """Where a rollout server answers. sync_port: where its first worker listens for weights."""

    host: str
    port: int
    sync_port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def rollout_servers(values: Mapping[str, Any]) -> tuple[Server, ...]:
    """The rollout servers; none where vLLM is in the trainer's process."""
    if not uses_servers(values):
        return ()
    hosts = [str(host) for host in as_list(values.get("vllm_server_host")) if host]
    if not hosts:
        raise InputError("is needed with vllm_mode server, such as 127.0.0.1", "vllm_server_host")
    ports = _server_ports(values, PORT, 8000, len(hosts))
    sync_ports = _server_ports(values, SYNC_PORT, 51216, len(hosts))
    if len(ports) < len(hosts):
        ports *= len(hosts)
    if len(sync_ports) < len(hosts):
        # From the one port on, as ms-swift counts.
        sync_ports = [sync_ports[0] + index for index in range(len(hosts))]
    return tuple(map(Server, hosts, ports, sync_ports))


def _server_ports(values: Mapping[str, Any], name: str, default: int, hosts: int) -> list[int]:
    """The ports of a setting: one for each host, or one for all."""
    ports = []
    for value in as_list(values.get(name, default)):
        ports.append(number({name: value}, name, default, at_least=1))
    if len(ports) not in (1, hosts):
        problem = f"must be one port for each of the {hosts} hosts of vllm_server_host"
        raise InputError(problem, name)
    return ports
