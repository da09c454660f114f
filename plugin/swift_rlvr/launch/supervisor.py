"""Starts a plan's programs, watches them, shows one line a step, and ends loudly when something
goes wrong.

    status = supervise(plan, Console())

What ms-swift, vLLM and DeepSpeed print goes to server.log and trainer.log in the run's folder.
Whatever ends a run, none of its processes is left and none of its ports is taken. Every process of
a run has MARK in its environment; torchrun's ranks leave the process group, so that a signal to the
group would not reach them.
"""

import fcntl
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from swift_rlvr.launch.plan import Plan, Process, Variables
from swift_rlvr.launch.progress import Display, Tail, exception, last_lines, say
from swift_rlvr.runs.folder import ALARMS, BEST, LOG, checkpoints, missing, whole_checkpoints
from swift_rlvr.runs.log import cut_logs, line
from swift_rlvr.training.ms_swift import SUPERVISOR
from swift_rlvr.training.recipes import VARIABLES
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import LineError, parse_object, read_jsonl
from swift_rlvr.utils.network import refusal_of_server, why_not_free
from swift_rlvr.utils.settings import PREFIX

MARK = "SWIFT_RLVR_RUN"
SCRIPT = "SWIFT_RLVR_SCRIPT"  # the script that started this process, for the command that resumes

# rollout_correction/k3_kl is the mean over tokens of r - log(r) - 1, r the ratio of the trainer's
# probability of a sampled token to the server's. With equal weights it shows rounding: below 1e-8
# in float32 on a CPU (measured), 0.001 to 0.015 in bfloat16 elsewhere, and more with FP8, experts
# or asynchronous sampling. Without updates it drifts away.
K3_KL, K3_LIMIT, K3_GROWTH = (
    "rollout_correction/k3_kl",
    0.05,
    10,
)  # the limit, or so many times the median of the first
K3_FIRST, K3_WARNING, K3_STEPS = 3, 3, 6  # logged steps: the first, and in a row above the limit

GRACE = 6  # seconds that a program has to end before it is killed


@dataclass(frozen=True)
class End:
    """How a run ended. log, start: which log says why, from which byte. of_server: a server that
    was ready ended.

    first_error: the log says it in its first error from there on, not in the last.
    """

    status: int
    cause: str = ""
    log: Path | None = None
    start: int = 0
    first_error: bool = False
    of_server: bool = False


def supervise(plan: Plan, console: Console) -> int:
    """Run a plan to its end.

    Returns:
        The exit status: 0, 1 for any failure, 3 where training diverged, 130 and 143 for Ctrl-C and
        SIGTERM.

    Raises:
        InputError: another run writes into the same folder.
    """
    plan.trainer.log.parent.mkdir(parents=True, exist_ok=True)
    with plan.trainer.log.open("ab") as log:
        # held by whoever has the file open from here: this process, and the trainer's if this one
        # is killed
        try:
            if plan.variables.node_rank == 0:
                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{plan.output}: another run is writing there", "output_dir") from None
        except OSError:
            pass  # the file system has no locks, of which the doctor warns
        if plan.resume and plan.variables.node_rank == 0:
            _go_back(plan.output, plan.resume, console)
        with _signals() as received:
            for restarts in range(plan.variables.restarts + 1):
                if restarts:
                    text = f"the rollout server is gone: restart {restarts} of {plan.variables.restarts}"
                    say(console, text, "yellow")
                    plan = _from_last_checkpoint(plan, console)
                end = _Run(plan, console, received).to_its_end(log)
                if not end.of_server or received:
                    break
            return _report(end, plan, console)


