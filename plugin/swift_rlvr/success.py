"""Which reward decides whether a completion is right: the one place that says so.

A reward declares its `role`: a verifier judges the outcome, a format reward the form, and a shaping
reward length, style and the like. A task names its verifier. A completion is a **success** where the
verifier of its row's task pays its full reward; partial credit is not enough. It is **strict** where
the format rewards of the run are paid in full as well. Where the verifier cannot grade the row, both
are None, and the completion counts for nothing.

Everything that shows, logs, draws, selects or compares by success asks `Judges`. This is plain
Python. The only rewards that it knows by name are those of KNOWN_ROLES, of other packages, which
cannot declare a role.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from swift_rlvr.utils.errors import InputError

VERIFIER = "verifier"
FORMAT = "format"
SHAPING = "shaping"
ROLES = (VERIFIER, FORMAT, SHAPING)
# An environment variable such as "MyReward=verifier,other_reward=shaping", by the names that are
# logged.
ROLES_VARIABLE = "SWIFT_RLVR_ROLES"
FULL = 1.0
# The reason of a completion that passes the tests that it may have seen, and fails those that were
# added to the row: it knows the tests by heart, or solves only a part of the task.
MEMORISED = "passes only the visible tests"
# The reason of code that passes its tests only in one process with them.
ONLY_TOGETHER = "passes only together with its tests"
# The reason of a completion on which a function raised an error, which then earns nothing.
RAISED = "raised an error"

# Rewards of ms-swift and TRL, by the names that they are logged under and those in ms-swift's
# `--reward_funcs`.
KNOWN_ROLES = {
    "accuracy": VERIFIER,
    "MathAccuracy": VERIFIER,
    "math": VERIFIER,
    "MathORM": VERIFIER,
    "toolbench": VERIFIER,
    "ReactORM": VERIFIER,
    "accuracy_reward": VERIFIER,
    "reasoning_accuracy_reward": VERIFIER,
    "gym_reward": VERIFIER,
    "CountdownORM": VERIFIER,
    "format": FORMAT,
    "Format": FORMAT,
    "react_format": FORMAT,
    "ReActFormat": FORMAT,
    "think_format_reward": FORMAT,
    "cosine": SHAPING,
    "CosineReward": SHAPING,
    "cosine_scaled_reward": SHAPING,
    "repetition": SHAPING,
    "RepetitionPenalty": SHAPING,
    "repetition_penalty_reward": SHAPING,
    "soft_overlong": SHAPING,
    "SoftOverlong": SHAPING,
    "soft_overlong_punishment_reward": SHAPING,
}


def shares_of(reason: str, figures: Mapping[str, float]) -> dict[str, float]:
    """The shares of completions with a reason, among the figures of a step: by the names of the
    rewards, without those that gave it to none.

    >>> shares_of(RAISED, {"reasons/Short/raised_an_error": 0.25, "reasons/Long/raised_an_error": 0.0})
    {'Short': 0.25}
    """
    suffix = f"/{reason.replace(' ', '_')}"
    shares = {}
    for name, share in figures.items():
        if share and name.startswith("reasons/") and name.endswith(suffix):
            shares[name.removeprefix("reasons/").removesuffix(suffix)] = share
    return shares


class Judgement(NamedTuple):
    """Whether a completion is right, right in the right form, and in the right form; None where
    that is unknown.
    """

    success: bool | None
    strict: bool | None
    format: bool | None


def logged_name(reward: Any) -> str:
    """The name that ms-swift and TRL log a reward under: the function's, or the class's."""
    return str(getattr(reward, "__name__", type(reward).__name__))


def key_of(reward: Any) -> str:
    """The name of a reward in records: the one in the registry for rewards of this package, else
    the logged one.
    """
    return str(getattr(reward, "name", logged_name(reward)))


def role_of(reward: Any) -> str | None:
    """The role of a reward, or of the name of a reward that is not ours; None if it is unknown.

    What the variable SWIFT_RLVR_ROLES says comes first, then the attribute `role`, then the table
    KNOWN_ROLES. InputError for a role that does not exist.

    >>> role_of("Format"), role_of("my_reward"), role_of(type("Mine", (), {"role": "verifier"})())
    ('format', None, 'verifier')
    """
    names = (reward,) if isinstance(reward, str) else (logged_name(reward), key_of(reward))
    role = _role_by_name(names, roles_in_environment())
    if role is None:
        role = getattr(reward, "role", None)
    if role is None:
        role = _role_by_name(names, KNOWN_ROLES)
    if role is not None and role not in ROLES:
        raise InputError(f"must be one of {', '.join(ROLES)}, got {role!r}", f"role of {names[0]}")
    return role


def _role_by_name(names: Iterable[str], roles: Mapping[str, str]) -> str | None:
    for name in names:
        if name in roles:
            return roles[name]
    return None


def roles_in_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The roles that SWIFT_RLVR_ROLES gives to rewards that cannot declare one; InputError if it
    is malformed.

    >>> roles_in_environment({"SWIFT_RLVR_ROLES": "MyReward=verifier, style=shaping"})
    {'MyReward': 'verifier', 'style': 'shaping'}
    """
    if environ is None:
        environ = os.environ
    roles = {}
    for part in environ.get(ROLES_VARIABLE, "").split(","):
        part = part.strip()
        if not part:
            continue
        name, _, role = part.partition("=")
        if not name or role not in ROLES:
            raise InputError(
                f"must be NAME=ROLE with commas, a role one of {', '.join(ROLES)}; got {part!r}",
                ROLES_VARIABLE,
            )
        roles[name] = role
    return roles


