"""What every engine takes and gives: the settings of a sampling, and completions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from swift_rlvr.runs.records import Messages
from swift_rlvr.tasks.pictures import Picture, with_pictures
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.settings import Settings, setting

ENGINES = ("auto", "transformers", "vllm")
# Of an engine in this process.
NO_PICTURES = (
    "the rows have pictures, which only a server is sent: start one of the model (`swift rollout`, "
    "`swift deploy`, vLLM) and name it with --server"
)


@dataclass(frozen=True)
class Completion:
    """What a model has written.

    text: without special tokens, from the beginning of the thinking where the prompt has opened it,
    as ms-swift hands it to the rewards. tokens: the number that was sampled, with the end-of-turn
    token; None if a server does not say. finish: "stop" or "length". token_ids: the `tokens`
    themselves, where the engine has them; equal completions may differ in them.
    """

    text: str
    tokens: int | None
    finish: str
    token_ids: Sequence[int] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True)
class SamplingSettings(Settings):
    """How to sample. The same settings on the same machine give the same completions, except with a
    server.
    """

    model: str = setting(
        help="Folder with a model and its tokenizer or with a LoRA adapter, a hub id, or its name at --server."
    )
    num_generations: int = setting(1, "Completions per prompt.", at_least=1)
    temperature: float = setting(1.0, "Sampling temperature; 0 is greedy.", at_least=0)
    max_completion_length: int = setting(
        1024, "Length limit of a completion, in tokens.", at_least=1
    )
    batch_size: int = setting(
        64, "Completions sampled at a time; vLLM chooses its own.", at_least=1
    )
    seed: int = setting(
        0, "The same seed gives the same completions, though not always with vLLM.", at_least=0
    )
    engine: str = setting(
        "auto",
        "auto: vllm if there is a GPU or 100 MB of weights, else transformers.",
        choices=ENGINES,
    )
    use_hf: bool = setting(False, "Load hub ids from Hugging Face instead of ModelScope.")
    server: str | None = setting(
        None,
        "URL of a rollout server, or of one with OpenAI's API (key in OPENAI_API_KEY), that samples.",
    )
    top_k: int = setting(
        0,
        "Sample from this many of the likeliest tokens; 0 for all, whatever the model's own.",
        at_least=0,
    )
    top_p: float = setting(1.0, "Nucleus sampling; 1 for all tokens.", more_than=0, at_most=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        may_differ = self.temperature > 0 or self.num_generations == 1
        self.require(
            may_differ, "num_generations", "1 at temperature 0, where all completions are the same"
        )


OnProgress = Callable[[float], object]
# The completions of each conversation.
Groups = list[list[Completion]]


class Engine(ABC):
    """Samples completions of conversations, which are messages of which the last is the user's.

    settings: those it was opened with. batch_size: the completions worth asking for together.
    takes_pictures: whether it can be given pictures, which are then in the messages as OpenAI's API
    has them. has_pictures: whether it has been given any.
    served_model: the model that a server has answered with, where that is another one.
    """

    takes_pictures = False
    has_pictures = False

    def __init__(self, settings: SamplingSettings):
        self.settings = settings
        self.batch_size = settings.batch_size
        self.served_model: str | None = None

    def sample(
        self,
        conversations: Sequence[Messages],
        on_progress: OnProgress = lambda share: None,
        pictures: Sequence[Sequence[Picture]] = (),
        **changes: Any,
    ) -> Groups:
        """`num_generations` completions for each conversation, in order; InputError if the
        context is too short, or an engine cannot be given pictures.

        With transformers the same arguments give the same completions, whatever was sampled before.
        vLLM draws on from the seed that it was opened with, and a server from its own.

        Args:
            on_progress: called with the share that is done.
            pictures: those of each conversation, which has ``<image>`` in their places.
            changes: num_generations, temperature, seed in place of those of the settings.
        """
        if any(pictures):
            if not self.takes_pictures:
                raise InputError(NO_PICTURES, "engine")
            self.has_pictures = True
            conversations = list(map(with_pictures, conversations, pictures))
        return self._sample(conversations, replace(self.settings, **changes), on_progress)

    @abstractmethod
    def _sample(
        self, conversations: Sequence[Messages], settings: SamplingSettings, on_progress: OnProgress
    ) -> Groups:
        """`sample` with all its settings."""


def mixed_seed(seed: int, part: int) -> int:
    """The seed of one part of a job, such as a step of a training. Parts then do not depend on those
    before them.

    >>> mixed_seed(0, 3), mixed_seed(1, 3)
    (3, 1000006)
    """
    return (seed * 1_000_003 + part) % 2**31
