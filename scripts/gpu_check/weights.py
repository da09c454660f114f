"""Whether vLLM samples from the trainer's weights: checksums on both sides after each update, and an
update of which a part is lost.
"""

import time
from collections.abc import Sequence
from itertools import chain
from typing import Any

from gpu_check import names
from gpu_check.notes import cause, notes, stacked
from gpu_check.programs import Command, Program, run
from gpu_check.steps import Check, Measured, Step, needs_gpu

# Seconds after which a lost update must have ended the run.
NOTICED = 120
STEPS_MADE = 3


# Checksums.


def trained(name: str, *flags: str, colocate: bool = False):
    """The command of a training in which every weight moves."""

    def commands(check: Check) -> list[Command]:
        words = (*names.NO_CHECKPOINT, "--max_steps", str(STEPS_MADE), *names.LARGE_STEPS, *flags)
        env = {"GPU_CHECK_SUMS": "1", **names.BUCKET}
        return [check.tiny(name, *words, env=env, colocate=colocate)]

    return commands


def measure_sums(check: Check, commands: Sequence[Command]) -> Measured:
    (command,) = commands
    run(command, command.folder / "log", check.until)
    return compare_weights(command)


def compare_weights(command: Command) -> Measured:
    """Every update of a training, on the trainer's side and in every worker."""
    (sent, *_) = [*notes(command, "trainer", "weights").values(), []]
    workers = notes(command, "engine", "weights")
    problems = []
    for worker, held in workers.items():
        if len(held) != len(sent):
            problems.append(f"{worker} had {len(held)} updates of {len(sent)}")
        for update, (ours, theirs) in enumerate(zip(sent, held, strict=False), start=1):
            names_that_differ = differing(ours["sums"], theirs)
            if names_that_differ:
                problems.append(
                    f"{worker}, update {update}: {len(names_that_differ)} differ, "
                    f"such as {names_that_differ[0]}"
                )
    moved = 0
    if len(sent) > 1:
        first, last = sent[0]["sums"], sent[-1]["sums"]
        moved = sum(first[name] != last[name] for name in first)
    count = len(sent[0]["sums"]) if sent else 0
    text = f"{len(sent)} updates, {len(workers)} workers, {moved} of {count} tensors moved; "
    text += "; ".join(problems[:3]) or "all checksums are equal"
    passed = bool(workers) and moved > 0 and not problems
    figures = {"updates": len(sent), "workers": len(workers), "moved": moved, "tensors": count}
    return Measured(passed, text, figures | {"problems": problems})


def differing(sent: dict[str, int], held: dict[str, Any]) -> list[str]:
    """The parameters of a worker that hold something else, in the order of its model. A model's
    head that is its embedding is there once.
    """
    ours, theirs = stacked(sent, held["packed"]), held["sums"]
    missing = [name for name in ours if name not in theirs and name != "lm_head.weight"]
    return [name for name in theirs if ours.get(name) != theirs[name]] + missing


# A part of an update is lost.


def losing(name: str, *flags: str):
    """The command of a training in which a part of the second update is lost: the first holds the
    weights that both sides have loaded.
    """

    def commands(check: Check) -> list[Command]:
        words = (*names.NO_CHECKPOINT, "--max_steps", "40", *names.LARGE_STEPS, *flags)
        env = {"GPU_CHECK_DROP": "2", **names.BUCKET}
        return [check.tiny(name, *words, *names.K3_KL, env=env)]

    return commands


def measure_loss(check: Check, commands: Sequence[Command]) -> Measured:
    (command,) = commands
    program = Program(command, command.folder / "log", check.until)
    try:
        return _watch_loss(program, command)
    finally:
        program.stop()


def _watch_loss(program: Program, command: Command) -> Measured:
    def dropped() -> list[dict[str, Any]]:
        return list(chain.from_iterable(notes(command, "trainer", "dropped").values()))

    drops = program.wait_for(dropped, "the update that is dropped")
    lost_at = float(drops[0]["time"])
    while program.process.poll() is None and time.time() < lost_at + NOTICED:
        program.check_time("the end of the run")
        time.sleep(0.2)
    status, seconds = program.process.poll(), time.time() - lost_at
    figures = {"seconds": round(seconds, 1), "status": status}
    if status is None:
        return Measured(False, f"the run goes on {seconds:.0f} s after the loss", figures)
    if status == 0:
        return Measured(False, "the run ended as if nothing had been lost", figures)
    text = f"ended with status {status} after {seconds:.1f} s: {cause(program, command)}"
    return Measured(True, text, figures)


EQUAL = f"equal checksums in each worker after each of {STEPS_MADE} updates, and weights that move"
NOTICE = f"an error within {NOTICED} s"
WEIGHTS = Step(
    name="weights",
    claim="each update reaches every worker of vLLM, whole (NCCL on two GPUs and more)",
    expected=EQUAL,
    minutes=6,
    commands=trained("weights"),
    run=measure_sums,
)
COLOCATE = Step(
    name="weights_colocate",
    claim="the same where vLLM sleeps and the model and the optimizer are offloaded (colocate)",
    expected=EQUAL,
    minutes=6,
    commands=trained("weights_colocate", *names.SLEEP_AND_OFFLOAD, colocate=True),
    run=measure_sums,
    why_not=needs_gpu,
)
LORA = Step(
    name="weights_lora",
    claim="the same for LoRA, which is merged for the update",
    expected=EQUAL,
    minutes=6,
    commands=trained("weights_lora", *names.LORA),
    run=measure_sums,
)
LOST = Step(
    name="lost_update",
    claim="an update of which one part is lost ends the run",
    expected=NOTICE,
    minutes=6,
    commands=losing("lost_update"),
    run=measure_loss,
)
LOST_LORA = Step(
    name="lost_lora",
    claim="the same for LoRA",
    expected=NOTICE,
    minutes=6,
    commands=losing("lost_lora", *names.LORA),
    run=measure_loss,
)
