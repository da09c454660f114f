"""The real programs that the end-to-end tests start: a command, the rollout server, and trainings.

Every wait here ends as soon as what it waits for has come. HANG tells a program that hangs from one
on a busy machine; nothing is decided by how fast something was.
"""

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests

from paths import ROOT, words
from swift_rlvr.runs.records import Record, read_records
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.jsonl import read_jsonl
from swift_rlvr.utils.network import free_port
from waiting import HANG, wait_until

SWIFT = (sys.executable, "-m", "swift_rlvr.training.ms_swift")  # `swift`, with our patches
SWIFT_RLVR = (sys.executable, "-m", "swift_rlvr.cli")

# vLLM has torch compile two small functions at the first step of each process that samples, for up to ten
# seconds of a core. The rollout server of all tests does it as a user's does; others leave it out.
UNCOMPILED: dict[str, Any] = {"TORCHDYNAMO_DISABLE": 1}

PLUGINS = Path(__file__).parent / "plugins"
SHARE_OF_DIGITS = PLUGINS / "share_of_digits.py"

# The recipe for a CPU, smaller. Flags that follow these win.
SMALLER = """
    --reward_funcs external_countdown format external_share_of_digits --load_from_cache_file false
    --max_length 128 --max_completion_length 32 --per_device_train_batch_size 8 --num_generations 4
    --gradient_accumulation_steps 1 --learning_rate 1e-3 --lr_scheduler_type constant --report_to none
    --gradient_checkpointing false --dataset_num_proc 1 --callbacks reward_reasons
    --log_rollout_offpolicy_metrics true
"""


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


LIBC = ctypes.CDLL(None)


def end_with_the_tests() -> None:
    """In a new process: the kernel sends it SIGTERM when the process of these tests dies."""
    pr_set_pdeathsig = 1
    LIBC.prctl(pr_set_pdeathsig, signal.SIGTERM)


class Command:
    """A started command, its log, and every process that it started."""

    def __init__(
        self, program: tuple[str, ...], arguments: list[str], log: Path, **variables: object
    ):
        self.log = log
        self.mark = uuid.uuid4().hex
        env = os.environ | {"E2E_COMMAND": self.mark}
        for name, value in variables.items():
            env[name] = str(value)
        with log.open("w") as file:
            self.process = subprocess.Popen(
                [*program, *arguments],
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env=env,
                start_new_session=True,
                preexec_fn=end_with_the_tests,
            )

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def family(self) -> list[psutil.Process]:
        """Its processes that are alive. Torchrun's ranks leave the session of the command, but not
        its environment; vLLM's write their title over it, and stay children.
        """
        members: dict[int, psutil.Process] = {}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("E2E_COMMAND") == self.mark:
                    for member in (process, *process.children(recursive=True)):
                        members[member.pid] = member
        return list(members.values())

    def wait_for(self, condition, what: str) -> None:
        """Until the condition holds. Fails where the command ends before, or where it hangs."""

        def come_or_ended() -> bool:
            # Asked before the condition, which may come true as the last thing that a command does.
            has_ended = self.process.poll() is not None
            if condition():
                return True
            if has_ended:
                self.fail(f"waited for {what}; exit status {self.process.returncode}")
            return False

        try:
            wait_until(come_or_ended, what)
        except AssertionError as error:
            self.fail(str(error))

    def finish(self) -> int:
        """The exit status. Fails where a process of the command is left behind."""
        try:
            status = self.process.wait(timeout=HANG)
        except subprocess.TimeoutExpired:
            self.fail(f"still running after {HANG} s")
        # What was killed is gone a moment later, which takes longer on a busy machine.
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not self.family(), "the last of its processes", 300)
        assert not (left := self.family()), f"left behind: {left}"
        return status

    def fail(self, problem: str) -> None:
        pytest.fail(f"{problem}\n{self.text()[-4000:]}")

    def kill(self) -> None:
        """Everything of it that is alive. Python's trackers end then by themselves, and give back the
        memory that was shared.
        """
        for process in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                if "resource_tracker" not in " ".join(process.cmdline()):
                    process.kill()
        self.process.wait(timeout=HANG)


def run_to_the_end(
    program: tuple[str, ...], arguments: list[str], log: Path, **variables: object
) -> str:
    """What a command prints. Fails where its exit status is not 0."""
    command = Command(program, arguments, log, **variables)
    try:
        if command.finish() != 0:
            command.fail(f"exit status {command.process.returncode}")
    finally:
        command.kill()
    return command.text()


