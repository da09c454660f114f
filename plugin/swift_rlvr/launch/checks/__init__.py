"""What `swift-rlvr doctor` looks at, by subject. A check takes a `Launch`, gives results, and changes nothing."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from swift_rlvr.launch.estimate import Estimate
from swift_rlvr.launch.parse_arguments import Parsed
from swift_rlvr.launch.plan import Plan
from swift_rlvr.recipes import as_list

Status = Literal["passed", "warning", "failed"]


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check. remedy: what to do, empty where it passed."""

    status: Status
    name: str
    message: str
    remedy: str = ""


def passed(name: str, message: str) -> CheckResult:
    """The result of a check that found nothing wrong."""
    return CheckResult("passed", name, message)


def warning(name: str, message: str, remedy: str) -> CheckResult:
    """The result of a check that found what may be meant."""
    return CheckResult("warning", name, message, remedy)


def failed(name: str, message: str, remedy: str) -> CheckResult:
    """The result of a check that found what cannot work."""
    return CheckResult("failed", name, message, remedy)


def judged(name: str, estimate: Estimate, remedy: str) -> CheckResult:
    """An estimate as a result: failed where the run does not fit, a warning where it is tight."""
    if estimate.fits and not estimate.tight:
        return passed(name, estimate.text)
    return CheckResult("warning" if estimate.fits else "failed", name, estimate.text, remedy)


@dataclass(frozen=True)
class Launch:
    """A plan to check. parsed: what ms-swift makes of its arguments, for the checks that need it."""

    plan: Plan
    parsed: Parsed = Parsed()

    @property
    def settings(self) -> dict[str, Any]:
        """What ms-swift's trainer gets."""
        return self.plan.settings

    def listed(self, name: str) -> list[str]:
        """A setting that takes one value or several."""
        return [str(value) for value in as_list(self.settings.get(name))]

    @cached_property
    def environ(self) -> Mapping[str, str]:
        """The variables that the trainer will have."""
        return {**os.environ, **self.plan.trainer.env}

    @property
    def use_hf(self) -> bool:
        """Whether the hub is Hugging Face, and not ModelScope."""
        value = self.settings.get("use_hf", self.environ.get("USE_HF", "0"))
        return str(value).lower() in ("1", "true")

    @property
    def hub(self) -> str:
        """The hub's name."""
        return "Hugging Face" if self.use_hf else "ModelScope"
