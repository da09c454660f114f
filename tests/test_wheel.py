"""The wheel that is made from the sdist, without a checkout: from an empty folder with a fresh HOME it
plans and checks.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A function that runs the installed command in an empty folder; the other packages are those
    of the tests.
    """
    folder = tmp_path_factory.mktemp("wheel")
    source, environment, empty = folder / "source", folder / "environment", folder / "empty"
    for name in ("plugin", "datasets", "scripts/configs"):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=ignored)
    for name in ("setup.cfg", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    empty.mkdir()
    venv.create(environment, with_pip=False)
    packages = (
        environment
        / "lib"
        / f"python{sys.version_info.major}.{sys.version_info.minor}"
        / "site-packages"
    )
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = f"from setuptools import build_meta; build_meta.build_sdist({str(folder)!r})"
    subprocess.run([sys.executable, "-c", build], check=True, cwd=source)
    (sdist,) = folder.glob("*.tar.gz")
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, sdist],
        check=True,
        cwd=folder,
    )
    (wheel,) = folder.glob("*.whl")
    into = [
        "--python",
        environment / "bin" / "python",
        "install",
        "--no-deps",
        "--ignore-installed",
    ]
    subprocess.run([*pip, *into, wheel], check=True, cwd=folder)

    def run(*words, **variables):
        env = {
            "HOME": str(empty),
            "PATH": f"{environment / 'bin'}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            **variables,
        }
        command = ["swift-rlvr", *map(str, words)]
        return subprocess.run(
            command, cwd=empty, env=env, capture_output=True, text=True, timeout=1800
        )

    return run


@pytest.mark.slow
def test_the_sdist_holds_every_file_of_the_repository(tmp_path):
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("no checkout of git")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    tracked = [name for name in listed.stdout.decode().split("\0") if (ROOT / name).is_file()]
    for name in tracked:
        copy = tmp_path / "source" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy)
    build = f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", build], check=True, cwd=tmp_path / "source")
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert "setup.cfg" in tracked and set(tracked) - held == set()


@pytest.mark.slow
def test_recipes_and_data_come_with_it(installed):
    planned = installed("train", "countdown", DRY_RUN="1", CUDA_VISIBLE_DEVICES="")
    assert planned.returncode == 0, planned.stderr
    trainer = planned.stdout.splitlines()[-1]
    for flag in ("model", "deepspeed", "dataset", "external_plugins"):
        (path,) = re.findall(rf" --{flag}=(?:countdown:)?(\S+)", trainer)
        assert Path(path).exists() and not Path(path).is_relative_to(ROOT)
    assert "2 checkpoints" in planned.stdout  # the sizes are known
    checked = installed("dataset", "check", "countdown:datasets/countdown/tiny_test.jsonl")
    assert checked.returncode == 0 and "539 rows of countdown" in checked.stdout


@pytest.mark.slow
def test_it_trains(installed):
    words = ("train", "trl", "--max_steps", 1, "--save_steps", 1, "--output_dir", "run")
    small = ["--per_device_train_batch_size", 16, "--max_completion_length", 32]
    small += ["--held_out_rows", 2, "--held_out_samples", 2]
    trained = installed(*words, *small, OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="")
    assert trained.returncode == 0 and "saved: run" in trained.stdout, trained.stderr
