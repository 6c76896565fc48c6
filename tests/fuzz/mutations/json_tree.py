"""Mutations of JSON: fields dropped, of another type or out of range, and texts that are hard to parse."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.fuzz.mutations.raw import RAW, Mutation
from tests.fuzz.mutations.text import TEXT

RAW_VALUES = (
    *("1e999", "-1e999", "NaN", "Infinity", "1" + "0" * 400, "9" * 5000, "-0", "1.0", "1e308", "0.5", "1e-400"),
    *('"\\ud800"', '"\\u0000"', '"\\u001b[31m"', '"\\n"', '"' + "a" * 100_000 + '"', "[" * 5000 + "]" * 5000),
    *('{"a":' * 3000 + "1" + "}" * 3000, "[" * 200_000, '{"a": 1, "a": 2}', "[[]]", '"1"', '"../x"', '"/dev/zero"'),
)
"""Values as they stand in a file, some of which no JSON library writes."""
VALUES = (
    *(None, True, False, 0, 1, 2, 3, -1, 1.5, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63), "", "x", "é", " ", "0", "nan"),
    *([], {}, [[]], [None], [1], ["x"], {"x": 1}, [0] * 1000),
)

Path = tuple[Any, ...]


def paths(tree: Any, path: Path = ()) -> Iterator[Path]:
    """The place of every value of a tree, but of long lists only the first ones."""
    yield path
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree[:4]) if isinstance(tree, list) else ()
    for key, value in inner:
        yield from paths(value, (*path, key))


def change_tree(data: bytes, random: Random) -> bytes:
    """Change one value of the document, or a few."""
    tree = json.loads(data)
    for _ in range(random.choice((1, 1, 1, 3))):
        tree = change_value(tree, random)
    text = json.dumps(tree, ensure_ascii=random.random() < 0.5)
    return raw_values(text).encode()


def change_value(tree: Any, random: Random) -> Any:
    """The tree with one value changed; values of `RAW_VALUES` are marked, see `raw_values`."""
    path = random.choice(list(paths(tree)))
    if not path:
        return random.choice((tree, None, [], {}, [tree], "x", 1)) if random.random() < 0.3 else tree
    parent = tree
    for key in path[:-1]:
        parent = parent[key]
    key, value = path[-1], parent[path[-1]]
    changed = random.randrange(10)
    if changed == 0:
        del parent[key]
    elif changed == 1 and isinstance(parent, dict):
        parent[random.choice((f"{key}x", "", "x", "__class__", key.upper()))] = parent.pop(key)
    elif changed == 1:
        parent.insert(key, value)
    elif changed == 2:
        other = random.choice([each for each in paths(tree) if each])
        place = tree
        for each in other[:-1]:
            place = place[each]
        parent[key] = json.loads(json.dumps(place[other[-1]]))
    elif changed == 3 and type(value) in (int, float):
        parent[key] = random.choice((value + 1, value - 1, -value, value * 2, value / 2, str(value), [value]))
    elif changed == 4 and isinstance(value, str):
        parent[key] = random.choice((value[:-1], value * 2, value.upper(), [value], {value: value}, f"\0{value}"))
    elif changed <= 6:
        parent[key] = f"\ufdd0{random.randrange(len(RAW_VALUES))}\ufdd1"
    else:
        parent[key] = random.choice(VALUES)
    return tree


def raw_values(text: str) -> str:
    """A document in which the marks that `change_value` has left are the values that they stand for."""
    for number, value in enumerate(RAW_VALUES):
        for mark in (f"\ufdd0{number}\ufdd1", f"\\ufdd0{number}\\ufdd1"):
            text = text.replace(f'"{mark}"', value).replace(mark, "x")
    return text


def change_line(data: bytes, random: Random) -> bytes:
    """For JSON lines: change one of them, as `change_tree` does."""
    lines = data.split(b"\n")
    at = random.choice([at for at, line in enumerate(lines) if line])
    lines[at] = change_tree(lines[at], random)
    return b"\n".join(lines)


JSON: tuple[Mutation, ...] = (*[change_tree] * (len(TEXT) + len(RAW)), *TEXT)
JSON_LINES: tuple[Mutation, ...] = (*[change_line] * len(TEXT), *TEXT)
