"""Checks by what ms-swift makes of the arguments, and of the rewards: names, parameters, what they pay."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from itertools import chain
from types import SimpleNamespace
from typing import Any
from unittest import mock

from swift_rlvr.contract.findings import form_text
from swift_rlvr.evaluation.pay import GUESS, TRIED_ROWS, Pay, find_fault
from swift_rlvr.evaluation.prompts import AskedRow
from swift_rlvr.launch.checks import CheckResult, Launch, failed, passed, warning
from swift_rlvr.launch.checks.rows import is_guess, task_of, tasks_of_data
from swift_rlvr.launch.settings import GrpoSettings
from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.rewards.build import reward_class, rewards_without_rows
from swift_rlvr.rewards.code import CodeReward
from swift_rlvr.rewards.imported import FIELD, is_import_path
from swift_rlvr.rewards.parameters import flag_elsewhere, stray_variables
from swift_rlvr.success import FORMAT, FULL, ROLES_VARIABLE, VERIFIER, role_of
from swift_rlvr.tasks import TASKS
from swift_rlvr.utils.errors import did_you_mean
from swift_rlvr.verifiers.code import SandboxError, leaves_no_trace

PLUGIN = "--external_plugins $(swift-rlvr plugin)"
_OF_ROWS = "check its parameters, and the row with `swift-rlvr dataset check`"


def arguments(launch: Launch) -> Iterator[CheckResult]:
    """ms-swift knows every setting, and takes them together; a training would say so after the
    server has started.
    """
    parsed = launch.parsed
    listed = "`swift rlhf --help` lists all"
    if parsed.problem:
        message = f"ms-swift refuses them: {parsed.problem}"
        yield failed("settings", message, f"correct them; {listed}")
    if parsed.broken_plugin:
        remedy = "correct the file, or the flag; no training starts without it"
        yield failed("plugins", parsed.broken_plugin, remedy)
    if parsed.failure:
        message = f"ms-swift could not be asked: {parsed.failure}"
        yield warning("settings", message, "the training will say more")
        message = "not checked: ms-swift's rewards, grading, and what only the training refuses"
        yield warning("training", message, "as above; then run this again")
    parameters_of_all = [(name, reward.Parameters) for name, reward in REWARDS.items()]
    for name in parsed.unknown:
        # Not the nearest: open-r1's cosine_min_value_correct is ms-swift's for the longest answer.
        elsewhere = flag_elsewhere(name, parameters_of_all)
        remedy = elsewhere or did_you_mean(name, parsed.settings) or listed
        yield failed("settings", f"ms-swift has no setting {name}", remedy)
    if parsed.is_read and not parsed.unknown:
        yield passed("settings", "ms-swift takes them")


# Settings that override others in ms-swift.
OTHER_NAMES = {"max_completion_length": ("response_length", "max_new_tokens")}


def later(launch: Launch) -> Iterator[CheckResult]:
    """What ms-swift's parser takes, its training can use."""
    parsed = launch.parsed
    if not parsed.is_read:
        return
    for setting, problem, remedy in parsed.unusable:
        yield failed(setting, problem, remedy)
    for setting, problem, remedy in (*parsed.unread, *parsed.rescaled):
        yield warning(setting, problem, remedy)
    # What the plan shows, and memory, lengths and steps are made of, is what the training does.
    unread = {setting for setting, _, _ in parsed.unread}
    for name, value in parsed.numbers.items():
        planned = getattr(launch.plan.grpo, name)
        # 0 stands for what is not set, and ms-swift may fill in. What it does not read it may reset.
        if planned in (0, value) or name in unread:
            continue
        # Without another flag for the same ms-swift has reasons of its own.
        others = [other for other in OTHER_NAMES.get(name, ()) if other in launch.settings]
        report = failed if others else warning
        source = f" ({', '.join(others)})" if others else ""
        problem = f"ms-swift trains with {value:g}{source}, and the plan has {planned:g}"
        yield report(name, problem, f"--{name} {value:g}, and nothing else for the same")
    if parsed.end_of_answer:
        message = f"the template ends an answer with {parsed.end_of_answer}, for which the model has no token"
        yield warning("template", message, "leave --template out for the model's own")
    if parsed.untried:
        message = "not checked: whether they leave a parameter to train, since the model is not on this machine"
        yield warning(", ".join(parsed.untried), message, "run the doctor where the model is")
    if not parsed.unusable:
        yield passed(
            "training", "the settings are known to the trainer, the losses and the sampler"
        )


