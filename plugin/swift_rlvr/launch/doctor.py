"""`swift-rlvr doctor`: can the planned launch work on this machine? Each check passes, warns or fails, with a remedy.

    findings = check(make_plan(recipe, flags, this_machine()), fast=True)

The fast part takes a second or two and imports none of the large packages; the scripts run it before each launch. The
full part also asks torch and the hub, looks at every row, and renders prompts.
"""

from collections.abc import Callable, Iterator

from swift_rlvr.launch.checks import Case, Finding, data, failed, machine, model, network, rewards, run
from swift_rlvr.launch.plan import Plan

__all__ = ["CHECKS", "Finding", "check"]

CHECKS: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    machine.versions,
    machine.driver,
    machine.torch_sees_gpus,
    machine.compilers,
    machine.busy_gpus,
    machine.memory,
    machine.host_memory,
    machine.shared_memory,
    machine.disk,
    run.folder,
    network.ports,
    network.running_servers,
    network.proxies,
    network.hub,
    model.files,
    model.chat_template,
    model.lengths,
    model.engine,
    run.names,
    run.plugins,
    rewards.names,
    rewards.parameters,
    data.datasets,
    data.held_out,
    data.curriculum,
    data.prompts,
    rewards.grades,
    rewards.ungraded,
    run.batch,
    run.steps,
    run.evaluation,
    run.advantages,
)


def check(plan: Plan, fast: bool = False) -> list[Finding]:
    """All findings, in the order of CHECKS. A check that cannot read something, such as a number, has failed."""
    case = Case(plan, fast)
    findings: list[Finding] = []
    for each in CHECKS:
        try:
            findings += each(case)
        except (ValueError, ArithmeticError, OSError) as error:  # among them InputError
            setting = getattr(error, "field", None)
            name = "settings" if setting else each.__name__.replace("_", " ")
            new = failed(name, str(error), f"correct {setting or 'the setting, the variable or the file'}")
            if new.message not in [finding.message for finding in findings]:  # several checks read the same
                findings.append(new)
    return findings
