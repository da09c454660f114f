"""Finds a model (a folder, a hub id or a LoRA adapter) and loads it. transformers is imported only
when it is needed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from swift_rlvr.evaluation.models import folder_of, load_pretrained, load_tokenizer, stop_token_ids
from swift_rlvr.runs.folder import training_args
from swift_rlvr.utils.errors import InputError, require
from swift_rlvr.utils.jsonl import read_json
from swift_rlvr.utils.network import why_no_hub


@dataclass(frozen=True)
class Checkpoint:
    """A model to load.

    base: the folder of a whole model, or a hub id for transformers. adapter: the folder of a LoRA
    adapter for it.
    """

    base: str
    adapter: str | None = None

    def tokenizer(self) -> Any:
        """The adapter's, where one was saved with it, else the base model's."""
        if self.adapter is not None and (Path(self.adapter) / "tokenizer_config.json").is_file():
            return load_tokenizer(self.adapter)
        return load_tokenizer(self.base)

    def config(self) -> Any:
        """The configuration of the whole model; InputError if it cannot be loaded."""
        from transformers import AutoConfig

        return load_pretrained(AutoConfig, self.base)

    def stop_token_ids(self) -> list[int]:
        """The tokens that end a completion, as `stop_token_ids` has them, without loading the
        model.
        """
        from transformers import GenerationConfig

        try:
            generation = GenerationConfig.from_pretrained(self.base)
        except OSError:  # older models have none
            generation = GenerationConfig.from_model_config(self.config())
        return stop_token_ids(self.tokenizer(), generation)

    def model(self) -> Any:
        """The whole model on the CPU, with the adapter merged into it."""
        from transformers import AutoModelForCausalLM

        model = load_pretrained(AutoModelForCausalLM, self.base, dtype="auto")
        if self.adapter is None:
            return model
        require("peft", extra="train", purpose=f"the adapter {self.adapter}")
        from peft import PeftModel

        # An adapter of another model fails at the first weight of another shape, or name.
        try:
            return PeftModel.from_pretrained(model, self.adapter).merge_and_unload()
        except (OSError, ValueError, RuntimeError, KeyError) as error:
            raise InputError(
                f"{self.adapter} does not fit the model {self.base} ({error})", "model"
            ) from error

    @contextmanager
    def merged(self) -> Iterator[str]:
        """A folder with the whole model; for an adapter a temporary one, as large as the model."""
        if self.adapter is None:
            yield self.base
            return
        with TemporaryDirectory(prefix="swift-rlvr-merged-") as folder:
            self.model().save_pretrained(folder)
            self.tokenizer().save_pretrained(folder)
            yield folder


def find_checkpoint(model: str, use_hf: bool = False) -> Checkpoint:
    """The folders of a model, which is a folder or a hub id and may be a LoRA adapter.

    An adapter's base model is where it was when it was trained, else the one that the run's
    args.json names.
    """
    require("transformers", extra="train", purpose=f"loading {model}")
    folder = download(model, use_hf)
    file = Path(folder) / "adapter_config.json"
    if not file.is_file():
        return Checkpoint(folder)
    # A path of the machine that trained it may not be here; a hub id does not say which hub.
    base = read_json(file).get("base_model_name_or_path") or ""
    run = training_args(folder)
    if run is not None and not Path(base).is_dir():
        _, args = run
        base = args.get("model") or base
        use_hf = bool(args.get("use_hf") or use_hf)
    if not base:
        raise InputError(f"{file}: no base model; expected base_model_name_or_path", "model")
    return Checkpoint(download(base, use_hf), folder)


def download(model: str, use_hf: bool = False, weights: bool = True) -> str:
    """The folder of a model, which is a folder or a hub id; a hub id is downloaded as in a
    training.

    It comes from ModelScope unless `use_hf` or the variable USE_HF says otherwise, and goes into the
    same cache, which is enough without a network. Without ms-swift it stays a hub id, which
    transformers loads from Hugging Face. InputError if there is no such model.

    weights: False for the configuration and the tokenizer alone.
    """
    folder = Path(folder_of(model)).expanduser()
    if folder.is_dir():
        return str(folder)
    expected = "cannot be loaded, expected a folder or a hub id"
    if folder.is_absolute() or model.count("/") != 1 or model.startswith((".", "~")):
        raise InputError(f"{model}: {expected} such as Qwen/Qwen2.5-3B-Instruct", "model")
    if find_spec("swift") is None:
        return model
    from swift.utils import safe_snapshot_download, use_hf_hub

    use_hf = use_hf or use_hf_hub()
    hub = "Hugging Face" if use_hf else "ModelScope"
    problem = why_no_hub(use_hf)
    cached = {"local_files_only": True} if problem else {}
    try:
        return str(safe_snapshot_download(model, download_model=weights, use_hf=use_hf, **cached))
    except Exception as error:  # the hubs' libraries raise all kinds of errors
        raise InputError(f"{model}: {expected} on {hub} ({problem or error})", "model") from error