def names(launch: Launch) -> Iterator[CheckResult]:
    """ms-swift with its plugins knows every reward, and the weights are for them."""
    known = launch.parsed.rewards
    if not known:  # it has refused the arguments
        return
    rewards = [*launch.listed("reward_funcs"), *_other_rewards(launch)]
    unknown = [name for name in launch.listed("reward_funcs") if name not in known]
    for name in unknown:
        yield failed("rewards", f"ms-swift knows no reward {name}", _how_to_name(name, launch))
    weights = launch.plan.grpo.reward_weights
    if not rewards:
        remedy = f"some of {', '.join(known)}"
        yield failed("rewards", "reward_funcs names no reward", remedy)
    elif weights and len(weights) != len(rewards):
        message = f"{len(weights)} reward_weights for {len(rewards)} rewards"
        yield failed("rewards", message, f"{len(rewards)} reward_weights")
    elif weights and not any(weights):
        message = "all reward_weights are 0, so that every completion is worth the same"
        yield failed("rewards", message, "weights other than 0")
    elif not unknown and not launch.parsed.replaced:
        yield passed("rewards", ", ".join(weighted_names(launch.plan.grpo, rewards)))


def _how_to_name(name: str, launch: Launch) -> str:
    """What to do about a reward that ms-swift does not know."""
    known, late = launch.parsed.rewards, launch.parsed.late
    if name in late and launch.parsed.has_ours:
        return (
            f"--external_plugins: {late[name]} before this package's plugin, which registers {name}"
        )
    if name in REWARDS.data:  # ours, which the plugin registers
        return PLUGIN
    # ms-swift wants external_countdown for countdown.
    full_name = REWARDS[name].name if name in REWARDS else name
    return did_you_mean(full_name, known) or f"one of {', '.join(known)}"


def replaced(launch: Launch) -> Iterator[CheckResult]:
    """No plugin has taken the name of one of our rewards."""
    for name, other in launch.parsed.replaced.items():
        if launch.parsed.has_ours:
            message = f"{other} has replaced this package's reward {name}"
            remedy = "remove that plugin from --external_plugins, or rename its reward"
            yield failed("rewards", message, remedy)
        else:
            message = f"{name} is {other}, not this package's reward; it was not tried on the rows"
            yield warning("rewards", message, f"{PLUGIN} in place of that plugin, or as it is")


def weighted_names(settings: GrpoSettings, names: Sequence[str] = ()) -> list[str]:
    """Each reward with its weight, where there is one for each.

    >>> settings = {"reward_funcs": ["external_countdown", "format"], "reward_weights": [1.0, 0.5]}
    >>> weighted_names(GrpoSettings(settings))
    ['external_countdown x 1', 'format x 0.5']
    """
    names = names or settings.listed("reward_funcs")
    weights = settings.reward_weights
    if len(weights) != len(names):
        return list(names)
    return [f"{name} x {weight:g}" for name, weight in zip(names, weights, strict=True)]


def _other_rewards(launch: Launch) -> list[str]:
    """The rewards besides `reward_funcs`: models, and that of an environment."""
    rewards = launch.listed("reward_model")
    if launch.settings.get("use_gym_env", launch.settings.get("gym_env")):
        rewards.append("that of the environment")
    return rewards


def build(launch: Launch) -> tuple[list[Reward], list[CheckResult]]:
    """Build the rewards of the run that are ours or have an import path, with their parameters.
    Returns them, and what is wrong with those that cannot be built.
    """
    rewards: list[Reward] = []
    results: list[CheckResult] = []
    max_length = launch.plan.grpo.max_completion_length
    arguments = SimpleNamespace(max_completion_length=max_length)
    with _variables(launch):
        for name in launch.listed("reward_funcs"):
            is_of_file = is_import_path(name) or name.endswith(".py")
            if name not in REWARDS.data and not is_of_file:
                continue
            try:
                rewards.append(reward_class(name)(arguments))
            except ValueError as error:  # among them InputError
                subject, remedy = "parameters", "`swift-rlvr rewards NAME` lists the parameters"
                if getattr(error, "field", None) == FIELD:  # it cannot be imported
                    subject = "rewards"
                    remedy = "correct the file or the name; `swift-rlvr rewards` tries it"
                result = failed(subject, str(error), remedy)
                # Of several functions of one file that is not there.
                if result not in results:
                    results.append(result)
    return rewards, results


