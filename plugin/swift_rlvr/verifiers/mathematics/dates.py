"""Dates and times of day, written in one way: `March 5, 2021` and `5 March 2021` are one day, and
`3:30 PM` and `15:30` one time.

A date of numbers alone, such as 03/05/2021, is another day in America than in Europe. It is only
the same as itself, unless one of the two is no date, as in 25/12/2021.
"""

import calendar
import re
from typing import Literal

# A language a line, from January on; its abbreviations follow the names of English.
_MONTH_NAMES = """
    january february march april may june july august september october november december
    jan feb mar apr may jun jul aug sep oct nov dec
    januar februar märz april mai juni juli august september oktober november dezember
    janvier février mars avril mai juin juillet août septembre octobre novembre décembre
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
    janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro
    januari februari maart april mei juni juli augustus september oktober november december
"""
_MONTHS = {
    name: number
    for language in _MONTH_NAMES.strip().split("\n")
    for number, name in enumerate(language.split(), start=1)
}
_MONTHS["sept"] = 9
# a date of a leap year, so that February 29 is one
_LEAP_YEAR = 2000

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = re.compile(rf"(?P<weekday>{'|'.join(_WEEKDAYS)}),? (?P<date>.+)")

_MONTH = r"(?P<month>[^\W\d_]{3,10})\.?"
# 5, 5th, 5. in German, 1er in French
_DAY = r"(?:the )?(?P<day>\d{1,2})(?:st|nd|rd|th|\.|er|º)?"
_YEAR = r"(?P<year>[12]\d{3})"
_IN_WORDS = (
    # March 5, 2021; March 5th
    re.compile(rf"{_MONTH} {_DAY}(?:,? {_YEAR})?"),
    # 5 March 2021, the 5th of March, 5 de marzo de 2021
    re.compile(rf"{_DAY} (?:of |de )?{_MONTH}(?:,? (?:de )?{_YEAR})?"),
)
# 2021-03-05, 2021/3/5, 2021年3月5日
_YEAR_FIRST = re.compile(
    r"(?P<year>[12]\d{3})(?:(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})"
    r"|年(?P<month_>\d{1,2})月(?P<day_>\d{1,2})[日号])"
)
# 25/12/2021, 25.12.2021
_YEAR_LAST = re.compile(
    r"(?P<first>\d{1,2})(?P<sign>[-/.])(?P<second>\d{1,2})(?P=sign)(?P<year>[12]\d{3})"
)

_TIME = re.compile(
    # 3:30, 15:30:00, 3 p.m., 3:30pm, and 3:30 in the afternoon
    r"(?P<hour>\d{1,2})(?::(?P<minute>[0-5]\d)(?P<seconds>:00)?)?"
    r"(?:\s*(?P<half>[ap])\.?\s?m\.?|\s+(?P<words>in the (?:morning|afternoon|evening)|at night|noon|midnight))?"
)
_CLOCK = re.compile(r"[\d:]+")
_NAMED_TIMES = {"noon": 12 * 60, "midnight": 0}


def same_moment(gold: str, answer: str) -> Literal["yes", "no", "maybe"] | None:
    """Whether two tidied texts are the same date or time of day; "maybe" where one of them may be two
    and the other is one of these. None where they are not both dates or both times.

    >>> same_moment("March 5, 2021", "5 March 2021"), same_moment("3:30 PM", "15:31")
    ('yes', 'no')
    >>> same_moment("03/05/2021", "March 5, 2021"), same_moment("3:30 PM", "3:30"), same_moment("3:30", "03:30")
    ('maybe', 'maybe', None)
    """
    golds = possible_dates(gold)
    answers = possible_dates(answer)
    # of two texts such as 5:12 and 10:24 nobody says that they are times, and no ratios
    if not golds and not (_CLOCK.fullmatch(gold) and _CLOCK.fullmatch(answer)):
        golds = possible_times(gold)
        answers = possible_times(answer)
    if not golds or not answers:
        return None
    if golds == answers:
        return "yes"
    return "maybe" if set(golds) & set(answers) else "no"


