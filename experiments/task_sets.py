"""Public sets of data for probes: where each is at home, and how its files become what
`downstream` reads.

A set is a row of `SETS`, whose files have the paths of `downstream/suite/english.toml`.
Most homes serve what a probe reads, so that a file is picked and named.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from heapq import nsmallest
from itertools import groupby
from typing import Any

from elmoc.errors import InputError, reading, say

# What opens each file that was downloaded, by its path, which begins with the archive.
Files = Mapping[str, Callable[[], Any]]
Sentence = list[list[str]]

# The first of the ten divisions of Bamman et al. (2020).
_LITBANK_DIVISION = "litbank_tenfold_splits/0"
# The kinds of text of GUM that docs/results.md is measured on.
_GUM_KINDS = "academic|bio|court|interview|news|voyage"


@dataclass(frozen=True, kw_only=True)
class TaskSet:
    """One set of data.

    home: where it is served.
    licence: of its annotation and texts.
    files: what makes the lines of each result, by its path.
    """

    home: str
    licence: str
    files: dict[str, Callable[[Files], Iterator[str]]]


def lines_of(files: Files, name: str) -> Iterator[str]:
    """Yield the lines of one file, without their ends.

    Args:
        files: that were downloaded.
        name: its path, or the end of it: archives of one repository are called
            differently, by branch and by service.

    Raises:
        InputError: it is not there, or there are several; it is not UTF-8.
    """
    ends = (path for path in files if f"/{path}".endswith(f"/{name}"))
    found = [name] if name in files else list(ends)
    if len(found) != 1:
        raise InputError(f"{'several files' if found else 'no file'} {name}")
    with reading(found[0]), files[found[0]]() as file:
        for line in file:
            yield line.decode().rstrip("\r\n")


def blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the lines between blank lines."""
    for is_blank, group in groupby(lines, lambda line: not line.strip()):
        if not is_blank:
            yield list(group)


def conllu(lines: Iterable[str]) -> Iterator[tuple[str, Sentence]]:
    """Yield the sentences of a CoNLL-U file: the name of each, and the columns of its
    words.
    """
    for block in blocks(lines):
        named = [line for line in block if line.startswith("# sent_id = ")]
        # `2-3` is a word that is divided into two, `8.1` one that is not written.
        words = [line for line in block if line.partition("\t")[0].isdigit()]
        yield (
            "".join(named).removeprefix("# sent_id = "),
            [line.split("\t") for line in words],
        )


def half(files: Files, name: str, part: slice) -> Iterator[str]:
    """A part of the sentences of a file, with a blank line after each."""
    for block in list(blocks(lines_of(files, name)))[part]:
        yield "\n".join(block) + "\n"


def snli(files: Files, name: str, pairs: int | None = None) -> Iterator[str]:
    """Pairs on whose label the annotators agree: the label and both texts.

    Args:
        files: those of SNLI 1.0.
        name: of JSON lines.
        pairs: a sample of so many, which is the same everywhere; by default all.
    """
    rows = map(json.loads, lines_of(files, name))
    chosen: Iterable[dict[str, str]] = (row for row in rows if row["gold_label"] != "-")
    if pairs:
        # The order of hashes is as good as chance, and needs no generator.
        chosen = nsmallest(
            pairs, chosen, key=lambda row: sha256(row["pairID"].encode()).digest()
        )
    for row in chosen:
        columns = ("gold_label", "sentence1", "sentence2")
        yield json.dumps({each: row[each] for each in columns})


def uner(files: Files, name: str) -> Iterator[str]:
    """Words and tags of a file of Universal NER."""
    for _, words in conllu(lines_of(files, name)):
        for columns in words:
            # Broad Twitter has these types, too; others are no entities here.
            tag = columns[2] if columns[2][2:] in ("PER", "LOC", "ORG") else "O"
            yield f"{columns[1]}\t{tag}"
        yield ""


def litbank_entities(files: Files, part: str) -> Iterator[str]:
    """Words and four layers of tags of LitBank's books, the innermost layer first."""
    for book in lines_of(files, f"{_LITBANK_DIVISION}/{part}.ids"):
        yield "-DOCSTART-\tO\tO\tO\tO\n"
        for line in lines_of(files, f"entities/tsv/{book}"):
            # Some books have a fifth layer, in which there is nothing.
            yield "\t".join(line.split("\t")[:5])


def litbank_coref(files: Files, part: str) -> Iterator[str]:
    """Words and chains of LitBank's books, as CoNLL-2012."""
    for book in lines_of(files, f"{_LITBANK_DIVISION}/{part}.ids"):
        name = book.removesuffix(".tsv")
        lines = lines_of(files, f"coref/conll/{name}.conll")
        sentences = []
        for block in blocks(line for line in lines if not line.startswith("#")):
            rows = [line.split("\t") for line in block]
            words = [(row[3], "XX", row[-1].strip("_")) for row in rows]
            sentences.append(_with_flat_parse(words))
        yield from _document(name.removesuffix("_brat"), sentences)