def _variables(launch: Launch) -> AbstractContextManager[Any]:
    """Puts the parameters that a recipe sets under ENV into this process's environment for a moment."""
    environ = launch.environ.items()
    of_rewards = {name: value for name, value in environ if name.startswith("EXTERNAL_")}
    return mock.patch.dict(os.environ, of_rewards)


def parameters(launch: Launch) -> list[CheckResult]:
    """The parameters in EXTERNAL_* variables are valid, and each belongs to a reward."""
    rewards, results = build(launch)
    with _variables(launch):
        stray = list(stray_variables(REWARDS))
    # All variables that set a parameter of a reward, such as EXTERNAL_COUNTDOWN_NOTATION.
    known = []
    for name in REWARDS:
        for parameter in fields(REWARDS[name].Parameters):
            known.append(f"{name}_{parameter.name}".upper())
    for variable in stray:
        message = f"{variable} is set and belongs to no reward"
        remedy = did_you_mean(variable, known) or f"unset {variable}"
        results.append(warning("parameters", message, remedy))
    if rewards and not results:
        count = sum(name.startswith("EXTERNAL_") for name in launch.environ)
        text = f"{count} set by variables" if count else "all as by default"
        results.append(passed("parameters", text))
    return results


def idle(launch: Launch) -> Iterator[CheckResult]:
    """Each of these rewards has rows that it grades; `verifiers` names the verifiers that have none."""
    rewards, _ = build(launch)
    if not rewards:
        return
    tasks = list(dict.fromkeys(map(task_of, launch.asked)))
    if not tasks:  # of no row is the task known
        return
    datasets = {name.partition(":")[0] for name in launch.listed("dataset")}
    # A warning where there are rows that were not looked at.
    report = failed if datasets == {*tasks} else warning
    for reward, remedy in rewards_without_rows(rewards, tasks):
        if reward.role != VERIFIER:
            yield report("grades", f"{reward.name} grades no row of {', '.join(tasks)}", remedy)


def sandbox(launch: Launch) -> Iterator[CheckResult]:
    """Code can be run safely here, where a reward does that."""
    for reward in build(launch)[0]:
        runner = reward.verifier or reward
        if not isinstance(runner, CodeReward):
            continue
        try:
            is_closed = leaves_no_trace(runner.limits)
        except (SandboxError, OSError) as error:
            remedy = (
                "Linux 5.13 or later with Landlock and seccomp, or, knowing what is lost, "
                "EXTERNAL_CODE_WITHOUT_LANDLOCK=true"
            )
            yield failed("sandbox", f"{reward.name}: {error}", remedy)
            continue
        if runner.limits.without_landlock:
            message = (
                "without_landlock: where there is no Landlock, code can read what you can read"
            )
            yield warning("sandbox", message, "leave it out where the kernel has Landlock")
        elif not is_closed:
            message = (
                "code runs with Landlock; by the times at which files were read, though, one "
                "completion could tell another something"
            )
            remedy = "allow namespaces of users (unshare), or mount Python's folder with noatime"
            yield warning("sandbox", message, remedy)
        else:
            yield passed("sandbox", "code runs with Landlock, and leaves nothing behind")


def tried_rows(launch: Launch) -> list[AskedRow]:
    """The rows on which the rewards of the run are tried together: up to TRIED_ROWS of each task, from
    all over those that are looked at.
    """
    of_tasks: dict[str, list[AskedRow]] = {}
    for asked in launch.asked:
        of_tasks.setdefault(task_of(asked), []).append(asked)
    tried: list[AskedRow] = []
    for rows in of_tasks.values():
        step = math.ceil(len(rows) / TRIED_ROWS)
        tried += rows[::step]
    return tried


