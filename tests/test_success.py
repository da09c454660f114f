"""Success is the share of completions that the verifier of their task paid in full, wherever it is
shown.

For the rewards of every recipe in every order, with weights and gates, for a mixture of three
tasks, for the package of a third party and for conversations of several turns: on the terminal, in
the log, for the alarms, the curriculum and the report, and in `evaluate`. What is right is known
here by how the completions were made, not from a reward.
"""

import itertools
import json
from collections import defaultdict, deque
from dataclasses import dataclass, replace
from io import StringIO
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="needs the extra [train]")
from unittest.mock import patch  # noqa: E402

from rich.console import Console  # noqa: E402

from helpers import printed  # noqa: E402
from paths import ROOT  # noqa: E402
from swift_rlvr.evaluation.grade_samples import grade_samples  # noqa: E402
from swift_rlvr.evaluation.report.reading import read_run  # noqa: E402
from swift_rlvr.evaluation.sampling import Completion  # noqa: E402
from swift_rlvr.rewards import REWARDS, Grade, Reward, add_reward  # noqa: E402
from swift_rlvr.runs.curriculum import Curriculum, CurriculumSettings  # noqa: E402
from swift_rlvr.runs.log import RunLog  # noqa: E402
from swift_rlvr.runs.statistics import summarize  # noqa: E402
from swift_rlvr.success import KNOWN_ROLES, Judges, role_of, roles_in_environment  # noqa: E402
from swift_rlvr.tasks import TASKS, Gold, RowError, Task, add_task  # noqa: E402
from swift_rlvr.training.curriculum import CurriculumCallback  # noqa: E402
from swift_rlvr.training.reason_callback import ReasonCallback  # noqa: E402
from swift_rlvr.training.recipes import read_recipe  # noqa: E402
from swift_rlvr.utils.errors import InputError  # noqa: E402

RECIPES = {
    path.stem: recipe
    for path in sorted((ROOT / "scripts" / "configs").glob("*.yaml"))
    if "reward_funcs" in (recipe := read_recipe(path)).settings
}
GOOD, BARE = "<think>\nA thought.\n</think>\n<answer>\n{}\n</answer>", "<answer>{}</answer>"
MOST_ORDERS = 24
QUESTION = [{"role": "user", "content": "?"}]


@dataclass
class Answer:
    """A completion of a row, and whether it is right and in the format; None for a row that cannot
    be graded.
    """

    row: dict
    text: str
    right: bool | None
    formatted: bool


def answers_to(row, right, wrong):
    """Four of one row: right or wrong, in the format or not."""
    return [
        Answer(row, layout.format(text), text == right, layout == GOOD)
        for text, layout in ((right, GOOD), (wrong, GOOD), (right, BARE), (wrong, BARE))
    ]


COUNTDOWN = answers_to(
    {"task": "countdown", "nums": [1, 2], "target": 3, "level": 0}, "1 + 2 = 3", "2 - 1 = 1"
)
GSM8K = answers_to({"task": "gsm8k", "solution": "42", "level": 1}, "42", "41")[:3]
CODE_ROW = {"task": "code", "tests": ["assert f(1) == 2"], "entry_point": "f", "level": 0}
CODE = answers_to(
    CODE_ROW,
    "```python\ndef f(x):\n    return x + 1\n```",
    "```python\ndef f(x):\n    return 1\n```",
)
UNREADABLE = [Answer({"task": "gsm8k", "solution": "", "level": 1}, GOOD.format("42"), None, True)]
GYM = answers_to(
    {
        "task": "reasoning_gym",
        "entry": REWARDS["reasoning_gym"].examples[0].row["entry"],
        "level": 0,
    },
    "3",
    "4",
)
MIXED = [*COUNTDOWN, *GSM8K, *UNREADABLE, *CODE]
OF_TASK = {
    "countdown": COUNTDOWN,
    "gsm8k": [*GSM8K, *UNREADABLE],
    "numina_math_tir": [*GSM8K, *UNREADABLE],
    "math": [*GSM8K, *UNREADABLE],
}
OF_TASK["reasoning_gym"] = GYM[:3]


class Format:
    """As ms-swift's own `format`: a class without a role, whose name is in the table of known
    ones.
    """

    def __call__(self, completions, **columns):
        return [float(text.startswith("<think>")) for text in completions]


def share(values):
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def built(name):
    return Format() if name == "format" else REWARDS[name]()