class _Run:
    """One start of the programs. step: the last one that was logged."""

    def __init__(self, plan: Plan, console: Console, received: list[int]):
        self.plan, self.received, self.display = plan, received, Display(console)
        self.id = uuid.uuid4().hex
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.tails: dict[str, Tail] = {}
        self.steps, self.step = Tail(plan.output / LOG), 0
        self.alarms = Tail(plan.output / ALARMS)
        self.ready, self.high_kl = False, 0
        # Of the whole run, where this one goes on from a checkpoint; another node may be writing
        # the last line.
        rows = (
            read_jsonl(plan.output / LOG, unfinished=str)
            if (plan.output / LOG).is_file()
            else iter(())
        )
        self.first_kl = list(
            islice((row[K3_KL] for _, row in rows if row.get(K3_KL) is not None), K3_FIRST)
        )
        self.failure: End | None = None
        self.failed_rank = ""  # which one torchrun says has failed, and how
        self.workers: set[int] = set()  # the server's processes when it was ready
        self.started = time.monotonic()

    def to_its_end(self, trainer_log: Any) -> End:
        try:
            end = self._watch(trainer_log)
            if end.status:
                self.display.print(f"Error: {end.cause}", "red")
            return end
        finally:
            self._stop()
            self.display.close()

    def _watch(self, trainer_log: Any) -> End:
        """Start the programs, each as soon as it can work, and wait for the first that ends."""
        plan = self.plan
        # A model of the hub is downloaded by the server first, and not by both at once.
        alone = plan.server is not None and not Path(str(plan.settings.get("model", ""))).is_dir()
        while True:
            if self.received:
                name = signal.Signals(self.received[0]).name
                return End(128 + self.received[0], f"stopped by {name}{self._when()}")
            if plan.server and not self.ready and (end := self._await_server(plan.server)):
                return end
            if "trainer" not in self.children and (self.ready or not alone):
                self._start(plan.trainer, trainer_log)
            self._read()
            if end := self.failure or self._ended():
                return end
            if not self.step:
                starting = plan.server is not None and not self.ready
                self.display.waiting(
                    "starting the rollout server" if starting else "waiting for the first step"
                )
            time.sleep(0.1)

    def _await_server(self, server: Process) -> End | None:
        """Start the server, and note when it is ready; an end where that takes too long."""
        waited = time.monotonic() - self.started
        if "server" not in self.children:
            with server.log.open("ab") as log:
                self._start(server, log)
        elif refusal_of_server(self.plan.hosts[0], self.plan.ports[0]) is None:
            self.ready, self.workers = True, set(members(f"{self.id}/server"))
        if self.ready or waited <= self.plan.variables.server_timeout:
            return None
        return self._end(
            "server", f"the rollout server is not ready after {waited:.0f} s (SERVER_TIMEOUT)"
        )

    def _start(self, process: Process, log: Any) -> None:
        self.tails[process.name] = Tail(process.log)
        env = {**os.environ, **_without_proxy(os.environ, self.plan.hosts), **process.env}
        env |= {
            "PYTHONUNBUFFERED": "1",
            SUPERVISOR: str(os.getpid()),
            MARK: f"{self.id}/{process.name}",
        }
        self.children[process.name] = subprocess.Popen(
            process.argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=True,
        )

    def _read(self) -> None:
        """What the programs have written since the last time."""
        for name, tail in self.tails.items():
            for text in tail.lines():
                if self.plan.variables.verbose and text.strip():
                    self.display.print(f"[{name}] {text}")
                if name == "server" and (
                    failed := re.search(r"Method execution failed: (\w+)", text)
                ):
                    cause = f"the rollout server failed in `{failed[1]}`"
                    if failed[1] == "collective_rpc":
                        cause += ", most likely an update of the weights; it would go on sampling from old ones"
                    start = tail.path.read_bytes().index(failed[0].encode(), tail.start)
                    end = replace(self._end("server", cause), start=start, first_error=True)
                    self.failure = self.failure or end
                if name == "trainer" and (
                    failed := re.search(r"failed \(exitcode: (-?\d+)\) local_rank: (\d+)", text)
                ):
                    self.failed_rank = f"rank {failed[2]} of the trainer {in_words(int(failed[1]))}"
        for text in self.steps.lines():
            with suppress(LineError):
                self._log(parse_object(text))
        for text in self.alarms.lines():
            with suppress(LineError):
                self.display.print(f"Warning: {parse_object(text).get('message')}", "yellow")

    def _log(self, row: Mapping[str, Any]) -> None:
        """Show a line of the trainer's log, and stop where it shows that the server has other
        weights.
        """
        if "global_step/max_steps" not in row or "train_runtime" in row:
            return
        self.step, last = map(int, row["global_step/max_steps"].split("/"))
        self.display.print(line(row), highlight=True)
        self.display.show(f"step {min(self.step + 1, last)} of {last}")
        if (kl := row.get(K3_KL)) is None:
            return
        limit = K3_LIMIT
        if len(self.first_kl) < K3_FIRST:
            self.first_kl.append(kl)
        else:
            limit = max(limit, K3_GROWTH * median(self.first_kl))
        self.high_kl, start = self.high_kl + 1 if kl > limit else 0, median(self.first_kl)
        text = f"{K3_KL} is {kl:.2g}, after {start:.2g} in the first steps{self._when()}"
        if self.high_kl == K3_WARNING:
            self.display.print(
                f"Warning: {text}: does the rollout server get every update of the weights?",
                "yellow",
            )
        elif self.high_kl == K3_STEPS:
            cause = "the rollout server samples with other weights than the trainer's, an update must have been lost"
            self.failure = self.failure or End(1, f"{cause}: {text}")

    def _ended(self) -> End | None:
        server, trainer = self.children.get("server"), self.children.get("trainer")
        if trainer and trainer.poll() == 0:
            self._read()
            return self.failure or End(0)
        has_failed = trainer is not None and (trainer.poll() is not None or self.failed_rank)
        if not has_failed and (server is None or server.poll() is None):
            return None
        if (
            server and server.poll() is None
        ):  # killed, it can take the trainer with it before it is gone itself
            with suppress(subprocess.TimeoutExpired):
                server.wait(0.5)
        self._read()
        if self.failure:
            return self.failure
        if server and server.poll() is not None:
            end = self._end("server", f"the rollout server {in_words(server.returncode)}")
            return replace(end, of_server=self.ready)
        assert trainer is not None
        cause = self.failed_rank or f"the trainer {in_words(trainer.returncode)}"
        if not self.workers <= set(members(f"{self.id}/server")):
            return replace(
                self._end("server", f"a worker of the rollout server is gone, and {cause}"),
                of_server=True,
            )
        return self._end("trainer", cause)

    def _end(self, name: str, cause: str) -> End:
        return End(1, cause + self._when(), self.tails[name].path, self.tails[name].start)

    def _when(self) -> str:
        return f", after step {self.step}" if self.step else ", before the first step"

    def _stop(self) -> None:
        """End all processes, the trainer first: its connections hang up, and the server's port is
        free at once.
        """
        for name in ("trainer", "server"):
            child = self.children.get(name)
            if child is None:
                continue
            self.display.waiting(f"stopping the {name}")
            _send(
                signal.SIGTERM,
                [child.pid] if child.poll() is None else members(f"{self.id}/{name}"),
            )
            end = time.monotonic() + GRACE
            while left := members(f"{self.id}/{name}"):
                now = time.monotonic()
                if now > end or len(self.received) > 1:
                    _send(signal.SIGKILL, left)
                if now > end + GRACE:
                    self.display.print(
                        f"cannot be killed, and left behind: {', '.join(map(str, left))}", "red"
                    )
                    break
                child.poll()
                time.sleep(0.1)
            child.poll()