def rows_to_grade(launch: Launch) -> list[dict[str, Any]]:
    """What ms-swift's process is to grade for `together`: for each of `tried_rows` a right completion,
    in the form that its prompt asks for, and a wrong one; of a row without a gold the wrong one alone.

    A row is as the trainer has it: `messages` ends with the completion.
    """
    rows = []
    for asked in tried_rows(launch):
        for completion in (asked.graded, asked.answering(GUESS)):
            if completion is not None:
                messages = [*asked.messages, {"role": "assistant", "content": completion}]
                rows.append({**asked.row, "messages": messages})
    return rows


def together(launch: Launch) -> Iterator[CheckResult]:
    """All rewards of the run, called as its trainer calls them, pay a right completion more than a
    wrong one, and the verifiers pay it in full.
    """
    paid = launch.parsed.paid
    tried = tried_rows(launch)
    if not paid or not tried:
        return
    values: dict[str, list[float | None]] = {}
    for name, result in paid.items():
        if isinstance(result, str):
            remedy = "correct the reward; `swift-rlvr check` tries it alone"
            yield failed("grading", f"{name} cannot grade the first rows: {result}", remedy)
        else:
            values[name] = result
    is_verified = all(result.status != "failed" for result in verifiers(launch))
    if len(values) < len(paid) or not is_verified:
        return
    for name, argument in launch.parsed.changed.items():
        if len(paid) > 1:
            message = f"{name} changes its argument {argument!r}, and the rewards after it get that"
            yield warning("grading", message, "a copy of it in that function")

    compared: dict[str, list[ComparedRow]] = {}
    is_telling = True
    place = 0  # in what was graded, where a row has two completions, or one without a gold
    for asked in tried:
        # Of a row without a reference the wrong completion alone is graded, and a prompt of a form that is
        # not known may want what no reference here shows: of these a 0 says nothing.
        if asked.graded is None or asked.form is None:
            is_telling = False
        if asked.graded is None:
            place += 1
            continue
        right: dict[str, float | None] = {}
        wrong: dict[str, float | None] = {}
        for name, earned in values.items():
            right[name], wrong[name] = earned[place : place + 2]
        place += 2
        compared.setdefault(task_of(asked), []).append(ComparedRow(asked, right, wrong))

    has_verifier = VERIFIER in map(launch.parsed.rewards.get, values)
    all_paid = set(chain.from_iterable(values.values()))
    if not has_verifier and is_telling and all_paid in ({0}, {0, None}):
        message = f"right completions earn 0 of {', '.join(values)}, as wrong ones do"
        report = warning if is_guess(launch, tried[0]) else failed
        yield report("grading", f"{message}: nothing is learned", _OF_ROWS)
        return
    for rows in compared.values():
        yield _judge_rows(launch, rows)
    yield from _formats_not_earned(launch, list(chain.from_iterable(compared.values())))


@dataclass(frozen=True)
class ComparedRow:
    """What each reward pays for a right and for a wrong completion of a row."""

    asked: AskedRow
    right: Mapping[str, float | None]
    wrong: Mapping[str, float | None]


def _judge_rows(launch: Launch, rows: Sequence[ComparedRow]) -> CheckResult:
    """The first row of a task that is at fault, and how many are; else what the first row earns."""
    weights = weights_by_name(launch)
    # What each verifier pays for a right completion.
    full = {}
    for name in rows[0].right:
        if launch.parsed.rewards[name] == VERIFIER:
            full[name] = launch.parsed.full.get(name, FULL)
    for reward in build(launch)[0]:
        if reward.name in full:
            full[reward.name] = reward.full_reward

    pays = []
    for row in rows:
        where = f"the right completion of line {row.asked.line} ({task_of(row.asked)})"
        pays.append(Pay(where, row.right, row.wrong, weights, full))
    fault = find_fault(pays)
    if fault is None:
        return passed("grading", f"{pays[0]}; {len(rows):,} rows were tried")

    # Where what is right, or in which form, is a guess, the guess may be wrong.
    asked = rows[0].asked
    guessed = ""
    if asked.form is None:
        guessed = "the prompt does not say what the answer looks like"
    elif is_guess(launch, asked):
        guessed = "the columns' names alone tell what is right"
    message = fault.text
    if guessed and full:
        message += f"; {guessed}, so that this may be meant"
    report = failed if fault.ends_run and not guessed else warning
    remedy = _OF_ROWS
    if fault.is_of_total:
        remedy = "a reward that verifies answers, or other reward_weights"
    return report("grading", message, remedy)


