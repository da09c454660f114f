"""The Countdown reward: 1.0 for an answer that makes the target from the numbers, each used exactly once."""

from swift_rlvr.countdown import check_notation, grade_all
from swift_rlvr.rewards.base import Reward


class CountdownReward(Reward):
    """Reward 1.0 for a right Countdown answer, 0.0 for a wrong one, None where nums or target cannot be read.

    What counts as right is said in `swift_rlvr.countdown`, and so are the accepted forms of the two columns.

    Args:
        args: ms-swift's training arguments; not used.
        notation: ``"lenient"`` or ``"strict"``, see `swift_rlvr.countdown.verify`.

    >>> reward = CountdownReward()
    >>> reward(["<answer>1 + 2 * 3</answer>", "<answer>1 + 2 + 4</answer>"], nums=[[1, 2, 3]] * 2, target=[7, 7])
    [1.0, 0.0]
    """

    columns = ("nums", "target")

    def __init__(self, args: object = None, notation: str = "lenient"):
        super().__init__(args)
        self.notation = check_notation(notation)

    def grade_all(self, texts: list[str | None], nums: list, target: list) -> list[float | None]:
        return grade_all(texts, nums, target, notation=self.notation)
