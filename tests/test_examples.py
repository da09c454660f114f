"""The examples run as they are written."""

import subprocess
import sys

from swift_rlvr.utils.files import CHECKOUT


def test_a_reward_in_five_lines():
    path = CHECKOUT / "examples" / "five_line_reward.py"
    code = (
        "import runpy, sys; example = runpy.run_path(sys.argv[1]);"
        "print(example['word_count'](['one two', 'one'], count=[2, 2]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=300
    )
    assert result.stdout == "[1.0, 0.0]\n", result.stderr