class RolloutServer:
    """`swift rollout` with the tiny model on free ports. Updates of its weights fail while
    `fail_updates` exists, adapters are dropped while `drop_adapters` does.
    """

    model = TINY_MODEL

    def __init__(self, folder: Path, flags: str = "", **variables: object):
        self.port = free_port()
        self.sync_port = free_port()
        self.fail_updates = folder / "fail_updates"
        self.drop_adapters = folder / "drop_adapters"
        # 1024 tokens: as the recipes for GSM8K and R1-Zero ask for.
        arguments = words(f"""
            rollout scripts/configs/rollout_cpu.yaml --model {self.model} --port {self.port}
            --vllm_max_model_len 1024 --log_level warning
            --external_plugins {PLUGINS / "server_faults.py"} {flags}
        """)
        log = folder / "server.log"
        variables = {"E2E_FAIL_UPDATES": self.fail_updates, **variables}
        self.command = Command(SWIFT, arguments, log, **variables)
        try:
            self.command.wait_for(self.is_healthy, "the rollout server")
        except BaseException:
            self.command.kill()
            raise

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def is_healthy(self) -> bool:
        try:
            return requests.get(f"{self.url}/health/", timeout=60).ok
        except requests.RequestException:
            return False

    def stop(self) -> None:
        """Ends the server. Fails where it leaves a process or a port behind."""
        try:
            if self.command.process.poll() is None:
                self.command.process.terminate()
            self.command.finish()
            assert not is_listening(self.port) and not is_listening(self.sync_port)
        finally:
            self.command.kill()


@dataclass(frozen=True)
class Training:
    """A training that has come to its end: its folder, and what its command printed, on each of two
    nodes where there were two.
    """

    output: Path
    text: str
    text_of_second_node: str = ""

    def rows(self) -> list[dict[str, Any]]:
        """The lines of its log."""
        return [row for _, row in read_jsonl(self.output / "logging.jsonl")]

    def steps(self) -> list[dict[str, Any]]:
        """The lines of its steps."""
        return [row for row in self.rows() if "reward" in row]

    def evaluations(self) -> dict[int, dict[str, Any]]:
        """The lines of held-out evaluations, by step."""
        return {step_of(row): row for row in self.rows() if "eval/success" in row}

    def records(self, mode: str = "train") -> list[Record]:
        records = read_records(self.output / "records.jsonl")
        return [record for record in records if record.mode == mode]

    def tables(self) -> dict[int, dict[str, Any]]:
        """What ms-swift writes about the completions of each step, by step. An evaluation's table
        has the step of the one before it, and comes after that.
        """
        tables: dict[int, dict] = {}
        for _, table in read_jsonl(self.output / "completions.jsonl"):
            tables.setdefault(int(table["step"][0]), table)
        return tables


def step_of(row: dict[str, Any]) -> int:
    """
    >>> step_of({"global_step/max_steps": "3/6"})
    3
    """
    return int(row["global_step/max_steps"].partition("/")[0])


def train_on(server: RolloutServer, folder: Path, *flags: object, **variables: object) -> Training:
    """`swift rlhf` on a running server with two ZeRO-3 ranks and the recipe for a CPU, smaller."""
    arguments = words(f"""
        rlhf scripts/configs/countdown_cpu.yaml --model {server.model}
        --vllm_server_port {server.port} --vllm_server_group_port {server.sync_port}
        --external_plugins plugin/rlvr_plugin.py {SHARE_OF_DIGITS}
        --save_strategy no --output_dir {folder}/output --add_version false
    """)
    variables = {"NPROC_PER_NODE": 2, **variables}
    arguments = [*arguments, *SMALLER.split(), *map(str, flags)]
    text = run_to_the_end(SWIFT, arguments, folder / "train.log", **variables)
    return Training(folder / "output", text)


def send(client, named_tensors: Iterable, batches: int = 1) -> None:
    """One full update, in the steps and with the functions of ms-swift's trainer; in several batches
    as with ``--move_model_batches``.
    """
    from swift.rlhf_trainers.utils import FlattenedTensorBucket

    named_tensors = [(name, tensor.data) for name, tensor in named_tensors]
    for batch in range(batches):
        bucket = FlattenedTensorBucket(named_tensors=named_tensors[batch::batches])
        client.update_flattened_params(bucket.get_metadata(), bucket.get_flattened_tensor())
    client.process_weights_after_loading()
    client.reset_prefix_cache()


