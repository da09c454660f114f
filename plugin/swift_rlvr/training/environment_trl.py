"""Several turns under TRL: `FeedbackEnvironment` as TRL's `environment_factory`, with the conversation of ms-swift.

    swift-rlvr train --trainer trl --max_turns 2 ...

TRL runs an environment through tool calls: a completion that calls one is continued after the tool's result, and
`tool_mask` keeps the result out of the loss. Here every finished answer is a call of the one tool `submit`, and its
result, the verifier's feedback, is a user turn. So a model needs neither a template with tools nor to have learned to
call them, and it sees the same tokens as under ms-swift.

What TRL 0.29.1 does, and what is done about it here:
- It reads calls with a tokenizer's `parse_response`, which transformers 5.19 refuses without `response_template`: no
  tool is ever called. The tokenizer gets a `parse_response` of its own.
- It goes on until a completion calls no tool, and would ask again after a right answer. Finished ones are left out.
- It makes environments for a training batch and fails where an evaluation's has another size. More are made.
- `max_completion_length` cuts the whole conversation, and each turn may take all of it. It is that of a turn here.
- Between a turn's end token and the next turn it loses the line feed that the chat template has.
- Where a conversation outgrows the context, the tool's result gets into the loss. `check_room` refuses that.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from accelerate.utils import gather_object

from swift_rlvr.environments import FEEDBACK_TOKENS, FeedbackEnvironment
from swift_rlvr.errors import InputError
from swift_rlvr.rewards import Reward
from swift_rlvr.success import VERIFIER

CLOSED = "closed"  # what the tool returns at the end, where TRL wants a result that nobody reads


class TrlEnvironment:
    """A `FeedbackEnvironment` in the shape that TRL asks for: every public method but `reset` is a tool.

    rewards: the first that judges the outcome of a row's task gives the feedback; a row that none judges has one turn.
    """

    def __init__(self, rewards: Sequence[Reward], turns: int, discount: float):
        self._environments = [
            FeedbackEnvironment(reward, turns, discount) for reward in rewards if reward.role == VERIFIER
        ]
        self._environment: FeedbackEnvironment | None = None

    def reset(self, **row: Any) -> None:
        task = row.get("task")
        own = (each for each in self._environments if task is None or task in each.reward.own_tasks)
        self._environment = next(own, None)
        if self._environment is not None:
            self._environment.reset(row)

    def submit(self, answer: str) -> str:
        """Hand in an answer.

        Args:
            answer: The whole answer, with its tags.

        Returns:
            What is wrong with it.
        """
        feedback = None if self._environment is None else self._environment.step(answer).feedback
        return CLOSED if feedback is None else feedback


def submit_answers(tokenizer: Any) -> None:
    """Make TRL read every completion that has ended as a call of `submit` with the completion as its answer."""

    def parse_response(ids: Sequence[int]) -> dict[str, Any]:
        text = tokenizer.decode(ids, skip_special_tokens=True)
        call = {"type": "function", "function": {"name": "submit", "arguments": {"answer": text}}}
        ended = {"tool_calls": [call]} if ids[-1] == tokenizer.eos_token_id else {}
        return {"role": "assistant", "content": text, **ended}

    tokenizer.parse_response = parse_response
    tokenizer.response_schema = {"type": "object"}  # TRL asks whether there is one


def turn_template(template: str) -> str:
    """A chat template that shows a tool's result as a user turn and no list of tools.

    It ends with the end token where no completion is to follow: TRL takes what comes after that as the next turn.
    """
    return (
        "{%- set tools = none %}{%- set all = namespace(turns=[]) %}{%- for message in messages %}"
        "{%- set turn = {'role': 'user', 'content': message.content} if message.role == 'tool' else message %}"
        "{%- set all.turns = all.turns + [turn] %}{%- endfor %}{%- set messages = all.turns %}"
        "{%- set text %}" + template.removesuffix("\n") + "{% endset %}"
        "{{- text if add_generation_prompt else text.rstrip() }}"
    )


def as_turns(messages: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """Answers and feedback as the policy reads them, without tools.

    >>> as_turns([{"role": "assistant", "content": "1", "tool_calls": []}, {"role": "tool", "content": "No."}])
    [{'role': 'assistant', 'content': '1'}, {'role': 'user', 'content': 'No.'}]
    """
    roles = {"tool": "user"}
    return [{"role": roles.get(each["role"], each["role"]), "content": each["content"]} for each in messages]


def conversation_length(turns: int, longest: int) -> int:
    """The tokens of the longest conversation after the prompt.

    >>> conversation_length(1, 320), conversation_length(2, 320)
    (320, 896)
    """
    return turns * longest + (turns - 1) * FEEDBACK_TOKENS


def check_room(turns: int, longest: int, prompts: Sequence[Sequence[int]], config: Any) -> None:
    """InputError where the longest prompt and conversation together exceed the model's context; see `check_length`."""
    room, prompt = getattr(config, "max_position_embeddings", None), max(map(len, prompts))
    if room and prompt + conversation_length(turns, longest) > room:
        raise InputError(
            f"must be at most {(room - prompt - conversation_length(turns, 0)) // turns} with {turns} turns, got "
            f"{longest}: the model reads {room} tokens, the longest prompt has {prompt}, and a feedback gets "
            f"{FEEDBACK_TOKENS}", "max_completion_length",
        )  # fmt: skip


