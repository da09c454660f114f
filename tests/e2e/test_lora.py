"""LoRA with ``--vllm_enable_lora true``: the rollout server samples with the adapter of the last update,
and one that it does not load stops the run.
"""

import pytest

from e2e.programs import UNCOMPILED, Launcher, RolloutServer, train_on
from paths import words

pytestmark = pytest.mark.e2e

STEPS = 4
# A large learning rate and no dropout, so that a policy that is one update old would be seen.
LORA = f"""
    --tuner_type lora --lora_rank 8 --lora_alpha 32 --lora_dropout 0 --learning_rate 1e-2 --beta 0
    --max_steps {STEPS}
"""
SERVER = "--vllm_enable_lora true --vllm_max_lora_rank 8"
SAME_POLICY = 1e-6  # k3, in float32


@pytest.fixture(scope="module")
def lora_server(tmp_path_factory):
    server = RolloutServer(tmp_path_factory.mktemp("lora_server"), SERVER, **UNCOMPILED)
    yield server
    server.stop()


@pytest.fixture
def asynchronous_server(tmp_path):
    """Its requests did not name the adapter in ms-swift 4.3 (issue 9855)."""
    flags = f"{SERVER} --vllm_use_async_engine true"
    server = RolloutServer(tmp_path, flags, **UNCOMPILED)
    yield server
    server.stop()


def divergences(training) -> list[float]:
    """k3 of the policy and the one that the completions are from, at each step."""
    return [abs(step["rollout_correction/k3_kl"]) for step in training.steps()]


# A server more, for how a pinned ms-swift names the adapter there.
ASYNCHRONOUS = pytest.param("asynchronous_server", marks=pytest.mark.weekly)


@pytest.mark.parametrize("server", ["lora_server", ASYNCHRONOUS])
def test_completions_are_from_the_adapter_that_is_trained(server, request, tmp_path):
    """The base weights under it come in several updates, and without an adapter (issue 8233)."""
    flags = words(f"{LORA} --move_model_batches 2")
    found = divergences(train_on(request.getfixturevalue(server), tmp_path, *flags))
    assert len(found) == STEPS
    assert max(found) < SAME_POLICY


@pytest.mark.weekly  # that the measure above sees an adapter that is not the last
def test_asynchronous_completions_are_from_an_earlier_one(lora_server, tmp_path):
    """As ms-swift means it; so the measure of the test above sees an adapter that is not the last."""
    found = divergences(train_on(lora_server, tmp_path, *words(LORA), "--async_generate", "true"))
    assert found[0] < SAME_POLICY
    assert min(found[1:]) > 1e-4


@pytest.mark.weekly  # what is said where it is not loaded is in training/ms_swift/test_confirmation.py
def test_an_adapter_that_the_server_does_not_load_ends_the_run(lora_server, tmp_path):
    """Before its first step, for which one rank is enough."""
    launcher = Launcher(tmp_path)
    launcher.use(lora_server)
    lora_server.drop_adapters.touch()
    try:
        command = launcher.start(*words(LORA), NPROC_PER_NODE=1)
        status = command.finish()
    finally:
        lora_server.drop_adapters.unlink()
        launcher.kill()
    assert status != 0
    log = (launcher.output / "trainer.log").read_text()
    assert "vLLM did not load the adapter that was sent" in log
    assert launcher.step() == 0
