"""The form in which an answer must stand: a column of the row, or a parameter of the reward."""

from dataclasses import dataclass

from swift_rlvr.rewards.parameters import BaseParameters
from swift_rlvr.utils.settings import setting
from swift_rlvr.verifiers.statements import ACCEPTED_FORMS, check_form

# The optional column. None and "" leave it to the parameter.
ANSWER_FORM = "answer_form"


@dataclass(frozen=True)
class AnswerFormParameters(BaseParameters):
    """The parameter of a verifier that looks for an answer in a text."""

    answer_form: str = setting(
        "",
        f"read the answer in this form only: {ACCEPTED_FORMS}; by default the last statement counts. "
        "The column answer_form of a row comes first",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            check_form(self.answer_form)
        except ValueError:
            self.require(False, ANSWER_FORM, ACCEPTED_FORMS)
