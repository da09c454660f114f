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
for _number in range(1, 13):
    _MONTHS |= {f"{_number}": _number, f"{_number:02}": _number}
# a date of a leap year, so that February 29 is one
_LEAP_YEAR = 2000

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = re.compile(rf"(?P<weekday>{'|'.join(_WEEKDAYS)}),? ")

_MONTH = r"(?P<month>[^\W\d_]{3,10})\.?"
# 5, 5th, 5. in German, 1er in French
_DAY = r"(?:the )?(?P<day>\d{1,2})(?:st|nd|rd|th|\.|er|º)?"
_YEAR = r"(?P<year>[12]\d{3})"
_DATES = (
    # March 5, 2021; March 5th
    re.compile(rf"{_MONTH} {_DAY}(?:,? {_YEAR})?"),
    # 5 March 2021, the 5th of March, 5 de marzo de 2021
    re.compile(rf"{_DAY} (?:of |de )?{_MONTH}(?:,? (?:de )?{_YEAR})?"),
    # 2021-03-05, 2021/3/5
    re.compile(rf"{_YEAR}(?P<sign>[-/.])(?P<month>\d{{1,2}})(?P=sign)(?P<day>\d{{1,2}})"),
    # 2021年3月5日
    re.compile(rf"{_YEAR}年(?P<month>\d{{1,2}})月(?P<day>\d{{1,2}})[日号]"),
    # 25.12.2021 in Europe, 12/25/2021 in America
    re.compile(rf"(?P<day>\d{{1,2}})(?P<sign>[-/.])(?P<month>\d{{1,2}})(?P=sign){_YEAR}"),
    re.compile(rf"(?P<month>\d{{1,2}})(?P<sign>[-/.])(?P<day>\d{{1,2}})(?P=sign){_YEAR}"),
)

_TIME = re.compile(
    # 3:30, 15:30:00, 3 p.m., 3:30pm, and 3:30 in the afternoon
    r"(?P<hour>\d{1,2})(?::(?P<minute>[0-5]\d)(?P<seconds>:00)?)?"
    r"(?:\s*(?P<half>[ap])\.?\s?m\.?|\s+(?P<words>in the (?:morning|afternoon|evening)|at night|noon|midnight))?"
)
_CLOCK = re.compile(r"[\d:]+")
# The minutes of the day that a text behind an hour from 1 to 12 may mean.
_NOON = 12 * 60
_DAY_END = 24 * 60
_NAMED_TIMES = {"noon": [_NOON], "midnight": [0]}
_PARTS_OF_DAY = {
    "a": range(_NOON),
    "in the morning": range(_NOON),
    "p": range(_NOON, _DAY_END),
    "in the afternoon": range(_NOON, _DAY_END),
    "in the evening": range(_NOON, _DAY_END),
    # 1 at night is of the morning, and 11 of the evening
    "at night": [*range(6 * 60), *range(18 * 60, _DAY_END)],
    **_NAMED_TIMES,
}


def same_moment(gold: str, answer: str) -> Literal["yes", "no", "maybe"] | None:
    """Whether two tidied texts are the same date or time of day.

    Returns "maybe" if one of them may be two moments and the other is one of these, and None if they
    are not both dates or both times.

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
    weekday = _WEEKDAY.match(text)
    if weekday:
        text = text[weekday.end() :]

    dates: list[str] = []
    for pattern in _DATES:
        match = pattern.fullmatch(text)
        if match is None or match["month"] not in _MONTHS:
            continue
        month = _MONTHS[match["month"]]
        day = int(match["day"])
        year = int(match["year"] or _LEAP_YEAR)
        # February 30
        _, last_day = calendar.monthrange(year, month)
        if not 1 <= day <= last_day:
            continue
        # without a year nobody knows the weekday
        day_of_week = _WEEKDAYS[calendar.weekday(year, month, day)] if match["year"] else ""
        if weekday and weekday["weekday"] != day_of_week:
            continue
        dates.append(f"{match['year'] or '-'}-{month:02}-{day:02}")
    # 5/5/2021 is one day in all countries
    return list(dict.fromkeys(dates))


def possible_times(text: str) -> list[str]:
    """The times of day that a text may be, as 15:30: two for 3:30, and none for any other text.

    >>> [possible_times(text) for text in ("3:30 p.m.", "3:30 in the afternoon", "15:30", "noon", "12 AM")]
    [['15:30'], ['15:30'], ['15:30'], ['12:00'], ['00:00']]
    >>> possible_times("3:30"), possible_times("15"), possible_times("13:30 PM"), possible_times("25:00")
    (['03:30', '15:30'], [], [], [])
    """
    text = " ".join(text.lower().split())
    if text in _NAMED_TIMES:
        return list(map(_as_time, _NAMED_TIMES[text]))
    match = _TIME.fullmatch(text)
    if match is None:
        return []
    hour = int(match["hour"])
    minutes = int(match["minute"] or 0)
    before_noon = 60 * (hour % 12) + minutes
    after_noon = before_noon + _NOON

    part_of_day = match["half"] or match["words"]
    if part_of_day:
        if not 1 <= hour <= 12:
            return []
        possible = _PARTS_OF_DAY[part_of_day]
        return [_as_time(time) for time in (before_noon, after_noon) if time in possible]
    if not match["minute"] or hour >= 24:
        return []
    # of 24 hours: 15:30, 03:30; but 3:30 is also written for the afternoon
    if not 1 <= hour <= 12 or match["hour"].startswith("0"):
        return [_as_time(60 * hour + minutes)]
    return [_as_time(before_noon), _as_time(after_noon)]


def _as_time(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"
