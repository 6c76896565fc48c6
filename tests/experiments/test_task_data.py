"""Data for probes: small downloads of the layout of each home become files that the probes' readers open."""

import gzip
import io
import json
import shutil
import tomllib
from hashlib import sha256
from pathlib import Path
from typing import get_args

import pytest
from experiments.task_data import ENGLISH, Name, convert_task_data, main
from experiments.task_sets import MEASURED, SETS, snli
from tests.conftest import Fails

from downstream.suite import plan
from downstream.tasks import load_task

TWEETS = "Ana\tB-PER\nran\tO\n\n"
TREE = "(3 (2 It) (4 works))\n"
PAIR = {"gold_label": "neutral", "sentence1": "A dog ran.", "sentence2": "Rain."}
ENTITIES = "Queen\tO\tB-PER\tO\tO\tO\t\nof\tO\tI-PER\tO\tO\tO\t\nPeru\tB-GPE\tI-PER\tO\tO\tO\t\n\n"
CHAINS = """#begin document (1_emma_brat); part 0
1_emma_brat\t0\t0\tEmma~(0)
1_emma_brat\t0\t1\tran~

1_emma_brat\t0\t0\tHer~(1|(0)
1_emma_brat\t0\t1\tdog~1)

#end document""".replace("~", 8 * "\t_" + "\t")
GUM = """# sent_id = GUM_news_sea-1
1\tHer\tshe\tPRON\tPRP$\t_\t2\tnmod\t_\tDiscourse=a:1|Entity=(1(2)|SpaceAfter=No
2-3\tdog's\t_\t_\t_\t_\t_\t_\t_\t_
2\tdog\tdog\tNOUN\tNN\t_\t3\tnsubj\t_\tEntity=1)
3\tran\trun\tVERB\tVBD\t_\t0\troot\t_\t_
"""
ROLES = """google/ewt/answers/00/7_ans.xml    0   0   [WORD]   PRP    (TOP(S(NP*)     -        -   (ARG0*)
google/ewt/answers/00/7_ans.xml    0   1   [WORD]   VBP          (VP*))) like  like.01      (V*)

google/ewt/answers/00/7_ans.xml    1   0   [WORD]    UH    (TOP(INTJ*))  - -

google/ewt/answers/00/7_ans.xml    2   0   [WORD]    UH    (TOP(INTJ*))  - -"""
# The second sentence has a word more than PropBank's, the third another part of speech.
TREEBANK = """# sent_id = answers-7_ans-0001
1\tI\tI\tPRON\tPRP\t_\t2\tnsubj\t_\t_
2\tlike\tlike\tVERB\tVB\t_\t0\troot\t_\t_

# sent_id = answers-7_ans-0002
1\thuh\thuh\tINTJ\tUH\t_\t0\troot\t_\t_
2\t?\t?\tPUNCT\t.\t_\t1\tpunct\t_\t_

# sent_id = answers-7_ans-0003
1\tVingas\tVingas\tPROPN\tNNP\t_\t0\troot\t_\t_
"""
UNER = "# sent_id = a-1\n# text = From Lima\n1\tFrom\tB-OTH\t-\tme\n2\tLima\tB-LOC\t-\tme\n\n"
SPLITS = "# S\n\n## dev\n\n  * GUM_news_sea\n  * GUM_vlog_a\n\n## test\n\n  * GUM_bio_b\n\n## train\n\n  * GUM_news_sea"
PAIRS = [json.dumps({**PAIR, "gold_label": label, "pairID": label}) for label in ("neutral", "-", "neutral")]
# The files of each archive. Those of `raw` are downloaded one by one.
FILES = {
    **{f"wnut/wnut-master/{name}.conll": TWEETS for name in ("wnut17train", "emerging.dev")},
    **{f"btc/btc-master/{section}.conll": TWEETS * 1001 for section in "abegh"},
    "litbank/litbank-master/entities/tsv/1_emma_brat.tsv": ENTITIES,
    "litbank/litbank-master/coref/conll/1_emma_brat.conll": CHAINS,
    "gum/gum-master/splits.md": SPLITS,
    "gum/gum-master/coref/ontogum/conllu/GUM_news_sea.conllu": GUM,
    "propbank/propbank-main/data/google/ewt/answers/00/7_ans.xml.gold_skel": ROLES,
    "raw/en_ewt-ud-dev.iob2": UNER,
}
for part in ("train", "dev"):
    FILES[f"snli/snli_1.0/snli_1.0_{part}.jsonl"] = "\n".join(PAIRS)
    FILES[f"sst/trees/{part}.txt"] = TREE
    FILES[f"raw/en_ewt-ud-{part}.conllu"] = TREEBANK
    FILES[f"raw/litbank_tenfold_splits/0/{part}.ids"] = "1_emma_brat.tsv\n"
    for name in ("BC5CDR", "NCBI-disease"):
        FILES[f"mtl/mtl-master/data/{name}-IOB/{part.replace('dev', 'devel')}.tsv"] = TWEETS


