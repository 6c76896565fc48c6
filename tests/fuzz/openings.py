"""Openings: every function of the project that opens a file for reading, found in the code, and those that ran."""

import ast
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from tests.fuzz.readers.reader import Reader

ROOT = Path(__file__).parent.parent.parent
ROOMS = ("elmoc", "pretrain", "downstream", "data_scripts", "quickstart")
OPENERS = {
    *("open", "open_binary", "read_lines", "read_text", "read_bytes", "fromfile", "memmap", "mmap", "ZipFile"),
    *("load_array", "load_file", "safe_open", "urlopen", "loads", "decode", "CDLL"),
    *("np.load", "torch.load", "tomllib.load", "h5py.File", "fasttext.load_model", "safetensors.torch.load_file"),
}
"""Functions that open a file or parse its content, by their last name, or by more of it where that says too little."""
READS = re.compile(r"read_\w*(json|record|table|array|tensors|line)\w*|load_\w*(json|record|array|tensors)\w*")
"""Names of the project's own shared readers."""
NOT_DAMAGED = {
    "elmoc/files": "the shared readers, by which all others open files",
    "quickstart/": "reads what its own steps have just written, and the data of the repository",
    "elmoc/benchmark/opening.py": "reads what its own processes print",
    "downstream/suite/running.py:JobRunner._last_error": "reads what the suite's own processes have printed",
    "elmoc/process.py": "loads the C library of the system, and reads what it says about memory",
    "elmoc/kernels/compiling.py:processor": "reads what the system says about the processor",
    "downstream/peers/character_training.py": "reads what its own training has written, atomically, and goes on with",
    "downstream/peers/many_langs_training.py": "reads what its own training has written, and the source of a package",
    "elmoc/word_vectors/foreign.py": "looks at the beginning of a file that its reader has refused",
    "data_scripts/build_subwords.py:learn": "parses what a library has just learnt, not a file",
    "pretrain/speed/": "reads what the system says about the processor, and loads its C library",
    "pretrain/distributed/processes.py": "reads messages of other processes of the same run, not files",
    "data_scripts/parts/text_pieces.py:line_number": "counts the lines before damaged text, which the sample has not",
    "data_scripts/train_fasttext.py:zero_fresh_memory": "loads the C library of the system",
}
"""Functions, or the beginnings of their places, that open files which no reader has to damage, and why."""
HELPERS = {
    "features/other.h5": "what links of a damaged feature file lead to",
    "features/.left.h5.unfinished/features.h5": "HDF5 goes on writing it; of what it holds only the size is known",
    "features/linked-allennlp.h5.parts/2.h5": "is read like its first part",
    "features/linked-flat.h5.parts/2.h5": "is read like its first part",
    "good.so": "what the sample's compiler gives",
    "compiler": "the sample's compiler",
    "old/run/model/README.md": "is for people, and never read",
    "elmo/model/README.md": "is for people, and never read",
    "old/probes/results.jsonl": "lines of results are what they were",
    **{
        f"subwords/{name}": "is read like that of the corpus of words"
        for name in ("corpus.json", "lexicon.txt", "counts.npy", "shards/train-N.bin", "shards/held-out-N.bin")
    },
    "subwords/shards/train-N.documents.npy": "is read like that of the corpus of words",
    "subwords/shards/held-out-N.documents.npy": "is read like that of the corpus of words",
    "unfinished/.work/lock": "has no content",
    "recipe/made.txt": "is there, which says that something was made, and is not read",
    "archive/.corpus.unpacked/news.en-N-of-N": "text, which build_corpus reads like any other",
}
"""Files of the sample that no reader damages, and why."""


def openings(root: Path = ROOT) -> set[str]:
    """The functions that open a file for reading, as `file:qualified.name`."""
    found = set()
    for room in ROOMS:
        for file in sorted((root / room).rglob("*.py")):
            place = file.relative_to(root).as_posix()
            for name, function in functions(ast.parse(file.read_text(encoding="utf-8"))):
                if any(isinstance(node, ast.Call) and opens(node) for node in own_nodes(function)):
                    found.add(f"{place}:{name}")
    return found


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """The functions of a module with their qualified names, inner ones too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
            yield from functions(node, f"{prefix}{node.name}.<locals>.")
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        else:
            yield from functions(node, prefix)


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """What stands in a function, but not in functions inside it."""
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
            yield from own_nodes(node)


def opens(call: ast.Call) -> bool:
    """Whether a call opens a file for reading."""
    name = ast.unparse(call.func)
    last = name.rpartition(".")[2]
    known = name in OPENERS or last in {each for each in OPENERS if "." not in each} or READS.fullmatch(last)
    texts = [node.value for node in ast.walk(call) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    writes = any(re.fullmatch(r"[wxa]b?\+?|r\+b|w\|gz|w:gz", text) for text in texts)
    return bool(known) and not writes and ast.unparse(call) != "ctypes.CDLL(None)" and not is_of_bytes(name)


def is_of_bytes(name: str) -> bool:
    """Whether `decode` is that of a byte string: of a decoder, it stands at the end of its name."""
    return name.endswith(".decode") and "json" not in name and "msgspec" not in name and "decoder" not in name.lower()


@contextmanager
def calls() -> Iterator[set[str]]:
    """The functions of the project that are called in the block, named as `openings` names them."""
    codes: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        codes.add(frame.f_code)

    called: set[str] = set()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        for code in codes:
            path = Path(code.co_filename)
            if path.is_relative_to(ROOT):
                called.add(f"{path.relative_to(ROOT).as_posix()}:{code.co_qualname}")


def untested(called: set[str], readers: list[Reader], pristine: Path) -> list[str]:
    """Functions that open files and that no reader calls, and files of the sample that no reader damages."""
    silent = [f for f in sorted(openings() - called) if not any(f.startswith(start) for start in NOT_DAMAGED)]
    damaged = {kind_of(path.relative_to(pristine)) for each in readers for path in pristine.glob(each.target)}
    files = [path.relative_to(pristine) for path in sorted(pristine.rglob("*")) if path.is_file()]
    whole = sorted({kind_of(path) for path in files} - damaged - {kind_of(Path(name)) for name in HELPERS})
    return [
        *(f"{each} opens a file, but no reader of tests/fuzz/readers calls it" for each in silent),
        *(f"{each}, a file of the sample, is damaged by no reader of tests/fuzz/readers" for each in whole),
    ]


def kind_of(path: Path) -> str:
    """Equal for the files of the sample that are read alike."""
    return re.sub(
        r"[0-9a-f]{16}|\d+|train|held[-_]out|plain|white|(vectors|both)(?=\.seed)|known|tokenised", "N", str(path)
    )
