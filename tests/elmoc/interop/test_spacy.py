"""spaCy: tensors, vectors and similarities of docs, pipelines that are saved and moved, and pipes trained on them."""

import multiprocessing
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("spacy", reason="spaCy is not installed: make test-integrations")
import spacy
from elmoc.__main__ import main
from elmoc.errors import InputError
from elmoc.interop.spacy.hooks import add_hooks
from elmoc.model_directory import write_model_directory
from elmoc.word_vectors.sources import TextVectors
from spacy.cli.train import train
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from tests.elmoc.interop.conftest import run_page_programs
from tests.tiny import learnable_sentences, tiny_model

from elmoc import ElmoC

TEXT = "I sat  on the bank.\nThe bank was steep."
TENSOR = {"@architectures": "elmoc.TensorTok2Vec.v1"}
ENCODER = {
    "@architectures": "spacy.MaxoutWindowEncoder.v2",
    "width": 30,
    "depth": 1,
    "window_size": 1,
    "maxout_pieces": 2,
}
LINEAR_TAGGER = {"@architectures": "spacy.Tagger.v2", "tok2vec": TENSOR}
MODELS = {
    "tagger": {
        "@architectures": "spacy.Tagger.v2",
        "tok2vec": {"@architectures": "spacy.Tok2Vec.v2", "embed": TENSOR, "encode": ENCODER},
    },
    "ner": {
        "@architectures": "spacy.TransitionBasedParser.v2",
        "state_type": "ner",
        "extra_state_tokens": False,
        "hidden_width": 16,
        "maxout_pieces": 2,
        "use_upper": True,
        "tok2vec": TENSOR,
    },
}


def pipeline(model: Path, **settings: object) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmoc", config={"model": str(model), **settings})
    return nlp


@pytest.fixture
def nlp(model_path: Path) -> Language:
    return pipeline(model_path)


def test_tensor_and_vectors_are_the_layer_states_of_the_words(model_path: Path) -> None:
    doc = pipeline(model_path, layers="all")(TEXT)
    spaces = [token.is_space for token in doc]
    assert sum(spaces) == 2
    words = [token.text for token in doc if not token.is_space]
    bottom, middle, top = ElmoC.from_pretrained(model_path).embed(words).numpy()
    np.testing.assert_allclose(doc.tensor[np.invert(spaces)], np.concatenate([bottom, middle, top], axis=1), atol=1e-6)
    assert doc.tensor.dtype == np.float32
    assert not doc.tensor[spaces].any()
    assert [token.has_vector for token in doc] == list(np.invert(spaces))
    np.testing.assert_array_equal(doc[1].vector, doc.tensor[1])
    np.testing.assert_allclose(doc[1:4].vector, doc.tensor[1:4].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(doc.vector, doc.tensor.mean(axis=0), atol=1e-6)
    assert doc[1].vector_norm == pytest.approx(np.linalg.norm(doc.tensor[1]))


def test_the_same_word_has_other_vectors_in_other_contexts(nlp: Language) -> None:
    doc = nlp(TEXT)
    first, second = (token for token in doc if token.text == "bank")
    cosine = first.vector @ second.vector / (first.vector_norm * second.vector_norm)
    assert first.similarity(second) == pytest.approx(cosine)
    assert first.similarity(second) < 0.99
    assert first.similarity(first) == pytest.approx(1)
    assert doc[2].is_space
    assert doc[2].similarity(first) == 0
    assert doc.similarity(doc[:3]) == pytest.approx(doc[:3].similarity(doc))


def test_vectors_of_the_vocab_give_way(nlp: Language) -> None:
    nlp.vocab.set_vector("bank", np.ones(4, dtype=np.float32))
    doc = nlp.make_doc(TEXT)
    assert doc.vector.shape == (4,)
    doc = nlp(doc)
    assert doc.vector.shape == doc[5].vector.shape == doc[1:3].vector.shape == (10,)
    with pytest.raises(InputError):
        doc[5].similarity(nlp.vocab["bank"])


@pytest.mark.parametrize("width", [10, 4])
def test_a_vocab_with_vectors_keeps_none_of_a_context_where_tokens_are_merged(model_path: Path, width: int) -> None:
    """Its vector of a merged word is what it would be without the component; the token has that of its last word."""
    nlp = pipeline(model_path)
    for number, word in enumerate(("on", "the", "bank")):
        nlp.vocab.set_vector(word, np.full(width, number, dtype=np.float32))
    doc = nlp("on the bank , then on the bank again")
    before = doc.tensor.copy()
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:3])
        retokenizer.merge(doc[5:8])
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[1:3])
    assert [token.text for token in doc] == ["on the bank", ", then", "on the bank", "again"]
    np.testing.assert_array_equal(doc.tensor, before[[2, 4, 7, 8]])
    np.testing.assert_array_equal(nlp.vocab["on the bank"].vector, np.ones(width))
    np.testing.assert_allclose(doc[:2].vector, doc.tensor[:2].mean(axis=0), atol=1e-6)
    with doc.retokenize() as retokenizer:  # spaCy leaves a row too many in the tensor, and zeros for the parts
        retokenizer.split(doc[3], ["a", "gain"], [doc[0], doc[0]])
    np.testing.assert_allclose(doc.vector, before[[2, 4, 7]].sum(axis=0) / 5, atol=1e-6)


