"""The audit finds what is wrong with a scorer, and the page's table says what it finds."""

import re
from importlib.util import find_spec

import pytest
from swift_rlvr.reasoning_gym import audit, library, naming
from swift_rlvr.reasoning_gym.audit import BEGIN, END, PAGE, audit_task, write_page
from swift_rlvr.reasoning_gym.refused import REFUSED
from swift_rlvr.reasoning_gym.scorers import SCORERS

pytestmark = pytest.mark.skipif(find_spec("reasoning_gym") is None, reason="needs the extra [reasoning-gym]")
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (\d+)/(\d+) \| (\d+) \|(.*)\| ([^|]+) \|$", re.MULTILINE)


def page_rows():
    """name -> (category, right golds, golds, different questions, the highest scores and milliseconds, verdict)"""
    table = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    return {
        name: (category, int(right), int(items), int(questions), [float(each) for each in scores.split("|")], verdict)
        for name, category, right, items, questions, scores, verdict in ROW.findall(table)
    }


def test_the_page_lists_every_task_with_its_verdict():
    rows = page_rows()
    assert list(rows) == list(library.datasets())
    for name, (category, right, items, questions, scores, verdict) in rows.items():
        assert category == library.category(name)
        if name in REFUSED:
            assert verdict == f"refused: {REFUSED[name]}"
        elif verdict.startswith("needs "):
            assert verdict.removeprefix("needs ") in library.USERS
        else:
            assert verdict == ("scored by ours" if name in SCORERS else "good")
            assert right == items >= questions > 1 and items >= 20
            assert scores[0] == 0 and max(scores[1:4]) < 1


@pytest.mark.slow
def test_the_verdicts_hold(monkeypatch):
    """On one item of each split, with a tenth of the hostile texts and all the code."""
    monkeypatch.setattr(audit, "HOSTILE", (*audit.CODE, *audit.HOSTILE[len(audit.CODE) :: 10]))
    usable = [name for name in library.datasets() if naming.why_refused(name) is None]
    audits = {each.task: each for each in audit.audit(usable, items=1)}
    assert {name: each.problems for name, each in audits.items() if each.problems} == {}
    assert all(each.right == each.items == 2 for each in audits.values())


def test_what_is_refused_has_the_problem_that_is_named():
    for name, why in REFUSED.items():
        problems = " ".join(audit_task(name, items=2).problems)
        assert ("no right answer is known" in problems) if why.startswith("no right answer") else "listed" in problems


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (lambda answer, entry, theirs: 1.0, r"hostile answers earn 1"),
        (lambda answer, entry, theirs: 0.5, r"4 of 4 right answers earn less than 1"),
        (lambda answer, entry, theirs: float(entry["answer"] in answer), r"listed answers earn 1"),
        (lambda answer, entry, theirs: float(answer.isdigit()), r"foreign answers earn 1"),
    ],
)
def test_a_bad_scorer_is_found(fault, problem, monkeypatch):
    from swift_rlvr.reasoning_gym.grading import Reason, ScoredAnswer, last_answer, read_entry

    def grade_all(texts, entries, seconds, workers=0):
        scored = []
        for text, entry in zip(texts, entries, strict=True):
            answer = (last_answer(text) or "").strip()
            score = fault(answer, read_entry(entry), None) if answer else 0.0
            scored.append(ScoredAnswer(score, Reason.CORRECT if score == 1 else Reason.WRONG, answer))
        return scored

    monkeypatch.setattr(audit, "grade_all", grade_all)
    assert any(re.search(problem, each) for each in audit_task("gcd", items=2).problems)


def test_the_table_is_written_between_its_marks(tmp_path):
    page = tmp_path / "README.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    gcd = audit_task("gcd", items=1)
    write_page([gcd], page)
    assert page.read_text() == f"before\n{BEGIN}\n{audit.table([gcd])}\n{END}\nafter\n"
    assert "| `gcd` | arithmetic | 2/2 |" in page.read_text()
