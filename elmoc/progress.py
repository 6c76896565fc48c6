"""Progress: a bar of a job, which the process that started it draws; imported where a
bar is made, since tqdm is not light.
"""

import json
import sys

from tqdm.auto import tqdm


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
