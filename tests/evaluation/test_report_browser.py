"""The page of `swift-rlvr report` in a real headless Chromium: nothing that a model wrote runs;
what people do works.

Skipped where there is no Chromium; tests/evaluation/test_report.py reads the same pages without
one.
"""

import json
import random

import pytest

from evaluation.chromium import Chromium, found
from report_pages import HOSTILE
from swift_rlvr.evaluation.report import write_report
from swift_rlvr.tasks.countdown import to_messages

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        found() is None,
        reason="there is no chromium on the PATH (Debian: apt-get install chromium)",
    ),
]
STEPS = 40


def write_run(folder, tables, rows):
    folder.mkdir(parents=True)
    for name, lines in (("completions.jsonl", tables), ("logging.jsonl", rows)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Two runs of 40 steps with 8 completions each on one page, and a page of hostile texts; also
    their figures.
    """
    folder, rng, shown = tmp_path_factory.mktemp("runs"), random.Random(0), []
    for run in ("stable", "unstable"):
        tables, rows = [], []
        for step in range(1, STEPS + 1):
            prompt = (
                f"<|im_start|>user\n{to_messages([1, 2, step % 10], 3)[1]['content']}<|im_end|>\n"
            )
            texts, rewards = [], []
            for number in range(8):
                good = step % 10 == 0 and rng.random() < 0.5
                word = rng.choice(["low", "High"])
                texts.append(
                    f"<think>\n{number}+{step}={number + step} {word}</think><answer>{1 - good}+2+0</answer>"
                )
                rewards.append(0.0)
                shown.append({"run": run, "step": step, "text": texts[-1]})
            tables.append({"step": [str(step)] * 8, "prompt": [prompt] * 8, "completion": texts, "CountdownReward":
                           rewards, "advantages": [0.0] * 8})  # fmt: skip
            rows.append({"reward": step / 40, "rewards/CountdownReward/mean": step / 40, "kl": 0.1 * step,
                         "global_step/max_steps": f"{step}/{STEPS}"})  # fmt: skip
        write_run(folder / run / "run", tables, rows)
    _, page = write_report(
        [folder / "stable" / "run", folder / "unstable" / "run"], folder / "page"
    )
    names = {"<img src=x onerror='window.broken=1'>": [1.0] * len(HOSTILE)}
    table = {"step": ["1"] * len(HOSTILE), "prompt": HOSTILE, "completion": HOSTILE, **names}
    row = {
        "reward": 1.0,
        "rewards/</script><script>window.broken=1</script>/mean": 1.0,
        "global_step/max_steps": "1/1",
    }
    write_run(folder / "<b onclick=x>", [table], [row])
    alarm = {"step": 1, "alarm": "kl", "message": HOSTILE[0], "completions": HOSTILE}
    (folder / "<b onclick=x>" / "alarms.jsonl").write_text(json.dumps(alarm) + "\n")
    _, hostile = write_report(folder / "<b onclick=x>", folder / "hostile")
    return page, hostile, shown


@pytest.fixture(scope="module")
def browser():
    with Chromium() as started:
        yield started


@pytest.fixture
def opened(browser, pages):
    browser.messages.clear()
    browser.requests.clear()
    browser.resize(1400, 900)
    browser.open(pages[0])
    return browser


def filtered(browser, change):
    """How many completions pass, after a change of the form `f`, and what the page says about
    it.
    """
    browser.run(
        f"(async () => {{ const f = document.querySelector('#filter'); {change}; await filter(); }})()"
    )
    return browser.run("[matches.length, document.querySelector('#count').textContent]")


def test_hostile_texts_are_shown_and_do_nothing(browser, pages):
    browser.messages.clear()
    browser.requests.clear()
    browser.open(pages[1])
    scripts = browser.run("document.scripts.length")
    browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    browser.run("document.querySelector('#list').focus()")
    for place, text in enumerate(HOSTILE):
        if place:  # the page begins with the first one
            browser.press("ArrowDown")
        browser.wait(f"columns.length[current] === {len(text)}")
        browser.wait("document.querySelector('#detail h4')")
        seen = browser.run("document.querySelector('#detail pre').textContent")
        assert seen == shown_as(text)[: 15_000 if len(text) > 20_000 else None]
        browser.run("document.querySelectorAll('#detail button').forEach((each) => each.click())")
    assert browser.run("document.scripts.length") == scripts
    assert browser.run("typeof window.broken") == "undefined"
    assert (
        browser.run(
            "document.querySelectorAll('img, svg, iframe, object, a[href^=javascript]').length"
        )
        == 0
    )
    assert browser.messages == []
    assert browser.requests == [pages[1].resolve().as_uri().replace("'", "%27")]


def shown_as(text):
    """What the page shows of a text: what cannot be seen is written as in Python."""
    hidden = {0x2028, 0x2029, 0xD800, 0xDFFF, 0x202E, 0x202C, 0x2066, 0x2069}
    return "".join(
        f"\\x{ord(each):02x}"
        if each in "\x00\x07"
        else f"\\u{ord(each):04x}"
        if ord(each) in hidden
        else each
        for each in text
    )


@pytest.mark.parametrize(
    ("change", "passes"),
    [
        ("f.first.value = 10; f.last.value = 12", lambda each: 10 <= each["step"] <= 12),
        ("f.run.value = '1'", lambda each: each["run"] == "unstable"),
        ("f.low.value = 0.5", lambda each: False),
        ("f.text.value = 'high'", lambda each: "High" in each["text"]),
        ("f.text.value = 'high'; f.cased.checked = true", lambda each: False),
        (
            "f.text.value = '3+30=33 High'; f.cased.checked = true",
            lambda each: "3+30=33 High" in each["text"],
        ),
        ("f.text.value = 'EQUATION that EQUALS'", lambda each: True),  # of the question
        ("f.text.value = '[1, 2, 7]'", lambda each: each["step"] % 10 == 7),
        ("f.repeated.checked = true", lambda each: True),
        ("f.text.value = '.*'", lambda each: False),
        ("f.text.value = 'wörter'", lambda each: False),
    ],
)
def test_filters_find_what_they_should(opened, pages, change, passes):
    expected = sum(map(passes, pages[2]))
    number, said = filtered(opened, change)
    assert number == expected
    assert said.startswith(f"{expected} of 640" if expected else "None of 640")
    assert filtered(opened, "f.reset()")[0] == 640 and opened.messages == []


def test_the_reason_of_the_verifier_is_a_filter(opened):
    counts = opened.run(
        "[...document.querySelector('#filter').reason.options].map((each) => each.textContent)"
    )
    assert (
        counts[0] == "any" and sum(int(each.rpartition("(")[2][:-1]) for each in counts[1:]) == 640
    )
    for place, each in enumerate(counts[1:], start=1):
        number, _ = filtered(opened, f"f.reset(); f.reason.selectedIndex = {place}")
        assert each.endswith(f"({number})")


def test_the_keyboard_is_enough(opened):
    opened.wait("plots.length === page.panels.length")
    opened.run("document.querySelector('#panels figure').focus()")
    for _ in range(5):
        opened.press("ArrowLeft")
    assert opened.run("plots.map((plot) => plot.data[0][plot.cursor.idx])") == [35] * opened.run(
        "plots.length"
    )
    assert "35" in opened.run("document.querySelector('#panels figure .u-value').textContent")
    opened.press("+")
    ranges = opened.run("plots.map((plot) => [plot.scales.x.min, plot.scales.x.max].join())")
    assert len(set(ranges)) == 1 and ranges[0] != f"1,{STEPS}"
    opened.press("0")
    assert set(
        opened.run("plots.map((plot) => [plot.scales.x.min, plot.scales.x.max].join())")
    ) == {f"1,{STEPS}"}
    opened.press("Enter")  # the completions of the step, with the focus in the list
    opened.wait("matches.length === 16 && document.activeElement.id === 'list'")
    opened.press("End")
    opened.wait("document.querySelector('#detail h3')?.textContent.includes('35')")
    chosen = opened.run("document.querySelector('#list').getAttribute('aria-activedescendant')")
    assert chosen == "row-15"
    assert (
        opened.run(f"document.getElementById('{chosen}').getAttribute('aria-selected')") == "true"
    )
    text = opened.run("document.querySelector('#detail').textContent")
    assert "external_countdown" in text and "the value is the target" in text
    assert "Same prompt: 64 completions from 8 steps" in text


def test_the_first_completion_is_open_with_its_gold_answer(opened):
    opened.wait("document.querySelector('#detail .rules')")
    assert opened.run("[chosen, current, location.hash, scrollY]") == [0, 0, "", 0]
    beside = opened.run("document.querySelector('#detail .beside').textContent")
    assert beside.startswith("Judged answer:") and "Gold answer:target 3 from 1, 2, 1" in beside


def test_ticks_are_whole_steps_with_labels_that_differ(opened):
    assert opened.run("WHOLE.slice(0, 7)") == [1, 2, 5, 10, 20, 50, 100]
    for step in (1e-4, 0.005, 0.25, 0.5, 1, 20, 1000):
        labels = opened.run(f"[0, 1, 2, 3].map((i) => tick(i * {step}, {step}))")
        assert len(set(labels)) == 4, labels


def test_a_link_opens_the_same_filter_and_completion(opened, pages):
    change = (
        "f.run.value = '1'; f.first.value = 7; f.text.value = 'high'; f.reason.selectedIndex = 1"
    )
    number, said = filtered(opened, change)
    opened.run("choose(2)")
    opened.wait(
        "document.querySelector('#detail .rules') && location.hash.includes('completion=1.0.')"
    )
    link, shown = opened.run("[location.href, document.querySelector('#detail').textContent]")
    for url in ("about:blank", link):
        opened.send("Page.navigate", url=url)
    opened.wait(
        "document.body?.dataset.state === 'read' && document.querySelector('#detail .rules')"
    )
    opened.wait(f"matches.length === {number}")
    assert opened.run("document.querySelector('#detail').textContent") == shown
    assert opened.run(
        "[matches[chosen] === current, document.querySelector('#count').textContent]"
    ) == [True, said]
    opened.run("document.querySelector('#filter').reset()")
    opened.wait("matches.length === 640 && location.hash === '#completion=' + placeOf(current)")
    opened.run("location.hash = '#curves'")  # of the navigation: no filter
    assert opened.run("matches.length") == 640 and opened.messages == []


def test_it_fits_a_phone_and_a_dark_room(opened):
    opened.resize(390, 844, phone=True)
    opened.run("choose(3)")
    opened.wait("document.querySelector('#detail .rules')")
    assert opened.run("document.documentElement.scrollWidth") <= 390
    colors = []
    for scheme in ("light", "dark"):
        opened.scheme(scheme)
        opened.wait(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
        colors.append(opened.run("getComputedStyle(document.body).backgroundColor"))
    opened.scheme("light")
    assert colors == ["rgb(255, 255, 255)", "rgb(20, 23, 27)"]
    assert opened.messages == []


def test_an_evaluation_has_no_steps_to_show(browser, tmp_path):
    row = {"prompt": "What is 1 + 1?", "answer": "2", "completion": "The answer is 2."}
    samples = tmp_path / "samples.jsonl"
    samples.write_text(f"{json.dumps(row)}\n" * 2)
    _, page = write_report(samples, tmp_path / "page")
    browser.resize(1400, 900)
    browser.open(page)
    browser.wait("document.querySelector('#detail .rules')")
    assert "CURVES" not in browser.run("document.body.innerText").upper()
    assert "step" not in browser.run("document.querySelector('#completions').innerText").lower()
    assert browser.run("document.querySelector('#detail h3').innerText") == "Completion 1"
