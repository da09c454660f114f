"""A default is written once: ours in the settings' own declaration, ms-swift's in launch/settings.py,
where it equals ms-swift's, and a recipe's in the recipe.
"""

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from paths import ROOT
from swift_rlvr.evaluation.sampling import SamplingSettings
from swift_rlvr.launch.settings import GrpoSettings
from swift_rlvr.launch.variables import Variables

PACKAGE = ROOT / "plugin" / "swift_rlvr"
SETTINGS = {
    field.name for cls in (GrpoSettings, SamplingSettings, Variables) for field in fields(cls)
}
# The file that declares ms-swift's defaults; the one below compares them with ms-swift.
MS_SWIFT = Path("launch", "settings.py")
# A reward's or a verifier's parameter may have the name of a setting: `max_length` of a penalty.
OTHER_NAMES = ("rewards", "verifiers")
# What a command has in place of the setting's own default, and why.
MEANT = {
    ("cli/probe.py", "num_generations"): "pass rates need more completions than one",
    ("cli/probe.py", "batch_size"): "a probe samples many completions a prompt",
    ("cli/dataset/prepare.py", "seed"): "of added tests, not of sampling",
    ("cli/dataset/make_countdown.py", "seed"): "of made rows",
    ("evaluation/added_tests/add.py", "seed"): "of added tests",
}


def is_number(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def declared(tree: ast.Module) -> Iterator[str]:
    """Names that get a number as their default: parameters of functions, and fields of classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            positional = [*node.args.posonlyargs, *node.args.args]
            positional = positional[len(positional) - len(node.args.defaults) :]
            defaults = [*node.args.defaults, *node.args.kw_defaults]
            for name, default in zip([*positional, *node.args.kwonlyargs], defaults, strict=True):
                if is_number(default):
                    yield name.arg
        if not isinstance(node, ast.ClassDef):
            continue
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                value = field.value
                if isinstance(value, ast.Call):
                    value = value.args[0] if value.args else None
                if is_number(value):
                    yield field.target.id


def test_no_setting_has_a_second_default():
    places: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(PACKAGE)
        if file == MS_SWIFT or file.parts[0] in OTHER_NAMES:
            continue
        for name in declared(ast.parse(path.read_text())):
            if name in SETTINGS:
                places.setdefault(name, []).append(file.as_posix())
    assert places["batch_size"], "the scan sees declarations"

    seen = {(file, name) for name, files in places.items() for file in files}
    assert seen >= MEANT.keys(), "a line of MEANT that nothing needs any more"
    for name, files in places.items():
        own = [file for file in files if (file, name) not in MEANT]
        assert len(own) <= 1, f"{name} has a default in each of {', '.join(own)}"


@pytest.mark.slow
def test_the_launchs_defaults_are_ms_swifts():
    """Imports ms-swift. 0 stands for what is not set, and for no limit."""
    from swift.arguments import RLHFArguments

    # What ms-swift derives for GRPO when the arguments are read: rlhf_args.py and trainers/arguments.py.
    derived = {"beta": 0.04, "gradient_accumulation_steps": 1, "dataloader_num_workers": 1}
    # One turn where a scheduler has no limit of its own: what a plan can count on.
    derived["max_turns"] = 1
    theirs = {field.name: field.default for field in fields(RLHFArguments)}
    for field in fields(GrpoSettings):
        if "at_least" not in field.metadata:
            continue
        expected = theirs[field.name]
        if expected is None:
            expected = derived.get(field.name, 0)
        assert field.default == expected, field.name


# What a recipe of GRPO states although ms-swift has defaults for it, so that one file tells the whole
# training (scripts/configs/README.md).
STATED = {
    *("tuner_type", "torch_dtype", "reward_funcs", "use_vllm", "vllm_mode", "num_generations"),
    *("max_completion_length", "temperature", "per_device_train_batch_size"),
    *("gradient_accumulation_steps", "num_train_epochs", "max_steps", "learning_rate", "beta"),
    *("num_iterations", "logging_steps", "save_steps", "save_total_limit", "log_completions"),
}


def test_a_recipe_states_its_objective_lengths_and_batch():
    recipes = 0
    for path in sorted((ROOT / "scripts" / "configs").glob("*.yaml")):
        settings = yaml.safe_load(path.read_text())
        if settings.get("rlhf_type") == "grpo":
            recipes += 1
            assert settings.keys() >= STATED, f"{path.name} lacks {STATED - settings.keys()}"
    assert recipes > 10
