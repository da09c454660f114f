"""How settings are declared: types, ranges and choices, as keywords, texts and variables, and the
one form of error.
"""

import math
import pickle
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import pytest

from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.settings import Settings, Text, no_setting, setting


@dataclass(frozen=True)
class Some(Settings):
    count: int = setting(7, "how many", at_least=1)
    share: float = setting(0.5, "how much")
    rate: float = setting(0.1, "how fast", more_than=0, less_than=1)
    strict: bool = setting(True, "whether")
    mode: str = setting("slow", "how", choices=("slow", "fast"))
    name: str | None = setting(None, "which")
    limit: int | None = setting(None, "the most", at_least=2)
    tasks: tuple[str, ...] = setting((), "values")
    weights: list[float] | None = setting(None, "factors", at_least=0)
    size: tuple[int, int] = setting((1, 9), "from, to", at_least=1)


VALUES = [  # (setting, text of a variable or flag, value)
    ("count", "12", 12),
    ("count", " 12 ", 12),
    ("share", "1e-3", 0.001),
    ("share", "-2", -2.0),
    ("strict", "true", True),
    ("strict", "False", False),
    ("strict", "1", True),
    ("strict", "0", False),
    ("strict", "YES", True),
    ("strict", "no", False),
    ("mode", " fast ", "fast"),
    ("name", "", ""),
    ("limit", "3", 3),
    ("tasks", "math", ("math",)),
    ("tasks", "math, gsm8k,", ("math", "gsm8k")),
    ("tasks", "", ()),
    ("weights", "1, 0.5", [1.0, 0.5]),
    ("size", "3-5", (3, 5)),
    ("size", "4", (4, 4)),
]


@pytest.mark.parametrize("name, text, value", VALUES)
def test_a_text_is_read_as_the_settings_type(name, text, value):
    texts: dict[str, Any] = {name: Text(text)}
    read = getattr(Some(**texts), name)
    assert read == value and type(read) is type(value)


MISTAKES = [  # (setting, value, what is accepted)
    ("count", Text("twelve"), "a whole number"),
    ("count", Text("1.5"), "a whole number"),
    ("count", Text(""), "a whole number"),
    ("share", Text("half"), "a finite number"),
    ("share", Text("nan"), "a finite number"),
    ("share", Text("1e999"), "a finite number"),
    ("strict", Text("maybe"), "true or false"),
    ("strict", Text(""), "true or false"),
    ("size", Text("3-"), "a range such as 3-5"),
    ("size", Text("5-3"), "a range such as 3-5"),
    ("count", "12", "a whole number"),
    ("count", 1.0, "a whole number"),
    ("count", True, "a whole number"),
    ("count", None, "a whole number"),
    ("count", 0, "at least 1"),
    ("share", "0.5", "a finite number"),
    ("share", False, "a finite number"),
    ("share", math.nan, "a finite number"),
    ("share", -math.inf, "a finite number"),
    ("rate", 0, "more than 0 and less than 1"),
    ("rate", 1.0, "more than 0 and less than 1"),
    ("strict", 1, "true or false"),
    ("strict", "no", "true or false"),
    ("mode", 3, "a text"),
    ("mode", "quick", "one of slow, fast"),
    ("name", 3, "a text"),
    ("limit", 1, "at least 2"),
    ("tasks", 3, "comma-separated names"),
    ("tasks", ["math", 3], "comma-separated names"),
    ("weights", [1, "2"], "finite numbers"),
    ("weights", [1.0, -2.0], "at least 0"),
    ("size", (1, 2, 3), "a range such as 3-5"),
    ("size", (0, 3), "at least 1"),
]


@pytest.mark.parametrize("name, value, accepted", MISTAKES)
def test_a_value_that_does_not_fit_is_named_with_what_does(name, value, accepted):
    with pytest.raises(InputError, match=f"^{name}: must be {accepted}, got ") as error:
        Some(**{name: value})
    assert (
        error.value.field == name
        and repr(value) in str(error.value)
        and isinstance(error.value, ValueError)
    )


def test_keywords_become_the_settings_type():
    assert type(Some(share=1).share) is float
    forms: tuple[Any, ...] = (["math", "gsm8k"], "math, gsm8k")
    for form in forms:
        assert Some(tasks=form).tasks == ("math", "gsm8k")


def test_settings_are_frozen_and_pickle():
    with pytest.raises(FrozenInstanceError):
        setattr(Some(), "count", 3)  # noqa: B010
    assert pickle.loads(pickle.dumps(Some(count=3))) == Some(count=3)


class Bare(Some):
    variable_prefix = ""


class Grouped(Some):
    group = "count"


def test_variables_have_the_settings_names():
    environ = {
        "SWIFT_RLVR_COUNT": "3",
        "SWIFT_RLVR_SHARE": "",
        "SWIFT_RLVR_OTHER": "4",
        "COUNT": "5",
    }
    assert Some.from_environment(environ, mode="fast") == Some(3, mode="fast")
    assert Bare.from_environment(environ).count == 5
    with pytest.raises(InputError, match="^SWIFT_RLVR_COUNT: must be at least 1, got 0$"):
        Some.from_environment({"SWIFT_RLVR_COUNT": "0"})


def test_a_variable_of_the_group_that_is_no_setting_is_refused():
    with pytest.raises(
        InputError,
        match="^count has no setting 'SWIFT_RLVR_COUNTS'; the nearest is SWIFT_RLVR_COUNT;",
    ):
        Grouped.from_environment({"SWIFT_RLVR_COUNTS": "3"})
    # One that is not of the group is left alone.
    assert Grouped.from_environment({"SWIFT_RLVR_SHARE": "0.25"}) == Grouped()


def test_a_name_that_is_none_is_answered_with_the_nearest():
    many = [f"setting_{number}" for number in range(100)]
    assert no_setting("it", "xyzzy", many) == "it has no setting 'xyzzy'"
    assert (
        no_setting("it", "setting_1_", many)
        == "it has no setting 'setting_1_'; the nearest is setting_1"
    )
