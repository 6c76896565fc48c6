"""Tags of entities: all spellings give BIO, and what they leave open is said."""

from pathlib import Path

import pytest
from downstream.tasks.ner.tags import bio_to_bioul, to_bio
from downstream.tasks.ner.task import TASK, TaggedSentence
from elmoc.errors import InputError


def read(path: Path, text: str) -> list[TaggedSentence]:
    path.write_text(text, encoding="utf-8")
    return TASK.read(path, TASK.reader, training=True)


def rows(tags: str) -> str:
    return "".join(f"w{place} {tag}\n" for place, tag in enumerate(tags.split()))


@pytest.mark.parametrize(
    ("tags", "bio", "bioul"),
    [
        ("O", "O", "O"),
        ("I-X", "B-X", "U-X"),
        ("B-X I-X I-X", "B-X I-X I-X", "B-X I-X L-X"),
        ("I-X I-X B-X I-X", "B-X I-X B-X I-X", "B-X L-X B-X L-X"),
        ("B-X B-X", "B-X B-X", "U-X U-X"),
        ("O I-X O", "O B-X O", "O U-X O"),
        ("B-X I-Y I-Y", "B-X B-Y I-Y", "U-X B-Y L-Y"),
        ("I-X-Y I-X-Z", "B-X-Y B-X-Z", "U-X-Y U-X-Z"),
    ],
)
def test_tags(tags: str, bio: str, bioul: str) -> None:
    assert to_bio(bioul.split()) == bio.split(), "also called BIOLU"
    assert to_bio(bioul.replace("L-", "E-").replace("U-", "S-").split()) == bio.split(), "BIOES"
    assert to_bio(tags.split()) == bio.split()
    assert bio_to_bioul(bio.split()) == bioul.split()


NO_FIRST = "no tag begins an entity (B-): words of one type side by side are read as one, as in 1 of"
NO_NEXT = "warning: {}: no tag continues an entity (I-): each word is read as one, though 1 of 3"


@pytest.mark.parametrize(
    ("tags", "bio", "said"),
    [
        ("B_AB I_AB O U_C", "B-AB I-AB O B-C", "note: {}: tags are spelled B_TYPE, as in B_AB, I_AB, U_C"),
        ("Ab-B Ab-I O Ab-B", "B-Ab I-Ab O B-Ab", "note: {}: tags are spelled TYPE-B, as in Ab-B, Ab-I"),
        ("x_y_S O x_y_B x_y_E", "B-x_y O B-x_y I-x_y", "note: {}: tags are spelled TYPE-B"),
        ("b-per i-per o b-loc", "B-per I-per O B-loc", "note: {}: tags are spelled b-type"),
        ("GENE GENE O CELL GENE", "B-GENE I-GENE O B-CELL B-GENE", "note: {}: tags are spelled TYPE, as in CELL, GENE"),
        ("GENE GENE O CELL GENE", "B-GENE I-GENE O B-CELL B-GENE", f"note: {{}}: {NO_FIRST} 3"),
        (
            "art-film/tv O art-film/tv art-book",
            "B-art-film/tv O B-art-film/tv B-art-book",
            "as in art-book, art-film/tv",
        ),
        ("I-X I-X O I-Y", "B-X I-X O B-Y", f"note: {{}}: {NO_FIRST} 2"),
        ("I I O I", "B-ENTITY I-ENTITY O B-ENTITY", f"note: {{}}: {NO_FIRST} 2"),
        ("B-X B-X O B-Y", "B-X B-X O B-Y", NO_NEXT),
        ("B_X I_X S_Y", "B-X I-X B-Y", "are spelled B_TYPE"),
        # nothing is left open
        ("B-X M-X M-X E-X O S-Y S-Y", "B-X I-X I-X I-X O B-Y B-Y", ""),
        ("B-X E-X B-X E-X", "B-X I-X B-X I-X", ""),
        ("W-X B-X M-X E-X", "B-X B-X I-X I-X", ""),
        ("B I O I B B", "B-ENTITY I-ENTITY O B-ENTITY B-ENTITY B-ENTITY", ""),
        ("B M E S O", "B-ENTITY I-ENTITY I-ENTITY B-ENTITY O", ""),
        ("U B L", "B-ENTITY B-ENTITY I-ENTITY", ""),
        ("I-X O I-Y I-X", "B-X O B-Y B-X", ""),
        ("B-X O B-X B-Y", "B-X O B-X B-Y", ""),
        ("B-X B-X I-X", "B-X B-X I-X", ""),
        ("(X* *) (Y) *", "B-X I-X B-Y O", ""),
    ],
)
def test_spellings_of_tags(tmp_path: Path, tags: str, bio: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c"
    (sentence,) = read(path, rows(tags))
    assert sentence.tags == bio.split()
    errors = capsys.readouterr().err
    assert said.format(path) in errors
    assert bool(errors) == bool(said)


@pytest.mark.parametrize(
    ("tags", "line"),
    [
        ("O -", 2),
        ("O X-PER", 2),
        # several spellings
        ("O B-X I-X PER", 4),
        ("o o", 1),
        ("B_X O MISC", 1),
        ("X-B O MISC", 1),
        ("B-X O B_X", 3),
        # parts of speech: no O
        ("NNP VBD NN", 1),
        ("O 3 0", 2),
    ],
)
def test_other_tags_are_refused_by_name(tmp_path: Path, tags: str, line: int) -> None:
    tag = tags.split()[line - 1]
    with pytest.raises(InputError, match=rf"line {line}: '{tag}' is no tag .*M- or W-TYPE.*--column"):
        read(tmp_path / "c", rows(tags))
