"""Tables of three papers on compact word vectors, in miniature: each figure beside the
paper's.

    python -m experiments.compact_tables TABLE OUT --vectors FILE --words LEXICON --data
    DIR

TABLE is `codes` (Shu and Nakayama 2018, Table 2 and Figure 3), `imdb` (their Table 3),
`alone` (Takase and Kobayashi 2020, Figure 3), `tying` (Press and Wolf 2017, Tables 2,
3, 4 and 7), `training` on coded vectors, or `plot`, of size against quality. LEXICON
has a word a line, most frequent first; DIR is the folder with imdb/, lm/, sst5/ and
wordsim/. A row whose output is in OUT is not made again. The figures show shapes alone:
other vectors, less text and fewer steps than the papers'.
"""

import argparse
import itertools
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import fasttext
import numpy as np
import torch
from matplotlib import pyplot
from scipy.sparse import csr_matrix, save_npz
from scipy.stats import spearmanr

from elmoc.corpus import UNKNOWN, Corpus
from elmoc.files.text import read_lines
from elmoc.model_directory import read_model_directory
from elmoc.packing import code_rows
from elmoc.word_vectors.coded_rows import CodedRows
from elmoc.word_vectors.compact import CompactVectors
from elmoc.word_vectors.lexicon_vectors import LexiconVectors
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.product_quantisation import quantise
from pretrain import CONFIGS
from pretrain.run.directory import read_metrics

WORDS = 75_000  # the paper: 75,102 of IMDB that GloVe has
# the paper: 200,000 at 1e-4
STEPS = 10_000
RATE = 1e-3
# M x K: loss with 75,102 GloVe vectors, at second hand: the text of the paper at hand
# has lost the table
CODES = {
    "8x64": 21.9, "16x32": 20.4, "32x16": 19.1, "64x8": 15.5, "8x8": 29.1, "8x16": 27.0, "8x32": 24.4,
    "16x8": 25.8, "16x16": 22.8, "32x8": 21.9, "16x64": 16.9, "32x32": 14.3, "64x16": 11.5,
}  # fmt: skip
# the paper: 25,000 reviews of 400 words, 15 epochs
REVIEWS = 4_000
READ = 200
EPOCHS = 6
# accuracy with GloVe vectors
IMDB = {
    "whole": 87.18, "pruned80": 86.25, "pruned90": 84.96, "pq10x256": 86.21, "pq60x256": 87.11,
    "codes8x64": 86.66, "codes16x32": 87.37, "codes32x16": 87.80, "codes64x8": 88.15,
}  # fmt: skip
# the paper: 5,000 and 1,000
ALONE_WORDS = 2_000
ALONE_EPOCHS = 150
INNER_SIZES = (240, 480, 720, 960)  # as many weights a word as the paper's 600 to 2,400
PAIRS = ("EN-SIMLEX-999", "EN-WS-353-ALL", "EN-RG-65", "EN-VERB-143", "EN-MEN-TR-3k")
# test perplexity on the BBC's news and on film reviews
TYING = {"bbc": (110.8, 106.8, 108.7, 98.9), "imdb": (94.3, 94.8, 94.4, 91.5)}
LANGUAGE_MODELS = ("lm_small", "lm_small_wt", "lm_small_pr", "lm_small_wt_pr")
# the paper: 13 epochs, more reviews, 10,000 types
LM_EPOCHS = 4
LM_REVIEWS = 3_000
MIN_COUNT = 6
# ρ of the cosines of all pairs of words, small model of PTB
CORRELATIONS = {("in", "out"): 0.13, ("in", "tied"): 0.31, ("out", "tied"): 0.65}
COMPARED = 2_000  # words
# compress-fasttext: bytes a row of product quantisation, cosine of seen words
PUBLISHED = {25: 0.787, 50: 0.901, 100: 0.979, 150: 0.995, 300: 0.9996}
# of 1,280 words
UPDATES = 200
WARM_UP = 50
# codebooks of coded tables, a byte and a part of a norm each; 0 is the whole table
BOOKS = (0, 15, 30, 60, 100)