def trainer_of(rewards, answers):
    """A trainer as our callbacks see it, after a batch of these answers."""
    columns = {
        name: [answer.row.get(name) for answer in answers]
        for name in {key for answer in answers for key in answer.row}
    }
    texts = [answer.text for answer in answers]
    columns |= {
        "messages": [QUESTION] * len(texts),
        "completion_ids": [[1] * len(text) for text in texts],
    }
    names = [getattr(reward, "__name__", type(reward).__name__) for reward in rewards]
    logged: dict[str, deque] = {name: deque(maxlen=len(texts)) for name in names}
    logs = {"rewards": logged, "advantages": [0.0] * len(texts)}

    def score(inputs=None):
        for reward, name in zip(trainer.reward_funcs, names, strict=True):
            values = reward(texts, **columns)
            logged[name].extend(float("nan") if value is None else value for value in values)

    trainer = SimpleNamespace(
        reward_funcs=list(rewards), reward_func_names=names, reward_weights=torch.ones(len(names)), num_generations=1,
        accelerator=SimpleNamespace(is_main_process=True, num_processes=1, process_index=0), _logs=logs,
        _metrics={"train": defaultdict(list)}, model=SimpleNamespace(training=True),
        train_dataset=[answer.row for answer in answers], _generate_and_score_completions=score,
    )  # fmt: skip
    return trainer


def shown(rewards, answers, folder):
    """Success and strict by where they are shown, of a step of a training with these rewards."""
    console = Console(file=StringIO(), width=200)
    trainer = trainer_of(rewards, answers)
    state = SimpleNamespace(global_step=1, max_steps=1, is_world_process_zero=True)
    seen = []

    def no_alarm(step, row):
        seen.append(row)
        return []

    with RunLog(folder, console) as log:
        callback = ReasonCallback(SimpleNamespace(output_dir=folder), trainer, log)
        callback.on_train_begin(None, state, None)  # which makes the log's alarms
        with patch.object(log.alarms, "row", no_alarm):
            trainer._generate_and_score_completions()
            callback.on_step_end(SimpleNamespace(output_dir=folder), state, SimpleNamespace())
            metrics = {
                name: sum(values) / len(values)
                for name, values in trainer._metrics["train"].items()
            }
            log.update(1, {"reward": 0.5, **metrics})
    run = read_run(folder)
    found = {
        "log": (run.steps[0].get("success"), run.steps[0].get("strict")),
        "alarms": (seen[0].get("success"), seen[0].get("strict")),
        "records": tuple(
            share([getattr(record, name) for record in run.records()])
            for name in ("success", "strict")
        ),
        "report": (
            share([entry.success for entry in run.entries.values()]),
            run.steps[0].get("strict"),
        ),
    }
    terminal = printed(console)
    return {place: tuple(map(rounded, values)) for place, values in found.items()}, terminal


def rounded(value):
    return None if value is None else round(value, 6)


def expected(answers, rewards):
    right = share([answer.right for answer in answers])
    judges_form = any(role_of(reward) == "format" for reward in rewards)
    strict = share(
        [None if answer.right is None else answer.right and answer.formatted for answer in answers]
    )
    return rounded(right), rounded(strict) if judges_form else None


def assert_shown(rewards, answers, folder):
    found, terminal = shown(rewards, answers, folder)
    success, strict = expected(answers, rewards)
    for place, (of_all, of_strict) in found.items():
        assert (of_all, of_strict if place != "records" or strict is not None else None) == (
            success,
            strict,
        ), place
    assert f" success {success:.2f}" in terminal, terminal


@pytest.mark.parametrize("name", RECIPES)
def test_of_the_rewards_of_every_recipe_in_every_order(name, tmp_path, monkeypatch):
    recipe = RECIPES[name]
    for variable, value in recipe.env.items():
        if variable.startswith("EXTERNAL_"):
            monkeypatch.setenv(variable, value)
    task = recipe.settings["dataset"].partition(":")[0].partition("#")[0]
    answers = OF_TASK.get(task, COUNTDOWN)
    names = [
        name for name in recipe.settings["reward_funcs"] if name == "format" or name in REWARDS
    ]
    assert len(names) >= 2
    for number, order in enumerate(itertools.islice(itertools.permutations(names), MOST_ORDERS)):
        assert_shown([built(name) for name in order], answers, tmp_path / str(number))


NAMES = (
    "external_tag_count",
    "external_cosine",
    "external_format_strict",
    "external_accuracy",
    "external_boxed",
)


@pytest.mark.parametrize(
    "order", [NAMES, NAMES[::-1], (*NAMES[2:], *NAMES[:2])], ids=["one", "reversed", "turned"]
)
def test_of_several_verifiers_the_tasks_own_decides(order, tmp_path):
    """external_boxed refuses what stands in no box, and the task names external_accuracy."""
    assert_shown([built(name) for name in order], GSM8K, tmp_path)


