"""Gradients of DeepSpeed's zero2 on two ranks, which issue 8224 says were wrong up to 0.19.3
without a word.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from swift_rlvr.utils.network import free_port
from waiting import HANG

# DeepSpeed's own arithmetic, which no change here touches.
pytestmark = [pytest.mark.e2e, pytest.mark.weekly]
PROGRAM = Path(__file__).with_name("zero2_ranks.py")


def test_gradients_of_two_ranks_are_those_without_zero():
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
    command = [*torchrun, "--master_port", str(free_port()), str(PROGRAM)]
    env = os.environ | {"DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr[-4000:]
    rows = json.loads(done.stdout.splitlines()[-1])
    print(rows)
    assert len(rows) == 4
    for bf16, *differences in rows:
        assert max(differences) < (0.05 if bf16 else 1e-5), rows
