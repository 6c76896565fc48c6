"""Packing: what is packed is small, near to its model, told apart from it, and used like any other."""

import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from elmoc.__main__ import main
from elmoc.errors import InputError
from elmoc.model import ElmoC
from elmoc.model_directory import read_model_directory, write_model_directory
from elmoc.packing import code_numbers
from elmoc.weights import packed_weights, unpacked_weights
from elmoc.word_vectors.coded_rows import PlainRows, hash_words
from elmoc.word_vectors.compact import CompactVectors
from elmoc.word_vectors.fasttext import FastTextVectors
from elmoc.word_vectors.joined import JoinedVectors
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.pieces import Pieces
from safetensors.torch import load_file, save_file
from tests.tiny import forget_checksums, tiny_model
from tokenizers import Tokenizer
from tokenizers.models import WordPiece

SENTENCES = [["Some", "words", "."], ["kabodi", "unheard-of", "日本"]]
SIZE = 160_000  # of the packed model


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that reads a fastText file of two thousand words, of which the first is not UTF-8."""
    folder = tmp_path_factory.mktemp("packing")
    generator = np.random.default_rng(0)
    syllables = ["ka", "bo", "di", "lu", "é", "xx"]
    spelt = dict.fromkeys("".join(generator.choice(syllables, 5)) for _ in range(3000))
    words = [b"\xff", *(word.encode() for word in spelt)][:2000]
    numbers = 793712314, 12, 8, 2, 3000, 3, 5, 2000, 2000, 0, -1  # dim 8, 3,000 buckets, n-grams of 3 to 5
    content = struct.pack("<3i24x4i12x3i8xq", *numbers)
    content += b"".join(word + b"\0" + struct.pack("<qb", 2000 - row, 0) for row, word in enumerate(words))
    for rows in (5000, 2000):
        content += struct.pack("<?2q", False, rows, 8)
        content += (generator.standard_normal((rows, 8), dtype=np.float32) + 1).tobytes()
    (folder / "vectors.bin").write_bytes(content)
    write_model_directory(folder / "model", tiny_model(vectors=FastTextVectors(folder / "vectors.bin")))
    return folder


@pytest.fixture(scope="module")
def packed(original: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model packed."""
    pytest.importorskip("faiss")
    output = tmp_path_factory.mktemp("packed") / "small"
    assert main(["pack", str(original / "model"), str(output), "--size", f"{SIZE / 10**6}MB"]) == 0
    return output


