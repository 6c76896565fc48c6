"""Common mistakes: each command ends with status 1 and one line that names the file, and the line or the key."""

import gzip
import shutil
from importlib import import_module
from pathlib import Path

import pytest
from elmoc.corpus import Corpus

FILES = {
    "text.txt": "the cat sat\non the mat\n",
    "blank.txt": "the cat\n\nsat\n",
    "empty.txt": "",
    "latin.txt": b"the cat\nna\xefve\n",
    "text.json": '[{"text": "the cat sat on the mat ."}, {"text": "it slept ."}]\n',
    "cut.txt.gz": gzip.compress(b"the cat sat\n" * 5000, mtime=0)[:60],
    "bad.toml": "[train\nstreams = 4\n",
    "good.toml": "[train]\nstreams = 2\n",
    "parent.toml": 'parent = "nowhere.toml"\n',
    "ner.conll": "the\tO\ncat\tB-PER\n\nsat\tO\n",
    "srl.gold_conll": "#begin document (a); part 000\na 0 0 the DT * - - - - *\n",
    "vectors.vec": "2 3\ncat 1 0 0\nmat 0 1\n",
    "vectors.bin": b"\xba\x16O/\x0c\x00\x00\x00" + b"\x01" * 40,
    "note.h5": "this is no HDF5 file\n",
    "weights.hdf5": b"\x89HDF\r\n\x1a\n" + b"\0" * 100,
    "options.json": '{"lstm": {"dim": 4}}',
    "suite.toml": '[[probe]]\ntask = "ner"\nname = "x"\ntrain = "nowhere.conll"\ndev = "ner.conll"\n',
}
NER = "downstream ner --dev {d}/ner.conll --vectors random:1:6 --train"

# command: the words that its error has to name, without the folder; "elmoc dump" stands for elmoc dump-features
MISTAKES = {
    "elmoc dump nowhere {d}/text.txt {d}/o.h5": ["nowhere"],
    "elmoc dump {d} {d}/text.txt {d}/o.h5": ["config.json"],
    "elmoc dump {model} {d}/nowhere.txt {d}/o.h5": ["nowhere.txt"],
    "elmoc dump {model} {d}/blank.txt {d}/o.h5": ["blank.txt", "line 2"],
    "elmoc dump {model} {d}/empty.txt {d}/o.h5": ["empty.txt"],
    "elmoc dump {model} {d}/latin.txt {d}/o.h5": ["latin.txt", "line 2"],
    "elmoc dump {model} {d}/cut.txt.gz {d}/o.h5": ["cut.txt.gz"],
    "elmoc dump {damaged} {d}/text.txt {d}/o.h5": ["model.safetensors"],
    "elmoc inspect {d}/nowhere.h5": ["nowhere.h5"],
    "elmoc inspect {d}/note.h5": ["note.h5"],
    "elmoc check {d}": ["{d}"],
    "elmoc import-elmo {d}/options.json {d}/weights.hdf5 {d}/imported": ["weights.hdf5"],
    "elmoc neighbours {model} {d}/text.txt --word unheard --in unheard": ["unheard"],
    "elmoc plot {model} {d}/text.txt -o {d}/o.gif --word cat": ["-o", "png"],
    "elmoc package {model} {d}/o.package --name Two-words": ["--name"],
    "pretrain {d}/nowhere.toml {d}/run": ["nowhere.toml"],
    "pretrain {d}/bad.toml {d}/run": ["bad.toml"],
    "pretrain {d}/parent.toml {d}/run": ["nowhere.toml"],
    "pretrain {d}/good.toml {d}/run --set data.corpus={d}/nowhere": ["nowhere"],
    "pretrain {d}/good.toml {d}/run --set data.corpus={corpus} --set data.input_vectors=none_such": ["none_such"],
    "pretrain {d}/good.toml {corpus} --set data.corpus={corpus} --set data.input_vectors=raw": ["corpus"],
    "pretrain.plot {d} {d}/o.png": ["metrics.jsonl"],
    "data_scripts.build_corpus {d}/text.json {d}/c": ["text.json"],
    "data_scripts.build_corpus a/b=c {d}/c": ["a/b=c"],
    "data_scripts.build_vectors {d} random:1:6 --name raw": ["corpus.json"],
    "data_scripts.build_vectors {corpus} {d}/vectors.vec --name new": ["vectors.vec", "line 3"],
    "data_scripts.build_vectors {corpus} {d}/vectors.bin --name new": ["vectors.bin"],
    "data_scripts.build_vectors {corpus} random:1:6 --name raw": ["raw"],
    f"{NER} {{d}}/ner.conll --features {{d}}/note.h5": ["note.h5"],
    "downstream srl --train {d}/srl.gold_conll --dev {d}/srl.gold_conll --vectors random:1:6": ["srl.gold_conll"],
    "downstream suite {d}/suite.toml --data {d} --vectors random:1:6 --inputs vectors --out {d}/o": ["nowhere.conll"],
}


@pytest.fixture(scope="module")
def places(tiny_corpus: Corpus, session_model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of the files, the corpus, and models: a whole one and a damaged one."""
    folder = tmp_path_factory.mktemp("mistakes")
    for name, content in FILES.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    damaged = shutil.copytree(session_model, folder / "damaged")
    weights = bytearray((damaged / "model.safetensors").read_bytes())
    weights[len(weights) // 2] ^= 1
    (damaged / "model.safetensors").write_bytes(weights)
    return {"d": folder, "corpus": tiny_corpus.path, "model": session_model, "damaged": damaged}


@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_told_in_one_line(
    command: str, places: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    module, *arguments = (
        word.format_map(places) for word in command.replace("elmoc dump ", "elmoc dump-features ").split()
    )
    name = f"{module}.__main__" if module in ("elmoc", "pretrain", "downstream") else module
    status = import_module(name).main(arguments)
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert status == 1
    assert len(errors) == 1
    assert "unexpected: " not in errors[0]
    for word in MISTAKES[command]:
        assert word.format_map(places) in errors[0]
    assert not list(places["d"].glob("o.*")), "nothing is half-written"
