"""What every test can rely on."""

import gc
import os
import signal
import tempfile

import psutil
import pytest
from hypothesis import settings

from sharing import ByFile, longest_first
from swift_rlvr.evaluation.models import SMOLLM2, folder_of
from swift_rlvr.rewards import REWARDS
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.temporary import in_temporary_folder

# No deadline: it is the clock of a machine that does other things as well.
settings.register_profile("swift-rlvr", deadline=None, print_blob=True)
settings.load_profile("swift-rlvr")
EXAMPLES = 50  # of a property, unless WEEKLY=1, which tries as many as its test states

collect_ignore = [
    "faulty.py",  # its docstrings are wrong on purpose
    # Programs for processes of their own. To look for doctests pytest would import them, and with them vLLM.
    "training/ms_swift/colocated_engine.py",
]


def pytest_configure(config):
    """One folder for temporary files, and one terminal for everybody.

    Programs that tests kill leave sockets and folders behind, which go with that folder. Rich and click read
    the variables of a terminal when a console is made.
    """
    # pytest-randomly calls what installed packages offer it, three times a test. DeepSpeed's imports
    # torch into every process, and seeding that takes longer than most tests.
    randomly = config.pluginmanager.get_plugin("randomly")
    if randomly is not None:
        randomly.entrypoint_reseeds = []
    # pytest keeps the folders of the last tests, in a place that is not removed.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    if "PYTEST_XDIST_WORKER" not in os.environ:  # whose starter has made one
        own = in_temporary_folder()
        own.__enter__()
        config.add_cleanup(lambda: own.__exit__(None, None, None))
    os.environ.setdefault(
        "OMP_NUM_THREADS", "1"
    )  # torch's threads of several processes wait for each other
    os.environ["COLUMNS"] = "100"
    for name in (
        "FORCE_COLOR",
        "CLICOLOR_FORCE",
        "NO_COLOR",
        "TTY_COMPATIBLE",
        "TTY_INTERACTIVE",
        "LINES",
    ):
        os.environ.pop(name, None)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is imported is no garbage. A third of the time was spent looking for it."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items):
    """After pytest-randomly, which has shuffled them."""
    longest_first(items)
    if not os.environ.get("WEEKLY"):
        with_fewer_examples(items)


def with_fewer_examples(items):
    for item in items:
        if not isinstance(item, pytest.Function):  # a doctest
            continue
        # Where hypothesis keeps what @settings states; it has no public name.
        stated = getattr(item.function, "_hypothesis_internal_use_settings", None)
        if stated is not None and stated.max_examples > EXAMPLES:
            fewer = settings(stated, max_examples=EXAMPLES)
            item.function._hypothesis_internal_use_settings = fewer


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False  # in the order of the items
    return ByFile(config, log)


PRELOADED = os.environ.get("LD_PRELOAD")


@pytest.fixture(autouse=True)
def programs_load_what_they_would():
    """vLLM has every later program of its process load a library first, whose path may have a space:
    each of them then complains.
    """
    os.environ.pop("LD_PRELOAD", None)
    if PRELOADED is not None:
        os.environ["LD_PRELOAD"] = PRELOADED


@pytest.fixture(autouse=True)
def registry_is_left_as_it_was():
    """In its order too, which pages and messages follow."""
    before = dict(REWARDS)
    yield
    if list(REWARDS.items()) != list(before.items()):
        REWARDS.clear()
        REWARDS.update(before)


ENVIRON = os.environ


@pytest.fixture(autouse=True)
def the_environment_is_left_as_it_was():
    """Not with monkeypatch alone: datasets' map with several processes leaves a copy in the place
    of os.environ, with the variables of before; what rich reads, which keeps the first one, would
    no longer be what a test sets."""

    def ours():
        return {
            name: value
            for name, value in os.environ.items()
            if name.startswith(("SWIFT_RLVR_", "EXTERNAL_"))
        }

    before = ours()
    yield
    if os.environ is not ENVIRON:
        for name in ENVIRON.keys() - os.environ.keys():
            del ENVIRON[name]
        ENVIRON.update(os.environ)
        os.environ = ENVIRON  # noqa: B003
    for name in ours().keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_reaches_the_commands_that_tests_start():
    """A shell that starts the tests in the background has them ignore Ctrl-C, and their children
    would inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def smollm2() -> str:
    """The folder of SmolLM2-135M-Instruct, where its wheel can be had and the memory holds its
    training.
    """
    pytest.importorskip("gguf")
    free = psutil.virtual_memory().available / 2**30
    if free < 18:
        pytest.skip(
            f"left out: a language model needs 18 GiB of free memory, and {free:.0f} are free"
        )
    try:
        return folder_of(SMOLLM2)
    except InputError as error:
        pytest.skip(str(error))
