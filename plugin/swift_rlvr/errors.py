"""The error for anything the user supplied that cannot be used."""

from importlib.util import find_spec


class InputError(ValueError):
    """A setting, column or file that cannot be used; the message says what is accepted.

    `field`, the setting or column to blame, stands in front of `problem` in ``str(error)``, so a command line can show
    its flag instead: ``f"--batch_size {error.problem}"``.
    """

    def __init__(self, problem: str, field: str | None = None):
        super().__init__(problem, field)
        self.problem, self.field = problem, field

    def __str__(self) -> str:
        return self.problem if self.field is None else f"{self.field} {self.problem}"


class NotInstalledError(InputError):
    """A package that comes with an extra of swift-rlvr is not installed."""


def require(package: str, extra: str, purpose: str) -> None:
    """NotInstalledError where a package that comes with an extra of swift-rlvr is missing; nothing is imported."""
    if find_spec(package) is None:
        name = package.replace("_", "-")
        raise NotInstalledError(f"{name} is not installed, and {purpose} needs it: pip install 'swift-rlvr[{extra}]'")


class DivergedError(RuntimeError):
    """Training has diverged: the loss, its gradient or the weights are no longer finite. The last checkpoint is kept.

    No mistake of the user, so no InputError: `swift-rlvr train` ends with status 3, not 2.
    """