@pytest.fixture
def downloads(tmp_path: Path) -> Path:
    """A folder of zip archives, files and a folder."""
    folder = tmp_path / "downloads"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for each in {*folder.iterdir()} - {folder / "raw"}:
        shutil.make_archive(str(each), "zip", each)
        shutil.rmtree(each)
    return folder


def test_the_tables_name_the_same_sets_and_files() -> None:
    assert {*get_args(Name)} == {"english", *SETS}
    assert {*MEASURED} == {file for each in SETS.values() for file in each.files}
    suite = tomllib.loads((Path(plan.__file__).parent / "english.toml").read_text())
    parts = [each[part] for each in suite["probe"] for part in ("train", "dev")]
    read = {file for part in parts for file in ([part] if isinstance(part, str) else part)}
    assert read == {file for name in ENGLISH for file in SETS[name].files}


def test_readers_open_every_result(downloads: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["english", "--from", str(downloads), str(tmp_path)]) == 0
    for name in {*get_args(Name)} - {"english", *ENGLISH}:
        convert_task_data(name, downloads, tmp_path)
    printed = capsys.readouterr().out
    assert "dev: 2 of 3 sentences are left out" in printed
    texts = {file: gzip.decompress((tmp_path / file).read_bytes()).decode() for file in MEASURED}
    for file, text in texts.items():
        assert f"{file}: SHA-256 {sha256(text.encode()).hexdigest()}, not the text measured" in printed
        task = load_task("snli" if file.startswith("nli") else file.split("/")[0])
        options = {"column": 1} if "litbank_entities" in file else {}
        assert task.read(tmp_path / file, type(task.reader)(**options), training=False), file
    assert texts["nli/snli_1.0_dev.jsonl.gz"] == f"{json.dumps(PAIR)}\n" * 2
    assert texts["sst5/dev.txt.gz"] == TREE
    assert texts["ner/bc5cdr/dev.conll.gz"] == texts["ner/btc/h_second_half.dev.conll.gz"] == TWEETS
    assert texts["ner/btc/h_first_half.conll.gz"] == TWEETS * 1000
    assert texts["ner/uner_ewt/dev.conll.gz"] == "From\tO\nLima\tB-LOC\n\n"
    assert texts["ner/litbank_entities/dev.conll.gz"] == (
        "-DOCSTART-\tO\tO\tO\tO\n\nQueen\tO\tB-PER\tO\tO\nof\tO\tI-PER\tO\tO\nPeru\tB-GPE\tI-PER\tO\tO\n\n"
    )
    columns = [line.split("\t") for line in texts["coref/ontogum/dev.gold_conll.gz"].splitlines()]
    shown = [" ".join(each[3:6] + each[-1:]) for each in columns if len(each) == 12]
    assert shown == ["Her PRP$ (TOP* (1|(2)", "dog NN * 1)", "ran VBD *) -"]
    columns = [line.split("\t") for line in texts["coref/litbank/dev.gold_conll.gz"].splitlines()]
    assert [each[-1] for each in columns if len(each) == 12] == ["(0)", "-", "(1|(0)", "1)"]
    assert texts["srl/propbank_ewt/dev.gold_conll.gz"] == (
        "#begin document (answers/00/7_ans); part 000\n"
        "answers/00/7_ans\t0\t0\tI\tPRP\t(TOP(S(NP*)\t-\t-\t-\t-\t*\t(ARG0*)\t-\n"
        "answers/00/7_ans\t0\t1\tlike\tVBP\t(VP*)))\tlike\t01\t-\t-\t*\t(V*)\t-\n\n#end document\n"
    )


def test_a_sample_of_pairs_is_the_same_in_any_order() -> None:
    lines = [json.dumps({**PAIR, "sentence1": f"{n} dogs", "pairID": str(n)}).encode() for n in range(50)]
    first = list(snli({"a.jsonl": lambda: io.BytesIO(b"\n".join(lines))}, "a.jsonl", 10))
    assert first == list(snli({"a.jsonl": lambda: io.BytesIO(b"\n".join(lines[::-1]))}, "a.jsonl", 10))
    assert len({*first}) == 10


def test_what_is_missing_or_damaged_is_one_line(downloads: Path, tmp_path: Path, error_line: Fails) -> None:
    def line(name: str, source: Path) -> str:
        return error_line(main([name, "--from", str(source), str(tmp_path / "data")]))

    home = "(see github.com/leondz/emerging_entities_17)"
    assert f"gum.zip for wnut17 {home}: no file wnut17train.conll" in line("wnut17", downloads / "gum.zip")
    whole = (downloads / "wnut.zip").read_bytes()
    (downloads / "copy.zip").write_bytes(whole)
    assert "several files wnut17train.conll" in line("wnut17", downloads)
    (downloads / "copy.zip").write_bytes(whole[:100])
    assert "copy.zip cannot be read" in line("wnut17", downloads)
    assert "nowhere" in line("uner", tmp_path / "nowhere")
    (downloads / "raw/en_ewt-ud-dev.iob2").write_text("\n")
    assert "no sentences" in line("uner", downloads / "raw")
    assert not list(tmp_path.glob("data/**/*.gz"))
