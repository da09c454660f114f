"""What every test can rely on."""

import signal

import pytest
from swift_rlvr.rewards import REWARDS


@pytest.fixture(autouse=True)
def the_registry_is_left_as_it_was():
    """In its order too, which pages and messages follow."""
    before = dict(REWARDS)
    yield
    if list(REWARDS.items()) != list(before.items()):
        REWARDS.clear()
        REWARDS.update(before)


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_reaches_the_commands_that_tests_start():
    """A shell that starts the tests in the background has them ignore Ctrl-C, and their children would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