class Tables:
    """The tables, made of what the project's commands print."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.out = options.out
        self.data = options.data
        self.vectors = options.vectors
        self.words = options.words

    def row(self, name: str, *words: object) -> str:
        """What a command of the project prints, kept as OUT/NAME.txt; it is run where
        that is not there.
        """
        file = self.out / f"{name}.txt"
        if not file.exists():
            file.with_suffix(".safetensors").unlink(
                missing_ok=True
            )  # of a row that was stopped before it was told
            print("$ python -m", *words, flush=True)
            line = [sys.executable, "-m", *map(str, words)]
            file.write_text(
                subprocess.run(
                    line, check=True, stdout=subprocess.PIPE, text=True
                ).stdout
            )
        return file.read_text()

    def run(self, name: str, config: Path, sets: list[str]) -> None:
        """A training run in OUT/NAME, which goes on where it was stopped."""
        more = [word for each in sets for word in ("--set", each)]
        more += ["--resume"] * (self.out / name / "checkpoints").exists()
        self.row(f"{name}_run", "pretrain", config, self.out / name, *more)

    def lexicon(self) -> tuple[list[str], np.ndarray]:
        """The first words and their vectors, float32 [n, E]."""
        words = list(itertools.islice(read_lines(self.words), WORDS))
        return words, open_word_vectors(self.vectors, only=words).lookup(words)

    def size(self, file: Path, words: int) -> float:
        """Bytes a word: of pruned vectors as a sparse matrix, of whole ones as float32,
        of others without hashes.
        """
        if file.with_suffix(".npz").exists():
            return file.with_suffix(".npz").stat().st_size / words
        vectors = open_word_vectors(file)
        whole = isinstance(vectors, LexiconVectors)
        return (
            4 * vectors.size if whole else file.stat().st_size / len(vectors.hashes) - 8
        )

    def similarity(self, name: str, vectors: Path) -> str:
        """Spearman's ρ × 100 of the cosines of words and what people said, for each
        file of pairs.
        """
        files = [self.data / f"wordsim/{pairs}.txt" for pairs in PAIRS]
        lines = self.row(
            f"similarity_{name}", "downstream", "similarity", vectors, *files
        ).splitlines()
        return " ".join(
            f"{line.split()[0]} {line.split()[-1]}"
            for line in lines
            if line.startswith("EN-")
        )

    def accuracy(self, name: str) -> float:
        """What a probe on word vectors alone has told at its end."""
        return float(
            re.findall(r"vectors +([\d.]+)", (self.out / f"{name}.txt").read_text())[-1]
        )

    def code(self, cell: str) -> str:
        """Learn codes of the first words."""
        books, entries = cell.split("x")
        what = (
            "--codebooks",
            books,
            "--entries",
            entries,
            "--steps",
            STEPS,
            "--learning-rate",
            RATE,
        )
        source = (
            self.vectors,
            self.out / f"codes{cell}.safetensors",
            "--words",
            self.words,
            "--most",
            WORDS,
        )
        return self.row(f"codes{cell}", "pretrain.compact", "codes", *source, *what)

    def codes(self) -> None:
        """Table 2 and Figure 3: losses by M and K, and how evenly codewords are used."""
        for cell, paper in CODES.items():
            lines = self.code(cell).splitlines()
            size = self.size(self.out / f"codes{cell}.safetensors", WORDS)
            print(
                f"{cell:6} {size:6.1f} bytes, paper's loss {paper}",
                *lines[2:],
                lines[0],
                sep="\n       ",
            )

    def baseline(self, name: str, words: list[str], rows: np.ndarray) -> None:
        """Write whole vectors, or without the smallest numbers (`pruned80`: 80 %), or
        quantised (`pq10x256`).
        """
        file = self.out / f"{name}.safetensors"
        if name.startswith(
            "pq"
        ):  # normalised product quantisation (Joulin et al. 2016)
            norms = np.maximum(np.linalg.norm(rows, axis=1), 1e-6)
            codes, codebooks = quantise(
                rows / norms[:, None], np.ones(len(rows)), int(name[2:].split("x")[0])
            )
            coded = CodedRows(
                "concatenated",
                codes=codes,
                codebooks=codebooks,
                norms=norms.astype(np.float16),
            )
            return CompactVectors.of_words(words, coded).write(file)
        if name.startswith("pruned"):
            rows = np.where(
                np.abs(rows) < np.quantile(np.abs(rows), int(name[6:]) / 100), 0, rows
            )
            save_npz(file.with_suffix(".npz"), csr_matrix(rows))
        LexiconVectors(torch.from_numpy(rows), words).write(file)

    def imdb(self) -> None:
        """Table 3: accuracy of an LSTM on reviews (and on SST-5), with vectors of the
        same words kept in many ways.
        """
        words, rows = self.lexicon()
        reviews = list(read_lines(self.data / "imdb/train.jsonl.gz"))
        parts = {
            "train": reviews[:REVIEWS],
            "dev": reviews[12_000:12_500],
            "test": reviews[-REVIEWS:],
        }
        for name, part in parts.items():
            (self.out / f"{name}.jsonl").write_text("\n".join(part) + "\n")
        data = [
            word for name in parts for word in (f"--{name}", self.out / f"{name}.jsonl")
        ]
        for name, paper in IMDB.items():
            file = self.out / f"{name}.safetensors"
            if name.startswith("codes"):
                self.code(name.removeprefix("codes"))
            elif not file.exists():
                self.baseline(name, words, rows)
            what = ("--small", "--vectors", file, "--seeds", 1)
            self.row(
                f"imdb_{name}",
                "downstream",
                "imdb",
                *what,
                *data,
                "--words",
                READ,
                "--epochs",
                EPOCHS,
            )
            size = self.size(file, len(words))
            score = self.accuracy(f"imdb_{name}")
            print(
                f"{name:11} {size:7.1f} bytes, paper {paper}, accuracy {score}",
                flush=True,
            )
        trees = (
            "--train",
            self.data / "sst5/train.txt.gz",
            "--dev",
            self.data / "sst5/dev.txt.gz",
        )
        for name in IMDB:
            what = (
                "--small",
                "--vectors",
                self.out / f"{name}.safetensors",
                "--seeds",
                1,
            )
            self.row(
                f"sst5_{name}",
                "downstream",
                "sst5",
                *what,
                *trees,
                "--subtrees",
                "none",
            )
            print(f"{name:11} SST-5 {self.accuracy(f'sst5_{name}')}", flush=True)

    def alone(self) -> None:
        """Figure 3: word similarity and error of ALONE by the width of its network."""
        pairs = [
            line.split()[:2]
            for name in PAIRS[:3]
            for line in read_lines(self.data / f"wordsim/{name}.txt")
        ]
        chosen = dict.fromkeys(
            [word for pair in pairs for word in pair] + self.lexicon()[0]
        )
        (self.out / "alone.words").write_text(
            "\n".join(list(chosen)[:ALONE_WORDS]) + "\n"
        )
        print("whole", self.similarity("whole", self.vectors))
        cells = [(size, [kind]) for size in INNER_SIZES for kind in ("real", "binary")]
        fixed = [
            (INNER_SIZES[1], [kind, "--fixed-base"]) for kind in ("real", "binary")
        ]
        for size, what in [*cells, *fixed]:
            name = "".join([f"alone{size}", *what])
            made = self.out / f"{name}.safetensors"
            source = (self.vectors, made, "--words", self.out / "alone.words")
            options = (
                "--inner-size",
                size,
                "--epochs",
                ALONE_EPOCHS,
                "--filter",
                *what,
            )
            _, error, *_ = self.row(
                name, "pretrain.compact", "alone", *source, *options
            ).splitlines()
            print(
                f"{name}: {(300 + 600 * size) / 1e6:.2f}M, {error}; {self.similarity(name, made)}",
                flush=True,
            )

    def language_models(self, text: str, documents: list[str]) -> None:
        """Table 7: perplexity on every tenth document of a text, trained on the others."""
        path, train, held_out = (
            self.out / f"{text}{part}" for part in ("", "_train.txt", "_held_out.txt")
        )
        held_out.write_text("\n\n".join(documents[9::10]) + "\n")
        del documents[9::10]
        train.write_text("\n\n".join(documents) + "\n")
        what = ("--held-out", held_out, "--min-count", MIN_COUNT)
        self.row(f"{text}_corpus", "data_scripts.build_corpus", train, path, *what)
        record = Corpus(path).record
        marks = (
            record.held_out_sentences / record.held_out_tokens
        )  # <s>, foreseen, and not in the paper
        for name, paper in zip(LANGUAGE_MODELS, TYING[text], strict=True):
            sets = [
                f"data.corpus={path}",
                f"train.epochs={LM_EPOCHS}",
                "evaluation.every_updates=1000000",
            ]
            self.run(f"{text}_{name}", CONFIGS / f"lm/{name}.toml", sets)
            perplexity = read_metrics(self.out / f"{text}_{name}", "evaluation")[-1][
                "vocabulary_perplexity"
            ]
            words = math.exp(math.log(perplexity) / (1 - marks))
            print(
                f"{text} {name:14} perplexity {perplexity:.1f}, without <s> {words:.1f}, paper {paper}",
                flush=True,
            )

    def tying(self) -> None:
        """Tables 7, 2, 3 and 4: perplexity, and what the vectors of words are worth and
        have in common.
        """
        news = self.data / "lm/news_bbc-00.txt.gz"
        reviews = [
            json.loads(line)["text"]
            for line in itertools.islice(
                read_lines(self.data / "imdb/train.jsonl.gz"), LM_REVIEWS
            )
        ]
        raw = self.out / "reviews.txt"
        raw.write_text(
            "\n\n".join(text.replace("<br />", " ") for text in reviews) + "\n"
        )
        self.row(
            "imdb_tokens",
            "data_scripts.tokenize",
            raw,
            self.out / "imdb_tokens.gz",
            "--tokenised",
            "no",
        )
        for text, tokens in (("bbc", news), ("imdb", self.out / "imdb_tokens.gz")):
            self.language_models(text, "\n".join(read_lines(tokens)).split("\n\n"))
        rows = {
            "out": read_model_directory(self.out / "bbc_lm_small").output_layer.weights[
                "shared.rows"
            ]
        }
        for kind, run in (("in", "bbc_lm_small"), ("tied", "bbc_lm_small_wt")):
            rows[kind] = open_word_vectors(self.out / run).vectors
        lexicon = Corpus(self.out / "bbc").lexicon
        names = [
            word if word != UNKNOWN else "" for word in lexicon
        ]  # so that other words have no vector
        compared = [place for place, word in enumerate(names) if word.isalpha()][
            :COMPARED
        ]
        cosines = {}
        for kind, vectors in rows.items():
            file = self.out / f"{kind}_of_lm.safetensors"
            LexiconVectors(vectors, names).write(file)
            print(f"{kind:5}", self.similarity(kind, file))
            units = torch.nn.functional.normalize(vectors[compared]).numpy()
            cosines[kind] = (units @ units.T)[np.triu_indices(len(compared), 1)]
        skipgram = fasttext.load_model(self.vectors)
        outputs = torch.from_numpy(skipgram.get_output_matrix())
        LexiconVectors(outputs, skipgram.get_words()).write(
            self.out / "fasttext_out.safetensors"
        )
        print("fastText in ", self.similarity("whole", self.vectors))
        print(
            "fastText out",
            self.similarity("fasttext_out", self.out / "fasttext_out.safetensors"),
        )
        for (one, other), paper in CORRELATIONS.items():
            print(
                f"ρ({one}, {other}) {spearmanr(cosines[one], cosines[other]).statistic:.2f}, paper {paper}"
            )

    def training(self) -> None:
        """Held-out retrieval after a short training on tables of coded vectors, beside
        whole ones.
        """
        path = self.out / "podcasts"
        text = self.data / "lm/podcast_transcripts-00.txt.gz"
        self.row(
            "podcasts_corpus", "data_scripts.build_corpus", text, path, "--workers", 1
        )
        corpus = Corpus(path)
        rows = open_word_vectors(self.vectors, only=corpus.lexicon).lookup(
            corpus.lexicon
        )
        weights = np.sqrt(corpus.counts * rows.any(axis=1))
        for books in BOOKS:
            name = f"coded{books}"
            source = self.out / f"{name}.safetensors" if books else Path(self.vectors)
            if not source.exists():
                coded = code_rows(rows, weights, np.eye(rows.shape[1]), books)
                CompactVectors.of_words(corpus.lexicon, coded).write(source)
            for table, how in (("input", "none"), ("target", "whiten")):
                what = (
                    "--name",
                    f"{name}_{table}",
                    "--post-process",
                    how,
                    "--workers",
                    1,
                )
                self.row(
                    f"{name}_{table}", "data_scripts.build_vectors", path, source, *what
                )
            sets = [
                f"data.{table}_vectors={name}_{table}" for table in ("input", "target")
            ]
            sets += [
                f"data.corpus={path}",
                f"train.updates={UPDATES}",
                "evaluation.every_updates=1000000",
            ]
            sets.append(f"schedule.linear_warmup_updates={WARM_UP}")
            self.run(name, CONFIGS / "fast.toml", sets)
            rank = read_metrics(self.out / name, "evaluation")[-1]["reciprocal_rank"]
            size = books + 2 if books else 4 * rows.shape[1]
            print(f"{size:5} bytes a word, reciprocal rank {rank:.4f}", flush=True)

    def plot(self) -> None:
        """OUT/compact.png: bytes a word against the mean cosine to the whole vectors,
        and accuracy on reviews.
        """
        words, rows = self.lexicon()
        series: dict[str, list[tuple[float, float]]] = {
            "compress-fasttext (published)": list(PUBLISHED.items())
        }
        for file in sorted(self.out.glob("*.safetensors")):
            if kind := re.match(r"codes|pq|pruned|alone(?=\d+real\.)", file.name):
                found = open_word_vectors(file).lookup(words)
                has = found.any(axis=1)
                pair = (torch.from_numpy(each[has]) for each in (found, rows))
                cosine = float(torch.nn.functional.cosine_similarity(*pair).mean())
                series.setdefault(kind[0], []).append(
                    (self.size(file, len(words)), cosine)
                )
        _, (axes, probes) = pyplot.subplots(ncols=2, figsize=(12, 4.5))
        for name in IMDB:
            if (self.out / f"imdb_{name}.txt").exists():
                size = self.size(self.out / f"{name}.safetensors", len(words))
                probes.plot(size, self.accuracy(f"imdb_{name}"), "o")
                probes.annotate(
                    name,
                    (size, self.accuracy(f"imdb_{name}")),
                    (5, 3),
                    textcoords="offset points",
                )
        probes.set(
            xscale="log",
            xlabel="bytes a word, without hashes",
            ylabel="accuracy on reviews",
        )
        for name, points in series.items():
            axes.plot(
                *zip(*sorted(points), strict=True), "o-", label=name, markersize=4
            )
            print(
                name,
                *(f"{size:.1f} bytes {cosine:.3f}" for size, cosine in sorted(points)),
                sep="\n  ",
            )
        axes.set(
            xscale="log",
            xlabel="bytes a word, without hashes",
            ylabel="mean cosine to the whole vectors",
        )
        axes.legend(fontsize="small")
        pyplot.savefig(self.out / "compact.png", dpi=110, bbox_inches="tight")


def main() -> None:
    """Make the rows of a table that are not there, and print it."""
    parser = argparse.ArgumentParser(
        description="Tables of papers on compact word vectors, in miniature."
    )
    parser.add_argument(
        "table", choices=("codes", "imdb", "alone", "tying", "training", "plot")
    )
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument(
        "--vectors", required=True, metavar="FILE", help="fastText vectors"
    )
    parser.add_argument(
        "--words",
        required=True,
        type=Path,
        metavar="LEXICON",
        help="lexicon.txt of a corpus",
    )
    parser.add_argument("--data", required=True, type=Path, metavar="DIR")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    getattr(Tables(options), options.table)()


if __name__ == "__main__":
    main()
