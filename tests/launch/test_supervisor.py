"""The supervisor with small programs in place of ms-swift's; tests/e2e/test_faults.py has the real
ones.
"""

import errno
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from rich.console import Console

from helpers import done_within, printed
from swift_rlvr.cli import train
from swift_rlvr.launch import steps, supervisor
from swift_rlvr.launch.machine import Machine
from swift_rlvr.launch.plan import Plan, Process, Server
from swift_rlvr.launch.supervisor import supervise
from swift_rlvr.launch.variables import Variables
from swift_rlvr.runs.folder import LOG
from swift_rlvr.runs.log import STILL_GRADING
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.network import free_port

# Both import from here. `log(step, **metrics)` writes what ms-swift's trainer does.
COMMON = """
import json, os, pathlib, signal, subprocess, sys, time, zipfile

folder = pathlib.Path(sys.argv[1])


def log(step, last=4, **metrics):
    row = {"loss": 0.0, "completions/mean_length": 40.0, "reward": 1.0, "success": step / 10,
           "format": 0.9, "kl": 0.001, "step_time": 2.0, **metrics}
    with (folder / "logging.jsonl").open("a") as file:
        file.write(json.dumps({**row, "global_step/max_steps": f"{step}/{last}"}) + "\\n")


def checkpoint(step):
    path = folder / f"checkpoint-{step}"
    path.mkdir()
    (path / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
        zipfile.ZipFile(path / name, "w").close()  # as torch.save's are
    (path / "trainer_state.json").write_text(json.dumps({"global_step": step}))
"""
SERVER = """
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # the client hangs up, as with uvicorn

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


print("vLLM chatter", flush=True)
HTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
"""
TRAIN = "[log(step) for step in (1, 2, 3, 4)]\n"
RUN_ON = "log(1)\ntime.sleep(1800)\n"
# A model of the hub, whose trainer starts when the supervisor knows that the server is ready.
HUB = "Qwen/Qwen2.5-3B-Instruct"


@pytest.fixture
def plan(tmp_path):
    """A plan for programs with these bodies."""

    def make(
        trainer: str, server: str | None = SERVER, model: str = str(tmp_path), **variables
    ) -> Plan:
        port, sync_port = free_port(), free_port()
        folder = tmp_path / "run"
        programs = {}
        for name, body in (("trainer", trainer), ("server", server)):
            if body is not None:
                (tmp_path / f"{name}.py").write_text(COMMON + body)
                argv = (sys.executable, str(tmp_path / f"{name}.py"), str(folder), str(port))
                env = {"TEST_RUN": str(folder)}
                programs[name] = Process(name, argv, env, folder / f"{name}.log")
        return Plan(
            recipe=Path("recipe.yaml"),
            settings={"model": model},
            machine=Machine((), None, 1, 1024),
            variables=Variables(**{"server_timeout": 1800, **variables}),
            servers=(Server("127.0.0.1", port, sync_port),),
            train_gpus=(),
            server_gpus=(),
            processes=1,
            completions=8,
            server_settings={},
            output=folder,
            server=programs.get("server"),
            trainer=programs["trainer"],
        )

    return make


def run(plan: Plan, columns: int = 100) -> tuple[int, str]:
    """The exit status of a supervised run and what it prints. Nothing of it may be left."""
    console = Console(file=io.StringIO(), width=columns)
    status = supervise(plan, console)
    assert not processes(plan)
    return status, printed(console)


def processes(plan: Plan) -> list[int]:
    """What runs of a plan."""
    alive = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"TEST_RUN={plan.output}" in (path / "environ").read_bytes().decode(
                errors="replace"
            ).split("\0"):
                alive.append(int(path.name))
    return alive


