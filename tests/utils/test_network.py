import os
import socket
import subprocess
import sys

import pytest

from present import present
from swift_rlvr.utils import network


def test_a_port_that_somebody_holds_is_not_free(monkeypatch):
    port = network.free_port()
    assert 10_000 <= port < 32_768
    with socket.create_server(("127.0.0.1", port)):
        monkeypatch.setattr(network, "PORTS", range(port, port + 1))
        with pytest.raises(OSError, match=f"no port from {port} to {port} is free"):
            network.free_port()


def test_why_a_hub_cannot_be_reached(monkeypatch):
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    port = network.free_port()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}")
    assert network.why_no_hub(use_hf=True) == "127.0.0.1 cannot be reached: Connection refused"
    with socket.create_server(("127.0.0.1", port)):
        assert network.why_no_hub(use_hf=True) is None
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    assert network.why_no_hub(use_hf=True) is None


HOLDER = """
import sys, time
from swift_rlvr.utils.network import reserved
with reserved([int(sys.argv[1])]):
    print("reserved", flush=True)
    time.sleep(600)
"""


def test_a_reserved_port_is_another_process_until_that_ends():
    port = network.free_port()
    assert network.reserved_by(port) is None
    argv = [sys.executable, "-c", HOLDER, str(port)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert present(holder.stdout).readline() == "reserved\n"
            assert network.reserved_by(port) == holder.pid
            with network.reserved([port]):  # it stays the other's
                assert network.reserved_by(port) == holder.pid
        finally:
            holder.kill()  # and not by its own code
    assert network.reserved_by(port) is None
    with network.reserved([port]):
        assert network.reserved_by(port) == os.getpid()
    assert network.reserved_by(port) is None
