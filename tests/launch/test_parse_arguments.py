"""The tokenizer of a launch's model, in ms-swift's process: what it answers is what one here says."""

import os
import tempfile
import threading
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from helpers import planned
from swift_rlvr.evaluation.models import load_tokenizer
from swift_rlvr.evaluation.prompts import token_count
from swift_rlvr.launch.checks import Launch
from swift_rlvr.launch.checks.rows import FIRST, asked_rows
from swift_rlvr.launch.parse_arguments import PARSED, MsSwift, _read_texts
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import TINY_MODEL

CPU = "scripts/configs/countdown_cpu.yaml"


@contextmanager
def ms_swift(answer: str):
    """The program, as a thread: it refuses the arguments with this answer, and then reads texts."""
    ends = [
        os.fdopen(end, mode) for end, mode in zip((*os.pipe(), *os.pipe()), "rwrw", strict=True)
    ]
    questions, asking, reading, answers = ends

    def program() -> None:
        with answers:
            print(answer, file=answers, flush=True)
            if answer.startswith(PARSED):
                _read_texts(questions, answers)

    thread = threading.Thread(target=program)
    thread.start()
    process: Any = SimpleNamespace(
        stdin=asking, stdout=reading, pid=os.getpid(), poll=lambda: 0, kill=lambda: None
    )
    with tempfile.TemporaryFile("w+") as errors:
        yield MsSwift(process, errors)
    asking.close()
    thread.join()
    for end in ends:
        end.close()


def test_a_tokenizer_there_reads_the_rows_as_one_here_does():
    launch = Launch(planned(CPU))
    with ms_swift(PARSED + '{"problem": "refused"}') as program:
        assert program.first_rows() == {}
        assert program.parsed([]).problem == "refused"
        there, here = program.load_tokenizer(str(TINY_MODEL)), load_tokenizer(str(TINY_MODEL))
        rows = asked_rows(launch, there)
        assert list(rows) == list(asked_rows(launch, here))
        for text in ("", "(1 + 2) / 3\n", "ein Äpfelchen <|im_end|>"):
            assert token_count(there, text) == token_count(here, text)
        # What the template refuses is said, and ends nothing.
        with pytest.raises(ValueError, match="no"):
            there.apply_chat_template([], chat_template="{{ raise_exception('no') }}")
        assert token_count(there, "1") == token_count(here, "1")
        with pytest.raises(InputError, match="cannot be loaded"):
            program.load_tokenizer("/no/such/model")


def test_where_the_program_has_ended_the_tokenizer_is_loaded_here():
    with ms_swift("a last word") as program:
        assert program.first_rows() == {}
        assert program.parsed([]).failure == ""
        assert program.load_tokenizer(str(TINY_MODEL)).chat_template


def test_the_rows_are_read_once():
    launch = Launch(planned(CPU))
    assert launch.asked is launch.asked and len(launch.asked) == FIRST
