import pytest
from swift_rlvr.math_answers import MathVerifier, pool


@pytest.fixture(scope="session", autouse=True)
def deadlines_count_processor_time():
    """However busy the machine is: a worker that waits for a core loses nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "STARVED", 100.0)
        yield


@pytest.fixture(scope="session")
def verifier():
    """One for all tests: its processes take seconds to load sympy. A worker may be killed, the nursery may not."""
    with MathVerifier(workers=2, timeout=1.0, batch_timeout=60.0) as verifier:
        yield verifier


@pytest.fixture
def hurried(verifier, monkeypatch):
    """The same with short deadlines, for answers that use all the time they get."""
    monkeypatch.setattr(verifier.pool, "timeout", 0.3)
    monkeypatch.setattr(verifier.pool, "batch_timeout", 1.0)
    return verifier
