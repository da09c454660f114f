"""Dates and times of day, written in other ways than the gold.

None: one of the two may be two dates or two times, of which the other is one.
"""

import pytest

from swift_rlvr.verifiers.mathematics import grade
from swift_rlvr.verifiers.mathematics.dates import possible_dates

# (gold, answer, reward)
DATES = [
    ("March 5, 2021", "5 March 2021", 1.0),
    ("March 5, 2021", "March 5 2021", 1.0),
    ("March 5, 2021", "March 5th, 2021", 1.0),
    ("March 5, 2021", "5th of March 2021", 1.0),
    ("March 5, 2021", "the 5th of March, 2021", 1.0),
    ("March 5, 2021", r"\text{Mar. 5, 2021}", 1.0),
    ("March 5, 2021", "2021-03-05", 1.0),
    ("March 5, 2021", "2021/3/5", 1.0),
    ("March 5, 2021", "2021年3月5日", 1.0),
    ("March 5, 2021", "5. März 2021", 1.0),
    ("March 5, 2021", "5 de marzo de 2021", 1.0),
    ("March 5, 2021", "Friday, March 5, 2021", 1.0),
    ("5 March 2021", "March 5, 2021", 1.0),
    ("2021-03-05", "5 March 2021", 1.0),
    ("April 15", "15 April", 1.0),
    ("April 15", "the 15th of April", 1.0),
    ("February 29", "29 February", 1.0),
    # another day, month or year
    ("March 5, 2021", "March 6, 2021", 0.0),
    ("March 5, 2021", "5 May 2021", 0.0),
    ("March 5, 2021", "2021-05-03", 0.0),
    ("March 5, 2021", "5 March 2022", 0.0),
    ("5 March 2021", "6 March 2021", 0.0),
    ("April 15", "15 May", 0.0),
    # a weekday that the date is not
    ("March 5, 2021", "Monday, March 5, 2021", 0.0),
    # a part of it
    ("March 5, 2021", "March 2021", 0.0),
    ("March 5, 2021", "March 5", 0.0),
    ("March 5, 2021", "2021", 0.0),
    ("March 5, 2021", "March 5 or 6, 2021", 0.0),
    # no such day: it is not read as a date
    ("March 2, 2021", "February 30, 2021", 0.0),
    # numbers alone: the day or the month may be first
    ("25/12/2021", "December 25, 2021", 1.0),
    ("12/25/2021", "25 December 2021", 1.0),
    ("25.12.2021", "25 December 2021", 1.0),
    ("03/05/2021", "03/05/2021", 1.0),
    ("03/05/2021", "3/5/2021", 1.0),
    ("03/05/2021", "March 5, 2021", None),
    ("03/05/2021", "5/3/2021", None),
    ("March 5, 2021", "03/05/2021", None),
    ("March 5, 2021", "05.03.2021", None),
    ("03/05/2021", "March 6, 2021", 0.0),
    ("March 5, 2021", "03/06/2021", 0.0),
]
TIMES = [
    ("3:30 PM", "15:30", 1.0),
    ("3:30 PM", "15:30:00", 1.0),
    ("3:30 PM", "3:30 in the afternoon", 1.0),
    ("15:30", "3:30 p.m.", 1.0),
    (r"3:30\text{ p.m.}", "15:30", 1.0),
    ("3 PM", "15:00", 1.0),
    ("8:00 AM", "08:00", 1.0),
    ("12:00 AM", "midnight", 1.0),
    ("12:00 AM", "00:00", 1.0),
    ("noon", "12:00 PM", 1.0),
    ("11:30 PM", "11:30 at night", 1.0),
    ("3:30 PM", "3:30 AM", 0.0),
    ("3:30 PM", "15:31", 0.0),
    ("15:30", "3:30 a.m.", 0.0),
    ("15:30", "15:03", 0.0),
    ("12:00 AM", "noon", 0.0),
    ("12:00 AM", "12:00 PM", 0.0),
    ("8:00 AM", "20:00", 0.0),
    ("3:30 PM", "15", 0.0),
    ("1:30 PM", "13:30 PM", 0.0),
    # of the morning or of the afternoon
    ("3:30 PM", "3:30", None),
    ("3:30", "3:30 PM", None),
    ("3:30 PM", "3:31", 0.0),
    # no time of day: ratios and durations
    ("5:12", "10:24", 1.0),
    ("3:30", "15:30", 0.0),
]


@pytest.mark.parametrize("gold, answer, reward", DATES + TIMES)
def test_date_or_time_in_another_way(gold, answer, reward):
    for completion in (rf"\boxed{{{answer}}}", f"<answer>{answer}</answer>"):
        assert grade(completion, gold).reward == reward, completion


def test_date_alone_on_the_last_line_is_an_answer():
    assert grade("She was born in spring.\n5 March 2021", "March 5, 2021").reward == 1
    assert grade("She was born in spring.\n6 March 2021", "March 5, 2021").reward == 0


@pytest.mark.parametrize(
    "text", ["May", "May 2021", "2021", "1/2", "3.5.12", "5 apples 2021", "5 cm"]
)
def test_no_date(text):
    assert possible_dates(text) == []
