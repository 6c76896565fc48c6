"""Options of recipes: the beginning of each text is read before anything is made, however long its lines are."""

import tracemalloc
from argparse import Namespace
from pathlib import Path

import pytest

from elmoc.errors import InputError
from pretrain.recipe.options import require_text


def test_the_first_look_at_text_keeps_little_of_it(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(f"{'word ' * 200_000}\n" * 20)
    named = Namespace(text=[str(text)], held_out=[], leave_out=[])
    tracemalloc.start()
    try:
        require_text(named, tmp_path / "corpus")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000
    text.write_bytes(b"word\n" * 100 + b"caf\xe9\n")
    with pytest.raises(InputError, match="line 101: byte 0xe9 is not valid UTF-8"):
        require_text(named, tmp_path / "corpus")
