"""Output: what a run prints while it goes on, though the reader of it may go away."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tqdm import tqdm

from elmoc.errors import drop_output, reason
from elmoc.progress import progress_bar
from pretrain.run.stop_signals import StopRequest


class Output:
    """Prints lines, and moves a progress bar; where what is printed is not taken, the run is asked to stop, and saves.

    Args:
        stop: what asks the run to stop.
        total, done: words of the whole run, and of those that it has read.
        unit: what they are called.
    """

    def __init__(self, stop: StopRequest, *, total: int, done: int, unit: str) -> None:
        self._stop = stop
        self._bar = progress_bar(total=total, initial=done, unit=f" {unit}", unit_scale=True, desc="pretrain")

    def print(self, text: str) -> None:
        """Print lines at once, above the progress bar."""
        with self._taken():
            tqdm.write(text)
            print(end="", flush=True)

    def advance(self, words: int, *, total: int) -> None:
        """Move the bar by so many words; a run may change its length."""
        with self._taken():
            self._bar.total = total
            self._bar.update(words)

    def show(self, status: str) -> None:
        """Show a status behind the bar when it is drawn next."""
        self._bar.set_postfix_str(status, refresh=False)

    def close(self) -> None:
        """Close the bar; nothing is left to be saved."""
        try:
            self._bar.close()
        except OSError:
            drop_output()

    @contextmanager
    def _taken(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._stop.asked = True
            drop_output()
            warning = f"warning: what this run prints is not taken ({reason(error)}): it saves and stops"
            with suppress(OSError):  # of the other one that nobody reads
                print(warning, file=sys.stderr)
