"""`elmoc inspect`: the command line that says what a feature file holds, and whether it is whole."""

import argparse

SUMMARY = "say what a feature file holds, and check it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `elmoc inspect`."""
    parser.add_argument("file", help="feature file (.h5)")
    parser.add_argument("--quick", action="store_true", help="do not read all of it: neither words nor numbers")


def run(arguments: argparse.Namespace) -> None:
    """Inspect the file that the parsed command line names; damage is an `InputError`."""
    from elmoc.features.converting.describe import describe
    from elmoc.features.reader import FeatureFile
    from elmoc.progress import progress_bar

    with FeatureFile(arguments.file) as features:
        print(arguments.file)
        for what, said in describe(features, count_words=not arguments.quick):
            print(f"  {what:12} {said}", flush=True)
        if arguments.quick:
            print("  not checked  --quick: the numbers have not been read")
            return
        with progress_bar(
            total=len(features), unit=" sentences", unit_scale=True, desc="  check", delay=2, leave=False
        ) as progress:
            features.check(progress.update)
        print("  sound        every sentence has been read")