@pytest.mark.parametrize("gate", ["none", "outcome"])
def test_a_gate_changes_no_success(gate, tmp_path):
    options = {"gate": gate, "accuracy": "external_countdown"}
    rewards = [
        REWARDS["length"](**options),
        REWARDS["tag_count"](**options),
        REWARDS["countdown"](),
    ]
    assert_shown(rewards, COUNTDOWN, tmp_path)


@pytest.mark.parametrize(
    "order",
    list(itertools.permutations(("external_countdown", "external_accuracy", "external_code"))),
)
def test_of_a_mixture_of_three_tasks_each_rows_verifier_counts(order, tmp_path):
    rewards = [
        built("external_format_strict"),
        *(built(name) for name in order),
        built("external_tag_count"),
    ]
    assert_shown(rewards, MIXED, tmp_path)


def test_the_curriculum_goes_by_the_same_success_whatever_the_task_and_the_order(
    tmp_path, monkeypatch
):
    for order in itertools.permutations(
        ("external_countdown", "external_accuracy", "external_code", "external_cosine")
    ):
        trainer = trainer_of([built(name) for name in order], MIXED)
        callback = CurriculumCallback(
            SimpleNamespace(output_dir=tmp_path, seed=0), trainer, CurriculumSettings()
        )
        state = SimpleNamespace(global_step=0, stateful_callbacks={})
        callback.on_train_begin(SimpleNamespace(seed=0), state, None)
        monkeypatch.setattr(callback.curriculum, "draw", lambda count: list(range(count)))
        trainer._generate_and_score_completions([None] * len(MIXED))
        same = Curriculum([answer.row["level"] for answer in MIXED], CurriculumSettings(), 0)
        figures = same.record(list(range(len(MIXED))), [answer.right for answer in MIXED])
        assert {
            name: values[0] for name, values in trainer._metrics["train"].items()
        } == pytest.approx(figures)


def test_evaluate_counts_the_same(tmp_path):
    for task, answers in (("countdown", COUNTDOWN), ("gsm8k", GSM8K), ("mixed", MIXED)):
        completions = [[Completion(answer.text, 5, "stop")] for answer in answers]
        records = grade_samples(
            TASKS[task], [answer.row for answer in answers], [QUESTION] * len(answers), completions
        )
        assert [record.success for record in records] == [answer.right for answer in answers]
        assert summarize(records)["success"] == pytest.approx(
            share([answer.right for answer in answers])
        )


def test_of_a_third_partys_task_with_partial_credit_and_a_larger_full_reward(tmp_path):
    class LettersReward(Reward):
        """2 for the word, 1 for half of it."""

        name, role, columns = "external_letters", "verifier", ("word",)
        reasons, full_reward = ("right", "half", "wrong"), 2.0

        def grade(self, text, row):
            if row["word"] in text:
                return Grade(2.0, "right")
            return Grade(1.0, "half") if row["word"][:2] in text else Grade(0.0, "wrong")

    def refuse(row):
        raise RowError("word", "not here")

    add_reward(LettersReward)
    task = Task(
        name="letters", columns=("word",), preprocess=refuse, identity=refuse, gold=lambda row: Gold("a", "b", "c"),
        system="", verifier="external_letters", reward_columns=("word",),
    )  # fmt: skip
    add_task(task)
    try:
        row = {"task": "letters", "word": "abcd", "level": 0}
        answers = [
            Answer(row, GOOD.format(text), text == "abcd", True) for text in ("abcd", "ab", "x")
        ]
        for order in itertools.permutations(
            (LettersReward(), REWARDS["countdown"](), REWARDS["format"]())
        ):
            columns = {"nums": None, "target": None}
            assert_shown(
                order,
                [replace(answer, row=answer.row | columns) for answer in answers],
                tmp_path / str(id(order)),
            )
    finally:
        del TASKS["letters"]


def test_rewards_of_others_have_a_role_by_the_table_by_an_attribute_or_by_the_variable(
    tmp_path, monkeypatch
):
    class Mine:
        def __call__(self, completions, **columns):
            return [float("1 + 2" in text) for text in completions]

    rewards = [Format(), Mine()]
    assert [role_of(reward) for reward in rewards] == ["format", None]
    found, terminal = shown(rewards, COUNTDOWN, tmp_path / "unknown")
    assert found["log"][0] is None and " reward 0.50" in terminal and "success" not in terminal
    monkeypatch.setenv("SWIFT_RLVR_ROLES", "Mine=verifier")
    assert_shown([*rewards, REWARDS["tag_count"]()], COUNTDOWN, tmp_path / "said")
    monkeypatch.delenv("SWIFT_RLVR_ROLES")
    monkeypatch.setattr(Mine, "role", "verifier", raising=False)
    assert_shown([*rewards, REWARDS["tag_count"]()], COUNTDOWN, tmp_path / "declared")
    with pytest.raises(InputError, match="SWIFT_RLVR_ROLES: must be NAME=ROLE .*; got 'Mine'"):
        roles_in_environment({"SWIFT_RLVR_ROLES": "Mine"})


