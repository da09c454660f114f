"""Small models of three kinds, for what may not depend on the kind, and one that sees."""

from pathlib import Path

import torch
import transformers

from swift_rlvr.utils.files import TINY_MODEL

SMALL_MODELS = ("qwen2", "gpt2", "gemma2")
VOCABULARY = 532


def small_model(name: str):
    """The tiny model; GPT-2 with absolute positions; Gemma 2, which caps its logits and slides a
    window.
    """
    torch.manual_seed(1)
    if name == "qwen2":
        return transformers.AutoModelForCausalLM.from_pretrained(
            TINY_MODEL, dtype=torch.float32
        ).eval()
    if name == "gpt2":
        config = transformers.GPT2Config(
            vocab_size=VOCABULARY, n_positions=256, n_embd=32, n_layer=2, n_head=2
        )
        return transformers.GPT2LMHeadModel(config).eval()
    sizes = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "head_dim": 16,
        "sliding_window": 8,
    }
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "final_logit_softcapping": 0.5}
    return transformers.Gemma2ForCausalLM(
        transformers.Gemma2Config(vocab_size=VOCABULARY, **sizes, **heads)
    ).eval()


# ms-swift cannot tell the kinds of LLaVA by their files.
VISION_MODEL_TYPE = "llava1_5_hf"
# Of a picture of 56 x 56 pixels, in patches of 14.
TOKENS_OF_A_PICTURE = 16
_TURNS = """\
{% for message in messages %}<|im_start|>{{ message['role'] }}
{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}\
{% if part['type'] == 'text' %}{{ part['text'] }}{% else %}<image>
{% endif %}{% endfor %}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


@torch.no_grad()
def _never_writes(model, token: int) -> None:
    """Keep a token out of what a model of random weights samples. One that writes ``<image>`` has more
    places for pictures than pictures, and ends the run.

    The first number of the hidden state is the same everywhere, and the token's logit is low by it.
    """
    text = model.model.language_model
    text.embed_tokens.weight[:, 0] = 0.1
    for layer in text.layers:
        layer.self_attn.o_proj.weight[0] = 0
        layer.mlp.down_proj.weight[0] = 0
    projector = model.model.multi_modal_projector.linear_2
    projector.weight[0] = 0
    projector.bias[0] = 0.1
    model.lm_head.weight[token] = 0
    model.lm_head.weight[token, 0] = -20


def save_vision_model(folder: Path) -> Path:
    """A folder with a model that sees, of random weights, and its processor: LLaVA's, whose code in
    ms-swift needs no further package, as that of Qwen2.5-VL does.
    """
    torch.manual_seed(1)
    tokenizer = transformers.AutoTokenizer.from_pretrained(TINY_MODEL)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<s>", "</s>", "<image>"]})
    tokenizer.chat_template = _TURNS
    layers = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    text = transformers.Qwen2Config(
        vocab_size=len(tokenizer),
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=1024,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        **layers,
    )
    vision = transformers.CLIPVisionConfig(
        num_attention_heads=2, image_size=56, patch_size=14, **layers
    )
    config = transformers.LlavaConfig(
        vision_config=vision,
        text_config=text,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_seq_length=TOKENS_OF_A_PICTURE,
        vision_feature_layer=-1,
    )
    model = transformers.LlavaForConditionalGeneration(config)
    _never_writes(model, config.image_token_index)
    model.save_pretrained(folder)
    size = {"height": 56, "width": 56}
    processor = transformers.LlavaProcessor(
        image_processor=transformers.CLIPImageProcessorPil(
            size=size, crop_size=size, do_center_crop=False
        ),
        tokenizer=tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        chat_template=_TURNS,
        num_additional_image_tokens=1,
    )
    processor.save_pretrained(folder)
    return folder
