"""What a launch adds to a recipe of GRPO that lacks it."""

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from swift_rlvr.rewards import REWARDS
from swift_rlvr.utils.files import find_file
from swift_rlvr.utils.settings import as_list

PLUGIN, CALLBACK = "plugin/rlvr_plugin.py", "reward_reasons"


def additions(values: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Settings that a recipe lacks and that the launch needs to show its steps, and a line about each.
    Values that the user has set stay.
    """
    added: dict[str, Any] = {}
    lines = []
    plugins = [str(name) for name in as_list(values.get("external_plugins"))]
    callbacks = [str(name) for name in as_list(values.get("callbacks"))]
    sources = dict.fromkeys(plugins, "")
    has_ours = False
    for name in plugins:
        with suppress(OSError, UnicodeDecodeError):  # ms-swift says what is wrong with it
            sources[name] = Path(name).expanduser().read_text(encoding="utf-8")
        # A plugin of the user's may import ours.
        imports_ours = Path(PLUGIN).stem in sources[name]
        has_ours = has_ours or imports_ours or Path(name).name == Path(PLUGIN).name
    conflict = None if has_ours else _conflict(sources)
    if conflict:
        lines.append(f"not added: external_plugins {PLUGIN}, because {conflict}")
    elif not has_ours:
        ours = find_file(PLUGIN)
        added["external_plugins"] = [*plugins, ours]
        lines.append(f"added: external_plugins {ours} (rewards, datasets and callbacks)")
    if CALLBACK not in callbacks and not conflict:
        added["callbacks"] = [CALLBACK, *callbacks]
        lines.append(f"added: callbacks {CALLBACK} (logs success and the reasons of each reward)")
    if "logging_steps" not in values:
        added["logging_steps"] = 1
        lines.append("added: logging_steps 1 (a line for each step)")
    return added, tuple(lines)


def _conflict(sources: Mapping[str, str]) -> str | None:
    """Say which plugin has a reward of ours too; both cannot be loaded. ms-swift's own example has
    `external_countdown`.
    """
    for plugin, source in sources.items():
        for name, reward in REWARDS.data.items():
            registers = rf"^orms\[[\"']{name}[\"']\] *=|^class {reward.__name__}\b"
            if re.search(registers, source, re.MULTILINE):
                return f"{plugin} has a reward {name} too"
    return None
