"""Learn compact word vectors from others.

python -m experiments.compact.learners codes VECTORS OUT.safetensors --words FILE
python -m experiments.compact.learners alone VECTORS OUT.safetensors --words FILE
"""

import sys
from functools import partial
from pathlib import Path

from elmoc.command_line import run_main
from elmoc.errors import human_bytes, say
from elmoc.files.writing import atomic_path, locked
from experiments.compact.learners.options import CompactOptions


def learn_and_write(options: CompactOptions) -> None:
    """Learn, write and report what the options ask for."""
    from experiments.compact.learners.alone import learn_alone
    from experiments.compact.learners.codes import learn_codes
    from experiments.compact.learners.learning import read_rows, reconstruction

    out = Path(options.out)
    learn = learn_codes if options.kind == "codes" else learn_alone
    with locked(out, new=True):
        words, rows = read_rows(options)
        vectors = learn(words, rows, options)
        with atomic_path(out, checksum=True) as partial:
            vectors.write(partial)
    size = human_bytes(out.stat().st_size)
    say(f"{out}: {len(words):,} words, {size} (as float32 {human_bytes(rows.nbytes)})")
    say(reconstruction(words, rows, vectors))


main = partial(
    run_main,
    CompactOptions,
    learn_and_write,
    prog="python -m experiments.compact.learners",
    description="Learn compact word vectors.",
)

if __name__ == "__main__":
    sys.exit(main())
