"""Where a reward's parameters come from: keyword, environment variable, ms-swift's flag, default,
in this order.
"""

import math
import sys
from dataclasses import dataclass, fields

import pytest

from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.code import CodeReward
from swift_rlvr.rewards.cosine import CosineLengthReward
from swift_rlvr.rewards.parameters import (
    BaseParameters,
    names_elsewhere,
    read_parameters,
    was_given,
)
from swift_rlvr.rewards.repetition_penalty import RepetitionPenaltyReward
from swift_rlvr.rewards.soft_overlong import SoftOverlongReward
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.settings import setting


@dataclass(frozen=True)
class Some(BaseParameters):
    count: int = setting(7, "how many", more_than=0, flag="some_count")
    share: float = setting(0.5, "how much", flag="some_share")
    strict: bool = setting(True, "whether")
    mode: str = setting("slow", "how")


@dataclass
class Arguments:
    """Flags as ms-swift declares them."""

    some_count: int | None = None
    some_share: float = -1.0
    max_completion_length: int = 256


def read(args=None, **given):
    return read_parameters(Some, "external_some", args, given)


def test_the_first_that_has_a_value_wins(monkeypatch):
    args = Arguments()
    assert read(args) == Some(count=7)
    args.some_count = 3
    assert read(args).count == 3
    monkeypatch.setenv("EXTERNAL_SOME_COUNT", "4")
    assert read(args).count == 4
    assert read(args, count=5).count == 5
    assert read(None).count == 4
    monkeypatch.delenv("EXTERNAL_SOME_COUNT")
    assert read(None).count == 7


def test_a_value_out_of_range_is_named_by_where_it_comes_from(monkeypatch):
    args = Arguments(some_count=-1)
    with pytest.raises(InputError, match="^--some_count: must be more than 0, got -1$"):
        read(args)
    monkeypatch.setenv("EXTERNAL_SOME_COUNT", "-2")
    with pytest.raises(
        InputError, match="^EXTERNAL_SOME_COUNT: must be more than 0, got -2$"
    ) as error:
        read(args)
    assert error.value.field == "EXTERNAL_SOME_COUNT"
    with pytest.raises(InputError, match="^external_some: count: must be more than 0, got -3$"):
        read(args, count=-3)
    monkeypatch.setenv("EXTERNAL_SOME_COUNT", "twelve")
    with pytest.raises(
        InputError, match="^EXTERNAL_SOME_COUNT: must be a whole number, got 'twelve'$"
    ):
        read(args)
    assert read(args, count=7).count == 7  # it is not looked at


def test_what_is_unknown_is_refused(monkeypatch):
    with pytest.raises(
        TypeError, match="^external_some has no setting 'cuont'; the nearest is count; it has tasks"
    ):
        read(cuont=3)
    # In the place of ms-swift's arguments they would be ignored.
    for args in ({"count": 3}, "math", 3):
        with pytest.raises(TypeError, match="^external_some: parameters are given by name, NAME="):
            read(args)
    with pytest.raises(TypeError, match=r'make the reward with REWARDS\["some"\]\(\)'):
        read(prompts=["?"], completions=["7"], solution=["7"])  # TRL's call
    monkeypatch.setenv("EXTERNAL_SOME_CUONT", "3")
    with pytest.raises(
        ValueError, match="no setting 'EXTERNAL_SOME_CUONT'; the nearest is EXTERNAL_SOME_COUNT"
    ):
        read()


@pytest.mark.parametrize(
    ("reward", "theirs", "ours"),
    [
        (CosineLengthReward, "min_value_wrong", "min_len_value_wrong"),
        (CosineLengthReward, "max_value_wrong", "max_len_value_wrong"),
        # the nearest name is the opposite one
        (CosineLengthReward, "min_value_correct", "max_len_value_correct"),
        (CosineLengthReward, "max_value_correct", "min_len_value_correct"),
        (SoftOverlongReward, "soft_punish_cache", "cache_length"),
        (SoftOverlongReward, "max_completion_len", "max_length"),
        (RepetitionPenaltyReward, "ngram_size", "n_grams"),
    ],
)
def test_names_of_other_libraries_are_answered_with_ours(monkeypatch, reward, theirs, ours):
    with pytest.raises(TypeError, match=f"; (open-r1|TRL)'s {theirs} is {ours} here; it has"):
        reward(**{theirs: 0.5})
    prefix = f"{reward.name}_".upper()
    monkeypatch.setenv(f"{prefix}{theirs.upper()}", "0.5")
    with pytest.raises(InputError, match=f"s {theirs} is {prefix}{ours.upper()} here"):
        reward()


def test_open_r1s_cosine_under_our_names_is_open_r1s():
    """open-r1's minimum and maximum are those of the value: with a right answer its maximum is
    that of length 0 (src/open_r1/rewards.py, get_cosine_scaled_reward).
    """
    theirs = {
        "min_value_wrong": -1.0,
        "max_value_wrong": -0.5,
        "min_value_correct": 0.5,
        "max_value_correct": 1.0,
    }
    names = names_elsewhere(CosineLengthReward.Parameters)
    ours = {names[name][1].name: value for name, value in theirs.items()}
    reward = CosineLengthReward(
        accuracy="external_accuracy", max_len=100, unit="characters", **ours
    )
    right, wrong = "<answer>7</answer>", "<answer>8</answer>"
    for length in (18, 40, 99, 100):
        wave = 0.5 * (1 + math.cos(math.pi * length / 100))
        expected = [0.5 + (1.0 - 0.5) * wave, -0.5 + (-1.0 + 0.5) * wave]
        texts = [right.rjust(length), wrong.rjust(length)]
        assert reward(texts, solution=["7"] * 2) == pytest.approx(expected)


