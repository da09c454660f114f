"""The real rollout server and the real trainers, with the recipes for a CPU, for the end-to-end
tests.

One server serves all of them, since it takes half a minute to start; `rollout_server` starts
another after a test that breaks it. After every command the tests look for processes that it left
behind.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
import requests
from paths import words
from swift_rlvr.utils.network import free_port

ROOT = Path(__file__).resolve().parents[2]
PATCHED = (sys.executable, "-m", "swift_rlvr.training.ms_swift")
TRAIN = (sys.executable, "-m", "swift_rlvr.cli", "train")


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class Run:
    """A launched command, its log, and every process that it started."""

    arguments: list[str]
    log: Path
    env: dict[str, str] = field(default_factory=dict)
    program: tuple[str, ...] = PATCHED

    def __post_init__(self):
        self.mark = uuid.uuid4().hex
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*self.program, *self.arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env=os.environ | self.env | {"SWIFT_RLVR_TEST_RUN": self.mark},
                start_new_session=True,
            )

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def family(self) -> list[psutil.Process]:
        """This command's processes that are alive, found by their environment: torchrun's ranks
        change the session.
        """
        members = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("SWIFT_RLVR_TEST_RUN") == self.mark:
                    members.append(process)
        return members

    def wait_for(self, condition, seconds: float, what: str):
        """Poll until ``condition()`` is true; fail when time is up or the command ended before."""
        end = time.monotonic() + seconds
        while not condition():
            ended = (
                self.process.poll() is not None
            )  # looked at before the condition, which may have come true since
            if not condition() and (ended or time.monotonic() > end):
                pytest.fail(
                    f"waited for {what}; exit code {self.process.poll()}\n{self.text()[-4000:]}"
                )
            time.sleep(0.2)

    def finish(self, seconds: float) -> int:
        """The exit code; fails when the command does not end in time or leaves a process behind."""
        try:
            code = self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            pytest.fail(f"still running after {seconds} s\n{self.text()[-4000:]}")
        end = time.monotonic() + 10
        while (left := self.family()) and time.monotonic() < end:
            time.sleep(0.2)
        assert not left, f"left behind: {left}"
        return code

    def interrupt(self, seconds: float = 30) -> int:
        """Ctrl-C, which a terminal sends to every process of the command."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.finish(seconds)

    def kill_if_alive(self) -> None:
        for process in self.family():
            process.kill()
        self.process.wait(timeout=10)


# The recipe for a CPU, smaller; what follows these flags wins.
SMALLER = """
    --reward_funcs external_countdown format external_share_of_digits --load_from_cache_file false
    --max_length 128 --max_completion_length 32 --per_device_train_batch_size 8 --num_generations 4
    --gradient_accumulation_steps 1 --learning_rate 1e-3 --lr_scheduler_type constant --report_to none
    --gradient_checkpointing false --dataset_num_proc 1 --callbacks reward_reasons
"""


class Launches:
    """`swift-rlvr train` with the recipe for a CPU, smaller: one run's folder and ports, for every
    start of it.

    With a file `full` the trainer cannot write files of more than a megabyte, as on a full disk.
    While there is a file `hold`, it waits in the middle of an update of the weights, and while
    there is a file `drop` it sends none; both without telling anybody.
    """

    def __init__(self, folder: Path):
        self.folder, self.output = folder, folder / "output"
        self.port, self.sync_port = free_port(), free_port()
        self.hold, self.holding, self.drop = folder / "hold", folder / "holding", folder / "drop"
        self.full = folder / "full"
        self.plugin, self.reward = folder / "faulty_sync.py", folder / "share_of_digits.py"
        self.plugin.write_text(SYNC_PLUGIN.format(folder=str(folder)))
        self.reward.write_text(REWARD_PLUGIN)
        self.started: list[Run] = []

    def start(self, *flags: str, **variables: object) -> Run:
        arguments = words(f"""
            scripts/configs/countdown_cpu.yaml --output_dir {self.output}
            --vllm_server_port {self.port} --vllm_server_group_port {self.sync_port}
            --external_plugins plugin/rlvr_plugin.py {self.reward} {self.plugin}
            --save_steps 2 --save_total_limit 3 --log_rollout_offpolicy_metrics true --max_steps 500
        """)
        variables = {"MASTER_PORT": free_port(), **variables}
        env = {
            "SWIFT_RLVR_SYNC_TIMEOUT": "60",
            **{name: str(value) for name, value in variables.items()},
        }
        log = self.folder / f"launch-{len(self.started)}.log"
        self.started.append(Run([*arguments, *SMALLER.split(), *flags], log, env, TRAIN))
        return self.started[-1]

    def step(self) -> int:
        """The last step in the run's log."""
        steps = self.logged()
        return steps[-1] if steps else 0

    def logged(self) -> list[int]:
        """The steps in the run's log, in its order."""
        path = self.output / "logging.jsonl"
        text = path.read_text() if path.exists() else ""
        rows = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        return [int(row["global_step/max_steps"].split("/")[0]) for row in rows if "reward" in row]

    def reaches(self, run: Run, step: int, seconds: float = 1500) -> None:
        run.wait_for(lambda: self.step() >= step, seconds, f"step {step}")

    def loud(
        self, run: Run, fault: str, message: str, status: int = 1, seconds: float = 90
    ) -> None:
        """A run ends because of a fault that was made just now, says so, and leaves no process and
        no port.
        """
        start = time.monotonic()
        while message not in run.text() and time.monotonic() - start < seconds:
            time.sleep(0.05)
        said = time.monotonic() - start
        assert run.finish(seconds) == status, run.text()[-4000:]
        assert message in run.text(), run.text()[-4000:]
        print(
            f"{fault}: says so after {said:.1f} s, has ended after {time.monotonic() - start:.1f} s"
        )
        assert not is_listening(self.port) and not is_listening(self.sync_port)

    def members(self, run: Run, name: str) -> list[psutil.Process]:
        """The processes of the run's trainer or server."""
        return [
            process
            for process in run.family()
            if process.environ().get("SWIFT_RLVR_RUN", "").endswith(name)
        ]


