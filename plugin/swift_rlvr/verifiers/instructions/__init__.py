"""Constraints on how an answer is written, such as IFEval's, and whether an answer meets them.

`read_constraints` reads a row's, `Constraint.outcome` judges an `Answer`, and `contradictions` names
the pairs that no answer can meet. The checks are in `ifeval.py`, `ifbench.py` and
`ifbench_forms.py`, one function each.
"""

from swift_rlvr.verifiers.instructions.answer import Answer, distinct_own_words, enough_words
from swift_rlvr.verifiers.instructions.conflicts import contradictions
from swift_rlvr.verifiers.instructions.constraint import (
    KINDS,
    BadConstraint,
    Constraint,
    Outcome,
)
from swift_rlvr.verifiers.instructions.reading import BadConstraints, read_constraints

__all__ = [
    "KINDS",
    "Answer",
    "BadConstraint",
    "BadConstraints",
    "Constraint",
    "Outcome",
    "contradictions",
    "distinct_own_words",
    "enough_words",
    "read_constraints",
]
