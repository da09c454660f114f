"""external_box: what is right, what cannot be graded, and everything that must not be paid."""

import json
import threading
import time

import pytest

from swift_rlvr.rewards import REWARDS

# In a picture of 1,000 times 1,000.
GOLD = [100, 200, 300, 600]
OTHER = [600, 200, 800, 600]
NEAR = [110, 210, 310, 610]
RIGHT = json.dumps([{"bbox_2d": GOLD, "label": "cup"}])
WRONG = json.dumps([{"bbox_2d": OTHER, "label": "cup"}])
TWO = json.dumps([{"bbox_2d": GOLD}, {"bbox_2d": OTHER}])


def graded(text, gold=GOLD, canvas=(1000, 1000), asks_for=None, **parameters):
    columns = {
        "solution": [gold if isinstance(gold, str) else json.dumps(gold)],
        "canvas": [canvas and list(canvas)],
        "asks_for": [asks_for],
    }
    ((reward, reason),) = REWARDS["box"](**parameters).grades([text], **columns)
    return reward, reason


@pytest.mark.parametrize(
    "text",
    [
        RIGHT,
        json.dumps(GOLD),
        json.dumps([GOLD]),
        json.dumps(NEAR),
        json.dumps({"bbox_2d": GOLD}),
        json.dumps({"bbox": GOLD, "score": 0.9}),
        json.dumps({"box": [float(number) for number in GOLD], "category": "cup"}),
        json.dumps([{"bbox_2d": GOLD, "label": "cup", "sub_label": "a blue one"}], indent=4),
        f"```json\n{RIGHT}\n```",
        f"{RIGHT}<|im_end|>",
        f"<think>{WRONG} or not?</think>\n{RIGHT}",
        f"<think>x</think><answer>\n{RIGHT}\n</answer><|im_end|>\n",
        f"On the left there is one. <answer>{RIGHT}</answer>",
        "<think>x</think><answer>[100, 200, 300, 600]</answer>",
        "<box>(100,200),(300,600)</box>",
        "<ref>the cup</ref><box>(100,200),(300,600)</box>",
        "<ref>the cup</ref><box>[[100, 200, 300, 600]]</box>",
        "<box>[100, 200, 300, 600]</box>",
        "<|object_ref_start|>cup<|object_ref_end|><|box_start|>(100,200),(300,600)<|box_end|>",
        "<|box_start|>(100,200),(300,600)<|box_end|><|im_end|>",
        "The cup is at <|begin_of_box|>[[100, 200, 300, 600]]<|end_of_box|>",
        "<answer><|begin_of_box|>[100, 200, 300, 600]<|end_of_box|></answer>",
        "[(100,200),(300,600)]",
        "(100, 200), (300.0, 600.0)",
    ],
)
def test_right_answers_are_paid(text):
    assert graded(text) == (1.0, "correct")
    assert graded(text, RIGHT.replace(', "label": "cup"', "")) == (1.0, "correct")


