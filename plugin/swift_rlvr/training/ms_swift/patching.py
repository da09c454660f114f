"""Replaces attributes of other packages; a missing one is an error that names the version it was
checked with.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pkgutil import resolve_name
from typing import Any

Make = Callable[[Any], Any]
# What this release was tested with; the lock files of scripts/requirements pin the same.
CHECKED = {
    "ms-swift": "4.6.0",
    "vllm": "0.32.0",
    "torch": "2.13.0",
    "accelerate": "1.15.0",
    "deepspeed": "0.19.8",
    "transformers": "5.19.0",
    "trl": "0.29.1",
}
CHECKED_WITH_CUDA_12 = CHECKED | {"vllm": "0.19.1", "torch": "2.10.0"}


class PatchError(RuntimeError):
    """An installed package lacks the attribute that a patch replaces."""


@dataclass(frozen=True)
class Patch:
    """One attribute to replace."""

    # the distribution that owns the attribute; `CHECKED` has the version that the patch was checked
    # with
    package: str
    target: str  # module:attribute or module:Class.attribute
    make: Make  # takes the original and returns its replacement
    reason: str  # what goes wrong without it


def installed_version(package: str) -> str:
    """The version of a package, or of its build for CPUs, which is another distribution."""
    try:
        return version(package)
    except PackageNotFoundError:
        return version(f"{package}-cpu")


def is_within(module: str, package: str | None) -> bool:
    """Whether a module is this package or lies in it.

    >>> is_within("swift.rewards.orm", "swift.rewards"), is_within("swift.rewards", "torchvision")
    (True, False)
    """
    return package is not None and f"{module}.".startswith(f"{package}.")


def first_cause(error: BaseException) -> str:
    """What the first of a chain of errors says; packages that load their parts late wrap it."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}"


def always(replacement: Any) -> Make:
    """A patch's `make` that does not look at the original."""
    return lambda original: replacement


def _import(module: str, distribution: str) -> None:
    """Import a module. ModuleNotFoundError if the package does not have it.

    Raises:
        PatchError: the module is there, and something in it fails, such as torchvision's operators
        beside a torch for CPUs. Another version of the package would not mend it.
    """
    try:
        import_module(module)
    except Exception as error:  # whatever the packages below it raise
        if isinstance(error, ModuleNotFoundError) and is_within(module, error.name):
            raise
        raise PatchError(
            f"{module} of {distribution} cannot be imported: {first_cause(error)}"
        ) from error


def apply_patches(patches: tuple[Patch, ...]) -> None:
    """Replace every target; a second call changes nothing. Raises PatchError if a package lacks
    its target.

    >>> import sys, types
    >>> sys.modules["toy"] = types.ModuleType("toy")
    >>> apply_patches((Patch("torch", "toy:answer", lambda original: 42, "toy"),))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    swift_rlvr.training.ms_swift.patching.PatchError: torch ... has no toy:answer, which swift-rlvr replaces ...
    """
    for patch in patches:
        module, _, path = patch.target.partition(":")
        owner_path, _, attribute = path.rpartition(".")
        distribution = f"{patch.package} {installed_version(patch.package)}"
        try:
            _import(module, distribution)
            owner = resolve_name(f"{module}:{owner_path}")
            original = getattr(owner, attribute)
        except (ModuleNotFoundError, AttributeError) as error:
            checked = CHECKED[patch.package.removesuffix("-cpu")]
            raise PatchError(
                f"{distribution} has no {patch.target}, which swift-rlvr replaces "
                f"({patch.reason}). It was checked with {patch.package} {checked}: install that version."
            ) from error
        if getattr(original, "_swift_rlvr_patch", None) != patch.target:
            replacement = patch.make(original)
            replacement._swift_rlvr_patch = patch.target
            setattr(owner, attribute, replacement)
