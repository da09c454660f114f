"""Whether the rollout server samples with the trainer's weights, by what the trainer logs of each step."""

from pathlib import Path
from statistics import median

from swift_rlvr.utils.jsonl import read_jsonl

# A lost update of the weights shows in the mean over tokens of r - log(r) - 1, r being the ratio of
# the trainer's probability of a sampled token to the server's. With equal weights it is rounding:
# below 1e-8 in float32 on a CPU (measured), 0.001 to 0.015 in bfloat16 elsewhere, and more with
# FP8, experts or asynchronous sampling. Without updates it drifts away.
K3_KL = "rollout_correction/k3_kl"
# The limit, or so many times the median of the first logged steps.
K3_LIMIT, K3_GROWTH, K3_FIRST = 0.05, 10, 3
# So many logged steps in a row above the limit are a warning, and the end of the run.
K3_WARNING, K3_STEPS = 3, 6


class StaleWeights:
    """Counts the logged steps in a row with K3_KL above the limit. log: of the run, which may go on from
    a checkpoint, so that its first steps are in there.
    """

    def __init__(self, log: Path):
        self.first: list[float] = []
        self.high_steps = 0
        if not log.is_file():
            return
        # unfinished: another node may be writing the last line.
        for _, row in read_jsonl(log, unfinished=str):
            if row.get(K3_KL) is not None:
                self.first.append(row[K3_KL])
            if len(self.first) == K3_FIRST:
                break

    def add(self, kl: float) -> str:
        """Count a step. Returns its value beside that of the first steps, for people."""
        limit = K3_LIMIT
        if len(self.first) < K3_FIRST:
            self.first.append(kl)
        else:
            limit = max(limit, K3_GROWTH * median(self.first))
        self.high_steps = self.high_steps + 1 if kl > limit else 0
        return f"{K3_KL} is {kl:.2g}, after {median(self.first):.2g} in the first steps"
