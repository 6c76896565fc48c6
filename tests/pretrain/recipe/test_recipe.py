"""The recipe: from a little text to a model directory with its card, by the same command after an interruption."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from elmoc import ElmoC
from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.files.text import read_lines
from pretrain.recipe.__main__ import main
from pretrain.recipe.plan import require_kinds
from tests.elmoc.word_vectors.fasttext.files import fasttext_bytes
from tests.tiny import learnable_sentences

Fails = Callable[[int], str]
SETTINGS = {
    "encoder.projection_size": 8,
    "encoder.cell_size": 12,
    "train.streams": 4,
    "train.updates": 4,
    "train.window": 5,
    "train.device": '"cpu"',
    "evaluation.words": 60,
    "evaluation.every_updates": 4,
    "evaluation.candidates": 20,
}


@pytest.fixture
def texts(tmp_path: Path) -> list[str]:
    for seed, name in enumerate(("one", "two")):
        sentences = [" ".join(words) for words in learnable_sentences(100, seed=seed)]
        (tmp_path / f"{name}.txt").write_text("\n".join(sentences) + "\n")
    (tmp_path / "vectors.bin").write_bytes(fasttext_bytes())
    (tmp_path / "tiny.toml").write_text("")
    return [f"{name}={tmp_path / name}.txt" for name in ("one", "two")]


def recipe(*words: object, **settings: object) -> int:
    changed = {name.replace("__", "."): value for name, value in settings.items()}
    return main([*map(str, words), *(f"--set={name}={value}" for name, value in (SETTINGS | changed).items())])


def test_text_becomes_a_model_with_a_card(
    texts: list[str], tmp_path: Path, steps_here: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    out, config = tmp_path / "out", ["--config", tmp_path / "tiny.toml"]
    options = ["--vectors", tmp_path / "vectors.bin", "--bundle", "--name", "Ada's", "--licence", "CC BY 4.0", *config]
    assert recipe(*texts, out, *options, "--set=encoder.layers=0") == 1
    assert not steps_here, "the config is checked first"
    (tmp_path / "vectors.bin").rename(tmp_path / "away.bin")
    assert recipe(*texts, out, *options) == 1
    assert not steps_here, "and that the vectors are there"
    (tmp_path / "vectors.bin").write_bytes(b"damaged")
    assert recipe(*texts, out, *options) == 1
    assert not steps_here, "and that they are vectors"
    assert not out.exists()
    (tmp_path / "away.bin").rename(tmp_path / "vectors.bin")
    (tmp_path / "late.vec").write_text("w1 nan 1 1\n")
    assert recipe(*texts, out, *options, "--vectors", tmp_path / "late.vec") == 1
    assert recipe(*texts, out, *options) == 0, "others may be given as long as nothing was made of them"
    assert [line[0] for line in steps_here] == [
        "data_scripts.build_corpus",
        "data_scripts.build_vectors",  # which failed
        "data_scripts.build_vectors",
        "data_scripts.build_vectors",
        "pretrain",
    ]
    assert "step 1 of 6: a corpus of the text: done before" in capsys.readouterr().out
    assert recipe(*texts, out, *options, "--vectors", "random:1:8") == 1
    assert re.search(r"other values of vectors \(was '.*, is 'random:1:8'\)", capsys.readouterr().err), "cut where long"
    assert not (out / "model/vectors.bin").samefile(tmp_path / "vectors.bin"), "whoever gave it may write into it"
    (tmp_path / "vectors.bin").unlink()
    assert ElmoC.from_pretrained(out).embed(["w1", "w2"]).shape == (3, 2, 16), "the vectors are bundled"
    card = list(read_lines(out / "model/README.md"))
    assert "# Ada's" in card
    assert "- Licence of the text it was trained on: CC BY 4.0" in card
    assert "On held-out text of the kind `two`:" in card
    assert any(line.startswith("| `one` | ") for line in card)
    assert "cell_size = 12" in card
    assert recipe(*texts, out, *options) == 0, "once both tables are made, it goes on without the vectors"


def test_the_default_config_is_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_line: Fails
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "there.bin does not exist" in error_line(recipe("text.txt", tmp_path / "out", "--vectors", "there.bin"))


def test_kinds_without_text_held_out_have_their_last_part_held_out(
    texts: list[str], tmp_path: Path, steps_here: list[list[str]]
) -> None:
    sentences = [" ".join(words) for words in learnable_sentences(40, seed=9)]
    (tmp_path / "apart.txt").write_text("\n".join(sentences) + "\n")
    options = ["--config", tmp_path / "tiny.toml", "--vectors", tmp_path / "vectors.bin"]
    options += ["--leave-out", tmp_path / "dev.txt"]
    (tmp_path / "dev.txt").write_text("w1 w2 w3 w4 w5 w6\n")
    two = tmp_path / "two.txt"
    two.write_text("W1 w2 w3 w4 w5 w6 !\n" + two.read_text())
    assert recipe(*texts, tmp_path / "out", *options, "--held-out", f"one={tmp_path / 'apart.txt'}") == 0
    corpus = Corpus(tmp_path / "out/corpus")
    assert corpus.record.settings["left_out_sentences"]["two"] > 0, "but for case and punctuation it is the same"
    assert set(corpus.held_out_sources) == {"one", "two"}
    held_out = sum(shard.tokens for shard in corpus.held_out if shard.source == "one")
    assert held_out == sum(len(line.split()) + 2 for line in sentences if line != "w1 w2 w3 w4 w5 w6")


@pytest.mark.parametrize("option", ["TEXT", "--held-out", "--leave-out"])
def test_text_that_is_none_is_found_before_anything_is_made(
    texts: list[str], tmp_path: Path, steps_here: list[list[str]], error_line: Fails, option: str
) -> None:
    (tmp_path / "latin.txt").write_bytes(b"one\ncaf\xe9\n")
    config, latin = ["--config", tmp_path / "tiny.toml"], f"one={tmp_path / 'latin.txt'}"
    given = [*texts, latin] if option == "TEXT" else texts
    more = [option, latin.removeprefix("one=") if option == "--leave-out" else latin] if option != "TEXT" else []
    said = error_line(recipe(*given, tmp_path / "out", *config, *more))
    assert "latin.txt, line 2: byte 0xe9 is not valid UTF-8" in said
    assert not steps_here
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_place_of_the_run_directory(texts: list[str], tmp_path: Path, error_line: Fails) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/vectors.npy").write_bytes(b"\x93NUMPY")
    said = error_line(recipe(tmp_path / "folder", tmp_path / "one.txt", "--config", tmp_path / "tiny.toml"))
    assert "one.txt is an existing file, but OUT, the last of the names, is a directory to make: choose another" in said


def test_bundled_vectors_of_its_own_take_no_room_twice(
    texts: list[str], tmp_path: Path, steps_here: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_vectors(words: list[str]) -> int:
        Path(words[1]).write_bytes(fasttext_bytes())
        return 0

    monkeypatch.setattr("data_scripts.train_fasttext.main", write_vectors)
    out = tmp_path / "out"
    assert recipe(*texts, out, "--config", tmp_path / "tiny.toml", "--bundle") == 0
    assert (out / "model/vectors.bin").samefile(out / "vectors.bin")


@pytest.mark.parametrize("setting", ["input_layer.kind=character_cnn", "data.target_vectors=random"])
def test_other_tables_are_refused_before_anything_is_made(
    texts: list[str], tmp_path: Path, error_line: Fails, setting: str
) -> None:
    config = ["--config", tmp_path / "tiny.toml"]
    said = error_line(recipe(*texts, tmp_path / "out", *config, f"--set={setting}"))
    assert "this command makes the tables `input` and `target` of word vectors, and trains on these alone" in said
    assert not (tmp_path / "out").exists()


def test_another_corpus_than_that_of_the_text_is_refused(texts: list[str], tmp_path: Path, error_line: Fails) -> None:
    said = error_line(recipe(*texts, tmp_path / "out", "--config", tmp_path / "tiny.toml", "--set=data.corpus=other"))
    assert "--set data.corpus: the corpus that the encoder is trained on is made here, of the text: leave it" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (
            "{three=2.0}",
            "data.sources has a weight of three, which is no kind of the text that is given (its kinds: one",
        ),
        ("{one=0, two=0.0}", "data.sources gives every kind of text the weight 0: give one a weight above 0"),
    ],
)
def test_weights_of_kinds_of_text_are_checked_before_anything_is_made(
    texts: list[str], tmp_path: Path, error_line: Fails, weights: str, message: str
) -> None:
    config = ["--config", tmp_path / "tiny.toml", f"--set=data.sources={weights}"]
    assert message in error_line(recipe(*texts, tmp_path / "out", *config))
    assert not (tmp_path / "out").exists()


def test_weights_of_text_without_a_name_or_with_the_right_one() -> None:
    with pytest.raises(InputError, match=r"weight of one, .* \(its kinds: none\): .* name the text as one=PATH"):
        require_kinds(["some.txt", "folder/one=two.txt"], {"one": 2.0})
    require_kinds(["one=a.txt", "two=b.txt", "one=c.txt"], {"one": 2.0, "two": 0.0})
    require_kinds(["some.txt"], {})


def test_it_is_gone_on_with_as_it_was_begun(
    texts: list[str],
    tmp_path: Path,
    steps_here: list[list[str]],
    error_line: Fails,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, config = tmp_path / "out", ["--config", tmp_path / "tiny.toml"]
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "lines.json").write_text('{"text": "It rained ."}\n' * 50)
    assert recipe(tmp_path / "nowhere.txt", out, *config) == 1
    assert "nowhere.txt" in capsys.readouterr().err
    assert recipe(tmp_path / "lines.json", out, *config) == 1
    assert "lines.json holds JSON lines, not text" in capsys.readouterr().err
    assert [path.name for path in out.rglob("*")] == ["begun.json"]
    assert recipe(tmp_path / "empty.txt", out, *config) == 1, "nothing was made before, so that it may begin otherwise"
    assert "the input files hold no sentences" in capsys.readouterr().err
    assert "was begun with other values of texts (was" in error_line(recipe(*texts, out, *config))
    begun = tmp_path / "out/begun.json"
    begun.write_text("{")
    assert "begun.json" in error_line(recipe(*texts, out, *config))
    assert "--max-time takes a number" in error_line(recipe(*texts, tmp_path / "x", *config, "--max-time", "soon"))
    assert "unknown transform 'white'" in error_line(recipe(*texts, tmp_path / "z", *config, "--targets", "white"))
    assert not (tmp_path / "z").exists()
    assert "nowhere.toml does not exist" in error_line(recipe(*texts, tmp_path / "y", "--config", "nowhere.toml"))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"train__window": 200}, "out/corpus holds out only "),
        ({"train__streams": 400}, "train.streams=400 with train.window=5 need 2,400 tokens, targets included"),
    ],
)
def test_too_little_text_is_found_before_vectors_are_made(
    texts: list[str], tmp_path: Path, steps_here: list[list[str]], error_line: Fails, setting: dict, message: str
) -> None:
    assert message in error_line(recipe(*texts, tmp_path / "out", "--config", tmp_path / "tiny.toml", **setting))
    assert [line[0] for line in steps_here] == ["data_scripts.build_corpus"]