def test_a_doc_without_tensor_says_so(nlp: Language) -> None:
    doc = nlp(TEXT)
    [read] = DocBin(docs=[doc]).get_docs(nlp.vocab)
    with pytest.raises(InputError):
        add_hooks(read)
    doc.tensor = read.tensor
    for use in (lambda: doc[2].vector, lambda: doc[1:3].vector, lambda: doc.vector, lambda: doc.similarity(read)):
        with pytest.raises(InputError):
            use()
    assert nlp(doc).vector.shape == (10,)


def test_sentences_are_read_one_by_one(model_path: Path) -> None:
    nlp = pipeline(model_path, layers="top")
    nlp.add_pipe("sentencizer", before="elmoc")
    doc = nlp(TEXT)
    assert len(list(doc.sents)) == 2
    model = ElmoC.from_pretrained(model_path)
    for sentence in doc.sents:
        words = [token for token in sentence if not token.is_space]
        expected = model.embed([token.text for token in words])[-1]
        np.testing.assert_allclose([token.vector for token in words], expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*W109")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_several_processes(method: str, nlp: Language) -> None:
    before = nlp(TEXT)
    multiprocessing.set_start_method(method, force=True)
    try:
        docs = list(nlp.pipe([TEXT] * 6, n_process=2, batch_size=2))
    finally:
        multiprocessing.set_start_method(None, force=True)
    for doc in docs:
        np.testing.assert_allclose(doc.tensor, before.tensor, atol=1e-5)
        np.testing.assert_array_equal(doc[4].vector, doc.tensor[4])
        add_hooks(doc)
        assert doc[4].similarity(doc[-4]) == pytest.approx(before[4].similarity(before[-4]), abs=1e-5)


def test_a_saved_pipeline_holds_its_model(nlp: Language, model_path: Path, tmp_path: Path) -> None:
    expected = nlp(TEXT).tensor
    nlp.to_disk(tmp_path / "pipeline")
    shutil.rmtree(model_path)
    shutil.move(tmp_path / "pipeline", tmp_path / "moved")
    loaded = spacy.load(tmp_path / "moved")
    np.testing.assert_array_equal(loaded(TEXT).tensor, expected)
    loaded.to_disk(tmp_path / "moved")  # over itself
    np.testing.assert_array_equal(spacy.load(tmp_path / "moved")(TEXT).tensor, expected)
    assert ElmoC.from_pretrained(tmp_path / "moved/elmoc").fingerprint


def test_word_vectors_are_copied_where_that_is_asked_for(tmp_path: Path) -> None:
    text_vectors = tmp_path / "words.vec"
    text_vectors.write_text("I 0 1 2 3 4 5\nsat 1 1 2 3 4 5\non 2 1 2 3 4 5\nbank 3 1 2 3 4 5\n")
    write_model_directory(tmp_path / "model", tiny_model(vectors=TextVectors(text_vectors)))
    nlp, bundling = (pipeline(tmp_path / "model", bundle_vectors=bundle) for bundle in (False, True))
    expected = nlp(TEXT).tensor
    nlp.to_disk(tmp_path / "without")
    bundling.to_disk(tmp_path / "with")
    text_vectors.rename(tmp_path / "elsewhere.vec")
    for _ in range(2):
        copied = spacy.load(tmp_path / "with")
        np.testing.assert_array_equal(copied(TEXT).tensor, expected)
        copied.to_disk(tmp_path / "with")  # over itself: they are kept
    with pytest.raises(InputError, match=r"words\.vec"):
        spacy.load(tmp_path / "without")
    override = {"components.elmoc.vectors": str(tmp_path / "elsewhere.vec")}
    np.testing.assert_array_equal(spacy.load(tmp_path / "without", config=override)(TEXT).tensor, expected)


def test_bytes_name_the_model_by_path_and_fingerprint(nlp: Language, model_path: Path, tmp_path: Path) -> None:
    expected, data = nlp(TEXT).tensor, nlp.to_bytes()
    np.testing.assert_array_equal(pipeline(tmp_path / "nowhere").from_bytes(data)(TEXT).tensor, expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(nlp))(TEXT).tensor, expected)
    changed = tiny_model()
    with np.errstate(all="ignore"):
        next(changed.encoder.parameters()).data.add_(1)
    write_model_directory(model_path, changed)
    with pytest.raises(InputError):
        pipeline(model_path).from_bytes(data)(TEXT)


