"""The form in which an answer must stand: a column of the row, or a parameter of the reward."""

from dataclasses import dataclass

from swift_rlvr.rewards.base import Row
from swift_rlvr.rewards.parameters import BaseParameters
from swift_rlvr.utils.settings import setting
from swift_rlvr.verifiers.answer_forms import FORMS
from swift_rlvr.verifiers.statements import check_form

# The optional column. None and "" leave it to the parameter.
ANSWER_FORM = "answer_form"
_ACCEPTED = f"{', '.join(FORMS)}, or a regular expression with one group"


@dataclass(frozen=True)
class AnswerFormParameters(BaseParameters):
    """The parameter of a verifier that looks for an answer in a text."""

    answer_form: str = setting(
        "",
        f"read the answer in this form only: {_ACCEPTED}; by default the last statement counts. "
        "The column answer_form of a row comes first",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            check_form(self.answer_form or next(iter(FORMS)))
        except ValueError:
            self.require(False, ANSWER_FORM, _ACCEPTED)


def answer_form(row: Row, parameters: AnswerFormParameters) -> str | None:
    """The form of a row's answer; None where neither row nor reward names one.

    ValueError for a column that holds none.
    """
    form = row.get(ANSWER_FORM) or parameters.answer_form
    if not form:
        return None
    if not isinstance(form, str):
        raise ValueError(f"the column {ANSWER_FORM} must hold {_ACCEPTED}, got {form!r:.80}")
    return check_form(form)