# Texts that earn nothing, where GOLD is the only right box.
UNPAID = [
    "",
    " ",
    "[]",
    "{}",
    "null",
    "true",
    "0",
    "there is no cup",
    "It is on the left.",
    # another place, the whole picture, its middle, a line, a dot
    WRONG,
    json.dumps([0, 0, 1000, 1000]),
    json.dumps([{"bbox_2d": [0, 0, 1000, 1000], "label": "cup"}]),
    json.dumps([250, 250, 750, 750]),
    json.dumps([0, 0, 500, 1000]),
    json.dumps([100, 200, 300, 200]),
    json.dumps([100, 200, 100, 600]),
    json.dumps([0, 0, 0, 0]),
    json.dumps([200, 400, 201, 401]),
    json.dumps([100, 200, 300, 399]),
    json.dumps([-1000, -1000, 2000, 2000]),
    # another scale or order
    json.dumps([0.1, 0.2, 0.3, 0.6]),
    json.dumps([10, 20, 30, 60]),
    json.dumps([64, 96, 192, 288]),
    json.dumps([192, 216, 576, 648]),
    json.dumps([100, 200, 200, 400]),
    json.dumps([200, 100, 600, 300]),
    json.dumps([100, 300, 200, 600]),
    # turned corners
    json.dumps([300, 600, 100, 200]),
    json.dumps([300, 200, 100, 600]),
    json.dumps([100, 600, 300, 200]),
    # several boxes
    TWO,
    json.dumps([GOLD, GOLD]),
    json.dumps([GOLD, NEAR]),
    json.dumps([{"bbox_2d": GOLD}, {"bbox_2d": [0, 0, 1000, 1000]}]),
    json.dumps([[x, y, x + 200, y + 400] for x in range(0, 800, 100) for y in range(0, 600, 100)]),
    json.dumps([GOLD] * 10_000),
    json.dumps([GOLD, *[[x, 0, x + 1, 1] for x in range(9_999)]]),
    f"{RIGHT}\n{WRONG}",
    f"{WRONG}{RIGHT}",
    f"{RIGHT}, {WRONG}",
    f"{RIGHT} or {WRONG}",
    f"```json\n{RIGHT}\n```\n```json\n{WRONG}\n```",
    "[100, 200, 300, 600], [600, 200, 800, 600]",
    "<box>(100,200),(300,600)</box><box>(600,200),(800,600)</box>",
    "<box>(100,200),(300,600)</box> or <box>(600,200),(800,600)</box>",
    "(100,200),(300,600),(600,200),(800,600)",
    f"<answer>{RIGHT}</answer><answer>{WRONG}</answer>",
    f"<answer>{WRONG}</answer><answer>{RIGHT}</answer>",
    f"<answer>{RIGHT}</answer> No: {WRONG}",
    json.dumps({"bbox_2d": GOLD, "bbox": OTHER}),
    json.dumps({"bbox_2d": GOLD, "alternative": OTHER}),
    json.dumps({"bbox_2d": GOLD, "point_2d": [700, 400]}),
    json.dumps({"bbox_2d": [GOLD, OTHER]}),
    json.dumps({"bbox_2d": GOLD, "note": "or [600, 200, 800, 600]"}),
    json.dumps({"bbox_2d": GOLD, "label": "cup, or (600,200),(800,600)"}),
    json.dumps({"bbox_2d": GOLD, "or [600, 200, 800, 600]": 1}),
    '{"bbox_2d": [600, 200, 800, 600], "bbox_2d": [100, 200, 300, 600]}',
    # thought, and not said
    f"<think>{RIGHT}</think>",
    f"<think>{RIGHT}",
    f"<think>{RIGHT}</think>I am not sure.",
    f"<think><answer>{RIGHT}</answer></think>",
    f"<think><answer>{RIGHT}</answer></think>{WRONG}",
    f"[THINK]{RIGHT}[/THINK]",
    # denied, or among words
    f"Not {RIGHT}",
    f"{RIGHT} is wrong",
    "not (100,200),(300,600)",
    f"The box is {RIGHT}",
    f"// {RIGHT}",
    # no numbers
    RIGHT.replace("100", '"100"'),
    RIGHT.replace("100", "NaN"),
    RIGHT.replace("100", "-Infinity"),
    RIGHT.replace("600", "Infinity"),
    RIGHT.replace("600", "1e999"),
    RIGHT.replace("600", "1e300"),
    RIGHT.replace("600", "9" * 5000),
    RIGHT.replace("100", "true"),
    RIGHT.replace("100", "null"),
    RIGHT.replace("100", "50 + 50"),
    RIGHT.replace("100", "[100]"),
    RIGHT.replace("[100, 200, 300, 600]", '"[100, 200, 300, 600]"'),
    RIGHT.replace("[100, 200, 300, 600]", "[100, 200, 300]"),
    RIGHT.replace("[100, 200, 300, 600]", "[100, 200, 300, 600, 900]"),
    json.dumps(RIGHT),
    "print([100, 200, 300, 600])",
    "100, 200, 300, 600",
    "[100 200 300 600]",
    "x1=100, y1=200, x2=300, y2=600",
    "<box>(nan,200),(300,600)</box>",
    "<box>(100,200),(300,99999999999)</box>",
    "<box>(１００,200),(300,600)</box>",
    "<ref>cup or (600,200),(800,600)</ref><box>(100,200),(300,600)</box>",
    "<box></box>",
    "<box>100,200,300,600",
    # another form
    "[200, 400]",
    '{"point_2d": [200, 400]}',
    "(200, 400)",
    json.dumps({"boxes": [GOLD]}),
    json.dumps({"answer": GOLD}),
    json.dumps([[GOLD]]),
    json.dumps([GOLD, {"bbox_2d": GOLD}]),
    f"\\boxed{{{GOLD}}}",
    # long and deep
    "[" * 100_000,
    "[" * 100_000 + "]" * 100_000,
    "(" * 100_000,
    "<box>" * 50_000,
    "<box>(100,200),(300,600)" * 5_000,
    "<ref>" * 50_000,
    "<box>(1,1),(2,2)</box>" * 9_000,
    RIGHT + " " * 300_000 + WRONG,
]


