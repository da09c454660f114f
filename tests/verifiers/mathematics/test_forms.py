"""How models write answers, class by class (`forms.jsonl`).

In each class stand forms that a person accepts, and their neighbours, which must not pay.
"""

import pytest

from swift_rlvr.verifiers.mathematics import Reason, grade
from verifiers.mathematics.tables import FORMS

SECTIONS = list(dict.fromkeys(case.section for case in FORMS))


@pytest.mark.parametrize(
    "case", FORMS, ids=[f"{number}-{case.section}" for number, case in enumerate(FORMS)]
)
def test_reward(case):
    verdict = grade(case.completion, case.gold)
    assert verdict.reward == case.reward, verdict
    assert verdict.reason is not Reason.ERROR


def test_every_class_has_forms_that_pay_and_neighbours():
    assert len(FORMS) >= 561
    for section in SECTIONS:
        cases = [case for case in FORMS if case.section == section]
        rewards = [case.reward for case in cases]
        assert rewards.count(0.0) >= 5, section
        # nothing that cheats or states several values pays
        if "cheat" not in section and "several" not in section:
            assert rewards.count(1.0) >= 5, section
        assert len(cases) == len(set(cases)), section
