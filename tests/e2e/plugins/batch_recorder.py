"""Writes what each rank is about to train on to batches-RANK.jsonl in the folder E2E_BATCHES."""

import json
import os
import pathlib

from swift.rlhf_trainers import grpo_trainer

collate = grpo_trainer.collate_to_grpo_micro_batch


def collate_and_write(samples, template, **options):
    inputs, batch = collate(samples, template, **options)
    path = pathlib.Path(os.environ["E2E_BATCHES"]) / f"batches-{os.environ['RANK']}.jsonl"
    with path.open("a") as file:
        for number, sample in enumerate(samples):
            row = {
                "ids": inputs["input_ids"][number].tolist(),
                "present": inputs["attention_mask"][number].tolist(),
                "mask": batch.completion_mask[number].int().tolist(),
                "sampled": sample.response_token_ids,
                "messages": sample.messages,
            }
            print(json.dumps(row), file=file)
    return inputs, batch


grpo_trainer.collate_to_grpo_micro_batch = collate_and_write
