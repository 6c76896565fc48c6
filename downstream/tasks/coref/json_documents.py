"""Documents with chains as JSON lines, as e2e-coref reads them and `elmoc
dump-features` takes them: an object a line.

| key | what it holds |
|---|---|
| `doc_key` | the document's name |
| `sentences` | lists of words |
| `clusters` | lists of mentions `[first, last]`, words counted through the document |
| `speakers` | a list like `sentences`, of the speaker of each word; may be missing |
"""

from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from downstream.printing import counted
from downstream.readers.columns import ColumnSentence
from downstream.readers.conll2012 import NOTHING, WORD, Document
from downstream.tasks.coref.model import CorefDocument
from downstream.tasks.coref.scorer import Mention
from elmoc.errors import InputError, note
from elmoc.text.documents import TextRange
from elmoc.text.json_lines import read_objects


class _Record(Struct):
    """A line. A cell of a column can hold the name."""

    doc_key: Annotated[str, Meta(pattern=r"^[^\0\t\r\n]+$")]
    sentences: list[list[str]]
    clusters: list[list[Mention]]
    speakers: list[list[str]] = []
    # It says that the words are pieces of words.
    subtoken_map: Any = None


def read_json_documents(path: Path) -> list[CorefDocument]:
    """The documents of a file (plain or compressed). Those without words are left out,
    and a note counts them.

    They have the columns of a file of coreference alone, in which predictions are
    written. Chains are in the order in which they begin; of those that begin at one
    word, one with a mention of this word alone comes first.

    Raises:
        InputError: a line is no such object, has pieces of words, or a mention that is
            not in the document; or no document has words.
    """
    documents = []
    empty = 0
    for line, record in read_objects(TextRange(path), _Record):
        words = list(chain.from_iterable(record.sentences))
        speakers = list(chain.from_iterable(record.speakers)) or [NOTHING] * len(words)
        if len(speakers) != len(words) or record.subtoken_map is not None:
            raise InputError(
                f"{path}, line {line}: a speaker for each word is needed, and whole "
                "words, without subtoken_map: give the file that it was made of"
            )
        for first, last in chain.from_iterable(record.clusters):
            if not 0 <= first <= last < len(words):
                raise InputError(
                    f"{path}, line {line}: the mention [{first}, {last}] is not in the "
                    f"document, whose words are 0 to {len(words) - 1}"
                )
        if not words:
            empty += 1
            continue
        chains = [sorted(set(cluster)) for cluster in record.clusters if cluster]
        chains.sort(key=lambda own: min((a, a < b) for a, b in own))
        columns = []
        for own in filter(None, record.sentences):
            rows = [
                [record.doc_key, "0", str(i), own[i], NOTHING] for i in range(len(own))
            ]
            columns.append(ColumnSentence(path, rows, [line] * len(own)))
        documents.append(
            CorefDocument(
                Document(f"#begin document ({record.doc_key}); part 000", columns),
                [each.sentence(WORD) for each in columns],
                [speaker or NOTHING for speaker in speakers],
                chains,
            )
        )
    if not documents:
        raise InputError(f"{path} holds no document with words")
    if empty:
        note(f"{path}: {counted(empty, 'document')} without words left out")
    return documents
