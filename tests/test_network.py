import socket

import pytest
from swift_rlvr import network


def test_a_free_port_is_none_that_an_outgoing_connection_can_take():
    first = int(network.EPHEMERAL_PORTS.read_text().split()[0])
    assert all(network.FIRST_PORT <= network.free_port() < first for _ in range(50))


def test_a_port_that_somebody_holds_is_not_free(monkeypatch):
    port = network.free_port()
    with socket.create_server(("127.0.0.1", port)):
        monkeypatch.setattr(network, "FIRST_PORT", port)
        monkeypatch.setattr(network, "_first_ephemeral_port", lambda: port + 1)
        with pytest.raises(OSError, match=f"no port from {port} to {port} is free"):
            network.free_port()


@pytest.mark.parametrize("text", [None, "", "one two"])
def test_where_the_system_does_not_say_its_range_linux_has_a_default(monkeypatch, tmp_path, text):
    path = tmp_path / "range"
    if text is not None:
        path.write_text(text)
    monkeypatch.setattr(network, "EPHEMERAL_PORTS", path)
    assert network.FIRST_PORT <= network.free_port() < 32_768