def ontogum(files: Files, part: str) -> Iterator[str]:
    """Words and chains of six kinds of text of OntoGUM, as CoNLL-2012."""
    divisions = "\n".join(lines_of(files, "splits.md"))
    division = divisions.partition(f"\n## {part}\n")[2].partition("\n## ")[0]
    for document in re.findall(rf"GUM_(?:{_GUM_KINDS})_\w+", division):
        sentences = []
        for _, rows in conllu(lines_of(files, f"ontogum/conllu/{document}.conllu")):
            words = [(row[1], row[4], _chains_of(row[9])) for row in rows]
            sentences.append(_with_flat_parse(words))
        yield from _document(document, sentences)


def _chains_of(notes: str) -> str:
    """How chains begin and end at a word: `(1|(2)|3)`."""
    # GUM writes no mark between them: `(1(2)3)`.
    chains = f"|{notes}".partition("|Entity=")[2].partition("|")[0]
    return "|".join(re.findall(r"\(\d+\)?|\d+\)", chains))


def propbank(files: Files, part: str) -> Iterator[str]:
    """Roles of PropBank with the words of the Universal Dependencies treebank, as
    CoNLL-2012.

    PropBank's files have no words, and both have had corrections of their own. So a
    sentence is taken where both have the same number of words, and at least half of
    them the same part of speech; a printed line counts the others.
    """
    treebank = dict(conllu(lines_of(files, f"en_ewt-ud-{part}.conllu")))
    taken = 0
    # PropBank's other texts are not in the treebank.
    web = (path for path in files if "/google/ewt/" in path)
    for path in sorted(path for path in web if path.endswith(".gold_skel")):
        kind, folder, name = path.removesuffix(".xml.gold_skel").split("/")[-3:]
        sentences = []
        for block in blocks(lines_of(files, path)):
            roles = [line.split() for line in block]
            # Sentences are counted from 0 here, and from 0001 in the treebank.
            number = int(roles[0][1]) + 1
            words = treebank.get(f"{kind}-{name}-{number:04}", [])
            same = sum(a[4] == b[4] for a, b in zip(words, roles, strict=False))
            if len(words) == len(roles) <= 2 * same:
                sentences.append(list(map(_with_roles, words, roles)))
        taken += len(sentences)
        if sentences:
            yield from _document(f"{kind}/{folder}/{name}", sentences)
    say(f"{part}: {len(treebank) - taken} of {len(treebank)} sentences are left out")


def _with_roles(word: list[str], roles: list[str]) -> list[str]:
    """Columns of a word, without those of document, part and number."""
    # The number of the sense stands behind its lemma: `like.01`.
    sense = roles[7].rpartition(".")[2]
    return [word[1], *roles[4:7], sense, "-", "-", "*", *roles[8:], "-"]


def _with_flat_parse(words: list[tuple[str, str, str]]) -> Sentence:
    """Columns of words, parts of speech and chains: a sentence is one phrase."""
    parses = ["(TOP*"] + ["*"] * (len(words) - 1)
    parses[-1] += ")"
    return [
        [word, tag, parse, "-", "-", "-", "-", "*", chains or "-"]
        for parse, (word, tag, chains) in zip(parses, words, strict=True)
    ]


def _document(name: str, sentences: list[Sentence]) -> Iterator[str]:
    """The lines of a document of CoNLL-2012."""
    yield f"#begin document ({name}); part 000"
    for sentence in sentences:
        for number, columns in enumerate(sentence):
            yield "\t".join([name, "0", str(number), *columns])
        yield ""
    yield "#end document"


def both_parts(
    path: str, convert: Callable[..., Iterator[str]]
) -> dict[str, Callable[[Files], Iterator[str]]]:
    """What makes the training and the development part of a set, by their paths."""
    return {path.format(part): partial(convert, part=part) for part in ("train", "dev")}


_LITBANK = "github.com/dbamman/litbank and github.com/dbamman/lrec2020-coref"
_MEDICAL = "github.com/cambridgeltl/MTL-Bioinformatics-2016"

