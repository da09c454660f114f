r"""Is the final answer of a completion mathematically equal to the gold?

`verifier.py` has the rules and puts the steps together:

- `notation.py` brings text and LaTeX into one plain form;
- `reading.py` reads a value from it, with `brackets.py`, `plain_numbers.py`, `units.py` and
  `parser.py`, and `sentences.py` finds the value that a sentence states;
- `values.py` has the kinds of values;
- `comparison.py` compares two of them: with `expressions.py` for formulas, with `lists.py` for what
  the order and the brackets of several values say, with `sets.py` for intervals, and with
  `families.py` for solutions with a parameter;
- `dates.py` compares dates and times of day;
- `in_digits.py` writes in digits and signs what is written in words;
- `numeric.py` computes what `parser.py` reads, with the operations of `functions.py`.

Beside these, `formulas.py` compares formulas in Python's notation, and `questions.py` says whether a
question asks for an order.

The folder can be used alone: of this project it needs `verifiers/statements.py`, what
that imports (`answers.py`, `answer_forms.py`, `languages.py`, `thinking.py`), and nothing else.

>>> [str(grade(rf"\boxed{{{answer}}}", r"\frac{1}{2}").reason) for answer in ("0.5", "50%", "2")]
['correct', 'correct', 'wrong answer']
"""

from swift_rlvr.verifiers.mathematics.questions import asks_for_order
from swift_rlvr.verifiers.mathematics.reading import why_unreadable
from swift_rlvr.verifiers.mathematics.verifier import (
    Leniency,
    Reason,
    Verdict,
    grade,
    readable_gold,
)

__all__ = [
    "Leniency",
    "Reason",
    "Verdict",
    "asks_for_order",
    "grade",
    "readable_gold",
    "why_unreadable",
]
