"""`swift-rlvr rewards`: every reward, and all there is to know of one, as the code has it."""

from dataclasses import fields

import pytest

from commands import ran, refused
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.parameters import variable


def test_all_rewards_are_listed_with_their_roles():
    lines = ran("rewards", columns=300).splitlines()
    assert [line for line in lines if line.startswith("external_")] == [
        f"{n} ({r.role})" for n, r in REWARDS.items()
    ]
    shown = [
        line.split(": ")[1].split(", ")
        for line in map(str.strip, lines)
        if line.startswith("Columns: ")
    ]
    assert all(
        set(columns) >= {*reward.columns}
        for columns, reward in zip(shown, REWARDS.values(), strict=True)
    )
    assert max(map(len, ran("rewards").splitlines())) <= 80


@pytest.mark.parametrize("name", REWARDS)
def test_one_is_shown_with_its_reasons_and_parameters(name):
    reward, text = REWARDS[name], ran("rewards", name.removeprefix("external_"), columns=400)
    assert f"Reasons: {', '.join(reward.reasons)}\n" in text
    for each in fields(reward.Parameters):
        assert f"\n{each.name}: " in text
        assert variable(name, each.name) in text
        assert each.metadata["help"].replace("`", "") in text


def test_what_a_parameter_may_be_and_its_flag():
    text = ran("rewards", "cosine", columns=400)
    assert "\nmax_len: int, at least 1; default 1000\n" in text
    assert "\nunit: str, one of characters, tokens; default tokens\n" in text
    names = "in ms-swift --cosine_min_len_value_correct, in open-r1 max_value_correct"
    assert names in text
    assert "NAME: there is no reward 'luck'; there are external_cou" in refused("rewards", "luck")
    message = refused("rewards", "repetition")
    assert "no reward 'repetition'; did you mean external_repetition_penalty?" in message
