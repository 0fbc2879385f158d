"""Applies a Fossil delta: https://fossil-scm.org/home/doc/trunk/www/delta_format.wiki.

What came over a network is not trusted: every number is checked before it is used.
"""

from __future__ import annotations

import struct

#: Bytes that a delta may have, and may make. A few bytes could ask for gigabytes otherwise. A gateway sends none for a
#: value of more than 512 KiB.
DELTA_BYTES_MAX = 4 * 1024**2

_DIGITS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~"
_DIGIT_OF = {character: digit for digit, character in enumerate(_DIGITS)}
_LINE_FEED, _COMMA, _COLON, _SEMICOLON, _AT = b"\n,:;@"


class DeltaError(ValueError):
    """A delta is malformed, or was made for other bytes."""


def apply_delta(source: bytes, delta: bytes) -> bytes:
    """Gives what the delta makes of the source."""
    size, after_size, at = _number(delta, 0)
    if after_size != _LINE_FEED:
        raise DeltaError("it does not begin with a size")
    if max(size, len(delta)) > DELTA_BYTES_MAX:
        raise DeltaError("it is too large")
    made = bytearray()
    while True:
        count, command, at = _number(delta, at)
        if command == _SEMICOLON:
            if len(made) != size:
                raise DeltaError("it makes less than it says")
            if at != len(delta):
                raise DeltaError("it goes on after its end")
            if count != _checksum_of(made):
                raise DeltaError("the checksum is wrong")
            return bytes(made)
        if count > size - len(made):
            raise DeltaError("it makes more than it says")
        if command == _AT:
            offset, end, at = _number(delta, at)
            if end != _COMMA:
                raise DeltaError("a copy does not end")
            if offset + count > len(source):
                raise DeltaError("it copies from beyond the end")
            made += source[offset : offset + count]
        elif command == _COLON:
            if count > len(delta) - at:
                raise DeltaError("it ends too early")
            made += delta[at : at + count]
            at += count
        else:
            raise DeltaError("no command is written like that")


def _number(delta: bytes, at: int) -> tuple[int, int, int]:
    """Reads a number: gives it, the character behind it, and where what follows begins."""
    value = 0
    while at < len(delta):
        digit = _DIGIT_OF.get(delta[at])
        at += 1
        if digit is None:
            return value, delta[at - 1], at
        value = value * 64 + digit
        if value > 0xFFFFFFFF:
            raise DeltaError("a number is too large")
    raise DeltaError("it ends too early")


def _checksum_of(content: bytearray) -> int:
    """The sum of the bytes as 32-bit words, high byte first, the last filled up with zeros."""
    padded = content + bytes(-len(content) % 4)
    words: tuple[int, ...] = struct.unpack(f">{len(padded) // 4}I", padded)
    return sum(words) & 0xFFFFFFFF
