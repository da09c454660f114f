"""Imports point one way, and the plain modules need neither ms-swift nor torch."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "plugin" / "swift_rlvr"
LAYERS = [
    {"answers", "arithmetic", "notation", "jsonl", "summary", "math_exact", "math_units", "sandbox"},
    {"math_values"},
    {"math_notation"},
    {"math_judge", "math_workers"},
    {"countdown", "math_answers"},
    {"rewards"},
    {"tasks", "reason_log", "reason_callback"},
    {"run_log", "run_checkpoint"},
    {"sampling"},
    {"grpo", "evaluation", "scoring", "scoring_lines", "scoring_rewards", "scoring_workers"},
    {"dataset_files", "dataset_difficulty"},
    {"dataset_check", "dataset_prompts", "training_data", "trl_settings", "trl_callbacks"},
    {"chat", "grpo_run", "trl_training"},
    {"cli_tables"},
    {"cli_chat", "cli_countdown", "cli_rewards", "cli_datasets"},
    {"cli_train", "cli_training"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
HEAVY = {  # may import the packages below
    *("reason_callback", "grpo", "tiny_model", "cpu_backend", "sampling", "evaluation", "dataset_files"),
    *("dataset_prompts", "run_log", "run_checkpoint", "grpo_run", "chat", "trl_training", "trl_callbacks"),
}
# Modules of tasks/ that compute with numpy; the rest of the package, and so the start of the command line, is without.
NUMPY = {
    f"countdown_{name}.py" for name in ("arrays", "draw", "keys", "forms", "count", "generator", "files", "solver")
}
HEAVY_PACKAGES = {"torch", "swift", "vllm", "deepspeed", "transformers", "trl", "accelerate", "numpy"}


def imports(file: Path) -> set[str]:
    """Dotted names of all modules that a file imports, wherever in the file."""
    package = ["swift_rlvr", *file.relative_to(PACKAGE).parent.parts]
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return names


def unit(dotted: str) -> str:
    """``swift_rlvr.rewards.base`` -> ``rewards``."""
    return (dotted.split(".") + [""])[1]


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_imports_point_one_way(file):
    own = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
    inside = {unit(name) for name in imports(file) if name.startswith("swift_rlvr.")}
    if own == "report":
        assert inside <= {"report", "jsonl", "summary"}, "report reads files only"
    if own in LEVEL:
        upward = {name for name in inside if LEVEL.get(name, -1) > LEVEL[own]}
        assert not upward, f"{own} must not import {sorted(upward)}"
    assert "rlvr_plugin" not in {name.split(".")[0] for name in imports(file)}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_plain_modules_are_plain(file):
    own = file.relative_to(PACKAGE)
    if own.parts[0].removesuffix(".py") not in HEAVY:
        allowed = {"numpy"} if own.parts[0] == "tasks" and own.name in NUMPY else set()
        assert not {name.split(".")[0] for name in imports(file)} & HEAVY_PACKAGES - allowed


@pytest.mark.parametrize("module", ["rewards", "tasks", "cli"])
def test_modules_load_no_heavy_package(module):
    """The same, of what really gets loaded."""
    code = f"import swift_rlvr.{module}, sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True, check=True
    )
    assert not set(result.stdout.split()) & HEAVY_PACKAGES


def test_the_source_folder_is_no_package():
    assert not (PACKAGE.parent / "__init__.py").exists()
