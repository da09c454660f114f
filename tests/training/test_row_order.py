"""A run that is resumed in a later epoch takes its rows in the order of the run that was not stopped."""

import pytest

pytest.importorskip("trl", reason="needs the extra [trl]")
from accelerate import skip_first_batches
from accelerate.data_loader import prepare_data_loader
from torch.utils.data import DataLoader

from swift_rlvr.training.row_order import go_on_with_order

pytestmark = pytest.mark.slow
ROWS, PROMPTS, GENERATIONS, ACCUMULATION = 13, 4, 2, 2
STEPS = ROWS // PROMPTS  # in an epoch; a row is left over


def dataloader(ranks: int, rank: int, seed: int = 7):
    """As both trainers make it: a batch is what a rank samples at once, for each step of accumulation."""
    from trl.trainer.utils import RepeatSampler

    rows = list(range(ROWS))
    sampler = RepeatSampler(rows, GENERATIONS, PROMPTS, ACCUMULATION, seed=seed)
    size = PROMPTS * GENERATIONS // ranks
    made = DataLoader(rows, batch_size=size, sampler=sampler, collate_fn=list, drop_last=True)
    return prepare_data_loader(made, num_processes=ranks, process_index=rank, put_on_device=False)


def trained(loader, first: int, last: int) -> list[list[int]]:
    """The rows of each step, as transformers goes through the epochs from the step `first` on."""
    steps: list[list[int]] = []
    while first + len(steps) < last:
        skipped = (first + len(steps)) % STEPS
        batches = list(skip_first_batches(loader, skipped * ACCUMULATION) if skipped else loader)
        steps += batches[::ACCUMULATION]
    return steps[: last - first]


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("stopped", [0, 1, STEPS, STEPS + 1, 3 * STEPS - 1])
def test_no_row_is_trained_twice_or_left_out_in_the_epoch_of_a_resume(ranks, stopped):
    last = 3 * STEPS
    for rank in range(ranks):
        resumed = dataloader(ranks, rank)
        go_on_with_order(resumed, stopped, ACCUMULATION)
        straight = trained(dataloader(ranks, rank), 0, last)
        assert trained(resumed, stopped, last) == straight[stopped:]
