"""Deltas as the gateway makes them, and damaged ones."""

import random

import pytest

from keycast.values.delta import DELTA_BYTES_MAX, DeltaError, apply_delta
from keycast.values.version import version_of


def test_copies_and_inserts_make_the_result() -> None:
    source = b'{"n":1,"pad":"lorem ipsum dolor sit amet"}'
    assert apply_delta(source, b'f\n6:{"n":2_@6,C_VjD;') == b'{"n":2,"pad":"lorem ipsum dolor sit amet"}'


def test_a_version_is_made_of_the_content() -> None:
    assert version_of(b'{"n":1,"pad":"lorem ipsum dolor sit amet"}', "application/json") == "Zj0yJjugUcLCDwL7Yp3C8A"


@pytest.mark.parametrize(
    "delta",
    [
        b"",
        b"f",
        b"3;",
        b"~~~~~~~\n",
        b"~~~~~\n",
        b"1\n1:",
        b"1\n2:ab0;",
        b"1\n1@5,0;",
        b"1\n1@0;",
        b"1\n1:a0;",
        b"1\n1:aH00000;x",
        b"2\n1:a0;",
        b"1\n1?a0;",
    ],
)
def test_what_is_no_delta_of_the_source_is_refused(delta: bytes) -> None:
    with pytest.raises(DeltaError):
        apply_delta(b"abc", delta)


def test_a_few_bytes_cannot_ask_for_much_memory_nor_many_that_make_nothing_for_much_time() -> None:
    assert DELTA_BYTES_MAX == 4 * 1024**2
    for delta in (b"G001\n", b"0\n" + b"0@0," * 1024**2 + b"0;"):
        with pytest.raises(DeltaError, match="it is too large"):
            apply_delta(b"", delta)


def test_damage_is_refused_or_harmless() -> None:
    """Whatever the bytes, there is an end, and no error but the one that callers expect."""
    chance = random.Random(1)
    source, delta = b'{"n":1,"pad":"lorem ipsum dolor sit amet"}', b'f\n6:{"n":2_@6,C_VjD;'
    for _ in range(5_000):
        damaged = bytearray(delta)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            made = apply_delta(source, bytes(damaged))
        except DeltaError:
            continue
        assert len(made) <= len(source) + len(delta)