def test_vectors_of_a_teacher_beside_fasttext_are_packed_with_any_string(original: Path, tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    generator = np.random.default_rng(1)
    fasttext = FastTextVectors(original / "vectors.bin")
    words = fasttext.contents()[0]
    letters = {
        piece: row for row, piece in enumerate(["[UNK]", *map(chr, range(97, 123)), *map("##{}".format, range(300))])
    }
    tokenizer = Tokenizer(WordPiece(letters, unk_token="[UNK]"))
    table = generator.standard_normal((len(words) + len(letters), 12)).astype(np.float16)
    composition = generator.standard_normal((38, 12)).astype(np.float16)
    pieces = Pieces(tokenizer.to_str().encode(), PlainRows(table[len(words) :]), composition)
    # The first words are the most frequent ones.
    counts = np.arange(len(words), 0, -1)
    teacher = CompactVectors.of_words(words, PlainRows(table[: len(words)]), pieces, about="tiny", counts=counts)
    teacher.write(tmp_path / "teacher.safetensors")
    opened = open_word_vectors(tmp_path / "teacher.safetensors")
    JoinedVectors([fasttext, opened], [1.0, 2.0]).write_record(tmp_path / "both.json")
    both = open_word_vectors(tmp_path / "both.json")
    write_model_directory(tmp_path / "model", tiny_model(vectors=both))
    assert main(["pack", str(tmp_path / "model"), str(tmp_path / "small"), "--size", "0.135MB"]) == 0
    assert sum(file.stat().st_size for file in (tmp_path / "small").iterdir()) <= 135_000
    small = ElmoC.from_pretrained(shutil.move(tmp_path / "small", tmp_path / "elsewhere"))
    assert (small.word_vectors.size, small.directory.word_vectors.about) == (both.size, "tiny")
    assert "tiny" in (tmp_path / "elsewhere/README.md").read_text()
    seen = [words[1:200], [*words[1:30], "x", "unheard-of"]]
    whole = ElmoC.from_pretrained(tmp_path / "model")
    for mine, theirs in zip(whole.embed_batch(seen), small.embed_batch(seen), strict=True):
        assert torch.nn.functional.cosine_similarity(mine, theirs, dim=-1).mean() > 0.8
    # Rare words are made of their pieces, as in a file without them.
    assert isinstance(small.word_vectors, JoinedVectors)
    packed_teacher = small.word_vectors.parts[1]
    assert isinstance(packed_teacher, CompactVectors)
    assert 256 <= len(packed_teacher.hashes) < len(words)
    assert set(packed_teacher.hashes) == set(hash_words(words[: len(packed_teacher.hashes)]))
    assert packed_teacher.parts is not None
    np.testing.assert_array_equal(packed_teacher.lookup(words[-3:]), packed_teacher.parts.vectors(words[-3:]))
    # What was packed is packed again beside the teacher: words that are frequent there, and fewer n-grams.
    packed_fasttext = small.word_vectors.parts[0]
    assert isinstance(packed_fasttext, CompactVectors)
    JoinedVectors([packed_fasttext, opened], [1.0, 2.0]).write(tmp_path / "again.safetensors")
    write_model_directory(tmp_path / "again", tiny_model(vectors=open_word_vectors(tmp_path / "again.safetensors")))
    assert main(["pack", str(tmp_path / "again"), str(tmp_path / "less"), "--size", "0.12MB"]) == 0
    assert sum(file.stat().st_size for file in (tmp_path / "less").iterdir()) <= 120_000
    less = ElmoC.from_pretrained(tmp_path / "less")
    for mine, theirs in zip(small.embed_batch(seen), less.embed_batch(seen), strict=True):
        assert torch.nn.functional.cosine_similarity(mine, theirs, dim=-1).mean() > 0.7


@pytest.mark.parametrize("weight_type", ["float32", "float16", "int8"])
def test_weights_come_back_and_are_written_again_as_the_same_numbers(weight_type: str) -> None:
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(30, 20, generator=generator) * torch.logspace(-3, 3, 30)[:, None]
    matrix[7] = 0
    weights = {"matrix": matrix, "bias": torch.randn(30, generator=generator)}
    stored = packed_weights(weights, weight_type)
    read, found = unpacked_weights(stored)
    assert found == weight_type
    assert torch.equal(read["bias"], weights["bias"])
    step = {"float32": 0.0, "float16": 2**-11, "int8": 0.51 / 127}[weight_type] * matrix.abs().amax(dim=1, keepdim=True)
    assert ((read["matrix"] - matrix).abs() <= step).all()
    again = packed_weights(read, weight_type)
    assert all(torch.equal(again[name], stored[name]) for name in stored)


def test_int8_weights_need_a_scale_for_every_row(tmp_path: Path) -> None:
    model = tiny_model()
    model.weight_type = "int8"
    name = "forward_lm.layers.0.projection_weight"
    for change in (lambda scale: None, lambda scale: scale[1:], lambda scale: scale * float("nan")):
        write_model_directory(tmp_path / "model", model)
        tensors = load_file(tmp_path / "model/model.safetensors")
        [name, *_] = sorted(each for each in tensors if each.endswith(".scale"))
        changed = change(tensors.pop(name))
        save_file(tensors | ({} if changed is None else {name: changed}), tmp_path / "model/model.safetensors")
        forget_checksums(tmp_path / "model/config.json")
        with pytest.raises(InputError, match=r"model\.safetensors"):
            read_model_directory(tmp_path / "model")


def test_a_packed_model_is_small_and_near_and_names_its_parent(original: Path, packed: Path) -> None:
    files = sorted(file.name for file in packed.iterdir())
    assert files == ["README.md", "compact.safetensors", "config.json", "config.json.xxh3", "model.safetensors"]
    assert sum(file.stat().st_size for file in packed.iterdir()) <= SIZE
    before, after = ElmoC.from_pretrained(original / "model"), ElmoC.from_pretrained(packed)
    for mine, theirs in zip(before.embed_batch(SENTENCES), after.embed_batch(SENTENCES), strict=True):
        assert torch.nn.functional.cosine_similarity(mine, theirs, dim=-1).mean() > 0.9
    said = after.identity
    assert said["packed_from"] == before.fingerprint
    assert said["model"] != before.fingerprint
    assert said["word_vectors"] != before.word_vectors.fingerprint
    card = (packed / "README.md").read_text()
    assert before.fingerprint in card
    assert "vectors.bin" in card
    assert f"`{original.name}`" in card
    assert main(["check", str(packed)]) == 0


def test_it_is_opened_alone_from_an_empty_folder(original: Path, packed: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(packed, tmp_path / "elsewhere/small")
    (tmp_path / "empty").mkdir()
    code = f"from elmoc import ElmoC; print(ElmoC.from_pretrained({str(copy)!r}).embed(['unheard-of']).sum().item())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "empty", capture_output=True, text=True, check=True
    )
    states = ElmoC.from_pretrained(packed).embed(["unheard-of"])
    assert float(done.stdout) == pytest.approx(states.sum().item(), rel=1e-5)
    ElmoC.from_pretrained(copy).save_pretrained(tmp_path / "again")
    for name in ("model.safetensors", "compact.safetensors", "README.md"):
        assert (tmp_path / "again" / name).read_bytes() == (packed / name).read_bytes(), name


def test_commands_take_it_and_name_its_parent(
    original: Path, packed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.txt").write_text("some words here\nother words unheard-of\n")
    text, features = str(tmp_path / "text.txt"), str(tmp_path / "features.h5")
    assert main(["dump-features", str(packed), text, features]) == 0
    assert main(["inspect", features]) == 0
    parent = ElmoC.from_pretrained(original / "model").fingerprint
    assert re.search(rf"packed from +{parent}", capsys.readouterr().out)
    assert main(["neighbours", str(packed), text, "--word", "words", "--in", "more words"]) == 0
    vectors = open_word_vectors(packed)
    np.testing.assert_array_equal(vectors.lookup(["é"]), ElmoC.from_pretrained(packed).word_vectors.lookup(["é"]))


def test_the_same_model_is_packed_into_the_same_file(original: Path, packed: Path, tmp_path: Path) -> None:
    assert main(["pack", str(original / "model"), str(tmp_path / "small"), "--size", f"{SIZE / 10**6}MB"]) == 0
    for name in ("model.safetensors", "compact.safetensors"):
        assert (tmp_path / "small" / name).read_bytes() == (packed / name).read_bytes()


def test_float16_weights_are_nearer(original: Path, packed: Path, tmp_path: Path) -> None:
    half = tmp_path / "half"
    command = ["pack", str(original / "model"), str(half), "--size", f"{SIZE / 10**6}MB", "--weights", "float16"]
    assert main(command) == 0
    assert sum(file.stat().st_size for file in half.iterdir()) <= SIZE
    whole, *others = (read_model_directory(path) for path in (original / "model", half, packed))
    assert [each.weight_type for each in others] == ["float16", "int8"]
    wanted, *found = (
        torch.cat([each.flatten() for each in one.encoder.weights().values()]) for one in (whole, *others)
    )
    errors = [(each - wanted).abs().sum() for each in found]
    assert 0 < 20 * errors[0] < errors[1]
    assert (half / "compact.safetensors").read_bytes() == (packed / "compact.safetensors").read_bytes()


def test_no_code_stands_for_many_numbers() -> None:
    assert (code_numbers(300)[0], code_numbers(202)) == (25, [101])
    with pytest.raises(InputError, match="of 101 numbers cannot be divided"):
        code_numbers(101)


def test_what_cannot_be_packed_is_said(
    original: Path, model_path: Path, tmp_path: Path, error_line: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name != "faiss" or None)
    assert "'.[pack]'" in error_line(main(["pack", str(original / "model"), str(tmp_path / "out"), "--size", "9MB"]))
    monkeypatch.undo()
    pytest.importorskip("faiss")
    for model, size, said in (
        (original / "model", "50", "--size"),
        (original / "model", "0.003MB", "too small"),
        (model_path, "50MB", "fastText"),
    ):
        assert said in error_line(main(["pack", str(model), str(tmp_path / "out"), "--size", size]))
    assert not (tmp_path / "out").exists()
