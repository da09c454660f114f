"""Starts a plan's programs, watches them, shows one line a step, and ends loudly when something
goes wrong.

    status = supervise(plan, Console())

What ms-swift, vLLM and DeepSpeed print goes to server.log and trainer.log in the run's folder.
Whatever ends a run, none of its processes is left, none of its ports is taken and none of its
temporary files stays.
"""

import fcntl
import os
import re
import signal
import subprocess
import time
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

from rich.console import Console

from swift_rlvr.launch.plan import Plan, Process
from swift_rlvr.launch.processes import MARK, held_up, members, signals_to_end, status_text, stop
from swift_rlvr.launch.progress import Display, Tail, say
from swift_rlvr.launch.report import End, report
from swift_rlvr.launch.steps import Steps
from swift_rlvr.runs.folder import ALARMS, LOG, whole_checkpoints
from swift_rlvr.runs.log import STILL_GRADING, cut_logs
from swift_rlvr.training.ms_swift import SUPERVISOR
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import LineError, parse_object
from swift_rlvr.utils.network import refusal_of_server, why_not_free
from swift_rlvr.utils.temporary import temporary_folder, variables_of

# Seconds for which ports may stay taken after their program is gone: it closes its sockets last.
PORTS_CLOSE = 5

# [ERROR:swift] Method execution failed: collective_rpc
_SERVER_FAILED = re.compile(r"Method execution failed: (\w+)")
# rank 1 still grades with external_judge after 60 s: ...
_STILL_GRADING = re.compile(rf"(rank \d+|the trainer) {STILL_GRADING} .*")
# failed (exitcode: -9) local_rank: 1 (pid: 4711)
_RANK_FAILED = re.compile(r"failed \(exitcode: (-?\d+)\) local_rank: (\d+)")


def supervise(plan: Plan, console: Console) -> int:
    """Run a plan to its end.

    Returns:
        The exit status: 0, 1 for any failure, 3 where training diverged, 130 and 143 for Ctrl-C and
        SIGTERM.

    Raises:
        InputError: another run writes into the same folder, or no temporary file can be written.
    """
    plan.trainer.log.parent.mkdir(parents=True, exist_ok=True)
    with plan.trainer.log.open("ab") as log:
        is_first_node = plan.variables.node_rank == 0
        if is_first_node:
            _lock(log, plan)
        # With RESUME=auto there may be steps of an attempt that ended before its first checkpoint.
        begins_anew = plan.variables.resume == "auto" and (plan.output / LOG).is_file()
        if is_first_node and (plan.resume or begins_anew):
            _go_back(plan.output, plan.resume, console)
        with signals_to_end() as received, temporary_folder() as temporary:
            end = _Run(plan, console, received, temporary).to_its_end(log)
            for restart in range(1, plan.variables.restarts + 1):
                if not end.of_server or received:
                    break
                text = f"the rollout server is gone: restart {restart} of {plan.variables.restarts}"
                say(console, text, "yellow")
                # A trainer cannot connect to a new server: it starts again too.
                checkpoint = next(reversed(whole_checkpoints(plan.output)), None)
                _go_back(plan.output, checkpoint, console)
                if checkpoint is not None:
                    argv = (*plan.trainer.argv, "--resume_from_checkpoint", str(checkpoint))
                    trainer = replace(plan.trainer, argv=argv)
                    plan = replace(plan, trainer=trainer, resume=checkpoint)
                end = _Run(plan, console, received, temporary).to_its_end(log)
            return report(end, plan, console)


def refuse_second_run(plan: Plan) -> None:
    """Raise InputError if another run is writing into a plan's folder."""
    if plan.variables.node_rank == 0 and plan.trainer.log.is_file():
        with plan.trainer.log.open("r+b") as log:  # closed again, it is free again
            _lock(log, plan)


def _lock(log: IO[bytes], plan: Plan) -> None:
    """Lock the run's folder.

    The lock is held by whoever has the file open from here: this process, and the trainer's if this
    one is killed.
    """
    try:
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(f"{plan.output}: another run is writing to it", "output_dir") from None
    except OSError:
        pass  # the file system has no locks: Lustre without -o flock, some NFS


