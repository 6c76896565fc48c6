"""`elmoc dump-features`: the command line that turns a file of sentences into a feature file."""

import argparse
import sys

from elmoc.errors import InputError

SUMMARY = "write the layer states of sentences to an HDF5 file"
DTYPES = ("float32", "float16")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `elmoc dump-features`."""
    parser.add_argument("model", help="model directory, or run directory")
    parser.add_argument("sentences", help="one tokenised sentence a line, words split on white space (.txt or .gz)")
    parser.add_argument("output", help="the feature file to write (.h5)")
    layers = parser.add_mutually_exclusive_group()
    layers.add_argument("--all", action="store_true", help="all L + 1 layers (the default)")
    layers.add_argument("--top", action="store_true", help="only the top layer")
    layers.add_argument("--average", action="store_true", help="the average of the layers")
    layers.add_argument("--layers", metavar="I,J", help="only these layers, in this order (0 is context-independent)")
    parser.add_argument(
        "--dtype",
        choices=DTYPES,
        default="float32",
        help="of the numbers in the file (default: float32); float16 makes it half as large",
    )
    parser.add_argument("--vectors", help="where the model's word vectors are, if they have moved")
    parser.add_argument("--batch-size", type=int, default=256, help="sentences a batch at most (default: 256)")
    parser.add_argument("--batch-words", type=int, default=4096, help="padded words a batch at most (default: 4096)")
    device = parser.add_mutually_exclusive_group()
    device.add_argument("--device", default="cpu", help="cpu (default), cuda or cuda:N")
    device.add_argument("--cuda-device", type=int, metavar="N", help="the same as --device cuda:N; -1 is the CPU")
    parser.add_argument("--forget-sentences", action="store_true", help="leave the sentence_to_index map out")
    parser.add_argument("--allow-empty", action="store_true", help="write an array of no words for an empty line")


def run(arguments: argparse.Namespace) -> None:
    """Dump features as the parsed command line says."""
    from elmoc.files.locks import locked
    from elmoc.files.writing import refuse_existing

    device = arguments.device
    if arguments.cuda_device is not None:
        device = "cpu" if arguments.cuda_device < 0 else f"cuda:{arguments.cuda_device}"
    for option in ("batch_size", "batch_words"):
        if getattr(arguments, option) < 1:
            raise InputError(f"--{option.replace('_', '-')} must be at least 1")
    chosen = "all" if arguments.layers is None else arguments.layers
    with locked(arguments.output):
        refuse_existing(arguments.output)
        from elmoc.features.dump import dump_features
        from elmoc.model import ElmoC

        dump_features(
            ElmoC.from_pretrained(arguments.model, vectors=arguments.vectors, device=device),
            arguments.sentences,
            arguments.output,
            layers="top" if arguments.top else "average" if arguments.average else chosen,
            dtype=arguments.dtype,
            batch_size=arguments.batch_size,
            batch_words=arguments.batch_words,
            sentence_map=not arguments.forget_sentences,
            allow_empty=arguments.allow_empty,
            command_line=" ".join(["elmoc", *sys.argv[1:]]),
        )
