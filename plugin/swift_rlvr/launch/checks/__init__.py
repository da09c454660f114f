"""What `swift-rlvr doctor` looks at, by subject. A check takes a `Launch`, gives results, and
changes nothing.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from swift_rlvr.evaluation.models import load_tokenizer
from swift_rlvr.evaluation.prompts import AskedRow
from swift_rlvr.launch.estimate import Estimate
from swift_rlvr.launch.parse_arguments import Parsed
from swift_rlvr.launch.plan import Plan
from swift_rlvr.training.ms_swift.first_rows import FirstRows
from swift_rlvr.utils.files import existing_folder


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check. remedy: what to do; empty if it passed."""

    status: Literal["passed", "warning", "failed"]
    name: str
    message: str
    remedy: str = ""


passed = partial(CheckResult, "passed")  # nothing is wrong
warning = partial(CheckResult, "warning")  # it may be meant
failed = partial(CheckResult, "failed")  # it cannot work


@dataclass(frozen=True)
class Launch:
    """A plan to check. parsed: what ms-swift makes of its arguments, for the checks that need that.
    read: the first rows of the datasets that ms-swift reads by itself, by their names. load_tokenizer:
    of the model in a folder.
    """

    plan: Plan
    parsed: Parsed = Parsed()
    read: Mapping[str, FirstRows] = field(default_factory=dict)
    load_tokenizer: Callable[[str], Any] = load_tokenizer

    @property
    def settings(self) -> dict[str, Any]:
        """What ms-swift's trainer gets."""
        return self.plan.settings

    def listed(self, name: str) -> list[str]:
        """A setting that takes one value or several."""
        return self.plan.grpo.listed(name)

    @cached_property
    def environ(self) -> Mapping[str, str]:
        """The variables that the trainer will have."""
        return {**os.environ, **self.plan.trainer.env}

    @cached_property
    def asked(self) -> list[AskedRow]:
        """The first rows of the datasets, as the trainer asks them: half a dozen checks look at them."""
        from swift_rlvr.launch.checks.rows import asked_rows

        return list(asked_rows(self))

    @property
    def use_hf(self) -> bool:
        """Whether the hub is Hugging Face, and not ModelScope."""
        value = self.settings.get("use_hf", self.environ.get("USE_HF"))
        return str(value).lower() in ("1", "true")

    @property
    def hub(self) -> str:
        """The hub's name."""
        return "Hugging Face" if self.use_hf else "ModelScope"


def last_folder(path: str | Path) -> str:
    """What to do about a path at which there is nothing."""
    if not Path(path).is_absolute():
        return f"relative paths count from {Path.cwd()}"
    return f"{existing_folder(Path(path).parent)} is the last folder of that path that exists"


Check = Callable[[Launch], Iterable[CheckResult]]


def judged(
    name: str,
    estimate: Callable[[Plan], Estimate],
    remedy: str,
    to_know: str,
    report: Callable[..., CheckResult] = failed,
) -> Check:
    """Make a check of an estimate.

    remedy: where the run does not fit. to_know: what to do where the estimate is not known. report: the
    result if the run does not fit; `warning` for an estimate that is rough.
    """

    def compare(launch: Launch) -> list[CheckResult]:
        result = estimate(launch.plan)
        if not result.fits:
            return [report(name, result.text, remedy)]
        if result.count is None:
            return [warning(name, f"not checked: {result.text}", to_know)]
        return [passed(name, result.text)]

    # By which a number that cannot be read is reported.
    compare.__name__ = name
    return compare