class RolloutServer:
    """`swift rollout` on free loopback ports, with a plugin that breaks the next update while a
    file exists.
    """

    def __init__(self, model: Path, folder: Path):
        self.model, self.port, self.group_port = model, free_port(), free_port()
        self.fault = folder / "fail_updates"
        plugin = folder / "faulty_updates.py"
        plugin.write_text(FAULT_PLUGIN.format(flag=str(self.fault)))
        self.reward = folder / "share_of_digits.py"
        self.reward.write_text(REWARD_PLUGIN)
        self.run = Run(
            words(
                f"rollout scripts/configs/rollout_cpu.yaml --model {model} --port {self.port} --log_level warning "
                f"--external_plugins {plugin}"
            ),
            folder / "server.log",
        )
        try:
            self.run.wait_for(self.is_healthy, 900, "the rollout server")
        except BaseException:
            self.run.kill_if_alive()
            raise

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def is_healthy(self) -> bool:
        try:
            return requests.get(f"{self.url}/health/", timeout=2).ok
        except requests.RequestException:
            return False

    def trainer(self, folder: Path, *flags: str, env: dict[str, str] | None = None) -> Run:
        """`swift rlhf` with two ZeRO-3 ranks on this server: the recipe, smaller; ``flags`` come
        last and win.
        """
        arguments = words(f"""
            rlhf scripts/configs/countdown_cpu.yaml --model {self.model}
            --vllm_server_port {self.port} --vllm_server_group_port {self.group_port}
            --external_plugins plugin/rlvr_plugin.py {self.reward}
            --save_strategy no --output_dir {folder}/output --add_version false
        """)
        env = {"NPROC_PER_NODE": "2", "SWIFT_RLVR_SYNC_TIMEOUT": "20", **(env or {})}
        return Run([*arguments, *SMALLER.split(), *flags], folder / "train.log", env)

    def stop(self) -> None:
        """Ends the server and checks that it took everything with it."""
        if self.run.process.poll() is None:
            self.run.process.terminate()
        self.run.finish(30)
        assert not is_listening(self.port) and not is_listening(self.group_port)


SYNC_PLUGIN = """
import pathlib
import resource
import time

from swift.rlhf_trainers import vllm_client

FOLDER = pathlib.Path({folder!r})
if (FOLDER / "full").exists():
    resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6))
_broadcast = vllm_client._broadcast_tensors_for_vllm_weight_sync


def broadcast(communicator, tensors):
    while (FOLDER / "hold").exists():
        (FOLDER / "holding").touch()
        time.sleep(0.05)
    _broadcast(communicator, tensors)


def dropping(function):
    return lambda *args: None if (FOLDER / "drop").exists() else function(*args)


vllm_client._broadcast_tensors_for_vllm_weight_sync = broadcast
for name in ("update_flattened_params", "process_weights_after_loading"):
    setattr(vllm_client.VLLMClient, name, dropping(getattr(vllm_client.VLLMClient, name)))
"""


FAULT_PLUGIN = """
import pathlib

from swift.pipelines.infer.rollout import WeightSyncWorkerExtension as Worker

_original = Worker.__mro__[1].update_flattened_params


def update_flattened_params(self, metadatas):
    if pathlib.Path({flag!r}).exists():
        raise MemoryError("no room for the new weights")
    _original(self, metadatas)


Worker.__mro__[1].update_flattened_params = update_flattened_params
"""


# Any model's completions differ in this one, so that there is something to learn from the first
# step on.
REWARD_PLUGIN = """
from swift.rewards import ORM, orms


class ShareOfDigits(ORM):
    def __call__(self, completions, **columns):
        return [sum(letter.isdigit() for letter in text) / max(1, len(text)) for text in completions]


orms["external_share_of_digits"] = ShareOfDigits
"""


@pytest.fixture(scope="session")
def start_model() -> Path:
    """The committed tiny model."""
    from swift_rlvr.utils.files import TINY_MODEL

    return TINY_MODEL


@pytest.fixture(scope="session")
def _servers(start_model, tmp_path_factory):
    started: list[RolloutServer] = []

    def running() -> RolloutServer:
        if not started or started[-1].run.process.poll() is not None:
            started.append(RolloutServer(start_model, tmp_path_factory.mktemp("server")))
        return started[-1]

    yield running
    for server in started:
        try:
            server.stop()
        finally:
            server.run.kill_if_alive()


@pytest.fixture
def rollout_server(_servers) -> RolloutServer:
    return _servers()


@pytest.fixture(scope="session")
def _launches():
    started: list[Launches] = []
    yield started
    for launches in started:
        for run in launches.started:
            run.kill_if_alive()


@pytest.fixture
def launches(_launches, tmp_path) -> Launches:
    """Of a folder of its own."""
    _launches.append(Launches(tmp_path))
    return _launches[-1]


@pytest.fixture(scope="session")
def trained():
    """`swift-rlvr train` with these arguments, to its end."""
    started: list[Run] = []

    def to_the_end(
        arguments: list[str], log: Path, env: dict[str, str], seconds: float = 600
    ) -> Run:
        started.append(Run(arguments, log, {"MASTER_PORT": str(free_port()), **env}, TRAIN))
        assert started[-1].finish(seconds) == 0, started[-1].text()[-4000:]
        return started[-1]

    yield to_the_end
    for run in started:
        run.kill_if_alive()