def after(condition, action) -> threading.Thread:
    """Do something as soon as a condition holds."""

    def wait():
        end = time.monotonic() + 1800
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.05)
        action()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def test_held_out_evaluations_alarms_and_the_best_checkpoint_are_shown(plan):
    body = r"""
log(1)
held_out = {"eval/success": 0.5, "eval/format": 1.0, "eval/mean_length": 30.0, "eval/seconds": 2.0}
with (folder / "logging.jsonl").open("a") as file:
    file.write(json.dumps({**held_out, "global_step/max_steps": "1/4"}) + "\n")
(folder / "alarms.jsonl").write_text(json.dumps({"step": 1, "kind": "kl", "message": "step 1: [bold]too far"}) + "\n")
checkpoint(1)
(folder / "best").symlink_to("checkpoint-1")
"""
    made = plan(body, model=HUB)
    status, shown = run(made)
    assert status == 0
    assert "held out, step 1/4 success 0.50 format 1.00 length  30 in 2 s" in shown
    assert "Warning: step 1: [bold]too far" in shown
    assert f"the best checkpoint by held-out success is {made.output / 'checkpoint-1'}" in shown


@pytest.mark.parametrize("verbose", [False, True])
def test_a_good_run_shows_a_line_a_step_and_the_chatter_goes_to_the_logs(plan, verbose):
    made = plan("print('ms-swift chatter', flush=True)\n" + TRAIN, model=HUB, verbose=verbose)
    status, shown = run(made)
    assert status == 0
    lines = [line for line in shown.splitlines() if line.startswith("step ")]
    assert lines[1] == "step 2/4 success 0.20 format 0.90 length  40 KL 0.001     2 s left 0:04"
    assert len(lines) == 4
    for name, text in (("trainer", "ms-swift chatter"), ("server", "vLLM chatter")):
        assert (f"[{name}] {text}\n" in shown) == verbose
        assert text in (made.output / f"{name}.log").read_text()


def test_requests_between_the_programs_do_not_go_to_a_proxy(plan, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "intranet")
    ask = "import urllib.request\n"
    ask += "urllib.request.urlopen(f'http://127.0.0.1:{sys.argv[2]}/health/', timeout=20).close()\n"
    ask += "print(os.environ['NO_PROXY'])\n"
    made = plan(ask + TRAIN, model=HUB)
    assert run(made)[0] == 0
    assert made.trainer.log.read_text() == "intranet,127.0.0.1,localhost\n"


def test_a_trainer_that_fails_is_shown_with_its_error_and_how_to_go_on(plan):
    status, shown = run(plan("log(1)\nlog(2)\ncheckpoint(2)\nlog(3)\nopen('/no/such/file')\n"))
    assert status == 1
    assert "Error: the trainer ended with exit status 1, after step 3\n" in shown
    assert (
        "FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file'\nThe end of"
        in shown
    )
    assert re.search(r"To resume from \S+/checkpoint-2, run:\s+.*RESUME=1 ", shown)


def test_a_diverged_training_ends_with_3_and_is_not_to_be_resumed(plan):
    status, shown = run(
        plan("class DivergedError(Exception): ...\nlog(1)\nraise DivergedError('the loss is nan')")
    )
    assert status == 3
    assert "DivergedError: the loss is nan" in shown and "RESUME" not in shown


def test_a_server_that_is_killed_ends_the_run_at_once(plan):
    trainer = "log(1)\nos.kill(int((folder / 'pid').read_text()), 9)\ntime.sleep(1800)\n"
    server = "(folder / 'pid').write_text(str(os.getpid()))\n" + SERVER
    made = plan(trainer, server, model=HUB)
    with done_within(1500):
        status, shown = run(made)
    assert status == 1
    assert (
        "Error: the rollout server was killed by SIGKILL, which the system also sends when memory runs out"
        in shown
    )
    assert "  vLLM chatter\n" in shown and "There is no checkpoint to resume from" in shown


def test_a_server_that_dies_is_started_again_and_the_training_goes_on_from_its_checkpoint(plan):
    """RESTARTS=1: the second death ends the run. The steps after the checkpoint are repeated, and
    logged once.
    """
    trainer = """
if "--resume_from_checkpoint" in sys.argv:
    log(3)
else:
    for step in (1, 2, 3):
        log(step)
        if step == 2:
            checkpoint(2)
pid = int((folder / "pid").read_text())
(folder / "pid").unlink()
os.kill(pid, 9)
time.sleep(1800)
"""
    server = "(folder / 'pid').write_text(str(os.getpid()))\n" + SERVER
    made = plan(trainer, server, model=HUB, restarts=1)
    status, shown = run(made)
    assert status == 1
    assert "the rollout server is gone: restart 1 of 1\nresuming from" in shown
    assert "checkpoint-2; steps 3 to 3 are repeated" in shown
    assert shown.count("Error: the rollout server was killed by SIGKILL") == 2
    steps = [
        json.loads(line)["global_step/max_steps"]
        for line in (made.output / LOG).read_text().splitlines()
    ]
    assert steps == ["1/4", "2/4", "3/4"]
    assert (made.output / "logging.lost.jsonl").read_text().count("3/4") == 1


