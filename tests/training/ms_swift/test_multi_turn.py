"""Several turns in ms-swift: the scheduler in ms-swift's own engine, rollout loops and batches,
with the tiny model.
"""

import asyncio
import copy
import json
from itertools import chain

import pytest

pytest.importorskip("swift", reason="needs the extra [train]")
torch = pytest.importorskip("torch")
multi_turn = pytest.importorskip(
    "swift_rlvr.training.ms_swift.multi_turn", reason="needs ms-swift 4.6", exc_type=ImportError
)
if not hasattr(multi_turn.MultiTurnScheduler, "on_turn_end"):
    pytest.skip("needs ms-swift 4.6", allow_module_level=True)
from swift.infer_engine import RequestConfig, TransformersEngine  # noqa: E402
from swift.infer_engine.protocol import RolloutInferRequest  # noqa: E402
from swift.rl_core.data import GRPOSample  # noqa: E402
from swift.rlhf_trainers.utils import collate_to_grpo_micro_batch, encode_sample  # noqa: E402
from swift.rollout import multi_turns, run_multi_turn  # noqa: E402

from paths import DATASETS  # noqa: E402
from swift_rlvr.rewards import REWARDS  # noqa: E402
from swift_rlvr.rewards.feedback import TRY_AGAIN  # noqa: E402
from swift_rlvr.tasks import TASKS  # noqa: E402
from swift_rlvr.tasks.countdown import SYSTEM_PROMPT  # noqa: E402
from swift_rlvr.utils.errors import InputError  # noqa: E402
from swift_rlvr.utils.files import TINY_MODEL  # noqa: E402
from turn_batches import check_trained_tokens  # noqa: E402

pytestmark = pytest.mark.slow  # as a whole

FeedbackScheduler = multi_turn.FeedbackScheduler
COUNT = 6
LINES = (DATASETS / "countdown" / "tiny_train.jsonl").read_text().splitlines()[:COUNT]
ROWS = [TASKS["countdown"].preprocess(json.loads(line)) for line in LINES]


@pytest.fixture(scope="module")
def engine():
    return TransformersEngine(
        str(TINY_MODEL),
        model_type="qwen2",
        template_type="qwen2_5",
        torch_dtype=torch.float32,
        device_map="cpu",
    )


def conversation_start(row: dict) -> list[dict]:
    return [{"role": "system", "content": SYSTEM_PROMPT}, *copy.deepcopy(row["messages"])]


def new_samples() -> list[GRPOSample]:
    """As the trainer has them before a rollout."""
    samples = [GRPOSample.from_row({**row, "messages": conversation_start(row)}) for row in ROWS]
    for number, sample in enumerate(samples):
        sample.request_id = f"request-{number}"
    return samples


def config(max_tokens: int = 160) -> RequestConfig:
    return RequestConfig(max_tokens=max_tokens, temperature=1.0, return_details=True, logprobs=True)


def rolled_out(engine, scheduler, max_tokens: int = 160, seed: int = 0) -> list[GRPOSample]:
    """The samples after a rollout with the scheduler's `run`, as on a rollout server."""
    samples = new_samples()
    requests = [sample.to_infer_request(include_extra=True) for sample in samples]
    torch.manual_seed(seed)

    async def run():
        # One after the other, so that the seed decides.
        return [await scheduler.run(request, config(max_tokens)) for request in requests]

    for sample, output in zip(samples, asyncio.run(run()), strict=True):
        sample.apply_rollout_output(rollout_output=output)
    return samples


def lengths(samples: list[GRPOSample]) -> set[int]:
    return {sample.rollout_infos["num_turns"] for sample in samples}


@pytest.fixture(scope="module")
def samples(engine):
    """With conversations of both lengths."""
    tries = (
        rolled_out(engine, FeedbackScheduler(engine, max_turns=2), seed=seed) for seed in range(20)
    )
    return next(samples for samples in tries if lengths(samples) == {1, 2})


def as_texts(engine, messages: list[dict]) -> list[dict]:
    """Earlier answers are kept as token ids."""
    decode = engine.tokenizer.decode
    return [
        {**m, "content": m["content"] if isinstance(m["content"], str) else decode(m["content"])}
        for m in messages
    ]


def check_batch(engine, samples: list[GRPOSample], loss_scale: str = "default") -> None:
    """Encode and collate as ms-swift's trainer does, and look at each token of the batch."""
    template = copy.copy(engine.template)
    template._loss_scale, template.max_length = loss_scale, None
    template.set_mode("train")
    for sample in samples:
        sample.encoded = encode_sample(sample, template)
        sample.encoded.pop("_extra_kwargs", None)
    inputs, batch = collate_to_grpo_micro_batch(
        samples, template, device=torch.device("cpu"), use_logits_to_keep=True
    )
    mask = torch.zeros_like(inputs["input_ids"], dtype=torch.bool)
    mask[:, mask.shape[1] - batch.completion_mask.shape[1] :] = batch.completion_mask.bool()
    for number, sample in enumerate(samples):
        present = inputs["attention_mask"][number].bool()
        ids, trained = inputs["input_ids"][number][present].tolist(), mask[number][present].tolist()
        assert not mask[number][~present].any()
        messages = as_texts(engine, sample.messages)
        check_trained_tokens(engine.tokenizer, ids, trained, sample.response_token_ids, messages)


