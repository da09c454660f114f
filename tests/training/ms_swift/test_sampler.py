"""Which sampler vLLM takes on GPUs, in an evaluation, a rollout server and a trainer with vLLM inside:
FlashInfer's needs nvcc.

Stand-ins: folders as CUDA's toolkits lay them out, and a device that is said to be there.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace
from unittest import mock

import pytest

from helpers import ninja, toolkit
from swift_rlvr.evaluation.sampling import engines
from swift_rlvr.training.ms_swift import __main__ as launcher
from swift_rlvr.utils import nvcc
from swift_rlvr.utils.nvcc import SAMPLER

FOLDERS = ("CUDA_HOME", "CUDA_PATH", "FLASHINFER_NVCC")


def evaluation(monkeypatch, variables):
    """The variables with which an evaluation imports vLLM on a GPU."""
    for name in (SAMPLER, *FOLDERS):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(LLM="LLM"))
    monkeypatch.setattr(engines, "visible_device", lambda: "cuda")
    with mock.patch.dict(os.environ):
        assert engines._load_vllm() == "LLM"
        return dict(os.environ)


def server(monkeypatch, variables):
    environ = dict(variables)
    launcher.set_environment("cuda", "rollout", ["--host", "127.0.0.1"], environ)
    return environ


def colocate(monkeypatch, variables):
    environ = dict(variables)
    launcher.set_environment("cuda", "rlhf", ["--vllm_mode", "colocate"], environ)
    return environ


@pytest.fixture
def without_nvcc(tmp_path, monkeypatch):
    """A PATH with ninja and without nvcc, no toolkit in its usual place, and no compiled kernels."""
    monkeypatch.setattr(nvcc, "DEFAULT_CUDA_HOME", str(tmp_path / "none"))
    monkeypatch.setattr(nvcc, "find_spec", lambda name: name == "flashinfer")
    return {"PATH": str(ninja(tmp_path / "bin").parent)}


@pytest.mark.parametrize("environment_of", [evaluation, server, colocate])
def test_vllms_own_sampler_where_flashinfers_cannot_be_compiled(
    environment_of, without_nvcc, tmp_path, monkeypatch
):
    assert environment_of(monkeypatch, without_nvcc)[SAMPLER] == "0"
    old = without_nvcc | {"CUDA_HOME": str(toolkit(tmp_path / "old", "11.5"))}
    assert environment_of(monkeypatch, old)[SAMPLER] == "0"
    new = without_nvcc | {"CUDA_HOME": str(toolkit(tmp_path / "new", "13.0"))}
    assert SAMPLER not in environment_of(monkeypatch, new)


@pytest.mark.parametrize("environment_of", [evaluation, server, colocate])
@pytest.mark.parametrize("value", ["0", "1"])
def test_a_sampler_that_is_set_stays(environment_of, value, without_nvcc, tmp_path, monkeypatch):
    assert environment_of(monkeypatch, without_nvcc | {SAMPLER: value})[SAMPLER] == value
    fits = without_nvcc | {"CUDA_HOME": str(toolkit(tmp_path / "new", "13.0"))}
    assert environment_of(monkeypatch, fits | {SAMPLER: value})[SAMPLER] == value


def test_a_cpu_has_neither(without_nvcc):
    environ = dict(without_nvcc)
    launcher.set_environment("cpu", "rollout", [], environ)
    assert SAMPLER not in environ


# Both model runners ask this function of vLLM's. Prints what it returns without FlashInfer's sampler, and whether it
# goes on with it to ask for the GPU's capability, as it does before it takes that sampler.
ASK_VLLM = """
import os, sys
from types import SimpleNamespace
from vllm.v1.sample.ops import topk_topp_sampler as sampler

def capability():
    raise SystemExit(print("asked"))

sampler.current_platform = SimpleNamespace(is_cuda=lambda: True, get_device_capability=capability)
backend = SimpleNamespace(FlashInferBackend=None)
sys.modules["vllm.v1.attention.backends.flashinfer"] = backend
os.environ[sys.argv[1]] = "0"
print(sampler.flashinfer_sampler_supported())
del os.environ[sys.argv[1]]
sampler.flashinfer_sampler_supported()
"""


@pytest.mark.weekly  # of the vLLM that is pinned
def test_vllm_reads_it_before_it_asks_flashinfer():
    """In a process of its own: vLLM's code, on a platform that says it is CUDA's."""
    if find_spec("vllm") is None:
        pytest.skip("no vllm")
    command = [sys.executable, "-c", ASK_VLLM, SAMPLER]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.stdout.splitlines()[-2:] == ["False", "asked"], done.stderr


@pytest.mark.parametrize(
    ("variables", "level"), [({}, "ERROR"), ({"VLLM_LOGGING_LEVEL": "DEBUG"}, "DEBUG")]
)
def test_in_an_evaluation_vllm_prints_no_warnings_unless_asked(
    monkeypatch, without_nvcc, variables, level
):
    monkeypatch.delenv("VLLM_LOGGING_LEVEL", raising=False)
    assert evaluation(monkeypatch, without_nvcc | variables)["VLLM_LOGGING_LEVEL"] == level