@pytest.mark.parametrize("steps", [0, 2])
def test_an_attempt_without_a_checkpoint_is_begun_anew_and_its_logs_are_kept(plan, steps):
    """RESUME=auto, as a batch job that is queued again has it."""
    first = f"[log(step) for step in range({steps + 1})]\nsys.exit(1)"
    made = plan(first, model=HUB)
    assert run(made)[0] == 1
    said_before = made.trainer.log.read_text()
    made = plan(TRAIN, model=HUB, resume="auto")
    status, shown = run(made)
    assert status == 0
    assert ("resuming from the beginning; steps 1 to 2 are repeated" in shown) == (steps == 2)
    numbers = re.findall(r'"(\d)/4"', (made.output / LOG).read_text())
    assert numbers == ["1", "2", "3", "4"]
    lost = (made.output / "logging.lost.jsonl").read_text()
    assert re.findall(r'"(\d)/4"', lost) == [str(step) for step in range(steps + 1)]
    assert made.trainer.log.read_text().startswith(said_before)


def test_a_new_run_with_resume_auto_says_nothing_of_going_on(plan):
    status, shown = run(plan(TRAIN, model=HUB, resume="auto"))
    assert status == 0 and "going on" not in shown


def test_a_server_that_never_gets_ready_is_not_waited_for_for_ever(plan):
    status, shown = run(
        plan(RUN_ON, "print('stuck', flush=True)\ntime.sleep(1800)\n", server_timeout=1)
    )
    assert (
        status == 1
        and re.search(r"server is not ready after \d+ s \(SERVER_TIMEOUT\)", shown)
        and "stuck" in shown
    )


def test_with_a_model_of_the_hub_the_trainer_starts_when_the_server_is_ready(plan):
    made = plan("sys.exit(7)", "time.sleep(1)\n" + SERVER, model=HUB)
    assert "the trainer ended with exit status 7" in run(made)[1]
    assert "vLLM chatter" in made.server.log.read_text()


def test_a_failed_update_of_the_weights_ends_the_run(plan):
    """The server answers 200 to it, and only logs it."""
    text = "[ERROR:swift] Method execution failed: collective_rpc\\nMemoryError: no room\\nTypeError: None"
    status, shown = run(plan(RUN_ON, f'print("{text}", flush=True)\n' + SERVER))
    assert status == 1
    assert "most likely during a weight update; it would keep sampling from old weights" in shown
    assert "MemoryError: no room" in shown and "TypeError" not in shown
    # this trainer logs no step: RUN_ON's first one may be seen before what the server printed, or
    # after it
    failing = f'print("{text.replace("collective_rpc", "infer")}", flush=True)\n' + SERVER
    status, shown = run(plan("time.sleep(1800)", failing))
    assert (
        status == 1
        and "Error: the rollout server failed in `infer`, before the first step" in shown
    )


LOW, WARNED, ENDED = (0, 0), (0, 1), (1, 1)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1e-8, 1e-8, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6], ENDED),
        ([0.001, 0.001, 0.001, *[0.2] * 5], WARNED),
        ([0.001, 0.2, 0.2, 0.001, 0.2, 0.2, 0.001, 0.2], LOW),
        ([0.03, 0.04, 0.05, *[0.3] * 8], LOW),  # of FP8, or experts
        ([0.2] * 9, WARNED),  # at the start, before an update can have been lost
        ([0.03, 0.04, 0.05, *[0.5] * 8], ENDED),
        ([None] * 9, LOW),
    ],
)
def test_a_server_with_other_weights_shows_in_its_log_probabilities(plan, values, expected):
    body = "".join(
        f"log({i}, 20, **{{'rollout_correction/k3_kl': {value}}})\n"
        for i, value in enumerate(values, 1)
    )
    ended, shown = run(plan(body + ("time.sleep(1800)" if expected == ENDED else "")))
    assert (ended, shown.count("get every update of the weights?")) == expected
    assert ("samples with other weights than the trainer's" in shown) == ended


