"""The nvcc that FlashInfer would run, and why it would not do.

FlashInfer's own `get_cuda_path` has the rules; the stand-ins are folders as CUDA's packages lay them
out.
"""

import pytest

from helpers import ninja, toolkit
from swift_rlvr.utils import nvcc as module
from swift_rlvr.utils.nvcc import find_nvcc, why_no_nvcc


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A toolkit where CUDA's installer puts it, FlashInfer, and no compiled kernels beside it."""
    monkeypatch.setattr(module, "DEFAULT_CUDA_HOME", str(tmp_path / "usr/local/cuda"))
    monkeypatch.setattr(module, "find_spec", lambda name: name == "flashinfer")
    return toolkit(tmp_path / "usr/local/cuda")


def test_a_variable_counts_before_the_path_and_the_path_before_the_default(tmp_path, home):
    variable, other = toolkit(tmp_path / "variable"), toolkit(tmp_path / "other")
    on_path = toolkit(tmp_path / "path")
    environ = {"PATH": str(on_path / "bin")}

    assert find_nvcc({"PATH": ""}) == str(home / "bin/nvcc")
    assert find_nvcc(environ) == str(on_path / "bin/nvcc")
    assert find_nvcc(environ | {"CUDA_PATH": str(other)}) == str(other / "bin/nvcc")
    both = {"CUDA_HOME": str(variable), "CUDA_PATH": str(other)}
    assert find_nvcc(environ | both) == str(variable / "bin/nvcc")
    # An empty variable is none.
    assert find_nvcc(environ | {"CUDA_HOME": "", "CUDA_PATH": ""}) == str(on_path / "bin/nvcc")
    # FlashInfer does not look further than a CUDA_HOME that has none.
    assert find_nvcc(environ | {"CUDA_HOME": str(tmp_path)}) is None
    # Its own variable names the program.
    own = {"FLASHINFER_NVCC": str(other / "bin/nvcc"), "CUDA_HOME": str(variable)}
    assert find_nvcc(environ | own) == str(other / "bin/nvcc")


@pytest.mark.parametrize(
    "release, header, problem",
    [
        ("13.0", "include/curand_kernel.h", ""),
        ("12.8", "include/curand_kernel.h", ""),
        ("12.8", "targets/x86_64-linux/include/curand_kernel.h", ""),  # conda's
        ("12.6", "include/curand_kernel.h", "/bin/nvcc is 12.6, older than 12.8"),
        ("11.5", "include/curand_kernel.h", "/bin/nvcc is 11.5, older than 12.8"),  # Debian's
        ("13.0", "", "has no include/curand_kernel.h"),  # conda's cuda-nvcc alone
    ],
)
def test_an_nvcc_fits_if_it_is_new_and_has_the_header(tmp_path, home, release, header, problem):
    environ = {"CUDA_HOME": str(toolkit(tmp_path / "cuda", release, header))}
    environ["PATH"] = str(ninja(tmp_path / "bin").parent)
    if problem:
        assert problem in why_no_nvcc(environ)
    else:
        assert why_no_nvcc(environ) == ""


def test_without_nvcc_and_with_one_that_does_not_run(tmp_path, home, monkeypatch):
    (home / "bin/nvcc").write_text("#!/bin/sh\nexit 1\n")
    assert why_no_nvcc({"PATH": ""}) == f"{home}/bin/nvcc does not run"
    (home / "bin/nvcc").unlink()
    assert why_no_nvcc({"PATH": ""}).startswith("no nvcc found (CUDA_HOME")
    # The package with FlashInfer's compiled kernels makes it needless.
    packages = ["flashinfer", "flashinfer_jit_cache"]
    monkeypatch.setattr(module, "find_spec", lambda name: name in packages)
    assert why_no_nvcc({"PATH": ""}) == ""


def test_without_flashinfer_or_ninja_nothing_is_compiled(home, monkeypatch):
    assert why_no_nvcc({"PATH": ""}) == "no ninja on the PATH, which runs nvcc"
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert why_no_nvcc({"PATH": ""}) == "flashinfer is not installed"
