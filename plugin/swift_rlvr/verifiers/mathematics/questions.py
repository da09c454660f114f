"""What a question says about its answer: whether the order of several values counts."""

import re
from functools import lru_cache

# "in increasing order", "respectively", "the first five terms", 依次; but not "in any order".
_IN_ORDER = re.compile(
    r"\brespectively\b|\bin (?!any\b)(?:[a-z]+ )?order\b|\bordered (?:pair|triple|list)"
    r"|\b(?:first|next|last|following) (?:\w+ )?(?:terms?|numbers?|digits?|rows?|values?|elements?)\b"
    r"|\bfrom (?:left|right|top|smallest|least|lowest|largest|greatest|highest|first|oldest|youngest)"
    r"|\bsort(?:ed)?\b"
    r"|从小到大|从大到小|按.{0,6}顺序|依次|分别",
    re.IGNORECASE,
)
# "Find all solutions", "Solve x^2 = 4", "Which of these ...", "separated by commas".
_ALL_OF_THEM = re.compile(
    r"\b(?:all|every|each|any|both|solve|solutions?|roots?|zeroe?s|which|possible|distinct)\b"
    r"|\bvalues of\b|\bthe two (?:numbers|values|integers)\b|\bseparated by (?:a )?commas?\b"
    r"|解方程|所有|全部|哪些|方程.{0,9}根",
    re.IGNORECASE,
)


# All completions of a group have one question, which may be a whole document.
@lru_cache(maxsize=1024)
def asks_for_order(question: str) -> bool:
    """Whether a question asks for several values in an order, rather than for all that there are.

    >>> asks_for_order("How old are Tom and Ann?"), asks_for_order("Find all solutions of x^2 = 4.")
    (True, False)
    >>> asks_for_order("List all the roots in increasing order."), asks_for_order("Solve x^2 = 4.")
    (True, False)
    """
    return bool(_IN_ORDER.search(question)) or not _ALL_OF_THEM.search(question)
