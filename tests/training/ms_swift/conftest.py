"""What the tests of ms-swift's inside share."""

import pytest

from forks import Forks


@pytest.fixture(scope="session")
def ms_swift(tmp_path_factory):
    """Runs programs that begin with imports of ms-swift. Plugins change its registries for good, so
    that each program is a process.
    """
    imports = "import swift.dataset, swift.rewards, swift.rlhf_trainers.utils, swift.rl_core.grpo_algorithm"
    forks = Forks(imports, tmp_path_factory.mktemp("ms_swift"))
    yield forks
    forks.stop()