def labelled(nlp: Language, count: int, seed: int) -> Iterator[Example]:
    """Words w0 … w19 with a tag and an entity by their number."""
    for words in learnable_sentences(count, seed):
        numbers = [int(word[1:]) for word in words]
        tags = ["even" if number % 2 == 0 else "odd" for number in numbers]
        ents = ["B-FIVE" if number % 5 == 0 else "O" for number in numbers]
        yield Example(Doc(nlp.vocab, words), Doc(nlp.vocab, words, tags=tags, ents=ents))


def trained(nlp: Language, *, updates: int) -> None:
    train = list(labelled(nlp, 64, 1))
    list(nlp.get_pipe("elmoc").pipe(example.predicted for example in train))
    spacy.util.fix_random_seed(1)
    optimizer = nlp.initialize(lambda: train)
    optimizer.learn_rate = 0.05
    for _ in range(updates):
        nlp.update(train, sgd=optimizer)


@pytest.mark.parametrize(("pipe", "metric"), [("tagger", "tag_acc"), ("ner", "ents_f")])
def test_pipes_train_on_the_tensors_and_are_saved_with_them(
    pipe: str, metric: str, model_path: Path, tmp_path: Path
) -> None:
    nlp = pipeline(model_path, layers="all")
    nlp.add_pipe(pipe, config={"model": MODELS[pipe]})
    trained(nlp, updates=60)
    weights = nlp.get_pipe("elmoc").elmo.fingerprint
    score = nlp.evaluate(list(labelled(nlp, 20, 2)))[metric]
    assert score > 0.9
    nlp.to_disk(tmp_path / "pipeline")
    loaded = spacy.load(tmp_path / "pipeline")
    assert loaded.get_pipe("elmoc").elmo.fingerprint == weights
    assert loaded.evaluate(list(labelled(loaded, 20, 2)))[metric] == score
    loaded.get_pipe("elmoc").elmo.subword_pooling = "last"
    with pytest.raises(InputError, match=r"layers 0,1,2, last of subwords, and gave .* layers 0,1,2 in training"):
        loaded(TEXT)
    other = pipeline(model_path, layers=[2, 1, 0])
    other.add_pipe(pipe, source=loaded)
    with pytest.raises(InputError, match=r"layers 2,1,0, and gave .* layers 0,1,2 in training"):
        other(TEXT)


def test_docs_without_a_tensor_go_through_the_component_first(nlp: Language) -> None:
    nlp.add_pipe("tagger", config={"model": LINEAR_TAGGER})
    trained(nlp, updates=1)
    [example] = labelled(nlp, 1, 3)
    layer = next(node for node in nlp.get_pipe("tagger").model.walk() if node.name == "elmoc")
    [found], backpropagate = layer.begin_update([example.predicted])
    np.testing.assert_array_equal(found, nlp(example.reference.copy()).tensor)
    assert backpropagate([found]) == []


def test_a_layer_without_its_component_or_with_tensors_of_another_says_so(nlp: Language, tmp_path: Path) -> None:
    alone = spacy.blank("en")
    alone.add_pipe("tagger", config={"model": LINEAR_TAGGER})
    with pytest.raises(InputError):
        alone.initialize(lambda: list(labelled(alone, 2, 1)))
    nlp.add_pipe("tagger", config={"model": LINEAR_TAGGER})
    trained(nlp, updates=1)
    doc = nlp.make_doc(TEXT)
    doc.tensor = np.zeros((len(doc), 7), dtype=np.float32)
    with pytest.raises(InputError):
        nlp.get_pipe("tagger").predict([doc])
    nlp.to_disk(tmp_path / "pipeline")
    with pytest.raises(InputError):
        spacy.load(tmp_path / "pipeline", exclude=["elmoc"])(TEXT)


