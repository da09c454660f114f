"""Two nodes, which are two launches on this machine: the second is there long before the first."""

import time

import pytest
from swift_rlvr.utils.network import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
SHORT = 5  # seconds, in place of torchrun's 900


def test_the_second_node_waits_for_the_first(launches):
    variables = {
        "NNODES": 2,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": free_port(),
        "PROCESSES": 1,
    }
    # what torchrun would do by itself; SERVER_TIMEOUT counts
    variables["PET_RDZV_CONF"] = f"timeout={SHORT}"
    second = launches.start("--max_steps", "2", NODE_RANK=1, **variables)
    second.wait_for(lambda: launches.members(second, "trainer"), 120, "the second node's torchrun")
    time.sleep(2 * SHORT)
    first = launches.start("--max_steps", "2", NODE_RANK=0, **variables)
    assert first.finish(400) == 0, first.text()[-4000:]
    assert second.finish(60) == 0, second.text()[-4000:]
    assert launches.logged() == [1, 2]
    assert (
        "1 process on each of 2 nodes" in first.text() and "16 completions a step" in first.text()
    )
    assert "step 2/2" in second.text()  # the folder is shared
    assert (launches.output / "trainer-node1.log").exists()
