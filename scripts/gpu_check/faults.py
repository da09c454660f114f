"""A worker that is killed, and a launcher that is asked to end: what is left of them."""

import signal
import time
from collections.abc import Callable, Sequence

import psutil

from gpu_check import names
from gpu_check.notes import cause, has_step
from gpu_check.programs import GIB, RELEASE, Command, Memory, Program, left_behind, used_by_gpu
from gpu_check.steps import Check, Measured, Step
from swift_rlvr.launch.processes import MARK as RUN_MARK

# The longest that a run may take to end after a fault.
ENDS_WITHIN = 60


def endless(name: str):
    """The command of a training that only a fault ends."""

    def commands(check: Check) -> list[Command]:
        return [check.tiny(name, *names.NO_CHECKPOINT, "--max_steps", "500")]

    return commands


def kill_worker(program: Program) -> str:
    """SIGKILL for the process that samples; in colocate mode that is a rank of the trainer."""
    processes = members(program, "server") or members(program, "trainer")
    # Below the one that the launcher has started, the largest: the others track resources or compile.
    below = [process for process in processes if process.ppid() != program.process.pid]
    victim = max(below or processes, key=lambda process: process.memory_info().rss)
    name = " ".join(victim.cmdline()[:3])[:60]
    victim.kill()
    return f"killed process {victim.pid} ({name})"


def terminate(program: Program) -> str:
    program.process.send_signal(signal.SIGTERM)
    return "SIGTERM for the launcher"


def members(program: Program, name: str) -> list[psutil.Process]:
    """The processes of a run's server or trainer."""
    found = []
    for process in program.family():
        try:
            if process.environ().get(RUN_MARK, "").endswith(name):
                found.append(process)
        except psutil.Error:
            continue
    return found


def measure_fault(fault: Callable[[Program], str], statuses: Sequence[int]):
    def measure(check: Check, commands: Sequence[Command]) -> Measured:
        (command,) = commands
        memory = Memory(check.gpus)
        program = Program(command, command.folder / "log", check.until)
        try:
            program.wait_for(lambda: has_step(command, 1), "the first step")
            held = used_by_gpu(check.gpus)
            victim = fault(program)
            start = time.monotonic()
            while program.process.poll() is None and time.monotonic() < start + ENDS_WITHIN:
                time.sleep(0.1)
            seconds, status = time.monotonic() - start, program.process.poll()
            ports = [int(command.env["PORT"]), int(command.env["SYNC_PORT"])]
            left = left_behind(program, ports, memory) if status is not None else ["the launcher"]
        finally:
            program.stop()
        freed = sum(held[gpu] - memory.before[gpu] for gpu in check.gpus) / GIB
        text = f"{victim}; ended with status {status} after {seconds:.1f} s: "
        text += cause(program, command)
        text += f"; left: {', '.join(left) or 'nothing'}"
        if check.gpus:
            text += f", {freed:.1f} GiB of the GPUs given back"
        figures = {"seconds": round(seconds, 1), "status": status, "left": left}
        return Measured(status in statuses and not left, text, figures)

    return measure


LEAVES_NOTHING = f"ends within {ENDS_WITHIN} s; after {RELEASE} s no process, port, memory is held"
KILL = Step(
    name="kill_worker",
    claim="SIGKILL of a worker ends the run and leaves nothing",
    expected=LEAVES_NOTHING,
    minutes=6,
    commands=endless("kill_worker"),
    run=measure_fault(kill_worker, statuses=(1,)),
)
TERMINATE = Step(
    name="terminate",
    claim="SIGTERM of the launcher ends the run and leaves nothing",
    expected=LEAVES_NOTHING,
    minutes=6,
    commands=endless("terminate"),
    run=measure_fault(terminate, statuses=(143,)),
)
