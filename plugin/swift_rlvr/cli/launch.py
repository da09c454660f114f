"""Launching ms-swift: the plan, the checks that refuse what cannot work, the supervised run; the server alone."""

import os
import time
from collections.abc import Sequence

import typer
from rich.console import Console

from swift_rlvr.errors import InputError, require
from swift_rlvr.launch.plan import make_plan, rollout_server, switch
from swift_rlvr.network import is_free, is_held
from swift_rlvr.recipes import read_flags, read_recipe

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}


def launch(words: Sequence[str], console: Console) -> int:
    """Train with ms-swift as the words say: `swift-rlvr train RECIPE.yaml [flags of swift rlhf]`. The exit status."""
    from swift_rlvr.cli.doctor import print_findings
    from swift_rlvr.launch import doctor
    from swift_rlvr.launch.describe import show_plan
    from swift_rlvr.launch.supervisor import supervise

    plan = make_plan(words)
    show_plan(plan, console)
    if plan.variables.dry_run:
        return 0
    require("swift", "train", "training with ms-swift")
    findings = [finding for finding in doctor.check(plan, fast=True) if finding.status != "passed"]
    print_findings(findings, console)
    if any(finding.status == "failed" for finding in findings):
        raise InputError("nothing was started; `swift-rlvr doctor` with the same arguments and variables checks more")
    return supervise(plan, console)


def rollout(context: typer.Context) -> None:
    """Start the rollout server alone: rollout [RECIPE.yaml] [flags of swift rollout]

    On GPUs, where the training's own server would run: on those that the training
    leaves, or ROLLOUT_GPUS. Variables: MODEL, HOST, PORT, DRY_RUN=1 (only print
    the command).
    """
    process = rollout_server(context.args)
    if switch(os.environ, "DRY_RUN", False):
        typer.echo(process.command())
        return
    require("vllm", "train", "the rollout server")
    settings = {**read_recipe(process.argv[4]).settings, **read_flags(process.argv[5:])}
    port = int(settings.get("port", 8000))
    if not is_free(port):
        raise InputError(f"{port} on {settings.get('host', '0.0.0.0')} is in use: set PORT to a free one", "PORT")
    _await(port, Console(stderr=True, highlight=False))
    os.execvpe(process.argv[0], process.argv, os.environ | process.env)


def _await(port: int, console: Console, seconds: float = 120) -> None:
    """Wait until the system gives up a port whose server has just ended."""
    start = time.monotonic()
    if is_held(port):
        console.print(f"waiting for port {port}, which a server has just left")
    while is_held(port):
        if time.monotonic() - start > seconds:
            raise InputError(f"{port} is still not free after {seconds:.0f} s: set PORT to another", "PORT")
        time.sleep(0.5)
