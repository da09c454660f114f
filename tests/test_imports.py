"""What the layout promises and the contracts in setup.cfg cannot see: what really gets loaded, and
how it is named.
"""

import subprocess
import sys

import pytest
from paths import PLUGIN

LARGE = {"torch", "swift", "vllm", "deepspeed", "transformers", "trl", "accelerate"}
LARGE |= {"matplotlib", "math_verify", "sympy"}
# The public paths of shared/DESIGN.md and README.md.
PUBLIC = {
    "swift_rlvr.rewards": "REWARDS Reward Grade add_reward",
    "swift_rlvr.tasks": "TASKS Task RowError",
    "swift_rlvr.verifiers.countdown": "verify grade_all Verdict Reason read_gold",
    "swift_rlvr.verifiers.mathematics": "Leniency Reason Verdict grade grade_all why_unreadable",
    "swift_rlvr.verifiers.code": "check Limits",
    "swift_rlvr.training.ms_swift": "register_vllm_plugin",
    "swift_rlvr.cli": "main",
}


def loaded_by(code: str) -> set[str]:
    """The top-level packages in memory after a piece of code, in a fresh interpreter."""
    code = f"{code}\nimport sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=PLUGIN, capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())


@pytest.mark.parametrize(
    "module", ["rewards", "tasks", "cli", "verifiers.mathematics", "runs.folder"]
)
def test_light_modules_load_no_large_package(module):
    assert not loaded_by(f"import swift_rlvr.{module}") & (LARGE | {"numpy"})


@pytest.mark.slow
def test_public_paths():
    lines = [f"from {module} import {', '.join(names.split())}" for module, names in PUBLIC.items()]
    loaded_by("\n".join(lines))


def test_the_source_folder_is_no_package():
    assert not (PLUGIN / "__init__.py").exists()