def test_a_run_that_goes_on_compares_with_its_first_steps(plan):
    made = plan(
        "".join(f"log({i}, 20, **{{'rollout_correction/k3_kl': 0.1}})\n" for i in range(4, 20))
        + RUN_ON
    )
    made.output.mkdir()
    rows = [
        {"rollout_correction/k3_kl": 0.001, "global_step/max_steps": f"{step}/20"}
        for step in (1, 2, 3)
    ]
    (made.output / LOG).write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(made)[0] == 1


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_stops_everything(plan, number, status):
    made = plan("checkpoint(1)\n" + RUN_ON)
    after((made.output / LOG).exists, lambda: os.kill(os.getpid(), number))
    handlers = [signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    ended, shown = run(made)
    assert ended == status
    assert f"Error: stopped by {signal.Signals(number).name}" in shown and "RESUME=1" in shown
    assert [
        signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    ] == handlers


LEAVES_FILES = """
import tempfile, uuid
pathlib.Path(tempfile.mkdtemp(prefix="torchelastic_"), "none_1").mkdir()
pathlib.Path(tempfile.gettempdir(), str(uuid.uuid4())).touch()
(folder / f"place_{sys.argv[0].rpartition('/')[2]}").write_text(tempfile.gettempdir())
"""


@pytest.mark.parametrize(
    ("ends", "status"),
    [(TRAIN, 0), ("sys.exit(1)", 1), ("os.kill(os.getpid(), 9)", 1), ("signalled", 143)],
)
def test_no_temporary_file_of_a_program_is_left(plan, monkeypatch, tmp_path, ends, status):
    """However the run ends. Both programs write into one folder of this run alone."""
    machines = Path(tempfile.mkdtemp())
    monkeypatch.setattr(tempfile, "tempdir", str(machines))
    signalled = ends == "signalled"
    made = plan(LEAVES_FILES + (RUN_ON if signalled else ends), LEAVES_FILES + SERVER, model=HUB)
    if signalled:
        after((made.output / LOG).exists, lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert run(made)[0] == status
    places = {path.read_text() for path in made.output.glob("place_*")}
    assert len(places) == 1 and Path(places.pop()).parent == machines
    machines.rmdir()  # it is empty


STUBBORN = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(1800)"
child = subprocess.Popen([sys.executable, "-c", child], start_new_session=True, stdout=subprocess.PIPE)
child.stdout.readline()
log(1)
time.sleep(1800)
"""


@pytest.mark.parametrize(("interrupts", "grace"), [(1, 2), (2, 60)])
def test_what_does_not_end_is_killed_in_other_sessions_too_and_at_once_by_a_second_interrupt(
    plan, monkeypatch, interrupts, grace
):
    monkeypatch.setattr("swift_rlvr.launch.processes.GRACE", grace)
    made, started = plan(STUBBORN), []

    def interrupt():
        started.extend(processes(made))
        for _ in range(interrupts):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)

    thread = after((made.output / LOG).exists, interrupt)
    assert run(made)[0] == 130
    thread.join()
    assert len(started) == 3  # the trainer, its child, the server


SHARES_MEMORY = """
from multiprocessing.shared_memory import SharedMemory
shared = SharedMemory(create=True, size=32)
(folder / "shared").write_text(shared.name)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
log(1)
time.sleep(1800)
"""


def test_shared_memory_of_a_program_that_has_to_be_killed_is_given_back(plan, monkeypatch):
    """As of vLLM's workers, which have some hundred MiB each."""
    monkeypatch.setattr("swift_rlvr.launch.processes.GRACE", 2)
    made = plan(SHARES_MEMORY, None)
    after((made.output / LOG).exists, lambda: os.kill(os.getpid(), signal.SIGINT))
    assert run(made)[0] == 130
    assert not Path("/dev/shm", (made.output / "shared").read_text()).exists()


def test_two_runs_do_not_write_into_one_folder(plan):
    made = plan(RUN_ON, None)
    refused = []

    def second():
        lock = (
            "import fcntl, sys; fcntl.flock(open(sys.argv[1], 'ab'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        )
        done = subprocess.run(
            [sys.executable, "-c", lock, str(made.trainer.log)], capture_output=True, text=True
        )
        refused.append(done.stderr)
        with pytest.raises(InputError, match="output_dir: .*another run is writing to it") as error:
            supervise(made, Console(file=io.StringIO()))
        refused.append(str(error.value))
        os.kill(os.getpid(), signal.SIGINT)

    thread = after((made.output / LOG).exists, second)
    assert run(made)[0] == 130
    thread.join()
    assert "BlockingIOError" in refused[0] and len(refused) == 2


def test_a_second_launch_is_refused_before_its_plan_is_shown(plan, monkeypatch):
    made = plan(RUN_ON, None)
    refused = []

    def second():
        console = Console(file=io.StringIO())
        with pytest.raises(InputError) as error:
            train._launch(made, console)
        assert error.value.field == "output_dir"
        refused.append(printed(console))
        os.kill(os.getpid(), signal.SIGINT)

    thread = after((made.output / LOG).exists, second)
    assert run(made)[0] == 130
    thread.join()
    assert refused == [""]
    supervisor.refuse_second_run(made)  # the folder is free again, for RESUME=1


def test_a_training_without_a_step_has_failed(plan):
    """ms-swift ends with 0 where a hub's dataset turns out to have fewer rows than a batch."""
    body = """
row = {"train_runtime": 0.02, "train_loss": 0.0, "global_step/max_steps": "0/3"}
(folder / "logging.jsonl").write_text(json.dumps(row) + "\\n")
"""
    status, shown = run(plan(body, None))
    assert status == 1
    assert "the training made no step: its dataset has fewer rows than are sampled at once" in shown


QUIET_RANK = """
os.environ.pop("LOCAL_RANK", None)
rank = [sys.executable, "-c", "import os, time; os.kill(os.getpid(), 19); time.sleep(1800)"]
child = subprocess.Popen(rank, env={**os.environ, "LOCAL_RANK": "1"})
"""
QUIET_SERVER = """
os.kill(int((folder / "pid").read_text()), signal.SIGSTOP)
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            QUIET_RANK,
            r"no step for \d+ s, after step 1: rank 1 of the trainer \(process \d+\) is stopped\n",
        ),
        (
            QUIET_SERVER,
            r"the rollout server does not answer at 127.0.0.1:\d+ \(timed out\); "
            r"the rollout server \(process \d+\) is stopped\n",
        ),
        (
            "",
            r"the server answers, and nothing is stopped; `py-spy dump --pid N` .*: server \d+.*, trainer \d+",
        ),
        (
            f"print('[WARNING:swift] rank 1 {STILL_GRADING} external_judge after 60 s: what', flush=True)\n",
            "Warning: rank 1 still grades with external_judge after 60 s: what",
        ),
    ],
)
def test_who_does_not_answer_is_said_where_there_is_no_step(plan, monkeypatch, body, expected):
    monkeypatch.setattr(steps, "QUIET", 1)
    monkeypatch.setattr(steps, "QUIET_STEPS", 0)
    console = Console(file=io.StringIO(), width=300)
    server = "(folder / 'pid').write_text(str(os.getpid()))\n" + SERVER
    made = plan(body + RUN_ON, server, model=HUB)

    def is_said():
        return re.search(expected, printed(console))

    thread = after(is_said, lambda: os.kill(os.getpid(), signal.SIGINT))
    assert supervise(made, console) == 130
    thread.join()
    assert not processes(made)


def test_a_long_step_is_no_reason_to_warn(plan, monkeypatch):
    """The limit is three times the longest step, of which the first one's time is ms-swift's."""
    monkeypatch.setattr(steps, "QUIET", 0)
    status, shown = run(plan("log(1, step_time=20)\ntime.sleep(2)\nlog(2)\n", model=HUB))
    assert status == 0 and "no step for" not in shown


def test_a_file_system_without_locks_is_no_reason_to_stop(plan, monkeypatch):
    def refuse(file, operation):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(supervisor.fcntl, "flock", refuse)
    assert run(plan(TRAIN, model=HUB))[0] == 0


FAILED_RANK = """
print("[rank1]: OSError: [Errno 28] No space left on device", flush=True)
print("E1122 torch/distributed/elastic/multiprocessing/api.py:984] failed (exitcode: -9) local_rank: 1", flush=True)
"""


def test_a_rank_that_fails_is_told_before_torchrun_has_ended_the_others(plan):
    status, shown = run(plan("log(1)\n" + FAILED_RANK + "time.sleep(1800)"))
    assert status == 1 and "Error: rank 1 of the trainer was killed by SIGKILL" in shown
    assert (
        ", after step 1\n" in shown
        and "  [rank1]: OSError: [Errno 28] No space left on device\n" in shown
    )


NO_SPACE = "OSError: [Errno 28] No space left on device: 'checkpoint-2'"
OF_SAFETENSORS = "SafetensorError: Error while serializing: I/O error: No space left on device"
OF_TORCH = "RuntimeError: basic_ios::clear: iostream error"
CUT = '[rank0]: Traceback (most recent call last):\n[rank0]:   File "/site-pack'
OF_TORCHS_WRITER = "RuntimeError: [enforce fail at inline_container.cc:672] . unexpected pos 576"


@pytest.mark.parametrize(
    ("error", "free", "said"),
    [
        (NO_SPACE, 3_000_000_000, "The disk is full, or a quota is used up: 3.0 GB are free for"),
        (OF_SAFETENSORS, 0, "The disk is full, or a quota is used up: 0 bytes are free for"),
        (OF_TORCH, 12_000, "The disk is full, or a quota is used up: 12.0 kB are free for"),
        (OF_TORCHS_WRITER, 0, "The disk is full, or a quota is used up: 0 bytes are free for"),
        (OF_TORCH, 3_000_000_000, "A file could not be written, and 3.0 GB are free for"),
        ("RuntimeError: CUDA error", 0, None),
        # The log is on that disk, too.
        (CUT, 4_000, "The disk is full, or a quota is used up: 4.0 kB are free for"),
        (CUT, 3_000_000_000, None),
    ],
)
def test_a_full_disk_is_named_with_its_free_space(plan, monkeypatch, error, free, said):
    usage = shutil.disk_usage(".")._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    status, shown = run(plan(f"log(1)\nprint({error!r}, flush=True)\nsys.exit(1)\n"), columns=300)
    assert status == 1
    assert said in shown if said else "are free for" not in shown


def test_shared_memory_that_is_full_is_not_taken_for_the_disk(plan, monkeypatch):
    """As in a container without --shm-size: a semaphore is a file there."""
    usage = shutil.disk_usage(".")
    monkeypatch.setattr(
        shutil,
        "disk_usage",
        lambda folder: usage._replace(free=0 if str(folder) == "/dev/shm" else 49_000_000_000),
    )
    error = "OSError: [Errno 28] No space left on device"
    shown = run(plan(f"log(1)\nprint({error!r}, flush=True)\nsys.exit(1)\n"), columns=300)[1]
    assert "/dev/shm is full: 0 bytes are free there" in shown and "The disk" not in shown


def test_a_worker_of_the_server_that_is_gone_is_the_cause_and_not_the_trainer(plan):
    """ms-swift's server goes on without its worker, and the trainer ends because of that."""
    worker = """
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1800)"])
(folder / "worker").write_text(str(child.pid))
"""
    trainer = """
log(1)
os.kill(int((folder / "worker").read_text()), 9)
raise RuntimeError("Server 0 failed: 500")
"""
    status, shown = run(plan(trainer, worker + SERVER, model=HUB))
    assert status == 1
    assert (
        "Error: a worker of the rollout server is gone, and the trainer ended with exit status 1"
        in shown
    )


def test_a_signal_before_the_first_step_stops_everything(plan):
    made = plan("(folder / 'started').touch()\ntime.sleep(1800)\n")
    after((made.output / "started").exists, lambda: os.kill(os.getpid(), signal.SIGINT))
    status, shown = run(made)
    assert status == 130
    assert "Error: stopped by SIGINT, before the first step" in shown
    assert "There is no checkpoint to resume from" in shown


def test_a_server_that_is_killed_before_it_is_ready_ends_the_run(plan):
    status, shown = run(plan("time.sleep(1800)\n", "os.kill(os.getpid(), signal.SIGKILL)\n"))
    assert status == 1
    assert "Error: the rollout server was killed by SIGKILL" in shown
    assert ", before the first step" in shown
