"""Mutations of command lines: values out of range or of another kind, options that are doubled, left out or unknown.

A command line is a JSON list of its words.
"""

import json
import re
from random import Random

from tests.fuzz.mutations.raw import Mutation

VALUES = (
    *(
        "",
        " ",
        "-1",
        "0",
        "1",
        "2",
        "-0",
        "1.5",
        "nan",
        "inf",
        "-inf",
        "1e308",
        "1e-320",
        "1e999",
        "1e9",
        "1_0",
        "٣",
        "²",
    ),
    *(str(number) for number in (2**31, 2**32, 2**63, 2**64, 10**23, 10**400, -(2**63))),
    *("true", "null", "x", "é", "\udcff", "\n", "a" * 300, "../x", ".", "-", "--"),
    *("nowhere", "text", "[", '"', "{}", "[1]", "random:1:6", "random:x", "0,1", "1,", ",", "3-1", "%s"),
)


def change_words(data: bytes, random: Random) -> bytes:
    """Change one word of the command line, or the value in an `a=b`."""
    words = json.loads(data)
    at = random.randrange(len(words))
    changed = random.randrange(8)
    value = random.choice(VALUES)
    if changed == 0:
        del words[at]
    elif changed == 1:
        words.insert(at, words[at])
    elif changed == 2:
        words.insert(at, value)
    elif changed == 3 and len(words[at]) > 1:
        place = random.randrange(len(words[at]))
        words[at] = words[at][:place] + random.choice(("", value[:20])) + words[at][place + 1 :]
    else:
        at = random.choice([at for at, word in enumerate(words) if not re.fullmatch(r"--[a-z-]+", word)])
        name, equals, _ = words[at].partition("=")
        words[at] = f"{name}={value}" if equals else value
    return json.dumps(words).encode()


WORDS: tuple[Mutation, ...] = (change_words,)
