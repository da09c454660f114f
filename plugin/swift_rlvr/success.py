"""Which reward decides whether a completion is right: the one place that says so.

A reward declares its `role`: a verifier judges the outcome, a format reward the form, a shaping
reward length, style and the like. A task names its verifier. A completion is a **success** where
the verifier of its row's task pays its full reward; partial credit is none. It is **strict** where
the format rewards of the run are paid in full as well. Where the verifier cannot grade the row,
both are None, and the completion counts for nothing.

Everything that shows, logs, draws, selects or compares by success asks `Judges`. Plain Python, no
names of classes but those in KNOWN_ROLES: rewards of others that cannot declare a role.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from swift_rlvr.utils.errors import InputError

VERIFIER, FORMAT, SHAPING = "verifier", "format", "shaping"
ROLES = (VERIFIER, FORMAT, SHAPING)
# MyReward=verifier,other_reward=shaping; by the name that is logged
ROLES_VARIABLE = "SWIFT_RLVR_ROLES"
FULL = 1.0

# Rewards of ms-swift and TRL, by the names that they are logged under and those in ms-swift's
# `--reward_funcs`.
KNOWN_ROLES = {
    **dict.fromkeys(
        ("MathAccuracy", "accuracy", "MathORM", "math", "ReactORM", "toolbench"), VERIFIER
    ),
    **dict.fromkeys(
        ("accuracy_reward", "reasoning_accuracy_reward", "gym_reward", "CountdownORM"), VERIFIER
    ),
    **dict.fromkeys(
        ("Format", "format", "ReActFormat", "react_format", "think_format_reward"), FORMAT
    ),
    **dict.fromkeys(("CosineReward", "cosine", "RepetitionPenalty", "repetition"), SHAPING),
    **dict.fromkeys(("SoftOverlong", "soft_overlong", "soft_overlong_punishment_reward"), SHAPING),
}


class Judgement(NamedTuple):
    """Of one completion: whether it is right, right in the right form, and in the right form; None
    where unknown.
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
    """The role of a reward, or of the name of one that is not ours; None where nothing is known of
    it.

    What the variable SWIFT_RLVR_ROLES says comes first, then the attribute `role`, then the table
    KNOWN_ROLES. InputError for a role that there is none of.

    >>> role_of("Format"), role_of("my_reward"), role_of(type("Mine", (), {"role": "verifier"})())
    ('format', None, 'verifier')
    """
    names = (reward,) if isinstance(reward, str) else (logged_name(reward), key_of(reward))
    said = roles_in_environment()
    role = next((said[name] for name in names if name in said), None) or getattr(
        reward, "role", None
    )
    if role is None:
        role = next((KNOWN_ROLES[name] for name in names if name in KNOWN_ROLES), None)
    if role is not None and role not in ROLES:
        raise InputError(f"must be one of {', '.join(ROLES)}, got {role!r}", f"role of {names[0]}")
    return role


def roles_in_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The roles that SWIFT_RLVR_ROLES gives to rewards that cannot declare one; InputError where it
    is malformed.

    >>> roles_in_environment({"SWIFT_RLVR_ROLES": "MyReward=verifier, style=shaping"})
    {'MyReward': 'verifier', 'style': 'shaping'}
    """
    text = (os.environ if environ is None else environ).get(ROLES_VARIABLE, "")
    roles = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, equals, role = part.partition("=")
        if not equals or not name or role not in ROLES:
            raise InputError(
                f"must be NAME=ROLE with commas, a role one of {', '.join(ROLES)}; got {part!r}",
                ROLES_VARIABLE,
            )
        roles[name] = role
    return roles


@dataclass(frozen=True)
class Judge:
    """A reward of a run. role: None where it is unknown. logged: its name in the log. full: what it
    pays at most.

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
        """Those of rewards, which are functions or objects; `full_reward` of one says what it pays
        at most.
        """
        judges = {}
        for reward in rewards:
            full, neutral = getattr(reward, "full_reward", FULL), getattr(reward, "neutral", None)
            judges[key_of(reward)] = Judge(role_of(reward), logged_name(reward), full, neutral)
        return cls(judges)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Judges":
        """What `as_json` has given; InputError where it is something else."""
        try:
            return cls({key: Judge(**each) for key, each in value.items()})
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

    def of(self, rewards: Mapping[str, float | None], verifier: str | None = None) -> Judgement:
        """The judgement on one completion, whatever the order of its rewards.

        rewards: by key; None or NaN where one did not grade it. verifier: that of the row's task,
        which decides. Where it is unknown or not in the run, all verifiers decide that have graded
        the completion. So do the format rewards that have graded it: tasks may have different ones.
        """
        paid = {}  # by verifier that has graded the completion, whether in full
        for key in self._verifiers:
            value = rewards.get(key)
            if value is not None and value == value and value != self.judges[key].neutral:
                paid[key] = value >= self.judges[key].full
        success = all(paid.values()) if paid else None
        if verifier in self._verifiers:
            success = paid.get(verifier)
        values = {
            key: value
            for key in self._formats
            if (value := rewards.get(key)) is not None and value == value
        }
        format = (
            all(value >= self.judges[key].full for key, value in values.items()) if values else None
        )
        return Judgement(
            success, None if success is None or format is None else success and format, format
        )
