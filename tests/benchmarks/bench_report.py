"""The page of `swift-rlvr report` in a real headless Chromium: how long it takes to write, to open
and to filter.

Makes the folder of a run with 200,000 completions of about 1,000 characters, as the Countdown
experiment's 350 tokens are, in groups of 8, writes its page and opens that. Every run of the
browser is a new one with an empty profile. "Open" ends when the curves are drawn and the list, all
filters but the one of texts and the details can be used; "texts read" when texts can be searched
too, which goes on meanwhile. A filter's time is from the event to the finished list with its count,
the median of five. Beside each time stands the processor time of all of the browser's processes,
which is what a busy machine can be judged by; the load average is printed too.

Usage: PYTHONPATH=plugin:tests python tests/benchmarks/bench_report.py [--completions 200000]
           [--characters 1000] [--keep FOLDER]

Needs Chromium (Debian: apt-get install chromium). Prints a table and, last, one line of JSON; exits
1 where opening takes 2 s or a filter 0.3 s.
"""

import argparse
import json
import os
import random
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from evaluation.chromium import Chromium, found
from swift_rlvr.evaluation.report import write_report
from swift_rlvr.tasks.countdown import to_messages
from swift_rlvr.verifiers.countdown import verify

OPEN, FILTER, ROUNDS = 2.0, 0.3, 5
BATCH, GROUP = 800, 8
FILTERS = {
    "steps 10 to 40": "f.first.value = 10; f.last.value = 40",
    "reward from 1": "f.low.value = 1",
    "one reason": "f.reason.selectedIndex = 1",
    "text, case matched: too low": "f.text.value = 'too low'; f.cased.checked = true",
    "text, any case: too low": "f.text.value = 'too low'",
    "text that is rare: = 77 (too": "f.text.value = '= 77 (too'",
    "text that is not there": "f.text.value = 'Eureka'",
    "prompts sampled in several steps": "f.repeated.checked = true",
    "reason, reward and text": "f.reason.selectedIndex = 2; f.high.value = 0; f.text.value = 'too high'",
}


def make_run(folder: Path, completions: int, characters: int, seed: int = 0) -> None:
    """A run's files with so many completions; some prompts come back in later steps."""
    rng = random.Random(seed)
    tries = []
    for _ in range(5000):
        a, b, c = (rng.randint(1, 99) for _ in range(3))
        value = (a + b) * c if rng.random() < 0.5 else a * b - c
        text = f"({a} + {b}) * {c}" if value == (a + b) * c else f"{a} * {b} - {c}"
        tries.append(f"Let me try {text} = {value} (too {'low' if value < 50 else 'high'}).")
    lines = max(1, characters // (sum(map(len, tries)) // len(tries) + 1))
    steps = -(-completions // BATCH)
    with (
        (folder / "completions.jsonl").open("w") as tables,
        (folder / "logging.jsonl").open("w") as log,
    ):
        for step in range(1, steps + 1):
            count = min(BATCH, completions - (step - 1) * BATCH)
            table: dict[str, list] = {
                "step": [str(step)] * count,
                "prompt": [],
                "completion": [],
                "CountdownReward": [],
            }
            for group in range(-(-count // GROUP)):
                numbers = random.Random((step * 1000 + group) % 20_000)
                nums = [numbers.randint(1, 99) for _ in range(4)]
                prompt = to_messages(nums, target := nums[0] * nums[1] + nums[2] - nums[3])[1][
                    "content"
                ]
                for _ in range(min(GROUP, count - group * GROUP)):
                    thought = "\n".join(
                        rng.choices(tries, k=max(1, int(rng.gauss(lines, lines / 4))))
                    )
                    sign = rng.choice("+-")
                    answer = f"{nums[0]} * {nums[1]} {sign} {nums[2]} - {nums[3]}"
                    text = f"<think>\n{thought}\n</think>\n<answer>{answer}</answer>"
                    table["prompt"].append(
                        f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"
                    )
                    table["completion"].append(text)
                    table["CountdownReward"].append(verify(text, nums, target).reward)
            table["Format"] = [1.0] * count
            table["advantages"] = [rng.gauss(0, 1) for _ in range(count)]
            tables.write(json.dumps(table) + "\n")
            mean = statistics.fmean(table["CountdownReward"])
            row = {
                "reward": mean + 1,
                "rewards/CountdownReward/mean": mean,
                "kl": step / 4000,
                "reward_std": 0.4,
            }
            log.write(json.dumps(row | {"global_step/max_steps": f"{step}/{steps}"}) + "\n")


def measure(page: Path) -> tuple[dict[str, float], dict[str, float], int]:
    """Seconds and seconds of processor time by what was done, and the completions that the page
    holds.
    """
    times: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        with Chromium(timeout=300) as browser:
            before = browser.cpu()
            times.setdefault("open", []).append(browser.open(page, "listed"))
            cpu.setdefault("open", []).append(browser.cpu() - before)
            start = time.perf_counter()
            browser.wait("document.body.dataset.state === 'read'")
            times.setdefault("texts read", []).append(
                times["open"][-1] + time.perf_counter() - start
            )
            cpu.setdefault("texts read", []).append(browser.cpu() - before)
            if browser.messages:
                raise AssertionError(browser.messages)
    with Chromium(timeout=300) as browser:
        browser.open(page)
        for name, change in FILTERS.items():
            for _ in range(ROUNDS):
                browser.run("document.querySelector('#filter').reset()")
                time.sleep(0.3)
                before = browser.cpu()
                spent = browser.run(
                    f"""(async () => {{ const f = document.querySelector('#filter'); {change};
                    const start = performance.now(); await filter();
                    await new Promise(requestAnimationFrame); return (performance.now() - start) / 1000; }})()"""
                )
                times.setdefault(name, []).append(spent)
                cpu.setdefault(name, []).append(browser.cpu() - before)
        count = browser.run("count")
    medians = [
        {name: statistics.median(values) for name, values in each.items()} for each in (times, cpu)
    ]
    return medians[0], medians[1], count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--completions", type=int, default=200_000)
    parser.add_argument("--characters", type=int, default=1000)
    parser.add_argument(
        "--keep", type=Path, help="A folder for the run and its page, which then stay."
    )
    options = parser.parse_args()
    if found() is None:
        parser.error("there is no chromium on the PATH")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        make_run(folder, options.completions, options.characters)
        start = time.perf_counter()
        _, page = write_report(folder, folder / "report")
        written = time.perf_counter() - start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        size = page.stat().st_size / 1e6
        source = (folder / "completions.jsonl").stat().st_size / 1e6
        times, cpu, count = measure(page)
    print(f"{count:,} of {options.completions:,} completions")
    print(f"completions.jsonl {source:.0f} MB, report.html {size:.0f} MB")
    print(f"{'written':<34}{written:>8.1f} s, {memory:,.0f} MB of memory at most")
    load = os.getloadavg()[0]
    print(f"{f'load {load:.1f} on {os.cpu_count()} cores':<34}{'seconds':>10}{'of processor':>14}")
    for name, seconds in times.items():
        print(f"{name:<34}{seconds:>10.3f}{cpu[name]:>14.2f}")
    missed = [
        name
        for name in times
        if times[name] >= (OPEN if name == "open" else FILTER) and name != "texts read"
    ]
    figures = {
        "benchmark": "report",
        "completions": count,
        "page_mb": size,
        "written_s": written,
        "memory_mb": memory,
    }
    print(
        json.dumps(
            figures | {"seconds": times, "processor_seconds": cpu, "load": load, "missed": missed}
        )
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