def possible_dates(text: str) -> list[str]:
    """The dates that a text may be, as 2021-03-05, or as --03-05 without a year: two for 03/05/2021,
    and none for any other text.

    A weekday has to be the one of that date.

    >>> [possible_dates(text) for text in ("March 5th, 2021", "the 5th of March", "25/12/2021", "2021年3月5日")]
    [['2021-03-05'], ['--03-05'], ['2021-12-25'], ['2021-03-05']]
    >>> [possible_dates(text) for text in ("03/05/2021", "February 30, 2021", "Monday, March 5, 2021")]
    [['2021-05-03', '2021-03-05'], [], []]
    """
    # no date is shorter or longer
    if not 5 <= len(text) <= 60:
        return []
    text = " ".join(text.lower().split())
    weekday = _WEEKDAY.fullmatch(text)
    if weekday:
        return [
            date
            for date in possible_dates(weekday["date"])
            if _weekday_of(date) == weekday["weekday"]
        ]

    dates: list[str | None] = []
    for pattern in _IN_WORDS:
        match = pattern.fullmatch(text)
        if match and match["month"] in _MONTHS:
            dates.append(_written(match["year"], _MONTHS[match["month"]], match["day"]))
    if match := _YEAR_FIRST.fullmatch(text):
        month = match["month"] or match["month_"]
        dates.append(_written(match["year"], int(month), match["day"] or match["day_"]))
    elif match := _YEAR_LAST.fullmatch(text):
        dates.append(_written(match["year"], int(match["second"]), match["first"]))
        dates.append(_written(match["year"], int(match["first"]), match["second"]))
    return list(dict.fromkeys(filter(None, dates)))


def _written(year: str | None, month: int, day: str) -> str | None:
    """A date in the one form; None where there is no such day."""
    if not 1 <= month <= 12:
        return None
    _, last_day = calendar.monthrange(int(year or _LEAP_YEAR), month)
    if not 1 <= int(day) <= last_day:
        return None
    return f"{year or '-'}-{month:02}-{int(day):02}"


def _weekday_of(date: str) -> str | None:
    """The weekday of a date in the one form; None where its year is not known."""
    if date.startswith("--"):
        return None
    return _WEEKDAYS[calendar.weekday(*map(int, date.split("-")))]


def possible_times(text: str) -> list[str]:
    """The times of day that a text may be, as 15:30: two for 3:30, and none for any other text.

    >>> [possible_times(text) for text in ("3:30 p.m.", "3:30 in the afternoon", "15:30", "noon", "12 AM")]
    [['15:30'], ['15:30'], ['15:30'], ['12:00'], ['00:00']]
    >>> possible_times("3:30"), possible_times("15"), possible_times("13:30 PM"), possible_times("25:00")
    (['03:30', '15:30'], [], [], [])
    """
    if len(text) > 30:
        return []
    text = " ".join(text.lower().split())
    if text in _NAMED_TIMES:
        return [_as_time(_NAMED_TIMES[text])]
    match = _TIME.fullmatch(text)
    if match is None:
        return []
    hour = int(match["hour"])
    minutes = int(match["minute"] or 0)
    words = match["words"] or ""
    if match["half"] or words:
        time = _in_half(hour, minutes, match["half"] or "", words)
        return [time] if time else []
    if not match["minute"] or hour >= 24:
        return []
    # of 24 hours: 15:30, 03:30; but 3:30 is also written for the afternoon
    if hour == 0 or hour > 12 or match["hour"].startswith("0"):
        return [_as_time(60 * hour + minutes)]
    in_half = 60 * (hour % 12) + minutes
    return [_as_time(in_half), _as_time(in_half + 12 * 60)]


def _in_half(hour: int, minutes: int, half: str, words: str) -> str | None:
    """The time of an hour from 1 to 12 of the morning or the afternoon, as a letter or words say."""
    if not 1 <= hour <= 12:
        return None
    if words in _NAMED_TIMES:
        return _as_time(_NAMED_TIMES[words]) if (hour, minutes) == (12, 0) else None
    # 1 at night is of the morning, and 11 of the evening
    if words == "at night":
        half = "a" if hour < 6 or hour == 12 else "p"
    elif words:
        half = "a" if words.endswith("morning") else "p"
    in_half = 60 * (hour % 12) + minutes
    return _as_time(in_half + (12 * 60 if half == "p" else 0))


def _as_time(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"
