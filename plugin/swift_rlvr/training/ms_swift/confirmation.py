"""What confirms an update of the weights: in a worker of the rollout server, and in colocate mode,
where vLLM runs inside the trainer, in the trainer.

A full update is confirmed when every parameter of vLLM's model was loaded. An adapter (LoRA with
``--vllm_enable_lora true``) is confirmed when the layers of vLLM's model hold it. Completions are
sampled from another policy, and nobody is told, where

- vLLM keeps an adapter whose id it knows. ms-swift gives every update the same id, and asks with
  ``load_inplace`` that it is loaded again: `confirm_adapter` sees that it was;
- the names of an adapter's tensors fit no layer. vLLM's ``activate_adapter`` leaves those out and
  says so at the level of debugging only: `confirm_adapter` names them;
- the adapter is gone when a request comes (one for warming up took its place): ms-swift then
  samples from the base model. `require_adapter` makes that an error;
- cached keys and values are those of the last adapter: vLLM's cache tells adapters apart by their
  name, which is always the same. ms-swift empties it after each update, and does not look whether
  that was done: `empty_prefix_cache` in `replacements.py` does.

Two failures of older versions are none of 4.6.0, as tests/e2e/test_lora.py shows: requests of the
asynchronous engine name the adapter (ms-swift issue 9855; `_get_grpo_lora_request_async`), and the
base weights under an adapter are sent without it (issue 8233; `should_merge` in
`_move_full_model_to_vllm`).
"""

import functools
from collections.abc import Iterable
from typing import Any

import torch

from swift_rlvr.training.ms_swift.weight_sync import WeightSyncError


class LoadedParameters:
    """Which parameters of a vLLM model an update has loaded so far; it listens to ``load_weights``."""

    def __init__(self, model: Any):
        self.model = model
        self.names: set[str] = set()
        # Of the class, since one that listens already may be on the model.
        load_weights = type(model).load_weights

        def load_and_remember(weights: Iterable[tuple[str, torch.Tensor]]) -> Any:
            loaded = load_weights(model, weights)
            if loaded is None:
                # vLLM lets a model return None; it is taken to have loaded all.
                loaded_names = set(dict(model.named_parameters()))
            else:
                loaded_names = set(loaded)
            self.names |= loaded_names
            return loaded

        model.load_weights = load_and_remember

    def check_all(self, is_quantized: bool) -> None:
        """At the end of a full update. Raises WeightSyncError if it left parameters out."""
        loaded = _without_wrapper(self.names)
        self.names = set()
        missing = _without_wrapper(dict(self.model.named_parameters())) - loaded
        # As in vLLM itself: a quantized model has parameters that no checkpoint holds.
        if missing and not is_quantized:
            names = f"{sorted(missing)[:5]} ..."
            raise WeightSyncError(f"the update left out {len(missing)} parameters: {names}")


def _without_wrapper(names: Iterable[str]) -> set[str]:
    """Names as they are in a model without LoRA: vLLM wraps a layer that may get an adapter, and
    since 0.28 loads its weights by the names that they had before.
    """
    return {name.replace(".base_layer.", ".") for name in names}


# --- adapters


def confirmed_adapters(model_runner: Any) -> int:
    """How many updates of an adapter vLLM's layers have held so far."""
    return getattr(getattr(model_runner, "lora_manager", None), "confirmed_adapters", 0)


def confirm_next_adapter(model_runner: Any, update: Any) -> None:
    """Call `update`, which must bring a confirmed adapter to vLLM.

    Raises:
        WeightSyncError: none has come.
    """
    before = confirmed_adapters(model_runner)
    update()
    if confirmed_adapters(model_runner) == before:
        raise WeightSyncError("vLLM did not load the adapter that was sent")


def confirming_manager(add_adapter: Any) -> Any:
    """``add_adapter`` of vLLM's LoRA manager, which confirms adapters whose tensors ms-swift sends."""

    @functools.wraps(add_adapter)
    def add(self: Any, lora_request: Any) -> bool:
        if getattr(lora_request, "lora_tensors", None) is None:
            return add_adapter(self, lora_request)  # a request for completions, or one from disk
        made = []
        load_adapter = self._load_adapter

        def load_and_remember(request: Any) -> Any:
            made.append(load_adapter(request))
            return made[-1]

        self._load_adapter = load_and_remember
        try:
            loaded = add_adapter(self, lora_request)
        finally:
            del self._load_adapter
        if not made:
            raise WeightSyncError("vLLM kept the adapter of an earlier update")
        confirm_adapter(self._adapter_manager, made[-1])
        self.confirmed_adapters = getattr(self, "confirmed_adapters", 0) + 1
        return loaded

    return add


def confirm_adapter(manager: Any, adapter: Any) -> None:
    """Every layer holds its part of the adapter, and no part is left over.

    Args:
        manager: vLLM's ``LoRAModelManager``.
        adapter: the ``LoRAModel`` made of the tensors that were sent.

    Raises:
        WeightSyncError: a layer holds other values, or some tensors fit no layer.
    """
    is_registered = manager.get_adapter(adapter.id) is adapter
    if not is_registered or adapter.id not in manager.lora_index_to_id:
        raise WeightSyncError("vLLM kept the adapter of an earlier update")
    slot = manager.lora_index_to_id.index(adapter.id)
    in_layers = set()
    for name, layer in manager.modules.items():
        weights = manager._get_lora_layer_weights(adapter, name)
        if weights is None:
            continue
        in_layers.add(id(weights))
        # vLLM's own function cuts out this worker's part and packs it. Writing the part once more
        # must change nothing.
        held = _held(layer)
        layer.set_lora(slot, weights.lora_a, weights.lora_b)
        if not all(map(torch.equal, held, _held(layer))):
            raise WeightSyncError(f"{name} does not hold the adapter that was sent")
    left_out = list(getattr(adapter, "modules_to_save", {}))
    # As with experts, a module's weights may have gone into those of one that contains it.
    containers = tuple(f"{name}." for name in manager.modules)
    for name, weights in adapter.loras.items():
        if id(weights) not in in_layers and not name.startswith(containers):
            left_out.append(name)
    if left_out:
        raise WeightSyncError(
            f"vLLM has no layer for {len(left_out)} modules of the adapter, and would sample without "
            f"them: {sorted(left_out)[:5]} ... (with --vllm_enable_lora false the server gets merged "
            "weights)"
        )


def _held(layer: Any) -> list[torch.Tensor]:
    """A copy of the buffers from which a layer takes its adapter, as bytes: NaN equals NaN."""
    tensors: list[torch.Tensor] = []
    for name, value in vars(layer).items():
        if name.endswith("_stacked"):
            tensors += [value] if isinstance(value, torch.Tensor) else value
    return [tensor.contiguous().view(torch.uint8).clone() for tensor in tensors]


# --- what completions are sampled with


def require_adapter(get_lora_request: Any) -> Any:
    """The adapter that ms-swift names in its requests: once there was one, there must be one."""

    def get(self: Any, adapter_request: Any = None) -> Any:
        return _required(self, get_lora_request(self, adapter_request))

    return get


def require_adapter_async(get_lora_request: Any) -> Any:
    """The same in the asynchronous engine."""

    async def get(self: Any, adapter_request: Any = None) -> Any:
        return _required(self, await get_lora_request(self, adapter_request))

    return get


def _required(engine: Any, adapter_request: Any) -> Any:
    if adapter_request is not None:
        engine._has_had_adapter = True
    elif getattr(engine, "_has_had_adapter", False):
        raise WeightSyncError("vLLM has lost the adapter, so it would sample from the base model")
    return adapter_request
