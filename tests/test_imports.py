"""What the contracts on imports in setup.cfg cannot see: which packages a module really loads."""

import subprocess
import sys

import pytest

from paths import PLUGIN

LARGE = {
    *("torch", "swift", "vllm", "deepspeed", "transformers", "trl", "accelerate"),
    *("matplotlib", "math_verify", "sympy", "numpy"),
}


def packages_loaded_by(module: str) -> set[str]:
    """The top-level packages in memory after an import of the module, in a fresh interpreter."""
    code = f"import {module}, sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=PLUGIN, capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())


@pytest.mark.parametrize(
    "module", ["rewards", "tasks", "cli", "verifiers.mathematics", "runs.folder"]
)
def test_light_modules_load_no_large_package(module):
    assert not packages_loaded_by(f"swift_rlvr.{module}") & LARGE