def test_a_wrong_answer_is_followed_by_the_reason_and_another_try(engine, samples):
    reward = REWARDS["countdown"]()
    for sample, row in zip(samples, ROWS, strict=True):
        roles = [message["role"] for message in sample.messages]
        answers = [
            m["content"] for m in as_texts(engine, sample.messages) if m["role"] == "assistant"
        ]
        first, *others = [reward.explain(answer, row) for answer in answers]
        infos = sample.rollout_infos
        assert infos["turn_reasons"] == [first.reason, *(other.reason for other in others)]
        if infos["num_turns"] == 1:
            assert roles == ["system", "user", "assistant"]
            assert first.reward == 1.0 or sample.finish_reason == "length"
        else:
            assert roles == ["system", "user", "assistant", "user", "assistant"]
            assert first.reward == 0.0
            feedback = sample.messages[3]["content"]
            assert feedback.startswith(first.reason.capitalize()) and feedback.endswith(TRY_AGAIN)


@pytest.mark.parametrize(
    "loss_scale", ["default", "last_round"]
)  # with and without the flag in the trainer
def test_only_sampled_tokens_are_trained(engine, samples, loss_scale):
    check_batch(engine, copy.deepcopy(samples), loss_scale)


def test_only_sampled_tokens_are_trained_where_turns_are_cut_off(engine):
    scheduler = FeedbackScheduler(engine, max_turns=2)
    cut_off = rolled_out(engine, scheduler, max_tokens=25)
    assert {"length"} <= {sample.finish_reason for sample in cut_off}
    check_batch(engine, cut_off)
    assert not scheduler._conversations, "none is kept after its end"


def test_log_probabilities_of_all_turns_are_handed_on(samples):
    """One for each token that is trained, or ms-swift would not compare the server's with the
    trainer's.
    """
    for sample in samples:
        assert [len(turn) for turn in sample.rollout_logprobs] == [
            len(turn) for turn in sample.response_token_ids
        ]


def test_colocate_mode_drives_the_same_conversations(engine):
    """ms-swift's other loop, in the trainer's process: one inference for all conversations that go
    on.
    """
    samples = new_samples()
    requests = [sample.to_infer_request(include_extra=True) for sample in samples]
    scheduler = FeedbackScheduler(max_turns=2, tokenizer=engine.tokenizer, template=engine.template)
    torch.manual_seed(0)
    asyncio.run(scheduler.on_trajectory_start(requests))

    def infer(pending, request_config):
        from swift.infer_engine.protocol import RolloutOutput

        return (
            [RolloutOutput(response=response) for response in engine.infer(pending, request_config)]
            if pending
            else []
        )

    outputs = run_multi_turn(
        requests, infer(requests, config()), scheduler, infer, config(), max_turns=2
    )
    for sample, output in zip(samples, outputs, strict=True):
        sample.apply_rollout_output(rollout_output=output)
    assert 2 in lengths(samples)
    assert not scheduler._conversations
    check_batch(engine, samples)


def start(scheduler, **columns):
    request = RolloutInferRequest(messages=[], data_dict=columns, uuid="1")
    asyncio.run(scheduler.on_trajectory_start([request]))


def test_mistakes_are_named(engine, monkeypatch):
    with pytest.raises(InputError, match="max_turns"):
        FeedbackScheduler(engine)
    scheduler = FeedbackScheduler(engine, max_turns=2)
    with pytest.raises(InputError, match="--multi_turn_scheduler"):
        start(scheduler)
    with pytest.raises(InputError, match="SWIFT_RLVR_FEEDBACK_REWARD.*chess.*task, board"):
        start(scheduler, task="chess", board="")
    with pytest.raises(InputError, match="'target'.*nums"):
        start(scheduler, task="countdown", nums=[1])
    monkeypatch.setenv("SWIFT_RLVR_FEEDBACK_REWARD", "accuracy")
    with pytest.raises(
        InputError,
        match="external_accuracy grades the tasks .*math.* a row has the task 'countdown'",
    ):
        start(
            FeedbackScheduler(engine, max_turns=2),
            task="countdown",
            nums=[1],
            target=1,
            solution="1",
        )
    monkeypatch.setenv("SWIFT_RLVR_FEEDBACK_REWARD", "boxed")
    start(FeedbackScheduler(engine, max_turns=2), task="chess", solution="1")


def test_the_feedback_is_in_the_tiny_models_vocabulary(engine):
    """And the template renders a second turn, for which there is room beside two answers of 320
    tokens.
    """
    reasons = [reason.capitalize() for reason in REWARDS["countdown"].reasons]
    texts = [f"{reason}: the value is 1283/7, the target 40. {TRY_AGAIN}" for reason in reasons]
    feedback = [engine.tokenizer.encode(text) for text in texts]
    assert [engine.tokenizer.decode(ids) for ids in feedback] == texts
    assert all(engine.tokenizer.unk_token_id not in ids for ids in feedback)
    prompts = [
        len(engine.template.encode({"messages": conversation_start(row)})["input_ids"])
        for row in ROWS
    ]
    assert max(prompts) + max(map(len, feedback)) + 2 * 320 + 16 <= 1024


def test_the_scheduler_is_registered_once(monkeypatch):
    monkeypatch.setattr(multi_turn, "multi_turns", {})
    multi_turn.register_scheduler()
    assert multi_turn.multi_turns == {"rlvr_feedback": FeedbackScheduler}
    with pytest.raises(ValueError, match="already registered"):
        multi_turn.register_scheduler()
    assert set(chain(multi_turns)) >= {"gym_scheduler", "math_tip_trick"}