@dataclass(frozen=True)
class Judge:
    """What is known about a reward of a run.

    role: None if it is unknown. logged: its name in the log. full: what it pays at most.
    neutral: what it pays for a row that it cannot grade, if not None; such a completion counts for
    nothing.
    """

    role: str | None
    logged: str
    full: float = FULL
    neutral: float | None = None


class Judges:
    """The rewards of a run by their keys in records, see `key_of`.

    >>> judges = Judges({"external_countdown": Judge(VERIFIER, "CountdownReward"), "Format": Judge(FORMAT, "Format")})
    >>> judges.of({"Format": 1.0, "external_countdown": 0.5}, verifier="external_countdown")
    Judgement(success=False, strict=False, format=True)
    >>> judges.of({"Format": 1.0, "external_countdown": None}, verifier="external_countdown")
    Judgement(success=None, strict=None, format=True)
    """

    def __init__(self, judges: Mapping[str, Judge]):
        self.judges = dict(judges)
        self._formats = [key for key, judge in self.judges.items() if judge.role == FORMAT]
        self._verifiers = [key for key, judge in self.judges.items() if judge.role == VERIFIER]

    @classmethod
    def from_rewards(cls, rewards: Iterable[Any]) -> "Judges":
        """The judges of rewards, which are functions or objects. The attribute `full_reward` says
        what a reward pays at most.
        """
        judges = {}
        for reward in rewards:
            judges[key_of(reward)] = Judge(
                role=role_of(reward),
                logged=logged_name(reward),
                full=getattr(reward, "full_reward", FULL),
                neutral=getattr(reward, "neutral", None),
            )
        return cls(judges)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Judges":
        """The judges that `as_json` has written; InputError if it is something else."""
        judges = {}
        try:
            for key, judge in value.items():
                # Older runs also say whether a reward asked a language model.
                known = {name: each for name, each in judge.items() if name != "asks_model"}
                judges[key] = Judge(**known)
            return cls(judges)
        except (TypeError, AttributeError) as error:
            raise InputError(
                f"expected role, logged and full of each reward, got {value!r:.80}"
            ) from error

    def as_json(self) -> dict[str, Any]:
        """By key, what there is to know of each reward."""
        return {key: vars(judge) for key, judge in self.judges.items()}

    @property
    def has_verifier(self) -> bool:
        """Whether one of them judges the outcome, so that there is a success."""
        return bool(self._verifiers)

    def logged_as(self, key: str) -> str:
        """The name that a reward has in the log; the key itself where that is unknown."""
        return self.judges[key].logged if key in self.judges else key

    def of(
        self,
        rewards: Mapping[str, float | None],
        verifier: str | None = None,
    ) -> Judgement:
        """The judgement on one completion, whatever the order of its rewards.

        The verifier of the row's task decides. Where it is unknown or not in the run, all verifiers
        decide that have graded the completion. So do the format rewards that have graded it, since
        tasks may have different ones.

        rewards: by key; None or NaN where one did not grade it. verifier: the key of that of the
        row's task.
        """
        paid = self._paid_in_full(self._verifiers, rewards)
        if verifier in self._verifiers:
            success = paid.get(verifier)
        else:
            success = all(paid.values()) if paid else None
        formats = self._paid_in_full(self._formats, rewards)
        format = all(formats.values()) if formats else None
        strict = None
        if success is not None and format is not None:
            strict = success and format
        return Judgement(success, strict, format)

    def _paid_in_full(
        self, keys: Iterable[str], rewards: Mapping[str, float | None]
    ) -> dict[str, bool]:
        """Whether each of these rewards is paid in full; without those that did not grade."""
        paid = {}
        for key in keys:
            judge = self.judges[key]
            value = rewards.get(key)
            # NaN, which is not equal to itself, is logged where a reward returned None.
            if value is None or value != value:
                continue
            if judge.role == VERIFIER and value == judge.neutral:
                continue
            paid[key] = value >= judge.full
        return paid
