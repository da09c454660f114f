"""A plugin that takes the name of one of our rewards, as ms-swift's own Countdown example does, is
named and refused whichever is loaded first.
"""

import json
from pathlib import Path

import pytest

pytest.importorskip("swift", reason="needs the extra [train]")
from paths import DATASETS, ROOT

pytestmark = pytest.mark.slow  # as a whole

PLUGIN = ROOT / "plugin" / "rlvr_plugin.py"
ROWS = f"countdown:{DATASETS / 'countdown' / 'tiny_test.jsonl'}#4"
# As in ms-swift's examples/train/grpo/plugin/plugin.py.
OTHER = """
from swift.rewards import ORM, orms

class CountdownORM(ORM):
    def __call__(self, completions, target, nums, **kwargs):
        return [1.0] * len(completions)

orms["external_countdown"] = CountdownORM
"""
# ms-swift's arguments load the plugins in this order, and then it reads the dataset.
PROGRAM = """
import json, sys
from swift.dataset import load_dataset
from swift.utils import import_external_file

plugins, rows = json.loads(sys.argv.pop(1)), sys.argv.pop(1)
for plugin in plugins:
    import_external_file(plugin)
print(len(load_dataset(rows, remove_unused_columns=False)[0]), "rows")
"""


@pytest.fixture
def other(tmp_path) -> Path:
    (tmp_path / "other_plugin.py").write_text(OTHER)
    return tmp_path / "other_plugin.py"


@pytest.fixture
def loaded(ms_swift):
    """What a process says last that loads these plugins and then rows of ours."""

    def run(*plugins, reward="external_countdown"):
        names = json.dumps([str(plugin) for plugin in plugins])
        done = ms_swift.run(PROGRAM, names, ROWS, "--reward_funcs", reward, cwd=ROOT)
        return (done.stdout or done.stderr).splitlines()[-1]

    return run


def test_a_reward_of_ones_own_in_a_plugin_after_ours_is_named(loaded, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from swift_rlvr.rewards import reward\n\n"
        "@reward('external_mine', role='shaping')\ndef mine(completion):\n    return 1.0\n"
    )
    said = loaded(PLUGIN, tmp_path / "mine.py", reward="external_mine")
    where = f"name {tmp_path / 'mine.py'} in --external_plugins before this package's plugin"
    assert f"ms-swift does not know the reward external_mine: {where}" in said
    assert loaded(tmp_path / "mine.py", PLUGIN, reward="external_mine") == "4 rows"


def test_a_plugin_that_comes_later_does_not_replace_our_reward(loaded, other):
    said = loaded(PLUGIN, other)
    assert f"CountdownORM of {other} has replaced this package's reward external_countdown" in said
    assert "remove that plugin from --external_plugins" in said


def test_a_plugin_that_comes_first_is_named(loaded, other):
    said = loaded(other, PLUGIN)
    problem = f"the reward external_countdown is registered already, as CountdownORM of {other}"
    assert f"{problem}: remove that plugin from --external_plugins" in said


def test_a_name_that_no_reward_of_the_run_has_is_left_alone(loaded, other):
    assert loaded(PLUGIN, other, reward="format") == "4 rows"
    assert loaded(PLUGIN) == "4 rows"
