"""Keys: every line has one of its own, that HDF5 can have, and that gives the line back."""

import h5py
from hypothesis import example, given, settings
from hypothesis import strategies as some

from elmoc.features.layouts.keys import SentenceKeys, line_of

LINES = some.lists(some.text(some.sampled_from("%/.#2F50E \0aé"), max_size=6), max_size=30)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(lines=LINES)
@example(lines=["a"] * 70)
@example(lines=["", "%#1", "", "%#2", "", "."])
def test_every_line_has_a_key_that_gives_it_back(lines: list[str]) -> None:
    keys = SentenceKeys()
    with h5py.File.in_memory(track_order=True) as file:
        for line in lines:
            file[keys.key_of(line)] = 0.0  # a second one of that name would be an error
        assert [line_of(key) for key in file] == lines


def test_keys_are_the_lines_where_they_can_be() -> None:
    keys = SentenceKeys()
    for line in ("The cat sat .", "50 % of it", "100%", "Zürich — 😀", "..", "a.b", "%2G", "x" * 100_000):
        assert keys.key_of(line) == line
    for line, key in (("a / b", "a %2F b"), (".", "%2E"), ("%2F", "%252F"), ("%#3", "%25#3"), ("a\0", "a%00")):
        assert keys.key_of(line) == key
