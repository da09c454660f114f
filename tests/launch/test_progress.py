"""Reading logs as they grow, finding in them why a program failed, and what the terminal shows."""

import io
import json
import sys

import pytest
from rich.console import Console

from swift_rlvr.launch import logged, progress
from swift_rlvr.launch.progress import Display, Tail, exception, last_lines
from swift_rlvr.runs import log
from swift_rlvr.runs.log import RunLog, cut_logs, line


def test_a_tail_gives_each_whole_line_once(tmp_path):
    path = tmp_path / "log"
    path.write_text("of an earlier run\n")
    tail = Tail(path)
    assert tail.lines() == []
    with path.open("a") as file:
        for text, lines in (
            ("one\ntw", ["one"]),
            ("o\n", ["two"]),
            ("", []),
            ("10%|\r 20%|\r\n", [" 20%|"]),
        ):
            file.write(text)
            file.flush()
            assert tail.lines() == lines
    assert tail.start == len("of an earlier run\n")
    assert Tail(tmp_path / "nothing").lines() == []


# What ms-swift under torchrun leaves when rank 1 fails, shortened: rank 0 fails because rank 1 is
# gone.
TORCHRUN = """\
[INFO:swift] Connected to vLLM server
/site-packages/torch/distributed/c10d_logger.py:83: FutureWarning: `torch.distributed.all_gather` is deprecated.
  return func(*args, **kwargs)
Train:   8%|8         | 1/12 [00:42<07:50, 42.80s/it]\rTrain:  17%|#7        | 2/12 [00:46<03:20, 20.05s/it]
[rank0]: Traceback (most recent call last):
[rank0]:   File "trainer.py", line 1, in train
[rank0]: torch.distributed.DistBackendError: Connection closed by peer [127.0.0.1]:1
[rank1]: Traceback (most recent call last):
[rank1]:   File "io_utils.py", line 64, in _append
[rank1]: OSError: [Errno 28] No space left on device
W1122 08:30:00.000000 99 torch/distributed/elastic/multiprocessing/api.py:1010] Sending process 7 closing signal SIGTERM
E1122 08:30:00.00 99 torch/distributed/elastic/multiprocessing/api.py:984] failed (exitcode: 1) local_rank: 1 (pid: 8)
Traceback (most recent call last):
  File "run.py", line 1, in main
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
rhlf.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-22_08:30:00
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 8)
============================================================
"""


def test_the_end_of_a_trainers_log_is_the_error_of_the_rank_that_failed_first(tmp_path):
    path = tmp_path / "trainer.log"
    path.write_text("OSError: of an earlier run\n" + TORCHRUN)
    lines = last_lines(path, start=len("OSError: of an earlier run\n"))
    assert [text[:8] for text in lines] == ["[rank1]:"] * 3
    assert exception(lines) == "OSError: [Errno 28] No space left on device"


def test_without_a_root_cause_it_is_the_last_error_before_torchrun_stops_the_others(tmp_path):
    path = tmp_path / "trainer.log"
    path.write_text(TORCHRUN.partition("Root Cause")[0])
    assert exception(last_lines(path)) == "OSError: [Errno 28] No space left on device"
    assert last_lines(path)[-1] == "[rank1]: OSError: [Errno 28] No space left on device"


def test_torchruns_own_error_is_shown_too(tmp_path):
    path = tmp_path / "trainer.log"
    error = (
        "torch.distributed.DistNetworkError: The server socket has failed to listen on port 29500"
    )
    frame = '  File "/torch/distributed/elastic/rendezvous/static_tcp_rendezvous.py", line 66, in next_rendezvous'
    path.write_text(f"Traceback (most recent call last):\n{frame}\n    raise\n{error}\n")
    assert (
        last_lines(path)[1:] == [frame, "    raise", error] and exception(last_lines(path)) == error
    )


@pytest.mark.parametrize(
    ("text", "end"),
    [
        (
            "a\nValueError: no such model\nINFO:     Waiting for connections to close\n",
            "ValueError: no such model",
        ),
        ("ValueError: caught\n" + "and went on\n" * 60, "and went on"),
        ("INFO: all is well\n", "INFO: all is well"),
        (
            "swift_rlvr.utils.errors.DivergedError: the loss is nan\n",
            "swift_rlvr.utils.errors.DivergedError: the loss is nan",
        ),
    ],
)
def test_the_end_of_another_log_is_its_last_error_or_its_last_lines(tmp_path, text, end):
    (tmp_path / "log").write_text(text)
    assert last_lines(tmp_path / "log")[-1] == end
    assert len(last_lines(tmp_path / "log")) <= 20


def test_no_log_has_no_end(tmp_path):
    assert last_lines(tmp_path / "log") == [] and exception([]) is None


