import socket

import pytest
from swift_rlvr import network


def test_a_port_that_somebody_holds_is_not_free(monkeypatch):
    port = network.free_port()
    assert 10_000 <= port < 32_768
    with socket.create_server(("127.0.0.1", port)):
        monkeypatch.setattr(network, "PORTS", range(port, port + 1))
        with pytest.raises(OSError, match=f"no port from {port} to {port} is free"):
            network.free_port()