def test_spacy_train_needs_no_annotating_components(nlp: Language, tmp_path: Path) -> None:
    nlp.add_pipe("tagger", config={"model": LINEAR_TAGGER})
    for split, count in (("train", 30), ("dev", 5)):
        DocBin(docs=[example.reference for example in labelled(nlp, count, count)]).to_disk(tmp_path / f"{split}.spacy")
    nlp.config.to_disk(tmp_path / "config.cfg")
    overrides = {f"corpora.{split}.path": str(tmp_path / f"{split}.spacy") for split in ("train", "dev")}
    overrides |= {"training.max_steps": 3, "training.eval_frequency": 2}
    train(tmp_path / "config.cfg", tmp_path / "out", overrides=overrides)
    loaded = spacy.load(tmp_path / "out/model-last")
    assert {token.tag_ for token in loaded("w1 w2 w3")} <= {"even", "odd"}
    assert loaded.get_pipe("elmoc").elmo.fingerprint == nlp.get_pipe("elmoc").elmo.fingerprint


def test_what_was_read_is_kept_over_epochs_up_to_a_number_of_words(
    model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    embed = ElmoC.embed_batch

    def counting(elmo: ElmoC, sentences: list[list[str]], **options: object) -> list[torch.Tensor]:
        read.append(sum(map(len, sentences)))
        return embed(elmo, sentences, **options)  # type: ignore[arg-type]

    texts = ["one two three", "one two", "one two three", "four five six seven"]
    expected = [doc.tensor for doc in pipeline(model_path).pipe(texts)]
    monkeypatch.setattr(ElmoC, "embed_batch", counting)
    # All; three and two words, and no more; nothing.
    for words, after in ((9, [9, 0]), (8, [9, 4]), (0, [9, 9])):
        nlp = pipeline(model_path, memo_words=words)
        read.clear()
        for _ in range(2):
            for doc, tensor in zip(nlp.pipe(texts), expected, strict=True):
                np.testing.assert_array_equal(doc.tensor, tensor)
        assert read == after
    assert pickle.loads(pickle.dumps(nlp.get_pipe("elmoc").__getstate__()))["_memo"] == {}
    # A pipeline that is loaded keeps nothing.
    nlp.to_disk(tmp_path / "pipeline")
    assert spacy.load(tmp_path / "pipeline").get_pipe("elmoc")._memo_words == 0
    # What was kept of a model goes with it.
    nlp = pipeline(model_path, memo_words=9)
    list(nlp.pipe(texts))
    nlp.from_bytes(nlp.to_bytes())
    read.clear()
    np.testing.assert_array_equal(next(iter(nlp.pipe(texts))).tensor, expected[0])
    assert read == [9]


@pytest.mark.parametrize(
    ("kind", "metric"), [("ner", "ents_f"), ("textcat", "cats_macro_f"), ("tagger_parser", "dep_uas")]
)
def test_a_config_trains_by_itself_on_the_tensors(kind: str, metric: str, model_path: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.cfg"
    assert main(["spacy-config", kind, str(config), "--model", str(model_path), "--lang", "xx1"]) == 1
    assert main(["spacy-config", kind, str(config), "--model", "nowhere"]) == 1
    assert main(["spacy-config", kind, str(config), "--model", str(model_path)]) == 0
    assert main(["spacy-config", kind, str(config), "--model", str(model_path)]) == 1, "it is there already"
    blank = spacy.blank("en")
    for split, count in (("train", 64), ("dev", 20)):
        docs = []
        for example in labelled(blank, count, count):
            doc = example.reference
            has_seven = any(token.text == "w7" for token in doc)
            cats = {"seven": float(has_seven), "none": float(not has_seven)}
            heads = [max(0, place - 1) for place in range(len(doc))]
            deps = ["dep" if place else "ROOT" for place in range(len(doc))]
            tags = [token.tag_ for token in doc]
            new = Doc(blank.vocab, [token.text for token in doc], tags=tags, heads=heads, deps=deps)
            new.set_ents(list(doc.ents))
            new.cats = cats
            docs.append(new)
        DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / f"{split}.spacy")
    overrides = {f"paths.{split}": str(tmp_path / f"{split}.spacy") for split in ("train", "dev")}
    overrides |= {"training.max_steps": 60, "training.eval_frequency": 30, "training.optimizer.learn_rate": 0.02}
    if kind == "tagger_parser":
        # spaCy leaves out what a parser has seen 30 times at most, and a small text has no more.
        overrides["components.parser.min_action_freq"] = 1
    train(config, tmp_path / "out", overrides=overrides)
    nlp = spacy.load(tmp_path / "out/model-best")
    names = {node.name for pipe in kind.split("_") for node in nlp.get_pipe(pipe).model.walk()}
    assert "elmoc" in names
    assert not names & {"hashembed", "tok2vec-listener", "embed"}, "words come by the tensors alone"
    assert nlp.meta["performance"][metric] > 0.9


def test_the_examples_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page_programs("spacy", tmp_path, monkeypatch)
    assert (tmp_path / "pipeline/elmoc/config.json").exists()