def test_the_table_of_known_roles_has_every_reward_of_ms_swift():
    pytest.importorskip("swift", reason="needs the extra [train]")
    from swift.rewards import orms

    theirs = {
        name: reward for name, reward in orms.items() if reward.__module__.startswith("swift.")
    }
    assert {*theirs, *(reward.__name__ for reward in theirs.values())} <= KNOWN_ROLES.keys()


def test_the_table_of_known_roles_has_every_reward_of_trl():
    """By the names that it logs; a factory's are those of what it makes."""
    rewards = pytest.importorskip("trl.rewards", reason="needs the extra [trl]")
    factories = {
        "get_cosine_scaled_reward": {"max_len": 100},
        "get_repetition_penalty_reward": {},
        "get_soft_overlong_punishment": {"max_completion_len": 100, "soft_punish_cache": 20},
    }
    for names in rewards._import_structure.values():
        for name in names:
            reward = getattr(rewards, name)
            if name in factories:
                reward = reward(**factories[name])
            assert reward.__name__ in KNOWN_ROLES, name


def test_of_a_conversation_of_several_turns_the_last_answer_counts(tmp_path):
    """The record of a conversation is one completion, with the answers before it among its
    messages.
    """
    earlier = [
        *QUESTION,
        {"role": "assistant", "content": "2 - 1"},
        {"role": "user", "content": "Try again."},
    ]
    trainer = trainer_of([REWARDS["tag_count"](), REWARDS["countdown"]()], COUNTDOWN)
    callback = ReasonCallback(SimpleNamespace(output_dir=tmp_path), trainer)
    callback.on_train_begin(None, SimpleNamespace(global_step=0, is_world_process_zero=True), None)
    columns = {"nums": [[1, 2]] * 2, "target": [3] * 2, "task": ["countdown"] * 2}
    columns |= {
        "messages": [[*earlier, {"role": "assistant", "content": "x"}]] * 2,
        "rollout_infos": [{"num_turns": 2}] * 2,
    }
    texts = [BARE.format("1 + 2"), BARE.format("2 - 1")]
    for reward in trainer.reward_funcs:
        trainer._logs["rewards"][reward.__name__].extend(reward(texts, **columns))
    callback._write("train", 1)
    assert trainer._metrics["train"]["success"] == [1.0, 0.0]
    first, second = callback.log.folder.joinpath("records.jsonl").read_text().splitlines()
    assert json.loads(first)["messages"] == earlier and json.loads(second)["turn"] == 2


@pytest.mark.parametrize(
    ("formats", "judged"),
    [
        (
            {"external_format": 1.0},
            (True, True, True),
        ),  # of a mixture: another task has the other one
        ({"external_format": None, "external_format_strict": 1.0}, (True, True, True)),
        ({"external_format": float("nan"), "external_format_strict": 0.0}, (True, False, False)),
        ({"external_format": 1.0, "external_format_strict": 0.0}, (True, False, False)),
        ({"external_format": None}, (True, None, None)),
    ],
)
def test_a_format_reward_that_has_not_graded_a_completion_has_no_part_in_its_format(
    formats, judged
):
    judges = Judges.from_rewards(
        REWARDS[name]() for name in ("countdown", "format", "format_strict")
    )
    assert judges.of({"external_countdown": 1.0, **formats}) == judged


def test_no_decision_is_made_by_the_order_of_the_rewards():
    several = (Format(), REWARDS["boxed"](), REWARDS["code"]())
    judges = [Judges.from_rewards(order) for order in itertools.permutations(several)]
    rewards = {"Format": 1.0, "external_boxed": 1.0, "external_code": 0.5}
    assert {one_order.of(rewards) for one_order in judges} == {
        (False, False, True)
    }  # of no known task: every verifier must pay
    assert {one_order.of(rewards, "external_boxed") for one_order in judges} == {(True, True, True)}


def test_rewards_json_of_a_run_that_knew_a_judge_can_be_read():
    judges = Judges.from_json(
        {"external_boxed": {"role": "verifier", "logged": "BoxedReward", "asks_model": False}}
    )
    assert judges.of({"external_boxed": 1.0}).success