def _formats_not_earned(launch: Launch, rows: Sequence[ComparedRow]) -> Iterator[CheckResult]:
    """Warn of format rewards of others that pay nothing for what the prompts ask for; the check of a
    dataset sees that of ours.
    """
    ours = {reward.name for reward in build(launch)[0]}
    known: list[ComparedRow] = []
    earning = set()
    for row in rows:
        if row.asked.form is None:
            continue
        known.append(row)
        for name in row.right:
            if row.right[name] or row.wrong[name]:
                earning.add(name)
    for name, role in launch.parsed.rewards.items():
        if not known or name in ours or role != FORMAT or name not in known[0].right:
            continue
        if name not in earning:
            asked = form_text(known[0].asked.form or "")
            message = f"the prompt asks for {asked}, so {name} can hardly be earned"
            remedy = f"leave {name} out, or ask for its form in the prompt"
            yield warning("grading", message, remedy)


def weights_by_name(launch: Launch) -> dict[str, float]:
    """What the pay of a reward is multiplied with. Of one that is named twice the weights add up."""
    names = launch.listed("reward_funcs")
    values = launch.plan.grpo.reward_weights
    if len(values) < len(names):
        values = [1.0] * len(names)
    weights = dict.fromkeys(names, 0.0)
    for name, value in zip(names, values, strict=False):  # a reward model's come last
        weights[name] += value
    return weights


def verifiers(launch: Launch) -> list[CheckResult]:
    """Each task has a reward that verifies its answers. Of datasets whose tasks are not known before
    they are loaded, this says only what is wrong whatever they are.

    A reward gives None for tasks that are not its own. ms-swift sums with nansum for every
    estimator (swift/rl_core/advantage.py): None counts as 0. So a row that nothing grades teaches
    nothing.
    """
    if _other_rewards(launch):  # what those judge is not known here
        return []
    own = {reward.name: reward for reward in build(launch)[0]}
    known = launch.parsed.rewards
    roles: dict[str, str | None] = {}
    for name in launch.listed("reward_funcs"):
        if name in known:
            roles[name] = known[name]
        # Until ms-swift has been asked, one that nobody knows may verify.
        elif not known:
            roles[name] = own[name].role if name in own else role_of(name) or VERIFIER
    verifying = [name for name, role in roles.items() if role == VERIFIER]

    # By task the rewards that grade it. Those that are not ours are taken to grade all, and any may grade
    # rows whose task is not known.
    tasks, others = tasks_of_data(launch)
    grading: dict[str, list[str]] = {task: [] for task in tasks}
    for name in roles:
        only = own[name].own_tasks if name in own else None
        for task in tasks:
            if not only or task in only:
                grading[task].append(name)
    grading |= dict.fromkeys(others, list(roles))
    results = []
    for task, names in grading.items():
        if not names:
            message = f"no reward grades rows of {task}: all their completions get 0 and nothing is learned from them"
            results.append(failed("verifiers", message, "a reward for that task, or leave it out"))
        elif not set(names) & set(verifying):
            message = f"no reward verifies answers of {task}, there are {', '.join(names)}: success is not known"
            verifier = TASKS[task].verifier if task in TASKS else None
            remedy = f"{verifier or 'a reward that does'}, or for one of your own {ROLES_VARIABLE}=CLASS=verifier"
            # Without any verifier it may be meant: a run for the format alone.
            report = failed if verifying else warning
            results.append(report("verifiers", message, remedy))
    if tasks and not results:
        results.append(passed("verifiers", f"of {', '.join(tasks)}: {', '.join(verifying)}"))
    return results


CHECKS = (parameters, sandbox, idle)
AFTER_MS_SWIFT = (arguments, later, names, replaced, verifiers, together)