def test_at_least_sixty_attempts_are_made():
    assert len(set(UNPAID)) >= 60


@pytest.mark.parametrize("text", UNPAID, ids=range(len(UNPAID)))
def test_nothing_else_is_paid(text):
    assert graded(text)[0] == 0.0
    partial, _ = graded(text, partial=True)
    assert 0.0 <= partial < 1.0


def test_hostile_answers_take_no_time():
    start = time.process_time()
    for text in UNPAID:
        graded(text)
        graded(text, text_around=True)
    # Some 0.5 s here. What grows with the square of an answer takes minutes.
    assert time.process_time() - start < 20


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no answer"),
        (f"<answer>{RIGHT}</answer><answer>{WRONG}</answer>", "several answers"),
        (f"Sure: {RIGHT}", "text around"),
        (RIGHT + WRONG, "several values"),
        ("on the left", "unreadable"),
        ("[]", "no box"),
        (json.dumps([GOLD] * 101), "too many"),
        ("[200, 400]", "other form"),
        ("[300, 600, 100, 200]", "empty box"),
        (TWO, "wrong number"),
        (WRONG, "wrong place"),
        (" " * 100 + "1" * 300_000, "too long"),
    ],
)
def test_the_reason_says_what_is_wrong_first(text, reason):
    assert graded(text) == (0.0, reason)


def test_several_right_boxes_are_met_one_to_one_in_any_order():
    golds = [GOLD, OTHER]
    assert graded(json.dumps([OTHER, NEAR]), golds) == (1.0, "correct")
    assert graded(json.dumps([GOLD, GOLD]), golds) == (0.0, "wrong place")
    assert graded(json.dumps([GOLD]), golds) == (0.0, "wrong number")
    assert graded(json.dumps([GOLD, OTHER, [0, 0, 50, 50]]), golds) == (0.0, "wrong number")


def test_the_nearest_right_box_is_not_always_the_one_to_take():
    """The first answer is nearer to the second right box, which alone the second answer fits."""
    golds = [[0, 0, 100, 100], [0, 20, 100, 120]]
    answers = [[0, 15, 100, 115], [0, 50, 100, 150]]
    assert graded(json.dumps(answers), golds) == (1.0, "correct")


def test_the_threshold_is_a_setting():
    half = json.dumps([100, 200, 300, 400])  # IoU 0.5
    assert graded(half) == (1.0, "correct")
    assert graded(half, threshold=0.51) == (0.0, "wrong place")
    assert graded(json.dumps(GOLD), threshold=1.0) == (1.0, "correct")
    assert graded(json.dumps(NEAR), threshold=0.9) == (0.0, "wrong place")


def test_partial_credit_is_the_iou_over_all_boxes():
    quarter = [100, 200, 300, 300]
    assert graded(json.dumps(quarter), partial=True) == (0.25, "wrong place")
    assert graded(json.dumps([quarter, OTHER]), partial=True) == (0.125, "wrong number")
    assert graded(json.dumps([GOLD]), [GOLD, OTHER], partial=True) == (0.5, "wrong number")
    both = graded(json.dumps([GOLD, [600, 200, 800, 300]]), [GOLD, OTHER], partial=True)
    assert both == (0.625, "wrong place")
    # A right one among a hundred is worth a hundredth, and the whole picture nothing.
    many = [GOLD, *[[x, 700, x + 1, 701] for x in range(99)]]
    assert graded(json.dumps(many), partial=True) == (0.01, "wrong number")
    assert graded("[0, 0, 1000, 1000]", partial=True) == (0.0, "wrong place")


