"""The command `swift-rlvr rollout`: the rollout server alone."""

import os
import time

import typer
from rich.console import Console

from swift_rlvr.errors import InputError, require
from swift_rlvr.launch.machine import this_machine
from swift_rlvr.launch.plan import Variables, rollout_server
from swift_rlvr.network import is_free, is_held

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}


def rollout(context: typer.Context) -> None:
    """Start the rollout server alone: rollout [RECIPE.yaml] [flags of swift rollout]

    On GPUs, where the training's own server would run: on those that the training
    leaves, or ROLLOUT_GPUS. Variables: MODEL, HOST, PORT, DRY_RUN=1 (only print
    the command).
    """
    process, settings = rollout_server(context.args, this_machine())
    if Variables.from_environment().dry_run:
        typer.echo(process.command())
        return
    require("vllm", "train", "the rollout server")
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