def _send(number: int, processes: Sequence[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def members(mark: str) -> list[int]:
    """The ids of the processes that are alive and have this MARK in their environment."""
    alive, entry = [], f"{MARK}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is not ours
            if entry in (folder / "environ").read_bytes().split(b"\0"):
                alive.append(int(folder.name))
    return alive


def in_words(status: int) -> str:
    """What a process's exit status says, a negative one being a signal."""
    if status >= 0:
        return f"ended with exit status {status}"
    hint = ", which the system also sends when memory runs out" if status == -signal.SIGKILL else ""
    return f"was killed by {signal.Signals(-status).name}{hint}"


def _report(end: End, plan: Plan, console: Console) -> int:
    """Say how the run ended, and how it goes on."""
    kept, whole = checkpoints(plan.output), whole_checkpoints(plan.output)
    if end.status == 0:
        say(
            console,
            f"trained; the last checkpoint is {kept[-1]}"
            if kept
            else "trained; no checkpoint was asked for",
        )
        if (best := plan.output / BEST).exists():
            say(console, f"the best checkpoint by held-out success is {best.resolve()}")
        return 0
    lines = last_lines(end.log, end.start, first_error=end.first_error) if end.log else []
    error = exception(lines)
    status = 3 if error and "DivergedError" in error else end.status
    if error:
        say(console, error, "red")
    if lines:
        say(console, f"The end of {end.log}:")
        for text in lines:
            say(console, f"  {text}", "dim")
    # A process that was killed closes its sockets a moment after it is gone from /proc.
    until, ports = time.monotonic() + 5, (*plan.ports, *plan.sync_ports) if plan.server else ()
    while any(map(why_not_free, ports)) and time.monotonic() < until:
        time.sleep(0.1)
    for path in reversed(kept):
        if path in whole:
            break
        say(console, f"{path} is skipped: it lacks {missing(path)}")
    if status == 3:
        say(
            console,
            f"the last checkpoint is {whole[-1]}"
            if whole
            else "there is no checkpoint to go on from",
        )
    elif whole:
        say(console, f"Go on from {whole[-1]} with:\n  {command_to_resume(sys.argv, os.environ)}")
    else:
        say(
            console,
            "There is no checkpoint to go on from; start again in another folder, or move this one away.",
        )
    return status


def command_to_resume(argv: Sequence[str], environ: Mapping[str, str]) -> str:
    """The command of this process with its variables, as it goes on from the last checkpoint.

    >>> command_to_resume(["/bin/swift-rlvr", "train", "countdown", "--beta", "0.04"], {"OUTPUT": "my run"})
    "OUTPUT='my run' RESUME=1 swift-rlvr train countdown --beta 0.04"
    >>> command_to_resume(["/bin/swift-rlvr", "train", "countdown"], {"SWIFT_RLVR_SCRIPT": "bash scripts/x.sh"})
    'RESUME=1 bash scripts/x.sh'
    """
    own = {
        *VARIABLES,
        "CUDA_VISIBLE_DEVICES",
        *(each.name.upper() for each in fields(Variables)),
    } - {"RESUME"}
    names = [name for name in environ if name in own or name.startswith(("EXTERNAL_", PREFIX))]
    variables = [
        f"{name}={shlex.quote(environ[name])}" for name in names if name not in (SCRIPT, SUPERVISOR)
    ]
    command, words = (
        (environ[SCRIPT], argv[3:]) if SCRIPT in environ else (Path(argv[0]).name, argv[1:])
    )
    return " ".join([*variables, "RESUME=1", command, *map(shlex.quote, words)])


def _go_back(folder: Path, checkpoint: Path | None, console: Console) -> None:
    """Take what came after a checkpoint out of the logs, and say so."""
    step = int(checkpoint.name.rpartition("-")[2]) if checkpoint else 0
    lost = cut_logs(folder, step)
    repeated = f"; steps {step + 1} to {lost} are made again" if lost else ""
    say(console, f"going on from {checkpoint or 'the beginning'}{repeated}")


def _from_last_checkpoint(plan: Plan, console: Console) -> Plan:
    """A trainer cannot connect to a new server: it starts again too."""
    checkpoint = next(reversed(whole_checkpoints(plan.output)), None)
    _go_back(plan.output, checkpoint, console)
    if checkpoint is None:
        return plan
    argv = (*plan.trainer.argv, "--resume_from_checkpoint", str(checkpoint))
    return replace(plan, trainer=replace(plan.trainer, argv=argv), resume=checkpoint)


def _without_proxy(environ: Mapping[str, str], hosts: Sequence[str]) -> dict[str, str]:
    """no_proxy for requests between the programs: through a proxy they would not arrive."""
    before = [
        name for key in ("no_proxy", "NO_PROXY") for name in environ.get(key, "").split(",") if name
    ]
    value = ",".join(dict.fromkeys([*before, "127.0.0.1", "localhost", *hosts]))
    return {"no_proxy": value, "NO_PROXY": value}


@contextmanager
def _signals() -> Iterator[list[int]]:
    """The signals to end that arrive inside the block, in order."""
    received: list[int] = []
    names = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {
        name: signal.signal(name, lambda number, frame: received.append(number)) for name in names
    }
    try:
        yield received
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