def test_a_second_guess_does_not_pay_with_partial_credit():
    """The better of two guesses, halved, is not more than their mean."""
    for first, second in (
        ([100, 200, 300, 280], OTHER),
        ([100, 200, 250, 360], [150, 300, 300, 500]),
    ):
        one, _ = graded(json.dumps(first), partial=True)
        other, _ = graded(json.dumps(second), partial=True)
        both, _ = graded(json.dumps([first, second]), partial=True)
        assert both <= max(one, other) / 2 + 1e-9


LABELLED = [{"bbox_2d": GOLD, "label": "cup"}, {"bbox_2d": OTHER, "label": "plate"}]


def test_labels_count_where_the_right_answer_has_them():
    assert graded(json.dumps(LABELLED), LABELLED) == (1.0, "correct")
    upper = json.dumps(LABELLED).replace("cup", "The Cup")
    assert graded(upper, LABELLED) == (1.0, "correct")
    swapped = [{**LABELLED[0], "label": "plate"}, {**LABELLED[1], "label": "cup"}]
    assert graded(json.dumps(swapped), LABELLED) == (0.0, "wrong place")
    other = json.dumps(LABELLED).replace("cup", "pan")
    assert graded(other, LABELLED) == (0.0, "wrong label")
    assert graded(TWO, LABELLED) == (0.0, "wrong label")
    listed = json.dumps(LABELLED).replace('"cup"', '"cup or plate"')
    assert graded(listed, LABELLED) == (0.0, "wrong label")
    assert graded("<ref>cup</ref><box>(100,200),(300,600)</box>", LABELLED[:1]) == (1.0, "correct")
    assert graded("<ref>pan</ref><box>(100,200),(300,600)</box>", LABELLED[:1])[0] == 0.0


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        ("[200, 400]", 1.0),
        ('[{"point_2d": [100, 200], "label": "cup"}]', 1.0),  # on the edge
        ("(299.9, 599)", 1.0),
        ("<point>[200, 400]</point>", 0.0),
        ("[99, 400]", 0.0),
        ("[0.2, 0.4]", 0.0),
        ("[[200, 400], [700, 400]]", 0.0),
        ("[[200, 400], [200, 400]]", 0.0),
        ("[200, 400] or [700, 400]", 0.0),
        ("[NaN, 400]", 0.0),
        (json.dumps(GOLD), 0.0),
        ("<think>[200, 400]</think>", 0.0),
    ],
)
def test_a_point_in_the_right_box(text, reward):
    assert graded(text, asks_for="point")[0] == reward
    columns = {"solution": [json.dumps(GOLD)]}
    assert REWARDS["box"](asks_for="point")([text], **columns) == [reward]


def test_a_point_near_the_right_point():
    points = [[100, 100], [900, 900]]
    assert graded("[[890, 900], [110, 110]]", points) == (1.0, "correct")
    assert graded("[[100, 100], [100, 100]]", points) == (0.0, "wrong place")
    assert graded("[[100, 100]]", points) == (0.0, "wrong number")
    assert graded("[[100, 100]]", points, partial=True) == (0.5, "wrong number")
    assert graded("[140, 130]", [100, 100]) == (1.0, "correct")  # 0.05 away
    assert graded("[140, 131]", [100, 100]) == (0.0, "wrong place")
    assert graded("[140, 131]", [100, 100], radius=0.06) == (1.0, "correct")
    # The sides count alike: 40 of 400 is as far as 100 of 1,000.
    assert graded("[110, 100]", [100, 100], canvas=(400, 1000)) == (1.0, "correct")
    assert graded("[130, 100]", [100, 100], canvas=(400, 1000)) == (0.0, "wrong place")