SETS = {
    "snli": TaskSet(
        home="nlp.stanford.edu/projects/snli/snli_1.0.zip",
        licence="CC BY-SA 4.0",
        files={
            # As many pairs as docs/results.md is measured with.
            "nli/snli_1.0_train.20k.jsonl.gz": partial(
                snli, name="snli_1.0_train.jsonl", pairs=20_000
            ),
            "nli/snli_1.0_dev.jsonl.gz": partial(snli, name="snli_1.0_dev.jsonl"),
        },
    ),
    "sst5": TaskSet(
        home="nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip",
        licence="none stated",
        files={
            "sst5/train.txt.gz": partial(lines_of, name="trees/train.txt"),
            "sst5/dev.txt.gz": partial(lines_of, name="trees/dev.txt"),
        },
    ),
    "wnut17": TaskSet(
        home="github.com/leondz/emerging_entities_17",
        licence="CC BY 4.0",
        files={
            "ner/wnut17/train.conll.gz": partial(lines_of, name="wnut17train.conll"),
            "ner/wnut17/dev.conll.gz": partial(lines_of, name="emerging.dev.conll"),
        },
    ),
    "btc": TaskSet(
        home="github.com/GateNLP/broad_twitter_corpus",
        licence="CC BY 4.0",
        files={
            **{
                f"ner/btc/{section}.conll.gz": partial(
                    lines_of, name=f"{section}.conll"
                )
                for section in "abeg"
            },
            # The second half of this section is the authors' development part.
            "ner/btc/h_first_half.conll.gz": partial(
                half, name="h.conll", part=slice(1000)
            ),
            "ner/btc/h_second_half.dev.conll.gz": partial(
                half, name="h.conll", part=slice(1000, None)
            ),
        },
    ),
    "uner": TaskSet(
        home="github.com/UniversalNER/UNER_English-EWT",
        licence="CC BY-SA 4.0",
        files={
            "ner/uner_ewt/dev.conll.gz": partial(uner, name="en_ewt-ud-dev.iob2"),
        },
    ),
    "litbank_entities": TaskSet(
        home=_LITBANK,
        licence="CC BY 4.0",
        files=both_parts("ner/litbank_entities/{}.conll.gz", litbank_entities),
    ),
    "propbank_ewt": TaskSet(
        home="github.com/propbank/propbank-release and "
        "github.com/UniversalDependencies/UD_English-EWT",
        licence="CC BY-SA 4.0",
        files=both_parts("srl/propbank_ewt/{}.gold_conll.gz", propbank),
    ),
    "litbank_coref": TaskSet(
        home=_LITBANK,
        licence="CC BY 4.0",
        files=both_parts("coref/litbank/{}.gold_conll.gz", litbank_coref),
    ),
    "ontogum": TaskSet(
        home="github.com/amir-zeldes/gum",
        licence="annotation CC BY 4.0, texts CC BY or CC BY-SA",
        files=both_parts("coref/ontogum/{}.gold_conll.gz", ontogum),
    ),
    "bc5cdr": TaskSet(
        home=_MEDICAL,
        licence="CC BY 4.0",
        files={
            "ner/bc5cdr/train.conll.gz": partial(lines_of, name="BC5CDR-IOB/train.tsv"),
            "ner/bc5cdr/dev.conll.gz": partial(lines_of, name="BC5CDR-IOB/devel.tsv"),
        },
    ),
    "ncbi_disease": TaskSet(
        home=_MEDICAL,
        licence="CC BY 4.0",
        files={
            "ner/ncbi_disease/train.conll.gz": partial(
                lines_of, name="NCBI-disease-IOB/train.tsv"
            ),
            "ner/ncbi_disease/dev.conll.gz": partial(
                lines_of, name="NCBI-disease-IOB/devel.tsv"
            ),
        },
    ),
}

# The first digits of the SHA-256 of the texts that docs/results.md and
# docs/own_domain.md were measured on. Of SNLI's training pairs another sample was used,
# whose pairs are not known by name.
MEASURED = {
    "nli/snli_1.0_train.20k.jsonl.gz": "f1e3a5039f034bf9",
    "nli/snli_1.0_dev.jsonl.gz": "272c8b6ccae2c2d3",
    "sst5/train.txt.gz": "e2f3f41b0b1e6d4d",
    "sst5/dev.txt.gz": "0e9336aed6e4730e",
    "ner/wnut17/train.conll.gz": "731820e13f71af32",
    "ner/wnut17/dev.conll.gz": "e053b752b8155113",
    "ner/btc/a.conll.gz": "ac824cc13c88283f",
    "ner/btc/b.conll.gz": "504a094a0398e03f",
    "ner/btc/e.conll.gz": "77aca745cdc28ae0",
    "ner/btc/g.conll.gz": "d53a27645cabc4e6",
    "ner/btc/h_first_half.conll.gz": "228ecd81c1be572f",
    "ner/btc/h_second_half.dev.conll.gz": "9f7d33bcd195cecf",
    "ner/uner_ewt/dev.conll.gz": "4bc5515ab6d9b229",
    "ner/litbank_entities/train.conll.gz": "0219879774cdf8f5",
    "ner/litbank_entities/dev.conll.gz": "4e25b6efa7252109",
    "srl/propbank_ewt/train.gold_conll.gz": "57f4dc4650698eac",
    "srl/propbank_ewt/dev.gold_conll.gz": "a9633418fd8b8931",
    "coref/litbank/train.gold_conll.gz": "4ff4cc35c3cf8a0f",
    "coref/litbank/dev.gold_conll.gz": "94fb50bb2417be1b",
    "coref/ontogum/train.gold_conll.gz": "b8e69fd0f5cfd035",
    "coref/ontogum/dev.gold_conll.gz": "4e36b422b2b4fa90",
    "ner/bc5cdr/train.conll.gz": "b731361c0ed73afd",
    "ner/bc5cdr/dev.conll.gz": "b909de65c4f7e3c2",
    "ner/ncbi_disease/train.conll.gz": "58379baf4614b8d7",
    "ner/ncbi_disease/dev.conll.gz": "b4e1e7efcc2a3504",
}