def with_turns(trainer_class: Any) -> Any:
    """A class like TRL's GRPOTrainer whose policy answers, reads the feedback and answers again.

    Beside the arguments of GRPOTrainer it takes `turns` and `discount`; max_completion_length is that of one turn.
    Every reward grades the last turn and is discounted as in `FeedbackEnvironment`.
    """

    class TurnsTrainer(trainer_class):
        answers: list[tuple[str, int]]  # the last ones of a training batch, and the number of turns
        environments: Any
        chat_template: Any
        closing: list[int] | None = None  # during the turns, the tokens at the end of a conversation that is over

        def __init__(
            self, model: Any, rewards: Sequence[Reward], args: Any, *, processing_class: Any, turns: int,
            discount: float, **kwargs: Any,
        ):  # fmt: skip
            self.discount = discount
            self.make_environment = lambda: TrlEnvironment(rewards, turns, discount)
            submit_answers(processing_class)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "You are using 'environment_factory'")
                super().__init__(
                    model, list(rewards), args, processing_class=processing_class,
                    environment_factory=self.make_environment, **kwargs,
                )  # fmt: skip
            self.every_environment = list(self.environments)
            self.chat_template = turn_template(self.chat_template or processing_class.get_chat_template())
            self.max_completion_length = conversation_length(turns, args.max_completion_length)

        def _generate_and_score_completions(self, inputs):
            for _ in range(len(inputs) - len(self.every_environment)):
                environment = self.make_environment()
                self.every_environment.append(environment)
                self._sync_tool_dicts.append({"submit": environment.submit})
                self._async_tool_dicts.append({})
            self.environments = self.every_environment[: len(inputs)]
            return super()._generate_and_score_completions(inputs)

        def _tool_call_loop(self, *args):
            self.closing = self._get_tool_suffix_ids([{"role": "tool", "name": "submit", "content": CLOSED}])
            try:
                masks, completions, ids, log_probs, *counts = super()._tool_call_loop(*args)
            finally:
                self.closing = None
            for i, mask in enumerate(masks):  # feedback that nothing follows is nobody's to read
                written = len(mask) - next(n for n, flag in enumerate(reversed(mask)) if flag)
                for values in (masks, ids, *([] if log_probs is None else [log_probs])):
                    values[i] = values[i][:written]
                if completions[i][-1]["role"] == "tool":
                    completions[i].pop()
            return masks, completions, ids, log_probs, *counts

        def _generate_single_turn(self, prompt_ids, images, multimodal_fields):
            closing = self.closing
            if closing is None:
                return super()._generate_single_turn(prompt_ids, images, multimodal_fields)
            asked = [i for i, ids in enumerate(prompt_ids) if ids[-len(closing) :] != closing]
            made: list[list[int]] = [[] for _ in prompt_ids]
            log_probs: list[list[float]] | None = [[] for _ in prompt_ids] if self.use_vllm else None
            if asked:
                answers, answer_log_probs, _ = super()._generate_single_turn(
                    [prompt_ids[i] for i in asked], images, multimodal_fields
                )
                for n, i in enumerate(asked):
                    made[i] = answers[n]
                    if log_probs is not None:
                        log_probs[i] = answer_log_probs[n]
            return made, log_probs, {}

        def _calculate_rewards(self, inputs, prompts, completions, completion_ids_list):
            rewards = super()._calculate_rewards(inputs, prompts, completions, completion_ids_list)
            own = [sum(message["role"] == "assistant" for message in completion) for completion in completions]
            turns = torch.tensor(gather_object(own), dtype=rewards.dtype, device=rewards.device).unsqueeze(1)
            self._metrics["train" if self.model.training else "eval"]["num_turns"].append(turns.mean().item())
            if self.model.training:
                self.prompts = [p + as_turns(talk[:-1]) for p, talk in zip(prompts, completions, strict=True)]
                self.answers = [(talk[-1]["content"], count) for talk, count in zip(completions, own, strict=True)]
            return rewards.where(~(rewards > 0), rewards * self.discount ** (turns - 1))

    return TurnsTrainer