@pytest.mark.parametrize(
    ("gold", "canvas", "asks_for", "reason"),
    [
        ("on the left", None, None, "bad gold"),
        ("[]", None, None, "bad gold"),
        ("[1, 2, 3]", None, None, "bad gold"),
        ("[300, 600, 100, 200]", None, None, "bad gold"),
        ("[100, 200, NaN, 600]", None, None, "bad gold"),
        ("[100, 200, 1e999, 600]", None, None, "bad gold"),
        (json.dumps([GOLD] * 101), None, None, "bad gold"),
        (json.dumps([GOLD, [200, 400]]), None, None, "bad gold"),
        ("null", None, None, "bad gold"),
        ("[200, 400]", [1000, 1000], "box", "bad gold"),
        (json.dumps(GOLD), None, "polygon", "bad gold"),
        ("[200, 400]", None, None, "bad canvas"),
        (json.dumps(GOLD), [1000], None, "bad canvas"),
        (json.dumps(GOLD), [0, 1000], None, "bad canvas"),
        (json.dumps(GOLD), [float("inf"), 1000], None, "bad canvas"),
        (json.dumps(GOLD), "large", None, "bad canvas"),
    ],
)
def test_what_cannot_be_read_is_not_graded(gold, canvas, asks_for, reason):
    columns = {"solution": [gold], "canvas": [canvas], "asks_for": [asks_for]}
    for text in (RIGHT, "[200, 400]", ""):
        (grade,) = REWARDS["box"]().grades([text], **columns)
        assert tuple(grade) == (None, reason)


@pytest.mark.parametrize(
    "gold",
    [GOLD, [GOLD], [{"bbox_2d": GOLD}], f"<answer>{GOLD}</answer>", f"<box>{GOLD}</box>"],
)
def test_a_gold_may_be_written_in_any_form(gold):
    columns = {"solution": [gold]}
    assert REWARDS["box"]()([json.dumps(NEAR)], **columns) == [1.0]


def test_text_around_is_a_setting_and_all_boxes_count():
    for text in (
        f"Sure: {RIGHT} That is it.",
        f"It is ```json\n{RIGHT}\n```",
        "<ref>The cup</ref><box>(100,200),(300,600)</box> is blue.",
    ):
        assert graded(text)[0] == 0.0
        assert graded(text, text_around=True) == (1.0, "correct")
    for text in (
        f"{WRONG} or {RIGHT}",
        f"{RIGHT} or {WRONG}",
        f"{RIGHT} or <box>(600,200),(800,600)</box>",
        "<box>(100,200),(300,600)</box> or <box>(600,200),(800,600)</box>",
        f"<think>{RIGHT}</think> It is there.",
        f"It is not {RIGHT}",
        f"{RIGHT} is wrong.",
        "Anything but <box>(100,200),(300,600)</box>",
    ):
        assert graded(text, text_around=True)[0] == 0.0


def test_explain_shows_every_box_its_iou_and_which_one_it_met():
    golds = [GOLD, OTHER]
    answers = [[600, 200, 800, 500], [1200, 700, 1300, 900], [110, 210, 310, 610]]
    row = {"solution": json.dumps(golds), "canvas": [1000, 1000]}
    explanation = REWARDS["box"]().explain(json.dumps(answers), row)
    assert explanation.reason == "wrong number"
    shown = {rule.name: (rule.passed, rule.detail) for rule in explanation.rules[-3:]}
    assert shown == {
        "right box 1, [100, 200, 300, 600]": (
            True,
            "answer 3, [110, 210, 310, 610]: IoU 0.863",
        ),
        "right box 2, [600, 200, 800, 600]": (True, "answer 1, [600, 200, 800, 500]: IoU 0.750"),
        "answer 2, [1200, 700, 1300, 900], meets a right one": (
            False,
            "IoU 0.000 with right 1; it lies outside of 1000 x 1000: is its scale another?",
        ),
    }


def test_a_right_box_as_large_as_the_picture_is_named():
    remarks = REWARDS["box"].remarks
    large = {"solution": "[0, 0, 1000, 600]", "canvas": [1000, 1000]}
    assert remarks(large) == ["the whole picture as a box is paid, since the right box is as large"]
    assert remarks({**large, "canvas": None}) == []
    assert remarks({**large, "solution": json.dumps(GOLD)}) == []
    assert remarks({**large, "asks_for": "point"}) != []
    assert remarks({**large, "asks_for": "point", "solution": json.dumps(GOLD)}) == []


def test_threads_and_order_change_nothing():
    texts = [RIGHT, WRONG, TWO, json.dumps(NEAR)] * 5
    columns = {"solution": [json.dumps(GOLD)] * len(texts)}
    expected = REWARDS["box"]()(texts, **columns)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(REWARDS["box"]()(texts, **columns)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4
    assert REWARDS["box"]()(texts[::-1], **columns) == expected[::-1]