def test_without_a_terminal_what_is_waited_for_is_a_line_now_and_then(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    output = io.StringIO()
    display = Display(Console(file=output, width=80))
    for _ in range(25):
        display.waiting("server: loading weights")
        now[0] += 1
    display.print("step 1/2")
    display.show("step 2 of 2")
    display.close()
    waited = [f"{seconds:4} s  server: loading weights" for seconds in (0, 10, 20)]
    assert output.getvalue().splitlines() == [*waited, "step 1/2"]


ROW = {
    "reward": 1.5,
    "success": 0.3125,
    "format": 0.984375,
    "rewards/CosineLengthReward/mean": 0.1,
    "completions/mean_length": 1284.2,
    "kl": 0.00213,
    "step_time": 125.81,
    "train_speed(s/it)": 150.0,
    "global_step/max_steps": "12/6000",
}


def test_the_line_of_a_step_fits_and_leaves_out_what_was_not_logged():
    assert (
        line(ROW)
        == "step   12/6000 success 0.31 format 0.98 length 1284 KL 0.0021  126 s left 209 h"
    )
    assert len(line(ROW)) <= 80
    assert line({"global_step/max_steps": "1/2", "success": None, "kl": float("nan")}) == "step 1/2"
    assert (
        line({"reward": 1.5, "global_step/max_steps": "1/2"}) == "step 1/2 reward 1.50"
    )  # whose success nobody knows
    assert line(
        {"eval_success": 1.0, "eval_kl": 0.5, "global_step/max_steps": "2/2", "step_time": 1}
    ) == ("evaluation at step 2/2 success 1.00 KL 0.5")


def test_the_time_left_is_of_training_steps_whatever_the_evaluations_take(monkeypatch, tmp_path):
    now = [100.0]
    monkeypatch.setattr(log.time, "monotonic", lambda: now[0])
    run = RunLog(tmp_path)
    run.start(2, 10)  # goes on after step 2
    for step, seconds, row in (
        (2, 400, {"eval/success": 0.5}),
        (3, 50, {"reward": 1.0}),
        (5, 130, {"reward": 1.0}),
    ):
        now[0] += seconds
        run.update(step, row)
    rows = [json.loads(text) for text in (tmp_path / "logging.jsonl").read_text().splitlines()]
    assert [row["train_speed(s/it)"] for row in rows] == [0.0, 50.0, 60.0]
    assert [row["remaining_time"] for row in rows] == ["0s", "350s", "300s"] and rows[-1][
        "elapsed_time"
    ] == "580s"


def test_a_run_that_goes_on_has_no_step_twice_in_its_logs(tmp_path):
    """Lines after the checkpoint go to files of their own, as do closing lines and what was not
    written to its end.
    """
    logged = [{"reward": 1, "global_step/max_steps": f"{step}/9"} for step in (1, 2, 3, 4)]
    closing = [
        {"train_runtime": 1, "global_step/max_steps": "2/9"},
        {"log_history": [], "global_step": 2},
    ]
    rows: dict[str, list[dict]] = {
        "logging.jsonl": [*logged[:2], *closing, *logged[2:]],
        "completions.jsonl": [
            {"step": [str(step)] * 2, "completion": ["a", "b"]} for step in (1, 2, 3)
        ],
        "records.jsonl": [{"step": step, "mode": "train"} for step in (1, 1, 2, 2, 3)],
    }
    for name, lines in rows.items():
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in lines) + '{"step": ')
    assert cut_logs(tmp_path, 2) == 4
    kept = {
        name: [json.loads(text) for text in (tmp_path / name).read_text().splitlines()]
        for name in rows
    }
    assert kept["logging.jsonl"] == logged[:2]
    assert [row["step"][0] for row in kept["completions.jsonl"]] == ["1", "2"]
    assert [row["step"] for row in kept["records.jsonl"]] == [1, 1, 2, 2]
    assert len((tmp_path / "logging.lost.jsonl").read_text().splitlines()) == 5
    assert cut_logs(tmp_path, 2) is None
    assert len((tmp_path / "logging.lost.jsonl").read_text().splitlines()) == 5
    assert cut_logs(tmp_path / "nowhere", 2) is None


# A training whose output goes to a file, as `swift sft` in scripts/cold_start.sh.

TRAINER = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
folder.mkdir()
print("a warning of a library", file=sys.stderr)
for step in (1, 2):
    row = {"loss": 1 / step, "global_step/max_steps": f"{step}/2", "train_speed(s/it)": 0.5}
    (folder / "logging.jsonl").open("a").write(json.dumps(row) + "\\n")
(folder / "logging.jsonl").open("a").write(json.dumps({"train_runtime": 1.0, "global_step/max_steps": "2/2"}) + "\\n")
if len(sys.argv) > 2:
    raise RuntimeError("no space left")
"""


def run_logged(tmp_path, *words):
    output = io.StringIO()
    command = [sys.executable, "-c", TRAINER, str(tmp_path / "out"), *words]
    console = Console(file=output, width=100)
    status = logged.run(command, tmp_path / "out.log", tmp_path / "out", console)
    return status, output.getvalue()


def test_a_line_for_each_step_is_shown_and_the_rest_goes_to_the_log(tmp_path):
    status, said = run_logged(tmp_path)
    assert status == 0
    steps = [text for text in said.splitlines() if text.startswith("step")]
    assert steps == ["step 1/2 loss 1.000  0.5 s left 0:00", "step 2/2 loss 0.500  0.5 s left 0:00"]
    assert f"the full output is in {tmp_path / 'out.log'}" in said
    assert "a warning of a library" not in said
    assert "a warning of a library" in (tmp_path / "out.log").read_text()


def test_a_training_that_fails_shows_the_end_of_its_log(tmp_path):
    status, said = run_logged(tmp_path, "fail")
    assert status == 1
    assert "Error: the training ended with exit status 1\nRuntimeError: no space left\n" in said
    assert f"The end of {tmp_path / 'out.log'}:" in said
    assert "a warning of a library" in said  # all of it, where it is short