class Launcher:
    """`swift-rlvr train` with the recipe for a CPU, smaller: one folder for all starts of a run.

    Each start has its own rollout server unless `use` names one that runs. The files hold, drop and
    full in `faults` are described in plugins/trainer_faults.py.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.output = folder / "output"
        self.faults = folder
        self.port = free_port()
        self.sync_port = free_port()
        self.variables: dict[str, object] = {}
        # Of all starts: vLLM's sockets have too long a path in a test's own folder.
        self.temporary = Path(tempfile.mkdtemp())
        self.commands: list[Command] = []

    def use(self, server: RolloutServer) -> None:
        """From now on trainings sample on a server that runs already."""
        self.port = server.port
        self.sync_port = server.sync_port
        self.variables = {"START_SERVER": 0}

    def start(self, *flags: object, **variables: object) -> Command:
        arguments = words(f"""
            train scripts/configs/countdown_cpu.yaml --output_dir {self.output}
            --vllm_server_port {self.port} --vllm_server_group_port {self.sync_port}
            --external_plugins plugin/rlvr_plugin.py {SHARE_OF_DIGITS} {PLUGINS / "trainer_faults.py"}
            --save_steps 2 --save_total_limit 3 --max_steps 500
        """)
        variables = {
            "MASTER_PORT": free_port(),
            "E2E_FAULTS": self.faults,
            "TMPDIR": self.temporary,
            **UNCOMPILED,
            **self.variables,
            **variables,
        }
        log = self.folder / f"start-{len(self.commands)}.log"
        arguments = [*arguments, *SMALLER.split(), *map(str, flags)]
        command = Command(SWIFT_RLVR, arguments, log, **variables)
        self.commands.append(command)
        return command

    def kill(self) -> None:
        for command in self.commands:
            command.kill()

    def logged(self) -> list[int]:
        """The steps in the run's log, in its order."""
        path = self.output / "logging.jsonl"
        text = path.read_text() if path.exists() else ""
        steps = []
        for line in text.splitlines(keepends=True):
            if not line.endswith("\n"):  # it is being written
                continue
            row = json.loads(line)
            if "reward" in row:
                steps.append(step_of(row))
        return steps

    def step(self) -> int:
        """The last step in the run's log."""
        steps = self.logged()
        return steps[-1] if steps else 0

    def wait_for_step(self, command: Command, step: int) -> None:
        command.wait_for(lambda: self.step() >= step, f"step {step}")

    def wait_in_sync(self, command: Command) -> None:
        """Until the trainer stands in the middle of an update of the weights, where it is held."""
        (self.faults / "hold").touch()
        command.wait_for((self.faults / "holding").exists, "an update of the weights")

    def release(self) -> None:
        (self.faults / "hold").unlink()
        (self.faults / "holding").unlink()

    def ends(self, command: Command, fault: str, status: int, message: str) -> None:
        """After a fault that was made just now a run says so, ends with this status, and leaves no
        process, no port and no temporary file of its own. Prints the seconds that both took, for
        docs/launch/faults.md.
        """
        start = time.monotonic()
        command.wait_for(lambda: message in command.text(), f"the message {message!r}")
        said_after = time.monotonic() - start
        assert command.finish() == status, command.text()[-4000:]
        ended_after = time.monotonic() - start
        print(f"{fault}: says so after {said_after:.1f} s, has ended after {ended_after:.1f} s")
        if "START_SERVER" not in self.variables:
            assert not is_listening(self.port) and not is_listening(self.sync_port)
        assert not any(self.temporary.iterdir())

    def refused(self, command: Command, fault: str, message: str) -> None:
        """A launch ends with status 2 and names the cause."""
        start = time.monotonic()
        assert command.finish() == 2, command.text()
        print(f"{fault}: refused after {time.monotonic() - start:.1f} s")
        assert message in " ".join(command.text().split()), command.text()
        assert "failed" in command.text(), command.text()

    def members(self, command: Command, program: str) -> list[psutil.Process]:
        """The processes of the run's `trainer` or `server`."""
        members = []
        for process in command.family():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("SWIFT_RLVR_RUN", "").endswith(program):
                    members.append(process)
        return members


def interrupt(command: Command) -> None:
    command.process.send_signal(signal.SIGINT)


def kill_all(processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
