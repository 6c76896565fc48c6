"""Progress: which bar shows how far the work is; imported where one is made, since tqdm
is not light.
"""

import io
import json
import sys
from typing import Any

from tqdm.auto import tqdm

# Seconds between two redraws where somebody looks at the bar, and in a file, which
# keeps each redraw as a line.
_SEEN_SECONDS = 0.5
_FILE_SECONDS = 30.0


def new_bar(*, as_json: bool, **options: Any) -> Any:
    """See `elmoc.process.progress_bar`.

    Args:
        as_json: whether each redraw is to be a line of JSON.
        options: of `tqdm.tqdm`.
    """
    is_seen = as_json or sys.stderr.isatty() or "ipykernel" in sys.modules
    seconds = _SEEN_SECONDS if is_seen else _FILE_SECONDS
    options |= {"mininterval": seconds, "maxinterval": seconds, "dynamic_ncols": True}
    # What tqdm itself writes for a `JsonBar`, such as the end of a line, is not shown.
    return JsonBar(file=io.StringIO(), **options) if as_json else tqdm(**options)


class JsonBar(tqdm):
    """A bar that writes each redraw as one line of JSON to standard error.

    `elmoc.jobs` reads the lines and draws the bar in its own process.
    """

    def display(self, msg: str | None = None, pos: int | None = None) -> bool:
        """Write the state of the bar as one line."""
        state = {
            "bar": id(self),
            # The last line of a bar is written when it has been disabled.
            "closed": self.disable,
            "shown": {"n": self.n, "desc": self.desc, "postfix": self.postfix},
            "options": {
                "total": self.total,
                "initial": self.initial,
                "unit": self.unit,
                "unit_scale": self.unit_scale,
                "bar_format": self.bar_format,
            },
        }
        print(json.dumps({"progress": state}), file=sys.stderr, flush=True)
        return True