class _Run:
    """One start of the programs."""

    def __init__(self, plan: Plan, console: Console, received: list[int], temporary: Path):
        self.plan = plan
        self.received = received
        self.temporary = temporary
        self.display = Display(console)
        self.id = uuid.uuid4().hex
        self.started = time.monotonic()
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.tails: dict[str, Tail] = {}
        self.steps = Steps(plan.output / LOG, self.display)
        self.alarms = Tail(plan.output / ALARMS)
        self.ready = False
        self.workers: set[int] = set()  # the server's processes when it was ready
        self.failure: End | None = None
        self.failed_rank = ""  # which one torchrun says has failed, and how

    def to_its_end(self, trainer_log: IO[bytes]) -> End:
        """Start the programs, wait for the first that ends, and end the others."""
        try:
            end = self._watch(trainer_log)
            if end.status:
                self.display.print(f"Error: {end.cause}", "red")
            return end
        finally:
            # The trainer first: its connections hang up.
            for name in ("trainer", "server"):
                if name not in self.children:
                    continue
                self.display.waiting(f"stopping the {name}")
                # A second Ctrl-C is impatient.
                left = stop(
                    self.children[name], f"{self.id}/{name}", lambda: len(self.received) > 1
                )
                if left:
                    ids = ", ".join(map(str, left))
                    self.display.print(f"could not be killed and are still running: {ids}", "red")
            # The server's ports are free a moment after it is gone from /proc.
            if "server" in self.children:
                until = time.monotonic() + PORTS_CLOSE
                ports = []
                for server in self.plan.servers:
                    ports += [server.port, server.sync_port]
                while any(map(why_not_free, ports)) and time.monotonic() < until:
                    time.sleep(0.1)
            self.display.close()

    def _watch(self, trainer_log: IO[bytes]) -> End:
        """Start the programs, each as soon as it can work, and wait for the first that ends."""
        plan = self.plan
        # A model of the hub is downloaded by the server first, and not by both at once.
        model = Path(str(plan.settings.get("model", "")))
        waits_for_server = plan.server is not None and not model.is_dir()
        while True:
            if self.received:
                name = signal.Signals(self.received[0]).name
                return End(128 + self.received[0], f"stopped by {name}{self.steps.when()}")
            if end := self._await_server():
                return end
            if "trainer" not in self.children and (self.ready or not waits_for_server):
                self._start(plan.trainer, trainer_log)
            self._read()
            if end := self._ended():
                return end
            if plan.server and not self.ready:
                self.display.waiting("starting the rollout server")
            elif not self.steps.step:
                self.display.waiting("waiting for the first step")
            self._watch_for_quiet()
            time.sleep(0.1)

    # Starting.

    def _await_server(self) -> End | None:
        """Start the server, if the run has one, and note when it is ready. Returns an end if that takes
        too long.
        """
        server = self.plan.server
        if server is None or self.ready:
            return None
        if "server" not in self.children:
            with server.log.open("ab") as log:
                self._start(server, log)
        elif refusal_of_server(self.plan.servers[0].host, self.plan.servers[0].port) is None:
            self.ready = True
            self.workers = set(members(f"{self.id}/server"))
        waited = time.monotonic() - self.started
        if self.ready or waited <= self.plan.variables.server_timeout:
            return None
        cause = f"the rollout server is not ready after {waited:.0f} s (SERVER_TIMEOUT)"
        return self._end("server", cause)

    def _start(self, process: Process, log: IO[bytes]) -> None:
        self.tails[process.name] = Tail(process.log)
        # Through a proxy the requests between the programs would not arrive.
        direct: list[str] = []
        for variable in ("no_proxy", "NO_PROXY"):
            direct += filter(None, os.environ.get(variable, "").split(","))
        direct += ["127.0.0.1", "localhost", *(server.host for server in self.plan.servers)]
        no_proxy = ",".join(dict.fromkeys(direct))
        env = {**os.environ, "no_proxy": no_proxy, "NO_PROXY": no_proxy}
        env |= variables_of(self.temporary, os.environ)
        env |= process.env
        env["PYTHONUNBUFFERED"] = "1"
        env[SUPERVISOR] = str(os.getpid())
        env[MARK] = f"{self.id}/{process.name}"
        self.children[process.name] = subprocess.Popen(
            process.argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=True,
        )

    # Reading.

    def _read(self) -> None:
        """What the programs have written since the last time."""
        for name, tail in self.tails.items():
            for text in tail.lines():
                if self.plan.variables.verbose and text.strip():
                    self.display.print(f"[{name}] {text}")
                if name == "server":
                    self.failure = self.failure or self._failed_call(text, tail)
                elif match := _RANK_FAILED.search(text):
                    how = status_text(int(match[1]))
                    self.failed_rank = f"rank {match[2]} of the trainer {how}"
                elif match := _STILL_GRADING.search(text):
                    self.display.print(f"Warning: {match[0]}", "yellow")
        if cause := self.steps.read():
            self.failure = self.failure or End(1, cause)
        for text in self.alarms.lines():
            with suppress(LineError):
                self.display.print(f"Warning: {parse_object(text).get('message')}", "yellow")

    def _failed_call(self, text: str, tail: Tail) -> End | None:
        """The end of a run whose server has failed in a call: it answers 200 to that, and only logs it."""
        match = _SERVER_FAILED.search(text)
        if match is None:
            return None
        cause = f"the rollout server failed in `{match[1]}`"
        if match[1] == "collective_rpc":
            cause += ", most likely during a weight update; it would keep sampling from old weights"
        start = tail.path.read_bytes().index(match[0].encode(), tail.start)
        return replace(self._end("server", cause), start=start, first_error=True)

    def _watch_for_quiet(self) -> None:
        """Say who does not answer if there has been no step for long."""
        seconds = self.steps.quiet()
        if not seconds:
            return
        found = []
        for server in self.plan.servers:
            refusal = refusal_of_server(server.host, server.port)
            if refusal is not None:
                found.append(f"the rollout server does not answer at {server} ({refusal})")
        processes = {name: members(f"{self.id}/{name}") for name in self.children}
        for name, ids in processes.items():
            for process in ids:
                if text := held_up(name, process):
                    found.append(text)
        if not found:
            answers = "the server answers, and nothing" if "server" in self.children else "nothing"
            listed = [f"{name} {', '.join(map(str, ids))}" for name, ids in processes.items()]
            hint = "`py-spy dump --pid N` shows what a process waits for"
            found = [f"{answers} is stopped", f"{hint}: {', '.join(listed)}"]
        text = f"no step for {seconds:.0f} s{self.steps.when()}"
        self.display.print(f"Warning: {text}: {'; '.join(found)}", "yellow")

    # Ending.

    def _status(self, name: str) -> int | None:
        """The exit status of a program; None if it runs, or was not started."""
        child = self.children.get(name)
        return None if child is None else child.poll()

    def _ended(self) -> End | None:
        """Returns how the run has ended, if one of its programs has, or a log says that it must."""
        if self.failure:
            return self.failure
        if self._status("trainer") == 0:
            self._read()
            return self.failure or End(0)
        trainer_failed = self._status("trainer") is not None or self.failed_rank
        server_runs = "server" in self.children and self._status("server") is None
        if server_runs and trainer_failed:
            # Killed, it can take the trainer with it before it is gone itself.
            with suppress(subprocess.TimeoutExpired):
                self.children["server"].wait(0.5)
        if not trainer_failed and self._status("server") is None:
            return None
        self._read()
        return self.failure or self._failed()

    def _failed(self) -> End:
        """Which program has failed first, and how: the server where both have."""
        server = self._status("server")
        if server is not None:
            end = self._end("server", f"the rollout server {status_text(server)}")
            return replace(end, of_server=self.ready)
        how = self.failed_rank
        if not how:
            how = f"the trainer {status_text(self.children['trainer'].returncode)}"
        if not self.workers <= set(members(f"{self.id}/server")):
            end = self._end("server", f"a worker of the rollout server is gone, and {how}")
            return replace(end, of_server=True)
        return self._end("trainer", how)

    def _end(self, name: str, cause: str) -> End:
        tail = self.tails[name]
        return End(1, cause + self.steps.when(), tail.path, tail.start)


def _go_back(folder: Path, checkpoint: Path | None, console: Console) -> None:
    """Take what came after a checkpoint out of the logs, and say so."""
    step = int(checkpoint.name.rpartition("-")[2]) if checkpoint else 0
    # An evaluation before the first step is made again too.
    lost = cut_logs(folder, step or -1)
    repeated = f"; steps {step + 1} to {lost} are repeated" if lost else ""
    say(console, f"resuming from {checkpoint or 'the beginning'}{repeated}")
