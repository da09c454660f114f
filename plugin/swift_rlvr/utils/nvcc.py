"""CUDA's compiler, as FlashInfer looks for it: vLLM's sampler compiles one of its kernels with it at
run time.

The rules are those of FlashInfer 0.7.0, `flashinfer/jit/cpp_ext.py` and `jit/core.py`. The
environment's own nvcc (package nvidia-cuda-nvcc, in site-packages/nvidia/cu13/bin) is not on the
PATH, and what it compiles could not be linked: no package brings `lib64/libcudart.so`.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, MutableMapping
from importlib.util import find_spec

DEFAULT_CUDA_HOME = "/usr/local/cuda"
# The oldest release that knows --compress-mode, which FlashInfer passes to it.
OLDEST_NVCC = (12, 8)
# FlashInfer's sampling.cuh includes it. It is not in all packages that bring an nvcc.
HEADER = "curand_kernel.h"
# vLLM's: 1, the default of 0.32, takes FlashInfer's sampler; 0, that of 0.19, takes vLLM's own.
SAMPLER = "VLLM_USE_FLASHINFER_SAMPLER"


def choose_sampler(environ: MutableMapping[str, str]) -> None:
    """Let vLLM take its own sampler where FlashInfer cannot compile one; whoever sets the variable
    is obeyed.

    vLLM finds out only when its warm-up samples, and ends.
    """
    if SAMPLER not in environ and why_no_nvcc(environ):
        environ[SAMPLER] = "0"


def find_nvcc(environ: Mapping[str, str]) -> str | None:
    """The nvcc that FlashInfer will run with these variables: of CUDA_HOME, else CUDA_PATH, else the
    PATH's, else /usr/local/cuda's; None if there is none.

    >>> find_nvcc({"CUDA_HOME": "/nowhere"}) is None
    True
    """
    nvcc = environ.get("FLASHINFER_NVCC") or os.path.join(_cuda_home(environ), "bin", "nvcc")
    return shutil.which(nvcc, path=environ.get("PATH"))


def why_no_nvcc(environ: Mapping[str, str]) -> str:
    """Why FlashInfer cannot compile with these variables; "" where it can, or need not because its
    compiled kernels are installed.
    """
    if not find_spec("flashinfer"):
        return "flashinfer is not installed"
    if find_spec("flashinfer_jit_cache"):
        return ""
    nvcc = find_nvcc(environ)
    if nvcc is None:
        return "no nvcc found (CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda)"
    release = nvcc_release(nvcc)
    if release is None:
        return f"{nvcc} does not run"
    if release < OLDEST_NVCC:
        return f"{nvcc} is {_dotted(release)}, older than {_dotted(OLDEST_NVCC)}"
    home = _cuda_home(environ)
    # /usr has Debian's packages; conda's have a folder for each target.
    includes = [os.path.join(home, "include")]
    targets = os.path.join(home, "targets")
    if os.path.isdir(targets):
        includes += [os.path.join(targets, name, "include") for name in os.listdir(targets)]
    if not any(os.path.exists(os.path.join(folder, HEADER)) for folder in includes):
        return f"the toolkit in {home} has no include/{HEADER}"
    if not shutil.which("ninja", path=environ.get("PATH")):
        return "no ninja on the PATH, which runs nvcc"
    return ""


def nvcc_release(nvcc: str) -> tuple[int, int] | None:
    """(12, 9) for CUDA 12.9; None if the program does not say."""
    try:
        run = subprocess.run([nvcc, "--version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"release (\d+)\.(\d+),", run.stdout)
    return (int(match[1]), int(match[2])) if match else None


def _cuda_home(environ: Mapping[str, str]) -> str:
    home = environ.get("CUDA_HOME") or environ.get("CUDA_PATH")
    if home:
        return home
    nvcc = shutil.which("nvcc", path=environ.get("PATH"))
    if nvcc:
        return os.path.dirname(os.path.dirname(nvcc))
    return DEFAULT_CUDA_HOME


def _dotted(release: tuple[int, int]) -> str:
    return ".".join(map(str, release))
