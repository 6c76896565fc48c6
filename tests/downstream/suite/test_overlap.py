"""Overlap of a suite: development parts in the pretraining text are found, and what cannot be looked for is named."""

import json
import shutil
from pathlib import Path

import pytest

from downstream.suite import overlap
from elmoc.model_directory import write_model_directory
from tests.downstream.conftest import words_of
from tests.downstream.suite.conftest import Run, report
from tests.tiny import learnable_sentences, tiny_model, write_corpus


def test_development_parts_in_the_pretraining_text_are_a_warning(
    suite: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = [*words_of()[:2], ["Somebody", "met", "Charles", "Babbage", "in", "London", "."]]
    write_corpus(Path("seen"), [seen], [words_of()[2:3]])
    write_corpus(Path("other"), [learnable_sentences(10, 1)], [learnable_sentences(2, 2)])
    options = ("--inputs", "vectors", "--corpus")
    suite(*options, "other")
    assert "ner-again, dev: 0 sentences of other overlap with its 10" in capsys.readouterr().out
    assert report("suite/vectors")["notes"] == []
    suite(*options, "seen")
    found = capsys.readouterr().out
    assert "ner-again, dev: 2 sentences of seen overlap with its 10" in found, "the second is too short to tell"
    assert report("suite/vectors")["notes"][0].startswith(
        "WARNING: 2 sentences of the pretraining text (seen) overlap with"
    )
    monkeypatch.setattr(overlap, "overlapping_sentences", None)  # it is not looked for again
    suite(*options, "seen")
    assert "2 sentences of seen" in capsys.readouterr().out


def test_all_corpora_of_a_model_are_looked_through(
    suite: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    base, task = (
        {"corpus": name, "corpus_tokens": write_corpus(Path(name), [text], [learnable_sentences(2, 2)]).train_tokens}
        for name, text in (("base", words_of()[:1]), ("task", learnable_sentences(9, 1)))
    )
    model = tiny_model()
    model.training |= {"words": 10, **task, "started_from": {**base, "started_from": {"corpus": "x"}}}
    write_model_directory(tmp_path / "adapted", model)
    suite("--model", "adapted", "--quick")
    assert "ner-ten-sentences, dev: 0 sentences of task overlap" in capsys.readouterr().out
    missing, found = report("suite/adapted-quick")["notes"]
    assert missing.startswith("Not checked for sentences of development parts: x, on which adapted was trained, is not")
    assert found.startswith("WARNING: 1 sentence of the pretraining text (base) overlaps with the dev part of")
    suite("--model", "first", "--quick")
    assert (
        "first, or a model that it went on from, does not say on which corpus it was trained"
        in report("suite/first-quick")["notes"][0]
    )


def test_a_corpus_that_was_built_anew_is_not_what_the_model_has_read(suite: Run, tmp_path: Path) -> None:
    seen = write_corpus(Path("corpus"), [words_of()[:2]], [learnable_sentences(2, 2)])
    model = tiny_model()
    model.training |= {"words": 10, "corpus": "corpus", "corpus_tokens": seen.train_tokens}
    write_model_directory(tmp_path / "mine", model)
    suite("--model", "mine", "--quick")
    (note,) = report("suite/mine-quick")["notes"]
    assert note.endswith("build the corpus without such text (build_corpus --leave-out), and train on that.")
    shutil.rmtree("corpus")
    write_corpus(Path("corpus"), [words_of()[1:2]], [learnable_sentences(2, 2)])
    suite("--model", "mine", "--quick")
    (note,) = report("suite/mine-quick")["notes"]
    assert note.startswith(
        "Not checked for sentences of development parts: the corpus in corpus is another by now than mine was trained"
    )
    suite("--model", "mine", "--quick", "--corpus", "corpus")
    assert report("suite/mine-quick")["notes"] == [], "the user knows"


def test_words_of_which_a_corpus_of_subwords_was_made_may_be_others_by_now(tmp_path: Path) -> None:
    words = write_corpus(tmp_path / "words", [words_of()[:4]], [learnable_sentences(2, 2)])
    subwords = write_corpus(tmp_path / "subwords", [words_of()[:4]], [learnable_sentences(2, 2)])
    record = tmp_path / "subwords/corpus.json"
    content = json.loads(record.read_text()) | {"subwords": True, "settings": {"words": str(words.path)}}
    record.write_text(json.dumps(content))
    (subwords.path / "subwords.json").write_text("{}")
    forward = {"corpus": str(subwords.path), "corpus_tokens": subwords.train_tokens}
    model = tiny_model()
    model.training.update({"forward": forward, "backward": dict(forward)})
    write_model_directory(tmp_path / "model", model)
    assert overlap.corpora_of(tmp_path / "model") == ([words.path], [])
    shutil.rmtree(words.path)
    write_corpus(words.path, [words_of()[:3]], [learnable_sentences(2, 2)])
    found, (note,) = overlap.corpora_of(tmp_path / "model")
    assert found == []
    assert f"the corpus in {words.path} is another by now" in note