def test_a_column_of_another_name_is_pointed_out():
    with pytest.raises(
        ValueError,
        match="the columns present are 'verification_info'; rename 'verification_info' to",
    ):
        CodeReward()(["x"], verification_info=[{"language": "python"}])


def test_variables_of_other_rewards_are_left_alone(monkeypatch):
    monkeypatch.setenv("EXTERNAL_SOMETHING_CUONT", "3")
    monkeypatch.setenv("EXTERNAL_SOME_OTHER_SIZE", "3")
    monkeypatch.setenv("EXTERNAL_SOME_COUNT", "3")
    names = ["external_some", "external_some_other", "format"]
    assert read_parameters(Some, "external_some", other_names=names).count == 3
    with pytest.raises(ValueError, match="no setting 'EXTERNAL_SOME_OTHER_SIZE'"):
        read_parameters(Some, "external_some", other_names=["external_some"])


def test_a_flag_that_is_not_written_and_has_its_default_was_not_given():
    assert not was_given(Arguments(), "some_share")
    assert read(Arguments()).share == 0.5
    # A resumed run has its flags from a checkpoint, not from the command line.
    assert was_given(Arguments(some_share=-2.0), "some_share")
    assert read(Arguments(some_share=-2.0)).share == -2.0


@pytest.mark.parametrize("words", (["--some_share", "-1.0"], ["--some-share=-1.0"]))
def test_a_flag_that_repeats_ms_swifts_default_counts(monkeypatch, words):
    """Its default is not ours: who writes it wants it."""
    monkeypatch.setattr(sys, "argv", ["rlhf.py", *words])
    assert was_given(Arguments(), "some_share")
    assert read(Arguments()).share == -1.0


def test_another_flag_with_the_same_beginning_is_another(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["rlhf.py", "--some_share_of_it", "-1.0"])
    assert not was_given(Arguments(), "some_share")


def test_a_length_that_ms_swift_fills_in_was_not_given():
    assert not was_given(Arguments(some_count=256), "some_count")
    assert was_given(Arguments(some_count=255), "some_count")


@pytest.mark.parametrize(
    "args", [None, object(), type("Other", (), {"some_count": 3})()], ids=["None", "object", "no"]
)
def test_arguments_that_declare_no_flags_give_none(args):
    assert read(args) == Some()


# --- every reward of the package, and ms-swift's own arguments


@pytest.mark.parametrize("kind", REWARDS.values(), ids=lambda kind: kind.__name__)
def test_every_parameter_says_what_it_means_and_has_a_default_of_its_type(kind):
    known = {"accuracy": "external_countdown"} if kind is CosineLengthReward else {}
    for each in fields(kind.Parameters):
        default = known.get(each.name, each.default)
        given = read_parameters(
            kind.Parameters, kind.name, None, {**known, each.name: default}, environment={}
        )
        assert getattr(given, each.name) == default and type(getattr(given, each.name)) is type(
            default
        )
        assert each.metadata["help"]


@pytest.mark.slow  # it imports ms-swift
def test_every_flag_is_one_of_ms_swifts():
    mixin = pytest.importorskip("swift.rlhf_trainers.args_mixin", reason="needs the extra [train]")
    theirs = {each.name for each in fields(mixin.GRPOArgumentsMixin)}
    ours = {
        each.metadata.get("flag") for kind in REWARDS.values() for each in fields(kind.Parameters)
    } - {None}
    assert len(ours) >= 9
    assert ours <= theirs


@pytest.fixture
def training(tmp_path):
    """ms-swift's arguments as its trainer hands them to a reward."""
    trainers = pytest.importorskip("swift.rlhf_trainers", reason="needs the extra [train]")
    return lambda **flags: trainers.GRPOConfig(
        output_dir=str(tmp_path), bf16=False, use_cpu=True, **flags
    )


@pytest.mark.slow  # it imports ms-swift
def test_ms_swifts_defaults_do_not_replace_ours(training):
    args = training(max_completion_length=300)
    assert args.cosine_max_len == 300  # filled in
    assert RepetitionPenaltyReward(args).parameters == RepetitionPenaltyReward().parameters
    countdown = {"accuracy": "external_countdown"}
    assert (
        CosineLengthReward(args, **countdown).parameters
        == CosineLengthReward(**countdown).parameters
    )
    assert (
        SoftOverlongReward(args).parameters
        == SoftOverlongReward(max_length=300, cache_length=60).parameters
    )


@pytest.mark.slow  # it imports ms-swift
def test_ms_swifts_flags_are_taken(training):
    args = training(
        cosine_min_len_value_wrong=-0.7,
        cosine_max_len_value_wrong=-0.3,
        cosine_min_len_value_correct=2.0,
        cosine_max_len_value_correct=1.5,
        cosine_max_len=400,
        repetition_n_grams=5,
        soft_max_length=200,
        soft_cache_length=50,
    )
    cosine = CosineLengthReward(args, accuracy="external_countdown").parameters
    assert (cosine.min_len_value_wrong, cosine.max_len_value_wrong) == (-0.7, -0.3)
    assert (cosine.min_len_value_correct, cosine.max_len_value_correct) == (2.0, 1.5)
    assert cosine.max_len == 400
    soft = SoftOverlongReward(args).parameters
    assert (soft.max_length, soft.cache_length) == (200, 50)
    assert RepetitionPenaltyReward(args).parameters.n_grams == 5
    assert RepetitionPenaltyReward(args).parameters.max_penalty == -0.1
    assert (
        CosineLengthReward(args, accuracy="external_countdown", max_len=9).parameters.max_len == 9
    )
