"""What `swift-rlvr doctor` looks at, by subject. A check takes a `Case` and yields findings; it changes nothing."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from swift_rlvr.launch.plan import Plan
from swift_rlvr.launch.sizes import setting_list

Status = Literal["passed", "warning", "failed"]


@dataclass(frozen=True)
class Finding:
    """The outcome of one check. remedy: what to do, empty where it passed. detail: more, for those who asked."""

    status: Status
    name: str
    message: str
    remedy: str = ""
    detail: str = ""


def passed(name: str, message: str, detail: str = "") -> Finding:
    return Finding("passed", name, message, "", detail)


def warning(name: str, message: str, remedy: str) -> Finding:
    return Finding("warning", name, message, remedy)


def failed(name: str, message: str, remedy: str) -> Finding:
    return Finding("failed", name, message, remedy)


@dataclass(frozen=True)
class Case:
    """A plan to check. fast: only what takes no more than a second or two together, and no import of torch."""

    plan: Plan
    fast: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        return self.plan.settings

    def listed(self, name: str) -> list[str]:
        return [str(value) for value in setting_list(self.settings, name)]

    @cached_property
    def environ(self) -> Mapping[str, str]:
        """The variables that the trainer will have."""
        return {**os.environ, **self.plan.trainer.env}

    @property
    def use_hf(self) -> bool:
        value = self.settings.get("use_hf", self.environ.get("USE_HF", "0"))
        return str(value).lower() in ("1", "true")

    @property
    def hub(self) -> str:
        return "Hugging Face" if self.use_hf else "ModelScope"
